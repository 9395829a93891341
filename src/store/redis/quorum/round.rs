//! One request to all members at once. A round is over when enough have answered; one that is late is not waited for.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep_until};

use super::register::{Ballot, majority};
use super::wish::{Did, Report, To, Wish};
use crate::store::net::deadline::Deadline;
use crate::store::net::host::Settings as _;
use crate::store::net::session::{Failed, event_loop};
use crate::store::redis::link::{Link, Session};
use crate::store::redis::script::{SERVER, text};
use crate::store::redis::settings::Settings;
use crate::store::{StoreError, Trouble};

/// How often a call starts over.
pub(super) const TRIES: usize = 64;

/// What ends the state of a member that has not joined, for those that change nothing.
const JOINS: &str = "a run lets them join, and tokenrun status does";

/// How much longer than a majority the others may take, beside as long again.
const GRACE: Duration = Duration::from_millis(5);

/// For how long a member that was late is not waited for.
const LATE: Duration = Duration::from_secs(2);

/// A member of the quorum.
pub(super) struct Member {
    pub(super) session: Session,
    /// The server's process, as it was last met.
    process: Option<String>,
    /// How far its clock was ahead of the store's, in milliseconds.
    pub(super) ahead_ms: Option<i64>,
    late_until: Option<Instant>,
    /// True if it had not joined when it was last met.
    is_unsure: bool,
}

/// The members, as this process knows them.
pub(super) struct Members {
    pub(super) all: Vec<Member>,
    settings: Settings,
    script: String,
    runtime: Option<Runtime>,
    generation: Option<Ballot>,
    highest: Ballot,
    client: u64,
    /// Looks change nothing: no member joins, and nothing is settled.
    pub(super) changes_nothing: bool,
    /// The registers that a commit of this client has perhaps written, each with the last ballot of it.
    pub(super) unsettled: BTreeMap<String, Ballot>,
}

/// A member's answer to a round.
pub(super) type Answer = Result<Report, Failed>;

/// The answers to a round, by member; `None`: none yet.
pub(super) struct Answers(pub(super) Vec<Option<Answer>>);

impl Answers {
    pub(super) fn reports(&self) -> impl Iterator<Item = &Report> {
        self.0.iter().filter_map(|it| it.as_ref()?.as_ref().ok())
    }

    /// How many did this.
    pub(super) fn count(&self, did: Did) -> usize {
        self.reports().filter(|report| report.did == did).count()
    }

    /// A server with two names counts once.
    fn refuse_twins(&mut self) {
        let mut processes = Vec::new();
        for answer in self.0.iter_mut().flatten() {
            let Ok(report) = answer else { continue };
            if processes.contains(&report.process) {
                let what = "it is the same server as another one of the list";
                *answer = Err(Failed::by(StoreError::misconfigured(what)));
            } else {
                processes.push(report.process.clone());
            }
        }
    }

    /// No answer counts, once a server is one that other nodes use alone: they exclude none of these.
    fn refuse_used_alone(&mut self) {
        if self.count(Did::Alone) > 0 {
            let all = self.0.iter_mut().flatten().flatten();
            all.for_each(|report| report.did = Did::Alone);
        }
    }

    /// True if another member may have done what was wished, or will.
    pub(super) fn are_open(&self) -> bool {
        let failed = self.0.iter().flatten().filter_map(|it| it.as_ref().err());
        let mut failed = failed.filter(|it| it.was_asked);
        failed.any(|it| it.error.trouble == Trouble::Unavailable)
    }

    /// The reports of the members that did what was wished, if they are a majority of one generation.
    pub(super) fn of_majority(&self) -> Option<Vec<(usize, &Report)>> {
        let done = self.0.iter().enumerate().filter_map(|(index, answer)| {
            let report = answer.as_ref()?.as_ref().ok()?;
            (report.did == Did::Done && report.is_sure).then_some((index, report))
        });
        let done: Vec<(usize, &Report)> = done.collect();
        let newest = done.iter().map(|(_, report)| report.generation).max()?;
        let of_newest = done
            .into_iter()
            .filter(|(_, report)| report.generation == newest);
        let of_newest: Vec<_> = of_newest.collect();
        (of_newest.len() >= majority(self.0.len())).then_some(of_newest)
    }
}

impl Members {
    pub(super) fn new(settings: Settings, client: u64) -> Self {
        let hosts = settings.servers.hosts.iter();
        let member = |host| Member {
            session: Session::new(settings.only(host)),
            process: None,
            ahead_ms: None,
            late_until: None,
            is_unsure: false,
        };
        Self {
            all: hosts.map(member).collect(),
            script: text(&[SERVER, include_str!("member.lua")]),
            settings,
            runtime: None,
            generation: None,
            highest: Ballot::default(),
            client,
            changes_nothing: false,
            unsettled: BTreeMap::new(),
        }
    }

