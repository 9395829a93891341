//! One connection to one server: every step has the rest of the time.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls};

use super::conninfo::settings::{Address, ChannelBinding, Host, Keepalives, Settings, SslMode};
use super::fault::{Fault, of_login};
use super::tls;
use crate::store::deadline::{Activity, Deadline};
use crate::store::net::limit::{Allowance, LONGEST_LOGIN, Limited};
use crate::store::tls::Insecure;
use crate::store::unix_socket;
use crate::sys::tcp::{self, Keepalive};

pub(super) trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

pub(super) type Socket = Box<dyn Wire>;

/// An open connection. Dropping it closes its socket at once.
pub(super) struct Link {
    pub(super) client: Client,
    /// Moves bytes; must be polled while an answer is awaited.
    pub(super) wire: Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send>>,
    /// The socket, to be polled; closed with the link.
    pub(super) socket: Arc<OwnedFd>,
    /// Whether a notification came since the last reset.
    pub(super) notified: Arc<AtomicBool>,
    /// Whether the connection has subscribed to notifications.
    pub(super) listens: bool,
    /// Whether it uses TLS.
    pub(super) secured: bool,
    /// How much more the server may send.
    pub(super) allowance: Allowance,
}

/// The two addresses of a TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) own: SocketAddr,
    pub(super) peer: SocketAddr,
}

