//! The checker of the fault suite, on made-up evidence: it finds violations, and none in correct
//! evidence.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "faults/check.rs"]
mod check;
#[path = "faults/evidence.rs"]
mod evidence;

use check::{Broken, check};
use evidence::{Call, Ended, Evidence, Hit, Life, Part, Record, Report};
use nix::libc::{SIGINT, SIGKILL, SIGTERM};

const MS: u64 = 1_000_000;

fn life(part: Part, number: usize, from: u64, until: u64) -> Life {
    Life {
        part,
        from: from * MS,
        until: until * MS,
        session: format!("session {number}"),
        fence: 1_000 + i64::try_from(number).unwrap(),
        exit: (part == Part::Job).then_some(0),
    }
}

/// A run that succeeded, alive between these milliseconds; its grandchild for the
/// last of them.
fn run(number: usize, from: u64, until: u64) -> Call {
    Call {
        number,
        group: "a".to_owned(),
        client: "node-0".to_owned(),
        begun: (from - 1) * MS,
        ended: Some(((until + 1) * MS, Ended::Code(0))),
        has_timeout: false,
        once: None,
        hits: Vec::new(),
        lives: vec![
            life(Part::Job, number, from, until - 1),
            life(Part::Grandchild, number, from + 1, until),
        ],
        report: None,
        not_told: false,
    }
}

fn record(call: &Call) -> Record {
    Record {
        group: call.group.clone(),
        fence: 1_000 + i64::try_from(call.number).unwrap(),
        session: format!("session {}", call.number),
        client: call.client.clone(),
        label: Some(call.number.to_string()),
        grant: "bind".to_owned(),
        outcome: "succeeded".to_owned(),
        exit_code: Some(0),
        signal: None,
    }
}

/// Two runs, one after the other, and a third that was refused.
fn fine() -> Evidence {
    let calls = vec![run(1, 10, 20), run(2, 20, 30), refused(3)];
    Evidence {
        history: calls[..2].iter().map(record).collect(),
        calls,
        recovery: Some((15 * MS, 5 * MS)),
        ..Evidence::default()
    }
}

fn refused(number: usize) -> Call {
    Call {
        lives: Vec::new(),
        ended: Some((12 * MS, Ended::Code(75))),
        ..run(number, 10, 12)
    }
}

#[track_caller]
fn finds(evidence: &Evidence, expected: &[Broken]) {
    let found = check(evidence);
    let kinds: Vec<Broken> = found.iter().map(|it| it.what).collect();
    assert_eq!(kinds, expected, "{found:#?}");
}

/// The evidence in which the second run ended like this, by record and status.
fn ended(outcome: &str, signal: Option<i32>, with: Ended, hits: &[(Part, i32)]) -> Evidence {
    let mut evidence = fine();
    let hit = |(part, signal): &(Part, i32)| Hit {
        part: *part,
        signal: *signal,
    };
    evidence.calls[1].hits = hits.iter().map(hit).collect();
    evidence.calls[1].ended = Some((31 * MS, with));
    evidence.history[1].outcome = outcome.to_owned();
    evidence.history[1].signal = signal;
    if !matches!(outcome, "succeeded" | "failed") {
        evidence.history[1].exit_code = None;
    }
    evidence
}

#[test]
fn correct_evidence_has_no_violation() {
    finds(&fine(), &[]);
}

#[test]
fn an_overlap_of_a_microsecond_is_found() {
    let mut evidence = fine();
    evidence.calls[1].lives[0].from -= 1_000;
    finds(&evidence, &[Broken::Overlap]);
}

#[test]
fn a_grandchild_that_outlives_its_run_overlaps() {
    let mut evidence = fine();
    evidence.calls[0].lives[1].until = 25 * MS;
    finds(&evidence, &[Broken::Overlap]);
}

/// Its lock was all that was left of it.
#[test]
fn a_run_without_supervisor_and_guard_may_overlap_once_the_store_has_forgotten_all() {
    let mut evidence = fine();
    evidence.calls[0].lives[1].until = 25 * MS;
    let killed = |part| Hit {
        part,
        signal: SIGKILL,
    };
    evidence.calls[0].hits = vec![killed(Part::Supervisor), killed(Part::Guard)];
    evidence.calls[0].ended = Some((21 * MS, Ended::Signal(SIGKILL)));
    evidence.history[0].outcome = "unknown".to_owned();
    evidence.history[0].exit_code = None;
    finds(&evidence, &[Broken::Overlap]);
    evidence.lost = vec![(19 * MS, 100 * MS)];
    finds(&evidence, &[Broken::Overlap]);
    evidence.lost = vec![(0, 100 * MS)];
    finds(&evidence, &[]);
    evidence.calls[0].hits.pop();
    finds(&evidence, &[Broken::Overlap]);
}

