//! Advice on the durations of a run for a store with these response times. Pure.

use std::time::Duration;

use super::Check;
use crate::duration::rounded;
use crate::token::hidden::quoted;
use crate::token::{GroupName, Row, State, Timing};

/// How long a failover of a database may take: Patroni's defaults (ttl 30 s, `loop_wait` 10 s) and
/// a promotion take less, and so do the figures that the large providers publish.
const FAILOVER: Duration = Duration::from_secs(60);

const SECOND: Duration = Duration::from_secs(1);

/// A call must have time for so many round trips, each as slow as the slowest measured.
const ROUND_TRIPS: u32 = 10;

/// So many heartbeats must be able to fail in a row before a job is ended.
const HEARTBEATS: u128 = 3;

/// A duration with the precision of a round trip, to the nearest second from ten seconds on: a measured
/// hour may be some microseconds short of one.
pub fn precise(duration: Duration) -> String {
    let micros = duration.as_micros();
    if micros < 10_000 {
        return format!("{}.{:02} ms", micros / 1_000, micros % 1_000 / 10);
    }
    if micros < 1_000_000 {
        return format!("{} ms", micros / 1_000);
    }
    if duration < 10 * SECOND {
        return rounded(duration);
    }
    rounded(duration.saturating_add(SECOND / 2))
}

/// Checks whether a call has time enough, if it may have to try so many servers. `what`: the
/// measured operation.
pub fn round_trip(what: &str, round_trips: &[Duration], timing: &Timing, servers: usize) -> Check {
    const STEP: &str = "round_trip";
    let mut sorted = round_trips.to_vec();
    sorted.sort_unstable();
    let middle = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    let longest = sorted.last().copied().unwrap_or_default();
    let found = format!(
        "{what} {} in the middle and {} at most, in {} tries",
        precise(middle),
        precise(longest),
        sorted.len()
    );
    let servers = u32::try_from(servers.max(1)).unwrap_or(u32::MAX);
    let needed = longest.saturating_mul(ROUND_TRIPS.saturating_mul(servers));
    if needed <= timing.store_timeout {
        return Check::fine(STEP, found);
    }
    let least = seconds_up(needed);
    Check::warn(
        STEP,
        format!(
            "{found}; --store-timeout {} is short for that",
            rounded(timing.store_timeout)
        ),
        format!("give --store-timeout {} or more", rounded(least)),
    )
}

/// How long a run goes on while its store is away: takeover-after, less the greatest age of the
/// last heartbeat, less a call that was on its way when the store came back, less the job's grace.
pub fn endurance(timing: &Timing) -> Duration {
    timing
        .takeover_after
        .saturating_sub(timing.margin())
        .saturating_sub(timing.kill_grace)
        .saturating_sub(timing.heartbeat)
        .saturating_sub(timing.store_timeout)
}

/// Checks whether the durations suit a store that `fails_over` to another server.
pub fn timing(timing: &Timing, fails_over: bool) -> Check {
    const STEP: &str = "timing";
    let endured = endurance(timing);
    let found = format!(
        "with --heartbeat {} and --takeover-after {} a job goes on through {} without its store, \
         and a holder that dies on another host is taken over after {}",
        rounded(timing.heartbeat),
        rounded(timing.takeover_after),
        rounded(endured),
        rounded(timing.takeover_after)
    );
    if fails_over && endured < FAILOVER {
        let others = timing.kill_grace + timing.heartbeat + timing.store_timeout + FAILOVER;
        // The margin is a tenth of the whole, and at least a second.
        let least = (others.saturating_mul(10) / 9).max(others + SECOND);
        return Check::warn(
            STEP,
            format!("{found}; a failover may take longer, and would end the job"),
            format!(
                "give --takeover-after {} or more",
                rounded(seconds_up(least))
            ),
        );
    }
    let trusted = timing.takeover_after.saturating_sub(timing.margin());
    let room = trusted.saturating_sub(timing.kill_grace);
    let beats = room.as_nanos() / timing.heartbeat.as_nanos().max(1);
    if beats < HEARTBEATS {
        return Check::warn(
            STEP,
            format!("{found}; that is time for only {beats} heartbeats"),
            format!(
                "give --heartbeat {} or less",
                humantime::format_duration(whole_ms(room / 4))
            ),
        );
    }
    Check::fine(STEP, found)
}

/// Compares a group's row with the options.
pub fn group(name: &GroupName, row: Option<&Row>, timing: &Timing) -> Check {
    const STEP: &str = "group";
    let Some(row) = row else {
        return Check::warn(
            STEP,
            format!("there is no group {} in the store", quoted(name.as_str())),
            "no run has used it yet, or the name is wrong; tokenrun status lists the groups",
        );
    };
    let state = match &row.state {
        State::Running { .. } => "running",
        State::Idle { .. } => "idle",
        State::Free => "free",
    };
    let client = row
        .client_bound()
        .map_or_else(String::new, |client| format!(", bound to {client}"));
    let found = format!(
        "{} is {state}{client}; its row says takeover-after {}, which counts until the next grant",
        quoted(name.as_str()),
        rounded(row.document.takeover_after)
    );
    if row.document.takeover_after == timing.takeover_after {
        return Check::fine(STEP, found);
    }
    Check::warn(
        STEP,
        format!(
            "{found}, and the options here say {}",
            rounded(timing.takeover_after)
        ),
        "give the same durations on every node, and here those of the job",
    )
}

