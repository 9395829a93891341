//! One call of tokenrun: its options, its processes, and its result.

use std::fs::{self, File};
use std::io::{ErrorKind, PipeReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use tokenrun::sys::wait::Status;

use super::evidence::{Call, Ended, Hit, Life, Part};
use super::job::{Plan, slots};
use super::random::Random;
use super::stamps::{Stamps, now};
use super::watch::{Known, Watched, guard_of};

/// Where things are.
#[derive(Debug)]
pub(crate) struct Paths {
    pub(crate) program: PathBuf,
    pub(crate) folder: PathBuf,
}

impl Paths {
    fn file(&self, kind: &str, number: usize) -> PathBuf {
        self.folder.join(kind).join(number.to_string())
    }
}

/// The folder for state that belongs to no file: that of one host.
pub(crate) const STATE: &str = "state";

/// The durations of a call, in milliseconds, and what else it is asked for.
#[derive(Debug)]
pub(crate) struct Wishes {
    heartbeat: u64,
    takeover_after: u64,
    store_timeout: u64,
    kill_grace: u64,
    keep: u64,
    head_start: u64,
    timeout: Option<u64>,
    failback: bool,
    /// How long it waits in the queue.
    wait: Option<u64>,
    /// Whether it has a key for `--once`, which calls of about that time share.
    once: bool,
    report: bool,
    fullunread: bool,
}

/// The longest takeover-after, keep and head start, in milliseconds.
const LONGEST: [u64; 3] = [6_000, 1_000, 300];

/// How long a dead waiter keeps its position in the queue, at most, in milliseconds.
const DEAD_IN_QUEUE: u64 = 3_000;

/// The longest time without any grant of a token, in nanoseconds.
pub(crate) const LONGEST_WAIT: u64 =
    (LONGEST[0] + LONGEST[1] + LONGEST[2] + DEAD_IN_QUEUE) * 1_000_000;

/// How many calls have the same key.
const CALLS_OF_A_KEY: usize = 16;

impl Wishes {
    /// Short durations that fit: `heartbeat + 2 × store-timeout + kill-grace` and the
    /// margin of a second are less than takeover-after.
    pub(crate) fn random(random: &mut Random) -> Self {
        let [longest_takeover_after, longest_keep, longest_head_start] = LONGEST;
        // Most are short, for there are many; a waiter must honour the others.
        let takeover_after = match random.range(0, 4) {
            0 => random.range(2_600, longest_takeover_after),
            _ => random.range(2_600, 3_400),
        };
        Self {
            heartbeat: random.range(200, 500),
            takeover_after,
            store_timeout: random.range(150, 300),
            kill_grace: random.range(50, 400),
            keep: if random.percent(70) {
                0
            } else {
                random.range(200, longest_keep)
            },
            head_start: random.range(0, longest_head_start),
            timeout: random.percent(8).then(|| random.range(200, 2_500)),
            failback: random.percent(5),
            wait: random.percent(25).then(|| random.range(100, 3_000)),
            once: random.percent(20),
            report: random.percent(50),
            fullunread: random.percent(4),
        }
    }

    /// For calls after the last fault: limits that the store's answers keep on a busy machine too.
    pub(crate) fn patient(random: &mut Random) -> Self {
        Self {
            takeover_after: LONGEST[0],
            store_timeout: 2_000,
            ..Self::random(random)
        }
    }

    /// For a run that must not be hindered.
    pub(crate) fn plain(random: &mut Random) -> Self {
        Self {
            keep: 0,
            timeout: None,
            wait: None,
            once: false,
            report: true,
            fullunread: false,
            ..Self::patient(random)
        }
    }

    fn key(&self, number: usize) -> Option<String> {
        self.once
            .then(|| format!("key-{}", number / CALLS_OF_A_KEY))
    }

    fn words(&self, number: usize, report: &Path) -> Vec<String> {
        let mut words = vec![
            format!("--heartbeat={}ms", self.heartbeat),
            format!("--takeover-after={}ms", self.takeover_after),
            format!("--store-timeout={}ms", self.store_timeout),
            format!("--kill-grace={}ms", self.kill_grace),
            format!("--keep={}ms", self.keep),
            format!("--head-start={}ms", self.head_start),
        ];
        words.extend(self.timeout.map(|millis| format!("--timeout={millis}ms")));
        words.extend(self.wait.map(|millis| format!("--wait={millis}ms")));
        words.extend(self.key(number).map(|key| format!("--once={key}")));
        words.extend(self.failback.then(|| "--failback".to_owned()));
        words.extend(
            self.report
                .then(|| format!("--report={}", report.display())),
        );
        words
    }
}

/// A call that may have something alive.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) call: Call,
    pub(crate) pid: i32,
    supervisor: Option<Known>,
    pub(crate) slots: [PathBuf; 4],
    watched: [Watched; 4],
    /// The supervisor or the guard, once one of them was killed or stopped.
    pub(crate) blinded: Option<Part>,
    /// A full pipe without a reader.
    unread: Option<PipeReader>,
}

