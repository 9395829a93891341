//! Keeps the structure of the sources as ARCHITECTURE.md draws it.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "tidy/crates.rs"]
mod crates;
#[path = "tidy/imports.rs"]
mod imports;
#[path = "tidy/inclusions.rs"]
mod inclusions;
#[path = "tidy/signals.rs"]
mod signals;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use imports::{Sources, circles};
use inclusions::included;

/// The layers, from the bottom up. A module imports from its own and lower ones.
const LAYERS: [&[&str]; 8] = [
    &["token", "moment", "duration", "size", "exit", "mutated"],
    &["sys"],
    &["store", "job"],
    &["run"],
    &["report"],
    &["config"],
    &["cli"],
    &["verbs"],
];

/// Modules of one layer that do not know each other.
const STRANGERS: [(&str, &str); 2] = [("store", "job"), ("job", "store")];

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found
}

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The top-level module that a file belongs to; `None` for the library's root and main.
fn module_of(path: &Path) -> Option<String> {
    let relative = path.strip_prefix(src()).unwrap();
    let first = relative.components().next()?.as_os_str().to_str()?;
    let module = first.trim_end_matches(".rs");
    (module != "lib" && module != "main").then(|| module.to_owned())
}

/// The code of a file without its comments.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_file_imports_only_from_its_own_layer_and_those_below() {
    let mut looked_at = 0;
    for path in sources(&src()) {
        // A test may use what lies above the code that it tests.
        if path.to_string_lossy().contains("_tests") {
            continue;
        }
        let Some(module) = module_of(&path) else {
            continue;
        };
        let layer = layer_of(&module).unwrap_or_else(|| panic!("{module} has no layer"));
        for used in code(&path).split("crate::").skip(1) {
            let other: String = used
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            let Some(below) = layer_of(&other) else {
                continue;
            };
            looked_at += 1;
            assert!(
                below <= layer,
                "{}: imports {other}, which lies above",
                path.display()
            );
            let strangers = STRANGERS.contains(&(module.as_str(), other.as_str()));
            assert!(
                !strangers,
                "{}: {module} must not know {other}",
                path.display()
            );
        }
    }
    assert!(looked_at > 100, "only {looked_at} imports were found");
}

/// Files that may import each other in a circle, and why.
const CIRCLES: [(&[&str], &str); 1] = [(
    &[
        "run::finishing",
        "run::holding",
        "run::holding::guard",
        "run::holding::heart",
        "run::machine",
        "run::seeking",
        "run::seeking::granting",
        "run::seeking::looking",
        "run::seeking::waiting",
    ],
    "the phases of the machine lead to each other, and each takes a step of the machine",
)];

#[test]
fn files_do_not_import_each_other_in_a_circle() {
    let sources = Sources::read(&src(), &sources(&src()));
    let graph = sources.graph();
    let imports: usize = graph.values().map(BTreeSet::len).sum();
    assert!(imports > 500, "only {imports} imports were found");
    let allowed = CIRCLES.map(|(modules, _)| modules.join(", "));
    let named = |circle: BTreeSet<Vec<String>>| {
        let modules: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
        modules.join(", ")
    };
    let found: Vec<String> = circles(&graph).into_iter().map(named).collect();
    assert_eq!(
        found, allowed,
        "circles: those that there are, and those that may be"
    );
}

/// By whichever path: `crate::`, `super::`, a re-export.
#[test]
fn no_path_leads_to_a_layer_above() {
    let graph = Sources::read(&src(), &sources(&src())).graph();
    let layer = |module: &[String]| layer_of(module.first()?);
    for (module, imports) in &graph {
        for import in imports {
            if let (Some(own), Some(other)) = (layer(module), layer(import)) {
                let (from, to) = (module.join("::"), import.join("::"));
                assert!(other <= own, "{from} imports {to}, which lies above");
            }
        }
    }
}

