//! The token: one row per group.

use std::time::Duration;

use super::names::{ClientId, Fence, GroupName, SessionId, Version};
use super::record::Outcome;
use super::time::{Domain, Stamp, StoreTime};

/// Whether the group's job runs, and what is true only then.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum State {
    /// The token belongs to nobody.
    Free,
    /// The token belongs to a client that is between two runs.
    Idle {
        /// Who the token belongs to.
        client: ClientId,
        /// When the last run ended.
        released_at: Stamp,
    },
    /// A session holds the token.
    Running {
        /// Who the token belongs to.
        client: ClientId,
        /// Which invocation holds it.
        session: SessionId,
        /// The store's time of the session's last sign of life. Only the session stamps it.
        heartbeat_at: Stamp,
    },
}

/// New grants have been stopped by an operator.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pause {
    /// Who stopped them.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Until when, in milliseconds since 1970; `None` until somebody resumes.
    pub until_wall_ms: Option<i64>,
}

/// The token shall go to a certain client when it is next granted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Handoff {
    /// To whom.
    pub to: ClientId,
    /// When that was asked for, in milliseconds since 1970.
    pub at_wall_ms: i64,
    /// The target left it itself, for its failback. An operator's ends a run that yields; this
    /// one waits until the token is idle, since failback ends no run.
    pub for_failback: bool,
}

/// What has been counted since the row was created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Counters {
    /// Grants.
    pub runs: i64,
    /// Runs whose job failed, was killed or timed out.
    pub failures: i64,
    /// Grants to a client other than the one that the token belonged to.
    pub takeovers: i64,
    /// Runs that lost their token or vanished.
    pub losses: i64,
    /// How runs have ended, where the counts above do not tell.
    pub outcomes: Outcomes,
}

/// How runs have ended: each is counted once, in the swap that takes its token. What its
/// session records later changes history alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Outcomes {
    /// Whose job succeeded.
    pub succeeded: i64,
    /// Whose job was killed by a signal. A failure.
    pub signalled: i64,
    /// Whose job was stopped at its time-out. A failure.
    pub timed_out: i64,
    /// Whose job was not started.
    pub not_started: i64,
    /// That vanished: another was granted their token. A loss.
    pub unknown: i64,
    /// Whose token an operator freed by force.
    pub forced: i64,
}

impl Outcomes {
    /// Counts a run that ended like this.
    pub const fn count(&mut self, outcome: Outcome) {
        let counter = match outcome {
            Outcome::Succeeded => &mut self.succeeded,
            Outcome::Signalled => &mut self.signalled,
            Outcome::TimedOut => &mut self.timed_out,
            Outcome::NotStarted => &mut self.not_started,
            Outcome::Unknown => &mut self.unknown,
            // Told by the failures and the losses, less what is counted here.
            Outcome::Failed | Outcome::Lost | Outcome::Running => return,
        };
        *counter = counter.saturating_add(1);
    }
}

impl Counters {
    /// The runs that are over, by outcome in a word. `running`: the last one is not over. The
    /// last word stands for those that an older tokenrun ended, which kept no such counts.
    #[must_use]
    pub fn by_outcome(&self, running: bool) -> [(&'static str, i64); 9] {
        let Outcomes {
            succeeded,
            signalled,
            timed_out,
            not_started,
            unknown,
            forced,
        } = self.outcomes;
        let less = |all: i64, some: &[i64]| {
            let left = some.iter().fold(all, |left, n| left.saturating_sub(*n));
            left.max(0)
        };
        let told = [self.failures, self.losses, succeeded, not_started, forced];
        let over = less(self.runs, &[i64::from(running)]);
        [
            (Outcome::Succeeded.as_str(), succeeded),
            (
                Outcome::Failed.as_str(),
                less(self.failures, &[signalled, timed_out]),
            ),
            (Outcome::Signalled.as_str(), signalled),
            (Outcome::TimedOut.as_str(), timed_out),
            (Outcome::Lost.as_str(), less(self.losses, &[unknown])),
            (Outcome::Unknown.as_str(), unknown),
            (Outcome::NotStarted.as_str(), not_started),
            ("forced", forced),
            ("other", less(over, &told)),
        ]
    }
}

/// One group's token.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Row {
    /// What must run on one node at a time.
    pub group: GroupName,
    /// Changes with every swap.
    pub version: Version,
    /// The last version that the running session itself wrote; operators keep it.
    pub session_version: Option<Version>,
    /// Rises at every grant. 0: never granted.
    pub fence: Fence,
    /// The domain that the last grant was made in.
    pub granted_domain: Option<Domain>,
    /// Whether the job runs.
    pub state: State,
    /// The configured primary; a failover does not change it.
    pub expected_client: Option<ClientId>,
    /// The domain of the stamp that the state is judged by: the heartbeat while
    /// running, the release while idle, the creation before the first grant.
    pub domain: Domain,
    /// When the row was created.
    pub created_at: Stamp,
    /// When the token was last granted (in `granted_domain`).
    pub acquired_at: Option<Stamp>,
    /// How long the holder may be silent.
    pub takeover_after: Duration,
    /// How long after a run other clients are refused outright.
    pub keep: Duration,
    /// How long a client that is not preferred waits.
    pub head_start: Duration,
    /// The least time from this grant to the next. Zero for none.
    pub not_before: Duration,
    /// The holder's (or last holder's) host.
    pub host: Option<String>,
    /// The holder's (or last holder's) supervisor.
    pub pid: Option<i32>,
    /// The file whose locks prove that the run lives.
    pub lock_file: Option<String>,
    /// What the holder calls its run.
    pub label: Option<String>,
    /// New grants are stopped.
    pub paused: Option<Pause>,
    /// Who gets the token next.
    pub handoff: Option<Handoff>,
    /// The holder is asked to end its job and to free the token.
    pub revoke_requested: bool,
    /// How the last run ended.
    pub last_outcome: Option<Outcome>,
    /// What has been counted.
    pub counters: Counters,
}