impl Live {
    /// Starts tokenrun, in a process group of its own. `None` on a machine that has no
    /// process to give.
    pub(crate) fn start(
        place: &Paths,
        url: &str,
        (number, group, client): (usize, &str, &str),
        wishes: &Wishes,
        plan: &Plan,
    ) -> Option<Self> {
        let (stderr, unread) = if wishes.fullunread {
            let (reader, writer) = full_pipe();
            (Stdio::from(writer), Some(reader))
        } else {
            let file = File::create(place.file("stderr", number)).unwrap();
            (Stdio::from(file), None)
        };
        let slots = slots(&place.file("slots", number));
        let begun = now();
        // Not waited for here: the process that reaps all children gets its end.
        let child = Command::new(&place.program)
            .args(["-g", group, "--client-id", client, "--expected=node-0"])
            .args(["--store", url, "--label", &number.to_string()])
            .args(wishes.words(number, &place.file("reports", number)))
            .arg("--")
            .args(plan.command(&slots[0]))
            .env_clear()
            .env("XDG_STATE_HOME", place.folder.join(STATE))
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn();
        let child = match child {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            child => child.unwrap_or_else(|error| panic!("{}: {error}", place.program.display())),
        };
        let pid = i32::try_from(child.id()).unwrap();
        Some(Self {
            call: Call {
                number,
                group: group.to_owned(),
                client: client.to_owned(),
                begun,
                ended: None,
                has_timeout: wishes.timeout.is_some(),
                once: wishes.key(number),
                hits: Vec::new(),
                lives: Vec::new(),
                report: None,
                not_told: false,
            },
            pid,
            supervisor: Known::find(pid),
            slots,
            watched: Default::default(),
            blinded: None,
            unread,
        })
    }

    /// The supervisor has ended.
    pub(crate) fn ended(&mut self, status: Status) {
        let ended = match status {
            Status::Exited(code) => Ended::Code(code),
            Status::Signalled(signal) => Ended::Signal(signal),
        };
        self.call.ended = Some((now(), ended));
    }

    /// Throws away what a refusal has said, for there are many of them.
    pub(crate) fn tidy(&self, place: &Paths) {
        if self.call.hits.is_empty() && matches!(self.call.ended, Some((_, Ended::Code(75)))) {
            let _ = fs::remove_file(place.file("stderr", self.call.number));
        }
    }

    /// Checks which processes are alive. Returns whether any may be.
    pub(crate) fn look(&mut self) -> bool {
        let mut alive = self.call.ended.is_none();
        for (slot, watched) in self.slots.iter().zip(&mut self.watched) {
            alive |= watched.look(slot);
        }
        alive
    }

    /// Whether its job is known to run.
    pub(crate) fn has_job(&self) -> bool {
        self.watched
            .iter()
            .any(|it| it.known.is_some_and(Known::is_alive))
    }

    /// The process that is this part now.
    pub(crate) fn find(&self, part: Part) -> Option<Known> {
        let slot = |index: usize| self.watched.get(index)?.known;
        match part {
            Part::Supervisor => self.supervisor.filter(|_| self.call.ended.is_none()),
            Part::Guard => guard_of(self.pid),
            Part::Job => slot(0),
            Part::Grandchild => slot(1),
        }
    }

    /// Whether this part can be hit without hitting both.
    pub(crate) fn may_blind(&self, part: Part) -> bool {
        let other = match part {
            Part::Supervisor => Part::Guard,
            Part::Guard => Part::Supervisor,
            Part::Job | Part::Grandchild => return true,
        };
        self.blinded != Some(other)
    }

    /// Notes that a part was sent a signal.
    pub(crate) fn note(&mut self, part: Part, signal: i32) {
        self.call.hits.push(Hit { part, signal });
    }

    /// Everything that is known of it when everything is over.
    pub(crate) fn into_evidence(mut self, place: &Paths) -> Call {
        for (index, (slot, watched)) in self.slots.iter().zip(&self.watched).enumerate() {
            let part = if index == 0 {
                Part::Job
            } else {
                Part::Grandchild
            };
            let life = |stamps: Stamps| Life {
                part,
                from: stamps.first,
                until: stamps.last.max(watched.until),
                session: stamps.session,
                fence: stamps.fence,
                exit: stamps.exit,
            };
            self.call.lives.extend(Stamps::read(slot).map(life));
        }
        let report = fs::read(place.file("reports", self.call.number)).ok();
        let said = fs::read_to_string(place.file("stderr", self.call.number));
        let not_told = [
            "did not confirm its record",
            "may be held by this dead session",
        ];
        self.call.not_told = said.is_ok_and(|it| not_told.iter().any(|part| it.contains(part)));
        self.call.not_told |= self.unread.is_some();
        self.call.report = report.map(|text| serde_json::from_slice(&text).unwrap());
        self.call
    }
}

/// A pipe without room for a single byte.
fn full_pipe() -> (PipeReader, std::io::PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    while writer.write(&[b'x'; 4096]).is_ok() {}
    while writer.write(b"x").is_ok() {}
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
    (reader, writer)
}
