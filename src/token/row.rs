//! The token: one row per group, with the columns that a store reads and the document that it
//! carries.

use std::time::Duration;

use super::document::{Document, Pause, Run, StampOf};
use super::names::{ClientId, Fence, GroupName, SessionId, Version};
use super::time::{Stamp, StoreTime};

/// The state of the group's job, with the data that exist only while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum State {
    /// The token belongs to no client.
    Free,
    /// The token belongs to a client that is between two runs.
    Idle { client: ClientId },
    /// A session holds the token.
    Running { client: ClientId, run: Box<Run> },
}

/// One group's token.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Row {
    pub group: GroupName,
    /// Changes with every swap.
    pub version: Version,
    /// Rises at every grant. 0: never granted.
    pub fence: Fence,
    pub state: State,
    /// The configured primary; a failover does not change it.
    pub expected_client: Option<ClientId>,
    /// The store's time of the last swap that stamps; [`Document::stamp_of`] tells of which kind
    /// that swap was. An operator's swap does not stamp.
    pub stamped: StoreTime,
    /// Everything else.
    pub document: Document,
}

impl Row {
    /// The token of a group at the time `now` that was never written: free, with fence 0 and no terms.
    pub fn unwritten(group: GroupName, now: StoreTime) -> Self {
        Self {
            group,
            version: Version::from_stored(0),
            fence: Fence::default(),
            state: State::Free,
            expected_client: None,
            stamped: now,
            document: Document::default(),
        }
    }

    /// The client that the token belongs to, running or between runs.
    pub const fn client_bound(&self) -> Option<&ClientId> {
        match &self.state {
            State::Free => None,
            State::Idle { client } | State::Running { client, .. } => Some(client),
        }
    }

    /// The run that holds the token.
    pub fn run(&self) -> Option<&Run> {
        match &self.state {
            State::Running { run, .. } => Some(run),
            State::Free | State::Idle { .. } => None,
        }
    }

    /// The session that holds the token.
    pub fn session(&self) -> Option<&SessionId> {
        self.run().map(|run| &run.session)
    }

    /// The client that needs no head start: the bound one; if there is none, the expected one. None while
    /// another gives way.
    pub fn preferred_client(&self) -> Option<&ClientId> {
        if self.document.gives_way.is_some() {
            return None;
        }
        self.client_bound().or(self.expected_client.as_ref())
    }

    /// True if this client waits the head start for any other.
    pub fn gives_way(&self, client: &ClientId) -> bool {
        self.document.gives_way.as_ref() == Some(client)
    }

    /// The client that an open token goes to first: the target of a hand-off, else the preferred one.
    pub fn next_client(&self) -> Option<&ClientId> {
        let handoff = self.document.handoff.as_ref();
        handoff
            .map(|handoff| &handoff.to)
            .or_else(|| self.preferred_client())
    }

    /// The last heartbeat of the session that holds the token.
    pub const fn heartbeat_at(&self) -> Option<Stamp> {
        match self.state {
            State::Running { .. } => Some(self.stamped.stamp),
            State::Free | State::Idle { .. } => None,
        }
    }

    /// When the last run ended, if the token is between two runs.
    pub const fn released_at(&self) -> Option<Stamp> {
        match self.state {
            State::Idle { .. } => Some(self.stamped.stamp),
            State::Free | State::Running { .. } => None,
        }
    }

    /// When the token was last granted, in the document's `granted_epoch`.
    pub fn acquired_at(&self) -> Option<Stamp> {
        match self.document.stamp_of {
            StampOf::Granted => Some(self.stamped.stamp),
            _ => self.document.acquired,
        }
    }

    /// How much of the `--at-least` of the last grant is left, by the calendar.
    pub fn too_soon_for(&self, now: &StoreTime) -> Option<Duration> {
        let granted = self.document.granted_epoch.as_ref();
        let age = now.calendar_age_of(self.acquired_at()?, granted);
        let not_before = self.document.not_before;
        (age < not_before).then(|| not_before.saturating_sub(age))
    }

    /// When the token was created.
    pub fn created_at(&self) -> Stamp {
        let created = self.document.created.or(self.document.acquired);
        created.unwrap_or(self.stamped.stamp)
    }

    /// Copies into the document what only the stamp records, before another stamp replaces it, or
    /// before the state no longer shows which event it records.
    pub fn keep_stamp(&mut self) {
        let stamp = self.stamped.stamp;
        match self.document.stamp_of {
            StampOf::Created => self.document.created = Some(stamp),
            StampOf::Granted => {
                self.document.created.get_or_insert(stamp);
                self.document.acquired = Some(stamp);
            }
            StampOf::Heartbeat | StampOf::Released => {}
        }
    }

    /// The pause that is in force at this time, if any.
    pub fn pause_at(&self, now: &StoreTime) -> Option<&Pause> {
        let paused = self.document.paused.as_ref();
        paused.filter(|pause| pause.is_in_force(now))
    }

    /// The age of the stamp; `None` if unknown.
    pub fn age(&self, now: &StoreTime) -> Option<std::time::Duration> {
        now.age_of(self.stamped.stamp, Some(&self.stamped.epoch))
    }

    /// The longest lease that a session of this group may have had.
    pub fn longest_lease(&self) -> Duration {
        let document = &self.document;
        document.longest_takeover_after.max(document.takeover_after)
    }

    /// True if a running session has been silent for longer than allowed, as far as a display can
    /// know: with a stamp of another clock epoch, by the wall clock. The rule never uses this.
    pub fn is_silent(&self, now: &StoreTime) -> bool {
        let StoreTime { epoch, stamp } = &self.stamped;
        let age = now.calendar_age_of(*stamp, Some(epoch));
        self.run().is_some() && age >= self.document.takeover_after
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::rule::tests::fixture::*;

    #[test]
    fn a_handoff_comes_before_the_client_that_is_preferred() {
        assert_eq!(idle("a").next_client(), Some(&client("a")));
        assert_eq!(handed_to(idle("a"), "b").next_client(), Some(&client("b")));
        assert_eq!(expecting(free(), "c").next_client(), Some(&client("c")));
        assert_eq!(free().next_client(), None);
    }

    #[test]
    fn a_running_session_is_silent_once_its_takeover_after_is_over() {
        let lease = running("a").document.takeover_after;
        let after = |row: Row, by: Duration| {
            let now = seen(row.clone()).after(by).now;
            row.is_silent(&now)
        };
        assert!(after(running("a"), lease));
        assert!(!after(running("a"), lease - Duration::from_millis(1)));
        assert!(!after(idle("a"), lease));
    }

    #[test]
    fn a_grant_of_a_new_token_is_when_it_was_created() {
        let granted = but(running("a"), |row| {
            row.document.stamp_of = StampOf::Granted;
            row.document.created = None;
        });
        let kept = but(granted.clone(), Row::keep_stamp);
        assert_eq!(kept.document.created, Some(granted.stamped.stamp));
        let earlier = but(granted, |row| {
            row.document.created = Some(row.stamped.stamp.minus(s(60)));
        });
        let kept = but(earlier.clone(), Row::keep_stamp);
        assert_eq!(kept.document.created, earlier.document.created);
    }
}
