//! The tokens of a store, as its listing shows them, and what its server takes of the processors.

use std::time::{Duration, Instant};

use tokenrun::store::open::Opening;
use tokenrun::store::url::StoreUrl;
use tokenrun::store::{RunQuery, Store};
use tokenrun::token::Outcome;

use crate::common::processes::processor_seconds;
use crate::sites::Site;

/// How often the tokens are looked at. A heartbeat may have been later than was seen, by this.
const LOOK: Duration = Duration::from_millis(500);

/// tokenrun's default.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(10);

/// How long all holders may take to get their tokens.
const PATIENCE: Duration = Duration::from_secs(180);

pub(crate) struct Watch<'a> {
    site: &'a Site<'a>,
    store: Box<dyn Store>,
}

/// The measurements while all holders held.
pub(crate) struct Seen {
    /// The fewest that held at once.
    pub(crate) fewest: usize,
    /// The greatest age of a heartbeat.
    oldest: Duration,
    /// The server's share of a processor.
    server: f64,
    heartbeats_a_second: f64,
    /// The most connections at once.
    connections: usize,
}

impl Seen {
    /// How late a heartbeat was, at most.
    pub(crate) fn late(&self) -> Duration {
        (self.oldest + LOOK).saturating_sub(HEARTBEAT)
    }

    /// Prints the costs, which have no bound.
    pub(crate) fn print(&self, site: &Site<'_>) {
        println!(
            "| heartbeats a second | {:.0} | |",
            self.heartbeats_a_second
        );
        if !site.servers.is_empty() {
            println!(
                "| the server, of a processor | {:.1} % | |",
                100.0 * self.server
            );
            let each = 1e3 * self.server / self.heartbeats_a_second;
            println!("| a heartbeat, in the server | {each:.2} ms of a processor | |");
        }
        if site.connections.is_some() {
            println!("| connections at once, at most | {} | |", self.connections);
        }
    }
}

/// Opens a store as a run does.
pub(crate) fn open(url: &str, timeout: Duration) -> Box<dyn Store> {
    let opening = Opening {
        timeout,
        limit: timeout,
        application: "bench",
        state: None,
    };
    let url = StoreUrl::parse(url).expect("a URL");
    url.open(&opening, &mut |_| ()).expect("it opens").store
}

impl<'a> Watch<'a> {
    pub(crate) fn new(site: &'a Site<'a>) -> Self {
        let store = open(&site.direct, Duration::from_secs(30));
        Self { site, store }
    }

    /// How many hold, and the age of the oldest heartbeat.
    fn look(&mut self) -> (usize, Duration) {
        let listing = self.store.list().expect("the store answers");
        let held = listing.rows.iter().filter(|row| row.session().is_some());
        let ages = held.clone().filter_map(|row| row.age(&listing.now));
        (held.count(), ages.max().unwrap_or_default())
    }

    pub(crate) fn until_held(&mut self, count: usize) {
        let begun = Instant::now();
        while self.look().0 < count {
            assert!(begun.elapsed() < PATIENCE, "not every holder got its token");
            std::thread::sleep(LOOK);
        }
    }

    pub(crate) fn watch(&mut self, count: usize, watched: Duration) -> Seen {
        let (used, begun) = (self.server_seconds(), Instant::now());
        let (mut fewest, mut oldest, mut connections) = (count, Duration::ZERO, 0);
        while begun.elapsed() < watched {
            std::thread::sleep(LOOK);
            let (held, age) = self.look();
            fewest = fewest.min(held);
            oldest = oldest.max(age);
            let now = self.site.connections.as_ref().map_or(0, |count| count());
            connections = connections.max(now);
        }
        let took = begun.elapsed().as_secs_f64();
        Seen {
            fewest,
            oldest,
            server: (self.server_seconds() - used) / took,
            heartbeats_a_second: count as f64 / HEARTBEAT.as_secs_f64(),
            connections,
        }
    }

    /// All of the server's processes. The listings of this watch are a part of it.
    pub(crate) fn server_seconds(&self) -> f64 {
        (self.site.servers.iter())
            .map(|pids| pids().into_iter().map(processor_seconds).sum::<f64>())
            .sum()
    }

    /// How many runs the store says succeeded, but for the one that made the tables.
    pub(crate) fn succeeded(&mut self) -> usize {
        let query = RunQuery {
            outcomes: vec![Outcome::Succeeded],
            ..RunQuery::default()
        };
        let runs = self.store.runs(&query).expect("the store answers");
        runs.iter()
            .filter(|run| run.group.as_str() != "first")
            .count()
    }

    /// Losses and takeovers of all groups.
    pub(crate) fn lost(&mut self) -> i64 {
        let listing = self.store.list().expect("the store answers");
        let counters = listing.rows.iter().map(|row| &row.document.counters);
        counters.map(|it| it.losses + it.takeovers).sum()
    }
}
