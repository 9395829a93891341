//! What a failover would lose, and whether the servers agree on the primary.

use super::met::Met;
use super::server::{Over, Server, flag, number, text};
use crate::store::Trouble;
use crate::store::checkup::Check;
use crate::store::checkup::clock::apart;

/// How far apart two servers' clocks may be for the fence to rise in a failover, which puts it
/// ahead by a minute.
const FENCE_US: i64 = 60_000_000;

const REPLICATION: &str = "replication";

/// A primary's replication, as far as the role may see it.
#[derive(Debug, Clone, Default)]
struct Replication {
    /// The database's `synchronous_commit`.
    commit: String,
    /// Its `synchronous_standby_names`.
    names: String,
    syncs: bool,
    /// Standbys that are connected.
    standbys: i64,
    /// Those of them that commits wait for.
    synchronous: i64,
    /// Those whose state the role may not see.
    hidden: i64,
    /// Replication slots.
    slots: i64,
}

/// Checks what a failover would lose, and whether there is any standby.
pub(super) fn examine(server: &mut Server<'_, '_>, several: bool) -> Result<Option<bool>, Over> {
    let Some(row) = server.ask_aside(REPLICATION, &server.statements.doctor_replication())? else {
        return Ok(None);
    };
    let found = Replication {
        commit: text(&row, "commit"),
        names: text(&row, "names"),
        syncs: flag(&row, "syncs"),
        standbys: number(&row, "standbys"),
        synchronous: number(&row, "synchronous"),
        hidden: number(&row, "hidden"),
        slots: number(&row, "slots"),
    };
    server.tell(durability(&found));
    server.tell(replication(&found, several));
    Ok(Some(found.standbys > 0 || found.slots > 0))
}

/// Checks whether a crash of the server's host loses commits.
fn durability(found: &Replication) -> Check {
    const STEP: &str = "durability";
    if !found.syncs {
        return Check::warn(
            STEP,
            "fsync is off: a crash of the server's host can lose grants, or the whole database",
            "set fsync = on",
        );
    }
    let site = &found.commit;
    Check::fine(
        STEP,
        format!(
            "fsync is on; the site's synchronous_commit is {site}, and tokenrun commits with on at least"
        ),
    )
}

fn replication(found: &Replication, several: bool) -> Check {
    const LOSSY: &str =
        "set up a synchronous standby (synchronous_standby_names), and fail over to that one only";
    let Replication {
        names,
        standbys,
        synchronous,
        hidden,
        slots,
        ..
    } = found;
    let counted = match standbys {
        1 => "1 standby follows".to_owned(),
        n => format!("{n} standbys follow"),
    };
    if names.trim().is_empty() {
        let lossy = |found: String| {
            let found = format!(
                "{found} (synchronous_standby_names is empty): a failover can lose the last grants, and then the \
                 next runs wait until their leases are over"
            );
            Check::warn(REPLICATION, found, LOSSY)
        };
        return match (standbys, slots) {
            (1.., _) => lossy(format!("{counted} asynchronously")),
            (_, 1..) => lossy(format!(
                "no standby follows now, and {slots} slots are kept for some"
            )),
            _ if several => {
                lossy("several servers are named, and none follows this one now".into())
            }
            _ => Check::fine(
                REPLICATION,
                "no standby follows and one server is named: there is nothing to fail over to",
            ),
        };
    }
    let waits = format!("synchronous_standby_names is {names:?}");
    if *standbys == 0 || (*hidden == 0 && *synchronous == 0) {
        return Check::fail(
            REPLICATION,
            Trouble::Unavailable,
            format!("{waits}, and no such standby follows: every commit waits until one does"),
            "start that standby, or take its name out",
        );
    }
    if *hidden > 0 {
        return Check::fine(
            REPLICATION,
            format!(
                "{waits}, {counted}; which of them commits wait for this role may not see (GRANT \
                 pg_read_all_stats shows it). Fail over to a synchronous one alone"
            ),
        );
    }
    let rest = match standbys - synchronous {
        0 => String::new(),
        n => format!("; {n} of them asynchronously: never fail over to those"),
    };
    Check::fine(
        REPLICATION,
        format!(
            "{waits}, {counted}, commits wait for {synchronous}: a failover to such a one loses no grant{rest}"
        ),
    )
}

/// The servers that accept writes, each once.
pub(super) fn writable(met: &[Met]) -> Vec<&Met> {
    let mut primaries: Vec<&Met> = Vec::new();
    for one in met.iter().filter(|met| met.is_writable) {
        // Two names may lead to one server.
        if !primaries.iter().any(|other| other.started == one.started) {
            primaries.push(one);
        }
    }
    primaries
}

/// Checks that there is one primary among several servers.
pub(super) fn primary(met: &[Met]) -> Check {
    const STEP: &str = "primary";
    match writable(met).as_slice() {
        [] => Check::fail(
            STEP,
            Trouble::Unavailable,
            "none of the servers can be written to",
            "start the primary, or promote a standby",
        ),
        [one] => Check::fine(STEP, one.host.clone()),
        all => {
            let names: Vec<&str> = all.iter().map(|met| met.host.as_str()).collect();
            Check::fail(
                STEP,
                Trouble::Misconfigured,
                format!(
                    "each of these can be written to: {}; two nodes may use two of them",
                    names.join(", ")
                ),
                "stop all but the right one now, and start an old primary again only as a standby",
            )
        }
    }
}

