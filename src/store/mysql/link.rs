//! A connection to one server: its questions are statements, sent in one packet with the set-up of the
//! session if that is missing.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use super::cells::text_at;
use super::conninfo::Settings;
use super::fault::{Fault, Said, code};
use super::login::log_in;
use super::statements::{SET_UP_ANSWERS, WHICH_SERVER, set_up};
use super::wire::{Answer, Wire};
use crate::store::net::deadline::{Activity, Deadline};
use crate::store::net::dial::{Target, connect};
use crate::store::net::host::{Host, Settings as _};
use crate::store::net::lookout::Identify;
use crate::store::net::session::{self, Failed, bound};
use crate::sys::poll::Sources;

/// With less time than this a refused request is not sent again.
pub(super) const LEAST: Duration = Duration::from_millis(100);

/// A store's session with the servers.
pub(super) type Session = session::Session<Link>;

/// An open connection.
pub(in crate::store) struct Link {
    pub(super) wire: Wire,
    /// The socket, to be polled; closed with the link.
    pub(super) socket: Arc<OwnedFd>,
    /// True if it uses TLS.
    pub(super) secured: bool,
    /// The session's number, as the login named it.
    pub(super) session: u32,
    is_set_up: bool,
    /// How long a statement may take in the server.
    timeout: Duration,
}

impl Link {
    /// True if nothing can be read: the answer that is awaited is not there.
    pub(super) fn is_silent(&self) -> bool {
        use std::os::fd::AsFd as _;
        let socket = Sources::new().and((), self.socket.as_fd());
        let ready = socket.wait(Some(Duration::ZERO));
        ready.is_ok_and(|ready| !ready.has(&()))
    }

    async fn ask_once(&mut self, deadline: Deadline, statements: &str) -> Result<Answer, Fault> {
        let packet = match self.is_set_up {
            true => statements.to_owned(),
            false => format!("{};\n{statements}", set_up(self.timeout).trim_end()),
        };
        let mut answers = Vec::new();
        let asking = self.wire.ask(&packet, &mut answers);
        let asked = deadline.bound(Activity::Asking, asking).await;
        self.is_set_up |= answers.len() >= SET_UP_ANSWERS;
        asked??;
        if answers.iter().any(is_read_only) {
            return Err(Fault::Said(Said::ReadOnly));
        }
        // Statements without columns have answers without rows.
        let with_columns = answers.into_iter().rfind(|answer| !answer.names.is_empty());
        Ok(with_columns.unwrap_or_default())
    }
}

impl session::Link for Link {
    type Settings = Settings;
    type Said = Said;
    /// The last answer with columns.
    type Answer = Answer;

    async fn open(
        settings: &Settings,
        host: &Host,
        target: &Target,
        deadline: Deadline,
        _may_defer: bool,
    ) -> Result<Self, Fault> {
        let dialled = connect(settings.servers(), target, deadline).await?;
        let logging_in = log_in(settings, host, dialled.stream);
        let logged_in = bound(deadline, Activity::LoggingIn, logging_in).await?;
        Ok(Self {
            wire: logged_in.wire,
            socket: dialled.socket,
            secured: logged_in.secured,
            session: logged_in.session,
            is_set_up: false,
            timeout: settings.timeout,
        })
    }

    async fn is_alive(&mut self) -> bool {
        self.is_silent()
    }

    async fn quit(&mut self) {
        self.wire.quit().await;
    }
}

impl session::Ask<str> for Link {
    /// Sends statements, and again while locks refuse them and there is time: so the requests of a killed
    /// client are soon gone, however long its calls may take.
    async fn ask(&mut self, deadline: Deadline, statements: &str) -> Result<Answer, Fault> {
        loop {
            match self.ask_once(deadline, statements).await {
                Err(fault) if is_lock_refused(&fault) && deadline.left() > LEAST => {}
                answer => return answer,
            }
        }
    }
}

fn is_lock_refused(fault: &Fault) -> bool {
    fault.said().is_some_and(Said::is_lock_refused)
}

/// True if an answer says that the server accepts no writes: its column of this name.
fn is_read_only(answer: &Answer) -> bool {
    let column = answer.names.iter().position(|name| name == "read_only");
    let row = answer.rows.first();
    column
        .and_then(|at| row?.get(at)?.as_deref())
        .is_some_and(|cell| cell == b"1")
}

impl Session {
    /// Sends statements without a database.
    pub(super) fn ask_without_database(
        &mut self,
        limit: Duration,
        statements: &str,
    ) -> Result<Answer, Failed> {
        self.close();
        self.settings_mut().takes_database = false;
        let answer = self.ask(limit, statements);
        self.close();
        self.settings_mut().takes_database = true;
        answer
    }

    /// Sends a statement, whose answer is not waited for, over another connection to the server in use: over
    /// this one, if there is one.
    pub(super) fn ask_aside(
        &mut self,
        limit: Duration,
        link: Option<Link>,
        statement: &str,
    ) -> Option<Link> {
        let asked = self.run(limit, async |session, deadline| {
            let mut link = match link {
                Some(link) => link,
                None => session.another(deadline).await?,
            };
            let sent = link.wire.send(statement);
            bound(deadline, Activity::Asking, sent).await?;
            Ok(link)
        });
        asked.ok()
    }

    /// Reads the answer on another connection, which is there. `None`: the connection is over.
    pub(super) fn receive_aside(&mut self, limit: Duration, link: &mut Link) -> Option<Answer> {
        let received = self.run(limit, async |_, deadline| {
            let mut answers = Vec::new();
            let receiving = link.wire.receive(&mut answers);
            bound(deadline, Activity::Asking, receiving).await?;
            Ok(answers.pop())
        });
        received.ok().flatten()
    }

    /// Ends another connection.
    pub(super) fn end_aside(&mut self, limit: Duration, mut link: Link) {
        // What can't be sent at once is the server's to find out.
        let _ = self.run(limit, async |_, deadline| {
            let quitting = deadline.bound(Activity::Asking, link.wire.quit());
            Ok(quitting.await?)
        });
    }
}

/// The number of the server's error.
pub(super) fn code_of(failed: &Failed) -> Option<u16> {
    match failed.cause::<Said>()? {
        Said::Server { code, .. } => Some(*code),
        _ => None,
    }
}

/// True if the tables, or some of them, or their database do not exist: nothing has happened.
pub(super) fn has_no_tables(failed: &Failed) -> bool {
    let codes = [code::NO_TABLE, code::NO_PROCEDURE, code::UNKNOWN_DATABASE];
    code_of(failed).is_some_and(|code| codes.contains(&code))
}

impl Identify for Settings {
    fn writable(self, limit: Duration) -> Option<String> {
        // The set-up of the session fails where no writes are accepted.
        match Session::new(self).ask(limit, WHICH_SERVER) {
            Ok(answer) => Some(text_at(answer.rows.first()?, 0).ok()??.to_owned()),
            Err(failed) => failed.is_elsewhere.then(String::new),
        }
    }
}

/// When a waiter looks again that has found the holder's lock free; each time after twice the pause.
pub(super) const SOON: Duration = Duration::from_millis(20);

/// A connection whose answer comes when a holder has given its lock up, or after a while.
pub(super) struct Listener {
    pub(super) link: Link,
    /// True if it awaits an answer.
    pub(super) is_armed: bool,
}

impl Listener {
    /// The socket, which can be read once the answer is there.
    pub(super) fn socket(&self) -> Option<Arc<OwnedFd>> {
        self.is_armed.then(|| Arc::clone(&self.link.socket))
    }
}
