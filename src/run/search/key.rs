//! The canonical form of a state: versions and sessions by the order of their appearance, times
//! relative to now, and no data that no decision depends on. Two states with one form have the same
//! future, so each form is visited once.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::network::Out;
use super::world::World;
use crate::run::event::Event;
use crate::store::Request;
use crate::token::Swap;

/// Greater ages count as this one: every duration of a scenario is shorter.
const OLDEST_MS: i64 = 10_000;

/// Writes states in canonical form, into a buffer that is reused for speed.
#[derive(Default)]
pub(super) struct Scribe {
    text: String,
    form: Vec<u8>,
    versions: Vec<i64>,
    sessions: Vec<String>,
    /// The row that is being written is free: the age of its stamp affects no decision.
    is_free: bool,
}

impl Scribe {
    pub(super) fn key(&mut self, world: &World) -> u128 {
        self.form.clear();
        self.versions.clear();
        self.sessions.clear();
        self.write(world, &format_args!("{:?}{:?}", world.left, world.row()));
        self.write(world, &format_args!("{:?}", world.memory()));
        let queue = world.queue();
        if !queue.is_empty() {
            self.write(world, &format_args!("{queue:?}"));
        }
        if let Some(before) = &world.before {
            let row = before.rows.first_key_value();
            self.write(world, &format_args!("{row:?}{:?}", before.incarnation));
        }
        for client in &world.clients {
            self.write(
                world,
                &format_args!("|{}{:?}", client.frozen, client.orphan),
            );
            for adrift in &client.adrift {
                self.write(
                    world,
                    &format_args!("~{:?}{:?}", adrift.sent_at, adrift.sender.died_at),
                );
                self.swap(world, &adrift.swap);
            }
            let Some(process) = &client.process else {
                continue;
            };
            // The time of the row's stamp is in the store's copy: of its own copy the machine uses
            // only the version.
            self.text.clear();
            let _ = write!(self.text, "{:?}", process.run.machine.phase());
            self.scan(world, true);
            let run = &process.run;
            self.write(world, &format_args!("{:?}{:?}", run.guard, run.job));
            match &process.out {
                None => {}
                Some(Out {
                    request,
                    at,
                    answer: None,
                }) => {
                    self.write(world, &format_args!("?{at:?}"));
                    self.request(world, request);
                }
                Some(Out {
                    at,
                    answer: Some(event),
                    ..
                }) => {
                    self.write(world, &format_args!("!{at:?}"));
                    self.event(world, event);
                }
            }
        }
        for (session, until) in &world.excused {
            self.write(world, &format_args!("{session:?}{until:?}"));
        }
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, &self.form).hash(&mut hasher);
            u128::from(hasher.finish())
        };
        half(1) << 64 | half(2)
    }

    fn request(&mut self, world: &World, request: &Request) {
        match request {
            Request::Read(..) => self.form.push(b'r'),
            Request::Join(_, _, expiry, _) => self.write(world, &format_args!("j{expiry:?}")),
            Request::Leave(..) => self.form.push(b'l'),
            Request::Once { .. }
            | Request::Prune { .. }
            | Request::Refuse(_)
            | Request::KeepOutput(_) => {
                self.form.push(b'o');
            }
            Request::Record(_) => self.form.push(b'c'),
            Request::Swap(swap) => self.swap(world, swap),
            Request::Note(swap) => self.write(world, &format_args!("{swap:?}")),
        }
    }

    fn swap(&mut self, world: &World, swap: &Swap) {
        // A swap's changes to history affect no decision.
        let (from, stamp, expiry) = (swap.from, swap.stamp, &swap.expiry);
        self.write(
            world,
            &format_args!("{from:?}{stamp:?}{expiry:?}{:?}", swap.to),
        );
    }

    fn event(&mut self, world: &World, event: &Event) {
        self.write(world, &format_args!("{event:?}"));
    }

    fn write(&mut self, world: &World, what: &std::fmt::Arguments<'_>) {
        self.text.clear();
        let _ = self.text.write_fmt(*what);
        self.scan(world, false);
    }

    /// Copies the text, with names and times made canonical.
    fn scan(&mut self, world: &World, own_copy: bool) {
        let text = std::mem::take(&mut self.text);
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            // A word, which may begin a name or a time; then the text up to the next word.
            let taken = self.canonical(world, rest, own_copy);
            let is_word = |c: &u8| c.is_ascii_alphanumeric() || *c == b'_';
            let word = rest[taken..].iter().take_while(|c| is_word(c)).count();
            let gap = rest[taken + word..]
                .iter()
                .take_while(|c| !is_word(c))
                .count();
            self.form
                .extend_from_slice(&rest[taken..taken + word + gap]);
            rest = &rest[taken + word + gap..];
        }
        self.text = text;
    }

    /// Writes the canonical form of what begins here. Returns how much of the text it replaces.
    fn canonical(&mut self, world: &World, rest: &[u8], own_copy: bool) -> usize {
        if !b"VSMtwFcahrlnRsf".contains(&rest[0]) {
            return 0;
        }
        let until = |prefix: &[u8], end: u8| {
            let tail = rest.strip_prefix(prefix)?;
            let length = tail.iter().position(|c| *c == end)?;
            Some((&tail[..length], prefix.len() + length))
        };
        let number = |prefix: &[u8]| {
            let tail = rest.strip_prefix(prefix)?;
            let digits = tail
                .iter()
                .take_while(|c| c.is_ascii_digit() || **c == b'-');
            let length = digits.count();
            let number: i64 = std::str::from_utf8(&tail[..length]).ok()?.parse().ok()?;
            Some((number, prefix.len() + length))
        };
        if let Some((version, taken)) = number(b"Version(") {
            let index = index_of(&mut self.versions, version);
            self.form.extend([b'V', index]);
            return taken;
        }
        if let Some((name, taken)) = until(b"SessionId(\"", b'"') {
            let name = String::from_utf8_lossy(name).into_owned();
            let index = index_of(&mut self.sessions, name);
            self.form.extend([b'S', index]);
            return taken;
        }
        if let Some((moment, taken)) = until(b"Moment(", b')') {
            let text = std::str::from_utf8(moment).unwrap_or_default();
            let seconds: f64 = text
                .strip_suffix('s')
                .map_or(0.0, |t| t.parse().unwrap_or(0.0));
            let now = world.moment().0.as_secs_f64();
            self.relative(((seconds - now) * 1_000.0).round() as i64);
            return taken;
        }
        if let Some((tick, taken)) = number(b"tick_ms: ") {
            self.relative(tick - world.store_time().stamp.tick_ms);
            return taken;
        }
        if let Some(taken) = age_that_decides_nothing(rest) {
            return taken;
        }
        if let Some(state) = rest.strip_prefix(b"state: ") {
            self.is_free = state.starts_with(b"Free");
        }
        let skipped = number(b"wall: WallTime(")
            .or(number(b"Fence("))
            // Of a hand-off: people see it.
            .or(number(b"at: WallTime("))
            // A waiter's number: the order of the answer shows it already.
            .or(number(b"number: "))
            .map(|(_, taken)| taken);
        // The records that a run writes affect no decision.
        let skipped = skipped.or_else(|| until(b"RunRecord {", b'}').map(|(_, taken)| taken));
        let skipped = skipped.or_else(|| {
            let whole = [&b"counters: C"[..], b"created: S", b"acquired: S"];
            let stale = [&b"stamped: S"[..]];
            let stale = if own_copy || self.is_free {
                &stale[..]
            } else {
                &[]
            };
            let fields = whole.iter().chain(stale);
            let of_field = |prefix: &&[u8]| until(prefix, b'}').map(|(_, taken)| taken);
            fields.filter_map(of_field).next()
        });
        let word = |prefix: &[u8]| until(prefix, b',').map(|(_, taken)| taken);
        let skipped = skipped.or_else(|| word(b"last_outcome: "));
        let words = [&b"created: N"[..], b"acquired: N", b"stamp_of: "];
        skipped
            .or_else(|| words.into_iter().find_map(word))
            .unwrap_or(0)
    }

    fn relative(&mut self, ms: i64) {
        let ms = ms.clamp(-OLDEST_MS, OLDEST_MS);
        self.form.push(b'T');
        self.form.extend(ms.to_le_bytes());
    }
}

/// Skips the age of an incarnation that is trusted at any age.
fn age_that_decides_nothing(rest: &[u8]) -> Option<usize> {
    let tail = rest.strip_prefix(b"first_seen: ")?;
    let end = tail.iter().position(|c| *c == b'}')?;
    let text = std::str::from_utf8(&tail[end..]).ok()?;
    let (_, served) = text.split_once("served: ")?;
    let length = rest.len() - tail.len() + end;
    served.starts_with("Everything").then_some(length)
}

fn index_of<T: PartialEq>(names: &mut Vec<T>, name: T) -> u8 {
    let index = names.iter().position(|known| *known == name);
    let index = index.unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    });
    u8::try_from(index).unwrap_or(u8::MAX)
}
