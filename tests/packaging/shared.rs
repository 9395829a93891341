//! README.md's directory for several users of one host, made by its own commands on a machine with
//! these users.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::blocks::{By, blocks};
use crate::machine::{Machine, shared_folder};
use crate::support::{Store, until};

/// tokenrun as a user there, in the store of README.md.
fn tokenrun(machine: &Machine, user: &str, line: &str) -> Command {
    let script = format!("umask 007; exec tokenrun {line} --store /var/lib/jobs/tokenrun.db");
    tokenrun_by(machine, user, &script)
}

fn tokenrun_by(machine: &Machine, user: &str, script: &str) -> Command {
    let mut command = machine.command("runuser");
    command.args(["-u", user, "--", "sh", "-c", script]);
    command
}

/// A run of the group.
fn run(machine: &Machine, user: &str, job: &str) -> Command {
    let script = format!(
        "umask 007; exec tokenrun --store /var/lib/jobs/tokenrun.db -g nightly --client-id of-{user} -- {job}"
    );
    tokenrun_by(machine, user, &script)
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn needs_root_users_of_a_group_share_the_store_of_the_readme() {
    let store = Store::new();
    let machine = Machine::start("shared", &shared_folder(&store));
    let [block] = &blocks(By::Shared)[..] else {
        panic!("README.md shares no directory");
    };
    machine.shell("useradd --create-home etl; useradd --create-home reports");
    machine.shell(block.text());

    let mut held = run(&machine, "etl", "sh -c 'echo up; exec sleep 300'")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let output = held.stdout.take().unwrap();
    BufReader::new(output).read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    let refused = run(&machine, "reports", "true").output().unwrap();
    assert_eq!(refused.status.code(), Some(75), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("\"nightly\" is held by of-etl"), "{said}");

    let listed = tokenrun(&machine, "reports", "status --json").output();
    let pid = json(&listed.unwrap())[0]["pid"].as_i64().unwrap();
    machine.shell(&format!("kill -9 {pid}"));
    held.wait().unwrap();
    until("the other user's run takes over", || {
        let output = run(&machine, "reports", "true").output().unwrap();
        match output.status.code() {
            Some(0) => Ok(()),
            _ => Err(format!("{output:?}")),
        }
    });
    let history = tokenrun(&machine, "etl", "history --json").output();
    let history = json(&history.unwrap());
    assert_eq!(history[0]["client"], "of-reports", "{history}");
    assert_eq!(history[0]["previous_client"], "of-etl", "{history}");
    assert_eq!(history[1]["client"], "of-etl", "{history}");
}
