//! What a text is written for: how wide and high it is, whether it shows colours, and whose times.
//! Times are local to the reader on a terminal, RFC 3339 in UTC elsewhere. Pure.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::rfc3339;
use crate::token::WallTime;

/// The properties of a terminal, or of what takes its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screen {
    /// How many columns a line has; `None`: any number.
    pub width: Option<usize>,
    /// How many lines there is room for; `None`: any number.
    pub height: Option<usize>,
    pub colours: bool,
    pub times: Times,
}

impl Screen {
    /// A file or a pipe.
    pub const fn plain() -> Self {
        Self {
            width: None,
            height: None,
            colours: false,
            times: Times::Utc,
        }
    }
}

/// The colour of a word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tint {
    #[default]
    Plain,
    /// Red: trouble.
    Bad,
    /// Green: it runs.
    Good,
    /// Yellow: it is stopped or silent.
    Stopped,
}

impl Tint {
    /// The text in this colour, if there are colours.
    pub fn paint(self, text: &str, colours: bool) -> String {
        let code = match self {
            Self::Bad => "31",
            Self::Good => "32",
            Self::Stopped => "33",
            Self::Plain => return text.to_owned(),
        };
        match colours {
            true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }
}

/// How times are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Times {
    /// RFC 3339 in UTC.
    Utc,
    /// In the reader's zone, to the second.
    Local(TimeZone),
}

impl Times {
    /// A time with its date.
    pub fn full(&self, at: WallTime) -> String {
        match self {
            Self::Utc => rfc3339(at),
            Self::Local(zone) => local(at, zone, "%Y-%m-%d %H:%M:%S"),
        }
    }

    /// A time near `now`, for a note: without its date on the same day, and to the minute.
    pub fn short(&self, at: WallTime, now: WallTime) -> String {
        let Self::Local(zone) = self else {
            return rfc3339(at);
        };
        let day = |at| local(at, zone, "%Y-%m-%d");
        match day(at) == day(now) {
            true => local(at, zone, "%H:%M"),
            false => local(at, zone, "%Y-%m-%d %H:%M"),
        }
    }

    /// The name of the reader's zone: `Europe/Berlin`, or as it is abbreviated at this time: `CET`.
    /// `None` if times are in UTC and show it.
    pub fn zone_name(&self, at: WallTime) -> Option<String> {
        let Self::Local(zone) = self else {
            return None;
        };
        let name = match zone.iana_name() {
            _ if zone.is_unknown() => "UTC".to_owned(),
            Some("Etc/UTC" | "Etc/UCT" | "Zulu") => "UTC".to_owned(),
            Some(name) => name.to_owned(),
            None => local(at, zone, "%Z"),
        };
        Some(name)
    }
}

/// A wall time as the calendar has it. A time outside the calendar becomes the nearest inside.
pub fn timestamp(at: WallTime) -> Timestamp {
    let (least, most) = (Timestamp::MIN, Timestamp::MAX);
    let ms = at.0.clamp(least.as_millisecond(), most.as_millisecond());
    Timestamp::from_millisecond(ms).unwrap_or(most)
}

/// A time in a zone, by a format of strftime.
pub(super) fn local(at: WallTime, zone: &TimeZone, format: &str) -> String {
    let zoned = timestamp(at).to_zoned(zone.clone());
    zoned.strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A zone by POSIX' rules: the test needs no database of zones.
    fn berlin() -> Times {
        Times::Local(TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap())
    }

    /// 2026-11-21 13:00:13.5 UTC.
    const NOVEMBER: WallTime = WallTime(1_795_266_013_500);

    #[test]
    fn a_reader_sees_local_times_to_the_second() {
        assert_eq!(berlin().full(NOVEMBER), "2026-11-21 14:00:13");
        assert_eq!(berlin().zone_name(NOVEMBER).as_deref(), Some("CET"));
        let july = WallTime(1_783_072_800_000);
        assert_eq!(berlin().full(july), "2026-07-03 12:00:00");
        assert_eq!(berlin().zone_name(july).as_deref(), Some("CEST"));
        let utc = Times::Local(TimeZone::UTC);
        assert_eq!(utc.zone_name(july).as_deref(), Some("UTC"));
        let unknown = Times::Local(TimeZone::unknown());
        assert_eq!(unknown.zone_name(july).as_deref(), Some("UTC"));
    }

    #[test]
    fn utc_is_written_by_rfc_3339() {
        assert_eq!(Times::Utc.full(NOVEMBER), "2026-11-21T13:00:13.500Z");
        assert_eq!(
            Times::Utc.short(NOVEMBER, NOVEMBER),
            "2026-11-21T13:00:13.500Z"
        );
        assert_eq!(Times::Utc.zone_name(NOVEMBER), None);
    }

    #[test]
    fn a_note_names_the_day_only_if_it_is_another() {
        let hours = |h: u64| NOVEMBER.plus(std::time::Duration::from_secs(h * 3_600));
        assert_eq!(berlin().short(hours(3), NOVEMBER), "17:00");
        assert_eq!(berlin().short(hours(10), NOVEMBER), "2026-11-22 00:00");
    }

    #[test]
    fn times_of_any_size_can_be_shown() {
        for at in [WallTime(i64::MIN), WallTime(i64::MAX)] {
            assert!(!berlin().full(at).is_empty());
            assert!(!berlin().short(at, NOVEMBER).is_empty());
        }
    }
}
