//! Many runs that hold a token each on one server: no token may be lost, and no heartbeat late.
//!
//! Nothing outlives it, however it ends: the jobs end with a pipe of this process's, and the kernel
//! ends the supervisors with it.

use std::io::{PipeReader, pipe};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::Folder;
use crate::server::Server;

/// tokenrun's default.
const HEARTBEAT_MS: i64 = 10_000;

/// How often the tokens are looked at. A heartbeat may have been later than was seen, by this.
const LOOK: Duration = Duration::from_millis(100);

/// They do not start all at once, as nodes do not.
const BETWEEN_STARTS: Duration = Duration::from_millis(25);

const PATIENCE: Duration = Duration::from_secs(90);

/// How many tokens are held, and the age of the oldest heartbeat in milliseconds.
const LOOKED: &str = "
local time = redis.call('TIME')
local now, held, oldest = time[1] * 1000 + math.floor(time[2] / 1000), 0, 0
for _, key in ipairs(redis.call('ZRANGE', '{tokenrun}:tokens', 0, -1)) do
  local token = redis.call('HMGET', '{tokenrun}:' .. key, 'state', 'stamped_at_ms')
  if token[1] == 'running' then
    held = held + 1
    oldest = math.max(oldest, now - token[2])
  end
end
return held .. ' ' .. oldest";

/// Holds the tokens, and prints what was seen.
pub(crate) fn hold(folder: &Folder, server: &Server) {
    let numbers: Vec<usize> = std::env::args()
        .filter_map(|word| word.parse().ok())
        .collect();
    let count = numbers.first().copied().unwrap_or(1_000);
    let watched = Duration::from_secs(numbers.get(1).map_or(120, |&seconds| seconds as u64));
    let (reader, writer) = pipe().expect("a pipe");
    let mut holders: Vec<Child> = Vec::new();
    for number in 0..count {
        holders.push(run(folder, server, number, &reader));
        std::thread::sleep(BETWEEN_STARTS);
    }
    drop(reader);
    let begun = Instant::now();
    while look(server).0 < count {
        assert!(
            begun.elapsed() < PATIENCE,
            "{:?} of {count} hold",
            look(server)
        );
        std::thread::sleep(LOOK);
    }
    let (begun, mut fewest, mut oldest) = (Instant::now(), count, 0);
    while begun.elapsed() < watched {
        let (held, age) = look(server);
        fewest = fewest.min(held);
        oldest = oldest.max(age);
        std::thread::sleep(LOOK);
    }
    drop(writer);
    let ended: Vec<bool> = holders
        .iter_mut()
        .map(|holder| holder.wait().is_ok_and(|status| status.success()))
        .collect();
    let failed = ended.iter().filter(|succeeded| !**succeeded).count();
    let late = (oldest - HEARTBEAT_MS).max(0);
    let seconds = watched.as_secs();
    println!("\n{count} holders for {seconds} s\n");
    println!("| what | seen | bound |\n|---|---|---|");
    println!(
        "| tokens that were not held at some time | {} | 0 |",
        count - fewest
    );
    println!("| runs that failed | {failed} | 0 |");
    println!("| the latest heartbeat, ms late | {late} | 2000 |");
}

/// A job that lasts as long as its standard input.
fn run(folder: &Folder, server: &Server, number: usize, stdin: &PipeReader) -> Child {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(folder.tokenrun());
    let group = format!("holder-{number}");
    command.args(["-q", "-s", &server.url(), "-g", &group, "--", "cat"]);
    let stdin = stdin.try_clone().expect("a descriptor");
    command.stdin(stdin).stdout(Stdio::null());
    command.spawn().expect("setpriv starts (util-linux)")
}

fn look(server: &Server) -> (usize, i64) {
    let said = server.cli(&["EVAL", LOOKED, "0"]);
    let (held, oldest) = said.split_once(' ').expect("two numbers");
    let held = held.parse().expect("a number");
    (held, oldest.parse::<f64>().expect("a number") as i64)
}
