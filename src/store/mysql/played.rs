//! A server whose answers are given, on a port of its own: the packets are those of the store's own wire.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use mysql_common::constants::{CapabilityFlags as Can, StatusFlags};
use mysql_common::packets::HandshakePacket;
use mysql_common::proto::MySerialize as _;

use super::conninfo::Settings;
use super::wire::{COM_QUERY, MORE_RESULTS, Wire};
use super::{MysqlStore, settings};
use crate::store::net::session::event_loop;
use crate::store::sql::cell::Cell;
use crate::store::sql::token::Columns;
use crate::token::rule::tests::fixture::{THEN, epoch};
use crate::token::{IncarnationNote, Row, StoreTime};

/// Far longer than any call takes.
pub(super) const TIMEOUT: Duration = Duration::from_secs(20);

/// The definition of a column with this name.
pub(super) fn column(name: &str) -> Vec<u8> {
    let length = u8::try_from(name.len()).unwrap();
    let named = [&[length], name.as_bytes()].concat();
    let kind = b"\x0c\x21\x00\x10\x00\x00\x00\xfd\x00\x00\x00\x00\x00";
    [&b"\x03def\x00\x01t\x01t"[..], &named, &named, kind].concat()
}

/// The yes to a log-in.
pub(super) const OK: &[u8] = &[0, 0, 0, AUTOCOMMIT, 0, 0, 0];

/// The status of a session.
const AUTOCOMMIT: u8 = 2;

/// The greeting of a server that can do this besides.
pub(super) fn greeting_of_one_that(can: Can) -> Vec<u8> {
    let mut bytes = Vec::new();
    let plugin = Some(&b"caching_sha2_password"[..]);
    let can = can | Can::CLIENT_PLUGIN_AUTH | Can::CLIENT_SECURE_CONNECTION;
    HandshakePacket::new(
        10,
        &b"11.4.2-MariaDB"[..],
        7,
        [1; 8],
        Some(&[2; 13][..]),
        can,
        45,
        StatusFlags::empty(),
        plugin,
    )
    .serialize(&mut bytes);
    bytes
}

/// What the server says to a statement.
#[derive(Debug, Clone)]
pub(super) enum Says {
    /// It has no columns.
    Done,
    /// A row of as many columns, the last of which has this name.
    Row(Vec<Option<String>>, &'static str),
    /// No row of a column.
    NoRow,
    /// An error with this number.
    Error(u16),
    /// Nothing: it closes the connection.
    Nothing,
}

/// One row of these texts.
pub(super) fn row<const N: usize>(texts: [&str; N]) -> Says {
    Says::Row(texts.map(|text| Some(text.to_owned())).to_vec(), "a")
}

/// One cell with yes or no.
pub(super) fn flag(yes: bool) -> Says {
    row([if yes { "1" } else { "0" }])
}

/// The time of each answer.
pub(super) fn now() -> StoreTime {
    StoreTime {
        epoch: epoch("e"),
        stamp: THEN,
    }
}

/// That time, as a column has it.
const NOW: &str = "2026-09-21 13:33:20.000000";

/// The answer of `tokenrun_swap`, with the number of sessions that wait.
pub(super) fn swapped(what: &str, waits: u32) -> Says {
    row([what, NOW, &now().epoch.0, &waits.to_string()])
}

/// The answer of `read.sql` of a group without waiters. `flags`: each commit is on the disk before its answer, and the server
/// accepts no writes.
pub(super) fn read(token: Option<&Row>, note: &IncarnationNote, flags: [bool; 2]) -> Says {
    const TOKEN: usize = 9;
    const WAITER: usize = 5;
    let some = |text: &str| Some(text.to_owned());
    let mut cells = [NOW, &now().epoch.0, "1"].map(some).to_vec();
    let token = token.map(|token| {
        let (head, document) = Columns::of(token).cells();
        let stamped = [NOW, &token.stamped.epoch.0].map(some);
        let head = head.iter().map(text).chain(stamped);
        head.chain([text(&document)]).collect()
    });
    cells.extend(token.unwrap_or_else(|| vec![None; TOKEN]));
    cells.extend(vec![None; WAITER]);
    let version = note.version.number().to_string();
    let flags = flags.map(|flag| if flag { "1" } else { "0" });
    let note = [&note.to_json(), &version, "server", "made InnoDB", "InnoDB"];
    cells.extend(note.into_iter().chain(flags).map(some));
    Says::Row(cells, "read_only")
}

fn text(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Text(text) => text.clone(),
        Cell::Number(number) => number.map(|number| number.to_string()),
        other => panic!("{other:?} is no text"),
    }
}

