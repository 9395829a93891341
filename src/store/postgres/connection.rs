//! A store's only connection, to any of its servers. A call that overruns its time is dropped and
//! its socket closed; the next one connects again.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::Row;

use tokio_postgres::error::{DbError, SqlState};

use super::call::{Question, ask};
use super::conninfo::settings::Settings;
use super::dial::{self, Ends, Link, dial};
use super::fault::Fault;
use super::statements::Statements;
use crate::store::deadline::Deadline;
use crate::store::sql::cell::Cell;
use crate::store::{StoreError, Trouble};

/// A connection, with everything needed to make one.
pub(super) struct Connection {
    settings: Settings,
    store_name: String,
    /// The search path of each transaction.
    search_path: String,
    /// Made by the first call, on the thread that makes the calls.
    runtime: Option<Runtime>,
    link: Option<Link>,
    /// The host that the connection is to, or that is tried first.
    host: Arc<AtomicUsize>,
}

/// A call without an answer.
#[derive(Debug)]
pub(super) struct Failed {
    /// The error to report.
    pub(super) error: StoreError,
    /// The tables do not exist: nothing has happened.
    pub(super) no_schema: bool,
    /// The cause in words, without store and server.
    pub(super) words: String,
}

impl Failed {
    /// A call that failed with this error, and without one of the server's.
    pub(super) fn by(error: StoreError) -> Self {
        Self {
            words: error.what.clone(),
            error,
            no_schema: false,
        }
    }

    /// Whether the server has answered with this SQLSTATE.
    pub(super) fn is(&self, code: &SqlState) -> bool {
        let source = self.error.source.as_deref();
        let said = source.and_then(|it| it.downcast_ref::<DbError>());
        said.is_some_and(|said| said.code() == code)
    }

    /// The same error, where it is certain that nothing has happened.
    pub(super) fn without_effect(self) -> Self {
        Self {
            error: self.error.without_effect(),
            ..self
        }
    }
}

impl Connection {
    pub(super) fn new(settings: Settings, store_name: String) -> Self {
        Self {
            search_path: Statements::new(&settings.schema).search_path(),
            settings,
            store_name,
            runtime: None,
            link: None,
            host: Arc::default(),
        }
    }

    pub(super) fn store_name(&self) -> &str {
        &self.store_name
    }

    /// The servers, and the index of the one in use.
    pub(super) fn servers(&self) -> (&Settings, Arc<AtomicUsize>) {
        (&self.settings, Arc::clone(&self.host))
    }

    fn host(&self) -> usize {
        self.host.load(Ordering::Relaxed)
    }

    fn set_host(&self, index: usize) {
        self.host.store(index, Ordering::Relaxed);
    }

    /// Sends one statement, whose answer must come within `limit`.
    pub(super) fn ask(
        &mut self,
        limit: Duration,
        statement: &str,
        values: &[Cell],
    ) -> Result<Vec<Row>, Failed> {
        self.run(limit, &Question::Typed(statement, values))
    }

    /// Subscribes to a channel's notifications, unless this connection has.
    pub(super) fn listen(&mut self, limit: Duration, channel: &str) {
        if self.link.as_ref().is_none_or(|link| link.listens) {
            return;
        }
        // If that is refused, regular looks are what is left.
        let asked = self.batch(limit, &format!("LISTEN \"{channel}\""));
        if let (Ok(()), Some(link)) = (asked, &mut self.link) {
            link.listens = true;
        }
    }

