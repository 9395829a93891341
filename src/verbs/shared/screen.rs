//! What the reader sits at: a terminal of some width, or a file.

use std::env;

use jiff::tz::TimeZone;

use super::options::{Colours, ScreenOptions};
use crate::report::screen::{Screen, Times};
use crate::sys::terminal::{Size, size_of_stdout};

/// The screen at stdout, now: a terminal can change its size.
pub(crate) fn screen(options: ScreenOptions) -> Screen {
    let terminal = size_of_stdout();
    let times = match terminal.is_some() && !options.utc {
        true => Times::Local(zone(options.utc)),
        false => Times::Utc,
    };
    Screen {
        width: width(variable("COLUMNS").as_deref(), terminal),
        height: None,
        colours: has_colours(options.color, terminal.is_some(), variable),
        times,
    }
}

/// The zone of the times that the reader gives. One that can't be found is UTC.
pub(crate) fn zone(utc: bool) -> TimeZone {
    match utc {
        true => TimeZone::UTC,
        false => TimeZone::system(),
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// The widest screen, in columns: a chart has a cell for each.
const WIDEST: usize = 1_000;

fn width(columns: Option<&str>, terminal: Option<Size>) -> Option<usize> {
    let columns = columns.and_then(|text| text.trim().parse::<usize>().ok());
    let columns = columns.filter(|columns| *columns > 0);
    let columns = columns.map(|columns| columns.min(WIDEST));
    columns.or_else(|| terminal.and_then(|size| size.columns))
}

fn has_colours(
    wish: Colours,
    is_terminal: bool,
    variable: impl Fn(&str) -> Option<String>,
) -> bool {
    let refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = variable("TERM").as_deref() == Some("dumb");
    match wish {
        Colours::Always => true,
        Colours::Never => false,
        Colours::Auto => is_terminal && !refused && !is_dumb,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_goes_before_the_terminal() {
        let terminal = Some(Size {
            columns: Some(100),
            lines: Some(20),
        });
        assert_eq!(width(None, terminal), Some(100));
        assert_eq!(width(None, None), None);
        assert_eq!(width(Some("60"), terminal), Some(60));
        assert_eq!(width(Some("60"), None), Some(60));
        assert_eq!(width(Some("99999999999"), None), Some(WIDEST));
        for odd in ["", "0", "-1", "many"] {
            assert_eq!(width(Some(odd), terminal), Some(100), "{odd}");
        }
    }

    #[test]
    fn colours_are_for_terminals_that_want_them() {
        let none = |_: &str| None;
        let no_color = |name: &str| (name == "NO_COLOR").then(|| "1".to_owned());
        let dumb = |name: &str| (name == "TERM").then(|| "dumb".to_owned());
        assert!(has_colours(Colours::Auto, true, none));
        assert!(!has_colours(Colours::Auto, false, none));
        assert!(!has_colours(Colours::Auto, true, no_color));
        assert!(!has_colours(Colours::Auto, true, dumb));
        assert!(has_colours(Colours::Always, false, no_color));
        assert!(!has_colours(Colours::Never, true, none));
        let empty = |name: &str| (name == "NO_COLOR").then(String::new);
        assert!(has_colours(Colours::Auto, true, empty));
    }
}
