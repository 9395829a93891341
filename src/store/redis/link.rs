//! A connection to one server: commands and replies. The log-in of a new connection goes along with its first
//! question, if that only reads.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::BytesMut;
use redis::{Cmd, Value};
use tokio::io::{AsyncRead as _, AsyncReadExt as _, AsyncWriteExt as _, ReadBuf};

use super::fault::{Fault, Said};
use super::login::Login;
use super::reply::Reply;
use super::script::{Answer, answered, refused};
use super::settings::Settings;
use crate::store::StoreError;
use crate::store::net::deadline::{Activity, Deadline};
use crate::store::net::dial::{Stream, Target, connect, is_silent};
use crate::store::net::host::{Host, Place};
use crate::store::net::lookout::Identify;
use crate::store::net::session::{self, Failed, bound};
use crate::store::net::verified_tls::secure;

/// An answer of a look fits: it takes one read.
const CHUNK: usize = 8 * 1024;

/// A store's session with the servers.
pub(super) type Session = session::Session<Link>;

/// A script, as it is sent.
pub(super) struct Command {
    pub(super) bytes: Vec<u8>,
    /// True if it changes nothing: then it is sent together with the log-in, which may fail.
    pub(super) only_reads: bool,
}

/// An open connection.
pub(super) struct Link {
    wire: Box<dyn Stream>,
    reply: Reply,
    inbox: BytesMut,
    /// The socket, to be polled; closed with the link.
    pub(super) socket: Arc<OwnedFd>,
    pub(super) secured: bool,
    /// The log-in that is still to be sent.
    login: Option<Login>,
}

