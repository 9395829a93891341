//! A machine with a store that answers on command, and a clock that stands still until a test moves
//! it.

use std::time::Duration;

use crate::moment::Moment;
use crate::run::ending::Ending;
use crate::run::event::{Action, Event, Note};
use crate::run::machine::{Limits, Machine};
use crate::store::model::ModelStore;
use crate::store::{Answer, Request};
use crate::store::{StoreError, Tokens as _};
use crate::sys::wait::Status;
use crate::token::operator::{Act, Effect, perform};
use crate::token::rule::tests::fixture::{claim, s};
use crate::token::{
    Claim, Evidence, GrantKind, GroupName, Row, StampOf, State, Swapped, Timing, Version, Wishes,
    swap,
};

/// What the machine did in one step.
pub(super) type Did = Vec<Action>;

#[derive(Debug, Clone)]
pub(super) struct Rig {
    pub(super) machine: Machine,
    pub(super) now: Moment,
    pub(super) store: ModelStore,
    pub(super) out: Option<Request>,
    pub(super) drawn: u64,
}

/// Heartbeat 10 s, takeover-after 60 s, so trusted for 54 s and started within 50 s of the grant's
/// sending; store time-out 5 s.
pub(super) fn timing() -> Timing {
    Timing::new(&Wishes {
        heartbeat: Some(s(10)),
        takeover_after: Some(s(60)),
        keep: Some(s(30)),
        head_start: Some(s(7)),
        at_least: None,
        kill_grace: Some(s(4)),
        store_timeout: Some(s(5)),
    })
    .unwrap()
}

pub(super) const TRUSTED: Duration = s(54);
pub(super) const LAST_START: Duration = s(50);

pub(super) fn claim_of(name: &str) -> Claim {
    Claim {
        timing: timing(),
        ..claim(name)
    }
}

pub(super) fn unavailable() -> StoreError {
    StoreError::unavailable("no answer")
}

impl Rig {
    /// A machine that has sent its first read to an empty store.
    pub(super) fn looking() -> Self {
        Self::of(claim_of("a"), Limits::default(), ModelStore::new())
    }

    pub(super) fn of(claim: Claim, limits: Limits, store: ModelStore) -> Self {
        let mut rig = Self {
            machine: Machine::new(claim, limits),
            now: Moment(s(100)),
            store,
            out: None,
            drawn: 0,
        };
        rig.tell(Event::Tick);
        rig
    }

    /// The rule allows the grant, and the locks are being taken.
    pub(super) fn locking() -> Self {
        let limits = Limits {
            locks: true,
            ..Limits::default()
        };
        let mut rig = Self::of(claim_of("a"), limits, ModelStore::new());
        rig.answered();
        rig
    }

    /// A grant is out.
    pub(super) fn claiming() -> Self {
        let mut rig = Self::looking();
        rig.answered();
        rig
    }

    /// The token is held, and the guard has the order to start the job.
    pub(super) fn starting() -> Self {
        let mut rig = Self::claiming();
        rig.answered();
        rig
    }

    /// The job runs.
    pub(super) fn running() -> Self {
        let mut rig = Self::starting();
        rig.tell(Event::JobStarted);
        rig
    }

    /// A heartbeat is out, ten seconds after the grant.
    pub(super) fn beating() -> Self {
        let mut rig = Self::running();
        rig.wait(s(10));
        rig
    }

    pub(super) fn tell(&mut self, event: Event) -> Did {
        let drawn = &mut self.drawn;
        let mut draw = || {
            *drawn += 1;
            *drawn * 2_000_000_000
        };
        let did = self.machine.step(self.now, event, &mut draw);
        for action in &did {
            if let Action::Send(request) = action {
                assert!(self.out.is_none(), "two requests are out");
                self.out = Some(request.clone());
            }
        }
        did
    }

