//! The commands that show no output, with jobs that are made up for them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use nix::sys::signal::Signal;

use crate::blocks::{Block, By, blocks};
use crate::support::{Line, Store, TOKENRUN};

/// What README.md's commands name and this host lacks, and what stands for it.
const MADE_UP: [(&str, &str); 4] = [
    ("/etc/tokenrun/viewer", "./store"),
    ("/opt/etl/run.sh", "./run.sh"),
    ("/opt/scheduler/role.sh", "./role.sh"),
    ("/etc/tokenrun/store", "./store"),
];

/// A folder with the jobs, which write down that they were run.
struct Site(Store);

impl Site {
    fn new() -> Self {
        let site = Self(Store::new());
        std::os::unix::fs::symlink(TOKENRUN, site.0.file("tokenrun")).unwrap();
        site.program("run.sh", "echo run.sh $* >> log");
        site.program("role.sh", "echo role.sh $* >> log");
        // The night in which it is run, at any time of the day.
        site.program("date", "[ \"$*\" = +%F ] && echo 2026-11-21");
        site
    }

    fn program(&self, name: &str, script: &str) {
        let file = self.0.file(name);
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A command of README.md.
    fn line(&self, command: &str) -> Line {
        let mut command = command.trim().to_owned();
        for (named, made_up) in MADE_UP {
            command = command.replace(named, made_up);
        }
        let path = std::env::var("PATH").unwrap();
        let shell = self.0.bare(&["-c", &format!("exec {command}")]);
        let line = shell
            .program("sh")
            .env("PATH", format!("{}:{path}", self.0.path().display()))
            .env("TOKENRUN_RUNTIME_FILE", self.0.file("runtime.json"));
        match command.contains("--store-file") {
            true => line,
            false => line.env("TOKENRUN_STORE", self.0.database()),
        }
    }
}

#[test]
fn commands_are_run() {
    for block in blocks(By::Commands) {
        let site = Site::new();
        match &block {
            it if it.is("tokenrun --store-file ") => a_job(&site, it),
            it if it.is("tokenrun hold ") => an_agent(&site, it),
            it if it.is("tokenrun serve ") => a_server(&site, it),
            it if it.is("0 2 * * * ") => an_entry_that_runs_once(&site, it),
            it if it.is("[defaults]\n") => a_configuration_file(&site, it),
            it => panic!("this test does not know {it:?}"),
        }
    }
}

fn a_job(site: &Site, block: &Block) {
    let address = site.0.file("store");
    fs::write(&address, site.0.database().to_str().unwrap()).unwrap();
    fs::set_permissions(&address, fs::Permissions::from_mode(0o400)).unwrap();
    let ended = site.line(block.text()).end().with_code(0);
    assert_eq!(ended.messages(), [""; 0]);
    assert_eq!(site.0.log(), ["run.sh --full"]);
}

fn an_agent(site: &Site, block: &Block) {
    let agent = site.line(block.text()).start();
    site.0.until_logged("role.sh gain");
    let status = site.0.verb(&["status", "--json", "-g", "scheduler"]).end();
    assert_eq!(status.json()[0]["state"], "running");
    agent.signal(Signal::SIGTERM);
    agent.end().with_code(0);
    assert_eq!(site.0.log(), ["role.sh gain", "role.sh loss"]);
}

fn a_server(site: &Site, block: &Block) {
    let address = site.0.file("store");
    fs::write(&address, site.0.database().to_str().unwrap()).unwrap();
    fs::set_permissions(&address, fs::Permissions::from_mode(0o400)).unwrap();
    let server = site.line(block.text()).start();
    server.until_says("on http://127.0.0.1:9187/");
    server.signal(Signal::SIGTERM);
    server.end().with_code(0);
}

/// As cron does: what follows the time, with a backslash before each % taken away.
fn an_entry_that_runs_once(site: &Site, block: &Block) {
    let entry = block.text().strip_prefix("0 2 * * *").unwrap();
    let command = entry.replace("\\%", "%");
    for _ in 0..2 {
        let ended = site.line(&command).end().with_code(0);
        assert_eq!(format!("{}{}", ended.stdout, ended.stderr), "");
    }
    assert_eq!(site.0.log(), ["run.sh"]);
    let keys = site.0.verb(&["once", "list", "--json"]).end().json();
    assert_eq!(keys[0]["once_key"], "2026-11-21", "{keys}");
}

/// Each line of the file is found again in what a run would use.
fn a_configuration_file(site: &Site, block: &Block) {
    let file = site.0.file("config.toml");
    fs::write(&file, block.text()).unwrap();
    let mut table = String::new();
    let mut count = 0;
    for line in block.text().lines() {
        if line.starts_with('[') {
            table = line.to_owned();
        }
        let Some((key, value)) = line.split_once(" = ") else {
            continue;
        };
        let group = table.strip_prefix("[groups.");
        let group = group.map_or("any", |rest| rest.trim_matches(['"', ']']));
        let words = ["config", "--json", "-g", group, "--config"];
        let shown = site.0.bare(&words).with(&[file.to_str().unwrap()]).end();
        let shown = shown.with_code(0).json();
        let settings = shown.as_array().unwrap();
        let found = settings.iter().find(|it| it["setting"] == key).unwrap();
        let value = value.trim_matches('"');
        assert_eq!(found["value"], value, "{line}: {found}");
        assert!(found.to_string().contains("config.toml:"), "{found}");
        count += 1;
    }
    assert_eq!(count, 8);
}