impl Link {
    pub(super) async fn send(&mut self, bytes: &[u8], doing: Activity) -> Result<(), Fault> {
        let Err(error) = self.write(bytes).await else {
            return Ok(());
        };
        // A server with too many clients says so, and closes the connection.
        match self.receive(doing).await {
            Err(fault) if fault.said().is_some_and(Said::is_full) => Err(fault),
            _ => Err(Fault::Io(doing, error)),
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.wire.write_all(bytes).await?;
        self.wire.flush().await
    }

    /// The next answer; an error of the server is a fault.
    pub(super) async fn receive(&mut self, doing: Activity) -> Result<Value, Fault> {
        let nonsense = |what: String| Fault::Said(Said::Nonsense(what));
        loop {
            let end = self.reply.end(&self.inbox, doing);
            if let Some(end) = end.map_err(nonsense)? {
                let reply = redis::parse_redis_value(&self.inbox.split_to(end));
                return match reply.map_err(|error| nonsense(error.to_string()))? {
                    Value::ServerError(error) => Err(Fault::Said(Said::answer(doing, &error))),
                    value => Ok(value),
                };
            }
            self.inbox.reserve(CHUNK);
            let read = self.wire.read_buf(&mut self.inbox).await;
            if read.map_err(Fault::io(doing))? == 0 {
                let what = "the server closed the connection";
                let error = io::Error::new(io::ErrorKind::ConnectionReset, what);
                return Err(Fault::Io(doing, error));
            }
        }
    }

    /// Receives all answers to a log-in, and reports the first error.
    async fn receive_login(&mut self, login: &Login) -> Result<(), Fault> {
        let mut failed = None;
        for _ in 0..login.needed() {
            match self.receive(Activity::LoggingIn).await {
                Ok(_) => {}
                Err(fault @ Fault::Said(Said::Answer { .. })) => failed = failed.or(Some(fault)),
                Err(fault) => return Err(failed.unwrap_or(fault)),
            }
        }
        match self.receive(Activity::LoggingIn).await {
            // In place of its first answer, and the server closes the connection.
            Err(fault) if fault.said().is_some_and(Said::is_full) => {
                failed = failed.or(Some(fault))
            }
            Ok(_) | Err(Fault::Said(Said::Answer { .. })) => {}
            Err(fault) => return Err(failed.unwrap_or(fault)),
        }
        failed.map_or(Ok(()), Err)
    }

    /// Reads and drops whatever has come. `false`: the connection is over.
    pub(super) async fn drain(&mut self) -> bool {
        let mut bytes = [0_u8; 512];
        let mut was_pending = false;
        loop {
            let read = poll_fn(|cx| {
                let mut buffer = ReadBuf::new(&mut bytes);
                let read = Pin::new(&mut self.wire).poll_read(cx, &mut buffer);
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

    async fn run(&mut self, command: &Command) -> Result<Value, Fault> {
        let value = match self.login.take() {
            None => {
                self.send(&command.bytes, Activity::Asking).await?;
                self.receive(Activity::Asking).await?
            }
            // All at once: a read in a wrong database, or as a wrong user, is dropped.
            Some(login) => {
                let mut bytes = login.bytes();
                bytes.extend_from_slice(&command.bytes);
                self.send(&bytes, Activity::LoggingIn).await?;
                self.receive_login(&login).await?;
                self.receive(Activity::Asking).await?
            }
        };
        match refused(&value) {
            Some(said) => Err(Fault::Said(said)),
            None => Ok(value),
        }
    }

    /// Sends one command, and returns its answer.
    async fn command(&mut self, command: &Cmd) -> Result<Value, Fault> {
        let bytes = command.get_packed_command();
        self.send(&bytes, Activity::Asking).await?;
        self.receive(Activity::Asking).await
    }
}

impl session::Link for Link {
    type Settings = Settings;
    type Said = Said;
    /// A script's.
    type Answer = Value;

    async fn open(
        settings: &Settings,
        host: &Host,
        target: &Target,
        deadline: Deadline,
        may_defer: bool,
    ) -> Result<Self, Fault> {
        let dialled = connect(&settings.servers, target, deadline).await?;
        let (wire, secured) = match (&settings.tls, &host.place) {
            (Some(files), Place::Tcp { to, .. }) => {
                let secured = secure(files, to, None, dialled.stream);
                (bound(deadline, Activity::Securing, secured).await?, true)
            }
            _ => (dialled.stream, false),
        };
        let login = Login::of(settings, host);
        let mut link = Self {
            wire,
            reply: Reply::default(),
            inbox: BytesMut::new(),
            socket: dialled.socket,
            secured,
            login: None,
        };
        if may_defer {
            link.login = Some(login);
            return Ok(link);
        }
        let logging_in = async {
            link.send(&login.bytes(), Activity::LoggingIn).await?;
            link.receive_login(&login).await
        };
        bound(deadline, Activity::LoggingIn, logging_in).await?;
        Ok(link)
    }

    async fn is_alive(&mut self) -> bool {
        is_silent(&mut self.wire).await && self.inbox.is_empty()
    }
}

impl session::Ask<Command> for Link {
    async fn ask(&mut self, deadline: Deadline, command: &Command) -> Result<Value, Fault> {
        bound(deadline, Activity::Asking, self.run(command)).await
    }

    fn only_reads(command: &Command) -> bool {
        command.only_reads
    }
}

impl Session {
    /// Runs one of the store's scripts, whose answer must come within `limit`.
    pub(super) fn script(
        &mut self,
        limit: Duration,
        command: &Command,
    ) -> Result<Answer, StoreError> {
        let value = self.ask(limit, command).map_err(|failed| failed.error)?;
        let mut answer = answered(&value).ok_or_else(|| self.nonsense().error)?;
        let refuses = answer.evicts.take().map(Said::Evicts);
        answer.found.refuses = refuses.map(|said| self.error(&Fault::Said(said)));
        Ok(answer)
    }

    /// The failure of a script whose answer is none. The connection is closed.
    pub(super) fn nonsense(&mut self) -> Failed {
        self.close();
        let nonsense = Said::Nonsense("the script's answer is another".into());
        self.failed_in_use(&Fault::Said(nonsense))
    }

    /// Sends a command over the connection to the first server, in any state, and returns its answer. After a
    /// fault the next command connects anew.
    pub(super) fn command(&mut self, limit: Duration, command: &Cmd) -> Result<Value, Fault> {
        self.run(limit, async |session, deadline| {
            let mut link = session.first_link(deadline).await?;
            let value = bound(deadline, Activity::Asking, link.command(command)).await?;
            session.keep(link);
            Ok(value)
        })
    }

    /// Subscribes to a channel over a connection of its own, to the server in use.
    pub(super) fn subscribe(&mut self, limit: Duration, channel: &str) -> Result<Link, Fault> {
        self.run(limit, async |session, deadline| {
            session.subscribed(deadline, channel).await
        })
    }

    /// As [`Self::subscribe`], on an event loop that is always the same.
    pub(super) async fn subscribed(
        &self,
        deadline: Deadline,
        channel: &str,
    ) -> Result<Link, Fault> {
        let mut link = self.another(deadline).await?;
        let channel = format!("{}{channel}", self.settings().prefix);
        let mut command = redis::cmd("SUBSCRIBE");
        command.arg(channel);
        bound(deadline, Activity::Asking, link.command(&command)).await?;
        Ok(link)
    }

    /// Drops what a subscription has received. `false`: it is over.
    pub(super) fn drain(&mut self, link: &mut Link) -> bool {
        let drained = self.run(CHUNK_TIME, async |_, _| Ok(link.drain().await));
        drained.unwrap_or(false)
    }
}

/// How long dropping what has come may take; it waits for nothing.
const CHUNK_TIME: Duration = Duration::from_secs(1);

impl Identify for Settings {
    fn writable(self, limit: Duration) -> Option<String> {
        let mut command = redis::cmd("INFO");
        command.arg("server").arg("replication");
        let Value::BulkString(said) = Session::new(self).command(limit, &command).ok()? else {
            return None;
        };
        let said = String::from_utf8_lossy(&said);
        let process = said.lines().find_map(|line| line.strip_prefix("run_id:"));
        Some(match said.contains("role:master") {
            true => process.unwrap_or_default().trim().to_owned(),
            false => String::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Lookout as _;
    use crate::store::net::lookout::OtherServers;
    use crate::store::redis::test_server::Server;

    fn primaries(hosts: &[&Server]) -> Option<Vec<String>> {
        let ports = hosts
            .iter()
            .map(|server| format!("127.0.0.1:{}", server.port()));
        let url = format!("redis://{}", ports.collect::<Vec<_>>().join(","));
        let settings = Settings::read(&url, |_| None).unwrap();
        let limit = Duration::from_secs(3);
        OtherServers::of(&settings, Arc::default(), limit)
            .unwrap()
            .primaries()
    }

    #[test]
    fn another_master_is_found_and_another_name_is_none() {
        let (one, other) = (Server::start(&[]), Server::start(&[]));
        let [name, another] = [&one, &other].map(|it| format!("127.0.0.1:{}", it.port()));
        assert_eq!(primaries(&[&one, &one]), Some(Vec::new()));
        assert_eq!(
            primaries(&[&one, &other]),
            Some(vec![name.clone(), another.clone()])
        );
        assert_eq!(primaries(&[&one, &one, &other]), Some(vec![name, another]));
        other.follow(&one);
        assert_eq!(primaries(&[&one, &other]), Some(Vec::new()));
        other.kill();
        assert_eq!(primaries(&[&one, &other]), None);
    }
}
