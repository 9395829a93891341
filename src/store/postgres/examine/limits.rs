//! How long a server keeps what a dead client has left behind, and whether a pooler stands
//! in between.

use std::time::Duration;

use super::{Over, Server, flag, list, number, text};
use crate::duration::rounded;
use crate::store::checkup::Check;
use crate::token::Timing;

/// What a connection's process may be older than the connection, for the time that
/// connecting takes.
const YOUNG: Duration = Duration::from_secs(1);

/// Whether the server's process under this connection is another's: not the one that was
/// told at the login, or older than the connection.
pub(super) fn is_pooled(
    told: Option<i32>,
    pid: i32,
    age: Duration,
    connected_for: Duration,
) -> bool {
    told.is_some_and(|told| told != pid) || age > connected_for + YOUNG
}

pub(super) fn pooler(is_pooled: bool) -> Check {
    const STEP: &str = "pooler";
    if is_pooled {
        return Check::fine(
            STEP,
            "one is in between: runs work as without; who waits in line is not told of a release, and looks \
             about once a second",
        );
    }
    Check::fine(STEP, "none is in between")
}

/// What the server does with a client that is gone.
#[derive(Debug, Clone, Default)]
struct Limits {
    role: String,
    /// Over a Unix socket.
    is_local: bool,
    /// After how much silence a dead host is noticed.
    noticed: Duration,
    /// Zero: never.
    idle_in_transaction: Duration,
    /// Roles of jobs without such a limit.
    unlimited: Vec<String>,
}

pub(super) fn examine(
    server: &mut Server<'_, '_>,
    timing: &Timing,
    is_pooled: bool,
) -> Result<(), Over> {
    let Some(row) = server.ask_aside("keepalives", &server.statements.doctor_limits())? else {
        return Ok(());
    };
    let seconds = |name| number(&row, name).unsigned_abs();
    let noticed = seconds("interval_s").saturating_mul(seconds("count"));
    let limits = Limits {
        role: text(&row, "role"),
        is_local: flag(&row, "local"),
        noticed: Duration::from_secs(seconds("idle_s").saturating_add(noticed)),
        idle_in_transaction: Duration::from_millis(seconds("idle_in_transaction_ms")),
        unlimited: list(&row, "unlimited"),
    };
    server.tell(keepalives(&limits, timing, is_pooled));
    server.tell(idle_in_transaction(&limits, timing));
    Ok(())
}

fn keepalives(limits: &Limits, timing: &Timing, is_pooled: bool) -> Check {
    const STEP: &str = "keepalives";
    if limits.is_local {
        return Check::fine(STEP, "a Unix socket needs none");
    }
    let noticed = rounded(limits.noticed);
    let of = if is_pooled { " of the pooler" } else { "" };
    let found =
        format!("the server notices after {noticed} that the host{of} at the other end is gone");
    if limits.noticed <= timing.takeover_after {
        return Check::fine(STEP, found);
    }
    let role = &limits.role;
    Check::warn(
        STEP,
        format!(
            "{found}; so long a dead job's open transaction may hold a takeover off, if it called tokenrun_fence"
        ),
        format!(
            "for the roles of such jobs (here {role:?}): ALTER ROLE … SET tcp_keepalives_idle = 10, \
             tcp_keepalives_interval = 5 and tcp_keepalives_count = 3"
        ),
    )
}

fn idle_in_transaction(limits: &Limits, timing: &Timing) -> Check {
    const STEP: &str = "idle_in_transaction";
    const REMEDY: &str =
        "for the roles of such jobs: ALTER ROLE … SET idle_in_transaction_session_timeout = '1min'";
    const SO_LONG: &str =
        "a job's open transaction may hold a takeover off, if it called tokenrun_fence";
    if !limits.unlimited.is_empty() {
        let roles = limits.unlimited.join(", ");
        let found = format!(
            "roles that may call tokenrun_fence and have no limit: {roles}; without an end {SO_LONG}"
        );
        return Check::warn(STEP, found, REMEDY);
    }
    let role = &limits.role;
    if limits.idle_in_transaction.is_zero() {
        let found = format!("{role:?} has no limit; without an end {SO_LONG}");
        return Check::warn(STEP, found, REMEDY);
    }
    let limit = rounded(limits.idle_in_transaction);
    let found = format!("{role:?} may leave a transaction open for {limit}");
    if limits.idle_in_transaction > timing.takeover_after {
        return Check::warn(STEP, format!("{found}; so long {SO_LONG}"), REMEDY);
    }
    Check::fine(STEP, found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::checkup::Verdict;
    use crate::token::Wishes;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_pooler_is_known_by_another_pid_or_an_older_process() {
        assert!(!is_pooled(Some(7), 7, SECOND, SECOND));
        assert!(!is_pooled(None, 7, SECOND, SECOND));
        assert!(is_pooled(Some(8), 7, SECOND, SECOND));
        assert!(is_pooled(None, 7, SECOND * 60, SECOND));
    }

    #[test]
    fn the_systems_keepalives_are_too_slow_and_those_advised_are_not() {
        let timing = Timing::new(&Wishes::default()).unwrap();
        let of = |seconds| Limits {
            noticed: Duration::from_secs(seconds),
            ..Limits::default()
        };
        // Linux's: 7200 s, then 9 times 75 s.
        assert_eq!(
            keepalives(&of(7_875), &timing, false).verdict,
            Verdict::Warn
        );
        assert_eq!(keepalives(&of(25), &timing, false).verdict, Verdict::Fine);
        let local = Limits {
            is_local: true,
            ..of(0)
        };
        assert_eq!(keepalives(&local, &timing, false).verdict, Verdict::Fine);
    }

    #[test]
    fn a_transaction_without_an_end_is_warned_of() {
        let timing = Timing::new(&Wishes::default()).unwrap();
        let of = |seconds, unlimited: &[&str]| Limits {
            idle_in_transaction: Duration::from_secs(seconds),
            unlimited: unlimited.iter().map(ToString::to_string).collect(),
            ..Limits::default()
        };
        assert_eq!(
            idle_in_transaction(&of(0, &[]), &timing).verdict,
            Verdict::Warn
        );
        assert_eq!(
            idle_in_transaction(&of(60, &[]), &timing).verdict,
            Verdict::Fine
        );
        assert_eq!(
            idle_in_transaction(&of(3_600, &[]), &timing).verdict,
            Verdict::Warn
        );
        let job = idle_in_transaction(&of(60, &["app"]), &timing);
        assert!(
            job.verdict == Verdict::Warn && job.found.contains("app"),
            "{job:?}"
        );
    }
}
