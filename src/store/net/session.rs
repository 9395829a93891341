//! A store's session: its one connection, to any of its servers. A call that overruns its time is dropped
//! and its socket closed; the next one connects again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::deadline::{Activity, Deadline};
use super::dial::{self, Target, targets};
use super::fault::{Fault, Said};
use super::host::{Host, Settings};
use crate::store::{StoreError, Trouble};

/// One connection to one server. Dropping it closes its socket at once.
pub(in crate::store) trait Link: Sized {
    type Settings: Settings;
    type Said: Said;
    type Answer;

    /// Connects to a server at one of its places, and logs in. `may_defer`: the log-in may go along with the
    /// first question, which only reads.
    async fn open(
        settings: &Self::Settings,
        host: &Host,
        target: &Target,
        deadline: Deadline,
        may_defer: bool,
    ) -> Result<Self, Fault<Self::Said>>;

    /// True if the connection is open and silent. A server that went away has closed it, or has sent why:
    /// then nothing is sent over it.
    async fn is_alive(&mut self) -> bool;

    /// Says farewell, for a server that notes connections which only close.
    async fn quit(&mut self) {}
}

/// What can be asked over a connection.
pub(in crate::store) trait Ask<Q: ?Sized>: Link {
    /// Asks, within the deadline.
    async fn ask(
        &mut self,
        deadline: Deadline,
        question: &Q,
    ) -> Result<Self::Answer, Fault<Self::Said>>;

    /// True for a question without effect: without an answer another server may be asked.
    fn only_reads(_question: &Q) -> bool {
        false
    }
}

/// How long the last packet of a connection may take.
const FAREWELL: Duration = Duration::from_millis(10);

/// A store's connection, with everything needed to make one.
pub(in crate::store) struct Session<L: Link> {
    settings: L::Settings,
    store_name: String,
    /// Made by the first call, on the thread that makes the calls.
    runtime: Option<Runtime>,
    link: Option<L>,
    /// The host that the connection is to, or that is tried first.
    host: Arc<AtomicUsize>,
}

/// A call without an answer.
#[derive(Debug)]
pub(in crate::store) struct Failed {
    /// The error to report.
    pub(in crate::store) error: StoreError,
    /// The cause in words, without store and server.
    pub(in crate::store) words: String,
    /// No server accepts writes: nothing has happened.
    pub(in crate::store) is_elsewhere: bool,
    /// The request itself was answered with this error, and not the log-in.
    pub(in crate::store) was_asked: bool,
}

impl Failed {
    /// A call that failed with this error of the client's own.
    pub(in crate::store) fn by(error: StoreError) -> Self {
        Self {
            words: error.what.clone(),
            error,
            is_elsewhere: false,
            was_asked: false,
        }
    }

    /// The server's own error, if it is one.
    pub(in crate::store) fn cause<E: std::error::Error + 'static>(&self) -> Option<&E> {
        self.error.source.as_deref()?.downcast_ref()
    }

    /// This error, where it is certain that nothing has happened.
    pub(in crate::store) fn without_effect(self) -> Self {
        Self {
            error: self.error.without_effect(),
            ..self
        }
    }
}

/// The faults of the servers that were tried, each with its index.
type Faults<S> = Vec<(usize, Fault<S>)>;

impl<L: Link> Session<L> {
    pub(in crate::store) fn new(settings: L::Settings) -> Self {
        Self {
            store_name: settings.name(),
            settings,
            runtime: None,
            link: None,
            host: Arc::default(),
        }
    }

    pub(in crate::store) fn store_name(&self) -> &str {
        &self.store_name
    }

    pub(in crate::store) const fn settings(&self) -> &L::Settings {
        &self.settings
    }

    /// To be changed while there is no connection: see [`Self::close`].
    pub(in crate::store) const fn settings_mut(&mut self) -> &mut L::Settings {
        &mut self.settings
    }

