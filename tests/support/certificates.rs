//! Certificates of the tests' own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

fn openssl(folder: &Path, words: &str) {
    let output = Command::new("openssl")
        .args(words.split(' '))
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("openssl is missing: install it (tests/run-all does)");
    assert!(output.status.success(), "{words}: {output:?}");
}

/// Makes ca.crt, other.crt, server.crt for localhost, client.crt, and their keys.
pub(crate) fn certificates(folder: &Path) {
    fs::create_dir(folder).unwrap();
    for ca in ["ca", "other"] {
        let words = format!(
            "req -x509 -newkey rsa:2048 -nodes -days 9 -subj /CN={ca} -keyout {ca}.key -out {ca}.crt"
        );
        openssl(folder, &words);
    }
    for (name, alt) in [("server", "DNS:localhost"), ("client", "DNS:client")] {
        fs::write(folder.join("ext"), format!("subjectAltName={alt}\n")).unwrap();
        let request = format!(
            "req -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr"
        );
        openssl(folder, &request);
        let sign = format!(
            "x509 -req -days 9 -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -extfile ext -out {name}.crt"
        );
        openssl(folder, &sign);
        let key = folder.join(format!("{name}.key"));
        fs::set_permissions(key, fs::Permissions::from_mode(0o644)).unwrap();
    }
}