#[test]
fn a_circle_of_two_files_would_be_found() {
    let folder = std::env::temp_dir().join(format!("tokenrun-tidy-{}", std::process::id()));
    fs::create_dir_all(folder.join("a")).unwrap();
    fs::write(
        folder.join("a.rs"),
        "mod b;\nmod c;\npub use b::{B, Other};\n",
    )
    .unwrap();
    fs::write(folder.join("a/b.rs"), "use super::c::{self, C};\n").unwrap();
    // By way of the re-export.
    fs::write(folder.join("a/c.rs"), "fn c() { crate::a::B::new() }\n").unwrap();
    let sources = Sources::read(&folder, &sources(&folder));
    let found = circles(&sources.graph());
    fs::remove_dir_all(&folder).unwrap();
    let circle = [["a", "b"], ["a", "c"]].map(|it| it.map(str::to_owned).to_vec());
    assert_eq!(found, [BTreeSet::from(circle)]);
}

#[test]
fn the_token_is_pure() {
    let token = sources(&src().join("token"));
    for path in token.iter().chain([&src().join("token.rs")]) {
        let code = code(path);
        for impure in [
            "std::fs",
            "std::net",
            "std::process",
            "std::thread",
            "Instant",
            "SystemTime",
            "std::env",
        ] {
            assert!(!code.contains(impure), "{} uses {impure}", path.display());
        }
    }
}

#[test]
fn the_machine_of_a_run_reads_no_clock() {
    for file in [
        "machine",
        "seeking",
        "holding",
        "finishing",
        "lease",
        "ending",
        "event",
    ] {
        let path = src().join("run").join(file).with_extension("rs");
        let code = code(&path);
        for impure in [
            "Instant",
            "SystemTime",
            "LocalClock",
            "std::thread",
            "sleep",
        ] {
            assert!(!code.contains(impure), "{} uses {impure}", path.display());
        }
    }
}

/// `url` knows the syntax of store URLs, and so do the stores' own parts; `open` alone
/// distinguishes the kinds of stores.
#[test]
fn only_one_module_distinguishes_the_kinds_of_stores() {
    let store = src().join("store");
    let allowed = [
        "open.rs",
        "open",
        "url.rs",
        "url_tests.rs",
        "sqlite",
        "postgres",
        "mysql",
        "redis",
        "etcd",
    ]
    .map(|name| store.join(name));
    for path in sources(&src()) {
        if allowed.iter().any(|it| path.starts_with(it)) {
            continue;
        }
        let code = code(&path);
        for kind in [
            "StoreUrl::Sqlite",
            "StoreUrl::Postgres",
            "StoreUrl::Mysql",
            "StoreUrl::Redis",
            "StoreUrl::Etcd",
            "StoreUrl::Zookeeper",
            "is_conninfo",
        ] {
            assert!(!code.contains(kind), "{} asks for {kind}", path.display());
        }
    }
}

#[test]
fn the_system_layer_knows_no_token() {
    for path in sources(&src().join("sys")) {
        let code = code(&path);
        assert!(!code.contains("crate::token"), "{}", path.display());
    }
}

#[test]
fn only_the_command_line_and_the_verbs_know_clap() {
    for path in sources(&src()) {
        let module = module_of(&path);
        let may = module.is_some_and(|module| module == "cli" || module == "verbs");
        assert!(
            may || !code(&path).contains("clap"),
            "{} knows clap",
            path.display()
        );
    }
}

#[test]
fn unsafe_code_is_in_the_system_layer_alone() {
    for path in sources(&src()) {
        let allowed = module_of(&path).is_none_or(|module| module == "sys");
        assert!(
            allowed || !code(&path).contains("allow(unsafe_code"),
            "{}",
            path.display()
        );
    }
}

