//! The server's clock: its samples, and stamps in the future.

use super::server::{Over, Server, number};
use crate::store::checkup::clock::{self, Sample};

/// Reads the time again and again.
pub(super) fn samples(server: &mut Server<'_, '_>) -> Result<Vec<Sample>, Over> {
    let statement = server.statements.doctor_clock();
    clock::samples(|| {
        let row = server.ask("clock", &statement)?;
        Ok(row.map(|row| number(&row, "micros")))
    })
}

/// Stamps in the future show that a clock was set back.
pub(super) fn stamps(server: &mut Server<'_, '_>) -> Result<(), Over> {
    let Some(row) = server.ask_aside("stamps", &server.statements.doctor_stamps())? else {
        return Ok(());
    };
    server.tell(clock::stamps(number(&row, "ahead_ms")));
    Ok(())
}
