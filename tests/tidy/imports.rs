//! Which file of `src` imports which, read from the sources: `use` declarations and paths that begin
//! with `crate` or `super`, re-exports followed to the file that declares the item.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module by its path, without `crate`; empty for the root.
pub(crate) type Module = Vec<String>;

/// The files of a source tree.
pub(crate) struct Sources {
    /// The code of each module's file.
    code: BTreeMap<Module, String>,
    /// What each module re-exports: the name, and the whole path of the item.
    exports: BTreeMap<Module, BTreeMap<String, Module>>,
}

impl Sources {
    /// Reads the files below a directory, except those that only tests are made of.
    pub(crate) fn read(root: &Path, files: &[std::path::PathBuf]) -> Self {
        let mut code = BTreeMap::new();
        for path in files {
            let relative = path.strip_prefix(root).unwrap().with_extension("");
            let parts = relative.components();
            let mut module: Module = parts
                .map(|part| part.as_os_str().to_string_lossy().into_owned())
                .collect();
            if module == ["main"] || is_of_tests(&module) {
                continue;
            }
            if module == ["lib"] {
                module.clear();
            }
            code.insert(module, without_tests(&fs::read_to_string(path).unwrap()));
        }
        let mut sources = Self {
            code,
            exports: BTreeMap::new(),
        };
        for module in sources.code.keys() {
            let mut exports = BTreeMap::new();
            for tree in uses(&sources.code[module], true) {
                let name = tree.last().cloned().unwrap_or_default();
                if let Some(path) = sources.absolute(module, &tree) {
                    exports.insert(name, path);
                }
            }
            sources.exports.insert(module.clone(), exports);
        }
        sources
    }

    /// Each module, with the code of its file that the program is made of.
    pub(crate) fn code(&self) -> impl Iterator<Item = (&Module, &str)> {
        self.code.iter().map(|(module, code)| (module, &**code))
    }

    /// Each module, with those that it imports.
    pub(crate) fn graph(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let mut graph = BTreeMap::new();
        for (module, code) in &self.code {
            let mut paths = uses(code, false);
            paths.extend(self.plain_paths(module, code));
            let imported = paths.iter().filter_map(|path| {
                let path = self.absolute(module, path)?;
                let found = self.declaring(&path, 0)?;
                (found != *module).then_some(found)
            });
            graph.insert(module.clone(), imported.collect());
        }
        graph
    }

    /// Paths in the code itself: `crate::…`, `super::…`, and those that begin with a child.
    fn plain_paths(&self, module: &Module, code: &str) -> Vec<Module> {
        let code = without_uses(code).replace("in crate::", "");
        let is_start = |word: &str| {
            word == "crate" || word == "super" || {
                let mut child = module.clone();
                child.push(word.to_owned());
                self.code.contains_key(&child)
            }
        };
        let mut found = Vec::new();
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        for path in code.split(|c: char| !is_part(c)) {
            let parts: Module = path.split("::").map(str::to_owned).collect();
            if parts.len() > 1 && is_start(&parts[0]) {
                found.push(parts);
            }
        }
        found
    }

    /// A path from the root on; `None` for one into another crate.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Module> {
        let mut base = module.clone();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => {
                base.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|part| part == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            child => {
                let mut of_child = module.clone();
                of_child.push(child.to_owned());
                self.code.contains_key(&of_child).then_some(())?;
            }
        }
        base.extend_from_slice(rest);
        Some(base)
    }

    /// The module whose file declares what a path names.
    fn declaring(&self, path: &Module, depth: usize) -> Option<Module> {
        let lengths = (0..=path.len()).rev();
        let length = lengths
            .into_iter()
            .find(|length| self.code.contains_key(&path[..*length]))?;
        let (module, rest) = path.split_at(length);
        let exported = rest
            .first()
            .and_then(|name| self.exports.get(module)?.get(name));
        match exported {
            // A re-export of a name from outside leads nowhere; a circle of them is none.
            Some(to) if depth < 5 => {
                let mut path = to.clone();
                path.extend_from_slice(&rest[1..]);
                self.declaring(&path, depth + 1)
            }
            _ => Some(module.to_vec()),
        }
    }
}

