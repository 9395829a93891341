//! What README.md says of packages, from one build: the steps of the Dockerfile on a machine
//! that is thrown away, an installation, then the package of what they built.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::blocks::{By, blocks};
use crate::machine::Machine;
use crate::{output_of, repository};

/// Where the build's files stay, so that the next one is quick.
fn target() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packaging");
    fs::create_dir_all(&target).unwrap();
    target
}

/// The user's Rust, and a build that need not be fast, only the same in all else.
fn for_cargo(command: &mut Command) -> &mut Command {
    let given = [
        "PATH",
        "HOME",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "RUSTUP_TOOLCHAIN",
    ];
    let given = given
        .iter()
        .filter_map(|name| Some((name, std::env::var_os(name)?)));
    command
        .env_clear()
        .envs(given)
        .env("CARGO_TARGET_DIR", target())
        .env("CARGO_NET_OFFLINE", "true")
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
}

/// The lines of a Dockerfile, as an instruction and what follows it.
fn instructions() -> Vec<(String, String)> {
    let text = fs::read_to_string(repository("Dockerfile")).unwrap();
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let split = |line: &str| {
        line.split_once(' ')
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
    };
    lines.map(|line| split(line).unwrap()).collect()
}

/// Copies to the machine what .dockerignore lets through.
fn copy_context(machine: &Machine, to: &str) {
    let ignored = fs::read_to_string(repository(".dockerignore")).unwrap();
    let mut lines = ignored.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(lines.next(), Some("*"));
    let kept = lines.map(|line| line.strip_prefix('!').expect("only exceptions"));
    let mut pack = Command::new("tar");
    pack.arg("-C").arg(repository("")).arg("-c").args(kept);
    let mut pack = pack.stdout(Stdio::piped()).spawn().unwrap();
    machine.shell(&format!("mkdir -p {to}"));
    let mut unpack = machine.command("tar");
    unpack.args(["-C", to, "-x"]);
    output_of(unpack.stdin(pack.stdout.take().unwrap()));
    assert!(pack.wait().unwrap().success());
}

/// Does what the Dockerfile says, on this machine in place of the first image.
fn build_image(machine: &Machine) {
    let mut folder = String::new();
    let mut stages = Vec::new();
    let mut copied = Vec::new();
    for (instruction, rest) in instructions() {
        match (instruction.as_str(), stages.len()) {
            ("FROM", _) => stages.push(rest),
            ("WORKDIR", 1) => folder = rest,
            ("COPY", 1) => {
                assert_eq!(rest, ". .");
                copy_context(machine, &folder);
            }
            // This machine has it already, by `tests/run-all`, where it can be had.
            ("RUN", 1) if rest.starts_with("apt-get ") => {
                assert!(rest.contains(" musl-tools ") && rest.contains("rustup target add"));
            }
            ("RUN", 1) => {
                let script = format!("cd {folder} && {rest}");
                output_of(for_cargo(machine.command("sh").args(["-ec", &script])));
            }
            ("COPY", 2) => {
                let words: Vec<&str> = rest.split(' ').collect();
                assert_eq!(words[0], "--from=build");
                machine.shell(&format!("test -s {}", words[1]));
                copied.push(words[2].to_owned());
            }
            ("USER", 2) => assert_eq!(rest, "65532:65532"),
            ("ENTRYPOINT", 2) => {
                let program = rest.trim_start_matches("[\"").trim_end_matches("\"]");
                assert!(copied.contains(&program.to_owned()), "{rest}");
            }
            _ => panic!("this test does not know {instruction} here"),
        }
    }
    let rust = env!("CARGO_PKG_RUST_VERSION");
    assert_eq!(
        stages,
        [format!("rust:{rust}-bookworm AS build"), "scratch".into()]
    );
    assert_eq!(copied[0], "/etc/ssl/certs/ca-certificates.crt");
}

/// Which of these files a machine has.
fn existing(machine: &Machine, files: &BTreeSet<String>) -> BTreeSet<String> {
    let script = r#"while IFS= read -r file; do
        if [ -e "$file" ] || [ -L "$file" ]; then printf '%s\n' "$file"; fi
    done"#;
    let list = tempfile::NamedTempFile::new().unwrap();
    let lines: String = files.iter().map(|file| format!("{file}\n")).collect();
    fs::write(list.path(), lines).unwrap();
    let mut command = machine.command("sh");
    command.args(["-ec", script]).stdin(list.reopen().unwrap());
    output_of(&mut command).lines().map(str::to_owned).collect()
}

