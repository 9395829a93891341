//! A store's only connection, to any of its servers. A call that overruns its time is dropped and
//! its socket closed; the next one connects again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::dial::{self, Link, dial};
use super::fault::{Fault, Said, code};
use super::settings::Settings;
use super::statements::{SET_UP_ANSWERS, set_up};
use super::wire::Answer;
use crate::store::deadline::{Activity, Deadline};
use crate::store::{StoreError, Trouble};

/// With less time than this a refused request is not sent again.
const LEAST: Duration = Duration::from_millis(100);

/// How long the last packet of a connection may take.
const AT_ONCE: Duration = Duration::from_millis(10);

/// A connection, with everything needed to make one.
pub(super) struct Connection {
    settings: Settings,
    store_name: String,
    /// How long a call takes at most.
    timeout: Duration,
    /// Made by the first call, on the thread that makes the calls.
    runtime: Option<Runtime>,
    link: Option<Link>,
    /// The host that the connection is to, or that is tried first.
    host: Arc<AtomicUsize>,
    /// Whether to connect to the database; else to none.
    database: bool,
}

/// A call without an answer.
#[derive(Debug)]
pub(super) struct Failed {
    /// The error to report.
    pub(super) error: StoreError,
    /// The tables do not exist: nothing has happened.
    pub(super) no_schema: bool,
    /// The database does not exist: nothing has happened.
    pub(super) no_database: bool,
    /// No server accepts writes: nothing has happened.
    pub(super) is_read_only: bool,
}

impl Failed {
    /// A call that failed with this error, and without one of the server's.
    pub(super) const fn by(error: StoreError) -> Self {
        Self {
            error,
            no_schema: false,
            no_database: false,
            is_read_only: false,
        }
    }

    /// The number of the server's error, if it is one.
    pub(super) fn code(&self) -> Option<u16> {
        let source = self.error.source.as_deref();
        let said = source.and_then(|it| it.downcast_ref::<Said>());
        said.map(|said| said.code)
    }
}

impl Connection {
    pub(super) fn new(settings: Settings, timeout: Duration) -> Self {
        Self {
            store_name: settings.name(),
            settings,
            timeout,
            runtime: None,
            link: None,
            host: Arc::default(),
            database: true,
        }
    }

    pub(super) fn store_name(&self) -> &str {
        &self.store_name
    }

