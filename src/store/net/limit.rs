//! How much a server may send. A server, or a process in its place, may send without an end, before any login too.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much a server may send before its client is logged in: far more than certificates and a few questions.
pub(in crate::store) const LONGEST_LOGIN: usize = 256 * 1024;

/// How much memory the answer to a call may take: that of a hundred thousand tokens, or a million keys.
pub(in crate::store) const LONGEST_ANSWER: usize = 256 * 1024 * 1024;

/// How many bytes of memory a server may still fill. Clones share it.
#[derive(Debug, Clone)]
pub(in crate::store) struct Allowance(Arc<AtomicUsize>);

impl Allowance {
    pub(in crate::store) fn of(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    pub(in crate::store) fn set(&self, bytes: usize) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    /// Counts memory that was filled.
    ///
    /// # Errors
    /// If that is more than is left: then nothing is.
    pub(in crate::store) fn spend(&self, bytes: usize) -> io::Result<()> {
        let left = self.0.load(Ordering::Relaxed).checked_sub(bytes);
        self.set(left.unwrap_or(0));
        left.map(drop).ok_or_else(too_much)
    }

    fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

fn too_much() -> io::Error {
    let what = "the server sends more than an answer can have";
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// A connection's bytes, as far as the allowance goes.
#[derive(Debug)]
pub(in crate::store) struct Limited<S> {
    stream: S,
    allowance: Allowance,
}

impl<S> Limited<S> {
    pub(in crate::store) const fn new(stream: S, allowance: Allowance) -> Self {
        Self { stream, allowance }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Limited<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.allowance.is_spent() {
            return Poll::Ready(Err(too_much()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        // What is read already is passed on, at most one buffer more.
        let _ = self.allowance.spend(buffer.filled().len() - before);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Limited<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;
    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn a_connection_is_read_as_far_as_its_allowance_goes() {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let allowance = Allowance::of(6);
            // The first four bytes come in two parts.
            let sent = (&b"ab"[..]).chain(&b"cdefghijkl"[..]);
            let mut stream = Limited::new(sent, allowance.clone());
            let mut four = [0; 4];
            stream.read_exact(&mut four).await.unwrap();
            assert_eq!(four, *b"abcd");
            // Two bytes are left, and one buffer more is read.
            stream.read_exact(&mut four).await.unwrap();
            assert_eq!(four, *b"efgh");
            let error = stream.read_exact(&mut four).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            allowance.set(1);
            stream.read_exact(&mut four).await.unwrap();
            assert_eq!(four, *b"ijkl");
        });
    }
}
