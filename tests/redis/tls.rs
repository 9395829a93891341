//! TLS: the certificate is verified, for this very host.

use std::net::TcpListener;

use crate::certificates::certificates;
use crate::server::Server;
use crate::site::Site;
use crate::{hand_over, settled};

#[test]
fn a_server_is_trusted_by_its_certificate_alone_and_asks_for_the_clients() {
    let place = Site::new("");
    let folder = place.file("certificates");
    certificates(&folder);
    let file = |name: &str| folder.join(name).display().to_string();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let server = Server::start(&[
        &format!("tls-port {port}"),
        &format!("tls-cert-file {}", file("server.crt")),
        &format!("tls-key-file {}", file("server.key")),
        &format!("tls-ca-cert-file {}", file("ca.crt")),
        "tls-auth-clients no",
    ]);
    let known = format!("rediss://localhost:{port}?cacert={}", file("ca.crt"));
    let site = settled(&server, &known);
    // With a subscription.
    hand_over(&server, &site);
    for (url, says) in [
        (format!("rediss://localhost:{port}"), "UnknownIssuer"),
        (
            format!("rediss://localhost:{port}?cacert={}", file("other.crt")),
            "UnknownIssuer",
        ),
        (
            known.replace("localhost", "127.0.0.1"),
            "not valid for name",
        ),
        (known.replace("ca.crt", "nowhere.crt"), "nowhere.crt"),
        (
            known
                .replace("rediss:", "redis:")
                .replace("?cacert", "?prefix=x&cacert"),
            "needs TLS",
        ),
    ] {
        let refused = Site::new(url).short("a").end().with_code(78);
        refused.says(&[says]);
    }
    let unknown = Site::new(format!("rediss://localhost:{port}"));
    let doctor = unknown.verb(&["doctor"]).end().with_code(78);
    assert!(doctor.stdout.contains("as cacert"), "{doctor:?}");
    let elsewhere = Site::new(known.replace("localhost", "127.0.0.1"));
    let doctor = elsewhere.verb(&["doctor"]).end().with_code(78);
    assert!(doctor.stdout.contains("by a name"), "{doctor:?}");
    server.cli(&["CONFIG", "SET", "tls-auth-clients", "yes"]);
    let refused = site.short("a").end();
    assert_ne!(refused.code, Some(0), "{refused:?}");
    let own = format!("&cert={}&key={}", file("client.crt"), file("client.key"));
    Site::new(format!("{}{own}", site.url))
        .short("a")
        .end()
        .with_code(0);
}