/// Checks that the servers' clocks are close enough for the fence to rise in a failover.
pub(super) fn clocks(met: &[Met]) -> Option<Check> {
    const STEP: &str = "clocks";
    let first = met.first()?;
    let origin = first.clock?;
    let mut found = Vec::new();
    let mut widest = 0;
    for one in met.get(1..)? {
        let clock = one.clock?;
        // The smallest possible difference.
        let most = clock.most_us.saturating_sub(origin.least_us);
        let least = clock.least_us.saturating_sub(origin.most_us);
        let distance = if least > 0 { least } else { most.min(0) };
        if distance.unsigned_abs() > i64::unsigned_abs(widest) {
            widest = distance;
        }
        found.push(format!(
            "{} is {} {}",
            one.host,
            apart(least.midpoint(most)),
            first.host
        ));
    }
    if found.is_empty() {
        return None;
    }
    let found = found.join("; ");
    Some(if widest.abs() >= FENCE_US {
        Check::warn(
            STEP,
            format!("{found}: after a failover the fence may be lower than before"),
            "run chrony or another NTP client on every server",
        )
    } else {
        Check::fine(STEP, found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::checkup::Verdict;
    use crate::store::checkup::clock::Offset;
    use crate::store::checkup::pinned::pin;

    fn names(names: &str, standbys: i64, synchronous: i64, hidden: i64) -> Verdict {
        let found = Replication {
            names: names.into(),
            standbys,
            synchronous,
            hidden,
            ..Replication::default()
        };
        replication(&found, false).verdict
    }

    #[test]
    fn asynchronous_standbys_are_a_warning() {
        assert_eq!(names("", 0, 0, 0), Verdict::Fine);
        assert_eq!(names("", 1, 0, 0), Verdict::Warn);
        assert_eq!(names(" ", 1, 0, 1), Verdict::Warn);
        let away = Replication {
            slots: 1,
            ..Replication::default()
        };
        assert_eq!(replication(&away, false).verdict, Verdict::Warn);
        assert_eq!(
            replication(&Replication::default(), true).verdict,
            Verdict::Warn
        );
    }

    #[test]
    fn a_synchronous_standby_is_fine_and_one_that_is_away_stops_everything() {
        assert_eq!(names("*", 1, 1, 0), Verdict::Fine);
        assert_eq!(names("*", 2, 1, 0), Verdict::Fine);
        let stuck = Verdict::Fail(Trouble::Unavailable);
        assert_eq!(names("a", 0, 0, 0), stuck);
        assert_eq!(names("a", 1, 0, 0), stuck);
        // A standby whose state is hidden is no failure.
        assert_eq!(names("a", 1, 0, 1), Verdict::Fine);
    }

    fn met(host: &str, started: &str, is_writable: bool, ahead_us: i64) -> Met {
        Met {
            host: host.into(),
            started: started.into(),
            is_writable,
            has_standbys: false,
            clock: Some(Offset {
                least_us: ahead_us - 500,
                most_us: ahead_us + 500,
            }),
        }
    }

    #[test]
    fn there_must_be_one_primary() {
        assert_eq!(primary(&[]).verdict, Verdict::Fail(Trouble::Unavailable));
        let (a, b) = (met("a", "1", true, 0), met("b", "2", false, 0));
        assert_eq!(primary(&[a, b]).verdict, Verdict::Fine);
        let twice = [met("a", "1", true, 0), met("localhost", "1", true, 0)];
        assert_eq!(primary(&twice).verdict, Verdict::Fine);
        let split = [met("a", "1", true, 0), met("b", "2", true, 0)];
        assert_eq!(
            primary(&split).verdict,
            Verdict::Fail(Trouble::Misconfigured)
        );
    }

    #[test]
    fn the_texts_are_pinned() {
        let mut cases = Vec::new();
        for (names, standbys, synchronous, hidden, slots, several) in [
            ("", 0, 0, 0, 0, false),
            ("", 0, 0, 0, 0, true),
            ("", 0, 0, 0, 2, false),
            (" ", 1, 0, 0, 2, false),
            ("", 2, 0, 1, 0, true),
            ("a", 0, 0, 0, 0, false),
            ("a", 1, 0, 0, 0, false),
            ("a", 1, 0, 1, 0, false),
            ("*", 1, 1, 0, 0, false),
            ("*", 3, 1, 0, 0, true),
        ] {
            let found = Replication {
                commit: "local".into(),
                names: names.into(),
                syncs: standbys > 0,
                standbys,
                synchronous,
                hidden,
                slots,
            };
            cases.push((
                format!(
                    "{names:?}: {standbys} standbys, {synchronous} synchronous, {hidden} hidden, {slots} slots, several: {several}"
                ),
                vec![durability(&found), replication(&found, several)],
            ));
        }
        let (a, b, c) = (
            met("a:1", "1", true, 0),
            met("b:2", "2", true, -90_000_000),
            met("c:3", "3", false, 2_000),
        );
        cases.push(("none".into(), vec![primary(&[])]));
        let two = [a, c];
        let checks = vec![primary(&two), clocks(&two).unwrap()];
        cases.push(("one".into(), checks));
        let [a, c] = two;
        let all = [a, b, c];
        let checks = vec![primary(&all), clocks(&all).unwrap()];
        cases.push(("two".into(), checks));
        pin("postgres_failover", cases);
    }

    #[test]
    fn a_standby_a_minute_off_is_a_warning_in_both_directions() {
        for (ahead, verdict) in [
            (0, Verdict::Fine),
            (59_000_000, Verdict::Fine),
            (61_000_000, Verdict::Warn),
            (-61_000_000, Verdict::Warn),
        ] {
            let both = [met("a", "1", true, 0), met("b", "2", false, ahead)];
            assert_eq!(clocks(&both).unwrap().verdict, verdict, "{ahead}");
        }
        assert!(clocks(&[met("a", "1", true, 0)]).is_none());
    }
}
