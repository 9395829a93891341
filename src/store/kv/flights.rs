//! Keys and values of servers that take a commit in two flights: a look at all that it touches, and one transaction that
//! compares the servers' own revisions of it.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::written::Written;
use super::{Ask, Commit, Committed, Found, Kv, Outcome};
use crate::store::net::deadline::{Activity, Deadline};
use crate::store::net::fault::Fault;
use crate::store::net::session::{self, Link, Session, bound};
use crate::store::{Notifier, StoreError};
use crate::token::StoreTime;

/// How often a look or a commit starts over.
const TRIES: usize = 8;

/// How long what is known serves the next commit of its connection.
pub(in crate::store) const FRESH: Duration = Duration::from_millis(250);

/// How many entries are known for the next commit.
const FEW: usize = 32;

/// A subscription takes at most this part of a call's time: regular looks go on without it.
const SUBSCRIBING: u32 = 2;

/// How long dropping what has come may take; it waits for nothing.
const DRAINING: Duration = Duration::from_secs(1);

/// A clock that a test sets.
pub(in crate::store) type Turned = Arc<dyn Fn() -> StoreTime + Send + Sync>;

/// An entry as it was read.
#[derive(Debug, Clone)]
pub(in crate::store) struct Read {
    pub(in crate::store) written: Written,
    pub(in crate::store) number: i64,
    /// The server's own, which a transaction compares.
    pub(in crate::store) revision: i64,
}

/// What a look has found. `more`: what the back end needs besides.
#[derive(Debug, Clone)]
pub(in crate::store) struct Seen<M> {
    pub(in crate::store) asked_at: Instant,
    pub(in crate::store) now: StoreTime,
    pub(in crate::store) entries: BTreeMap<String, Read>,
    pub(in crate::store) more: M,
}

impl<M> Seen<M> {
    fn outcome(&self, commit: &Commit) -> Outcome {
        let version = |key: &str| Some(self.entries.get(key)?.written.version.as_str());
        commit.outcome(version, &self.now)
    }

    /// Notes what a commit has made of the entries. `after`: those that it wrote, the ones without a stamp at this time;
    /// `then`: what was read behind it; `number`: that of a new entry; `revision`: that of an entry that it wrote.
    pub(in crate::store) fn wrote(
        &mut self,
        commit: &Commit,
        after: BTreeMap<String, Written>,
        then: &BTreeMap<String, Read>,
        number: i64,
        revision: impl Fn(&str) -> i64,
    ) {
        for it in &commit.deletes {
            self.entries.remove(&it.key);
        }
        for (key, mut written) in after {
            written.stamp.get_or_insert((&self.now).into());
            let read = Read {
                written,
                number: self.entries.get(&key).map_or(number, |read| read.number),
                revision: revision(&key),
            };
            self.entries.insert(key, read);
        }
        self.entries.extend(then.clone());
    }
}

/// What the questions of a look have found.
#[derive(Default)]
pub(in crate::store) struct Gathered {
    pub(in crate::store) entries: BTreeMap<String, Read>,
    /// The entries of lists.
    pub(in crate::store) listed: BTreeSet<String>,
}

impl Gathered {
    /// Adds entries that were guessed to be in the lists, if they are. Returns the listed ones that are left to be read.
    pub(in crate::store) fn add_guessed(
        &mut self,
        mut guessed: BTreeMap<String, Read>,
    ) -> Vec<String> {
        guessed.retain(|key, _| self.listed.contains(key));
        self.entries.append(&mut guessed);
        let unread = self.listed.iter();
        let unread = unread.filter(|key| !self.entries.contains_key(*key));
        unread.cloned().collect()
    }
}

/// What a connection knows from its last answers.
pub(in crate::store) struct Known<M> {
    pub(in crate::store) seen: Option<Seen<M>>,
    /// The entries of lists that the last look has found: the next one asks for them at once.
    listed: Vec<String>,
}

impl<M> Default for Known<M> {
    fn default() -> Self {
        Self {
            seen: None,
            listed: Vec::new(),
        }
    }
}

impl<M: Clone> Known<M> {
    /// Keeps what is known, for the next commit.
    pub(in crate::store) fn keep(&mut self, seen: &Seen<M>) {
        self.seen = (seen.entries.len() <= FEW).then(|| seen.clone());
    }

    /// The entries that the lists among these questions may have.
    pub(in crate::store) fn guess(&self, asked: &[Ask]) -> &[String] {
        match asked.iter().any(|ask| matches!(ask, Ask::Part(_))) {
            true => &self.listed,
            false => &[],
        }
    }

    /// Keeps the names of listed entries, if there were any.
    pub(in crate::store) fn list(&mut self, keys: impl IntoIterator<Item = String>) {
        let listed: Vec<String> = keys.into_iter().take(FEW).collect();
        if !listed.is_empty() {
            self.listed = listed;
        }
    }
}

