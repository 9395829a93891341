//! The script of a member beside the member of the model, whose schedules are searched: both answer alike.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;

use super::register::model::{Answer, Member, Request, Rules, Token, Version, Wish as Wished};
use super::register::{Ballot, Held};
use super::wish::{About, Did, Kept, Put, Report, To, Wish};
use crate::store::kv::Ask;
use crate::store::kv::written::Written;
use crate::store::redis::link::Session;
use crate::store::redis::script::{SERVER, text};
use crate::store::redis::settings::Settings;
use crate::store::redis::test_server::Server;

const LIMIT: Duration = Duration::from_secs(10);
const TOKEN: &str = "token:g";
const RECORD: &str = "run:g:1:s";
/// The processes, as the model names them: the server's own, and another.
const OWN: u64 = 1;
const OTHER: u64 = 2;

/// A step of a schedule.
#[derive(Debug, Clone)]
enum Step {
    Request(Request),
    /// The server has started anew, with its data or without.
    Crash(bool),
}

/// A server that runs the script.
struct Scripted {
    session: Session,
    script: String,
    prefix: String,
    process: String,
}

impl Scripted {
    /// A member that has joined.
    fn new() -> Self {
        let prefix = Server::prefix();
        let url = format!("{}?prefix={prefix}", Server::shared().url());
        let settings = Settings::read(&url, |_| None).unwrap();
        let mut this = Self {
            session: Session::new(settings),
            script: text(&[SERVER, include_str!("member.lua")]),
            prefix,
            process: String::new(),
        };
        let refused = this.ask(&Wish::Show(Vec::new()), &To::default());
        assert!(refused.did == Did::Refused && !refused.is_sure);
        this.process = refused.process;
        this.rejoin(1, Vec::new(), OWN);
        this
    }

    fn ask(&mut self, wish: &Wish, to: &To) -> Report {
        let settings = self.session.settings().clone();
        let command = wish.command(&self.script, &settings, to);
        let value = self.session.ask(LIMIT, &command).map_err(|it| it.words);
        Report::read(&value.unwrap()).unwrap()
    }

    fn to(&self, process: u64, generation: Option<u64>, of_unsure: bool) -> To {
        let process = match process {
            OWN => self.process.clone(),
            _ => "another".into(),
        };
        To {
            process: Some(process),
            generation: generation.map(ballot_of),
            of_unsure,
            within_ms: 1_000,
            expiry_ms: None,
        }
    }

    fn rejoin(&mut self, generation: u64, puts: Vec<Put>, process: u64) -> Answer {
        let to = self.to(process, Some(generation), true);
        let join = Wish::Join {
            incarnation: "i".into(),
        };
        for wish in [Wish::Enter { by: None }, Wish::keep(puts), join] {
            if self.ask(&wish, &to).did != Did::Done {
                return Answer::Refused;
            }
        }
        Answer::Accepted
    }

    fn answer(&mut self, request: &Request) -> Answer {
        let both = || [TOKEN, RECORD].map(|key| Ask::One(key.into())).to_vec();
        let registers = || BTreeSet::from([TOKEN.to_owned()]);
        let wish = match &request.wish {
            Wished::Show => Wish::Show(both()),
            Wished::Enter => Wish::Enter { by: None },
            Wished::Prepare(ballot) => Wish::Prepare {
                ballot: *ballot,
                registers: registers(),
                asked: both(),
            },
            Wished::Accept(ballot, token, record) => {
                let held = Held {
                    accepted: *ballot,
                    value: *token,
                };
                Wish::Accept {
                    ballot: *ballot,
                    registers: registers(),
                    puts: record
                        .iter()
                        .map(record_put)
                        .chain([token_put(&held)])
                        .collect(),
                    announces: None,
                    asked: Vec::new(),
                }
            }
            Wished::Keep(record) => Wish::keep(vec![record_put(record)]),
            Wished::Rejoin(token, record) => {
                let puts = vec![token_put(token), record_put(record)];
                let generation = request.generation.unwrap_or_default();
                return self.rejoin(generation, puts, request.process);
            }
        };
        let to = self.to(request.process, request.generation, false);
        let report = self.ask(&wish, &to);
        match report.did {
            Did::Refused => Answer::Refused,
            Did::Behind => Answer::Behind(Ballot::LOWEST),
            Did::Expired | Did::Alone => panic!("there is no expiry, and no other use"),
            Did::Done if matches!(wish, Wish::Accept { .. }) => Answer::Accepted,
            Did::Done if matches!(wish, Wish::Enter { .. }) => {
                let to = To {
                    process: None,
                    generation: None,
                    ..to
                };
                shown(&self.ask(&Wish::Show(both()), &to))
            }
            Did::Done => shown(&report),
        }
    }

    fn crash(&self, forgets: bool) {
        let key = |name: &str| format!("{{{}}}:{name}", self.prefix);
        let server = Server::shared();
        match forgets {
            true => {
                let registers = [TOKEN, RECORD].map(|it| key(&format!("register:{it}")));
                let [one, other] = registers;
                server.cli(&["DEL", &key("member"), &key("registers"), &one, &other]);
            }
            false => {
                server.cli(&["HSET", &key("member"), "process", "an earlier one"]);
            }
        }
    }
}

fn ballot_of(number: u64) -> Ballot {
    Ballot { number, client: 0 }
}