#[test]
fn a_run_that_encloses_two_others_overlaps_with_both() {
    let mut evidence = fine();
    evidence.calls.push(run(4, 30, 40));
    evidence.history.push(record(&evidence.calls[3]));
    evidence.calls[0].lives[0].until = 35 * MS;
    finds(&evidence, &[Broken::Overlap, Broken::Overlap]);
}

#[test]
fn runs_of_two_groups_may_overlap() {
    let mut evidence = fine();
    evidence.calls[1].group = "b".to_owned();
    evidence.history[1].group = "b".to_owned();
    evidence.calls[1].lives[0].from = 16 * MS;
    evidence.recovery = None;
    finds(&evidence, &[]);
}

#[test]
fn a_fence_that_does_not_rise_is_found() {
    for fence in [1_001, 1_000] {
        let mut evidence = fine();
        evidence.calls[1]
            .lives
            .iter_mut()
            .for_each(|life| life.fence = fence);
        evidence.history[1].fence = fence;
        finds(&evidence, &[Broken::Fence]);
    }
}

#[test]
fn a_grandchild_of_another_session_is_found() {
    let mut evidence = fine();
    evidence.calls[1].lives[1].session = "another".to_owned();
    finds(&evidence, &[Broken::History, Broken::Fence]);
}

#[test]
fn leftover_files_and_processes_are_found() {
    let mut evidence = fine();
    evidence.left.push("process 4711".to_owned());
    evidence.calls[2].ended = None;
    finds(&evidence, &[Broken::Left, Broken::Left]);
}

#[test]
fn a_run_without_history_is_found() {
    let mut evidence = fine();
    evidence.history.remove(1);
    finds(&evidence, &[Broken::History, Broken::ExitStatus]);
}

#[test]
fn writes_at_the_time_of_lost_commits_may_be_missing() {
    let mut evidence = fine();
    evidence.history.remove(1);
    evidence.lost = vec![(30 * MS, 40 * MS)];
    finds(&evidence, &[]);
    // Called unknown by the run that took over from what was left.
    let mut unknown = record(&evidence.calls[1]);
    unknown.outcome = "unknown".to_owned();
    unknown.exit_code = None;
    evidence.history.push(unknown);
    finds(&evidence, &[]);
    // What was over before is in history.
    evidence.lost = vec![(32 * MS, 40 * MS)];
    finds(&evidence, &[Broken::History]);
}

#[test]
fn a_failover_excuses_no_overlap_no_fence_and_no_other_history() {
    let mut evidence = fine();
    evidence.lost = vec![(0, 100 * MS)];
    evidence.history[1].outcome = "failed".to_owned();
    evidence.history[1].exit_code = Some(1);
    finds(&evidence, &[Broken::History, Broken::ExitStatus]);
    let mut evidence = fine();
    evidence.lost = vec![(0, 100 * MS)];
    evidence.calls[1] = run(2, 19, 30);
    finds(&evidence, &[Broken::Overlap]);
}

#[test]
fn a_key_that_was_done_when_commits_were_lost_may_be_run_again() {
    let mut evidence = keyed();
    evidence.calls[3].lives = run(4, 40, 41).lives;
    evidence.history.push(record(&evidence.calls[3]));
    evidence.lost = vec![(20 * MS, 21 * MS)];
    finds(&evidence, &[]);
}

#[test]
fn history_without_a_call_or_twice_is_found() {
    let mut evidence = fine();
    evidence.history.push(record(&evidence.calls[1]));
    evidence.history.push(record(&run(9, 10, 20)));
    finds(&evidence, &[Broken::History, Broken::History]);
}

#[test]
fn history_of_another_fence_or_session_is_found() {
    let mut evidence = fine();
    evidence.history[1].fence += 1;
    finds(&evidence, &[Broken::History]);
    let mut evidence = fine();
    evidence.history[1].session = "another".to_owned();
    finds(&evidence, &[Broken::History]);
}

#[test]
fn a_run_that_is_over_is_not_running() {
    let evidence = ended(
        "running",
        None,
        Ended::Signal(SIGKILL),
        &[(Part::Supervisor, SIGKILL)],
    );
    finds(&evidence, &[Broken::History]);
}

#[test]
fn a_success_that_the_job_did_not_mean_is_found() {
    let mut evidence = fine();
    evidence.calls[1].lives[0].exit = None;
    finds(&evidence, &[Broken::History, Broken::ExitStatus]);
}

