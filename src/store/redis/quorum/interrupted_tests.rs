//! Commits whose requests or answers are lost on their way to some members, or that another client overtakes there: between
//! each member and the client stands a proxy that knows which request it passes on.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::QuorumKv;
use super::failure_tests::{PREFIX, accepted, client_of, held, look, starts_anew};
use super::fixtures::{TOKEN, ballot, put, swapping};
use super::wish::{Did, To, Wish};
use crate::store::Trouble;
use crate::store::kv::{Ask, Commit, Kv as _, Outcome};
use crate::store::redis::settings::Settings;
use crate::store::redis::test_server::{Quorum, Server};

/// Far longer than a call takes that waits for no one.
const TIMEOUT: Duration = Duration::from_secs(10);
const NOTE: &str = "incarnation";

/// What becomes of a request. The connection ends if it or its answer is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Arrives,
    IsLost,
    IsHeldUp,
    IsSlow,
    AnswerIsLost,
}

use Fate::{AnswerIsLost, Arrives, IsHeldUp, IsLost, IsSlow};

/// Longer than the others are waited for alone.
const SLOW: Duration = Duration::from_millis(400);

/// The fate of a request of this kind to the member of this number.
type Decide = Box<dyn FnMut(&str, usize) -> Fate + Send>;

/// Members behind proxies.
struct Proxied {
    quorum: Quorum,
    url: String,
    decide: Arc<Mutex<Decide>>,
}

impl Proxied {
    fn start(count: usize) -> Self {
        let quorum = Quorum::start(count);
        let decide: Arc<Mutex<Decide>> = Arc::new(Mutex::new(Box::new(|_, _| Arrives)));
        let places = quorum.0.iter().enumerate().map(|(member, server)| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let place = listener.local_addr().unwrap().to_string();
            let (port, decide) = (server.port(), Arc::clone(&decide));
            thread::spawn(move || {
                for client in listener.incoming() {
                    let (client, decide) = (client.unwrap(), Arc::clone(&decide));
                    thread::spawn(move || {
                        // A connection to a server that is away ends.
                        let server = TcpStream::connect(("127.0.0.1", port)).ok()?;
                        pass_on(client, server, |wish| decide.lock().unwrap()(wish, member))
                    });
                }
            });
            place
        });
        let places: Vec<String> = places.collect();
        let url = format!("redis://{}/0?quorum&prefix={PREFIX}", places.join(","));
        Self {
            quorum,
            url,
            decide,
        }
    }

    fn client(&self) -> QuorumKv {
        let settings = Settings::read(&self.url, |_| None).unwrap();
        QuorumKv::new(settings, TIMEOUT, "test").unwrap()
    }

    /// A client that has written the token's version 0, once all members have joined.
    fn begun(&self) -> QuorumKv {
        let mut kv = self.client();
        assert_eq!(swap(&mut kv, None, "0"), Ok(Outcome::Done));
        self.until_joined();
        kv
    }

    fn until_joined(&self) {
        let all = self.quorum.0.len();
        self.quorum.0[0].wait_until("members that join", || {
            look(&mut self.client());
            self.quorum.joined(PREFIX) == all
        });
    }

    fn decides(&self, decide: impl FnMut(&str, usize) -> Fate + Send + 'static) {
        *self.decide.lock().unwrap() = Box::new(decide);
    }

    /// The fates of second rounds at each member. A round that has met a late member is repeated.
    fn decides_second_rounds(&self, fates: [Fate; 3]) {
        self.decides(move |wish, member| match wish {
            "accept" => fates[member],
            _ => Arrives,
        });
    }

    /// From now on all requests and answers arrive.
    fn decides_nothing(&self) {
        self.decides(|_, _| Arrives);
    }
}

