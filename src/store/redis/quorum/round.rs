//! One request to all members at once, and what their answers tell.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::time::Instant;

use super::answers::Answers;
use super::gather::{Asked, gather};
use super::register::{Ballot, majority};
use super::wish::{Did, Report, To, Wish};
use crate::store::net::deadline::Deadline;
use crate::store::net::host::Settings as _;
use crate::store::net::session::event_loop;
use crate::store::redis::link::{Link, Session};
use crate::store::redis::script::{SERVER, text};
use crate::store::redis::settings::Settings;
use crate::store::{StoreError, Trouble};

/// How often a call starts over.
pub(super) const TRIES: usize = 64;

/// What ends the state of a member that has not joined, for those that change nothing.
const JOINS: &str = "a run lets them join, and tokenrun status does";

/// For how long a member that was late is left out.
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

    /// Sends a wish to all that have joined, until a majority has answered. It need not agree: the next round knows more,
    /// unless this client changes nothing.
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
        let (needed, changes_nothing) = (self.majority(), self.changes_nothing);
        let enough = |answers: &Answers| match changes_nothing {
            true => answers.of_majority().is_some(),
            false => answers.sure() >= needed,
        };
        self.round(deadline, wish, to, enough).await
    }

    /// Sends a wish to these members; `enough`: the others are waited for only a moment longer. One that was late is left out
    /// while the others are enough.
    pub(super) async fn round(
        &mut self,
        deadline: Deadline,
        wish: &Wish,
        to: Vec<Option<To>>,
        enough: impl Fn(&Answers) -> bool,
    ) -> Answers {
        let now = Instant::now();
        let is_late = |member: &Member| member.late_until.is_some_and(|until| until > now);
        let punctual = self.all.iter().filter(|member| !is_late(member)).count();
        let asks_late = punctual < self.majority();
        let (script, settings) = (&self.script, &self.settings);
        let asked = self.all.iter_mut().zip(to).map(|(member, to)| {
            let was_late = is_late(member);
            let command = wish.command(script, settings, &to?);
            let session = &mut member.session;
            let answer = Box::pin(async move {
                let value = session.ask_within(deadline, &command).await?;
                Report::read(&value).ok_or_else(|| session.nonsense())
            });
            Some(Asked { answer, was_late })
        });
        let mut answers = gather(asked.collect(), deadline, asks_late, enough).await;
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
        let trouble = match troubles.first() {
            Some(first @ (Trouble::Denied | Trouble::Misconfigured))
                if troubles.len() == each.len() && troubles.iter().all(|it| it == first) =>
            {
                *first
            }
            _ => Trouble::Unavailable,
        };
        StoreError {
            trouble,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::net::session::Failed;
    use crate::store::redis::quorum::answers::Answer;
    use crate::store::redis::quorum::fixtures::report;

    fn members() -> Members {
        let settings = Settings::read("redis://a,b,c/0?quorum", |_| None).unwrap();
        Members::new(settings, 7)
    }

    fn failed(trouble: Trouble) -> Option<Answer> {
        let error = StoreError {
            trouble,
            ..StoreError::unavailable("it fails")
        };
        Some(Err(Failed::by(error)))
    }

    fn answers(is_sure: bool, did: Did) -> Option<Answer> {
        let process = "p".to_owned();
        Some(Ok(Report {
            did,
            process,
            is_sure,
            ..report()
        }))
    }

    fn late(members: &Members) -> [bool; 3] {
        std::array::from_fn(|index| members.all[index].late_until.is_some())
    }

    #[test]
    fn the_last_answer_of_each_member_tells_how_it_is() {
        let (sure, unsure) = (|| answers(true, Did::Done), || answers(false, Did::Refused));
        let away = || failed(Trouble::Unavailable);
        let mut members = members();
        let mut learned = |answers: [Option<Answer>; 3]| {
            members.learn(&Answers(answers.into()));
            (late(&members), members.answering(), members.has_unsure())
        };
        let denied = failed(Trouble::Denied);
        let seen = learned([away(), denied, None]);
        assert_eq!(seen, ([true, false, false], (0, 3), false));
        let seen = learned([sure(), unsure(), away()]);
        assert_eq!(seen, ([false, false, true], (1, 3), true));
        let seen = learned([None, sure(), sure()]);
        assert_eq!(seen, ([false; 3], (3, 3), false));
        let seen = learned([away(), None, None]);
        assert_eq!(seen, ([true, false, false], (2, 3), false));
    }

    #[test]
    fn those_that_were_left_out_are_asked_in_the_next_round() {
        let done = || answers(true, Did::Done);
        for (third, is_late) in [(None, false), (done(), true)] {
            let mut members = members();
            members.all[2].late_until = Some(Instant::now());
            let left_out = third.is_none();
            let answers = Answers(vec![done(), done(), third]);
            assert_eq!(members.asks_late_ones(&answers), left_out);
            assert_eq!(late(&members), [false, false, is_late]);
        }
    }

    #[test]
    fn the_last_try_ends_with_what_was_in_its_way() {
        let mut members = members();
        let kept_changing = members.gave_up();
        assert_eq!(
            kept_changing.to_string(),
            "the store redis://a:6379,b:6379,c:6379?quorum kept changing; gave up after 64 tries; try again"
        );
        members.all[1].is_unsure = true;
        assert!(members.gave_up().what.contains("could not join"));
        members.changes_nothing = true;
        assert!(members.gave_up().what.contains("have not joined"));
    }

    #[test]
    fn a_failure_names_each_member_that_is_missing() {
        let answers = [
            answers(true, Did::Done),
            answers(true, Did::Behind),
            answers(false, Did::Done),
        ];
        let error = members().error(&Answers(answers.into()));
        assert_eq!(
            error.what,
            "the store redis://a:6379,b:6379,c:6379?quorum can't be used: fewer than 2 of its 3 servers answer: b:6379: it goes on with \
             another client's request; c:6379: it has started anew, and has not joined yet"
        );
        assert_eq!(error.trouble, Trouble::Unavailable);
    }

    #[test]
    fn a_trouble_that_all_missing_members_have_is_the_stores() {
        let denied = || failed(Trouble::Denied);
        for (answers, expected) in [
            ([None, denied(), denied()], Trouble::Unavailable),
            (
                [answers(true, Did::Done), denied(), denied()],
                Trouble::Denied,
            ),
            (
                [answers(true, Did::Behind), denied(), denied()],
                Trouble::Unavailable,
            ),
            (
                [denied(), failed(Trouble::Misconfigured), denied()],
                Trouble::Unavailable,
            ),
            (
                [(); 3].map(|()| failed(Trouble::Misconfigured)),
                Trouble::Misconfigured,
            ),
            (
                [(); 3].map(|()| failed(Trouble::Refused)),
                Trouble::Unavailable,
            ),
        ] {
            let error = members().error(&Answers(answers.into()));
            assert_eq!(error.trouble, expected, "{error}");
        }
    }
}
