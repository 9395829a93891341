//! Records for the tests of the page.

use std::time::Duration;

use crate::token::{
    ActRecord, Actor, ClientId, Fence, GrantKind, GroupName, Others, Outcome, RefusalRecord,
    RunRecord, SessionId, Version, WallTime,
};

/// 2026-11-21 13:00:13.5 UTC.
pub(super) const NOW: WallTime = WallTime(1_795_266_013_500);

/// So many minutes before [`NOW`].
pub(super) fn ago(minutes: u64) -> WallTime {
    NOW.minus(Duration::from_secs(minutes * 60))
}

fn client(name: &str) -> ClientId {
    ClientId::new(name).unwrap()
}

fn group() -> GroupName {
    GroupName::new("g").unwrap()
}

pub(super) fn run(
    name: &str,
    started_at: WallTime,
    ended_at: Option<WallTime>,
    outcome: Outcome,
) -> RunRecord {
    RunRecord {
        group: group(),
        fence: Fence(started_at.0),
        session: SessionId::new("s").unwrap(),
        client: client(name),
        previous_client: None,
        host: None,
        pid: None,
        label: None,
        program: "job".into(),
        once_key: None,
        grant: GrantKind::Renew,
        started_at,
        ended_at,
        outcome,
        exit_code: None,
        signal: None,
        revoked: false,
        reason: None,
        output: None,
        moved_on: false,
        other: Others::new(),
    }
}

/// A run that took the token over from another client.
pub(super) fn moved(from: &str, run: RunRecord) -> RunRecord {
    RunRecord {
        grant: GrantKind::Takeover,
        previous_client: Some(client(from)),
        ..run
    }
}

pub(super) fn refusal(
    name: &str,
    first_at: WallTime,
    last_at: WallTime,
    count: u64,
) -> RefusalRecord {
    RefusalRecord {
        group: group(),
        client: client(name),
        reason: "held".into(),
        cause: String::new(),
        first_at,
        last_at,
        count,
        fence: Fence(1),
        host: None,
        holder: None,
        paused_by: None,
        paused_reason: None,
        paused_until: None,
        ahead: None,
        error: None,
        other: Others::new(),
    }
}

pub(super) fn act(word: &str, at: WallTime) -> ActRecord {
    ActRecord {
        group: group(),
        at,
        version: Version::from_stored(1),
        act: word.into(),
        client: None,
        until: None,
        once_key: None,
        incarnation: None,
        fence: Fence(1),
        actor: Actor {
            by: "root".into(),
            host: None,
            reason: Some("works".into()),
        },
    }
}
