//! Random bytes, which a login by password needs: they come from the kernel, whatever files there
//! are.

use std::process::Command;

use super::connecting::Secured;
use crate::support::TOKENRUN;

fn scram(secured: &Secured, sslmode: &str) -> String {
    format!(
        "host=127.0.0.1 port={} dbname=scram user=scram password='it\\'s a: p@ss' {sslmode}",
        secured.server.port()
    )
}

/// As in a container that has nothing else in it: no `/dev/urandom`, no `/proc`.
#[test]
fn a_login_needs_no_device() {
    let secured = Secured::start();
    let root = secured.site.file("root");
    std::fs::create_dir(&root).unwrap();
    // Another process copies: what this one has open for writing can't be executed.
    for (from, to) in [
        (TOKENRUN.into(), "tokenrun"),
        (secured.folder.join("ca.crt"), "ca.crt"),
    ] {
        let done = Command::new("cp").arg(from).arg(root.join(to)).status();
        assert!(done.unwrap().success());
    }
    let chroot = ["unshare", "-r", "chroot", root.to_str().unwrap()];
    for sslmode in ["sslmode=disable", "sslmode=verify-ca sslrootcert=/ca.crt"] {
        let run = secured.site.store.bare(&["-g", "g", "--keep=0"]);
        let run = run.env("TOKENRUN_STORE", scram(&secured, sslmode));
        let run = run.under(&chroot);
        let run = run.program("/tokenrun").job(&["/tokenrun", "--version"]);
        let ended = run.end().with_code(0);
        assert!(ended.stdout.starts_with("tokenrun "), "{ended:?}");
        assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    }
}
