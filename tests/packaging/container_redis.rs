//! The container of `examples/kubernetes/` with a store of Redis.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use crate::container::{NameServer, Site, certificates, with, with_job};
use crate::kubernetes::{address, nightly};
use crate::redis_server::Server;

/// With the Secret of store-redis.yaml, but for the port.
#[test]
fn needs_root_the_manifests_container_uses_redis() {
    let site = Site::new();
    certificates(site.store().path(), "db.example.com");
    let names = NameServer::start("db.example.com");
    fs::write(site.store().file("resolv.conf"), names.resolv_conf()).unwrap();
    // The server's user reads them.
    let own = tempfile::tempdir().unwrap();
    fs::set_permissions(own.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let file = |name: &str| {
        let file = own.path().join(name);
        fs::copy(site.store().file(name), &file).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        file.display().to_string()
    };
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
    let rights = ["~{tokenrun}:*", "&{tokenrun}:*", "+@all"];
    server.cli(&[&["ACL", "SETUSER", "etl", "on", ">secret"], &rights[..]].concat());
    // The server has been up for a moment only. An operator says that nothing was lost.
    let info = server.cli(&["INFO", "server"]);
    let run = info.lines().find_map(|line| line.strip_prefix("run_id:"));
    let settle = ["settle", "--yes", &run.unwrap()[..16], "-s", &server.url()];
    site.store().bare(&settle).end().with_code(0);

    let url = address("store-redis.yaml");
    assert!(url.ends_with("@db.example.com"), "{url}");
    let url = format!("{url}:{port}");
    let version = ["/usr/local/bin/tokenrun", "--version"];
    let short = with_job(nightly("east"), &version);
    let ended = site.run("east", &url, &short).end().with_code(0);
    assert!(ended.stdout.starts_with("tokenrun "), "{ended:?}");
    let west = site.run("west", &url, &nightly("west")).end().with_code(0);
    west.says(&["done"]);
    let token = server.cli(&["KEYS", "{tokenrun}:token:*"]);
    let bound = server.cli(&["HGET", token.trim(), "client_bound"]);
    assert_eq!(bound.trim(), "east");
    // An authority that the image does not know.
    fs::write(site.store().file("ca.crt"), "").unwrap();
    let hurried = with(nightly("east"), &["--wait=0", "--once=other"]);
    site.run("east", &url, &hurried).end().with_code(78);
}
