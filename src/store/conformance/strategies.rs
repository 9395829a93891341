//! Random rows and records: everything that a store must be able to keep.

use std::time::Duration;

use proptest::option;
use proptest::prelude::*;

use crate::token::{
    ClientId, ClockEpoch, Counters, Document, Fence, GrantKind, GroupName, Handoff, Others,
    Outcome, OutputLimits, Pause, Row, Run, RunRecord, SessionId, Stamp, StampOf, State, StoreTime,
    Version, WallTime, document::VERSION,
};

/// 9999-12-31T23:59:59.999Z: stores keep wall times in a readable form.
const LAST_WALL_MS: i64 = 253_402_300_799_999;

/// Any text but NUL, which PostgreSQL can't keep.
fn text() -> impl Strategy<Value = String> {
    "[^\\x00]{0,30}"
}

fn name() -> impl Strategy<Value = String> {
    "[\\PC\\p{Cf}]{1,200}".prop_filter("a name", |text| GroupName::new(text).is_ok())
}

fn client() -> impl Strategy<Value = ClientId> {
    name().prop_map(|name| ClientId::new(&name).unwrap())
}

fn session() -> impl Strategy<Value = SessionId> {
    any::<u128>().prop_map(SessionId::from_random)
}

fn wall() -> impl Strategy<Value = i64> {
    prop_oneof![0..=LAST_WALL_MS, Just(0), Just(LAST_WALL_MS)]
}

fn stamp() -> impl Strategy<Value = Stamp> {
    (any::<i64>(), wall()).prop_map(|(tick_ms, wall)| Stamp {
        tick_ms,
        wall: WallTime(wall),
    })
}

fn duration() -> impl Strategy<Value = Duration> {
    let millis = prop_oneof![0..=i64::MAX.unsigned_abs(), 0..86_400_000u64, Just(0)];
    millis.prop_map(Duration::from_millis)
}

fn version() -> impl Strategy<Value = Version> {
    any::<u64>().prop_map(Version::from_random)
}