    /// The index of the server in use.
    pub(in crate::store) fn in_use(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.host)
    }

    /// The connection: a call that overran its time has none.
    pub(in crate::store) const fn link(&self) -> Option<&L> {
        self.link.as_ref()
    }

    pub(in crate::store) const fn link_mut(&mut self) -> Option<&mut L> {
        self.link.as_mut()
    }

    fn host(&self) -> usize {
        self.host.load(Ordering::Relaxed)
    }

    fn set_host(&self, index: usize) {
        self.host.store(index, Ordering::Relaxed);
    }

    fn first_host(&self) -> Result<&Host, Fault<L::Said>> {
        let hosts = &self.settings.servers().hosts;
        hosts.first().ok_or_else(Fault::no_server)
    }

    /// Carries out `work` on this session's event loop, within `limit`.
    pub(in crate::store) fn run<T>(
        &mut self,
        limit: Duration,
        work: impl AsyncFnOnce(&mut Self, Deadline) -> Result<T, Fault<L::Said>>,
    ) -> Result<T, Fault<L::Said>> {
        let runtime = self.take_runtime().map_err(Fault::Settings)?;
        let done = runtime.block_on(async { work(self, Deadline::after(limit)).await });
        self.runtime = Some(runtime);
        done
    }

    /// Asks the first server that can be reached and accepts writes.
    pub(in crate::store) fn ask<Q: ?Sized>(
        &mut self,
        limit: Duration,
        question: &Q,
    ) -> Result<L::Answer, Failed>
    where
        L: Ask<Q>,
    {
        let runtime = self.take_runtime();
        let runtime = runtime.map_err(|text| Failed::by(StoreError::refused(text)))?;
        let answer = runtime.block_on(self.ask_within(Deadline::after(limit), question));
        self.runtime = Some(runtime);
        answer
    }

    /// The addresses of the first server.
    pub(in crate::store) fn look_up(
        &mut self,
        limit: Duration,
    ) -> Result<Vec<SocketAddr>, Fault<L::Said>> {
        self.run(limit, async |session, deadline| {
            dial::look_up(session.first_host()?, deadline).await
        })
    }

    /// Connects to the first server, in any state.
    pub(in crate::store) fn connect(&mut self, limit: Duration) -> Result<(), Fault<L::Said>> {
        self.run(limit, async |session, deadline| {
            session.link = None;
            session.link = Some(session.first_link(deadline).await?);
            Ok(())
        })
    }

    /// The connection, or one to the first server, in any state; to be given back by [`Self::keep`].
    pub(in crate::store) async fn first_link(
        &mut self,
        deadline: Deadline,
    ) -> Result<L, Fault<L::Said>> {
        match self.link.take() {
            Some(link) => Ok(link),
            None => open(&self.settings, self.first_host()?, deadline, false).await,
        }
    }

    pub(in crate::store) fn keep(&mut self, link: L) {
        self.link = Some(link);
    }

    /// A fault of the server in use, as the store's error.
    pub(in crate::store) fn error(&self, fault: &Fault<L::Said>) -> StoreError {
        self.failed_in_use(fault).error
    }

    /// A fault of the server in use.
    pub(in crate::store) fn failed_in_use(&self, fault: &Fault<L::Said>) -> Failed {
        self.failed(self.host(), fault)
    }

    /// Another connection to the server in use.
    pub(in crate::store) async fn another(&self, deadline: Deadline) -> Result<L, Fault<L::Said>> {
        let hosts = &self.settings.servers().hosts;
        let host = hosts.get(self.host()).ok_or_else(Fault::no_server)?;
        open(&self.settings, host, deadline, false).await
    }

    /// Ends the connection; the next call makes another.
    pub(in crate::store) fn close(&mut self) {
        if let (Some(mut link), Some(runtime)) = (self.link.take(), &self.runtime) {
            runtime.block_on(async {
                if link.is_alive().await {
                    // What can't be sent at once is not waited for.
                    let _ = tokio::time::timeout(FAREWELL, link.quit()).await;
                }
            });
        }
    }

    fn take_runtime(&mut self) -> Result<Runtime, String> {
        match self.runtime.take() {
            Some(runtime) => Ok(runtime),
            None => event_loop(),
        }
    }

    /// As [`Self::ask`], on an event loop that is always the same. Sends over the existing connection; otherwise over a new
    /// one to the first server that can be reached and accepts writes. Each has an equal share of the time that is left.
    pub(in crate::store) async fn ask_within<Q: ?Sized>(
        &mut self,
        deadline: Deadline,
        question: &Q,
    ) -> Result<L::Answer, Failed>
    where
        L: Ask<Q>,
    {
        let only_reads = L::only_reads(question);
        let mut faults = Faults::new();
        if let Some(mut link) = self.link.take()
            && link.is_alive().await
        {
            match link.ask(deadline, question).await {
                Err(fault) if fault.is_elsewhere() => faults.push((self.host(), fault)),
                asked => return self.answer(link, asked),
            }
        }
        let count = self.settings.servers().hosts.len();
        let first = self.host();
        for step in 0..count {
            let index = (first + step) % count;
            let Some(host) = self.settings.servers().hosts.get(index) else {
                continue;
            };
            let share = deadline.share(count - step);
            let mut link: L = match open(&self.settings, host, share, only_reads).await {
                Ok(link) => link,
                Err(fault) => {
                    faults.push((index, fault));
                    continue;
                }
            };
            self.set_host(index);
            let limit = match only_reads {
                true => share,
                false => deadline,
            };
            match link.ask(limit, question).await {
                Err(fault) if fault.is_elsewhere() => faults.push((index, fault)),
                // A read that was not answered has no effect.
                Err(fault) if only_reads && !fault.is_refusal() => {
                    faults.push((index, fault));
                }
                asked => return self.answer(link, asked),
            }
        }
        Err(self.all_failed(faults))
    }

    /// The answer of a server. A refusal leaves the connection usable; after silence its state is unknown,
    /// and the next call tries another server.
    fn answer(
        &mut self,
        link: L,
        asked: Result<L::Answer, Fault<L::Said>>,
    ) -> Result<L::Answer, Failed> {
        let index = self.host();
        match &asked {
            Err(fault) if !fault.is_refusal() => {
                self.set_host((index + 1) % self.settings.servers().hosts.len().max(1));
            }
            _ => self.link = Some(link),
        }
        asked.map_err(|fault| Failed {
            was_asked: true,
            ..self.failed(index, &fault)
        })
    }

    fn failed(&self, host: usize, fault: &Fault<L::Said>) -> Failed {
        let host = self.settings.servers().hosts.get(host);
        let host = host.map_or_else(String::new, ToString::to_string);
        Failed {
            error: fault.store_error(&self.store_name, &host),
            words: fault.words(),
            is_elsewhere: fault.is_elsewhere(),
            was_asked: false,
        }
    }

    /// No server got the request, or none accepts writes: nothing has happened.
    fn all_failed(&self, mut faults: Faults<L::Said>) -> Failed {
        // A server may give one error over the old connection and again over the new one.
        faults.sort_by_key(|(index, _)| *index);
        faults.dedup_by_key(|(index, _)| *index);
        let each = faults
            .iter()
            .map(|(index, fault)| self.failed(*index, fault));
        let mut each: Vec<Failed> = each.map(Failed::without_effect).collect();
        let trouble = match each.as_slice() {
            [] => return Failed::by(StoreError::misconfigured("the store has no server")),
            [_] => return each.remove(0),
            [first, rest @ ..] => {
                let trouble = first.error.trouble;
                let is_same = rest.iter().all(|it| it.error.trouble == trouble);
                if is_same { trouble } else { Trouble::Refused }
            }
        };
        let words = faults.iter().filter_map(|(index, fault)| {
            let host = self.settings.servers().hosts.get(*index)?;
            Some(format!("{host}: {}", fault.words()))
        });
        let words = words.collect::<Vec<_>>().join("; ");
        Failed {
            is_elsewhere: each.iter().all(|failed| failed.is_elsewhere),
            ..Failed::by(StoreError {
                trouble,
                what: format!("the store {} can't be used: {words}", self.store_name),
                remedy: None,
                source: None,
            })
        }
    }
}

