//! A network between tokenrun and a server that a test can cut.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use nix::libc::linger;
use nix::sys::socket::{setsockopt, sockopt};

/// How often a connection that is quiet looks what the test wants.
const LOOK: Duration = Duration::from_millis(10);

#[derive(Default)]
struct State {
    /// Nothing is passed on, and nobody is told.
    is_hole: AtomicBool,
    /// Raised to reset what is open.
    generation: AtomicUsize,
    accepted: AtomicUsize,
    open: AtomicUsize,
}

/// Listens on a port of its own, and passes everything on to another.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: Arc<State>,
}

impl Proxy {
    /// It lasts as long as the process of the tests.
    pub(crate) fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming() {
                connect(client.unwrap(), target, &shared);
            }
        });
        Self { port, state }
    }

    /// From now on nothing comes through, or it does again.
    pub(crate) fn hole(&self, is_hole: bool) {
        self.state.is_hole.store(is_hole, SeqCst);
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

fn connect(client: TcpStream, target: u16, state: &Arc<State>) {
    // Before it is counted: who has seen the count can reset it.
    let generation = state.generation.load(SeqCst);
    state.accepted.fetch_add(1, SeqCst);
    let Ok(server) = TcpStream::connect(("127.0.0.1", target)) else {
        return;
    };
    state.open.fetch_add(1, SeqCst);
    let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let shared = Arc::clone(state);
    thread::spawn(move || {
        pump(from, to, generation, &shared);
        shared.open.fetch_sub(1, SeqCst);
    });
    let shared = Arc::clone(state);
    thread::spawn(move || pump(server, client, generation, &shared));
}

/// Passes bytes on until one side ends.
fn pump(mut from: TcpStream, mut to: TcpStream, generation: usize, state: &State) {
    from.set_read_timeout(Some(LOOK)).unwrap();
    let (mut kept, mut buffer) = (Vec::new(), [0; 8192]);
    loop {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => kept.extend_from_slice(&buffer[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
        if state.generation.load(SeqCst) != generation {
            // Closing sends a reset then.
            let now = linger {
                l_onoff: 1,
                l_linger: 0,
            };
            let _ = setsockopt(&from, sockopt::Linger, &now);
            return;
        }
        if !state.is_hole.load(SeqCst) && to.write_all(&std::mem::take(&mut kept)).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