#[test]
fn a_run_is_unknown_only_without_its_supervisor() {
    let killed = [(Part::Supervisor, SIGKILL)];
    finds(
        &ended("unknown", None, Ended::Signal(SIGKILL), &killed),
        &[],
    );
    finds(
        &ended("unknown", None, Ended::Code(0), &[]),
        &[Broken::History],
    );
    let mut evidence = ended("unknown", None, Ended::Code(0), &[]);
    evidence.calls[1].not_told = true;
    finds(&evidence, &[]);
    let mut evidence = ended("unknown", None, Ended::Code(69), &[]);
    evidence.calls[1].lives.clear();
    evidence.recovery = None;
    finds(&evidence, &[]);
}

#[test]
fn no_process_is_killed_except_by_a_fault() {
    finds(
        &ended("unknown", None, Ended::Signal(SIGKILL), &[]),
        &[Broken::ExitStatus],
    );
}

#[test]
fn a_signal_that_no_fault_sent_is_found() {
    let killed = Ended::Code(128 + SIGKILL);
    finds(
        &ended("killed", Some(SIGKILL), killed, &[(Part::Job, SIGKILL)]),
        &[],
    );
    finds(
        &ended(
            "killed",
            Some(SIGKILL),
            killed,
            &[(Part::Supervisor, SIGTERM)],
        ),
        &[],
    );
    finds(
        &ended("killed", Some(SIGKILL), killed, &[]),
        &[Broken::History],
    );
    let by_another = [(Part::Supervisor, SIGINT)];
    let evidence = ended(
        "killed",
        Some(SIGTERM),
        Ended::Code(128 + SIGTERM),
        &by_another,
    );
    finds(&evidence, &[Broken::History]);
}

#[test]
fn a_job_that_ran_was_neither_refused_nor_not_started() {
    let refused = ended("succeeded", None, Ended::Code(75), &[]);
    finds(&refused, &[Broken::ExitStatus]);
    let not_started = ended("not_started", None, Ended::Code(69), &[]);
    finds(&not_started, &[Broken::History, Broken::ExitStatus]);
}

#[test]
fn a_status_of_another_outcome_is_found() {
    let without_guard = [(Part::Guard, SIGKILL)];
    finds(&ended("lost", None, Ended::Code(76), &without_guard), &[]);
    finds(
        &ended("succeeded", None, Ended::Code(76), &[]),
        &[Broken::ExitStatus],
    );
    finds(
        &ended("lost", None, Ended::Code(0), &[]),
        &[Broken::ExitStatus],
    );
    finds(
        &ended("succeeded", None, Ended::Code(3), &[]),
        &[Broken::ExitStatus],
    );
    finds(
        &ended("succeeded", None, Ended::Code(70), &[]),
        &[Broken::ExitStatus],
    );
    finds(
        &ended("timed_out", None, Ended::Code(124), &[]),
        &[Broken::History, Broken::ExitStatus],
    );
}

#[test]
fn a_report_that_contradicts_is_found() {
    let report = Report {
        session: "session 2".to_owned(),
        outcome: "succeeded".to_owned(),
        recorded: Some(true),
        tokenrun_exit_code: 0,
        fence: Some(1_002),
    };
    let with = |report: Report| {
        let mut evidence = fine();
        evidence.calls[1].report = Some(report);
        evidence
    };
    finds(&with(report.clone()), &[]);
    let outcome = "lost".to_owned();
    finds(
        &with(Report {
            outcome,
            ..report.clone()
        }),
        &[Broken::Report],
    );
    let fence = None;
    finds(
        &with(Report {
            fence,
            ..report.clone()
        }),
        &[Broken::Report],
    );
    let tokenrun_exit_code = 1;
    finds(
        &with(Report {
            tokenrun_exit_code,
            ..report
        }),
        &[Broken::Report],
    );
}

#[test]
fn silence_after_the_faults_is_found() {
    let mut evidence = fine();
    evidence.recovery = Some((25 * MS, 5 * MS));
    finds(&evidence, &[Broken::Recovery]);
    let mut evidence = fine();
    for life in &mut evidence.calls[1].lives {
        life.from += 6 * MS;
        life.until += 6 * MS;
    }
    finds(&evidence, &[Broken::Recovery]);
}

#[test]
fn a_loss_without_a_cause_is_counted() {
    let mut evidence = ended("lost", None, Ended::Code(76), &[(Part::Guard, SIGKILL)]);
    assert_eq!(evidence.without_cause("lost"), 0);
    evidence.calls[1].hits.clear();
    assert_eq!(evidence.without_cause("lost"), 1);
    evidence.hindered = vec![(25 * MS, 26 * MS)];
    assert_eq!(evidence.without_cause("lost"), 0);
}