/// Passes requests and answers on, until the end of one of the connections.
fn pass_on(
    mut client: TcpStream,
    mut server: TcpStream,
    mut decide: impl FnMut(&str) -> Fate,
) -> Option<()> {
    let is_mute = Arc::new(AtomicBool::new(false));
    let (mut answers, mut to) = (server.try_clone().ok()?, client.try_clone().ok()?);
    let loses = Arc::clone(&is_mute);
    thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while let Ok(count @ 1..) = answers.read(&mut buffer) {
            if loses.load(SeqCst) || to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
    let (mut asked, mut buffer) = (Vec::new(), [0; 65_536]);
    while let Ok(count @ 1..) = client.read(&mut buffer) {
        asked.extend_from_slice(&buffer[..count]);
        while let Some(length) = request(&asked) {
            let request: Vec<u8> = asked.drain(..length).collect();
            match decide(&wish(&request)) {
                Arrives => {}
                AnswerIsLost => is_mute.store(true, SeqCst),
                IsHeldUp => continue,
                IsSlow => thread::sleep(SLOW),
                IsLost => return client.shutdown(Shutdown::Both).ok(),
            }
            server.write_all(&request).ok()?;
        }
    }
    server.shutdown(Shutdown::Both).ok()
}

/// The length of the first request, if it is whole: an array of texts.
fn request(bytes: &[u8]) -> Option<usize> {
    let line = |from: usize| {
        let end = bytes.get(from..)?.windows(2).position(|it| it == b"\r\n")?;
        let number = str::from_utf8(&bytes[from + 1..from + end]).unwrap();
        Some((number.parse::<usize>().unwrap(), from + end + 2))
    };
    let (texts, mut at) = line(0)?;
    for _ in 0..texts {
        let (length, from) = line(at)?;
        at = from + length + 2;
    }
    (at <= bytes.len()).then_some(at)
}

/// What a request wishes; nothing, if it is for no member's script.
fn wish(request: &[u8]) -> String {
    let text = String::from_utf8_lossy(request);
    let wish = text.rsplit_once(r#""wish":""#);
    let wish = wish.and_then(|(_, rest)| rest.split_once('"'));
    wish.map_or_else(String::new, |(wish, _)| wish.to_owned())
}

fn swap(kv: &mut QuorumKv, from: Option<&str>, to: &str) -> Result<Outcome, Trouble> {
    let committed = kv.commit(&swapping(from, to));
    committed.map(|it| it.outcome).map_err(|it| it.trouble)
}

fn version(kv: &mut QuorumKv) -> String {
    look(kv).entries[TOKEN].version.clone()
}

/// All members have it, and none has said so.
#[test]
fn a_commit_without_an_answer_is_unclear_and_no_conflict() {
    let proxied = Proxied::start(3);
    let mut kv = proxied.begun();
    proxied.decides_second_rounds([AnswerIsLost; 3]);
    assert_eq!(swap(&mut kv, Some("0"), "1"), Err(Trouble::Unavailable));
    proxied.decides_nothing();
    assert_eq!(version(&mut kv), "1");
}

#[test]
fn a_commit_that_has_reached_one_member_is_unclear_until_a_look() {
    let proxied = Proxied::start(3);
    let mut kv = proxied.begun();
    proxied.decides_second_rounds([Arrives, IsLost, IsLost]);
    assert_eq!(swap(&mut kv, Some("0"), "1"), Err(Trouble::Unavailable));
    proxied.decides_nothing();
    let settled = version(&mut kv);
    assert_eq!(version(&mut client_of(&proxied.quorum)), settled);
}

/// The third member was late, and is asked again.
#[test]
fn a_commit_that_a_minority_has_is_completed_with_a_member_that_was_late() {
    let proxied = Proxied::start(3);
    let mut kv = proxied.begun();
    let mut lost = BTreeSet::new();
    proxied.decides(move |wish, member| match (wish, member) {
        ("prepare", 2) | ("accept", 1) if lost.insert(member) => IsLost,
        _ => Arrives,
    });
    assert_eq!(swap(&mut kv, Some("0"), "1"), Ok(Outcome::Done));
    assert_eq!(version(&mut client_of(&proxied.quorum)), "1");
}

/// Another client's higher ballot comes between the two rounds at the second member, and the third has lost the request.
#[test]
fn a_commit_that_was_overtaken_at_a_majority_goes_on() {
    let proxied = Proxied::start(3);
    let mut kv = proxied.begun();
    let mut other = client_of(&proxied.quorum);
    assert_eq!(version(&mut other), "0");
    let mut asked = BTreeSet::new();
    proxied.decides(move |wish, member| {
        if wish != "accept" || !asked.insert(member) {
            return Arrives;
        }
        if member == 1 {
            promise_at_second(&mut other);
        }
        if member == 2 { IsLost } else { Arrives }
    });
    assert_eq!(swap(&mut kv, Some("0"), "1"), Ok(Outcome::Done));
    assert_eq!(version(&mut client_of(&proxied.quorum)), "1");
}

/// Has the second member promise this client a higher ballot than any that it has met.
fn promise_at_second(kv: &mut QuorumKv) {
    let prepare = Wish::Prepare {
        ballot: ballot(1_000),
        registers: BTreeSet::from([TOKEN.to_owned()]),
        asked: Vec::new(),
    };
    let to = vec![None, Some(To::default()), None];
    let promised = kv.call(async |members, deadline, _| {
        let answers = members.round(deadline, &prepare, to, |_| false).await;
        Ok(answers.count(Did::Done))
    });
    assert_eq!(promised.unwrap(), 1);
}

#[test]
fn a_commit_does_not_wait_for_a_member_that_has_promised_it() {
    let proxied = Proxied::start(3);
    let mut kv = proxied.begun();
    proxied.decides_second_rounds([Arrives, Arrives, IsHeldUp]);
    let began = Instant::now();
    assert_eq!(swap(&mut kv, Some("0"), "1"), Ok(Outcome::Done));
    assert!(began.elapsed() < TIMEOUT, "{:?}", began.elapsed());
}

/// It would be compared with what may not stay.
#[test]
fn a_register_of_a_minority_is_completed_before_it_is_compared() {
    let proxied = Proxied::start(3);
    let mut kv = proxied.begun();
    let noting = Commit {
        puts: vec![put(NOTE, "n")],
        ..Commit::default()
    };
    // The first member is late at once. It is asked for the completion then, which finds nothing, and writes that.
    let mut is_late = false;
    proxied.decides(move |wish, member| match (wish, member) {
        ("prepare", 0) if !is_late => {
            is_late = true;
            IsLost
        }
        ("accept", 1 | 2) => IsLost,
        _ => Arrives,
    });
    let [first, .., last] = &proxied.quorum.0[..] else {
        panic!("three members");
    };
    first.wait_until("a note at the first member", || {
        let error = kv.commit(&noting).unwrap_err();
        assert_eq!(error.trouble, Trouble::Unavailable, "{error}");
        !held(first, NOTE, "value").is_empty()
    });
    proxied.decides_nothing();
    // The two others are a majority, of which one has the note.
    last.kill();
    let mut commit = swapping(Some("0"), "1");
    commit.compare.push((NOTE.to_owned(), Some("n".to_owned())));
    let mut other = proxied.client();
    let committed = other.commit(&commit).unwrap();
    assert_eq!(committed.outcome, Outcome::Done);
    let found = other.get(&[Ask::One(NOTE.to_owned())]).unwrap();
    assert_eq!(found.entries[NOTE].version, "n");
}

/// Three members, of which the first has missed the token's version 1, and the ballot of that.
fn missed_by_the_first() -> (Proxied, String) {
    let proxied = Proxied::start(3);
    let mut kv = proxied.begun();
    proxied.decides_second_rounds([IsLost, Arrives, Arrives]);
    assert_eq!(swap(&mut kv, Some("0"), "1"), Ok(Outcome::Done));
    proxied.decides_nothing();
    let last = accepted(&proxied.quorum.0[1], TOKEN);
    (proxied, last)
}

/// A majority has started anew, of which one member still has the token that it alone has left.
#[test]
fn what_one_member_still_has_of_a_majority_that_forgot_is_kept() {
    let (proxied, last) = missed_by_the_first();
    let servers = &proxied.quorum.0;
    starts_anew(&servers[1]);
    servers[2].cli(&["FLUSHALL"]);
    proxied.until_joined();
    assert!(accepted(&servers[2], TOKEN) >= last);
    assert_eq!(version(&mut proxied.client()), "1");
}

/// The first of these members that have started anew takes one client, and then the other is asked.
fn in_order_of_joining(servers: &[Server], mut these: [usize; 2]) -> [usize; 2] {
    let process = |server: &Server| {
        let member = format!("{{{PREFIX}}}:member");
        server.cli(&["HGET", &member, "process"])
    };
    these.sort_by_key(|index| process(&servers[*index]));
    these
}

#[test]
fn a_member_that_holds_something_older_gets_what_is_newer() {
    let (proxied, last) = missed_by_the_first();
    let servers = &proxied.quorum.0;
    assert!(accepted(&servers[0], TOKEN) < last);
    starts_anew(&servers[0]);
    proxied.until_joined();
    assert!(accepted(&servers[0], TOKEN) >= last);
}

/// One of them beside a member that knows is no majority.
#[test]
fn a_majority_that_has_forgotten_joins_together() {
    let proxied = Proxied::start(3);
    drop(proxied.begun());
    let servers = &proxied.quorum.0;
    let [_, last] = in_order_of_joining(servers, [1, 2]);
    for server in &servers[1..] {
        server.cli(&["FLUSHALL"]);
    }
    proxied.decides(move |wish, member| match wish {
        "enter" if member == last => IsLost,
        _ => Arrives,
    });
    let settings = Settings::read(&proxied.url, |_| None).unwrap();
    let mut hasty = QuorumKv::new(settings, 2 * SLOW, "test").unwrap();
    assert!(hasty.get(&[Ask::One(TOKEN.into())]).is_err());
    assert_eq!(proxied.quorum.joined(PREFIX), 1);
}

/// It may lack what the others hold: that it is late would keep it from joining for two seconds alone.
#[test]
fn a_member_that_missed_a_part_of_its_joining_does_not_join() {
    for (lost, fate) in [("enter", AnswerIsLost), ("accept", IsLost)] {
        let proxied = Proxied::start(5);
        drop(proxied.begun());
        let servers = &proxied.quorum.0;
        let [whole, emptied] = in_order_of_joining(servers, [3, 4]);
        starts_anew(&servers[whole]);
        servers[emptied].cli(&["FLUSHALL"]);
        proxied.decides(move |wish, member| match (wish, member) {
            _ if wish == lost && member == emptied => fate,
            ("join", _) if member == whole => IsSlow,
            _ => Arrives,
        });
        // The client that let them join at first keeps others from that for a second.
        servers[0].wait_until("a member that joins", || {
            look(&mut proxied.client());
            proxied.quorum.joined(PREFIX) > 3
        });
        assert_eq!(proxied.quorum.joined(PREFIX), 4, "{lost}");
        proxied.decides_nothing();
        proxied.until_joined();
        assert_ne!(accepted(&servers[emptied], TOKEN), "");
    }
}
