//! TLS with libpq's rules of verification, for the driver.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::CertificateError;
use tokio_postgres::tls::TlsConnect;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::conninfo::settings::{SslMode, Tls};
use crate::store::net::tls::{self, Demands};

/// Reads the certificates and prepares a connector.
///
/// # Errors
/// Which file can't be used, and why.
pub(super) fn connector(tls: &Tls) -> Result<MakeRustlsConnect, String> {
    let config = tls::config(Demands {
        roots: tls.roots.as_ref(),
        name: tls.mode == SslMode::VerifyFull,
        client: tls.client.as_ref(),
        sni: tls.sni,
        only_13: tls.only_13,
        only_12: tls.only_12,
    })?;
    Ok(MakeRustlsConnect::new(config))
}

/// A failed handshake. The driver passes it on as the cause of its own error.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) struct HandshakeError(io::Error);

impl HandshakeError {
    /// The fault of the server's certificate, if that is the cause.
    pub(super) fn certificate(&self) -> Option<&CertificateError> {
        tls::bad_certificate(&self.0)
    }

    /// Whether another attempt would fail too.
    pub(super) fn is_certain(&self) -> bool {
        tls::is_certain(&self.0)
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
