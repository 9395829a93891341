//! What a job has printed, for people.

use std::time::Duration;

use serde::Serialize;

use super::message::Message;
use super::printable::{printable, printable_lines, quoted};
use super::rfc3339;
use crate::duration::rounded;
use crate::token::{ClientId, Fence, GroupName, OutputLimits, OutputRecord, RunRecord, WallTime};

/// A run's output as JSON.
#[derive(Debug, Serialize)]
pub struct Object<'a> {
    group: &'a GroupName,
    fence: i64,
    session: &'a str,
    written_at: String,
    printed: u64,
    output: Option<&'a str>,
    output_base64: Option<&'a str>,
}

impl<'a> Object<'a> {
    /// The object of a record and its last bytes.
    pub fn of(record: &'a OutputRecord, last: &'a [u8]) -> Self {
        // The cut may fall into a character.
        let is_rest = |byte: &&u8| **byte & 0xc0 == 0x80;
        let rest = match record.is_cut() {
            true => last.iter().take(3).take_while(is_rest).count(),
            false => 0,
        };
        let text = std::str::from_utf8(last.get(rest..).unwrap_or_default()).ok();
        Self {
            group: &record.group,
            fence: record.fence.0,
            session: record.session.as_str(),
            written_at: rfc3339(record.written_at),
            printed: record.printed,
            output: text,
            output_base64: text.is_none().then_some(&record.last),
        }
    }
}

/// The line before a stored output that is cut, or not the newest run's: `is_older`.
pub fn head(record: &OutputRecord, client: Option<&ClientId>, is_older: bool) -> String {
    let on = client.map_or_else(String::new, |client| format!(" on {client}"));
    let kept = record.last_bytes().unwrap_or_default().len();
    let cut = match record.is_cut() {
        true => format!("; the last {kept} are stored"),
        false => String::new(),
    };
    let older = match is_older {
        true => "; no newer run has stored output",
        false => "",
    };
    let group = quoted(record.group.as_str());
    let text = format!(
        "tokenrun: run {} of {group}{on} printed {} bytes{cut}{older}",
        record.fence, record.printed
    );
    format!("{}\n", printable(&text))
}

/// The answer where no output is kept.
pub fn none(group: &GroupName, run: Option<Fence>) -> String {
    let run = run.map_or_else(|| "any run".to_owned(), |fence| format!("run {fence}"));
    let of = format!("{run} of {}", quoted(group.as_str()));
    format!("no output of {of} is stored; a run with --capture stores it")
}

/// The answer where no run is meant by `--at` or `--failed`.
pub fn no_such_run(group: &GroupName, failed: bool, until: Option<WallTime>) -> String {
    let what = if failed {
        "no run failed"
    } else {
        "no run began"
    };
    let until = until.map_or_else(String::new, |until| format!(" until {}", rfc3339(until)));
    let group = quoted(group.as_str());
    format!(
        "{what}{until} in {group}, as far as history goes back; tokenrun history -g {group} shows its runs"
    )
}

/// The answer where the output of this run was caught, but is not kept. `newer`: how many of the runs after
/// it have a caught output; `age`: since its end.
pub fn removed(run: &RunRecord, limits: OutputLimits, age: Duration, newer: usize) -> String {
    let OutputLimits { retain, count } = limits;
    let of = format!("run {} of {}", run.fence, quoted(run.group.as_str()));
    if age >= retain {
        let after = rounded(retain);
        return format!("the output of {of} was removed after {after} (--output-retain)");
    }
    match newer >= count as usize {
        true => format!(
            "the output of {of} was removed: at most {count} of a group are kept (--output-count)"
        ),
        false => format!(
            "the output of {of} is not stored: it could not be, or a run with other limits has removed it"
        ),
    }
}

/// The message about a record that can't be read.
pub fn damaged(record: &OutputRecord) -> String {
    let (run, group) = (record.fence, quoted(record.group.as_str()));
    format!("the stored output of run {run} of {group} is damaged")
}

/// The output as it is shown: as it is, or, on a terminal, without the power to control it. It ends
/// with a whole line.
pub fn shown(output: &[u8], on_terminal: bool) -> Vec<u8> {
    let mut shown = match on_terminal {
        true => printable_lines(output).into_bytes(),
        false => output.to_vec(),
    };
    if shown.last().is_some_and(|last| *last != b'\n') {
        shown.push(b'\n');
    }
    shown
}

/// The message before an output of which only the last bytes are left; `None` if nothing is
/// missing.
pub fn cut(printed: u64, last: usize) -> Option<Message> {
    let is_cut = u64::try_from(last).is_ok_and(|last| last < printed);
    let text = format!("the job printed {printed} bytes; its last {last} follow");
    is_cut.then(|| Message::warning("output_cut", text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::SessionId;
    use crate::token::record::fixture::unheld_run;

    #[test]
    fn bytes_are_raw_but_on_a_terminal() {
        let bytes = b"\xff\x1b[31mred\r\n";
        assert_eq!(shown(bytes, false), bytes);
        assert_eq!(
            shown(bytes, true),
            br"\xff\u{1b}[31mred\r"
                .iter()
                .copied()
                .chain(*b"\n")
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn it_ends_with_a_whole_line() {
        for on_terminal in [false, true] {
            assert_eq!(shown(b"a\nb", on_terminal), b"a\nb\n");
            assert_eq!(shown(b"", on_terminal), b"");
        }
    }

    #[test]
    fn a_head_tells_what_is_kept_and_of_which_run() {
        let group = GroupName::new("nightly").unwrap();
        let session = SessionId::from_random(1);
        let record = OutputRecord::new(group, Fence(42), session, 70_000, b"end");
        let client = ClientId::new("vm-1").unwrap();
        assert_eq!(
            head(&record, Some(&client), true),
            "tokenrun: run 42 of \"nightly\" on vm-1 printed 70000 bytes; the last 3 are stored; \
             no newer run has stored output\n"
        );
        let whole = OutputRecord {
            printed: 3,
            ..record
        };
        assert_eq!(
            head(&whole, None, false),
            "tokenrun: run 42 of \"nightly\" printed 3 bytes\n"
        );
    }

    #[test]
    fn an_output_that_was_removed_says_by_which_limit() {
        let run = unheld_run(&GroupName::new("g").unwrap(), 9);
        let limits = OutputLimits {
            retain: Duration::from_hours(168),
            count: 100,
        };
        for (hours, newer, said) in [
            (
                168,
                0,
                "the output of run 9 of \"g\" was removed after 7days (--output-retain)",
            ),
            (
                167,
                100,
                "the output of run 9 of \"g\" was removed: at most 100 of a group are kept (--output-count)",
            ),
            (
                167,
                99,
                "the output of run 9 of \"g\" is not stored: it could not be, or a run with other limits has removed it",
            ),
        ] {
            let age = Duration::from_hours(hours);
            assert_eq!(removed(&run, limits, age, newer), said);
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        assert_eq!(cut(10, 10), None);
        let text = cut(70_000, 65_536).unwrap().text;
        assert_eq!(text, "the job printed 70000 bytes; its last 65536 follow");
    }
}
