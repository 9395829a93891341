//! TLS: the certificate is verified, for this very host, and the servers verify the client's own.

use crate::certificates::certificates;
use crate::server::Cluster;
use crate::site::Site;
use crate::trusted::is_trusted_by_its_certificate;

#[test]
fn a_server_is_trusted_by_its_certificate() {
    let place = Site::new("");
    let folder = place.store.file("certificates");
    certificates(&folder);
    let cluster = Cluster::start_secured(&folder);
    let at = format!("zks://localhost:{}/p", cluster.secure_port());
    is_trusted_by_its_certificate(&at, &folder);
}