/// Moves a connection's bytes, and records notifications.
struct Mover<T> {
    connection: Connection<Socket, T>,
    notified: Arc<AtomicBool>,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Future for Mover<T> {
    type Output = Result<(), tokio_postgres::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        while let Some(message) = ready!(self.connection.poll_message(cx)?) {
            if matches!(message, AsyncMessage::Notification(_)) {
                self.notified.store(true, Ordering::Relaxed);
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Link {
    fn new<T>(
        (client, connection): (Client, Connection<Socket, T>),
        (socket, allowance): (OwnedFd, Allowance),
        secured: bool,
    ) -> Self
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let notified = Arc::new(AtomicBool::new(false));
        let mover = Mover {
            connection,
            notified: Arc::clone(&notified),
        };
        Self {
            client,
            wire: Box::pin(mover),
            socket: Arc::new(socket),
            notified,
            listens: false,
            secured,
            allowance,
        }
    }

    /// The two addresses, unless it uses a Unix socket.
    pub(super) fn ends(&self) -> Option<Ends> {
        let socket = std::net::TcpStream::from(self.socket.try_clone().ok()?);
        Some(Ends {
            own: socket.local_addr().ok()?,
            peer: socket.peer_addr().ok()?,
        })
    }
}

/// The addresses of a server; none for a Unix socket.
pub(super) async fn look_up(host: &Host, deadline: Deadline) -> Result<Vec<SocketAddr>, Fault> {
    let Address::Tcp { to, .. } = &host.address else {
        return Ok(Vec::new());
    };
    let looking = tokio::net::lookup_host((to.as_str(), host.port));
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
    if let Address::Unix(directory) = &host.address {
        let path = socket_path(directory, host.port);
        let deadline = deadline.at_most(settings.connect_timeout);
        let stream = deadline
            .bound(Activity::Connecting, unix_socket::connect(&path))
            .await?
            .map_err(|error| Fault::Io(Activity::Connecting, error))?;
        let fd = copy_of(&stream)?;
        return log_in(settings, host, (stream, fd), Wrap::Plain, deadline).await;
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
        match dial_tcp(settings, host, *address, share).await {
            Ok(link) => return Ok(link),
            Err(fault) => failed = fault,
        }
    }
    Err(failed)
}

/// `@` stands for the zero byte at the start of abstract names.
fn socket_path(directory: &str, port: u16) -> String {
    let path = format!("{directory}/.s.PGSQL.{port}");
    match path.strip_prefix('@') {
        Some(name) => format!("\0{name}"),
        None => path,
    }
}

/// Whether a connection uses TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrap {
    Plain,
    /// If the server offers it.
    IfOffered,
    Always,
}

async fn dial_tcp(
    settings: &Settings,
    host: &Host,
    address: SocketAddr,
    deadline: Deadline,
) -> Result<Link, Fault> {
    let (first, second) = match settings.tls.mode {
        SslMode::Disable => (Wrap::Plain, None),
        SslMode::Allow => (Wrap::Plain, Some(Wrap::Always)),
        SslMode::Prefer => (Wrap::IfOffered, Some(Wrap::Plain)),
        SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => (Wrap::Always, None),
    };
    let fault = match connect_tcp(settings, host, address, first, deadline).await {
        Ok(link) => return Ok(link),
        Err(fault) => fault,
    };
    match second {
        Some(second) if fault.may_depend_on_tls() => {
            let again = connect_tcp(settings, host, address, second, deadline).await;
            // The user should see the error of the first attempt.
            again.map_err(|_| fault)
        }
        _ => Err(fault),
    }
}

async fn connect_tcp(
    settings: &Settings,
    host: &Host,
    address: SocketAddr,
    wrap: Wrap,
    deadline: Deadline,
) -> Result<Link, Fault> {
    let stream = deadline
        .bound(Activity::Connecting, TcpStream::connect(address))
        .await?
        .map_err(|error| Fault::Io(Activity::Connecting, error))?;
    prepare(&stream, &settings.keepalives)
        .map_err(|error| Fault::Io(Activity::Connecting, error))?;
    let fd = copy_of(&stream)?;
    log_in(settings, host, (stream, fd), wrap, deadline).await
}

fn copy_of(stream: &impl AsFd) -> Result<OwnedFd, Fault> {
    let copy = stream.as_fd().try_clone_to_owned();
    copy.map_err(|error| Fault::Io(Activity::Connecting, error))
}

fn prepare(stream: &TcpStream, keepalives: &Keepalives) -> io::Result<()> {
    stream.set_nodelay(true)?;
    if keepalives.on {
        let probes = Keepalive {
            idle: keepalives.idle,
            interval: keepalives.interval,
            count: keepalives.count,
        };
        tcp::keep_alive(stream, probes)?;
    }
    if let Some(limit) = keepalives.user_timeout {
        tcp::set_user_timeout(stream, limit)?;
    }
    Ok(())
}

async fn log_in(
    settings: &Settings,
    host: &Host,
    (stream, fd): (impl Wire + 'static, OwnedFd),
    wrap: Wrap,
    deadline: Deadline,
) -> Result<Link, Fault> {
    let allowance = Allowance::of(LONGEST_LOGIN);
    let socket: Socket = Box::new(Limited::new(stream, allowance.clone()));
    let ends = (fd, allowance);
    let config = login(settings, host, wrap);
    if wrap == Wrap::Plain {
        let done = deadline.bound(Activity::LoggingIn, config.connect_raw(socket, NoTls));
        let made = done.await?.map_err(|error| of_login(error, false, false))?;
        return Ok(Link::new(made, ends, false));
    }
    let other = |text| Fault::Tls(Insecure::Other, text);
    let mut maker = tls::connector(&settings.tls).map_err(other)?;
    let name = tls_name(settings, host)?;
    let Ok(connect) = MakeTlsConnect::<Socket>::make_tls_connect(&mut maker, &name);
    let agreed = Arc::new(AtomicBool::new(false));
    let connect = tls::Handshake::new(connect, Arc::clone(&agreed));
    let done = deadline.bound(Activity::LoggingIn, config.connect_raw(socket, connect));
    let done = done.await?;
    let agreed = agreed.load(Ordering::Relaxed);
    let made = done.map_err(|error| of_login(error, wrap == Wrap::Always, agreed))?;
    Ok(Link::new(made, ends, agreed))
}

/// The settings of a login, as the driver takes them.
fn login(settings: &Settings, host: &Host, wrap: Wrap) -> Config {
    let mut config = Config::new();
    config
        .user(&settings.user)
        .dbname(&settings.dbname)
        .application_name(&settings.application_name)
        .channel_binding(match settings.channel_binding {
            ChannelBinding::Disable => tokio_postgres::config::ChannelBinding::Disable,
            ChannelBinding::Prefer => tokio_postgres::config::ChannelBinding::Prefer,
            ChannelBinding::Require => tokio_postgres::config::ChannelBinding::Require,
        })
        .ssl_mode(match wrap {
            Wrap::Plain => tokio_postgres::config::SslMode::Disable,
            Wrap::IfOffered => tokio_postgres::config::SslMode::Prefer,
            Wrap::Always => tokio_postgres::config::SslMode::Require,
        });
    if let Some(options) = &settings.options {
        config.options(options);
    }
    if let Some(password) = &host.password {
        config.password(&password.0);
    }
    config
}

/// The host name for the handshake.
fn tls_name(settings: &Settings, host: &Host) -> Result<String, Fault> {
    match &host.address {
        Address::Tcp {
            name: Some(name), ..
        } => Ok(name.clone()),
        Address::Tcp { .. } if settings.tls.mode == SslMode::VerifyFull => Err(Fault::Settings(
            "sslmode verify-full needs host beside hostaddr, to compare the certificate with"
                .into(),
        )),
        Address::Tcp { to, .. } | Address::Unix(to) => Ok(to.clone()),
    }
}
