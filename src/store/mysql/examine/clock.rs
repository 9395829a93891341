//! The server's clock: whether statements can read it, its samples, and stamps in the future.

use super::super::cells::Cells;
use super::super::statements::sql;
use super::server::Server;
use crate::store::Trouble;
use crate::store::checkup::Check;
use crate::store::checkup::clock::{self, Sample};

/// Reads the time again and again; `None` if the server no longer answers.
pub(super) fn samples(server: &mut Server<'_, '_>) -> Option<Vec<Sample>> {
    let taken = clock::samples(|| {
        let answer = server.ask("clock", sql!("doctor_time")).ok_or(())?;
        Ok::<_, ()>(Cells::first(&answer).and_then(|mut cells| cells.needed_number().ok()))
    });
    taken.ok()
}

/// Whether statements read the clock when they ask for it; else what is wrong.
pub(super) fn stands_still(server: &mut Server<'_, '_>) -> Option<Option<Check>> {
    const STEP: &str = "clock";
    let answer = server.ask(STEP, sql!("doctor_clock"))?;
    let mut cells = Cells::first(&answer)?;
    cells.text().ok()?;
    let passed_us = cells.needed_number().ok()?;
    let check = Check::fail(
        STEP,
        Trouble::Misconfigured,
        "the server gives statements the time of their start (sysdate-is-now): a swap that waited would \
         not notice that it is late",
        "start the server without sysdate-is-now",
    );
    Some((passed_us < 5_000).then_some(check))
}

/// Stamps in the future show that a clock was set back.
pub(super) fn stamps(server: &mut Server<'_, '_>) -> Option<()> {
    let answer = server.ask("stamps", sql!("doctor_stamps"))?;
    let ahead_ms = Cells::first(&answer)?.needed_number().ok()?;
    server.tell(clock::stamps(ahead_ms));
    Some(())
}
