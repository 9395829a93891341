//! One connection to one server: its addresses, its socket, and TCP's own detection of a lost peer.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::sleep;

use super::deadline::{Activity, Deadline};
use super::fault::Fault;
use super::host::{Host, Place, Servers};
use crate::sys::socket;

/// After how long a server with a full queue is tried again.
const PAUSE: Duration = Duration::from_millis(5);

/// Bytes to and from a server.
pub(in crate::store) trait Stream:
    AsyncRead + AsyncWrite + Unpin + Send + Sync
{
}
impl<T: AsyncRead + AsyncWrite + Unpin + Send + Sync> Stream for T {}

/// The bytes of a connection, and its socket, to be polled.
pub(in crate::store) struct Dialled {
    pub(in crate::store) stream: Box<dyn Stream>,
    pub(in crate::store) socket: Arc<OwnedFd>,
}

/// The two addresses of a TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct Ends {
    pub(in crate::store) own: SocketAddr,
    pub(in crate::store) peer: SocketAddr,
}

/// The two addresses of a connection; none over a Unix socket.
pub(in crate::store) fn ends(socket: &OwnedFd) -> Option<Ends> {
    let socket = std::net::TcpStream::from(socket.try_clone().ok()?);
    Some(Ends {
        own: socket.local_addr().ok()?,
        peer: socket.peer_addr().ok()?,
    })
}

/// Where one connection goes to.
#[derive(Debug, Clone)]
pub(in crate::store) enum Target {
    Unix(String),
    Tcp(SocketAddr),
}

/// The addresses of a server; none for a Unix socket.
pub(in crate::store) async fn look_up<S>(
    host: &Host,
    deadline: Deadline,
) -> Result<Vec<SocketAddr>, Fault<S>> {
    let Place::Tcp { to, port, .. } = &host.place else {
        return Ok(Vec::new());
    };
    let looking = tokio::net::lookup_host((to.as_str(), *port));
    let found = deadline.bound(Activity::LookingUp, looking).await?;
    Ok(found.map_err(Fault::io(Activity::LookingUp))?.collect())
}

/// All places where a server can be reached. There is at least one.
pub(in crate::store) async fn targets<S>(
    host: &Host,
    deadline: Deadline,
) -> Result<Vec<Target>, Fault<S>> {
    if let Place::Unix(path) = &host.place {
        return Ok(vec![Target::Unix(path.clone())]);
    }
    let addresses = look_up(host, deadline).await?;
    if addresses.is_empty() {
        let error = io::Error::other("the name has no address");
        return Err(Fault::Io(Activity::LookingUp, error));
    }
    Ok(addresses.into_iter().map(Target::Tcp).collect())
}

/// Connects to a server at one of its places.
pub(in crate::store) async fn connect<S>(
    servers: &Servers,
    target: &Target,
    deadline: Deadline,
) -> Result<Dialled, Fault<S>> {
    let connecting = deadline.bound(Activity::Connecting, connected(servers, target));
    connecting.await?.map_err(Fault::io(Activity::Connecting))
}

async fn connected(servers: &Servers, target: &Target) -> io::Result<Dialled> {
    match target {
        Target::Unix(path) => {
            let path = match path.strip_prefix('@') {
                Some(name) => format!("\0{name}"),
                None => path.clone(),
            };
            dialled(to_socket(&path).await?)
        }
        Target::Tcp(address) => {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            if let Some(probes) = servers.keepalive {
                socket::keep_alive(&stream, probes)?;
            }
            if let Some(limit) = servers.user_timeout {
                socket::set_user_timeout(&stream, limit)?;
            }
            dialled(stream)
        }
    }
}

fn dialled(stream: impl Stream + AsFd + 'static) -> io::Result<Dialled> {
    let socket = stream.as_fd().try_clone_to_owned()?;
    Ok(Dialled {
        stream: Box::new(stream),
        socket: Arc::new(socket),
    })
}

/// Connects to a Unix socket. While more clients connect than the server accepts, this waits, as the kernel
/// does with TCP: the caller limits the time.
///
/// # Errors
/// Those of connect(2) but EAGAIN.
pub(in crate::store) async fn to_socket(path: &str) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(PAUSE).await,
            done => return done,
        }
    }
}

/// True if nothing can be read from a stream, and its other end has not closed it: it is open and silent.
/// What TLS sends for itself is no byte of the stream.
pub(in crate::store) async fn is_silent(stream: &mut (impl AsyncRead + Unpin)) -> bool {
    for _ in 0..2 {
        let look = |cx: &mut Context<'_>| {
            let mut byte = [0_u8; 1];
            let mut buffer = ReadBuf::new(&mut byte);
            let read = Pin::new(&mut *stream).poll_read(cx, &mut buffer);
            Poll::Ready(read.is_pending())
        };
        if !std::future::poll_fn(look).await {
            return false;
        }
        // In between, the event loop looks at the socket.
        tokio::task::yield_now().await;
    }
    true
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
            let mut another = Box::pin(to_socket(path.to_str().unwrap()));
            let early = timeout(PAUSE * 3, another.as_mut()).await;
            assert!(early.is_err(), "{early:?}");
            listener.accept().unwrap();
            another.await.unwrap();
        });
    }

    #[test]
    fn a_socket_without_a_server_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let error = run(to_socket(folder.path().join("socket").to_str().unwrap())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
