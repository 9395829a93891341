//! One connection to one server: every step has the rest of the time.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::BytesMut;
use redis::Value;
use redis::aio::AsyncStream as Wire;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;

use super::fault::Fault;
use super::reply::Reply;
use super::settings::{Host, Settings};
use super::tls;
use crate::store::net::deadline::{Activity, Deadline};
use crate::store::net::dial::to_socket;

/// An answer of a look fits: it takes one read.
const CHUNK: usize = 8 * 1024;

pub(super) type Socket = Pin<Box<dyn Wire + Send + Sync>>;

/// An open connection. Dropping it closes its socket at once.
pub(super) struct Link {
    wire: Socket,
    reply: Reply,
    inbox: BytesMut,
    /// The socket, to be polled; closed with the link.
    pub(super) socket: Arc<OwnedFd>,
    pub(super) secured: bool,
}

impl Link {
    fn new(wire: Socket, socket: OwnedFd, secured: bool) -> Self {
        Self {
            wire,
            reply: Reply::default(),
            inbox: BytesMut::new(),
            socket: Arc::new(socket),
            secured,
        }
    }

    pub(super) async fn send(&mut self, bytes: &[u8], doing: Activity) -> Result<(), Fault> {
        let Err(error) = self.write(bytes).await else {
            return Ok(());
        };
        // A server with too many clients says so, and closes the connection.
        match self.receive(doing).await {
            Err(said) if said.is_full() => Err(said),
            _ => Err(Fault::Io(doing, error)),
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.wire.write_all(bytes).await?;
        self.wire.flush().await
    }

    /// The next answer; an error of the server is a fault.
    pub(super) async fn receive(&mut self, doing: Activity) -> Result<Value, Fault> {
        loop {
            let end = self.reply.end(&self.inbox, doing);
            if let Some(end) = end.map_err(Fault::Nonsense)? {
                let reply = redis::parse_redis_value(&self.inbox.split_to(end));
                return match reply.map_err(|error| Fault::Nonsense(error.to_string()))? {
                    Value::ServerError(error) => Err(Fault::said(doing, &error)),
                    value => Ok(value),
                };
            }
            self.inbox.reserve(CHUNK);
            let read = self.wire.read_buf(&mut self.inbox).await;
            if read.map_err(|error| Fault::Io(doing, error))? == 0 {
                let error = io::Error::new(
                    io::ErrorKind::ConnectionReset,
                    "the server closed the connection",
                );
                return Err(Fault::Io(doing, error));
            }
        }
    }

    /// Whether the connection is still there: a server that went away in the meantime has closed
    /// it, and then nothing is sent over it. Nothing is expected on it.
    pub(super) async fn is_alive(&mut self) -> bool {
        for _ in 0..2 {
            let is_silent = poll_fn(|cx| {
                let mut byte = [0_u8; 1];
                let mut buffer = ReadBuf::new(&mut byte);
                Poll::Ready(self.wire.as_mut().poll_read(cx, &mut buffer).is_pending())
            });
            if !is_silent.await || !self.inbox.is_empty() {
                return false;
            }
            // In between, the event loop looks at the socket.
            tokio::task::yield_now().await;
        }
        true
    }

    /// Reads and drops whatever has come. `false`: the connection is over.
    pub(super) async fn drain(&mut self) -> bool {
        let mut bytes = [0_u8; 512];
        let mut was_pending = false;
        loop {
            let read = poll_fn(|cx| {
                let mut buffer = ReadBuf::new(&mut bytes);
                let read = self.wire.as_mut().poll_read(cx, &mut buffer);
                Poll::Ready(read.map_ok(|()| buffer.filled().len()))
            });
            match read.await {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(_) => return false,
                Poll::Pending if was_pending => return true,
                Poll::Pending => {
                    was_pending = true;
                    tokio::task::yield_now().await;
                }
            }
        }
    }
}

/// The addresses of a server; none for a Unix socket.
pub(super) async fn look_up(host: &Host, deadline: Deadline) -> Result<Vec<SocketAddr>, Fault> {
    let Host::Tcp { name, port } = host else {
        return Ok(Vec::new());
    };
    let looking = tokio::net::lookup_host((name.as_str(), *port));
    let found = deadline.bound(Activity::LookingUp, looking).await?;
    let found = found.map_err(|error| Fault::Io(Activity::LookingUp, error))?;
    Ok(found.collect())
}

/// Connects to a server, at one of its addresses.
pub(super) async fn dial(
    settings: &Settings,
    host: &Host,
    deadline: Deadline,
) -> Result<Link, Fault> {
    let name = match host {
        Host::Unix(path) => {
            let stream = deadline
                .bound(Activity::Connecting, to_socket(&path.to_string_lossy()))
                .await?
                .map_err(|error| Fault::Io(Activity::Connecting, error))?;
            let socket = copy_of(&stream)?;
            return Ok(Link::new(Box::pin(stream), socket, false));
        }
        Host::Tcp { name, .. } => name,
    };
    let addresses = look_up(host, deadline).await?;
    let mut failed = Fault::Io(
        Activity::LookingUp,
        io::Error::other("the name has no address"),
    );
    for (index, address) in addresses.iter().enumerate() {
        let share = deadline.share(addresses.len() - index);
        match connect(settings, name, *address, share).await {
            Ok(link) => return Ok(link),
            Err(fault) => failed = fault,
        }
    }
    Err(failed)
}

async fn connect(
    settings: &Settings,
    name: &str,
    address: SocketAddr,
    deadline: Deadline,
) -> Result<Link, Fault> {
    let connecting = |error| Fault::Io(Activity::Connecting, error);
    let stream = deadline
        .bound(Activity::Connecting, TcpStream::connect(address))
        .await?
        .map_err(connecting)?;
    stream.set_nodelay(true).map_err(connecting)?;
    let socket = copy_of(&stream)?;
    let Some(files) = &settings.tls else {
        return Ok(Link::new(Box::pin(stream), socket, false));
    };
    let secured = tls::secure(files, name, stream);
    let secured = deadline.bound(Activity::Securing, secured).await??;
    Ok(Link::new(Box::pin(secured), socket, true))
}

fn copy_of(stream: &impl AsFd) -> Result<OwnedFd, Fault> {
    let copy = stream.as_fd().try_clone_to_owned();
    copy.map_err(|error| Fault::Io(Activity::Connecting, error))
}
