//! What a fork publishes: the workflows, and the files of a release, packed from given programs.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::kubernetes::tool;
use crate::{output_of, repository};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The workflows' files.
fn workflows() -> Vec<PathBuf> {
    let files = fs::read_dir(repository(".github/workflows")).unwrap();
    files.map(|file| file.unwrap().path()).collect()
}

#[test]
fn the_workflows_are_valid_and_ask_for_no_more_than_they_need() {
    let mut schema = Command::new(tool("check-jsonschema"));
    schema.args(["--builtin-schema", "vendor.github-workflows"]);
    output_of(schema.args(workflows()));
    let mut linter = Command::new(tool("zizmor"));
    linter.args(["--offline", "--no-progress"]);
    output_of(linter.arg(repository(".github/workflows")));
    let image = format!("image: rust:{}-bookworm", env!("CARGO_PKG_RUST_VERSION"));
    for file in workflows() {
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(&image), "{}: {image}", file.display());
    }
}

#[test]
fn the_scripts_are_clean() {
    let scripts = ["release", "tools", "static-binary"];
    let scripts = scripts.map(|name| repository("packaging").join(name));
    output_of(Command::new("shellcheck").args(scripts));
}

/// Packs a release of these stand-ins for programs.
fn release(folder: &Path, program: &Path, package: &Path) {
    let given = |arch| format!("{arch}={}", program.display());
    let mut release = Command::new(repository("packaging/release"));
    release
        .arg(folder)
        .arg(given("x86_64"))
        .arg(given("aarch64"));
    output_of(release.arg("--package").arg(package));
}

/// A folder's files by name.
fn files(folder: &Path) -> BTreeSet<String> {
    let files = fs::read_dir(folder).unwrap();
    let name = |file: fs::DirEntry| file.file_name().into_string().unwrap();
    files.map(|file| name(file.unwrap())).collect()
}

#[test]
fn a_release_is_complete_and_twice_the_same_bytes() {
    let temporary = tempfile::tempdir().unwrap();
    let path = |name: &str| temporary.path().join(name);
    let (program, package) = (
        path("program"),
        path(&format!("tokenrun_{VERSION}-1_amd64.deb")),
    );
    fs::write(&program, "#!/bin/sh\necho packed\n").unwrap();
    fs::write(&package, "package").unwrap();
    let folders = [path("one"), path("two")];
    for folder in &folders {
        release(folder, &program, &package);
        // Neither the mode nor the time of a program counts.
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(&program, "#!/bin/sh\necho packed\n").unwrap();
    }
    output_of(Command::new("diff").arg("-r").args(&folders));
    let [folder, _] = folders;
    let named = |name: &str| format!("tokenrun-{VERSION}{name}");
    let mut expected: BTreeSet<String> = [
        "-x86_64-linux.tar.gz",
        "-x86_64-image.tar",
        "-aarch64-linux.tar.gz",
        "-aarch64-image.tar",
        ".cdx.json",
    ]
    .map(named)
    .into();
    expected.insert(format!("tokenrun_{VERSION}-1_amd64.deb"));
    let mut sums = Command::new("sha256sum");
    let checked = output_of(sums.current_dir(&folder).args(["--check", "SHA256SUMS"]));
    let checked = checked
        .lines()
        .map(|line| line.strip_suffix(": OK").unwrap());
    assert_eq!(
        checked.map(str::to_owned).collect::<BTreeSet<_>>(),
        expected
    );
    expected.insert("SHA256SUMS".to_owned());
    assert_eq!(files(&folder), expected);
    an_archive_can_be_unpacked(&folder, &named("-aarch64-linux"));
    an_image_is_the_dockerfiles(&folder.join(named("-x86_64-image.tar")), &path("image"));
    the_list_has_all_dependencies(&folder.join(named(".cdx.json")));
}

fn an_archive_can_be_unpacked(folder: &Path, name: &str) {
    let archive = format!("{name}.tar.gz");
    output_of(
        Command::new("tar")
            .current_dir(folder)
            .args(["-xf", &archive]),
    );
    let unpacked = folder.join(name);
    let program = output_of(&mut Command::new(unpacked.join("bin/tokenrun")));
    assert_eq!(program, "packed\n");
    for (there, here) in [
        ("share/man/man1/tokenrun.1", "man/tokenrun.1"),
        (
            "share/man/man7/tokenrun-exit-codes.7",
            "man/tokenrun-exit-codes.7",
        ),
        (
            "share/bash-completion/completions/tokenrun",
            "completions/tokenrun.bash",
        ),
        (
            "share/zsh/site-functions/_tokenrun",
            "completions/_tokenrun",
        ),
        (
            "share/fish/vendor_completions.d/tokenrun.fish",
            "completions/tokenrun.fish",
        ),
        ("share/doc/tokenrun/LICENSE", "LICENSE"),
        (
            "share/doc/tokenrun/examples/hooks/ping.sh",
            "examples/hooks/ping.sh",
        ),
    ] {
        let bytes =
            |path: PathBuf| fs::read(&path).unwrap_or_else(|error| panic!("{there}: {error}"));
        assert_eq!(
            bytes(unpacked.join(there)),
            bytes(repository(here)),
            "{there}"
        );
    }
}

