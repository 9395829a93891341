//! A process that keeps a server and its networks, and carries out the orders for faults: one line each.

use std::io::{BufRead as _, Write as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::log::Log;
use super::proxy::Proxy;

/// A line that is said back when all is well.
pub(crate) const SETTLE: &str = "settle";

/// How often what happens again and again does.
const AGAIN: Duration = Duration::from_millis(90);

/// A server that is kept.
pub(crate) trait Kept {
    /// Begins a fault; one of a node's hits this one.
    fn begin(&mut self, fault: &str, node: usize);

    /// Ends it.
    fn end(&mut self, fault: &str, node: usize);

    /// True if it begins again and again as long as it lasts.
    fn repeats(&self, fault: &str) -> bool;

    /// True if it lasts for its whole time, whatever else is asked for: what is committed meanwhile is lost.
    fn loses(&self, fault: &str) -> bool;

    fn log(&mut self) -> &mut Log;
}

/// Says the ports of the networks, and obeys until the orders end.
pub(crate) fn obey(kept: &mut dyn Kept, ports: &[u16]) {
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    say(&ports.join(" "));
    let lines = lines();
    while let Ok(line) = lines.recv() {
        let mut words = line.splitn(3, ' ');
        let mut word = || words.next().unwrap_or_default();
        let (length, node, fault) = (word(), word(), word());
        if length == SETTLE {
            say(SETTLE);
        } else if !fault.is_empty() {
            let length = Duration::from_millis(length.parse().unwrap());
            cause(kept, fault, node.parse().unwrap(), length, &lines);
        }
    }
}

/// The ports of these networks.
pub(crate) fn ports(proxies: &[Proxy]) -> Vec<u16> {
    proxies.iter().map(|it| it.port).collect()
}

/// A trouble from its begin to its end: so long, or to the next line, which mends it.
fn cause(
    kept: &mut dyn Kept,
    fault: &str,
    node: usize,
    length: Duration,
    lines: &Receiver<String>,
) {
    kept.log().say(&format!("{fault} (node {node})"));
    kept.begin(fault, node);
    if kept.loses(fault) {
        std::thread::sleep(length);
    }
    let end = Instant::now() + length;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        match lines.recv_timeout(left.min(AGAIN)) {
            Err(RecvTimeoutError::Timeout) if !left.is_zero() => {
                if kept.repeats(fault) {
                    kept.begin(fault, node);
                }
            }
            _ => break,
        }
    }
    kept.log().say("is mended");
    kept.end(fault, node);
    kept.log().say("is well");
}

fn say(line: &str) {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{line}").unwrap();
    stdout.flush().unwrap();
}

/// The lines of standard input, as they come.
fn lines() -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let _ = sender.send(line.unwrap());
        }
    });
    lines
}