    /// Time passes for machine and store, then the machine gets a tick.
    pub(super) fn wait(&mut self, by: Duration) -> Did {
        self.now = self.now.plus(by);
        self.store.advance(by);
        self.tell(Event::Tick)
    }

    /// The store carries the request out and its answer arrives.
    pub(super) fn answered(&mut self) -> Did {
        let event = self.arrives();
        self.tell(event)
    }

    /// The store carries the request out; its answer is on its way.
    pub(super) fn arrives(&mut self) -> Event {
        let request = self.out.take().expect("a request is out");
        match request.carry_out(&mut self.store) {
            Answer::Read(reading) => {
                Event::Looked(reading.map(|reading| (reading, Evidence::None)))
            }
            Answer::Left(left) => Event::Left(left),
            Answer::Swapped(swapped) => Event::Swapped(swapped),
            Answer::Once(found) => Event::OnceLooked(found),
            Answer::Pruned(_) | Answer::Refused(_) | Answer::Kept(_) => Event::Tick,
            Answer::Recorded(recorded) => Event::Recorded(recorded),
        }
    }

    /// The request never arrives.
    pub(super) fn fails(&mut self) -> Did {
        let request = self.out.take().expect("a request is out");
        self.tell(failure(&request))
    }

    /// The request arrives, its answer does not.
    pub(super) fn answer_is_lost(&mut self) -> Did {
        let request = self.out.clone().expect("a request is out");
        self.arrives();
        self.tell(failure(&request))
    }

    pub(super) fn job_ends(&mut self, status: Status) -> Did {
        self.tell(Event::JobExited {
            status,
            forced: false,
        });
        self.tell(Event::TreeGone)
    }

    pub(super) fn row(&self) -> Row {
        let group = GroupName::new("g").unwrap();
        self.store.contents().rows[&group].clone()
    }

    pub(super) fn operates(&mut self, act: &Act) {
        self.drawn += 1;
        let version = Version::from_stored(i64::try_from(self.drawn).unwrap());
        let now = self.store.now();
        match perform(act, &self.row(), &now, s(5), version) {
            Effect::Swap { swap, .. } => drop(self.store.swap(&swap)),
            other => panic!("{other:?}"),
        }
    }

    /// Another client requests a hand-off to itself, for its failback.
    pub(super) fn hands_off_to_itself(&mut self, client: &str) {
        self.drawn += 1;
        let version = Version::from_stored(i64::try_from(self.drawn).unwrap());
        let now = self.store.now();
        let swap = swap::handoff_to_self(&claim_of(client), &self.row(), &now, version);
        assert!(matches!(self.store.swap(&swap), Ok(Swapped::Done(_))));
    }

    /// Another client is granted the token, regardless of its holder.
    pub(super) fn taken_by_another(&mut self) {
        let group = GroupName::new("g").unwrap();
        let row = self.store.contents().rows.get(&group).cloned();
        self.drawn += 1;
        let version = Version::from_stored(i64::try_from(self.drawn).unwrap());
        let now = self.store.now();
        let other = claim_of("b");
        let swap = swap::grant(&other, GrantKind::Takeover, row.as_ref(), &now, version);
        assert!(matches!(self.store.swap(&swap), Ok(Swapped::Done(_))));
    }

    pub(super) fn ending(&self) -> &Ending {
        self.machine.ending().expect("it has ended")
    }
}

fn failure(request: &Request) -> Event {
    match request {
        Request::Read(..) | Request::Join(..) => Event::Looked(Err(unavailable())),
        Request::Leave(..) => Event::Left(Err(unavailable())),
        Request::Swap(_) | Request::Note(_) => Event::Swapped(Err(unavailable())),
        Request::Once { .. } => Event::OnceLooked(Err(unavailable())),
        Request::Prune { .. } | Request::Refuse(_) | Request::KeepOutput(_) => Event::Tick,
        Request::Record(_) => Event::Recorded(Err(unavailable())),
    }
}

