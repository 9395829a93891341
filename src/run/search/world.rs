//! One state of the search: the store, two clients with their processes, and the requests and
//! answers between them. The rule, the swaps and the machine are the real ones.

use std::time::Duration;

use super::network::{ADRIFT, Adrift};
use super::processes::{Orphan, Process};
use super::{Left, Scenario};
use crate::moment::Moment;
use crate::run::event::Event;
use crate::run::machine::{Limits, Wait};
use crate::run::model::{Run, group};
use crate::store::model::ModelData;
use crate::token::WallTime;
use crate::token::{About, Claim, ClientId, ClockEpoch, SessionId, Stamp, StoreTime};

#[derive(Debug, Clone, Default)]
pub(super) struct Client {
    pub(super) process: Option<Process>,
    pub(super) orphan: Option<Orphan>,
    pub(super) adrift: Vec<Adrift>,
    pub(super) frozen: bool,
}

#[derive(Debug, Clone)]
pub(super) struct World {
    /// True time in seconds; every clock follows it.
    seconds: u64,
    pub(super) epoch: u8,
    /// The number of the present server, and how many servers are promoted in turn.
    pub(super) server: u8,
    pub(super) servers: u8,
    /// How often a snapshot was put back; each time takes a moment.
    pub(super) put_back: u8,
    pub(super) store: ModelData,
    /// The store before its last commit, if that may be lost.
    pub(super) before: Option<ModelData>,
    pub(super) clients: [Client; 2],
    pub(super) drawn: u64,
    sessions: u64,
    pub(super) highest_fence: i64,
    /// Until when a job may be alive beside another, as a command reported to the operator.
    pub(super) excused: Vec<(SessionId, Moment)>,
    pub(super) left: Left,
    /// True if the step to this state granted the token.
    pub(super) granted: bool,
    pub(super) violation: Option<String>,
}

pub(super) fn name_of(client: usize) -> ClientId {
    ClientId::new(["a", "b"][client]).unwrap()
}

pub(super) const SECOND: Duration = Duration::from_secs(1);

impl World {
    pub(super) fn new(left: Left, servers: u8) -> Self {
        let mut this = Self {
            seconds: 1_000,
            epoch: 0,
            server: 0,
            servers,
            put_back: 0,
            store: ModelData::default(),
            before: None,
            clients: [Client::default(), Client::default()],
            drawn: 0,
            sessions: 0,
            highest_fence: 0,
            excused: Vec::new(),
            left,
            granted: false,
            violation: None,
        };
        this.store = ModelData::made(&this.server(), &this.store_time());
        this
    }

    pub(super) const fn moment(&self) -> Moment {
        Moment(Duration::from_secs(self.seconds))
    }

    pub(super) fn store_time(&self) -> StoreTime {
        let seconds = i64::try_from(self.seconds).unwrap();
        let moved = i64::from(self.put_back);
        StoreTime {
            epoch: ClockEpoch(format!("d{}", self.epoch)),
            stamp: Stamp {
                // Ticks of two clock epochs have no relation; here they differ by that much.
                tick_ms: 1_000 * (seconds + 1_000 * i64::from(self.epoch)) + moved,
                // A failover takes a moment, and the next clock is not behind.
                wall: WallTime(1_790_000_000_000 + 1_000 * seconds + i64::from(self.epoch) + moved),
            },
        }
    }

    pub(super) fn violated(&mut self, what: impl Into<String>) {
        self.violation.get_or_insert(what.into());
    }

    pub(super) fn pass(&mut self) {
        let out = |client: &Client| client.process.as_ref().is_some_and(|p| p.out.is_some());
        if self
            .clients
            .iter()
            .any(|client| !client.frozen && out(client))
        {
            self.left.slow -= 1;
        }
        self.seconds += 1;
        let now = self.moment();
        self.excused.retain(|(_, until)| now <= *until);
        for client in 0..2 {
            let adrift = &mut self.clients[client].adrift;
            adrift.retain(|adrift| now <= adrift.sent_at.plus(ADRIFT));
            if !self.clients[client].frozen {
                self.catch_up(client);
            }
        }
    }

    /// Carries out everything that is due on a client: the guard's deadlines first.
    pub(super) fn catch_up(&mut self, client: usize) {
        let now = self.moment();
        self.clients[client]
            .orphan
            .take_if(|orphan| now >= orphan.kill_at);
        self.guard_looks(client);
        self.tell(client, Event::Tick);
    }

    pub(super) fn start(&mut self, client: usize, scenario: &Scenario) {
        self.sessions += 1;
        let left = &mut self.left.starts[client];
        *left -= u8::from(*left < u8::MAX);
        let claim = Claim {
            group: group(),
            client: name_of(client),
            session: SessionId::from_random(u128::from(self.sessions)),
            expected: scenario.expected.map(name_of),
            failback: scenario.expected == Some(client),
            nested_in: None,
            timing: scenario.timings[client],
            about: About::default(),
        };
        let limits = Limits {
            locks: scenario.locks,
            wait: if scenario.waits[client] {
                Wait::Forever
            } else {
                Wait::No
            },
            ..Limits::default()
        };
        self.clients[client].process = Some(Process {
            run: Run::new(claim, limits),
            out: None,
        });
        self.tell(client, Event::Tick);
    }
}