fn put(key: &str, ballot: Ballot, version: u32, with: &[&str]) -> Put {
    Put {
        key: key.into(),
        ballot,
        kept: Kept {
            written: Some(Written {
                version: version.to_string(),
                ..Written::default()
            }),
            age_ms: 0,
            about: About {
                with: with.iter().map(ToString::to_string).collect(),
                writes: Vec::new(),
            },
        },
    }
}

fn token_put(token: &Held<Token>) -> Put {
    let with: &[&str] = if token.value.with { &[RECORD] } else { &[] };
    let id = token.value.version.map_or(0, |it| it.id);
    put(TOKEN, token.accepted, id, with)
}

fn record_put(record: &Held<u32>) -> Put {
    put(RECORD, record.accepted, record.value, &[])
}

/// A report as an answer of the model's.
fn shown(report: &Report) -> Answer {
    let of = |key: &str| report.held[key].clone();
    let number = |held: &Held<Kept>| {
        let written = held.value.written.as_ref();
        written.map_or(0, |it| it.version.parse().unwrap())
    };
    let (token, record) = (of(TOKEN), of(RECORD));
    let version = written_as(number(&token));
    let held = Held {
        accepted: token.accepted,
        value: Token {
            version,
            with: !token.value.about.with.is_empty(),
        },
    };
    let record = Held {
        accepted: record.accepted,
        value: number(&record),
    };
    Answer::Holds(report.generation.number, held, record)
}

fn written_as(id: u32) -> Option<Version> {
    (id > 0).then_some(Version {
        id,
        after: 0,
        depth: 0,
        recorded: 0,
    })
}

fn ballots() -> impl Strategy<Value = Ballot> {
    (1..6_u64, 0..2_u64).prop_map(|(number, client)| Ballot { number, client })
}

/// A number for each ballot: a round writes one value.
fn number_of(ballot: Ballot) -> u32 {
    u32::try_from(2 * ballot.number + ballot.client).unwrap()
}

fn records() -> impl Strategy<Value = Held<u32>> {
    ballots().prop_map(|accepted| Held {
        accepted,
        value: number_of(accepted),
    })
}

fn tokens() -> impl Strategy<Value = Held<Token>> {
    ballots().prop_map(|accepted| Held {
        accepted,
        value: Token {
            version: written_as(number_of(accepted)),
            with: accepted.number % 2 == 0,
        },
    })
}

fn steps() -> impl Strategy<Value = Step> {
    let wish = prop_oneof![
        2 => Just(Wished::Show),
        3 => ballots().prop_map(Wished::Prepare),
        3 => (tokens(), prop::option::of(records()))
            .prop_map(|(token, record)| Wished::Accept(token.accepted, token.value, record)),
        1 => records().prop_map(Wished::Keep),
        1 => Just(Wished::Enter),
        2 => (tokens(), records()).prop_map(|(token, record)| Wished::Rejoin(token, record)),
    ];
    let process = prop_oneof![9 => Just(OWN), 1 => Just(OTHER)];
    let request =
        (process, prop::option::of(1..5_u64), wish).prop_map(|(process, generation, wish)| {
            let named = matches!(wish, Wished::Rejoin(..) | Wished::Enter);
            Step::Request(Request {
                process,
                generation: generation.or(named.then_some(1)),
                wish,
            })
        });
    prop_oneof![8 => request, 1 => any::<bool>().prop_map(Step::Crash)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_script_answers_as_the_members_that_were_searched(steps in prop::collection::vec(steps(), 1..40)) {
        let mut scripted = Scripted::new();
        let mut member = Member {
            process: OWN,
            joined: Some(OWN),
            generation: 1,
            promised: Ballot::LOWEST,
            token: Held::default(),
            record: Held::default(),
        };
        for step in steps {
            match step {
                Step::Crash(forgets) => {
                    scripted.crash(forgets);
                    member.joined = None;
                    if forgets {
                        member.generation = 0;
                        (member.promised, member.token, member.record) = Default::default();
                    }
                }
                Step::Request(request) => {
                    let expected = match member.answer(&request, Rules::default()) {
                        // The script tells the highest ballot of all its registers.
                        Answer::Behind(_) => Answer::Behind(Ballot::LOWEST),
                        other => other,
                    };
                    prop_assert_eq!(scripted.answer(&request), expected, "{:?}", request);
                }
            }
        }
    }
}

#[test]
fn a_client_with_much_more_time_takes_over_a_member_that_joins() {
    let mut scripted = Scripted::new();
    scripted.crash(false);
    let mut enter = |client: u64, generation: u64, within_ms: u64| {
        let by = Some(client);
        let to = scripted.to(OWN, Some(generation), true);
        let to = To { within_ms, ..to };
        scripted.ask(&Wish::Enter { by }, &to).did
    };
    assert_eq!(enter(1, 2, 300_000), Did::Done);
    for within_ms in [1, 300_000, 600_000] {
        assert_eq!(enter(2, 3, within_ms), Did::Refused);
    }
    assert_eq!(enter(1, 3, 300_000), Did::Done);
    assert_eq!(enter(2, 4, 600_001), Did::Done);
    // The first client has no more time than the second, and its generation is over.
    assert_eq!(enter(1, 3, 600_001), Did::Refused);
    assert_eq!(enter(1, 5, 600_001), Did::Refused);
}