    /// The store's name in messages.
    pub(super) fn name(&self) -> String {
        self.settings.name()
    }

    /// The number that tells this client from others.
    pub(super) const fn client(&self) -> u64 {
        self.client
    }

    /// How many are needed.
    pub(super) fn majority(&self) -> usize {
        majority(self.all.len())
    }

    /// A ballot that is higher than all that were met.
    pub(super) fn next_ballot(&mut self) -> Ballot {
        self.highest = Ballot::after(self.highest, self.client);
        self.highest
    }

    /// The highest ballot that was met.
    pub(super) const fn highest(&self) -> Ballot {
        self.highest
    }

    /// A generation after all that were met.
    pub(super) fn next_generation(&self) -> Ballot {
        Ballot::after(self.generation.unwrap_or_default(), self.client)
    }

    /// Carries out `work` on this store's event loop, within `limit`.
    pub(super) fn run<T>(
        &mut self,
        limit: Duration,
        work: impl AsyncFnOnce(&mut Self, Deadline) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let runtime = match self.runtime.take() {
            Some(runtime) => runtime,
            None => event_loop().map_err(StoreError::refused)?,
        };
        let done = runtime.block_on(async { work(self, Deadline::after(limit)).await });
        self.runtime = Some(runtime);
        done
    }

    /// Sends a wish to all that have joined, until a majority has answered.
    pub(super) async fn ask(&mut self, deadline: Deadline, wish: &Wish) -> Answers {
        // A member enters the generation that a request names.
        let generation = self.generation.filter(|_| !self.changes_nothing);
        let to = self.all.iter().map(|member| {
            Some(To {
                process: member.process.clone(),
                generation,
                ..To::default()
            })
        });
        let to = to.collect();
        let enough = |answers: &Answers| answers.of_majority().is_some();
        self.round(deadline, wish, to, enough).await
    }

