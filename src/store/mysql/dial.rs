//! One connection to one server: every step has the rest of the time.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;

use super::fault::Fault;
use super::login::log_in;
use super::settings::{Address, Host, Settings};
use super::wire::{Stream, Wire};
use crate::store::deadline::{Activity, Deadline};
use crate::store::unix_socket;
use crate::sys::poll::Sources;
use crate::sys::tcp::{self, Keepalive};

/// How an idle connection is probed: a lost server is noticed within a minute.
const PROBES: Keepalive = Keepalive {
    idle: Some(30),
    interval: Some(10),
    count: Some(3),
};

/// An open connection. Dropping it closes its socket at once.
pub(super) struct Link {
    pub(super) wire: Wire,
    /// The socket, to be polled; closed with the link.
    pub(super) socket: Arc<OwnedFd>,
    /// Whether it uses TLS.
    pub(super) secured: bool,
    /// The session's number, as the login named it.
    pub(super) session: u32,
    /// Whether the session is set up.
    pub(super) is_set_up: bool,
}

impl Link {
    /// Whether the connection is still there and silent: a server that went away in the meantime has
    /// closed it, or has sent why.
    pub(super) fn is_alive(&self) -> bool {
        let socket = Sources::new().and((), self.socket.as_fd());
        let ready = socket.wait(Some(Duration::ZERO));
        ready.is_ok_and(|ready| !ready.has(&()))
    }

    /// The server's address, unless it is a Unix socket.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        let socket = std::net::TcpStream::from(self.socket.try_clone().ok()?);
        socket.peer_addr().ok()
    }
}

/// The addresses of a server; none for a Unix socket.
pub(super) async fn look_up(host: &Host, deadline: Deadline) -> Result<Vec<SocketAddr>, Fault> {
    let Address::Tcp(name) = &host.address else {
        return Ok(Vec::new());
    };
    let looking = tokio::net::lookup_host((name.as_str(), host.port));
    let found = deadline.bound(Activity::LookingUp, looking).await?;
    let found = found.map_err(|error| Fault::Io(Activity::LookingUp, error))?;
    Ok(found.collect())
}

/// Connects to a server, at one of its addresses. `database`: to the settings' database, or to none.
pub(super) async fn dial(
    settings: &Settings,
    host: &Host,
    deadline: Deadline,
    database: bool,
) -> Result<Link, Fault> {
    let connecting = |error| Fault::Io(Activity::Connecting, error);
    if let Address::Unix(path) = &host.address {
        let deadline = deadline.at_most(settings.connect_timeout);
        let stream = deadline.bound(Activity::Connecting, unix_socket::connect(path));
        let stream = stream.await?.map_err(connecting)?;
        let socket = copy_of(&stream)?;
        let stream = Box::new(stream);
        return finish(settings, host, (stream, socket), deadline, database).await;
    }
    let addresses = look_up(host, deadline).await?;
    let mut failed = Fault::Io(
        Activity::LookingUp,
        io::Error::other("the name has no address"),
    );
    for (index, address) in addresses.iter().enumerate() {
        let share = deadline
            .share(addresses.len() - index)
            .at_most(settings.connect_timeout);
        match dial_tcp(settings, host, *address, share, database).await {
            Ok(link) => return Ok(link),
            Err(fault) => failed = fault,
        }
    }
    Err(failed)
}

async fn dial_tcp(
    settings: &Settings,
    host: &Host,
    address: SocketAddr,
    deadline: Deadline,
    database: bool,
) -> Result<Link, Fault> {
    let connecting = |error| Fault::Io(Activity::Connecting, error);
    let stream = deadline.bound(Activity::Connecting, TcpStream::connect(address));
    let stream = stream.await?.map_err(connecting)?;
    stream.set_nodelay(true).map_err(connecting)?;
    tcp::keep_alive(&stream, PROBES).map_err(connecting)?;
    let socket = copy_of(&stream)?;
    finish(
        settings,
        host,
        (Box::new(stream), socket),
        deadline,
        database,
    )
    .await
}

fn copy_of(stream: &impl AsFd) -> Result<OwnedFd, Fault> {
    let copy = stream.as_fd().try_clone_to_owned();
    copy.map_err(|error| Fault::Io(Activity::Connecting, error))
}

async fn finish(
    settings: &Settings,
    host: &Host,
    (stream, socket): (Box<dyn Stream>, OwnedFd),
    deadline: Deadline,
    database: bool,
) -> Result<Link, Fault> {
    let logging_in = log_in(settings, host, stream, database);
    let logged_in = deadline.bound(Activity::LoggingIn, logging_in).await??;
    Ok(Link {
        wire: logged_in.wire,
        socket: Arc::new(socket),
        secured: logged_in.secured,
        session: logged_in.session,
        is_set_up: false,
    })
}
