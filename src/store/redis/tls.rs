//! TLS: the server's certificate is always verified, for this very host.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::fault::{Activity, Fault};
use super::settings::Tls;

/// Makes a connection secure.
pub(super) async fn secure(
    files: &Tls,
    name: &str,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, Fault> {
    let config = config(files).map_err(Fault::Tls)?;
    let name = ServerName::try_from(name.to_owned())
        .map_err(|_| Fault::Tls(format!("{name:?} is no name that a certificate can have")))?;
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
    connecting.await.map_err(|error| {
        match error
            .get_ref()
            .and_then(|it| it.downcast_ref::<rustls::Error>())
        {
            Some(why) => Fault::Tls(format!("no TLS with it: {why}")),
            None => Fault::Io(Activity::Securing, error),
        }
    })
}

fn config(files: &Tls) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    let trusted = match &files.authorities {
        Some(path) => certificates(path)?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    roots.add_parsable_certificates(trusted);
    if roots.is_empty() {
        return Err("no root certificate can be used: give ?cacert=FILE".into());
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    let Some((certificate, key)) = &files.own else {
        return Ok(builder.with_no_client_auth());
    };
    let own = certificates(certificate)?;
    let secret = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| format!("the private key {} can't be used: {error}", key.display()))?;
    builder.with_client_auth_cert(own, secret).map_err(|error| {
        format!(
            "the certificate {} can't be used: {error}",
            certificate.display()
        )
    })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let failed = |what: &dyn std::fmt::Display| {
        let path = path.display();
        format!("the certificate file {path} can't be used: {what}")
    };
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path)
        .map_err(|error| failed(&error))?
        .collect();
    match found {
        Ok(found) if found.is_empty() => Err(failed(&"no certificate is in it")),
        Ok(found) => Ok(found),
        Err(error) => Err(failed(&error)),
    }
}
