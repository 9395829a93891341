//! TLS: the server's certificate is always verified, for the host of the URL.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::fault::Fault;
use super::settings::Tls;
use crate::store::net::deadline::Activity;
use crate::store::net::tls::{Demands, Insecure, bad_certificate, config, is_certain, of_certificate};

/// Makes a connection secure.
pub(super) async fn secure(
    files: &Tls,
    name: &str,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, Fault> {
    let other = |text| Fault::Tls(Insecure::Other, text);
    let config = config(Demands {
        roots: Some(&files.roots),
        name: true,
        client: files.client.as_ref(),
        sni: true,
        only_13: false,
        only_12: false,
    })
    .map_err(other)?;
    let name = ServerName::try_from(name.to_owned())
        .map_err(|_| other(format!("{name:?} is no name that a certificate can have")))?;
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
    connecting.await.map_err(|error| match is_certain(&error) {
        true => {
            let why = bad_certificate(&error).map_or(Insecure::Other, of_certificate);
            Fault::Tls(why, format!("no TLS with it: {error}"))
        }
        false => Fault::Io(Activity::Securing, error),
    })
}
