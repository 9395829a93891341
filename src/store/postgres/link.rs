//! A connection to one server, by the driver, which gets the socket from here.

use std::future::{Future, poll_fn};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::config::SslMode as Wrap;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::conninfo::Settings;
use super::fault::{Fault, Said, of_login};
use super::handshake::Handshake;
use super::statements::Statements;
use crate::store::net::deadline::{Activity, Deadline};
use crate::store::net::dial::{self, Ends, Stream, Target, connect};
use crate::store::net::host::{Host, Place};
use crate::store::net::limit::{Allowance, LONGEST_LOGIN, Limited};
use crate::store::net::session::{self, Failed};
use crate::store::net::tls::{self, Insecure, SslMode};

/// A store's session with the servers.
pub(super) type Session = session::Session<Link>;

type Socket = Box<dyn Stream>;

/// An open connection.
pub(in crate::store) struct Link {
    pub(super) client: Client,
    /// Moves bytes; must be polled while an answer is awaited.
    pub(super) wire: Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send>>,
    /// The socket, to be polled; closed with the link.
    socket: Arc<OwnedFd>,
    /// True if a notification came since the last reset.
    pub(super) notified: Arc<AtomicBool>,
    /// True if the connection has subscribed to notifications.
    pub(super) listens: bool,
    /// True if it uses TLS.
    pub(super) secured: bool,
    /// How much more the server may send.
    pub(super) allowance: Allowance,
    /// The search path of each transaction.
    pub(super) search_path: String,
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
        (socket, allowance): (Arc<OwnedFd>, Allowance),
        secured: bool,
        settings: &Settings,
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
            socket,
            notified,
            listens: false,
            secured,
            allowance,
            search_path: Statements::new(&settings.schema).search_path(),
        }
    }

    /// The two addresses, unless it uses a Unix socket.
    pub(super) fn ends(&self) -> Option<Ends> {
        dial::ends(&self.socket)
    }
}

impl session::Link for Link {
    type Settings = Settings;
    type Said = Said;
    type Answer = Vec<Row>;

    async fn open(
        settings: &Settings,
        host: &Host,
        target: &Target,
        deadline: Deadline,
        _may_defer: bool,
    ) -> Result<Self, Fault> {
        let (first, second) = match settings.tls.mode {
            _ if host.is_unix() => (Wrap::Disable, None),
            SslMode::Disable => (Wrap::Disable, None),
            SslMode::Allow => (Wrap::Disable, Some(Wrap::Require)),
            SslMode::Prefer => (Wrap::Prefer, Some(Wrap::Disable)),
            SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => (Wrap::Require, None),
        };
        let fault = match log_in(settings, host, target, first, deadline).await {
            Ok(link) => return Ok(link),
            Err(fault) => fault,
        };
        match second {
            Some(second) if may_depend_on_tls(&fault) => {
                let again = log_in(settings, host, target, second, deadline).await;
                // The user should see the error of the first attempt.
                again.map_err(|_| fault)
            }
            _ => Err(fault),
        }
    }

    async fn is_alive(&mut self) -> bool {
        for _ in 0..2 {
            let over = poll_fn(|cx| Poll::Ready(self.wire.as_mut().poll(cx).is_ready())).await;
            if over || self.client.is_closed() {
                return false;
            }
            // In between, the event loop reads the socket.
            tokio::task::yield_now().await;
        }
        true
    }
}

/// True if connecting without TLS, or with it, may help: what libpq's prefer and allow do.
const fn may_depend_on_tls(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::Said(Said::Driver(_) | Said::Unable(_)) | Fault::Tls(..)
    )
}

/// Logs in; `wrap` is the use of TLS by this attempt.
async fn log_in(
    settings: &Settings,
    host: &Host,
    target: &Target,
    wrap: Wrap,
    deadline: Deadline,
) -> Result<Link, Fault> {
    let dialled = connect(&settings.servers, target, deadline).await?;
    let allowance = Allowance::of(LONGEST_LOGIN);
    let stream: Socket = Box::new(Limited::new(dialled.stream, allowance.clone()));
    let ends = (dialled.socket, allowance);
    let config = login(settings, host, wrap);
    if wrap == Wrap::Disable {
        let done = deadline.bound(Activity::LoggingIn, config.connect_raw(stream, NoTls));
        let made = done.await?.map_err(|error| of_login(error, false, false))?;
        return Ok(Link::new(made, ends, false, settings));
    }
    let other = |text| Fault::Tls(Insecure::Other, text);
    let mut maker = MakeRustlsConnect::new(tls::config(&settings.tls).map_err(other)?);
    let name = tls_name(settings, host)?;
    let Ok(connect) = MakeTlsConnect::<Socket>::make_tls_connect(&mut maker, &name);
    let agreed = Arc::new(AtomicBool::new(false));
    let connect = Handshake::new(connect, Arc::clone(&agreed));
    let done = deadline.bound(Activity::LoggingIn, config.connect_raw(stream, connect));
    let done = done.await?;
    let agreed = agreed.load(Ordering::Relaxed);
    let made = done.map_err(|error| of_login(error, wrap == Wrap::Require, agreed))?;
    Ok(Link::new(made, ends, agreed, settings))
}

/// The settings of a login, as the driver takes them.
fn login(settings: &Settings, host: &Host, wrap: Wrap) -> Config {
    let mut config = Config::new();
    config
        .user(&settings.user)
        .dbname(&settings.dbname)
        .application_name(&settings.application_name)
        .channel_binding(settings.channel_binding)
        .ssl_mode(wrap);
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
    match &host.place {
        Place::Tcp {
            name: Some(name), ..
        } => Ok(name.clone()),
        Place::Tcp { .. } if settings.tls.mode == SslMode::VerifyFull => Err(Fault::Settings(
            "sslmode verify-full needs host beside hostaddr, to compare the certificate with"
                .into(),
        )),
        Place::Tcp { to, .. } | Place::Unix(to) => Ok(to.clone()),
    }
}

impl Session {
    /// True if this connection has subscribed.
    pub(super) fn listens(&self) -> bool {
        self.link().is_some_and(|link| link.listens)
    }

    /// True if a notification came during the last statement.
    pub(super) fn notified(&self) -> bool {
        let notified = |link: &Link| link.notified.load(Ordering::Relaxed);
        self.link().is_some_and(notified)
    }

    /// The socket, readable when the server sends something.
    pub(super) fn socket(&self) -> Option<Arc<OwnedFd>> {
        self.link().map(|link| Arc::clone(&link.socket))
    }

    /// The addresses of both ends of the connection; none over a Unix socket.
    pub(super) fn ends(&self) -> Option<Ends> {
        self.link().and_then(Link::ends)
    }
}

/// True if the server has answered the statement with this SQLSTATE.
pub(super) fn is(failed: &Failed, code: &SqlState) -> bool {
    let said = failed.cause::<tokio_postgres::error::DbError>();
    failed.was_asked && said.is_some_and(|said| said.code() == code)
}

/// True if the tables, or some of them, do not exist: nothing has happened.
pub(super) fn has_no_tables(failed: &Failed) -> bool {
    [
        &SqlState::UNDEFINED_TABLE,
        &SqlState::INVALID_SCHEMA_NAME,
        &SqlState::UNDEFINED_COLUMN,
    ]
    .iter()
    .any(|code| is(failed, code))
}
