//! What must happen in time on a machine that may be busy.

use std::process::Command;
use std::time::{Duration, Instant};

/// Tries something that tells how long it took until it was in time more often than late. A
/// busy machine may be late by itself now and then; what breaks its promise is late each time.
/// A plain process beside each attempt shows how late the machine is. So many processes have a part
/// in an attempt: tokenrun, its guard, its store's server and the test.
#[track_caller]
pub(crate) fn within(most: Duration, attempt: impl FnMut() -> Duration) {
    const PROCESSES: u32 = 4;
    let (mut in_time, mut late) = (0, Vec::new());
    for took in std::iter::repeat_with(attempt).take(9) {
        if took <= most + PROCESSES * lateness() {
            in_time += 1;
        } else {
            late.push(took);
        }
        if in_time > late.len() {
            return;
        }
    }
    panic!("{in_time} times it took {most:?} at most, but else {late:?}");
}

/// How late a process ends that sleeps for 20 ms, then computes for some milliseconds, as a short run does: with others
/// beside it, it waits for its turn several times. The time that it computes is not late, where the kernel tells it.
fn lateness() -> Duration {
    const SCRIPT: &str = "sleep 0.02; i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done
        read -r computed _ 2> /dev/null < /proc/self/schedstat; echo \"${computed:-0}\"";
    let begun = Instant::now();
    let output = Command::new("sh").args(["-c", SCRIPT]).output().unwrap();
    let took = begun.elapsed();
    let computed = String::from_utf8(output.stdout).unwrap();
    let computed = Duration::from_nanos(computed.trim().parse().unwrap());
    took.saturating_sub(Duration::from_millis(20) + computed)
}
