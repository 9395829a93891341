//! The job: this very program, started again with other words. It stamps, and so does
//! a grandchild that it has let go of: a session of its own, and no parent.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::random::Random;
use super::stamps::{Stamper, now};

/// The first words of this program's other lives.
pub(crate) const JOB: &str = "--job";
const DETACH: &str = "--detach";
const STAMP: &str = "--stamp";

/// Between two stamps.
const PAUSE: Duration = Duration::from_micros(300);

/// The signals that a job may choose to outlive.
const ASKING: [Signal; 3] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];

/// What a process does when it is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenAsked {
    Dies,
    Ignores,
    /// It goes on for so many milliseconds, then exits.
    CleansUp(u64),
}

/// What a job does with its life.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    life_us: u64,
    code: u8,
    when_asked: WhenAsked,
    grandchildren: u64,
    /// How much longer than the job a grandchild would live, if no process ended it.
    linger_ms: u64,
}

impl Plan {
    /// A job that does nothing and succeeds.
    pub(crate) const EMPTY: Self = Self {
        life_us: 0,
        code: 0,
        when_asked: WhenAsked::Dies,
        grandchildren: 0,
        linger_ms: 0,
    };

    /// The longest that anything of a job lives if it is not stopped, in nanoseconds.
    pub(crate) const LONGEST: u64 = 9_000_000_000;

    pub(crate) fn random(random: &mut Random, brief: bool) -> Self {
        let most_us = if brief { 300_000 } else { 6_000_000 };
        let life_us = match random.range(0, 10) {
            0..=2 => random.range(0, 50_000),
            3..=6 => random.range(50_000, most_us.min(1_500_000)),
            _ => random.range(100_000, most_us),
        };
        Self {
            life_us,
            code: if random.percent(60) {
                0
            } else {
                u8::try_from(random.range(1, 61)).unwrap()
            },
            when_asked: match random.range(0, 10) {
                0..=5 => WhenAsked::Dies,
                6..=7 => WhenAsked::Ignores,
                _ => WhenAsked::CleansUp(random.spread(10, 1_500)),
            },
            grandchildren: *random.pick(&[1, 1, 1, 2, 3]),
            linger_ms: *random.pick(&[0, 0, 50, 2_500]),
        }
    }

    /// The command line; `slot` is where the stamps go, and the grandchildren's
    /// beside it.
    pub(crate) fn command(&self, slot: &Path) -> Vec<String> {
        let when_asked = match self.when_asked {
            WhenAsked::Dies => "dies".to_owned(),
            WhenAsked::Ignores => "ignores".to_owned(),
            WhenAsked::CleansUp(millis) => millis.to_string(),
        };
        vec![
            myself().display().to_string(),
            JOB.to_owned(),
            slot.display().to_string(),
            self.life_us.to_string(),
            self.code.to_string(),
            when_asked,
            self.grandchildren.to_string(),
            self.linger_ms.to_string(),
        ]
    }

    fn parse(words: &[String]) -> Self {
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        Self {
            life_us: number(0),
            code: u8::try_from(number(1)).unwrap(),
            when_asked: match words[2].as_str() {
                "dies" => WhenAsked::Dies,
                "ignores" => WhenAsked::Ignores,
                millis => WhenAsked::CleansUp(millis.parse().unwrap()),
            },
            grandchildren: number(3),
            linger_ms: number(4),
        }
    }
}

/// This program, as it was found at the start: in a chroot the kernel gives another path once the process has mounts of its
/// own.
pub(crate) fn myself() -> &'static Path {
    static PATH: LazyLock<PathBuf> = LazyLock::new(|| std::env::current_exe().unwrap());
    &PATH
}

/// The files of those that may stamp for the run whose job has this one.
pub(crate) fn slots(job: &Path) -> [PathBuf; 4] {
    [0, 1, 2, 3].map(|index| match index {
        0 => job.to_owned(),
        index => job.with_extension(index.to_string()),
    })
}

/// Runs as a job, and never returns, if the words are a job's.
pub(crate) fn run_as_job(words: &[String]) {
    let first = now();
    let Some((what, rest)) = words.split_first() else {
        return;
    };
    match (what.as_str(), rest) {
        (JOB, [slot, plan @ ..]) => job(Path::new(slot), first, Plan::parse(plan)),
        (DETACH, words) => detach(words),
        (STAMP, [slot, millis, when_asked]) => {
            let stamper = Stamper::begin(Path::new(slot), first).unwrap();
            if when_asked != "dies" {
                hold_back();
            }
            let end = first + millis.parse::<u64>().unwrap() * 1_000_000;
            while now() < end {
                stamper.stamp().unwrap();
                std::thread::sleep(PAUSE);
            }
        }
        _ => return,
    }
    std::process::exit(0);
}

fn job(slot: &Path, first: u64, plan: Plan) -> ! {
    let stamper = Stamper::begin(slot, first).unwrap();
    let asked = (plan.when_asked != WhenAsked::Dies).then(hold_back);
    let mut children: Vec<Child> = slots(slot)
        .into_iter()
        .skip(1)
        .zip(0..plan.grandchildren)
        .filter_map(|(slot, _)| let_go(&slot, &plan))
        .collect();
    let mut end = first + plan.life_us * 1_000;
    while now() < end {
        stamper.stamp().unwrap();
        children.retain_mut(|child| !matches!(child.try_wait(), Ok(Some(_))));
        if let (WhenAsked::CleansUp(millis), Some(asked)) = (plan.when_asked, &asked)
            && matches!(asked.read_signal(), Ok(Some(_)))
        {
            end = end.min(now() + millis * 1_000_000);
        }
        std::thread::sleep(PAUSE);
    }
    stamper.intend(plan.code).unwrap();
    stamper.stamp().unwrap();
    std::process::exit(i32::from(plan.code))
}

/// The signals that ask for an end do nothing from now on but to be read.
fn hold_back() -> SignalFd {
    let asking: SigSet = ASKING.into_iter().collect();
    asking.thread_block().unwrap();
    SignalFd::with_flags(&asking, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC).unwrap()
}

/// Starts a grandchild, by way of a child that leaves at once. `None` on a machine
/// that has no process to give: then there is no grandchild.
fn let_go(slot: &Path, plan: &Plan) -> Option<Child> {
    let millis = plan.life_us / 1_000 + plan.linger_ms;
    let when_asked = match plan.when_asked {
        WhenAsked::Dies => "dies",
        WhenAsked::Ignores | WhenAsked::CleansUp(_) => "ignores",
    };
    Command::new(myself())
        .arg(DETACH)
        .arg(slot)
        .args([&millis.to_string(), when_asked])
        .stdin(Stdio::null())
        .spawn()
        .ok()
}

fn detach(words: &[String]) {
    nix::unistd::setsid().unwrap();
    let mut grandchild = Command::new(myself());
    grandchild.arg(STAMP).args(words);
    let _ = grandchild.spawn();
}
