//! Runs over time, as a picture of the terminal's width: a row per client, a column per span of
//! time.

use std::collections::BTreeMap;
use std::time::Duration;

use super::layout::{cut, shortened, width_of};
use super::printable::printable;
use super::screen::Screen;
use crate::duration::rounded;
use crate::token::WallTime;
use crate::token::{Outcome, RunRecord, StoreTime};

/// Fewer columns make no useful picture.
const LEAST_COLUMNS: usize = 10;

/// How wide a picture is where no width is given.
const PLAIN_WIDTH: usize = 80;

/// The mark of a run; a higher one is graver.
const fn mark(run: &RunRecord) -> char {
    match run.outcome {
        // Its job was ended on purpose.
        Outcome::Lost if run.revoked => '!',
        Outcome::Succeeded => '=',
        Outcome::Running => '>',
        Outcome::NotStarted => '-',
        Outcome::Failed | Outcome::Signalled | Outcome::TimedOut => '!',
        Outcome::Lost | Outcome::Unknown => 'x',
    }
}

const LEGEND: [&str; 5] = [
    "= succeeded",
    "> running",
    "- not started",
    "! failed, killed or timed out",
    "x lost or unknown",
];

/// The escape sequence for a mark on a terminal.
const fn colour(mark: char) -> &'static str {
    match mark {
        '=' => "32",
        '>' => "36",
        '!' => "33",
        'x' => "31",
        _ => "0",
    }
}

/// Draws runs, as wide as the screen.
#[must_use]
pub fn timeline(runs: &[RunRecord], now: &StoreTime, screen: &Screen) -> String {
    let width = screen.width.unwrap_or(PLAIN_WIDTH);
    let times = &screen.times;
    let mut groups: BTreeMap<&str, Vec<&RunRecord>> = BTreeMap::new();
    for run in runs {
        groups.entry(run.group.as_str()).or_default().push(run);
    }
    let Some(from) = runs.iter().map(|run| run.started_at).min() else {
        return "no runs\n".to_owned();
    };
    let until = now.stamp.wall.max(WallTime(from.0.saturating_add(1)));
    let clients = runs.iter().map(|run| printable(run.client.as_str()));
    let names = clients.map(|name| width_of(&name)).max().unwrap_or(0);
    let names = names.min((width / 3).max(1));
    let columns = width.saturating_sub(names + 2).max(LEAST_COLUMNS);
    let scale = Scale {
        from,
        until,
        columns,
    };
    let zone = times.zone_name(until);
    let zone = zone.map_or_else(String::new, |zone| format!(", times in {zone}"));
    let head = format!(
        "{} to {}, a column is {}{zone}",
        times.full(from),
        times.full(until),
        rounded(scale.column())
    );
    let mut text = cut(&head, screen.width) + "\n";
    for (group, mut runs) in groups {
        // The oldest first: later runs are drawn over earlier ones.
        runs.sort_by_key(|run| (run.started_at, run.fence));
        let group = shortened(&printable(group), width);
        text.push_str(&format!("\n{group}\n"));
        let mut lanes: BTreeMap<&str, Vec<char>> = BTreeMap::new();
        for run in &runs {
            let lane = lanes
                .entry(run.client.as_str())
                .or_insert_with(|| vec!['.'; columns]);
            scale.draw(lane, run);
        }
        for (client, lane) in lanes {
            let client = shortened(&printable(client), names);
            let blanks = " ".repeat(names.saturating_sub(width_of(&client)));
            let lane = painted(&lane, screen.colours);
            text.push_str(&format!("{client}{blanks}  {lane}\n"));
        }
        // A client that is handed its own token, or takes over its own dead run, moves nothing.
        let moves = runs
            .iter()
            .filter_map(|run| Some((run.previous_client.as_ref()?, run)));
        for (from, run) in moves {
            let line = format!(
                "  {}  {} -> {} ({})",
                times.full(run.started_at),
                shortened(&printable(from.as_str()), names),
                shortened(&printable(run.client.as_str()), names),
                run.grant
            );
            text.push_str(&(cut(&line, screen.width) + "\n"));
        }
    }
    text.push_str(&legend(screen.width));
    text
}

/// The meanings of the marks, in as many lines as they need.
fn legend(width: Option<usize>) -> String {
    let mut lines = vec![String::new()];
    for meaning in LEGEND {
        let Some(line) = lines.last_mut() else {
            continue;
        };
        let fits = width.is_none_or(|width| width_of(line) + 2 + width_of(meaning) <= width);
        match (line.is_empty(), fits) {
            (true, _) => line.push_str(meaning),
            (false, true) => line.push_str(&format!("  {meaning}")),
            (false, false) => lines.push(meaning.to_owned()),
        }
    }
    let lines = lines.iter().map(|line| cut(line, width));
    format!("\n{}\n", lines.collect::<Vec<_>>().join("\n"))
}

struct Scale {
    from: WallTime,
    until: WallTime,
    columns: usize,
}

impl Scale {
    fn column(&self) -> Duration {
        let span = self.until.since(self.from).unwrap_or_default().as_millis() as u64;
        Duration::from_millis((span / self.columns as u64).max(1))
    }

    fn column_of(&self, at: WallTime) -> usize {
        let (at, span) = (
            i128::from(at.clamp(self.from, self.until).0) - i128::from(self.from.0),
            i128::from(self.until.0) - i128::from(self.from.0),
        );
        let column = at * self.columns as i128 / span.max(1);
        usize::try_from(column).unwrap_or(0).min(self.columns - 1)
    }