impl Row {
    /// Who the token belongs to, running or between runs.
    #[must_use]
    pub const fn client_bound(&self) -> Option<&ClientId> {
        match &self.state {
            State::Free => None,
            State::Idle { client, .. } | State::Running { client, .. } => Some(client),
        }
    }

    /// The session that holds the token.
    #[must_use]
    pub const fn session(&self) -> Option<&SessionId> {
        match &self.state {
            State::Running { session, .. } => Some(session),
            State::Free | State::Idle { .. } => None,
        }
    }

    /// Who needs no head start: the bound client; if there is none, the expected one.
    #[must_use]
    pub fn preferred_client(&self) -> Option<&ClientId> {
        self.client_bound().or(self.expected_client.as_ref())
    }

    /// The pause that is in force at this time, if any.
    #[must_use]
    pub fn pause_at(&self, now: &StoreTime) -> Option<&Pause> {
        self.paused
            .as_ref()
            .filter(|pause| pause.until_wall_ms.is_none_or(|u| now.stamp.wall_ms < u))
    }

    /// Whether a running session has been silent for longer than it may be, as
    /// far as can be told for showing it: where its stamp is of another domain,
    /// by the wall clock. The rule never asks this.
    #[must_use]
    pub fn is_silent(&self, now: &StoreTime) -> bool {
        match &self.state {
            State::Running { heartbeat_at, .. } => {
                now.calendar_age_of(*heartbeat_at, Some(&self.domain)) >= self.takeover_after
            }
            State::Free | State::Idle { .. } => false,
        }
    }

    /// Puts the store's time into the stamps that a swap of this kind sets. The
    /// store calls it, inside the swap, so that no time passes between the two.
    pub fn stamp(&mut self, touch: Touch, now: &StoreTime) {
        match touch {
            Touch::Nothing => return,
            Touch::Creation => self.created_at = now.stamp,
            Touch::Grant { creates } => {
                if creates {
                    self.created_at = now.stamp;
                }
                self.acquired_at = Some(now.stamp);
                self.set_heartbeat(now.stamp);
            }
            Touch::Heartbeat => self.set_heartbeat(now.stamp),
            Touch::Release => {
                if let State::Idle { released_at, .. } = &mut self.state {
                    *released_at = now.stamp;
                }
            }
        }
        self.domain = now.domain.clone();
    }

    const fn set_heartbeat(&mut self, stamp: Stamp) {
        if let State::Running { heartbeat_at, .. } = &mut self.state {
            *heartbeat_at = stamp;
        }
    }
}

/// Which stamps the store sets to its own time when it carries out a swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Touch {
    /// An operator's write: none, so that no operator vouches for a session.
    Nothing,
    /// The first look at a group creates its row.
    Creation,
    /// A grant: acquired and heartbeat; the creation too, if it creates the row.
    Grant {
        /// The group had no row.
        creates: bool,
    },
    /// A sign of life.
    Heartbeat,
    /// The end of a run.
    Release,
}
