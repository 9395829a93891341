//! Connecting to a server's Unix socket.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::sleep;

/// After how long a server with a full queue is tried again.
const PAUSE: Duration = Duration::from_millis(5);

/// Connects to the socket at `path`. While more clients connect than the server accepts, this waits, as the
/// kernel does with TCP: the caller limits the time.
///
/// # Errors
/// Those of connect(2) but EAGAIN.
pub(in crate::store) async fn connect(path: impl AsRef<Path>) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path.as_ref()).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(PAUSE).await,
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use tokio::runtime::Builder;
    use tokio::time::timeout;

    use super::*;

    fn run<T>(test: impl Future<Output = T>) -> T {
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(test)
    }

    #[test]
    fn a_server_with_a_full_queue_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        run(async {
            let mut queue = Vec::new();
            let full = loop {
                match UnixStream::connect(&path).await {
                    Ok(stream) => queue.push(stream),
                    Err(error) => break error,
                }
            };
            assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
            let mut another = Box::pin(connect(&path));
            let early = timeout(PAUSE * 3, another.as_mut()).await;
            assert!(early.is_err(), "{early:?}");
            listener.accept().unwrap();
            another.await.unwrap();
        });
    }

    #[test]
    fn a_socket_without_a_server_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let error = run(connect(folder.path().join("socket"))).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