    /// A run without an end is drawn where it began, unless it goes on.
    fn draw(&self, lane: &mut [char], run: &RunRecord) {
        let end = match (run.ended_at, run.outcome) {
            (Some(end), _) => end,
            (None, Outcome::Running) => self.until,
            (None, _) => run.started_at,
        };
        let first = self.column_of(run.started_at);
        let last = self.column_of(end).max(first);
        for cell in lane.iter_mut().take(last + 1).skip(first) {
            *cell = graver(*cell, mark(run));
        }
    }
}

/// Of two runs in one column the graver one is shown.
fn graver(one: char, other: char) -> char {
    let rank = |mark| ".-=>!x".find(mark);
    if rank(one) > rank(other) { one } else { other }
}

fn painted(lane: &[char], colours: bool) -> String {
    if !colours {
        return lane.iter().collect();
    }
    let mut text = String::new();
    for part in lane.chunk_by(|one, other| one == other) {
        let cells: String = part.iter().collect();
        let colour = part.first().map_or("0", |mark| colour(*mark));
        text.push_str(&format!("\u{1b}[{colour}m{cells}\u{1b}[0m"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::{ClientId, ClockEpoch, Fence, GrantKind, GroupName, SessionId, Stamp};

    fn run(client: &str, started: i64, ended: Option<i64>, outcome: Outcome) -> RunRecord {
        RunRecord {
            group: GroupName::new("g").unwrap(),
            fence: Fence(started),
            session: SessionId::new("s").unwrap(),
            client: ClientId::new(client).unwrap(),
            previous_client: None,
            host: None,
            pid: None,
            label: None,
            program: "job".into(),
            once_key: None,
            grant: GrantKind::Renew,
            started_at: WallTime(started),
            ended_at: ended.map(WallTime),
            outcome,
            exit_code: None,
            signal: None,
            revoked: false,
            reason: None,
            other: crate::token::Others::new(),
        }
    }

    fn now(wall: WallTime) -> StoreTime {
        let stamp = Stamp {
            tick_ms: wall.0,
            wall,
        };
        let epoch = ClockEpoch("d".into());
        StoreTime { epoch, stamp }
    }

    fn drawn(runs: &[RunRecord], at: WallTime) -> String {
        timeline(runs, &now(at), &screen(23))
    }

    fn screen(width: usize) -> Screen {
        Screen {
            width: Some(width),
            ..Screen::plain()
        }
    }

    #[test]
    fn each_client_has_a_lane_and_each_failover_a_line() {
        let mut taken = run("b", 500_000, Some(699_999), Outcome::Succeeded);
        taken.grant = GrantKind::Takeover;
        taken.previous_client = ClientId::new("a").ok();
        let runs = [
            run("a", 0, Some(199_999), Outcome::Succeeded),
            run("a", 300_000, None, Outcome::Unknown),
            taken,
            run("b", 800_000, Some(999_999), Outcome::Failed),
        ];
        let text = drawn(&runs, WallTime(1_000_000));
        assert!(text.contains("a  ====..x............."), "{text}");
        assert!(text.contains("b  ..........====..!!!!"), "{text}");
        let wide = timeline(&runs, &now(WallTime(1_000_000)), &Screen::plain());
        assert!(wide.contains("a -> b (takeover)"), "{wide}");
        assert!(wide.contains("a column is 12s"), "{wide}");
    }

    #[test]
    fn a_client_that_had_the_token_already_moves_nothing() {
        let mut handed = run("a", 0, Some(199_999), Outcome::Succeeded);
        handed.grant = GrantKind::Handoff;
        let text = drawn(&[handed], WallTime(1_000_000));
        assert!(!text.contains("->"), "{text}");
    }

    #[test]
    fn any_times_can_be_drawn() {
        assert_eq!(drawn(&[], WallTime(5)), "no runs\n");
        for (start, end, at) in [
            (i64::MAX, Some(i64::MIN), 0),
            (i64::MIN, Some(i64::MAX), i64::MAX),
            (5, Some(1), 3),
            (0, None, 0),
        ] {
            let text = drawn(&[run("a", start, end, Outcome::Lost)], WallTime(at));
            assert!(text.contains('x'), "{text}");
        }
    }

    #[test]
    fn no_line_is_wider_than_the_screen() {
        let name = "a-client-with-a-name-of-more-than-eighty-columns".repeat(2);
        let mut taken = run(&name, 500_000, Some(699_999), Outcome::Succeeded);
        taken.previous_client = ClientId::new("a").ok();
        for width in [20, 40, 80, 81, 100] {
            let text = timeline(&[taken.clone()], &now(WallTime(1_000_000)), &screen(width));
            for line in text.lines() {
                assert!(width_of(line) <= width, "{width}: {text}");
            }
            assert!(width < 80 || text.contains("x lost or unknown"), "{text}");
        }
    }

    #[test]
    fn a_revoked_run_is_ended_and_not_lost() {
        let mut revoked = run("a", 0, Some(100), Outcome::Lost);
        revoked.revoked = true;
        let text = drawn(&[revoked], WallTime(100));
        assert!(text.contains('!') && !text.contains("a  x"), "{text}");
    }

    #[test]
    fn colours_are_for_terminals() {
        let runs = [run("a", 0, Some(10), Outcome::Failed)];
        let colourful = Screen {
            colours: true,
            ..screen(80)
        };
        let text = timeline(&runs, &now(WallTime(100)), &colourful);
        assert!(text.contains("\u{1b}[33m!"), "{text}");
        assert!(!drawn(&runs, WallTime(100)).contains('\u{1b}'));
    }
}
