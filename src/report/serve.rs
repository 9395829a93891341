//! The messages of `serve`.

use std::fmt::Display;
use std::net::SocketAddr;

use super::message::Message;
use super::printable::printable;

/// The message that requests are answered from now on.
pub fn serving(address: SocketAddr, store: &str) -> Message {
    let store = printable(store);
    Message::info("serving", format!("serving {store} on http://{address}/"))
}

/// The warning that other hosts can read what is served.
pub fn reachable(address: SocketAddr) -> Message {
    let text = format!(
        "{address} can be reached from other hosts, without TLS and without a log-in: put a proxy that has both before it, or listen on 127.0.0.1"
    );
    Message::warning("reachable", text)
}

/// The error that the address can't be had.
pub fn not_listening(address: SocketAddr, error: &dyn Display) -> String {
    format!("cannot listen on {address}: {error}; give another --listen, or end what listens there")
}

/// The reason of an answer without the store's.
pub const NO_ANSWER: &str = "the store gave no answer in time";
