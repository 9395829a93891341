//! TLS as the driver asks for it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_postgres::tls::TlsConnect;

/// A failed handshake. The driver passes it on as the cause of its own error.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) struct HandshakeError(pub(super) io::Error);

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
