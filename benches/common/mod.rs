//! What the benches share: a folder with a copy of tokenrun, numbers, processes, hand-overs,
//! and a server of etcd.

// Each bench uses its part.
#![allow(dead_code)]

pub(crate) mod etcd;
pub(crate) mod handover;
pub(crate) mod processes;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The C library of the released program.
const RELEASED: &str = "musl";

/// The name of the copy of tokenrun that is measured.
const INSTALLED: &str = "tokenrun";

/// A folder that is removed at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// With a copy of the released tokenrun, as an installation has one: what a linker has written lies
    /// in the page cache in the smallest pieces, and its page faults take an eighth longer.
    pub(crate) fn new(bench: &str) -> Self {
        Self::of_libc(bench, RELEASED)
    }

    /// With a copy of tokenrun that is linked with this C library. It is built, if it is not up to date.
    pub(crate) fn of_libc(bench: &str, libc: &str) -> Self {
        let target = format!("{}-unknown-linux-{libc}", std::env::consts::ARCH);
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--release", "--locked", "--bin", "tokenrun"]);
        build
            .args(["--target", &target])
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        let status = build.status().expect("cargo starts");
        assert!(
            status.success(),
            "no program for {target}: rustup target add {target}"
        );
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target");
        let built = std::env::var_os("CARGO_TARGET_DIR").map_or(here, PathBuf::from);
        Self::with(
            &format!("{bench}-{libc}"),
            &built.join(target).join("release/tokenrun"),
        )
    }

    fn with(bench: &str, built: &Path) -> Self {
        let name = format!("tokenrun-{bench}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a temporary directory");
        fs::copy(built, path.join(INSTALLED)).expect("a copy of tokenrun");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The copy of tokenrun.
    pub(crate) fn tokenrun(&self) -> PathBuf {
        self.file(INSTALLED)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Says of a store that it is new.
pub(crate) fn init(folder: &Folder, url: &str) {
    let mut init = Command::new(folder.tokenrun());
    init.args(["init", "--store", url]).stdout(Stdio::null());
    assert!(init.status().expect("it starts").success());
}

/// An operator says that Redis has lost nothing: the server has been up for a moment only. `info` is what it says of
/// itself.
pub(crate) fn settle(folder: &Folder, info: &str, url: &str) {
    let run = info.lines().find_map(|line| line.strip_prefix("run_id:"));
    let mut settle = Command::new(folder.tokenrun());
    settle.args(["settle", "--yes", &run.expect("a run id")[..16], "-s", url]);
    settle.stderr(Stdio::null());
    assert!(settle.status().expect("it starts").success());
}

pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