/// A connection to such servers.
pub(in crate::store) trait Flights:
    Link<Answer = Committed, Settings: Send> + Send
{
    /// What a look finds besides entries.
    type More: Clone;

    /// True if the ticks of its time come from a clock that is never set.
    const HAS_TICKS: bool;

    /// How much later than it says its time may be ([`Kv::step`]).
    const STEP: Duration;

    /// True if a connection is closed when nothing has been asked for a while: it is of no use, and a server allows few.
    const RESTS: bool;

    fn known(&mut self) -> &mut Known<Self::More>;

    /// The socket, to be polled.
    fn socket(&self) -> &Arc<OwnedFd>;

    /// The fault of a commit before which the look failed: nothing was written.
    fn unread(fault: Fault<Self::Said>) -> Fault<Self::Said>;

    fn found(seen: Seen<Self::More>) -> Found;

    /// Looks once. `None`: the store's time is not certain, and the look starts over.
    async fn try_look(
        &mut self,
        asked: &[Ask],
        turned: Option<&Turned>,
    ) -> Result<Option<Seen<Self::More>>, Fault<Self::Said>>;

    /// The fault of a store on which each look starts over.
    fn unsteady() -> Fault<Self::Said>;

    /// Looks, until the store's time is certain.
    async fn look(
        &mut self,
        asked: &[Ask],
        turned: Option<&Turned>,
    ) -> Result<Seen<Self::More>, Fault<Self::Said>> {
        for _ in 0..TRIES {
            if let Some(seen) = self.try_look(asked, turned).await? {
                return Ok(seen);
            }
        }
        Err(Self::unsteady())
    }

    /// False if the clock of this look has not gone on as this process's has, since the last one.
    fn goes_on(&mut self, _seen: &Seen<Self::More>) -> bool {
        true
    }

    /// Brings the time of what was known up to date: so much time has passed.
    fn refresh(now: &mut StoreTime, passed: Duration);

    /// The transaction of a commit that may happen. `None`: something has changed since the look.
    async fn write(
        &mut self,
        commit: &Commit,
        seen: Seen<Self::More>,
        turned: Option<&Turned>,
    ) -> Result<Option<Found>, Fault<Self::Said>>;

    /// Waits for announcements on a channel: the socket becomes readable.
    async fn watch(&mut self, channel: &str) -> Result<(), Fault<Self::Said>>;

    /// Reads and drops what has been announced. `false`: the connection is over.
    async fn drain(&mut self) -> bool;

    /// Says a word, if a connection that only waits would end.
    async fn stay(&mut self) -> Result<(), Fault<Self::Said>> {
        Ok(())
    }
}

/// What is asked of a store.
pub(in crate::store) struct Question<'a> {
    what: What<'a>,
    turned: Option<&'a Turned>,
}

#[derive(Clone, Copy)]
enum What<'a> {
    Get(&'a [Ask]),
    Commit(&'a Commit),
}

/// True if a commit may go by what was known a moment ago. What was not read is taken to be absent, which no store
/// compares for an entry that is to be removed.
fn serves<M>(seen: &Seen<M>, commit: &Commit) -> bool {
    let mut removed = commit.deletes.iter();
    removed.all(|it| seen.entries.contains_key(&it.key))
}

/// What was known a moment ago, if a commit that goes by it may succeed: the server compares the revisions.
fn known_for<L: Flights>(
    link: &mut L,
    commit: &Commit,
    turned: Option<&Turned>,
) -> Option<Seen<L::More>> {
    let mut seen = link.known().seen.take()?;
    let passed = seen.asked_at.elapsed();
    if passed > FRESH || !serves(&seen, commit) {
        return None;
    }
    match turned {
        Some(turned) => seen.now = turned(),
        None => L::refresh(&mut seen.now, passed),
    }
    (seen.outcome(commit) == Outcome::Done).then_some(seen)
}

async fn commit<L: Flights>(
    link: &mut L,
    commit: &Commit,
    turned: Option<&Turned>,
) -> Result<Committed, Fault<L::Said>> {
    let touched = commit.touched().into_iter();
    let asked: Vec<Ask> = touched.cloned().map(Ask::One).collect();
    let mut known = known_for(link, commit, turned);
    for _ in 0..TRIES {
        let (seen, goes_on) = match known.take() {
            Some(seen) => (seen, true),
            None => {
                let seen = link.look(&asked, turned).await.map_err(L::unread)?;
                let goes_on = link.goes_on(&seen);
                (seen, goes_on)
            }
        };
        let outcome = match seen.outcome(commit) {
            Outcome::Done if !goes_on => Outcome::Expired,
            outcome => outcome,
        };
        if outcome != Outcome::Done {
            let then = link.look(&commit.then, turned).await.map_err(L::unread)?;
            let found = L::found(then);
            return Ok(Committed { outcome, found });
        }
        if let Some(found) = link.write(commit, seen, turned).await? {
            return Ok(Committed { outcome, found });
        }
    }
    let what = "what is stored kept changing";
    Err(L::unread(Fault::nonsense(what)))
}

impl<L: Flights> session::Ask<Question<'_>> for L {
    async fn ask(
        &mut self,
        deadline: Deadline,
        question: &Question<'_>,
    ) -> Result<Committed, Fault<L::Said>> {
        let asking = async {
            match question.what {
                What::Commit(it) => commit(self, it, question.turned).await,
                What::Get(asked) => {
                    let seen = self.look(asked, question.turned).await?;
                    self.goes_on(&seen);
                    self.known().keep(&seen);
                    Ok(Committed {
                        outcome: Outcome::Done,
                        found: L::found(seen),
                    })
                }
            }
        };
        bound(deadline, Activity::Asking, asking).await
    }

    fn only_reads(question: &Question<'_>) -> bool {
        matches!(question.what, What::Get(_))
    }
}