/// The groups of modules that import each other in a circle.
pub(crate) fn circles(graph: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<BTreeSet<Module>> {
    let reach: BTreeMap<&Module, BTreeSet<&Module>> = graph
        .keys()
        .map(|module| (module, reached(graph, module)))
        .collect();
    let mut found: Vec<BTreeSet<Module>> = Vec::new();
    for (module, there) in &reach {
        let back = |other: &&&Module| reach.get(**other).is_some_and(|it| it.contains(*module));
        let circle: BTreeSet<Module> = there.iter().filter(back).map(|it| (*it).clone()).collect();
        if !circle.is_empty() && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

/// What a module imports, itself or by others.
fn reached<'g>(
    graph: &'g BTreeMap<Module, BTreeSet<Module>>,
    from: &Module,
) -> BTreeSet<&'g Module> {
    let mut found = BTreeSet::new();
    let mut ahead: Vec<&Module> = graph.get(from).into_iter().flatten().collect();
    while let Some(module) = ahead.pop() {
        if found.insert(module) {
            ahead.extend(graph.get(module).into_iter().flatten());
        }
    }
    found
}

/// Tests, and models that only tests use.
fn is_of_tests(module: &Module) -> bool {
    let models = ["conformance", "simulation", "search", "model", "mutant"];
    module
        .iter()
        .any(|part| part.contains("test") || models.contains(&part.as_str()))
}

/// A file's code without comments, and without what only tests are compiled with.
fn without_tests(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let mut code = lines.collect::<Vec<_>>().join("\n");
    if let Some(begin) = code.find("#[cfg(test)]\nmod tests {") {
        code.truncate(begin);
    }
    while let Some(begin) = code.find("#[cfg(test)]\nuse ") {
        let length = code[begin..].find(';').map_or(1, |length| length + 1);
        code.replace_range(begin..begin + length, "");
    }
    code
}

/// The statements of `use`: their text, and whether they re-export.
fn statements(code: &str) -> Vec<(usize, usize, bool)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = code[from..].find("use ") {
        let begin = from + at;
        let line = code[..begin].rfind('\n').map_or(0, |at| at + 1);
        let before = code[line..begin].trim();
        let Some(length) = code[begin..].find(';') else {
            break;
        };
        from = begin + 4;
        if before.is_empty() || before.starts_with("pub") {
            found.push((line, begin + length + 1, before.starts_with("pub")));
            from = begin + length;
        }
    }
    found
}

fn without_uses(code: &str) -> String {
    let mut left = String::new();
    let mut from = 0;
    for (begin, end, _) in statements(code) {
        left.push_str(&code[from..begin.max(from)]);
        from = end;
    }
    left.push_str(&code[from..]);
    left
}

/// The paths that `use` declarations name: those of re-exports, or the others.
fn uses(code: &str, reexports: bool) -> Vec<Module> {
    let mut found = Vec::new();
    for (begin, end, public) in statements(code) {
        if public == reexports {
            let text = code[begin..end - 1].split_whitespace().collect::<Vec<_>>();
            let text = text.join(" ");
            let tree = text.split_once("use ").map_or("", |(_, tree)| tree);
            expand("", tree, &mut found);
        }
    }
    found
}

/// A tree of names, each with the whole path to it.
fn expand(prefix: &str, tree: &str, found: &mut Vec<Module>) {
    let tree = tree.trim();
    match tree.split_once('{') {
        None if tree.is_empty() => {}
        None => {
            let whole = format!("{prefix}{tree}");
            let plain = whole.split(" as ").next().unwrap_or_default();
            let parts = plain.split("::").map(|part| part.trim().to_owned());
            found.push(parts.collect());
        }
        Some((head, rest)) => {
            let inner = rest.strip_suffix('}').unwrap_or(rest);
            let prefix = format!("{prefix}{head}");
            let mut depth = 0;
            let mut begin = 0;
            for (at, c) in inner.char_indices() {
                match c {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 0 => {
                        expand(&prefix, &inner[begin..at], found);
                        begin = at + 1;
                    }
                    _ => {}
                }
            }
            expand(&prefix, &inner[begin..], found);
        }
    }
}
