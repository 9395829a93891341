//! What the tables and the procedure of the fence need besides the user's rights.

use super::super::cells::Cells;
use super::super::fault::code;
use super::super::link::Missing as _;
use super::super::statements::sql;
use super::server::Server;
use crate::store::Trouble;
use crate::store::checkup::Check;

/// A call without effect: no token has this name or this fence.
const CALL: &str = "CALL tokenrun_fence('', -1)";

/// The error by which the procedure refuses a fence that is stale.
const STALE: u16 = 1644;

/// An engine without transactions cannot exclude anything. `None` if the connection is gone.
pub(super) fn engines(server: &mut Server<'_, '_>) -> Option<()> {
    const STEP: &str = "tables";
    let answer = server.ask(STEP, sql!("doctor_engines"))?;
    for row in &answer.rows {
        let mut cells = Cells::new(&answer, row, 0);
        let table = cells.needed_text().ok()?;
        let engine = cells.text().ok()?.unwrap_or_default();
        server.tell(Check::fail(
            STEP,
            Trouble::Misconfigured,
            format!(
                "the table {table} has the engine {engine}, which does not lock rows as InnoDB does"
            ),
            format!("ALTER TABLE {table} ENGINE = InnoDB"),
        ));
    }
    Some(())
}

/// Whether a job can call the procedure of the fence: it runs with the rights of the user who made it.
pub(super) fn fence(server: &mut Server<'_, '_>) {
    const STEP: &str = "fence";
    let Err(failed) = server.connection.ask(server.limit, CALL) else {
        return;
    };
    let is_callable = failed.code() == Some(STALE);
    // A right that the user of runs does not need.
    let is_for_jobs = failed.code() == Some(code::NO_EXECUTE);
    if is_callable || is_for_jobs {
        return;
    }
    server.tell(Check::warn(
        STEP,
        format!("a job can't call tokenrun_fence: {}", failed.error.what),
        "have an administrator who stays make the procedures again: run what tokenrun init --print-sql prints, \
         and GRANT EXECUTE on tokenrun_fence again",
    ));
}