/// The statements that are noted: what they have in them, and their names.
const NAMES: [(&str, &str); 12] = [
    ("INTO @tokenrun_server", "set-up"),
    ("@tokenrun_epoch AS id", "which"),
    ("SELECT GET_LOCK(", LISTENS),
    ("SELECT SLEEP(", LISTENS),
    ("SELECT IS_USED_LOCK(", "used"),
    ("SELECT IF(IS_USED_LOCK(", "lock"),
    ("DO RELEASE_LOCK(", "give-up"),
    ("CALL tokenrun_swap(\n    NULL", "prepare"),
    ("CALL tokenrun_swap(", "swap"),
    ("INSERT INTO tokenrun_waiters", "join"),
    ("AS flushes", "read"),
    ("AS durable", "durable"),
];

/// The statements whose answers a waiter does not wait for. It is not known when they arrive, so they are not noted.
const LISTENS: &str = "listen";

#[derive(Default)]
struct Inner {
    /// What is said to the statements of a name.
    always: BTreeMap<&'static str, Says>,
    /// What is said before that, once each.
    once: BTreeMap<&'static str, VecDeque<Says>>,
    asked: Vec<&'static str>,
    /// The pauses that waiters have asked for.
    pauses: Vec<String>,
    /// The locks that statements have named.
    locks: BTreeSet<String>,
    clients: Vec<TcpStream>,
    farewells: usize,
}

/// The server. Its clones share it.
#[derive(Clone)]
pub(super) struct Played {
    port: u16,
    inner: Arc<(Mutex<Inner>, Condvar)>,
}