    /// Sends a wish to these members; `enough`: the others are waited for only a moment longer.
    pub(super) async fn round(
        &mut self,
        deadline: Deadline,
        wish: &Wish,
        to: Vec<Option<To>>,
        enough: impl Fn(&Answers) -> bool,
    ) -> Answers {
        let began = Instant::now();
        let needed = self.majority();
        let usable = |member: &Member| member.late_until.is_none_or(|until| until <= began);
        let punctual = self.all.iter().filter(|member| usable(member)).count();
        let mut answers = Answers(self.all.iter().map(|_| None).collect());
        let (script, settings) = (&self.script, &self.settings);
        let mut asking: Vec<Option<Pin<Box<dyn Future<Output = Answer> + '_>>>> = Vec::new();
        for (member, to) in self.all.iter_mut().zip(to) {
            // One that was late is left out while the others are enough.
            let asked = to.filter(|_| punctual < needed || usable(member));
            asking.push(asked.map(|to| {
                let command = wish.command(script, settings, &to);
                let session = &mut member.session;
                let answer: Pin<Box<dyn Future<Output = Answer> + '_>> = Box::pin(async move {
                    let value = session.ask_within(deadline, &command).await?;
                    Report::read(&value).ok_or_else(|| session.nonsense())
                });
                answer
            }));
        }
        let mut grace = None;
        poll_fn(|context| {
            for (asking, answer) in asking.iter_mut().zip(&mut answers.0) {
                if let Some(future) = asking
                    && let Poll::Ready(ready) = future.as_mut().poll(context)
                {
                    *answer = Some(ready);
                    *asking = None;
                }
            }
            if asking.iter().all(Option::is_none) {
                return Poll::Ready(());
            }
            if enough(&answers) {
                let over = || {
                    let now = Instant::now();
                    Box::pin(sleep_until(now + (now - began) + GRACE))
                };
                return grace.get_or_insert_with(over).as_mut().poll(context);
            }
            Poll::Pending
        })
        .await;
        // The connections of the others are closed: what they may still answer is not read.
        for (asking, answer) in asking.into_iter().zip(&mut answers.0) {
            if asking.is_some() {
                let late = StoreError::unavailable("it does not answer in time");
                *answer = Some(Err(Failed {
                    was_asked: true,
                    ..Failed::by(late)
                }));
            }
        }
        answers.refuse_twins();
        answers.refuse_used_alone();
        self.learn(&answers);
        answers
    }

    /// Notes what the answers tell of the members.
    fn learn(&mut self, answers: &Answers) {
        let until = Instant::now() + LATE;
        for (member, answer) in self.all.iter_mut().zip(&answers.0) {
            match answer {
                Some(Ok(report)) => {
                    self.generation = self.generation.max(Some(report.generation));
                    self.highest = self.highest.max(report.highest);
                    member.process = Some(report.process.clone());
                    member.late_until = None;
                    member.is_unsure = !report.is_sure;
                }
                Some(Err(failed)) => {
                    member.process = None;
                    let is_late = failed.error.trouble == Trouble::Unavailable;
                    member.late_until = is_late.then_some(until);
                }
                None => {}
            }
        }
    }

    /// Lets the next round ask those that were left out of this one. `false`: there are none.
    pub(super) fn asks_late_ones(&mut self, answers: &Answers) -> bool {
        let left_out = answers.0.iter().any(Option::is_none);
        for member in self.all.iter_mut().filter(|_| left_out) {
            member.late_until = None;
        }
        left_out
    }

    /// Subscribes to a channel of a majority of the members, if they let it; of fewer, if they do not.
    pub(super) async fn subscribed(&self, deadline: Deadline, channel: &str) -> Vec<Link> {
        let mut links = Vec::new();
        for (index, member) in self.all.iter().enumerate() {
            let share = deadline.share(self.all.len() - index);
            if links.len() < self.majority() && member.late_until.is_none() {
                links.extend(member.session.subscribed(share, channel).await.ok());
            }
        }
        links
    }

    /// True if a member that answers has not joined since it started.
    pub(super) fn has_unsure(&self) -> bool {
        self.all.iter().any(|member| member.is_unsure)
    }

    /// How many of how many members have answered lately.
    pub(super) fn answering(&self) -> (usize, usize) {
        let answers = |member: &&Member| member.process.is_some() && !member.is_unsure;
        (self.all.iter().filter(answers).count(), self.all.len())
    }

    /// The error after the last try.
    pub(super) fn gave_up(&self) -> StoreError {
        let name = self.name();
        if !self.has_unsure() {
            let text = format!("the store {name} kept changing; gave up after {TRIES} tries");
            return StoreError::refused(text).remedy("try again");
        }
        let (verb, remedy) = match self.changes_nothing {
            // The others do not agree without them, and this client may not let them join.
            true => ("have not joined", JOINS),
            false => ("could not join", "try again"),
        };
        StoreError::refused(format!(
            "the store {name} can't be used: servers that have started anew {verb} the others"
        ))
        .remedy(remedy)
    }

    /// The error of a commit that was overtaken by too many others.
    pub(super) fn unknown(&self) -> StoreError {
        StoreError::unavailable(format!(
            "the store {} kept changing: it is not known if the request has happened",
            self.name()
        ))
    }

    /// The error of servers that other nodes use alone.
    pub(super) fn used_alone(&self) -> StoreError {
        StoreError::misconfigured(format!(
            "the store {} can't be used: a server of it keeps tokens of an address without ?quorum: nodes with that \
             address and nodes with this one do not exclude each other",
            self.name()
        ))
        .remedy("give all nodes the same address, or give this one another prefix=")
    }

    /// Why the answers are not enough.
    pub(super) fn error(&self, answers: &Answers) -> StoreError {
        let hosts = self.settings.servers.hosts.iter();
        let mut troubles = Vec::new();
        let each = hosts.zip(&answers.0).filter_map(|(host, answer)| {
            let words = match answer {
                Some(Ok(report)) if report.did == Did::Done && report.is_sure => return None,
                Some(Ok(report)) if !report.is_sure => {
                    "it has started anew, and has not joined yet".to_owned()
                }
                Some(Ok(_)) => "it goes on with another client's request".to_owned(),
                Some(Err(failed)) => {
                    troubles.push(failed.error.trouble);
                    failed.words.clone()
                }
                None => "it did not answer a moment ago".to_owned(),
            };
            Some(format!("{host}: {words}"))
        });
        let each: Vec<String> = each.collect();
        let all_of = |trouble: Trouble| {
            let is_same = !troubles.is_empty() && troubles.iter().all(|it| *it == trouble);
            is_same && troubles.len() == each.len()
        };
        let known = [Trouble::Denied, Trouble::Misconfigured];
        let trouble = known.into_iter().find(|trouble| all_of(*trouble));
        StoreError {
            trouble: trouble.unwrap_or(Trouble::Unavailable),
            what: format!(
                "the store {} can't be used: fewer than {} of its {} servers answer: {}",
                self.name(),
                self.majority(),
                self.all.len(),
                each.join("; ")
            ),
            remedy: None,
            source: None,
        }
    }
}
