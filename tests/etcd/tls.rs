//! TLS: the certificate is verified, for this very host, and the client's own names the user.

use crate::certificates::certificates;
use crate::server::Cluster;
use crate::site::Site;
use crate::trusted::is_trusted_by_its_certificate;

#[test]
fn a_server_is_trusted_by_its_certificate_and_a_user_is_known_by_the_clients() {
    let place = Site::new("");
    let folder = place.store.file("certificates");
    certificates(&folder);
    let cluster = Cluster::start_secured(&folder);
    let at = format!("etcds://localhost:{}/p", cluster.port(0));
    let known = is_trusted_by_its_certificate(&at, &folder);
    let site = Site::new(known.clone());
    // The user is the certificate's common name.
    for words in [
        &["user", "add", "root:root"][..],
        &["user", "grant-role", "root", "root"],
        &["role", "add", "etl"],
        &[
            "role",
            "grant-permission",
            "etl",
            "--prefix=true",
            "readwrite",
            "p/",
        ],
        &["user", "add", "client", "--no-password"],
        &["user", "grant-role", "client", "etl"],
        &["auth", "enable"],
    ] {
        assert!(cluster.etcdctl(words).is_some(), "{words:?}");
    }
    let first = site.short("a").end();
    if first.stderr.contains("to the role root alone") {
        // A release of etcd that no other user can use.
        first.with_code(77);
        return;
    }
    first.with_code(0);
    let others = Site::new(known.replace("/p?", "/q?"));
    others
        .short("a")
        .end()
        .with_code(77)
        .says(&["permission denied"]);
}
