//! TLS: the server's certificate is always verified, for the host of the URL.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;

use super::fault::Fault;
use super::settings::Tls;
use crate::store::net::deadline::Activity;
use crate::store::net::dial::Stream;
use crate::store::net::tls::{self, Insecure, SslMode};

/// Makes a connection secure.
pub(super) async fn secure(
    files: &Tls,
    name: &str,
    stream: Box<dyn Stream>,
) -> Result<Box<dyn Stream>, Fault> {
    let other = |text| Fault::Tls(Insecure::Other, text);
    let verified = tls::Tls {
        roots: Some(files.roots.clone()),
        client: files.client.clone(),
        ..tls::Tls::new(SslMode::VerifyFull)
    };
    let config = tls::config(&verified).map_err(other)?;
    let name = ServerName::try_from(name.to_owned())
        .map_err(|_| other(format!("{name:?} is no name that a certificate can have")))?;
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
    match connecting.await {
        Ok(stream) => Ok(Box::new(stream)),
        Err(error) => Err(match Fault::of_handshake(Activity::Securing, error) {
            Fault::Tls(why, what) => Fault::Tls(why, format!("no TLS with it: {what}")),
            fault => fault,
        }),
    }
}
