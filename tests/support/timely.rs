//! What must happen in time on a machine that may be busy.

use std::process::Command;
use std::sync::mpsc::{TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Tries something that tells how long it took until it was in time more often than late. A
/// busy machine may be late by itself now and then; what breaks its promise is late each time.
/// Plain processes beside each attempt show how late the machine is. So many processes have a part
/// in an attempt: tokenrun, its guard, its store's server and the test.
#[track_caller]
pub(crate) fn within(most: Duration, mut attempt: impl FnMut() -> Duration) {
    const PROCESSES: u32 = 4;
    let (mut in_time, mut late) = (0, Vec::new());
    for _ in 0..9 {
        let (took, lateness) = beside_plain_processes(&mut attempt);
        if took <= most + PROCESSES * lateness {
            in_time += 1;
        } else {
            late.push((took, lateness));
        }
        if in_time > late.len() {
            return;
        }
    }
    panic!(
        "{in_time} times it took {most:?} at most, but else (and a plain process was so late) {late:?}"
    );
}

/// Makes an attempt: how long it took, and how late the latest of the plain processes was that ran meanwhile, one at a
/// time. A machine that has many processes to run makes one wait for most of a second, and the next not at all.
fn beside_plain_processes(attempt: impl FnOnce() -> Duration) -> (Duration, Duration) {
    let (ends_with_the_attempt, attempting) = channel::<()>();
    thread::scope(|scope| {
        let plain = scope.spawn(move || {
            let mut latest = lateness();
            while attempting.try_recv() == Err(TryRecvError::Empty) {
                latest = latest.max(lateness());
            }
            latest
        });
        let took = attempt();
        drop(ends_with_the_attempt);
        (took, plain.join().unwrap())
    })
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
