//! A network between tokenrun and a server that a test can cut.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use nix::libc::linger;
use nix::sys::socket::{setsockopt, sockopt};

/// How often a connection that is quiet looks what the test wants.
const LOOK: Duration = Duration::from_millis(10);

/// Changes a part of the answers. False ends the connection behind it.
type Change = dyn Fn(&mut Vec<u8>) -> bool + Send + Sync;

#[derive(Default)]
struct State {
    /// No requests are passed on, without any error.
    keeps_requests: AtomicBool,
    /// No answers either.
    keeps_answers: AtomicBool,
    /// Where new connections go.
    target: AtomicU16,
    /// Raised to reset what is open.
    generation: AtomicUsize,
    accepted: AtomicUsize,
    open: AtomicUsize,
    change: Option<Box<Change>>,
}

/// Listens on a port of its own, and passes everything on to another.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: Arc<State>,
}

impl Proxy {
    /// It lasts as long as the process of the tests.
    pub(crate) fn to(target: u16) -> Self {
        Self::with(target, State::default())
    }

    /// One that changes the answers.
    #[allow(dead_code)] // not every program of tests has use for it
    pub(crate) fn changing(
        target: u16,
        change: impl Fn(&mut Vec<u8>) -> bool + Send + Sync + 'static,
    ) -> Self {
        let change = Some(Box::new(change) as Box<Change>);
        Self::with(
            target,
            State {
                change,
                ..State::default()
            },
        )
    }

    fn with(target: u16, state: State) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(state);
        state.target.store(target, SeqCst);
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming() {
                connect(client.unwrap(), &shared);
            }
        });
        Self { port, state }
    }

    /// From now on nothing comes through, or it does again: then what was sent meanwhile
    /// arrives late, even if its sender has given up.
    pub(crate) fn hole(&self, is_hole: bool) {
        self.state.keeps_requests.store(is_hole, SeqCst);
        self.keep_answers(is_hole);
    }

    /// From now on requests come through, and their answers don't; or they do again.
    pub(crate) fn keep_answers(&self, is_kept: bool) {
        self.state.keeps_answers.store(is_kept, SeqCst);
    }

    /// Passes new connections on to another server, and resets those that are open.
    #[allow(dead_code)] // not every program of tests has use for it
    pub(crate) fn turn_to(&self, target: u16) {
        self.state.target.store(target, SeqCst);
        self.reset();
    }

    /// Resets every connection that is open.
    pub(crate) fn reset(&self) {
        self.state.generation.fetch_add(1, SeqCst);
    }

    /// How many connections were made so far.
    pub(crate) fn accepted(&self) -> usize {
        self.state.accepted.load(SeqCst)
    }

    /// How many the client has not closed.
    pub(crate) fn open(&self) -> usize {
        self.state.open.load(SeqCst)
    }
}

fn connect(client: TcpStream, state: &Arc<State>) {
    // Before it is counted: a test that has seen the count can reset it.
    let generation = state.generation.load(SeqCst);
    state.accepted.fetch_add(1, SeqCst);
    let Ok(server) = TcpStream::connect(("127.0.0.1", state.target.load(SeqCst))) else {
        return;
    };
    state.open.fetch_add(1, SeqCst);
    let requests = Pump {
        from: client.try_clone().unwrap(),
        to: server.try_clone().unwrap(),
        generation,
        state: Arc::clone(state),
        is_of_requests: true,
    };
    let answers = Pump {
        from: server,
        to: client,
        generation,
        state: Arc::clone(state),
        is_of_requests: false,
    };
    thread::spawn(move || requests.run());
    thread::spawn(move || answers.run());
}

/// What passes bytes on in one direction.
struct Pump {
    from: TcpStream,
    to: TcpStream,
    generation: usize,
    state: Arc<State>,
    is_of_requests: bool,
}

impl Pump {
    /// Until one side ends.
    fn run(mut self) {
        self.from.set_read_timeout(Some(LOOK)).unwrap();
        let (mut kept, mut buffer, mut is_open) = (Vec::new(), [0; 8192], true);
        while is_open || self.keeps() {
            if is_open {
                is_open = match self.from.read(&mut buffer) {
                    Ok(count) => {
                        let mut part = buffer[..count].to_vec();
                        let goes_on = count > 0 && self.change(&mut part);
                        kept.append(&mut part);
                        goes_on
                    }
                    Err(error) => {
                        matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
                    }
                };
                self.count_closed(!is_open);
            } else {
                thread::sleep(LOOK);
            }
            if self.state.generation.load(SeqCst) != self.generation {
                self.count_closed(is_open);
                return self.reset();
            }
            if !self.keeps() && self.to.write_all(&std::mem::take(&mut kept)).is_err() {
                self.count_closed(is_open);
                break;
            }
        }
        let _ = self.to.write_all(&kept);
        let _ = self.to.shutdown(Shutdown::Both);
    }

    /// False if the connection ends behind this part.
    fn change(&self, part: &mut Vec<u8>) -> bool {
        let change = self.state.change.as_ref().filter(|_| !self.is_of_requests);
        change.is_none_or(|change| change(part))
    }

    fn keeps(&self) -> bool {
        match self.is_of_requests {
            true => self.state.keeps_requests.load(SeqCst),
            false => self.state.keeps_answers.load(SeqCst),
        }
    }

    fn count_closed(&self, is_it: bool) {
        if is_it && self.is_of_requests {
            self.state.open.fetch_sub(1, SeqCst);
        }
    }

    /// Closing sends a reset then.
    fn reset(self) {
        let now = linger {
            l_onoff: 1,
            l_linger: 0,
        };
        let _ = setsockopt(&self.from, sockopt::Linger, &now);
    }
}
