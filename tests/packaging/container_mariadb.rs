//! The container of `examples/kubernetes/` with a store of MariaDB.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::container::{NameServer, Site, certificates, with, with_job};
use crate::kubernetes::{address, nightly};
use crate::mysql_server::Server;

/// With the Secret of store-mysql.yaml, but for the port.
#[test]
fn needs_root_the_manifests_container_uses_mariadb() {
    let site = Site::new();
    certificates(site.store().path(), "db.example.com");
    let names = NameServer::start("db.example.com");
    fs::write(site.store().file("resolv.conf"), names.resolv_conf()).unwrap();
    // The server's user reads them.
    let own = Server::folder();
    for file in ["server.crt", "server.key"] {
        fs::copy(site.store().file(file), own.join(file)).unwrap();
        let mode = fs::Permissions::from_mode(0o644);
        fs::set_permissions(own.join(file), mode).unwrap();
    }
    let own = own.display();
    let (certificate, key) = (
        format!("ssl_cert = {own}/server.crt"),
        format!("ssl_key = {own}/server.key"),
    );
    let server = Server::start(&[&certificate, &key]);
    server.sql(
        "mysql",
        "CREATE DATABASE tokenrun; CREATE USER etl IDENTIFIED BY 'secret' REQUIRE SSL;
         GRANT ALL ON tokenrun.* TO etl",
    );
    let url = address("store-mysql.yaml");
    let named = "@db.example.com/";
    assert!(url.contains(named), "{url}");
    let url = url.replace(named, &format!("@db.example.com:{}/", server.port()));
    let version = ["/usr/local/bin/tokenrun", "--version"];
    let short = with_job(nightly("east"), &version);
    let ended = site.run("east", &url, &short).end().with_code(0);
    assert!(ended.stdout.starts_with("tokenrun "), "{ended:?}");
    let west = site.run("west", &url, &nightly("west")).end().with_code(0);
    west.says(&["done"]);
    let bound = server.sql("tokenrun", "SELECT client_bound FROM tokenrun_tokens");
    assert_eq!(bound, "east");
    // An authority that the image does not know.
    fs::write(site.store().file("ca.crt"), "").unwrap();
    let hurried = with(nightly("east"), &["--wait=0", "--once=other"]);
    site.run("east", &url, &hurried).end().with_code(78);
}