#[test]
fn the_longest_silence_is_measured() {
    assert_eq!(fine().longest_idle(), 0);
    let mut evidence = fine();
    for life in &mut evidence.calls[1].lives {
        life.from += 6 * MS;
    }
    assert_eq!(evidence.longest_idle(), 6 * MS);
}

#[test]
fn only_the_killed_and_those_in_doubt_leave_lock_files() {
    let mut evidence = ended(
        "unknown",
        None,
        Ended::Signal(SIGKILL),
        &[(Part::Supervisor, SIGKILL)],
    );
    evidence.lock_files = 1;
    finds(&evidence, &[]);
    evidence.lock_files = 2;
    finds(&evidence, &[Broken::Left]);
    let mut evidence = ended("unknown", None, Ended::Code(0), &[]);
    evidence.calls[1].not_told = true;
    evidence.lock_files = 1;
    finds(&evidence, &[]);
    evidence.lock_files = 2;
    finds(&evidence, &[Broken::Left]);
}

#[test]
fn tokenrun_dies_of_its_jobs_signal_only_if_shells_expect_it() {
    let hits = |signal| [(Part::Supervisor, signal), (Part::Job, signal)];
    let dies = |signal| ended("killed", Some(signal), Ended::Signal(signal), &hits(signal));
    finds(&dies(SIGINT), &[]);
    finds(&dies(SIGTERM), &[Broken::ExitStatus]);
    let mut evidence = ended("unknown", None, Ended::Signal(SIGINT), &hits(SIGINT));
    evidence.calls[1].not_told = true;
    finds(&evidence, &[]);
}

#[test]
fn a_call_without_a_job_may_die_of_a_signal_after_its_report() {
    let mut evidence = fine();
    evidence.calls[2].ended = Some((13 * MS, Ended::Signal(SIGTERM)));
    evidence.calls[2].hits = vec![Hit {
        part: Part::Supervisor,
        signal: SIGTERM,
    }];
    evidence.calls[2].report = Some(Report {
        session: "session 3".to_owned(),
        outcome: "refused".to_owned(),
        recorded: None,
        tokenrun_exit_code: 75,
        fence: None,
    });
    finds(&evidence, &[]);
    evidence.calls[2].hits.clear();
    finds(&evidence, &[Broken::ExitStatus, Broken::Report]);
}

/// Two calls of one key, the second long after the first.
fn keyed() -> Evidence {
    let mut evidence = fine();
    let later = Call {
        lives: Vec::new(),
        ..run(4, 40, 41)
    };
    evidence.calls.push(later);
    for index in [0, 3] {
        evidence.calls[index].once = Some("key".to_owned());
    }
    evidence
}

#[test]
fn a_key_that_is_done_makes_a_call_succeed_without_a_job() {
    let mut evidence = keyed();
    finds(&evidence, &[]);
    // It had the token already when it found out.
    let mut record = record(&evidence.calls[3]);
    record.outcome = "not_started".to_owned();
    record.exit_code = None;
    evidence.history.push(record);
    finds(&evidence, &[]);
    // Without a key there is no such success.
    evidence.calls[3].once = None;
    finds(&evidence, &[Broken::ExitStatus]);
}

#[test]
fn a_key_that_is_run_again_is_found() {
    let mut evidence = keyed();
    evidence.calls[3].lives = run(4, 40, 41).lives;
    evidence.history.push(record(&evidence.calls[3]));
    finds(&evidence, &[Broken::Once]);
    // A success that was not recorded is unknown to all.
    evidence.calls[0].ended = Some((21 * MS, Ended::Code(74)));
    evidence.history[0].outcome = "unknown".to_owned();
    evidence.history[0].exit_code = None;
    finds(&evidence, &[]);
}

#[test]
fn a_key_that_is_called_done_and_is_not_is_found() {
    let mut evidence = keyed();
    evidence.calls[0].lives[0].exit = Some(3);
    evidence.calls[0].ended = Some((21 * MS, Ended::Code(3)));
    evidence.history[0].outcome = "failed".to_owned();
    evidence.history[0].exit_code = Some(3);
    finds(&evidence, &[Broken::Once]);
}

#[test]
fn success_that_was_not_recorded_has_its_own_status_only_with_a_key() {
    let mut evidence = ended("unknown", None, Ended::Code(74), &[]);
    finds(&evidence, &[Broken::ExitStatus]);
    evidence.calls[1].once = Some("key".to_owned());
    finds(&evidence, &[]);
}
