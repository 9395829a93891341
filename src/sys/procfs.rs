//! Processes according to /proc.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use super::file;

/// One process according to `/proc/PID/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    /// The name, at most 15 bytes, made printable.
    pub name: String,
    /// The kernel's letter for its state: R, S, D, T, Z and so on.
    pub state: char,
    /// The parent's pid; 0 if that is in another pid namespace.
    pub parent: i32,
    /// How many threads it has.
    pub threads: u64,
    /// When it started, in the kernel's ticks since boot. Together with the pid it distinguishes
    /// this process from a later one with the same pid.
    pub started: u64,
}

impl Process {
    /// True if it still runs code. A process whose first thread has ended looks
    /// like a zombie while its other threads go on.
    pub fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x') || self.threads > 1
    }

    /// Reads the text of `/proc/PID/stat`. `None` if it is not of that form.
    pub fn parse(stat: &[u8]) -> Option<Self> {
        // The name is in parentheses and may contain anything, including parentheses, spaces and
        // line breaks. No later field contains a parenthesis.
        let open = stat.iter().position(|byte| *byte == b'(')?;
        let close = stat.iter().rposition(|byte| *byte == b')')?;
        let pid = std::str::from_utf8(stat.get(..open)?).ok()?;
        let name = String::from_utf8_lossy(stat.get(open + 1..close)?);
        let rest = std::str::from_utf8(stat.get(close + 1..)?).ok()?;
        // proc_pid_stat(5) counts from 1, and the state is its field 3.
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).copied();
        Some(Self {
            pid: pid.trim().parse().ok()?,
            name: name.into_owned(),
            state: field(3)?.chars().next()?,
            parent: field(4)?.parse().ok()?,
            threads: field(20)?.parse().ok()?,
            started: field(22)?.parse().ok()?,
        })
    }
}

/// The text of a small file in /proc, with as few calls as possible: the kernel generates it for
/// each reader, and its size is unknown before.
///
/// # Errors
/// There is no such file, it can't be read, or has more than a quarter of a KiB.
pub fn read_short(path: &str) -> io::Result<String> {
    let mut bytes = [0; 256];
    let length = file::open(path)?.read(&mut bytes)?;
    match bytes.get(..length).filter(|_| length < bytes.len()) {
        Some(text) => Ok(String::from_utf8_lossy(text).into_owned()),
        None => Err(io::ErrorKind::FileTooLarge.into()),
    }
}

/// True if /proc exists and shows the pid namespace of this process. In any other its pids would
/// mean other processes.
pub fn is_ours() -> bool {
    let own = fs::read_link("/proc/self");
    own.is_ok_and(|own| own == Path::new(&super::process::pid().to_string()))
}

/// The process that has `pid` now. `None` if there is none, or if it is hidden.
pub fn process(pid: i32) -> Option<Process> {
    // The kernel returns the whole line, of less than 400 bytes, to the first read that has room
    // for it. This file is read more often than any other.
    let mut line = [0; 1024];
    let mut file = file::open(format!("/proc/{pid}/stat")).ok()?;
    let length = file.read(&mut line).ok()?;
    Process::parse(line.get(..length)?)
}

/// True if another process is alive that has this one's name. `false` also if it is hidden.
pub fn is_namesake(pid: i32) -> bool {
    let own = super::process::pid();
    let Some(other) = process(pid).filter(|other| other.is_alive() && other.pid != own) else {
        return false;
    };
    process(own).is_some_and(|own| own.name == other.name)
}

/// How long a process has run on a processor since it began. `None` if there is no such process, or
/// the kernel does not report it.
pub fn run_time(pid: i32) -> Option<Duration> {
    // The first number is in nanoseconds.
    let line = read_short(&format!("/proc/{pid}/schedstat")).ok()?;
    let first = line.split_ascii_whitespace().next()?;
    Some(Duration::from_nanos(first.parse().ok()?))
}

/// All visible processes, one after the other: not a snapshot.
///
/// # Errors
/// /proc can't be listed.
pub fn processes() -> io::Result<Vec<Process>> {
    let pids = fs::read_dir("/proc")?.filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.parse::<i32>().ok()
    });
    Ok(pids.filter_map(process).collect())
}

/// The children of a process, including ended ones that are not reaped: much faster than reading
/// all processes. `None` if the process is gone, or the kernel does not show them.
///
/// A child that appears or ends meanwhile may hide another: for a complete list, repeat until
/// nothing is new.
pub fn child_pids(pid: i32) -> Option<Vec<i32>> {
    Some(Children::of(pid)?.collect())
}

/// The children of a process as in [`child_pids`], one after the other: the kernel generates the
/// list a page at a time, and a process that does not reap may have thousands.
#[derive(Debug)]
pub struct Children {
    /// One list per thread: a child is in the list of the thread that created it.
    lists: Vec<io::Split<BufReader<File>>>,
}