    pub(super) const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The index of the server in use.
    pub(super) fn in_use(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.host)
    }

    fn host(&self) -> usize {
        self.host.load(Ordering::Relaxed)
    }

    fn set_host(&self, index: usize) {
        self.host.store(index, Ordering::Relaxed);
    }

    /// Sends statements, whose answers must come within `limit`. The last answer with columns.
    pub(super) fn ask(&mut self, limit: Duration, statements: &str) -> Result<Answer, Failed> {
        let runtime = self
            .runtime()
            .map_err(|text| Failed::by(StoreError::refused(text)))?;
        let answer = runtime.block_on(self.try_hosts(Deadline::after(limit), statements));
        self.runtime = Some(runtime);
        answer
    }

    /// Sends statements without a database.
    pub(super) fn ask_without_database(
        &mut self,
        limit: Duration,
        statements: &str,
    ) -> Result<Answer, Failed> {
        self.link = None;
        self.database = false;
        let answer = self.ask(limit, statements);
        self.database = true;
        self.link = None;
        answer
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
            dial(&self.settings, host, Deadline::after(limit), true).await
        };
        let made = runtime.block_on(connecting);
        self.runtime = Some(runtime);
        self.link = Some(made?);
        Ok(())
    }

    /// The connection.
    pub(super) const fn link(&self) -> Option<&Link> {
        self.link.as_ref()
    }

    /// Ends the connection; the next call makes another.
    pub(super) fn close(&mut self) {
        if let (Some(link), Some(runtime)) = (self.link.take(), &self.runtime) {
            runtime.block_on(quit(link));
        }
    }

    /// Sends a statement, whose answer is not waited for, over another connection to the server in use: over
    /// this one, if there is one.
    pub(super) fn ask_aside(
        &mut self,
        limit: Duration,
        link: Option<Link>,
        statement: &str,
    ) -> Option<Link> {
        let runtime = self.runtime().ok()?;
        let asking = async {
            let deadline = Deadline::after(limit);
            let host = self.settings.hosts.get(self.host())?;
            let mut link = match link {
                Some(link) => link,
                None => dial(&self.settings, host, deadline, true).await.ok()?,
            };
            let sent = deadline.bound(Activity::Asking, link.wire.send(statement));
            sent.await.ok()?.ok()?;
            Some(link)
        };
        let link = runtime.block_on(asking);
        self.runtime = Some(runtime);
        link
    }

    /// Reads the answer on another connection, which is there. `None`: the connection is over.
    pub(super) fn receive_aside(&self, limit: Duration, link: &mut Link) -> Option<Answer> {
        let mut answers = Vec::new();
        let receiving = link.wire.receive(&mut answers);
        let received = async {
            let deadline = Deadline::after(limit);
            deadline.bound(Activity::Asking, receiving).await
        };
        self.runtime.as_ref()?.block_on(received).ok()?.ok()?;
        answers.pop()
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

    /// Sends over the existing connection; otherwise over a new one to the first server that can be
    /// reached and accepts writes. Each has an equal share of the time that is left.
    async fn try_hosts(&mut self, deadline: Deadline, statements: &str) -> Result<Answer, Failed> {
        let mut faults = Vec::new();
        if let Some(mut link) = self.link.take()
            && link.is_alive()
        {
            match ask(&mut link, deadline, self.timeout, statements).await {
                Ok(answer) => {
                    self.link = Some(link);
                    return Ok(answer);
                }
                Err(fault) if fault.is_read_only() => faults.push((self.host(), fault)),
                Err(fault) => return Err(self.answer_for(link, &fault)),
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
            let mut link = match dial(&self.settings, host, share, self.database).await {
                Ok(link) => link,
                Err(fault) => {
                    faults.push((index, fault));
                    continue;
                }
            };
            self.set_host(index);
            match ask(&mut link, deadline, self.timeout, statements).await {
                Ok(answer) => {
                    self.link = Some(link);
                    return Ok(answer);
                }
                Err(fault) if fault.is_read_only() => faults.push((index, fault)),
                Err(fault) => return Err(self.answer_for(link, &fault)),
            }
        }
        Err(self.all_failed(&faults))
    }

    /// Handles a server's refusal or silence. A refusal leaves the connection usable; otherwise its
    /// state is unknown, and the next call tries another server.
    fn answer_for(&mut self, link: Link, fault: &Fault) -> Failed {
        let failed = self.failed(self.host(), fault);
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
            no_database: fault.code() == Some(code::UNKNOWN_DATABASE),
            is_read_only: fault.is_read_only(),
        }
    }

    /// No server got the request, or none accepts writes: nothing has happened.
    fn all_failed(&self, faults: &[(usize, Fault)]) -> Failed {
        let mut faults: Vec<&(usize, Fault)> = faults.iter().collect();
        // A server may give one error over the old connection and again over the new one.
        faults.sort_by_key(|(host, _)| *host);
        faults.dedup_by_key(|(host, _)| *host);
        let each = faults.iter().map(|(host, fault)| {
            let failed = self.failed(*host, fault);
            Failed {
                error: failed.error.without_effect(),
                ..failed
            }
        });
        let mut each: Vec<Failed> = each.collect();
        let troubles: Vec<Trouble> = each.iter().map(|failed| failed.error.trouble).collect();
        let trouble = match troubles.as_slice() {
            [] => return Failed::by(StoreError::misconfigured("the store has no server")),
            [_] => return each.remove(0),
            [first, rest @ ..] if rest.iter().all(|it| it == first) => *first,
            _ => Trouble::Refused,
        };
        let words = faults.iter().filter_map(|(host, fault)| {
            let host = self.settings.hosts.get(*host)?;
            Some(format!("{host}: {}", fault.words()))
        });
        let words = words.collect::<Vec<_>>().join("; ");
        let what = format!("the store {} can't be used: {words}", self.store_name);
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
        self.close();
        // A name look-up may hang on a thread of its own, and is not waited for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Ends a connection that is silent: then nothing of the server's is under way.
async fn quit(mut link: Link) {
    if link.is_alive() {
        // What can't be sent at once is not waited for.
        let _ = tokio::time::timeout(AT_ONCE, link.wire.quit()).await;
    }
}

/// Sends statements, and again while locks refuse them and there is time: so the requests of a killed
/// client are soon gone, however long its calls may take.
async fn ask(
    link: &mut Link,
    deadline: Deadline,
    timeout: Duration,
    statements: &str,
) -> Result<Answer, Fault> {
    loop {
        match ask_once(link, deadline, timeout, statements).await {
            Err(fault) if fault.is_lock_refused() && deadline.left() > LEAST => {}
            answer => return answer,
        }
    }
}

/// In one packet with the set-up of the session, if that is missing.
async fn ask_once(
    link: &mut Link,
    deadline: Deadline,
    timeout: Duration,
    statements: &str,
) -> Result<Answer, Fault> {
    let was_set_up = link.is_set_up;
    let packet = match was_set_up {
        true => statements.to_owned(),
        false => format!("{};\n{statements}", set_up(timeout).trim_end()),
    };
    let mut answers = Vec::new();
    let asking = link.wire.ask(&packet, &mut answers);
    let asked = deadline.bound(Activity::Asking, asking).await;
    if !was_set_up && answers.len() >= SET_UP_ANSWERS {
        link.is_set_up = true;
    }
    asked??;
    if answers.iter().any(is_read_only) {
        return Err(Fault::ReadOnly);
    }
    // Statements without columns have answers without rows.
    let with_columns = answers.into_iter().rfind(|answer| !answer.names.is_empty());
    Ok(with_columns.unwrap_or_default())
}

/// Whether an answer says that the server accepts no writes: its column of this name.
fn is_read_only(answer: &Answer) -> bool {
    let column = answer.names.iter().position(|name| name == "read_only");
    let row = answer.rows.first();
    column
        .and_then(|at| row?.get(at)?.as_deref())
        .is_some_and(|cell| cell == b"1")
}
