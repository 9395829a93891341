//! What must happen in time on a machine that may be busy.

use std::time::Duration;

use super::plain::Plain;

/// Tries something that tells how long it took until it was in time more often than late. A
/// busy machine may be late by itself now and then; what breaks its promise is late each time.
/// Plain processes beside each attempt show how late the machine is: one that has many processes to run makes one
/// wait for most of a second, and the next not at all. So many processes have a part
/// in an attempt: tokenrun, its guard, its store's server and the test.
#[track_caller]
pub(crate) fn within(most: Duration, mut attempt: impl FnMut() -> Duration) {
    const PROCESSES: u32 = 4;
    let (mut in_time, mut late) = (0, Vec::new());
    for _ in 0..9 {
        let plain = Plain::start();
        let took = attempt();
        let lateness = plain.lateness();
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
