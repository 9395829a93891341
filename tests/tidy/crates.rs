//! Which other crates a source names.

/// The crates by which a program calls the kernel.
pub(crate) const OF_SYSTEM: [&str; 3] = ["nix", "rustix", "libc"];

/// The crates of [`OF_SYSTEM`] that code without comments names: at the head of a path, or in a
/// `use` or `extern crate`.
pub(crate) fn named(code: &str) -> Vec<&'static str> {
    let is_named = |name: &&str| {
        code.match_indices(*name)
            .any(|(at, _)| is_crate(code, at, name))
    };
    OF_SYSTEM.into_iter().filter(is_named).collect()
}

/// Those that it gives on to others under a name of its own.
pub(crate) fn given_on(code: &str) -> Vec<&'static str> {
    let statements = code.split(';').filter_map(|text| {
        let (before, tree) = text.rsplit_once("use ")?;
        let line = before.rsplit('\n').next().unwrap_or_default();
        line.trim_start().starts_with("pub").then_some(tree)
    });
    let trees: Vec<String> = statements.map(|tree| format!("use {tree};")).collect();
    named(&trees.join("\n"))
}

fn is_crate(code: &str, at: usize, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (before, after) = (&code[..at], &code[at + name.len()..]);
    if before.ends_with(is_word) || after.starts_with(is_word) {
        return false;
    }
    let is_head = after.trim_start().starts_with("::");
    let before = before.trim_end_matches([' ', ':']);
    is_head || before.ends_with("use") || before.ends_with("extern crate")
}
