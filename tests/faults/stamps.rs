//! How a process proves when it was alive: it writes the time into its own file, again and again.
//! The stamps outlive their writer, `kill -9` included.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use nix::time::{ClockId, clock_gettime};

const MAGIC: u64 = 0x7374_616d_7073_0001;
/// Where each number stands.
const FIRST: usize = 1;
const LAST: usize = 2;
const EXIT: usize = 3;
const PID: usize = 4;
const FENCE: usize = 5;
const NUMBERS: usize = 6;
const LONGEST_SESSION: usize = 64;
const SIZE: usize = NUMBERS * 8 + LONGEST_SESSION;

/// CLOCK_MONOTONIC in nanoseconds: one clock for every process of the host.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap();
    u64::try_from(now.tv_sec()).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec()).unwrap()
}

/// A process that stamps.
#[derive(Debug)]
pub(crate) struct Stamper(File);

impl Stamper {
    /// Makes the file, complete with the first stamp, in one write.
    pub(crate) fn begin(path: &Path, first: u64) -> io::Result<Self> {
        let fence = variable("TOKENRUN_FENCE").parse().unwrap_or_default();
        let mut bytes = Vec::with_capacity(SIZE);
        for number in [MAGIC, first, first, 0, u64::from(std::process::id()), fence] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(variable("TOKENRUN_SESSION").bytes().take(LONGEST_SESSION));
        bytes.resize(SIZE, 0);
        let file = File::create_new(path)?;
        file.write_all_at(&bytes, 0)?;
        Ok(Self(file))
    }

    /// I am alive.
    pub(crate) fn stamp(&self) -> io::Result<()> {
        self.write(LAST, now())
    }

    /// I am about to exit with this code.
    pub(crate) fn intend(&self, code: u8) -> io::Result<()> {
        self.write(EXIT, u64::from(code) + 1)
    }

    fn write(&self, place: usize, number: u64) -> io::Result<()> {
        self.0.write_all_at(&number.to_le_bytes(), place as u64 * 8)
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// What a process has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamps {
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// The code that it was about to exit with.
    pub(crate) exit: Option<i32>,
    pub(crate) pid: i32,
    pub(crate) fence: i64,
    pub(crate) session: String,
}

impl Stamps {
    /// `None` if the file is missing or empty: a process that was killed between the two proves
    /// nothing.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let bytes = fs::read(path).ok().filter(|bytes| bytes.len() == SIZE)?;
        let number = |place: usize| {
            let bytes = bytes.get(place * 8..place * 8 + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        if number(0)? != MAGIC {
            return None;
        }
        let session = bytes.get(NUMBERS * 8..)?;
        let session = session.split(|byte| *byte == 0).next()?;
        Some(Self {
            first: number(FIRST)?,
            last: number(LAST)?,
            exit: i32::try_from(number(EXIT)?)
                .ok()?
                .checked_sub(1)
                .filter(|it| *it >= 0),
            pid: i32::try_from(number(PID)?).ok()?,
            fence: i64::try_from(number(FENCE)?).ok()?,
            session: String::from_utf8_lossy(session).into_owned(),
        })
    }
}