impl Children {
    /// The children of this process. `None` as for [`child_pids`].
    pub fn of(pid: i32) -> Option<Self> {
        let threads = format!("/proc/{pid}/task");
        // A directory has links from itself, from its parent, and from each of its subdirectories.
        if fs::metadata(&threads).ok()?.nlink() == 3 {
            let lists = list_of(Path::new(&format!("{threads}/{pid}")))?;
            return Some(Self { lists });
        }
        let mut lists = Vec::new();
        for thread in fs::read_dir(threads).ok()? {
            lists.extend(list_of(&thread.ok()?.path())?);
        }
        Some(Self { lists })
    }
}

impl Iterator for Children {
    type Item = i32;

    fn next(&mut self) -> Option<i32> {
        loop {
            match self.lists.last_mut()?.next() {
                Some(Ok(pid)) => return std::str::from_utf8(&pid).ok()?.parse().ok(),
                Some(Err(_)) | None => {
                    self.lists.pop();
                }
            }
        }
    }
}

/// The list of a thread's children; empty if the thread has ended. `None` if the kernel does not
/// show them.
fn list_of(thread: &Path) -> Option<Vec<io::Split<BufReader<File>>>> {
    match File::open(thread.join("children")) {
        Ok(list) => Some(vec![BufReader::with_capacity(PAGE, list).split(b' ')]),
        Err(_) => shows_children().then(Vec::new),
    }
}

/// How much the kernel returns at a time.
const PAGE: usize = 4096;

/// True if this kernel shows the children of a process (CONFIG_PROC_CHILDREN).
pub fn shows_children() -> bool {
    Path::new("/proc/thread-self/children").exists()
}

/// The children of this process.
///
/// # Errors
/// /proc can't be listed.
pub fn children() -> io::Result<Vec<Process>> {
    let own = super::process::pid();
    let Some(pids) = child_pids(own) else {
        let all = processes()?.into_iter();
        return Ok(all.filter(|process| process.parent == own).collect());
    };
    Ok(pids.into_iter().filter_map(process).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mutated::mutated;

    const TAIL: &str = "S 41 42 43 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 3 0 987654 1 2 3";

    fn parse_name(name: &str) -> Process {
        Process::parse(format!("44 ({name}) {TAIL}\n").as_bytes()).unwrap()
    }

    #[test]
    fn all_fields_are_found() {
        let process = parse_name("sleep");
        assert_eq!(
            process,
            Process {
                pid: 44,
                name: "sleep".to_owned(),
                state: 'S',
                parent: 41,
                threads: 3,
                started: 987_654,
            }
        );
    }

    #[test]
    fn a_name_may_contain_anything() {
        for name in ["", "a b", ") R 1 1 (", "((", "a\nb) Z 1", "1 (x) S 2"] {
            let process = parse_name(name);
            assert_eq!((process.name.as_str(), process.parent), (name, 41));
        }
        let stat = [b"44 (\xff) ".as_slice(), TAIL.as_bytes()].concat();
        assert_eq!(Process::parse(&stat).unwrap().name, "\u{fffd}");
    }

    #[test]
    fn a_text_of_another_form_is_refused() {
        for text in ["", "44", ")(", "44 (a", "44 (a)", "44 (a) S 1", "x (a) S 1"] {
            assert_eq!(Process::parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn a_zombie_with_threads_is_alive() {
        let zombie = |threads| Process {
            state: 'Z',
            threads,
            ..parse_name("x")
        };
        assert!(!zombie(1).is_alive());
        assert!(zombie(2).is_alive());
        assert!(parse_name("x").is_alive());
    }

    #[test]
    fn this_process_is_found() {
        assert!(is_ours());
        let pid = crate::sys::process::pid();
        let own = process(pid).unwrap();
        assert_eq!(own.parent, crate::sys::process::parent_pid());
        assert!(processes().unwrap().iter().any(|other| other.pid == pid));
        assert_eq!(process(i32::MAX), None);
    }

    #[test]
    fn the_run_time_of_a_running_process_grows() {
        let pid = crate::sys::process::pid();
        let before = run_time(pid).unwrap();
        // The kernel updates the time when it reads the clock.
        while run_time(pid).unwrap() == before {}
        assert_eq!(run_time(i32::MAX), None);
    }

    #[test]
    fn the_children_of_every_thread_are_found() {
        let own = crate::sys::process::pid();
        // In a thread: the child is not the first thread's.
        let spawn = || std::process::Command::new("sleep").arg("600").spawn();
        let mut child = std::thread::spawn(spawn).join().unwrap().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let is_shown = || child_pids(own).unwrap().contains(&pid);
        assert!(is_shown());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_shown());
        assert_eq!(child_pids(i32::MAX), None);
    }

    #[test]
    fn a_child_is_found() {
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        let is_it = |process: &Process| u32::try_from(process.pid) == Ok(child.id());
        assert_eq!(children().unwrap().iter().filter(|it| is_it(it)).count(), 1);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in mutated(format!("44 (a) b) {TAIL}\n").as_bytes())) {
            let _ = Process::parse(&bytes);
        }
    }
}