/// Keys and values of such servers.
pub(in crate::store) struct FlightKv<L: Flights> {
    session: Session<L>,
    subscription: Option<Subscription<L>>,
    timeout: Duration,
    turned: Option<Turned>,
}

/// A watch of a group's releases: a connection of its own.
struct Subscription<L> {
    link: L,
    channel: String,
}

impl<L: Flights> FlightKv<L> {
    /// Keys and values of servers that are connected to at the first request. A call takes at most `timeout`.
    pub(in crate::store) fn over(settings: L::Settings, timeout: Duration) -> Self {
        Self {
            session: Session::new(settings),
            subscription: None,
            timeout,
            turned: None,
        }
    }

    /// Replaces the servers' clock.
    #[cfg(test)]
    pub(in crate::store) fn with_clock(self, clock: Turned) -> Self {
        Self {
            turned: Some(clock),
            ..self
        }
    }

    fn ask(&mut self, what: What<'_>) -> Result<Committed, StoreError> {
        let question = Question {
            what,
            turned: self.turned.as_ref(),
        };
        let answer = self.session.ask(self.timeout, &question);
        answer.map_err(|failed| failed.error)
    }

    /// Drops what has been announced. A connection that is over would notify for ever.
    fn clear_notification(&mut self) {
        self.tend(async |link| Ok(link.drain().await));
    }

    /// Tends the subscription's connection; without success it is given up.
    fn tend(&mut self, with: impl AsyncFnOnce(&mut L) -> Result<bool, Fault<L::Said>>) {
        if let Some(it) = &mut self.subscription {
            let link = &mut it.link;
            let tended = self.session.run(DRAINING, async |_, deadline| {
                bound(deadline, Activity::Asking, with(link)).await
            });
            if !tended.unwrap_or(false) {
                self.subscription = None;
            }
        }
    }
}

impl<L: Flights> Kv for FlightKv<L> {
    fn name(&self) -> &str {
        self.session.store_name()
    }

    fn has_ticks(&self) -> bool {
        L::HAS_TICKS
    }

    fn step(&self) -> Duration {
        match self.turned {
            Some(_) => Duration::ZERO,
            None => L::STEP,
        }
    }

    fn get(&mut self, asked: &[Ask]) -> Result<Found, StoreError> {
        // Before the read: a release in between is announced.
        self.clear_notification();
        self.ask(What::Get(asked)).map(|answer| answer.found)
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, StoreError> {
        self.ask(What::Commit(commit))
    }

    fn rest(&mut self) {
        if L::RESTS {
            self.session.close();
        }
    }

    fn subscribe(&mut self, channel: &str) {
        self.clear_notification();
        self.tend(async |link| link.stay().await.map(|()| true));
        let subscribed = self.subscription.as_ref();
        if subscribed.is_some_and(|it| it.channel == channel) {
            return;
        }
        let limit = self.timeout / SUBSCRIBING;
        let opened = self.session.run(limit, async |session, deadline| {
            let mut link = session.another(deadline).await?;
            bound(deadline, Activity::Asking, link.watch(channel)).await?;
            Ok(link)
        });
        // Without a watch, regular looks are what is left.
        self.subscription = opened.ok().map(|link| Subscription {
            link,
            channel: channel.to_owned(),
        });
    }

    fn notifier(&mut self) -> Option<Notifier> {
        // Readable when an event has come, and when the connection is over.
        let subscription = self.subscription.as_ref()?;
        Some(Notifier(Arc::clone(subscription.link.socket())))
    }
}

#[cfg(test)]
#[path = "flight_tests.rs"]
mod tests;