/// Files that a program on the machine wrote and that a fresh machine lacks, but those that dpkg and its triggers write
/// for themselves.
fn new_files(machine: &Machine, fresh: &Machine) -> Vec<String> {
    let mut written = machine.written();
    let own = ["/var/lib/dpkg", "/var/log", "/var/cache"];
    written.retain(|file| !own.iter().any(|own| Path::new(file).starts_with(own)));
    let before = existing(fresh, &written);
    let now = existing(machine, &written);
    now.difference(&before).cloned().collect()
}

/// README.md's command that begins like this.
fn command(begin: &str) -> String {
    let [block] = &blocks(By::Release)[..] else {
        panic!("one block is about packages");
    };
    let lines = block.text().lines().map(|line| line.split('#').next());
    let lines: Vec<&str> = lines.flatten().map(str::trim).collect();
    assert_eq!(lines.len(), 4, "this test does not know all of {lines:?}");
    let found = lines.iter().find(|line| line.starts_with(begin));
    (*found.unwrap_or_else(|| panic!("README.md has no {begin}"))).to_owned()
}

/// The package, once the image's build has succeeded. Both are made once.
pub(crate) fn package() -> &'static Path {
    static PACKAGE: OnceLock<PathBuf> = OnceLock::new();
    PACKAGE.get_or_init(|| {
        let machine = Machine::start("builder", &target());
        build_image(&machine);
        is_static_pie(&machine.shell("readelf --file-header --program-headers /out/bin/tokenrun"));
        built_package()
    })
}

fn built_package() -> PathBuf {
    let file = target().join("tokenrun.deb");
    let script = format!("{} --output \"$0\"", command("cargo deb "));
    let mut deb = Command::new("sh");
    for_cargo(&mut deb).current_dir(repository(""));
    output_of(deb.args(["-ec", &script]).arg(&file));
    let mut lintian = Command::new("lintian");
    let found = output_of(
        lintian
            .args(["--allow-root", "--fail-on", "error,warning"])
            .arg(&file),
    );
    assert_eq!(found, "");
    file
}

#[test]
fn needs_root_the_image_builds_and_the_package_installs_and_leaves() {
    let package = package();
    assert_eq!(command("docker build "), "docker build -t tokenrun .");
    // The image's build has run the second of these.
    let run = instructions().into_iter().rfind(|(it, _)| it == "RUN");
    let (_, run) = run.unwrap();
    assert_eq!(command("packaging/"), run.replace("/out", "/usr/local"));
    let machine = Machine::start_bare("node-a", &target());
    let fresh = Machine::start_bare("node-b", &target());
    let install = format!("dpkg --install {} 2>&1", package.display());
    let purge = "dpkg --purge tokenrun 2>&1";
    machine.shell(&install);
    let installed = new_files(&machine, &fresh);
    for file in [
        "/usr/bin/tokenrun",
        "/usr/share/man/man1/tokenrun.1.gz",
        "/usr/share/man/man1/tokenrun-status.1.gz",
        "/usr/share/man/man7/tokenrun-exit-codes.7.gz",
        "/usr/share/bash-completion/completions/tokenrun",
        "/usr/share/zsh/vendor-completions/_tokenrun",
        "/usr/share/fish/vendor_completions.d/tokenrun.fish",
        "/usr/share/doc/tokenrun/README.md",
        "/usr/share/doc/tokenrun/docs/README.md",
        "/usr/share/doc/tokenrun/docs/page.png",
        "/usr/share/doc/tokenrun/examples/cron/nightly",
        "/usr/share/doc/tokenrun/examples/cron/page",
        "/usr/share/doc/tokenrun/examples/systemd/nightly.service.d/one-host.conf",
        "/usr/share/doc/tokenrun/examples/systemd/scheduler.service",
        "/usr/share/doc/tokenrun/examples/kubernetes/nightly.yaml",
        "/usr/share/doc/tokenrun/examples/hooks/ping.sh",
        "/usr/share/doc/tokenrun/examples/prometheus/alerts.yml",
        "/usr/share/doc/tokenrun/examples/redis/fenced-set.lua",
        "/usr/share/doc/tokenrun/examples/kubernetes/store-mysql.yaml",
        "/usr/share/doc/tokenrun/examples/kubernetes/store-redis.yaml",
    ] {
        assert!(
            installed.iter().any(|it| it == file),
            "{file}: {installed:#?}"
        );
    }
    assert_eq!(
        machine.shell("stat -c '%a %U:%G' /var/lib/tokenrun"),
        "700 root:root\n"
    );
    let completion = ". /usr/share/bash-completion/completions/tokenrun; complete -p tokenrun";
    machine.shell(&format!("bash -c '{completion}'"));
    machine.shell(purge);
    assert_eq!(new_files(&machine, &fresh), Vec::<String>::new());

    // With data.
    machine.shell(&install);
    let said = machine.shell("/usr/bin/tokenrun --group demo -- echo hello");
    assert!(said.contains("hello\n"), "{said}");
    machine.shell(purge);
    let left = new_files(&machine, &fresh);
    assert!(
        left.contains(&"/var/lib/tokenrun/tokenrun.db".to_owned()),
        "{left:?}"
    );
    let data = |file: &String| file.starts_with("/var/lib/tokenrun");
    assert!(left.iter().all(data), "{left:?}");
}

