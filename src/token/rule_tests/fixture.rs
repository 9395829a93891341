//! Small builders of rows, claims and looks. A test states only its differences.

use std::time::Duration;

use crate::token::WallTime;
use crate::token::{
    About, Claim, ClientId, ClockEpoch, Decision, Document, Evidence, Fence, GrantKind, GroupName,
    Handoff, Incarnation, IncarnationNote, Look, Memory, Others, Pause, QueuePosition, Row, Run,
    SessionId, Stamp, StampOf, State, StoreTime, Timing, Version, Wishes, decide,
    document::VERSION,
};

/// The time of every event in a fresh row.
pub(crate) const THEN: Stamp = Stamp {
    tick_ms: 5_000_000,
    wall: WallTime(1_790_000_000_000),
};

/// The holder's terms in a fresh row: no two are equal.
pub(crate) const TAKEOVER_AFTER: Duration = Duration::from_secs(100);
pub(crate) const KEEP: Duration = Duration::from_secs(50);
pub(crate) const HEAD_START: Duration = Duration::from_secs(7);

pub(crate) const MS: Duration = Duration::from_millis(1);

pub(crate) const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn but<T>(mut value: T, change: impl FnOnce(&mut T)) -> T {
    change(&mut value);
    value
}

pub(crate) fn client(name: &str) -> ClientId {
    ClientId::new(name).unwrap()
}

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

pub(crate) fn epoch(name: &str) -> ClockEpoch {
    ClockEpoch(name.into())
}

pub(crate) fn timing() -> Timing {
    Timing::new(&Wishes {
        heartbeat: Some(s(10)),
        takeover_after: Some(TAKEOVER_AFTER),
        keep: Some(KEEP),
        head_start: Some(HEAD_START),
        at_least: Some(s(0)),
        kill_grace: Some(s(5)),
        store_timeout: Some(s(4)),
    })
    .unwrap()
}

/// A client's claim, by its session `<client>1`.
pub(crate) fn claim(name: &str) -> Claim {
    Claim {
        group: GroupName::new("g").unwrap(),
        client: client(name),
        session: session(&format!("{name}1")),
        expected: None,
        failback: false,
        nested_in: None,
        timing: timing(),
        about: About {
            program: "job".into(),
            ..About::default()
        },
    }
}

/// The expected client's claim with `--failback`.
pub(crate) fn failback(name: &str) -> Claim {
    but(claim(name), |c| c.failback = true)
}

/// A row that was created and never granted.
pub(crate) fn created() -> Row {
    Row {
        group: GroupName::new("g").unwrap(),
        version: Version::from_stored(1),
        fence: Fence(0),
        state: State::Free,
        expected_client: None,
        stamped: StoreTime {
            stamp: THEN,
            epoch: epoch("d"),
        },
        document: Document {
            reader: VERSION,
            takeover_after: TAKEOVER_AFTER,
            keep: KEEP,
            head_start: HEAD_START,
            ..Document::default()
        },
    }
}

fn granted(state: State, stamp_of: StampOf) -> Row {
    but(created(), |row| {
        row.fence = Fence(THEN.wall.0);
        row.state = state;
        row.document.granted_epoch = Some(epoch("d"));
        row.document.stamp_of = stamp_of;
        row.document.created = Some(THEN);
        row.document.acquired = Some(THEN);
    })
}

/// The run of a session.
pub(crate) fn run_by(name: &str) -> Box<Run> {
    Box::new(Run {
        session: session(name),
        lock_file: None,
        program: "run.sh".into(),
        once_key: None,
        grant: GrantKind::Bind,
        previous_client: None,
        move_on_failure: false,
        other: Others::new(),
    })
}

/// The lock file of the run that holds the token, to be changed.
pub(crate) fn lock_file(row: &mut Row) -> &mut Option<String> {
    match &mut row.state {
        State::Running { run, .. } => &mut run.lock_file,
        other => panic!("{other:?} has no run"),
    }
}

/// A token that was granted once and belongs to no client.
pub(crate) fn free() -> Row {
    granted(State::Free, StampOf::Released)
}

/// A token whose client's last run ended [`THEN`].
pub(crate) fn idle(name: &str) -> Row {
    let client = client(name);
    granted(State::Idle { client }, StampOf::Released)
}