impl<L: Link> Drop for Session<L> {
    fn drop(&mut self) {
        self.close();
        // A name look-up may hang on a thread of its own, and is not waited for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// An event loop for this thread. An error says why there is none.
pub(in crate::store) fn event_loop() -> Result<Runtime, String> {
    let built = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build();
    built.map_err(|error| format!("the operating system gave no event loop: {error}"))
}

/// Connects to a server, at one of its places. Each has an equal share of the time.
async fn open<L: Link>(
    settings: &L::Settings,
    host: &Host,
    deadline: Deadline,
    may_defer: bool,
) -> Result<L, Fault<L::Said>> {
    let targets = targets(host, deadline).await?;
    let mut failed = Fault::no_server();
    for (index, target) in targets.iter().enumerate() {
        let share = deadline.share(targets.len() - index);
        let share = share.at_most(settings.servers().connect_timeout);
        match L::open(settings, host, target, share, may_defer).await {
            Ok(link) => return Ok(link),
            Err(fault) => failed = fault,
        }
    }
    Err(failed)
}

/// A step of a call, within the deadline.
pub(in crate::store) async fn bound<T, S>(
    deadline: Deadline,
    doing: Activity,
    step: impl Future<Output = Result<T, Fault<S>>>,
) -> Result<T, Fault<S>> {
    deadline.bound(doing, step).await?
}
