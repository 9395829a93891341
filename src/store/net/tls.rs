//! TLS with rules of verification that differ from rustls's own: a chain without the host's name, or
//! nothing, can be verified, as database clients do.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::version::{TLS12, TLS13};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError,
    RootCertStore, SignatureScheme,
};

use crate::sys::file::read_regular;

/// Where the certificates of trusted authorities are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Roots {
    /// In this file.
    File(PathBuf),
    /// Where the operating system keeps them.
    System,
}

/// The files of the client's own certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// When TLS is used, and what is verified. The later ones demand more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SslMode {
    Disable,
    /// Only if the server refuses anything else.
    Allow,
    /// If the server offers it.
    Prefer,
    Require,
    /// Always, with a certificate of a known authority.
    VerifyCa,
    /// Always, with a certificate of a known authority for this very host.
    VerifyFull,
}

/// How TLS is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    pub mode: SslMode,
    /// The trusted authorities; `None`: no chain is verified.
    pub roots: Option<Roots>,
    /// By what the client proves who it is.
    pub client: Option<ClientCertificate>,
    /// True if the handshake contains the host's name.
    pub sni: bool,
    /// Not TLS 1.2.
    pub only_13: bool,
    /// Not TLS 1.3.
    pub only_12: bool,
}

impl Tls {
    /// TLS in this mode, without any file.
    pub const fn new(mode: SslMode) -> Self {
        Self {
            mode,
            roots: None,
            client: None,
            sni: true,
            only_13: false,
            only_12: false,
        }
    }
}

/// The verification of a server's certificate.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// `None`: no verification, without a trusted authority.
    chain: Option<Arc<WebPkiServerVerifier>>,
    /// Certificates that are trusted as they are.
    pinned: Vec<CertificateDer<'static>>,
    /// True if the certificate must be for this very host.
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

/// Reads the certificates and prepares the handshakes.
///
/// # Errors
/// Which file can't be used, and why.
pub(in crate::store) fn config(tls: &Tls) -> Result<ClientConfig, String> {
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
            let failed = |what: &dyn std::fmt::Display| {
                format!("the private key {} can't be used: {what}", key.display())
            };
            let secret = read_regular(key).map_err(|error| failed(&error))?;
            let secret = PrivateKeyDer::from_pem_slice(&secret).map_err(|error| failed(&error))?;
            builder
                .with_client_auth_cert(own, secret)
                .map_err(|error| {
                    let shown = certificate.display();
                    format!("the client certificate {shown} can't be used: {error}")
                })?
        }
    };
    config.enable_sni = tls.sni;
    Ok(config)
}

/// True if a certificate was refused because it may sign others.
fn is_of_an_authority(why: &OtherError) -> bool {
    why.0.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let failed = |what: &dyn std::fmt::Display| {
        format!(
            "the certificate file {} can't be used: {what}",
            path.display()
        )
    };
    let text = read_regular(path).map_err(|error| failed(&error))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| failed(&error))?;
    if found.is_empty() {
        return Err(failed(&"no certificate is in it"));
    }
    Ok(found)
}

/// True if a failed handshake shows that these two ends do no TLS with each other. Bytes that were cut short or
/// damaged show nothing: the next attempt may succeed.
pub(in crate::store) fn is_certain(error: &io::Error) -> bool {
    use AlertDescription as Alert;
    match error.get_ref().and_then(|cause| cause.downcast_ref()) {
        Some(
            Error::InvalidMessage(_)
            | Error::InappropriateMessage { .. }
            | Error::InappropriateHandshakeMessage { .. }
            | Error::DecryptError
            | Error::PeerSentOversizedRecord
            | Error::AlertReceived(
                Alert::CloseNotify
                | Alert::UnexpectedMessage
                | Alert::BadRecordMac
                | Alert::RecordOverflow
                | Alert::DecodeError
                | Alert::DecryptError
                | Alert::InternalError
                | Alert::UserCanceled,
            ),
        )
        | None => false,
        Some(_) => true,
    }
}

/// Why there is no TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Insecure {
    /// The server does none.
    NotOffered,
    /// The certificate has other names.
    Name,
    /// It has expired.
    Expired,
    /// It is not signed by a trusted authority.
    Untrusted,
    /// Another cause, perhaps a local file.
    Other,
}

/// What to do where each store has its own words.
pub(in crate::store) struct Remedies {
    pub(in crate::store) not_offered: &'static str,
    pub(in crate::store) untrusted: &'static str,
    pub(in crate::store) other: &'static str,
}

impl Insecure {
    /// The cause of a failed handshake.
    pub(in crate::store) fn of(error: &io::Error) -> Self {
        match error.get_ref().and_then(|cause| cause.downcast_ref()) {
            Some(Error::InvalidCertificate(why)) => of_certificate(why),
            _ => Self::Other,
        }
    }

    /// What to do.
    pub(in crate::store) const fn remedy(self, of: &Remedies) -> &'static str {
        match self {
            Self::NotOffered => of.not_offered,
            Self::Name => {
                "connect by a name that the certificate has, or have one made for this name"
            }
            Self::Expired => "renew the server's certificate, or correct this host's clock",
            Self::Untrusted => of.untrusted,
            Self::Other => of.other,
        }
    }
}

/// The kind of a certificate's fault.
const fn of_certificate(error: &CertificateError) -> Insecure {
    use CertificateError as Bad;
    match error {
        Bad::NotValidForName | Bad::NotValidForNameContext { .. } => Insecure::Name,
        Bad::Expired | Bad::ExpiredContext { .. } => Insecure::Expired,
        Bad::UnknownIssuer | Bad::BadSignature => Insecure::Untrusted,
        _ => Insecure::Other,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_handshake_that_is_cut_short_shows_nothing() {
        for (error, certain) in [
            (Error::AlertReceived(AlertDescription::DecodeError), false),
            (
                Error::AlertReceived(AlertDescription::HandshakeFailure),
                true,
            ),
            (
                Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType),
                false,
            ),
            (Error::InvalidCertificate(CertificateError::Expired), true),
        ] {
            let error = io::Error::new(io::ErrorKind::InvalidData, error);
            assert_eq!(is_certain(&error), certain, "{error}");
        }
        assert!(!is_certain(&io::ErrorKind::UnexpectedEof.into()));
    }

    #[test]
    fn a_bad_certificate_is_recognized_by_its_type() {
        use CertificateError as Bad;
        for (error, why) in [
            (Bad::NotValidForName, Insecure::Name),
            (Bad::Expired, Insecure::Expired),
            (Bad::UnknownIssuer, Insecure::Untrusted),
            (Bad::BadSignature, Insecure::Untrusted),
            (Bad::Revoked, Insecure::Other),
        ] {
            assert_eq!(of_certificate(&error), why, "{error:?}");
        }
    }
}