/// A unit test may: what it prepares is none of the program's business with the kernel.
#[test]
fn only_the_system_layer_names_the_crates_of_system_calls() {
    let sources = Sources::read(&src(), &sources(&src()));
    let mut in_layer = 0;
    for (module, code) in sources.code() {
        let path = module.join("::");
        if module.first().is_some_and(|first| first == "sys") {
            in_layer += crates::named(code).len();
            let given_on = crates::given_on(code);
            assert!(given_on.is_empty(), "{path} gives on {given_on:?}");
        } else {
            let named = crates::named(code);
            assert!(named.is_empty(), "{path} names {named:?}");
        }
    }
    assert!(in_layer > 20, "only {in_layer} are named in src/sys");
}

#[test]
fn a_system_call_elsewhere_would_be_found() {
    for code in [
        "use nix::unistd::geteuid;",
        "use {std::io, nix::unistd};",
        "use libc as c;",
        "pub use rustix;",
        "extern crate libc;",
        "use ::nix::unistd;",
        "fn f() { let _ = ::rustix::process::getpid(); }",
        "fn f() -> i32 { libc::SIGKILL }",
    ] {
        assert_eq!(crates::named(code).len(), 1, "{code}");
    }
    for code in [
        "use crate::sys::errno::Errno;",
        "use std::os::unix::fs::OpenOptionsExt as _;",
        "const LIBRARY: &str = \"musl libc\";",
        "fn f() { unix::nix_like(phoenix::NEW) }",
    ] {
        assert_eq!(crates::named(code), [""; 0], "{code}");
    }
    assert_eq!(
        crates::given_on("use nix::libc;\npub use nix::errno::Errno;\n"),
        ["nix"]
    );
    assert_eq!(
        crates::given_on("use nix::libc;\npub use super::Errno;\n"),
        [""; 0]
    );
}

/// What both need lies in `src`: `tests/` may compile a file of it. The manual and the completions are
/// generated, and parts of the program.
#[test]
fn the_program_includes_no_file_of_its_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut looked_at = 0;
    for path in sources(&src()) {
        for included in included(&code(&path), &path, root) {
            looked_at += 1;
            let is_generated = ["man", "completions"].map(|folder| root.join(folder));
            assert!(
                included.starts_with(src()) || is_generated.contains(&included),
                "{} includes {}",
                path.display(),
                included.display()
            );
        }
    }
    assert!(looked_at > 20, "only {looked_at} inclusions were found");
}

#[test]
fn a_file_of_the_tests_would_be_found() {
    let root = Path::new("/package");
    let file = root.join("src/store/postgres.rs");
    for code in [
        "#[path = \"../../tests/support/server.rs\"]\nmod server;",
        "include!(\"./../../tests/support/server.rs\");",
        "include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/tests/\", \"support/server.rs\"));",
    ] {
        let found = included(code, &file, root);
        assert_eq!(found, [root.join("tests/support/server.rs")], "{code}");
    }
    let own = included("#[path = \"own_tests.rs\"]\nmod tests;", &file, root);
    assert_eq!(own, [root.join("src/store/own_tests.rs")]);
}

/// Markdown files of the repository, without those that are only fetched or built.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let of = |folder: PathBuf| {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().path())
    };
    let folders = ["", "docs", "docs/decisions"].map(|name| root.join(name));
    let files = folders.into_iter().flat_map(of);
    files
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .collect()
}

/// A file that was moved takes its mentions along.
#[test]
fn a_path_that_a_document_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut looked_at = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        // Each second part is between two backticks.
        for quoted in text.split('`').skip(1).step_by(2) {
            let is_path = ["src/", "tests/", "benches/", "docs/", "packaging/", "man/"]
                .iter()
                .any(|folder| quoted.starts_with(folder));
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
            if !is_path || !quoted.chars().all(is_plain) {
                continue;
            }
            looked_at += 1;
            assert!(
                root.join(quoted).exists(),
                "{}: there is no {quoted}",
                path.display()
            );
        }
    }
    assert!(looked_at > 100, "only {looked_at} paths were found");
}

#[test]
fn the_map_is_short() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md"));
    let lines = text.unwrap().lines().count();
    assert!(lines <= 150, "ARCHITECTURE.md has {lines} lines");
}
