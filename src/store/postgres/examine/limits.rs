//! How long a server keeps the remains of a dead client, and whether a pooler is in between.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::server::{Over, Server, flag, list, number, text};
use crate::duration::rounded;
use crate::store::checkup::Check;
use crate::token::Timing;

/// How much older than the connection its server process may be, for the time of connecting.
const YOUNG: Duration = Duration::from_secs(1);

/// What is between this process and the server process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Between {
    /// Nothing that makes connections of its own.
    Nothing,
    Pooler,
    /// Perhaps a pooler: no view shows it.
    Unknown,
}

/// The address of this connection as the server sees it; none for a Unix socket.
pub(super) type Client = Option<(IpAddr, u16)>;

/// Compares the `own` end of a connection, if it has one, with the server's view. A server process
/// that is older than the connection is shared through a pooler too.
pub(super) fn between(
    own: Option<SocketAddr>,
    seen: Client,
    age: Duration,
    connected_for: Duration,
) -> Between {
    let own = own.map(|own| (own.ip().to_canonical(), own.port()));
    let is_old = age > connected_for + YOUNG;
    match (own, seen) {
        _ if is_old => Between::Pooler,
        (Some(own), Some(seen)) if own == seen => Between::Nothing,
        (Some(_), None) | (None, Some(_)) => Between::Pooler,
        // Or a translation of addresses.
        (Some(_), Some(_)) => Between::Unknown,
        // A pooler may have a Unix socket on both sides.
        (None, None) => Between::Unknown,
    }
}

pub(super) fn pooler(between: Between, own: Option<SocketAddr>) -> Check {
    const STEP: &str = "pooler";
    const POOLED: &str = "runs work as without; a waiter gets no notification of a release, and looks about once a second";
    match (between, own) {
        (Between::Pooler, _) => Check::fine(STEP, format!("one is in between: {POOLED}")),
        (Between::Nothing, _) => Check::fine(STEP, "none is in between"),
        (Between::Unknown, Some(_)) => Check::unknown(
            STEP,
            "whether one is in between can't be known: the server sees this connection come from \
             another address, as behind a pooler, a proxy or a translation of addresses",
            format!("nothing; behind a pooler {POOLED}"),
        ),
        (Between::Unknown, None) => Check::unknown(
            STEP,
            "whether one is in between can't be known over a Unix socket",
            format!("nothing; behind a pooler {POOLED}"),
        ),
    }
}

/// What the server does about a lost client.
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
    between: Between,
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
    server.tell(keepalives(&limits, timing, between));
    server.tell(idle_in_transaction(&limits, timing));
    Ok(())
}

fn keepalives(limits: &Limits, timing: &Timing, between: Between) -> Check {
    const STEP: &str = "keepalives";
    if limits.is_local {
        return Check::fine(STEP, "a Unix socket needs none");
    }
    let noticed = rounded(limits.noticed);
    let of = match between {
        Between::Pooler => " of the pooler",
        Between::Nothing | Between::Unknown => "",
    };
    let found =
        format!("the server notices after {noticed} that the host{of} at the other end is gone");
    if limits.noticed <= timing.takeover_after {
        return Check::fine(STEP, found);
    }
    let role = &limits.role;
    Check::warn(
        STEP,
        format!(
            "{found}; for that time the open transaction of a dead job may delay a takeover, if it called tokenrun_fence"
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
        "the open transaction of a job may delay a takeover, if it called tokenrun_fence";
    if !limits.unlimited.is_empty() {
        let roles = limits.unlimited.join(", ");
        let found = format!(
            "roles that may call tokenrun_fence and have no limit: {roles}; without a limit {SO_LONG}"
        );
        return Check::warn(STEP, found, REMEDY);
    }
    let role = &limits.role;
    if limits.idle_in_transaction.is_zero() {
        let found = format!("{role:?} has no limit: {SO_LONG}");
        return Check::warn(STEP, found, REMEDY);
    }
    let limit = rounded(limits.idle_in_transaction);
    let found = format!("{role:?} may leave a transaction open for {limit}");
    if limits.idle_in_transaction > timing.takeover_after {
        return Check::warn(STEP, format!("{found}; for that time {SO_LONG}"), REMEDY);
    }
    Check::fine(STEP, found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::checkup::Verdict;
    use crate::store::checkup::pinned::pin;
    use crate::token::Wishes;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_pooler_is_known_by_its_own_end_or_by_an_older_process() {
        let own = || "127.0.0.1:40001".parse().ok();
        let mapped = "[::ffff:127.0.0.1]:40001".parse().ok();
        let seen = |port| Some(("127.0.0.1".parse().unwrap(), port));
        let between = |own, seen| between(own, seen, SECOND, SECOND);
        assert_eq!(between(own(), seen(40_001)), Between::Nothing);
        assert_eq!(between(mapped, seen(40_001)), Between::Nothing);
        // Over a Unix socket of the pooler's own.
        assert_eq!(between(own(), None), Between::Pooler);
        assert_eq!(between(None, seen(40_001)), Between::Pooler);
        let old = super::between(own(), seen(40_001), SECOND * 60, SECOND);
        assert_eq!(old, Between::Pooler);
    }

    #[test]
    fn a_pooler_that_can_not_be_recognized_is_unknown() {
        let own = "192.0.2.7:40001".parse().ok();
        let seen = Some(("198.51.100.1".parse().unwrap(), 40_001));
        for (own, seen) in [(own, seen), (None, None)] {
            let between = between(own, seen, SECOND, SECOND);
            assert_eq!(between, Between::Unknown);
            let check = pooler(between, own);
            assert_eq!(check.verdict, Verdict::Unknown);
            assert!(check.found.contains("can't be known"), "{check:?}");
        }
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
            keepalives(&of(7_875), &timing, Between::Nothing).verdict,
            Verdict::Warn
        );
        let short = keepalives(&of(25), &timing, Between::Nothing);
        assert_eq!(short.verdict, Verdict::Fine);
        let local = Limits {
            is_local: true,
            ..of(0)
        };
        let local = keepalives(&local, &timing, Between::Unknown);
        assert_eq!(local.verdict, Verdict::Fine);
    }

    #[test]
    fn the_texts_are_pinned() {
        let timing = Timing::new(&Wishes::default()).unwrap();
        let own = "192.0.2.7:40001".parse().ok();
        let mut cases = Vec::new();
        for (between, own) in [
            (Between::Pooler, own),
            (Between::Nothing, own),
            (Between::Unknown, own),
            (Between::Unknown, None),
        ] {
            cases.push((
                format!("{between:?}, own end: {}", own.is_some()),
                vec![pooler(between, own)],
            ));
        }
        for (is_local, noticed, idle, unlimited) in [
            (true, 0, 0, &[][..]),
            (false, 25, 60, &[]),
            (false, 7_875, 3_600, &[]),
            (false, 25, 60, &["app", "web"]),
        ] {
            let limits = Limits {
                role: "etl".into(),
                is_local,
                noticed: SECOND * noticed,
                idle_in_transaction: SECOND * idle,
                unlimited: unlimited.iter().map(ToString::to_string).collect(),
            };
            for between in [Between::Nothing, Between::Pooler] {
                cases.push((
                    format!(
                        "local: {is_local}, noticed after {noticed} s, idle for {idle} s, without a limit {unlimited:?}, {between:?}"
                    ),
                    vec![
                        keepalives(&limits, &timing, between),
                        idle_in_transaction(&limits, &timing),
                    ],
                ));
            }
        }
        pin("postgres_limits", cases);
    }

    #[test]
    fn a_transaction_without_an_end_is_a_warning() {
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
