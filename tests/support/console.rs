//! The `console` blocks of a page are typed into one bash, a command at a time: the next is typed when
//! the lines that are shown have come.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::blocks::{By, Page, matches};

const PATIENCE: Duration = Duration::from_secs(60);

struct Shell {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Shell {
    fn start(mut bash: Command) -> Self {
        let mut child = bash
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("bash starts");
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let input = child.stdin.take().unwrap();
        Self {
            child,
            input,
            lines,
        }
    }

    fn run(&mut self, page: &str, command: &str, lines: &[&str]) {
        writeln!(self.input, "{command}").unwrap();
        for shown in lines {
            let line = self
                .lines
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|_| panic!("{page}\n$ {command}\nnever printed: {shown}"));
            assert!(
                matches(shown, &line),
                "{page}\n$ {command}\nshown:   {shown}\nprinted: {line}"
            );
        }
    }

    fn finish(mut self, page: &str) {
        drop(self.input);
        let status = self.child.wait().unwrap();
        assert!(
            status.success(),
            "{page}: the last command failed: {status}"
        );
        let more: Vec<String> = self.lines.iter().collect();
        assert!(more.is_empty(), "{page} does not show: {more:?}");
    }
}

/// A script that becomes the shell, with errors among the rest.
pub(crate) const BASH: &str = "exec 2>&1; exec bash";

/// Types a page's blocks into a shell, which this command starts by way of [`BASH`]. Returns how many
/// there are.
pub(crate) fn type_in(page: &Page, bash: Command) -> usize {
    let mut blocks = page.blocks();
    blocks.retain(|block| block.by == By::Console);
    if blocks.is_empty() {
        return 0;
    }
    let mut shell = Shell::start(bash);
    for (command, lines) in blocks.iter().flat_map(|block| block.steps()) {
        // It has been built already: these are the same command but for the build.
        let command = command.replace("cargo run --release -- ", "tokenrun ");
        shell.run(&page.name, &command, &lines);
    }
    shell.finish(&page.name);
    blocks.len()
}