/// A token that the client's session `<client>0` holds; its heartbeat was [`THEN`].
pub(crate) fn running(name: &str) -> Row {
    let state = State::Running {
        client: client(name),
        run: run_by(&format!("{name}0")),
    };
    but(granted(state, StampOf::Heartbeat), |row| {
        row.document.session_version = Some(row.version);
    })
}

pub(crate) fn expecting(row: Row, name: &str) -> Row {
    but(row, |row| row.expected_client = Some(client(name)))
}

pub(crate) fn handed_to(row: Row, name: &str) -> Row {
    but(row, |row| {
        row.document.handoff = Some(Handoff {
            to: client(name),
            at: THEN.wall,
            for_failback: false,
            other: Others::new(),
        });
    })
}

pub(crate) fn paused(row: Row) -> Row {
    but(row, |row| row.document.paused = Some(pause(None)))
}

pub(crate) fn pause(until: Option<WallTime>) -> Pause {
    Pause {
        by: "admin".into(),
        reason: "disk full".into(),
        until,
        other: Others::new(),
    }
}

fn millis(by: Duration) -> i64 {
    i64::try_from(by.as_millis()).unwrap()
}

/// A look at a row, with everything that the reader knows.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) row: Row,
    pub(crate) now: StoreTime,
    pub(crate) position: QueuePosition,
    pub(crate) evidence: Evidence,
    pub(crate) unchanged_for: Duration,
    pub(crate) memory: Memory,
}

/// A first look at the row, in its own clock epoch, at the time of its stamps.
pub(crate) fn seen(row: Row) -> Seen {
    Seen {
        row,
        now: StoreTime {
            epoch: epoch("d"),
            stamp: THEN,
        },
        position: QueuePosition::default(),
        evidence: Evidence::None,
        unchanged_for: Duration::ZERO,
        memory: Memory::SOUND,
    }
}

impl Seen {
    /// The look is made later on the store's clock, without watching.
    pub(crate) fn after(self, by: Duration) -> Self {
        but(self, |seen| seen.now = seen.now.plus(by))
    }

    /// The look is made earlier than the row's stamps say.
    pub(crate) fn before(self, by: Duration) -> Self {
        but(self, |seen| {
            seen.now.stamp.tick_ms -= millis(by);
            seen.now.stamp.wall.0 -= millis(by);
        })
    }

    /// The reader has watched the version stand still for so long.
    pub(crate) fn watched(self, by: Duration) -> Self {
        but(self, |seen| seen.unchanged_for = by)
    }

    /// Time passes for the store and for the reader, and the row does not change.
    pub(crate) fn wait(self, by: Duration) -> Self {
        let watched = self.unchanged_for.saturating_add(by);
        self.after(by).watched(watched)
    }

    /// The store's clock epoch has changed.
    pub(crate) fn elsewhere(self) -> Self {
        but(self, |seen| seen.now.epoch = epoch("other"))
    }

    pub(crate) fn dead(self) -> Self {
        but(self, |seen| seen.evidence = Evidence::Dead)
    }

    pub(crate) fn alive(self) -> Self {
        but(self, |seen| {
            seen.evidence = Evidence::Alive(vec!["job (7)".into()]);
        })
    }

    pub(crate) fn behind(self, ahead: usize) -> Self {
        but(self, |seen| {
            seen.position = QueuePosition {
                ahead,
                waiting: true,
            };
        })
    }

    pub(crate) fn first_in_the_queue(self) -> Self {
        self.behind(0)
    }

    /// The client is paused in every group.
    pub(crate) fn pausing(self, client: &ClientId, until: Option<WallTime>) -> Self {
        but(self, |seen| {
            let incarnation = Incarnation("i".into());
            let version = Version::from_stored(1);
            let mut note = IncarnationNote::of_new(incarnation, true, &seen.now, version);
            note.paused_clients.insert(client.clone(), pause(until));
            seen.memory.incarnation = Some(note.incarnation.clone());
            seen.memory.note = Some(note);
        })
    }

    /// The rule's decision on this claim.
    pub(crate) fn by(&self, claim: &Claim) -> Decision {
        decide(
            claim,
            &Look {
                row: Some(&self.row),
                now: &self.now,
                memory: &self.memory,
                position: self.position,
                evidence: &self.evidence,
                unchanged_for: self.unchanged_for,
                heard: false,
            },
        )
    }
}
