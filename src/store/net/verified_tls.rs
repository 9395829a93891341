//! TLS with a certificate that is always verified, for the host of the URL.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;

use super::address::{Address, BadAddress};
use super::deadline::Activity;
use super::dial::Stream;
use super::fault::Fault;
use super::tls::{ClientCertificate, Insecure, Roots, SslMode, Tls, config};

/// The files of TLS, which a URL names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    pub roots: Roots,
    pub client: Option<ClientCertificate>,
}

impl TlsFiles {
    /// The authorities of the system are trusted.
    pub(in crate::store) const DEFAULT: Self = Self {
        roots: Roots::System,
        client: None,
    };

    /// The names of a URL's parameters.
    pub(in crate::store) const NAMES: [&str; 3] = ["cacert", "cert", "key"];

    /// The files that a URL names. `scheme`: that of TLS, which the others need. `other`: a file that stands in for one
    /// that the URL leaves out.
    pub(in crate::store) fn read(
        address: &Address<'_>,
        scheme: &str,
        other: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, BadAddress> {
        let given = |name: &str| {
            let mut values = address.parameters.iter().filter(|(it, _)| it == name);
            (values.next().map(|(_, value)| value.clone()), values.next())
        };
        let mut tls = Self::DEFAULT;
        for name in Self::NAMES {
            match given(name) {
                (Some(_), _) if address.scheme != scheme => {
                    let text = format!("has {name}, which needs TLS: write {scheme}://");
                    return Err(BadAddress(text));
                }
                (_, Some(_)) => return Err(BadAddress(format!("has {name:?} twice"))),
                (value, None) => {
                    if let Some(path) = value.or_else(|| other(name)) {
                        tls.set(name, &path);
                    }
                }
            }
        }
        match (address.scheme == scheme, tls.are_complete()) {
            (false, _) => Ok(None),
            (true, true) => Ok(Some(tls)),
            (true, false) => Err(BadAddress("has one of cert and key: give both".to_owned())),
        }
    }

    /// Sets the file that a parameter names.
    pub(in crate::store) fn set(&mut self, parameter: &str, path: &str) {
        let client = || ClientCertificate {
            certificate: PathBuf::new(),
            key: PathBuf::new(),
        };
        match parameter {
            "cacert" => self.roots = Roots::File(path.into()),
            "cert" => self.client.get_or_insert_with(client).certificate = path.into(),
            "key" => self.client.get_or_insert_with(client).key = path.into(),
            _ => {}
        }
    }

    /// True if a client certificate has its key, and a key its certificate.
    pub(in crate::store) fn are_complete(&self) -> bool {
        let is_whole = |client: &ClientCertificate| {
            !client.certificate.as_os_str().is_empty() && !client.key.as_os_str().is_empty()
        };
        self.client.as_ref().is_none_or(is_whole)
    }
}

/// Makes a connection secure. `protocol`: what is spoken over it, for a server that wants to know (ALPN).
pub(in crate::store) async fn secure<S>(
    files: &TlsFiles,
    name: &str,
    protocol: Option<&str>,
    stream: Box<dyn Stream>,
) -> Result<Box<dyn Stream>, Fault<S>> {
    let other = |text| Fault::Tls(Insecure::Other, text);
    let verified = Tls {
        roots: Some(files.roots.clone()),
        client: files.client.clone(),
        ..Tls::new(SslMode::VerifyFull)
    };
    let mut config = config(&verified).map_err(other)?;
    config
        .alpn_protocols
        .extend(protocol.map(|it| it.as_bytes().to_vec()));
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
