//! Holders without processes: what a supervisor sends to its store, by the program's own code, a few thousand
//! in a process. They have no guard and no job.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tokenrun::store::Store;
use tokenrun::token::swap::{self, Swap, Swapped};
use tokenrun::token::{
    About, Claim, ClientId, GrantKind, GroupName, Row, SessionId, Timing, Version, Wishes,
};

use crate::sites::Site;
use crate::watch::{Watch, open};
use crate::{LATE, line};

/// How many processes share the holders.
const PARTS: usize = 4;

const HEARTBEAT: Duration = Duration::from_secs(30);

/// For how long they hold, after the last has its token.
const WATCHED: Duration = Duration::from_secs(120);

/// The variable that makes this program a part.
const PART: &str = "TOKENRUN_BENCH_PART";

pub(crate) fn is_part() -> bool {
    std::env::var_os(PART).is_some()
}

/// A holder: its connection, and its row.
struct Holder {
    store: Box<dyn Store>,
    row: Row,
    due: Instant,
}

/// Holds this many tokens. True if a bound is missed.
pub(crate) fn hold(site: &Site<'_>, count: usize) -> bool {
    // The first one makes the tables.
    drop(granted(&site.direct, "first"));
    let mut parts: Vec<_> = (0..PARTS)
        .map(|part| {
            let mut command = Command::new(std::env::current_exe().expect("a program"));
            let words = format!("{part} {} {}", count / PARTS, site.url);
            command.env(PART, words).stdout(Stdio::piped());
            command.spawn().expect("it starts")
        })
        .collect();
    let mut watch = Watch::new(site);
    watch.until_held(count + 1);
    let used = watch.server_seconds();
    let begun = Instant::now();
    let said: Vec<String> = parts
        .iter_mut()
        .map(|part| {
            let mut text = String::new();
            let out = part.stdout.as_mut().expect("a pipe");
            out.read_to_string(&mut text).expect("it is read");
            assert!(part.wait().expect("it ends").success());
            text
        })
        .collect();
    let server = (watch.server_seconds() - used) / begun.elapsed().as_secs_f64();
    let number = |index: usize| {
        let words = said
            .iter()
            .map(move |text| text.split_whitespace().nth(index));
        words.map(|word| {
            word.and_then(|it| it.parse::<u64>().ok())
                .expect("a number")
        })
    };
    let beats = count as f64 / HEARTBEAT.as_secs_f64();
    println!("| holders; heartbeats a second | {count}; {beats:.0} | |");
    println!(
        "| server and pooler, of a processor | {:.1} % | |",
        100.0 * server
    );
    println!(
        "| a heartbeat, in both | {:.2} ms of a processor | |",
        1e3 * server / beats
    );
    let missed = [
        line("lost tokens", number(0).sum(), 0),
        line(
            "the latest heartbeat, ms late",
            number(1).max().unwrap_or(0),
            LATE.as_millis() as u64,
        ),
    ];
    missed.contains(&true)
}

/// One process of the simulation: prints how many tokens were lost, and the latest heartbeat in milliseconds.
pub(crate) fn part() {
    let words = std::env::var(PART).expect("words");
    let mut words = words.split(' ');
    let mut next = || words.next().expect("three words").to_owned();
    let (part, count, url) = (next(), next().parse::<usize>().expect("a number"), next());
    let begun = Instant::now();
    let mut holders: Vec<Holder> = (0..count)
        .map(|number| {
            // Spread over a heartbeat, as nodes are.
            let share = u32::try_from(number).unwrap_or_default();
            let at = begun + HEARTBEAT * share / u32::try_from(count).unwrap_or(1);
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            granted(&url, &format!("part{part}-{number}"))
        })
        .collect();
    let (mut lost, mut latest, until) = (0, Duration::ZERO, Instant::now() + WATCHED);
    while Instant::now() < until {
        let holder = holders
            .iter_mut()
            .min_by_key(|it| it.due)
            .expect("a holder");
        std::thread::sleep(holder.due.saturating_duration_since(Instant::now()));
        lost += u32::from(!holder.beat());
        latest = latest.max(holder.due.elapsed());
        holder.due += HEARTBEAT;
    }
    println!("{lost} {}", latest.as_millis());
}

/// A holder that has just been granted its token.
fn granted(url: &str, group: &str) -> Holder {
    let mut store = open(url, Duration::from_secs(30));
    let claim = Claim {
        group: GroupName::new(group).expect("a name"),
        client: ClientId::new("bench").expect("a name"),
        session: SessionId::new(&format!("session-{group}")).expect("a name"),
        expected: None,
        failback: false,
        nested_in: None,
        timing: Timing::new(&Wishes {
            heartbeat: Some(HEARTBEAT),
            ..Wishes::default()
        })
        .expect("durations"),
        about: About::default(),
    };
    let reading = store.read(&claim.group).expect("the store answers");
    let row = reading.row.as_ref();
    let mut grant = swap::grant(
        &claim,
        GrantKind::Bind,
        row,
        &reading.now,
        Version::from_stored(1),
    );
    grant.note = reading.memory.note.clone().map(Box::new);
    let row = done(&mut store, &grant).expect("the token is free");
    Holder {
        store,
        row,
        due: Instant::now() + HEARTBEAT,
    }
}

impl Holder {
    /// Sends a heartbeat. False if the token is lost.
    fn beat(&mut self) -> bool {
        let version = Version::from_stored(self.row.version.number() + 1);
        let expiry = self.row.stamped.until(HEARTBEAT * 4);
        let beat = swap::heartbeat(&self.row, version, expiry);
        match done(&mut self.store, &beat) {
            Some(row) => {
                self.row = row;
                true
            }
            None => false,
        }
    }
}

/// The row that the swap has written; `None` if it did not happen.
fn done(store: &mut Box<dyn Store>, swap: &Swap) -> Option<Row> {
    match store.swap(swap).expect("the store answers") {
        Swapped::Done(now) => Some(swap.written(&now)),
        Swapped::Conflict | Swapped::Expired(_) => None,
    }
}