fn seconds_up(duration: Duration) -> Duration {
    let more = u64::from(duration.subsec_nanos() > 0);
    Duration::from_secs(duration.as_secs().saturating_add(more))
}

fn whole_ms(duration: Duration) -> Duration {
    Duration::from_millis(
        u64::try_from(duration.as_millis())
            .unwrap_or(u64::MAX)
            .max(1),
    )
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::super::pinned::pin;
    use super::*;
    use crate::token::Wishes;
    use proptest::prelude::*;

    fn timing_of(heartbeat: u64, takeover: u64, grace: u64, store_ms: u64) -> Timing {
        let seconds = |n| Some(Duration::from_secs(n));
        Timing::new(&Wishes {
            heartbeat: seconds(heartbeat),
            takeover_after: seconds(takeover),
            kill_grace: seconds(grace),
            store_timeout: Some(Duration::from_millis(store_ms)),
            ..Wishes::default()
        })
        .unwrap()
    }

    #[test]
    fn the_defaults_survive_a_failover() {
        let defaults = Timing::new(&Wishes::default()).unwrap();
        assert_eq!(endurance(&defaults), Duration::from_secs(240));
        assert_eq!(timing(&defaults, true).verdict, Verdict::Fine);
    }

    #[test]
    fn a_lease_that_a_failover_outlasts_is_warned_of_where_there_can_be_one() {
        let short = timing_of(5, 60, 5, 2_000);
        let said = timing(&short, true);
        assert_eq!(said.verdict, Verdict::Warn);
        assert_eq!(said.remedy.unwrap(), "give --takeover-after 1m 20s or more");
        assert_eq!(timing(&short, false).verdict, Verdict::Fine);
    }

    #[test]
    fn few_heartbeats_are_warned_of() {
        let slow = timing_of(120, 300, 10, 10_000);
        let said = timing(&slow, false);
        assert_eq!(said.verdict, Verdict::Warn, "{said:?}");
        assert_eq!(said.remedy.unwrap(), "give --heartbeat 1m 5s or less");
    }

    #[test]
    fn a_slow_store_wants_more_time_and_several_servers_even_more() {
        let t = timing_of(10, 300, 10, 1_000);
        let ms = |n| Duration::from_millis(n);
        assert_eq!(
            round_trip("it takes", &[ms(1), ms(90)], &t, 1).verdict,
            Verdict::Fine
        );
        let said = round_trip("it takes", &[ms(1), ms(90)], &t, 2);
        assert_eq!(said.verdict, Verdict::Warn);
        assert_eq!(said.remedy.unwrap(), "give --store-timeout 2s or more");
        assert_eq!(round_trip("it takes", &[], &t, 0).verdict, Verdict::Fine);
    }

    #[test]
    fn the_texts_are_pinned() {
        let ms = |n| Duration::from_millis(n);
        let (usual, short) = (timing_of(10, 300, 10, 1_000), timing_of(5, 60, 5, 2_000));
        let slow = timing_of(120, 300, 10, 10_000);
        let name = GroupName::new("nightly").unwrap();
        let trips = [ms(1), ms(90), ms(20)];
        pin(
            "advice",
            [
                (
                    "quick",
                    vec![round_trip("an answer takes", &trips, &usual, 1)],
                ),
                (
                    "slow",
                    vec![round_trip("an answer takes", &trips, &usual, 2)],
                ),
                ("never", vec![round_trip("an answer takes", &[], &usual, 0)]),
                ("usual", vec![timing(&usual, true)]),
                ("short with a failover", vec![timing(&short, true)]),
                ("few heartbeats", vec![timing(&slow, false)]),
                ("no group", vec![group(&name, None, &usual)]),
            ],
        );
    }

    proptest! {
        /// The advised value is enough, and satisfies the relation of the durations.
        #[test]
        fn the_advised_takeover_after_works(
            heartbeat in 1_u64..60, grace in 0_u64..120, store in 1_u64..20_000, takeover in 1_u64..600,
        ) {
            let wishes = |takeover| Wishes {
                heartbeat: Some(Duration::from_secs(heartbeat)),
                kill_grace: Some(Duration::from_secs(grace)),
                store_timeout: Some(Duration::from_millis(store)),
                takeover_after: Some(takeover),
                ..Wishes::default()
            };
            let Ok(given) = Timing::new(&wishes(Duration::from_secs(takeover))) else {
                return Ok(());
            };
            let said = timing(&given, true);
            let advised = said.remedy.as_deref().and_then(|text| text.strip_prefix("give --takeover-after "));
            if let Some(text) = advised {
                let text = text.strip_suffix(" or more").unwrap();
                let least = crate::duration::parse(text).unwrap();
                let better = Timing::new(&wishes(least)).unwrap();
                prop_assert!(endurance(&better) >= FAILOVER, "{text}");
            }
        }
    }
}
