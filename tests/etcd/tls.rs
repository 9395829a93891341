//! TLS: the certificate is verified, for this very host, and the client's own names the user.

use crate::server::Cluster;
use crate::site::Site;
use nix::sys::signal::Signal;

use crate::certificates::certificates;

#[test]
fn a_server_is_trusted_by_its_certificate_and_a_user_is_known_by_the_clients() {
    let place = Site::new("");
    let folder = place.store.file("certificates");
    certificates(&folder);
    let cluster = Cluster::start_secured(&folder);
    let file = |name: &str| folder.join(name).display().to_string();
    let at = format!("etcds://localhost:{}/p", cluster.port(0));
    let own = format!("cert={}&key={}", file("client.crt"), file("client.key"));
    let known = format!("{at}?cacert={}&{own}", file("ca.crt"));
    let site = Site::new(known.clone());
    site.verb(&["init"]).end().with_code(0);
    site.short("a").end().with_code(0);
    // With a watch.
    let holder = site.run("a").start();
    site.store.until_begun("a");
    let waiter = site.run("b").with(&["--wait"]).job(&["true"]).start();
    waiter.until_says("waiting");
    holder.signal(Signal::SIGTERM);
    waiter.end().with_code(0);
    for (url, says) in [
        (format!("{at}?{own}"), "UnknownIssuer"),
        (known.replace("ca.crt", "other.crt"), "UnknownIssuer"),
        (
            known.replace("localhost", "127.0.0.1"),
            "not valid for name",
        ),
        (known.replace("client.key", "nowhere.key"), "nowhere.key"),
    ] {
        Site::new(url).short("a").end().with_code(78).says(&[says]);
    }
    let doctor = site.verb(&["doctor"]).end().with_code(0).stdout;
    assert!(
        doctor.contains("encrypted, and the certificate is good"),
        "{doctor}"
    );
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
    site.short("a").end().with_code(0);
    let others = Site::new(known.replace("/p?", "/q?"));
    others
        .short("a")
        .end()
        .with_code(77)
        .says(&["permission denied"]);
}