/// Follows an image from its index to its files. Each blob is what its name says.
fn an_image_is_the_dockerfiles(image: &Path, root: &Path) {
    fs::create_dir(root).unwrap();
    let mut unpack = Command::new("tar");
    output_of(unpack.arg("-C").arg(root).arg("-xf").arg(image));
    let json = |path: &str| -> Value {
        serde_json::from_slice(&fs::read(root.join(path)).unwrap()).unwrap()
    };
    let blob = |of: &Value| {
        let digest = of["digest"]
            .as_str()
            .unwrap()
            .strip_prefix("sha256:")
            .unwrap()
            .to_owned();
        let path = format!("blobs/sha256/{digest}");
        let sum = output_of(Command::new("sha256sum").arg(root.join(&path)));
        assert!(sum.starts_with(&digest), "{sum}");
        assert_eq!(
            fs::metadata(root.join(&path)).unwrap().len(),
            of["size"].as_u64().unwrap()
        );
        path
    };
    let manifest = json(&blob(&json("index.json")["manifests"][0]));
    let config = blob(&manifest["config"]);
    let layer = blob(&manifest["layers"][0]);
    let loaded = &json("manifest.json")[0];
    assert_eq!(
        (&loaded["Config"], &loaded["Layers"][0]),
        (&config.clone().into(), &layer.clone().into())
    );
    assert_eq!(loaded["RepoTags"][0], format!("tokenrun:{VERSION}"));
    let config = json(&config);
    assert_eq!(config["architecture"], "amd64");
    let text = fs::read_to_string(repository("Dockerfile")).unwrap();
    let word = |instruction: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(instruction));
        line.unwrap().trim().to_owned()
    };
    assert_eq!(config["config"]["User"], word("USER "));
    assert_eq!(
        config["config"]["Entrypoint"].to_string(),
        word("ENTRYPOINT ")
    );
    let mut list = Command::new("tar");
    let listed = output_of(list.arg("-tf").arg(root.join(layer)));
    let copied = text
        .lines()
        .filter_map(|line| line.strip_prefix("COPY --from=build "));
    let mut copied: Vec<&str> = copied
        .map(|words| words.rsplit(' ').next().unwrap())
        .collect();
    copied.sort_unstable();
    let files = listed.lines().filter(|line| !line.ends_with('/'));
    assert_eq!(
        files.map(|file| format!("/{file}")).collect::<Vec<_>>(),
        copied
    );
}

fn the_list_has_all_dependencies(list: &Path) {
    let text = fs::read_to_string(list).unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&list["bomFormat"], &list["specVersion"]),
        (&"CycloneDX".into(), &"1.5".into())
    );
    let components = list["components"].as_array().unwrap().iter();
    let name = |it: &Value| {
        format!(
            "{} v{}",
            it["name"].as_str().unwrap(),
            it["version"].as_str().unwrap()
        )
    };
    let listed: BTreeSet<String> = components.map(name).collect();
    let mut tree = Command::new("cargo");
    tree.current_dir(repository("")).args([
        "tree",
        "--quiet",
        "--locked",
        "--offline",
        "--edges=normal",
    ]);
    tree.args(["x86_64", "aarch64"].map(|arch| format!("--target={arch}-unknown-linux-musl")));
    let tree = output_of(tree.args(["--prefix=none", "--format={p}"]));
    let crates = tree
        .lines()
        .map(|line| line.split(" (").next().unwrap().to_owned());
    let own = format!("tokenrun v{VERSION}");
    let crates: BTreeSet<String> = crates.filter(|it| !it.is_empty() && *it != own).collect();
    // The tool also lists crates of features that are off.
    let missing: Vec<_> = crates.difference(&listed).collect();
    assert!(crates.len() > 50 && missing.is_empty(), "{missing:?}");
    for of_tests_alone in ["proptest", "insta"] {
        assert!(!text.contains(&format!("\"name\": \"{of_tests_alone}\"")));
    }
    let here = repository("");
    let here = here.to_str().unwrap();
    assert!(!text.contains(here) && !text.contains("/tmp/"));
}