fn seconds(moment: Moment, now: Moment) -> String {
    let signed = moment.0.as_millis() as f64 - now.0.as_millis() as f64;
    format!("{:+}s", signed / 1_000.0)
}

/// Actions as text.
pub(super) fn words(did: &[Action], now: Moment) -> String {
    let said: Vec<String> = did.iter().filter_map(|action| word(action, now)).collect();
    said.join(", ")
}

fn word(action: &Action, now: Moment) -> Option<String> {
    Some(match action {
        Action::Send(Request::Read(..)) => "read".into(),
        Action::Send(Request::Join(..)) => "join".into(),
        Action::Send(Request::Leave(..)) => "leave".into(),
        Action::Send(Request::Once { .. }) => "ask for the key".into(),
        Action::Send(Request::Prune { .. }) => "prune".into(),
        Action::Send(Request::Refuse(_)) => "refuse".into(),
        Action::Send(Request::KeepOutput(_)) => "keep the output".into(),
        Action::Send(Request::Note(swap)) => format!("note {}", swap.to.incarnation),
        Action::Send(Request::Record(run)) => format!("record {}", run.outcome),
        Action::Send(Request::Swap(swap)) => match swap.stamp {
            Some(StampOf::Granted) => "grant".into(),
            Some(StampOf::Heartbeat) => "heartbeat".into(),
            Some(StampOf::Created) => "create".into(),
            None => "hand off".into(),
            Some(StampOf::Released) => match &swap.to.state {
                State::Free => "release, free".into(),
                State::Idle { .. } | State::Running { .. } => "release, keep".into(),
            },
        },
        Action::StartJob { deadline, .. } => match deadline {
            Some(deadline) => format!("start, kill at {}", seconds(deadline.kill_at, now)),
            None => "start without a deadline".into(),
        },
        Action::Extend(deadline) => format!("extend, kill at {}", seconds(deadline.kill_at, now)),
        Action::Pass(signal) => format!("pass {signal}"),
        Action::End { term_tree, kill_at } => {
            let term = if *term_tree { " with TERM" } else { "" };
            format!("end{term}, kill at {}", seconds(*kill_at, now))
        }
        Action::ContinueGuard => "continue the guard".into(),
        Action::TakeLocks => "take the locks".into(),
        Action::EndWithoutGuard => "end without the guard".into(),
        Action::Say(note) => return spoken(note),
    })
}

fn spoken(note: &Note) -> Option<String> {
    match note {
        Note::Decided { .. } | Note::Acquired { .. } | Note::Renewed { .. } | Note::Started => None,
        Note::Ended(ending) => Some(format!("ENDED {}", short(ending))),
        other => {
            let text = format!("{other:?}");
            let name = text.split([' ', '(']).next().unwrap_or_default();
            Some(format!("say {name}"))
        }
    }
}

pub(super) fn short(ending: &Ending) -> String {
    match ending {
        Ending::Ran { end, recorded, .. } => {
            let recorded = if *recorded { "" } else { ", not recorded" };
            format!("{end:?}{recorded}")
        }
        Ending::Refused { clause, .. } => format!("refused by clause {clause}"),
        Ending::StoreFailed {
            perhaps_granted, ..
        } => format!("store failed, perhaps granted: {perhaps_granted}"),
        Ending::Stopped(signal) => format!("stopped by {signal}"),
        Ending::Done(mark) => format!("{} is done", mark.key),
        Ending::NoGuard => "no guard".into(),
        Ending::Unstartable(why) => format!("{why:?}"),
    }
}

/// The machine's phase and its wake-up time.
pub(super) fn place(rig: &Rig) -> String {
    let text = format!("{:?}", rig.machine.phase());
    let phase = text.split('(').next().unwrap_or_default().to_owned();
    match rig.machine.wake_at() {
        Some(at) => format!("{phase}, wakes {}", seconds(at, rig.now)),
        None => format!("{phase}, does not wake"),
    }
}