    /// Whether this connection has subscribed.
    pub(super) fn listens(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.listens)
    }

    /// Whether a notification came during the last statement.
    pub(super) fn notified(&self) -> bool {
        let notified = |link: &Link| link.notified.load(Ordering::Relaxed);
        self.link.as_ref().is_some_and(notified)
    }

    /// The socket, readable when the server sends something.
    pub(super) fn socket(&self) -> Option<Arc<OwnedFd>> {
        self.link.as_ref().map(|link| Arc::clone(&link.socket))
    }

    /// Runs several statements in one transaction.
    pub(super) fn batch(&mut self, limit: Duration, statements: &str) -> Result<(), Failed> {
        self.run(limit, &Question::Batch(statements)).map(|_| ())
    }

    /// The addresses of the first server.
    pub(super) fn look_up(&mut self, limit: Duration) -> Result<Vec<SocketAddr>, Fault> {
        let runtime = self.runtime().map_err(Fault::Settings)?;
        let looking = async {
            let host = self.settings.hosts.first().ok_or_else(no_server)?;
            dial::look_up(host, Deadline::after(limit)).await
        };
        let found = runtime.block_on(looking);
        self.runtime = Some(runtime);
        found
    }

    /// Connects to the first server, in any state.
    pub(super) fn connect(&mut self, limit: Duration) -> Result<(), Fault> {
        let runtime = self.runtime().map_err(Fault::Settings)?;
        let connecting = async {
            let host = self.settings.hosts.first().ok_or_else(no_server)?;
            dial(&self.settings, host, Deadline::after(limit)).await
        };
        let made = runtime.block_on(connecting);
        self.runtime = Some(runtime);
        self.link = Some(made?);
        Ok(())
    }

    /// The addresses of both ends of the connection; none over a Unix socket.
    pub(super) fn ends(&self) -> Option<Ends> {
        self.link.as_ref().and_then(Link::ends)
    }

    /// Whether the connection goes by TLS.
    pub(super) fn is_secured(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.secured)
    }

    fn runtime(&mut self) -> Result<Runtime, String> {
        match self.runtime.take() {
            Some(runtime) => Ok(runtime),
            None => Builder::new_current_thread()
                .enable_io()
                .enable_time()
                .build()
                .map_err(|error| format!("the operating system gave no event loop: {error}")),
        }
    }

    /// Whether there is a connection: a call that overran its time has none.
    pub(super) const fn is_connected(&self) -> bool {
        self.link.is_some()
    }

    fn run(&mut self, limit: Duration, question: &Question<'_>) -> Result<Vec<Row>, Failed> {
        let runtime = self
            .runtime()
            .map_err(|text| Failed::by(StoreError::refused(text)))?;
        let answer = runtime.block_on(self.try_hosts(Deadline::after(limit), question));
        self.runtime = Some(runtime);
        answer
    }

    /// Sends over the existing connection; otherwise over a new one to the first server that can be
    /// reached and accepts writes. Each has an equal share of the time that is left.
    async fn try_hosts(
        &mut self,
        deadline: Deadline,
        question: &Question<'_>,
    ) -> Result<Vec<Row>, Failed> {
        let mut faults = Vec::new();
        if let Some(mut link) = self.link.take()
            && is_alive(&mut link).await
        {
            match ask(&mut link, deadline, &self.search_path, question).await {
                Ok(rows) => {
                    self.link = Some(link);
                    return Ok(rows);
                }
                Err(fault) if fault.is_read_only() => faults.push((self.host(), fault)),
                Err(fault) => return Err(self.answer_for(link, fault)),
            }
        }
        let count = self.settings.hosts.len();
        let first = self.host();
        for step in 0..count {
            let index = (first + step) % count;
            let Some(host) = self.settings.hosts.get(index) else {
                continue;
            };
            let share = deadline.share(count - step);
            let mut link = match dial(&self.settings, host, share).await {
                Ok(link) => link,
                Err(fault) => {
                    faults.push((index, fault));
                    continue;
                }
            };
            self.set_host(index);
            match ask(&mut link, deadline, &self.search_path, question).await {
                Ok(rows) => {
                    self.link = Some(link);
                    return Ok(rows);
                }
                Err(fault) if fault.is_read_only() => faults.push((index, fault)),
                Err(fault) => return Err(self.answer_for(link, fault)),
            }
        }
        Err(self.all_failed(&faults))
    }

    /// Handles a server's refusal or silence. A refusal leaves the connection usable; otherwise its
    /// state is unknown, and the next call tries another server.
    fn answer_for(&mut self, link: Link, fault: Fault) -> Failed {
        let failed = self.failed(self.host(), &fault);
        if fault.is_refusal() {
            self.link = Some(link);
        } else {
            self.set_host((self.host() + 1) % self.settings.hosts.len().max(1));
        }
        failed
    }

    fn failed(&self, host: usize, fault: &Fault) -> Failed {
        let host = self.settings.hosts.get(host);
        let host = host.map_or_else(String::new, ToString::to_string);
        Failed {
            error: fault.store_error(&self.store_name, &host),
            no_schema: fault.is_missing_schema(),
            words: fault.words(),
        }
    }

    /// No server got the request, or none accepts writes: nothing has happened.
    fn all_failed(&self, faults: &[(usize, Fault)]) -> Failed {
        let mut faults: Vec<&(usize, Fault)> = faults.iter().collect();
        // A server may give one error over the old connection and again over the new one.
        faults.sort_by_key(|(host, _)| *host);
        faults.dedup_by_key(|(host, _)| *host);
        let each = faults.iter().map(|(host, fault)| self.failed(*host, fault));
        let mut each: Vec<Failed> = each.map(Failed::without_effect).collect();
        let troubles: Vec<Trouble> = each.iter().map(|failed| failed.error.trouble).collect();
        let trouble = match troubles.as_slice() {
            [] => return Failed::by(StoreError::misconfigured("the store has no server")),
            // The server that was to get the statement has not refused the statement itself.
            [_] => {
                let failed = each.remove(0);
                let error = StoreError {
                    source: None,
                    ..failed.error
                };
                return Failed {
                    no_schema: false,
                    error,
                    ..failed
                };
            }
            [first, rest @ ..] if rest.iter().all(|it| it == first) => *first,
            _ => Trouble::Refused,
        };
        let each: Vec<String> = faults
            .iter()
            .filter_map(|(host, fault)| {
                let host = self.settings.hosts.get(*host)?;
                Some(format!("{host}: {}", fault.words()))
            })
            .collect();
        let what = format!(
            "the store {} can't be used: {}",
            self.store_name,
            each.join("; ")
        );
        Failed::by(StoreError {
            trouble,
            what,
            remedy: None,
            source: None,
        })
    }
}

fn no_server() -> Fault {
    Fault::Settings("the store has no server".into())
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A name look-up may hang on a thread of its own, and is not waited for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Whether a connection is still there: a server that went away in the meantime has closed it, and
/// then nothing is sent over it.
async fn is_alive(link: &mut Link) -> bool {
    for _ in 0..2 {
        let over = poll_fn(|cx| Poll::Ready(link.wire.as_mut().poll(cx).is_ready())).await;
        if over || link.client.is_closed() {
            return false;
        }
        // In between, the event loop reads the socket.
        tokio::task::yield_now().await;
    }
    true
}
