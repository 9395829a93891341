//! How tokenrun ends.

use clap::Command;

use super::topic::{Table, Topic, paragraph};
use tokenrun::exit::MEANINGS;

pub(crate) fn topic(_: &Command) -> Topic {
    let codes = MEANINGS.iter().map(|it| (it.code.to_string(), it.text));
    let signal = "The job was killed by signal N: 137 for KILL, 143 for TERM.";
    let rows = codes.chain([("128+N".to_owned(), signal)]);
    Topic {
        title: "Exit codes",
        about: "the exit codes of tokenrun",
        parts: vec![
            paragraph(
                "A run passes on the exit code of its job. If the job has none, or the command is not a run, tokenrun ends with one of its own:",
            ),
            Table::of(["code", "meaning"], rows),
            paragraph(
                "A job can end with one of these codes too. --report writes a file that tells the two apart: `tokenrun_exit_code` is the code of tokenrun, `exit_code` is the code of the job. See `tokenrun help json`.",
            ),
            paragraph(
                "In a crontab, `-E 0` (--conflict-exit-code) makes a refusal a success, so that cron sends no mail. With --once, --done-exit-code is the code if the key is done already; the default is 0.",
            ),
            paragraph(
                "`tokenrun doctor` ends with 0 if no check fails, otherwise with the code of the first failure: 69, 77 or 78.",
            ),
        ],
    }
}
