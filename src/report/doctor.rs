//! The output of `doctor`: a line, or an object, for each check.

use serde::{Serialize, Serializer};

use super::printable::printable;
use crate::store::checkup::{Check, Verdict};

/// One check, as `doctor --json` shows it.
#[derive(Debug, Serialize)]
pub struct Finding<'a>(#[serde(with = "FindingFields")] pub &'a Check);

#[derive(Serialize)]
#[serde(remote = "Check")]
struct FindingFields {
    /// The check's name.
    step: &'static str,
    /// The server, if there are several.
    server: Option<String>,
    /// `ok`, `note`, `warn` or `FAIL`.
    #[serde(serialize_with = "as_word")]
    verdict: Verdict,
    /// The finding.
    found: String,
    /// What to do about it.
    remedy: Option<String>,
}

fn as_word<S: Serializer>(verdict: &Verdict, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(word(*verdict))
}

const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fine => "ok",
        Verdict::Unknown => "note",
        Verdict::Warn => "warn",
        Verdict::Fail(_) => "FAIL",
    }
}

/// A check as a line: its verdict, its name, the finding, and the remedy. Text from a server or a
/// path can neither break the line nor control the terminal.
pub fn line(check: &Check) -> String {
    let server = check.server.as_ref();
    let server = server.map_or_else(String::new, |server| format!("{server}: "));
    let remedy = check.remedy.as_ref();
    let remedy = remedy.map_or_else(String::new, |remedy| format!(" -> {remedy}"));
    let rest = printable(&format!("{server}{}{remedy}", check.found));
    format!("{:<4}  {:<19}  {rest}\n", word(check.verdict), check.step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Trouble;

    #[test]
    fn a_check_is_a_line_with_its_remedy() {
        let fine = Check::fine("tls", "TLS 1.3").on("db1:5432");
        assert_eq!(
            line(&fine),
            "ok    tls                  db1:5432: TLS 1.3\n"
        );
        let unknown = Check::unknown("pooler", "can't be known", "nothing");
        assert_eq!(
            line(&unknown),
            "note  pooler               can't be known -> nothing\n"
        );
        let fail = Check::fail("port", Trouble::Unavailable, "refused", "start it");
        assert_eq!(
            line(&fail),
            "FAIL  port                 refused -> start it\n"
        );
    }

    #[test]
    fn nothing_that_is_found_breaks_a_line() {
        let odd = Check::fine("server", "a\nb\u{1b}[31mc\u{9b}d");
        assert_eq!(
            line(&odd),
            "ok    server               a\\nb\\u{1b}[31mc\\u{9b}d\n"
        );
    }
}
