//! TLS with libpq's rules of verification, which differ from rustls's own.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::version::{TLS12, TLS13};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore,
    SignatureScheme,
};
use tokio_postgres::tls::TlsConnect;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::conninfo::settings::{ClientCertificate, Roots, SslMode, Tls};

/// The verification of a server's certificate.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// `None`: no verification, without a trusted authority.
    chain: Option<Arc<WebPkiServerVerifier>>,
    /// Certificates that are trusted as they are.
    pinned: Vec<CertificateDer<'static>>,
    /// Whether the certificate must be for this very host.
    name: bool,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        server: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        match chain.verify_server_cert(certificate, between, server, ocsp, now) {
            // The name is checked last: the chain is good.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.name => {}
            // The server's own certificate is among the trusted ones and made as an authority's, as
            // most self-signed ones are: libpq accepts it. Its expiry was checked before.
            Err(Error::InvalidCertificate(CertificateError::Other(why)))
                if is_of_an_authority(&why)
                    && self.pinned.iter().any(|pinned| pinned == certificate) => {}
            other => return other,
        }
        if self.name {
            let parsed = ParsedCertificate::try_from(certificate)?;
            rustls::client::verify_server_name(&parsed, server)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Reads the certificates and prepares a connector.
///
/// # Errors
/// Which file can't be used, and why.
pub(super) fn connector(tls: &Tls) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(ring::default_provider());
    let pinned = match &tls.roots {
        None => Vec::new(),
        Some(Roots::File(path)) => certificates(path)?,
        Some(Roots::System) => rustls_native_certs::load_native_certs().certs,
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(pinned.iter().cloned());
    let chain = match &tls.roots {
        None => None,
        Some(_) => Some(
            WebPkiServerVerifier::builder_with_provider(roots.into(), Arc::clone(&provider))
                .build()
                .map_err(|error| format!("no root certificate can be used: {error}"))?,
        ),
    };
    let versions = match tls {
        Tls { only_12: true, .. } => vec![&TLS12],
        Tls { only_13: true, .. } => vec![&TLS13],
        _ => vec![&TLS13, &TLS12],
    };
    let verifier = Verifier {
        provider: Arc::clone(&provider),
        chain,
        pinned,
        name: tls.mode == SslMode::VerifyFull,
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match &tls.client {
        None => builder.with_no_client_auth(),
        Some(ClientCertificate { certificate, key }) => {
            let own = certificates(certificate)?;
            let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| {
                format!("the private key {} can't be used: {error}", key.display())
            })?;
            builder
                .with_client_auth_cert(own, secret)
                .map_err(|error| {
                    let shown = certificate.display();
                    format!("the client certificate {shown} can't be used: {error}")
                })?
        }
    };
    config.enable_sni = tls.sni;
    Ok(MakeRustlsConnect::new(config))
}

/// Whether a certificate was refused because it may sign others.
fn is_of_an_authority(why: &OtherError) -> bool {
    why.0.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity)
}

/// A failed handshake. The driver passes it on as the cause of its own error.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) struct HandshakeError(io::Error);

impl HandshakeError {
    /// The fault of the server's certificate, if that is the cause.
    pub(super) fn certificate(&self) -> Option<&CertificateError> {
        match self.0.get_ref()?.downcast_ref() {
            Some(Error::InvalidCertificate(why)) => Some(why),
            _ => None,
        }
    }
}

/// Makes a TLS connection at the driver's request, once the server has agreed.
pub(super) struct Handshake<T> {
    connect: T,
    agreed: Arc<AtomicBool>,
}

impl<T> Handshake<T> {
    /// `agreed` becomes true if the server does TLS.
    pub(super) const fn new(connect: T, agreed: Arc<AtomicBool>) -> Self {
        Self { connect, agreed }
    }
}

impl<S, T> TlsConnect<S> for Handshake<T>
where
    T: TlsConnect<S, Error = io::Error>,
    T::Future: Send + 'static,
{
    type Stream = T::Stream;
    type Error = HandshakeError;
    type Future = Pin<Box<dyn Future<Output = Result<T::Stream, HandshakeError>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        self.agreed.store(true, Ordering::Relaxed);
        let made = self.connect.connect(stream);
        Box::pin(async move { made.await.map_err(HandshakeError) })
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let failed = |what: &dyn std::fmt::Display| {
        format!(
            "the certificate file {} can't be used: {what}",
            path.display()
        )
    };
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path)
        .map_err(|error| failed(&error))?
        .collect();
    let found = found.map_err(|error| failed(&error))?;
    if found.is_empty() {
        return Err(failed(&"no certificate is in it"));
    }
    Ok(found)
}