fn state() -> impl Strategy<Value = State> {
    prop_oneof![
        Just(State::Free),
        client().prop_map(|client| State::Idle { client }),
        (client(), run()).prop_map(|(client, run)| State::Running {
            client,
            run: Box::new(run),
        }),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    use Outcome::{Failed, Lost, NotStarted, Running, Signalled, Succeeded, TimedOut, Unknown};
    proptest::sample::select(vec![
        Running, Succeeded, Failed, Signalled, TimedOut, Lost, NotStarted, Unknown,
    ])
}

fn grant_kind() -> impl Strategy<Value = GrantKind> {
    use GrantKind::{Bind, Failback, Handoff, Renew, Takeover};
    proptest::sample::select(vec![Bind, Renew, Takeover, Failback, Handoff])
}

/// Fields that a newer program may have added.
fn others() -> impl Strategy<Value = Others> {
    let future = (wall(), text()).prop_map(|(number, text)| {
        let value = serde_json::json!({"number": number, "text": text, "list": [null, true]});
        Others::from_iter([("of_the_future".to_owned(), value)])
    });
    prop_oneof![Just(Others::new()), future]
}

prop_compose! {
    fn run()(
        session in session(),
        (lock_file, program, once_key) in (option::of(text()), text(), option::of(text())),
        (grant, previous_client) in (grant_kind(), option::of(client())),
        (move_on_failure, other) in (any::<bool>(), others()),
    ) -> Run {
        Run { session, lock_file, program, once_key, grant, previous_client, move_on_failure, other }
    }
}

fn stamp_of() -> impl Strategy<Value = StampOf> {
    use StampOf::{Created, Granted, Heartbeat, Released};
    proptest::sample::select(vec![Created, Granted, Heartbeat, Released])
}

fn pause() -> impl Strategy<Value = Pause> {
    (text(), text(), option::of(wall()), others()).prop_map(|(by, reason, until, other)| Pause {
        by,
        reason,
        until: until.map(WallTime),
        other,
    })
}

fn handoff() -> impl Strategy<Value = Handoff> {
    (client(), wall(), any::<bool>(), others()).prop_map(|(to, at, for_failback, other)| Handoff {
        to,
        at: WallTime(at),
        for_failback,
        other,
    })
}

fn counters() -> impl Strategy<Value = Counters> {
    (
        proptest::array::uniform4(0..=i64::MAX),
        proptest::array::uniform7(0..=i64::MAX),
    )
        .prop_map(|(counted, ended)| {
            let [runs, failures, takeovers, losses] = counted;
            let [
                succeeded,
                signalled,
                timed_out,
                not_started,
                unknown,
                forced,
                revoked,
            ] = ended;
            Counters {
                runs,
                failures,
                takeovers,
                losses,

                succeeded,
                signalled,
                timed_out,
                not_started,
                unknown,
                forced,
                revoked,
            }
        })
}

prop_compose! {
    pub(crate) fn rows()(
        group in name(),
        (version, session_version) in (version(), option::of(version())),
        fence in 0..=Fence::HIGHEST,
        (epoch, granted_epoch) in (text(), option::of(text())),
        // In boxes, as some others: all in one would need more stack than a test's thread has.
        state in state().boxed(),
        expected_client in option::of(client()),
        (stamped, stamp_of) in (stamp(), stamp_of()),
        (created, acquired) in (option::of(stamp()), option::of(stamp())),
        [takeover_after, keep, head_start, not_before] in
            proptest::array::uniform4(duration()),
        (host, pid, label) in
            (option::of(text()), option::of(any::<i32>()), option::of(text())),
        (paused, handoff, gives_way) in
            (option::of(pause()), option::of(handoff()), option::of(client())).boxed(),
        (revoke_requested, last_outcome, counters) in
            (any::<bool>(), option::of(outcome()), counters()).boxed(),
        other in others(),
    ) -> Row {
        Row {
            group: GroupName::new(&group).unwrap(),
            version,
            fence: Fence(fence),
            state,
            expected_client,
            stamped: StoreTime { stamp: stamped, epoch: ClockEpoch(epoch) },
            document: Document {
                longest_takeover_after: Duration::from_millis(7),
                reader: VERSION,
                stamp_of,
                session_version,
                granted_epoch: granted_epoch.map(ClockEpoch),
                created,
                acquired,
                takeover_after,
                keep,
                head_start,
                not_before,
                host,
                pid,
                label,
                paused,
                handoff,
                gives_way,
                revoke_requested,
                last_outcome,
                counters,
                other,
            },
        }
    }
}

prop_compose! {
    pub(crate) fn records()(
        group in name(),
        fence in 0..=i64::MAX,
        session in session(),
        (client, previous_client) in (client(), option::of(client())),
        (host, pid, label) in
            (option::of(text()), option::of(any::<i32>()), option::of(text())),
        (program, once_key) in (text(), option::of(text())),
        grant in grant_kind(),
        (started_at, ended_at) in (wall(), option::of(wall())),
        (outcome, revoked, reason) in (outcome(), any::<bool>(), option::of(text())),
        (exit_code, signal) in (option::of(any::<i32>()), option::of(any::<i32>())),
        (output, moved_on, other) in (option::of(output_limits()), any::<bool>(), others()),
    ) -> RunRecord {
        RunRecord {
            group: GroupName::new(&group).unwrap(),
            fence: Fence(fence),
            session,
            client,
            previous_client,
            host,
            pid,
            label,
            program,
            once_key,
            grant,
            started_at: WallTime(started_at),
            ended_at: ended_at.map(WallTime),
            outcome,
            exit_code,
            signal,
            revoked,
            reason,
            output,
            moved_on,
            other,
        }
    }
}

/// The limits of outputs, as a run's record has them.
fn output_limits() -> impl Strategy<Value = OutputLimits> {
    any::<(u64, u32)>().prop_map(|(retain, count)| OutputLimits {
        retain: Duration::from_millis(retain),
        count,
    })
}