impl Played {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let this = Self {
            port: listener.local_addr().unwrap().port(),
            inner: Arc::default(),
        };
        let server = this.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), server.clone());
                // A client may go at any time.
                thread::spawn(move || server.serve(client).ok());
            }
        });
        this
    }

    pub(super) fn settings(&self) -> Settings {
        let url = format!("mysql://u@127.0.0.1:{}/d?ssl-mode=DISABLED", self.port);
        settings(&url, "test").unwrap()
    }

    pub(super) fn store(&self) -> MysqlStore {
        MysqlStore::new(self.settings(), TIMEOUT)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `done` finds what it looks for.
    fn until<T>(&self, mut done: impl FnMut(&mut Inner) -> Option<T>) -> T {
        let mut inner = self.inner();
        loop {
            match done(&mut inner) {
                Some(found) => return found,
                None => inner = self.inner.1.wait(inner).unwrap(),
            }
        }
    }

    /// Says this to all statements of this name from now on. Without that they are done.
    pub(super) fn says(&self, name: &'static str, says: Says) {
        self.inner().always.insert(name, says);
    }

    /// Says this once to a statement of this name; one that listens waits for it.
    pub(super) fn says_once(&self, name: &'static str, says: Says) {
        self.inner().once.entry(name).or_default().push_back(says);
        self.inner.1.notify_all();
    }

    /// What was asked since the last call of this function.
    pub(super) fn asked(&self) -> String {
        std::mem::take(&mut self.inner().asked).join(" ")
    }

    /// The pauses since the last call of this function.
    pub(super) fn pauses(&self) -> String {
        std::mem::take(&mut self.inner().pauses).join(" ")
    }

    /// The locks that were named until now.
    pub(super) fn locks(&self) -> Vec<String> {
        self.inner().locks.iter().cloned().collect()
    }

    /// Closes all connections.
    pub(super) fn hang_up(&self) {
        for client in std::mem::take(&mut self.inner().clients) {
            client.shutdown(Shutdown::Both).unwrap();
        }
    }

    /// Waits until so many connections have ended with a farewell.
    pub(super) fn until_left(&self, count: usize) {
        self.until(|inner| (inner.farewells >= count).then_some(()));
    }

    fn note(&self, name: &'static str) {
        self.inner().asked.push(name);
    }

    fn serve(&self, client: TcpStream) -> io::Result<()> {
        self.inner().clients.push(client.try_clone()?);
        client.set_nodelay(true)?;
        client.set_nonblocking(true)?;
        event_loop().unwrap().block_on(async {
            let stream = tokio::net::TcpStream::from_std(client)?;
            let mut wire = Wire::new(Box::new(stream));
            let greeting = greeting_of_one_that(Can::CLIENT_PROTOCOL_41);
            wire.write(&greeting).await?;
            wire.read().await?;
            self.note("open");
            wire.write(OK).await?;
            loop {
                let command = wire.read().await?;
                let Some(packet) = command.strip_prefix(&[COM_QUERY]) else {
                    self.inner().farewells += 1;
                    self.inner.1.notify_all();
                    return Ok(());
                };
                self.answer(&mut wire, &String::from_utf8_lossy(packet))
                    .await?;
            }
        })
    }

    /// Answers the statements of a packet until one fails.
    async fn answer(&self, wire: &mut Wire, packet: &str) -> io::Result<()> {
        let mut statements = packet.split(";\n").peekable();
        while let Some(statement) = statements.next() {
            let more = statements
                .peek()
                .map_or(0, |_| MORE_RESULTS.to_le_bytes()[0]);
            let end = [0xfe, 0, 0, AUTOCOMMIT | more, 0];
            match self.answer_to(statement) {
                Says::Done => wire.write(&[0, 0, 0, AUTOCOMMIT | more, 0, 0, 0]).await?,
                Says::Row(row, name) => {
                    wire.write(&[u8::try_from(row.len()).unwrap()]).await?;
                    for _ in 1..row.len() {
                        wire.write(&column("a")).await?;
                    }
                    wire.write(&column(name)).await?;
                    wire.write(&[0xfe, 0, 0, AUTOCOMMIT, 0]).await?;
                    let cells: Vec<Vec<u8>> = row.iter().map(|it| cell(it.as_ref())).collect();
                    wire.write(&cells.concat()).await?;
                    wire.write(&end).await?;
                }
                Says::NoRow => {
                    wire.write(&[1]).await?;
                    wire.write(&column("a")).await?;
                    wire.write(&[0xfe, 0, 0, AUTOCOMMIT, 0]).await?;
                    wire.write(&end).await?;
                }
                Says::Error(code) => {
                    let code = code.to_le_bytes();
                    let error = [&[0xff], &code[..], b"#HY000no"].concat();
                    return wire.write(&error).await;
                }
                Says::Nothing => return Err(io::ErrorKind::ConnectionReset.into()),
            }
        }
        Ok(())
    }

    fn answer_to(&self, statement: &str) -> Says {
        let name = NAMES.iter().find(|(part, _)| statement.contains(part));
        let Some((_, name)) = name else {
            return Says::Done;
        };
        let locks = statement.split("LOCK('").skip(1);
        let locks = locks.filter_map(|rest| Some(rest.split_once('\'')?.0.to_owned()));
        self.inner().locks.extend(locks);
        if *name != LISTENS {
            self.note(name);
        } else if let Some((_, pause)) = statement.split_once("SLEEP(") {
            let pause = pause.trim_end_matches(')').to_owned();
            self.inner().pauses.push(pause);
        }
        self.until(|inner| {
            let once = inner.once.get_mut(name).and_then(VecDeque::pop_front);
            let always = inner.always.get(name).cloned();
            once.or(always).or((*name != LISTENS).then_some(Says::Done))
        })
    }
}

/// A cell of a row: its length, and its text.
fn cell(text: Option<&String>) -> Vec<u8> {
    let Some(text) = text else {
        return vec![0xfb];
    };
    let length = match u8::try_from(text.len()) {
        Ok(short @ ..=250) => vec![short],
        _ => {
            let long = u16::try_from(text.len()).unwrap();
            [&[0xfc], &long.to_le_bytes()[..]].concat()
        }
    };
    [&length, text.as_bytes()].concat()
}