#[test]
fn needs_root_cargo_installs_it() {
    // What it builds is there already, by the same profile.
    package();
    let machine = Machine::start_bare("builder", &target());
    copy_context(&machine, "/src");
    let install = format!("cd /src && {}", command("cargo install "));
    let mut shell = machine.command("sh");
    for_cargo(shell.args(["-ec", &install])).env("CARGO_INSTALL_ROOT", "/installed");
    output_of(&mut shell);
    machine.shell("/installed/bin/tokenrun --version");
}

/// Checks readelf's words on a program: it needs no library of the system's, and may lie at any
/// address, for root runs it and it talks to a network.
fn is_static_pie(headers: &str) {
    assert!(!headers.contains("INTERP"), "not static: {headers}");
    let mut lines = headers.lines().map(str::trim_start);
    let kind = lines.find(|line| line.starts_with("Type:"));
    assert!(
        kind.is_some_and(|line| line.contains("DYN")),
        "not position-independent: {headers}"
    );
}

/// What the program may weigh, with every store, TLS and the manual's text in it.
const LARGEST: u64 = 8_000_000;

#[test]
fn the_program_as_it_is_released_is_a_static_pie_and_not_too_large() {
    // Optimised as for users; if it is built already, this is quick.
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(repository(""))
        .env_remove("CARGO_TARGET_DIR");
    for setting in ["LTO", "OPT_LEVEL", "CODEGEN_UNITS", "STRIP", "DEBUG"] {
        cargo.env_remove(format!("CARGO_PROFILE_RELEASE_{setting}"));
    }
    // The variables that Cargo sets for this test do not belong to that build: it would start
    // again.
    let is_cargos = |name: &str| {
        ["CARGO_PKG_", "CARGO_MANIFEST_", "OUT_DIR"]
            .iter()
            .any(|it| name.starts_with(it))
    };
    for (name, _) in std::env::vars_os() {
        if name == "LIBSQLITE3_FLAGS" || name.to_str().is_some_and(is_cargos) {
            cargo.env_remove(name);
        }
    }
    cargo.args(["build", "--release", "--locked", "--bin", "tokenrun"]);
    if let Some(target) = std::env::var_os("TOKENRUN_TEST_TARGET") {
        cargo.arg("--target").arg(target);
    }
    let output = output_of(cargo.arg("--message-format=json-render-diagnostics"));
    let lines = output.lines().filter(|line| line.starts_with('{'));
    let messages = lines.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let programs: Vec<String> = messages
        .filter_map(|message| message["executable"].as_str().map(str::to_owned))
        .collect();
    let [program] = &programs[..] else {
        panic!("one program is built: {programs:?}");
    };
    let size = fs::metadata(program).unwrap().len();
    assert!(size <= LARGEST, "{program} has {size} bytes");
    let headers = output_of(
        Command::new("readelf")
            .args(["--file-header", "--program-headers"])
            .arg(program),
    );
    is_static_pie(&headers);
}

#[test]
fn the_package_has_the_version_of_the_program() {
    let changelog = fs::read_to_string(repository("packaging/debian/changelog")).unwrap();
    let version = format!("tokenrun ({}-1) ", env!("CARGO_PKG_VERSION"));
    assert!(changelog.starts_with(&version), "{changelog}");
    let dockerfile = fs::read_to_string(repository("examples/kubernetes/Dockerfile")).unwrap();
    let image = format!("tokenrun:{} ", env!("CARGO_PKG_VERSION"));
    assert_eq!(dockerfile.matches(&image).count(), 2);
}
