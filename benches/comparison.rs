//! tokenrun next to what else keeps two jobs apart: what it costs, and what happens when
//! something goes wrong.
//!
//! `cargo bench --bench comparison` builds, measures and prints the tables that README.md
//! has. `flock` and PostgreSQL must be installed; `setlock` (daemontools) and `etcdctl lock` (etcd)
//! take part where they are.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod common;
// The fixture for the tests; not all of it is used here.
#[allow(dead_code, unused_imports, clippy::panic)]
#[path = "../src/store/postgres/test_server.rs"]
mod server;
#[path = "comparison/tools.rs"]
mod tools;
#[path = "comparison/troubles.rs"]
mod troubles;

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::etcd::Etcd;
use common::handover::handover;
use common::processes::{HOLDING, Holder, children, pss_kib, timed};
use common::{Folder, median, milliseconds};
use server::Server;
use tools::{LEASE, Tool, Turn, tools};
use troubles::Trouble;

/// Rounds in which each tool has its turn; the first tenth is not counted.
const ROUNDS: usize = 150;

/// Hand-overs of each tool.
const HANDOVERS: usize = 40;

fn main() {
    let folder = Folder::new("comparison");
    let server = Server::start(&[]);
    let etcd = Etcd::start(&folder);
    let tools = tools(&folder, &server, etcd.as_ref());
    println!("{}\n", machine(&folder));
    println!(
        "| | wraps `true`, ms | × flock | refuses, ms | × flock | hand-over, ms | memory, MiB |"
    );
    println!("|---|---|---|---|---|---|---|");
    costs(&tools, &folder);
    let names = Trouble::ALL.map(Trouble::name);
    println!("\n| | {} |\n|---|---|---|---|", names.join(" | "));
    let columns = Trouble::ALL.map(|trouble| troubles::watch(trouble, &tools, &folder));
    for (line, tool) in tools.iter().enumerate() {
        let cells = columns.each_ref().map(|column| column[line].as_str());
        println!("| {} | {} |", tool.name, cells.join(" | "));
    }
    println!(
        "\nAll on one host, with leases of {} s where there are any. Memory without the servers'.",
        LEASE.as_secs()
    );
}

/// When, and on what kind of machine.
fn machine(folder: &Folder) -> String {
    let said = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).output();
        let output = output.map(|it| it.stdout).unwrap_or_default();
        String::from_utf8_lossy(&output).trim().to_owned()
    };
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split(": ").nth(1));
    let processors = text.lines().filter(|line| line.starts_with("processor"));
    let path = folder.path().to_str().expect("a path");
    format!(
        "{}: {} processors ({}), Linux {}, {}",
        said("date", &["+%Y-%m-%d"]),
        processors.count(),
        model.unwrap_or("unknown"),
        said("uname", &["-r"]),
        said("stat", &["-f", "-c", "%T", path]),
    )
}

/// Medians of rounds in which each tool has its turn.
fn costs(tools: &[Tool], folder: &Folder) {
    let wraps = rounds(tools, "wraps", true);
    let mut holders: Vec<Option<Holder>> = tools
        .iter()
        .map(|tool| {
            tool.command("refuses", Turn::Now, &[])?;
            tool.command("refuses", Turn::First, &HOLDING)
        })
        .map(|command| command.map(Holder::start))
        .collect();
    let refuses = rounds(tools, "refuses", false);
    for holder in holders.iter_mut().flatten() {
        holder.end();
    }
    let flock = tools.iter().position(|tool| tool.name == "flock").unwrap();
    let cells = |times: &[Option<Duration>], at: usize| match (times[at], times[flock]) {
        (Some(time), Some(base)) => {
            let (time, base) = (milliseconds(time), milliseconds(base));
            format!("{time:.1} | {:.1}", time / base)
        }
        _ => "can't |".to_owned(),
    };
    for (at, tool) in tools.iter().enumerate() {
        let took = handover(&tool.name, HANDOVERS, folder, |job| {
            tool.command("line", Turn::Wait, job).expect("it can wait")
        });
        println!(
            "| {} | {} | {} | {:.1} | {} |",
            tool.name,
            cells(&wraps, at),
            cells(&refuses, at),
            took.median,
            memory(tool)
        );
    }
}

/// The median of each tool that can refuse; all wrap `true`.
fn rounds(tools: &[Tool], group: &str, succeed: bool) -> Vec<Option<Duration>> {
    let mut times = vec![Vec::new(); tools.len()];
    for round in 0..ROUNDS + ROUNDS / 10 {
        for (tool, times) in tools.iter().zip(&mut times) {
            let turn = if succeed { Turn::First } else { Turn::Now };
            let Some(mut command) = tool.command(group, turn, &["true"]) else {
                continue;
            };
            // Some can't be refused without a word.
            command.stderr(Stdio::null());
            let took = timed(command, succeed);
            if round >= ROUNDS / 10 {
                times.push(took);
            }
        }
    }
    let median = |times: Vec<Duration>| (!times.is_empty()).then(|| median(times));
    times.into_iter().map(median).collect()
}

/// All processes but the job's own, which is the only one that has no child.
fn memory(tool: &Tool) -> String {
    let command = tool.command("memory", Turn::First, &HOLDING);
    let mut command = command.expect("it runs");
    command.stderr(Stdio::null());
    let mut holder = Holder::start(command);
    let mut sum = 0;
    let mut now = vec![holder.child.id()];
    while let Some(pid) = now.pop() {
        let below = children(pid);
        if !below.is_empty() {
            sum += pss_kib(pid);
        }
        now.extend(below);
    }
    holder.end();
    match sum {
        0 => "0, it becomes the job".to_owned(),
        _ => format!("{:.1}", sum as f64 / 1024.0),
    }
}
