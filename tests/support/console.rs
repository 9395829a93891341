//! The `console` blocks of a page are typed into one bash, a command at a time: the next is typed when
//! the lines that are shown have come.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::blocks::{By, Page, matches};

const PATIENCE: Duration = Duration::from_secs(60);

/// The command that is typed again until it prints what is shown: it changes nothing.
const REPEATED: &str = "tokenrun status";

/// The line behind its output.
const END: &str = "(the end of this output)";

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
        if command == REPEATED {
            return self.run_again_until_shown(page, command, lines);
        }
        for shown in lines {
            let line = self.line(page, command, shown);
            assert!(
                matches(shown, &line),
                "{page}\n$ {command}\nshown:   {shown}\nprinted: {line}"
            );
        }
    }

    fn line(&self, page: &str, command: &str, shown: &str) -> String {
        self.lines
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|_| panic!("{page}\n$ {command}\nnever printed: {shown}"))
    }

    /// What a command of before does in the background may take a moment: a person types the next later.
    fn run_again_until_shown(&mut self, page: &str, command: &str, lines: &[&str]) {
        let begun = Instant::now();
        loop {
            writeln!(self.input, "echo '{END}'").unwrap();
            let next = || Some(self.line(page, command, END)).filter(|line| line != END);
            let printed: Vec<String> = std::iter::from_fn(next).collect();
            let is_shown = |(shown, line): (&&str, &String)| matches(shown, line);
            if printed.len() == lines.len() && lines.iter().zip(&printed).all(is_shown) {
                return;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "{page}\n$ {command}\nshown: {lines:#?}\nprinted: {printed:#?}"
            );
            writeln!(self.input, "{command}").unwrap();
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
