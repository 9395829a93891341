use super::super::becomes;
use super::*;

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::thread;

use nix::sys::signal::{Signal, raise};

use crate::sys::signals::discard_pending;

/// No answer takes this long.
const LONG: Duration = Duration::from_secs(60);

const HELD: Probed = Probed {
    run_lock_held: true,
    job_lock_held: true,
};

/// A process that ends when its input does.
struct Process(Child);

impl Process {
    fn start() -> Self {
        Self(Command::new("cat").stdin(Stdio::piped()).spawn().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // The clerk's supervisor may have reaped it.
        let _ = self.0.wait();
    }
}

/// A clerk of this process, whose side of the socket the test has.
fn clerk(directory: &Path, patience: Duration, process: &Process) -> (Clerk, Packets) {
    let (socket, clerks_end) = Packets::pair().unwrap();
    let clerk = Clerk {
        socket,
        pid: i32::try_from(process.0.id()).unwrap(),
        directory: directory.to_owned(),
        patience,
        inherited: Inherited::look().unwrap(),
        asked: 0,
        owes: false,
    };
    (clerk, clerks_end)
}

/// What the clerk is asked next.
fn asked(clerks_end: &Packets) -> Option<(u64, Ask)> {
    match clerks_end.receive().unwrap() {
        Packet::Data(bytes, _) => Some(serde_json::from_slice(&bytes).unwrap()),
        _ => None,
    }
}

fn say(clerks_end: &Packets, number: u64, answer: &Answer, lock: Option<&File>) {
    send(clerks_end, number, answer, lock).unwrap();
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string();
    let names = entries.map(|entry| name(entry).unwrap());
    names.filter(|name| name.starts_with("run-")).collect()
}

#[test]
fn it_takes_probes_removes_and_sweeps_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("locks");
    let mut process = Process::start();
    let (mut clerk, clerks_end) = clerk(&directory, LONG, &process);
    let input = process.0.stdin.take();
    let its = directory.clone();
    let work = thread::spawn(move || {
        attend(&clerks_end, &its);
        drop(input);
    });
    let (run, job) = clerk.take(7, true).unwrap();
    assert_eq!(names(&directory), [run.name().as_str()]);
    assert_eq!(run.path, directory.join(run.name().as_str()));
    assert_eq!(clerk.probe(run.name()), Some(HELD));
    drop(job);
    let without_job = Probed {
        job_lock_held: false,
        ..HELD
    };
    assert!(becomes(|| clerk.probe(run.name()) == Some(without_job)));
    // The next answer is behind the removal.
    clerk.remove(run.name());
    assert_eq!(clerk.probe(run.name()), None);
    assert_eq!(names(&directory), <[String; 0]>::default());
    assert_eq!(clerk.leaves_within(LONG), None);
    work.join().unwrap();
    // The sweep has left its mark.
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
}

#[test]
fn what_it_can_not_take_it_explains() {
    let process = Process::start();
    let (mut clerk, clerks_end) = clerk(Path::new("/proc/self"), LONG, &process);
    let work = thread::spawn(move || attend(&clerks_end, Path::new("/proc/self")));
    let refused = clerk.take(7, true).unwrap_err();
    assert!(refused.to_string().contains("procfs"), "{refused}");
    // The next one is not taken for late.
    let refused = clerk.take(7, true).unwrap_err();
    assert!(refused.to_string().contains("procfs"), "{refused}");
    drop(clerk);
    work.join().unwrap();
}

#[test]
fn an_answer_to_another_request_is_not_taken_for_this_ones() {
    let process = Process::start();
    let folder = tempfile::tempdir().unwrap();
    let (mut clerk, clerks_end) = clerk(folder.path(), LONG, &process);
    let (run, _job) = take(folder.path(), 7, true).unwrap();
    say(&clerks_end, 0, &Answer::Probed(None), None);
    say(&clerks_end, 1, &Answer::Probed(Some(HELD)), None);
    assert_eq!(clerk.probe(run.name()), Some(HELD));
    assert!(!clerk.owes);
    let (number, ask) = asked(&clerks_end).unwrap();
    assert!(number == 1 && matches!(ask, Ask::Probe { name } if name == run.name().as_str()));
}

#[test]
fn without_an_answer_in_time_it_is_asked_no_more_until_that_has_come() {
    let process = Process::start();
    let folder = tempfile::tempdir().unwrap();
    let patience = Duration::from_millis(30);
    let (mut clerk, clerks_end) = clerk(folder.path(), patience, &process);
    let begun = Instant::now();
    let late = clerk.take(7, true).unwrap_err();
    assert!(begun.elapsed() >= patience);
    assert_eq!(late.kind(), ErrorKind::TimedOut);
    assert_eq!(
        late.to_string(),
        "no answer for 30ms: its file system hangs"
    );
    assert!(matches!(asked(&clerks_end), Some((1, Ask::Take { .. }))));

    let refused = clerk.take(8, true).unwrap_err();
    assert_eq!(refused.to_string(), "no answer yet");
    assert!(asked(&clerks_end).is_none());

    // Now the locks come that the supervisor has given up on: it gives them back.
    let (run, job) = take(folder.path(), 7, true).unwrap();
    let name = run.name().to_string();
    let taken = Answer::Taken { name: name.clone() };
    say(&clerks_end, 1, &taken, Some(&run.file));
    let refused = clerk.take(8, true).unwrap_err();
    assert_eq!(refused.to_string(), "no answer yet");
    let (_, ask) = asked(&clerks_end).unwrap();
    assert!(matches!(ask, Ask::Remove { name: it } if it == name));
    assert!(asked(&clerks_end).is_none());

    say(&clerks_end, 1, &Answer::Job, Some(&job.0));
    let _ = clerk.probe(run.name());
    assert!(matches!(asked(&clerks_end), Some((2, Ask::Probe { .. }))));
}

#[test]
fn a_lock_without_its_descriptor_is_an_error() {
    let process = Process::start();
    let folder = tempfile::tempdir().unwrap();
    let (mut clerk, clerks_end) = clerk(folder.path(), LONG, &process);
    let (run, job) = take(folder.path(), 7, true).unwrap();
    let name = run.name().to_string();
    say(&clerks_end, 1, &Answer::Taken { name: name.clone() }, None);
    say(&clerks_end, 1, &Answer::Job, Some(&job.0));
    let error = clerk.take(7, true).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(24), "{error}");
    let _ = asked(&clerks_end);

    // The answer's second packet is still to come, so that is dropped now.
    say(&clerks_end, 2, &Answer::Taken { name }, Some(&run.file));
    say(&clerks_end, 2, &Answer::Job, None);
    let error = clerk.take(7, true).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(24), "{error}");
}

#[test]
fn a_stop_signal_ends_the_wait() {
    let process = Process::start();
    let (mut clerk, _clerks_end) = clerk(Path::new("/"), LONG, &process);
    clerk.inherited.block().unwrap();
    raise(Signal::SIGTERM).unwrap();
    let stopped = clerk.take(7, true).unwrap_err();
    assert_eq!(discard_pending(), [Signal::SIGTERM as i32]);
    clerk.inherited.unblock().unwrap();
    assert_eq!(stopped.kind(), ErrorKind::Interrupted);
}

#[test]
fn a_clerk_that_is_gone_is_an_error() {
    let process = Process::start();
    let (mut clerk, clerks_end) = clerk(Path::new("/"), LONG, &process);
    drop(clerks_end);
    let error = clerk.take(7, true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
}

#[test]
fn one_that_does_not_leave_is_reported_and_killed_if_it_hangs() {
    let mut process = Process::start();
    let (clerk, _clerks_end) = clerk(Path::new("/"), LONG, &process);
    let pid = clerk.pid;
    let begun = Instant::now();
    assert_eq!(clerk.dismiss(), Some(pid));
    assert!(begun.elapsed() >= LEAVING);
    assert!(process.0.try_wait().unwrap().is_none());

    let (mut clerk, _clerks_end) = self::clerk(Path::new("/"), Duration::ZERO, &process);
    assert!(clerk.take(7, true).is_err());
    // One that owes an answer is not waited for.
    assert_eq!(clerk.leaves_within(LONG), Some(pid));
    assert_eq!(process.0.wait().unwrap().signal(), Some(SIGKILL));
}

#[test]
fn one_that_hangs_at_the_end_of_the_run_is_killed() {
    let mut process = Process::start();
    let (mut clerk, _clerks_end) = clerk(Path::new("/"), Duration::ZERO, &process);
    assert!(clerk.take(7, true).is_err());
    clerk.dismiss_at_the_end();
    assert_eq!(process.0.wait().unwrap().signal(), Some(SIGKILL));
}

#[test]
fn one_that_has_answered_late_is_waited_for() {
    let mut process = Process::start();
    let (mut clerk, clerks_end) = clerk(Path::new("/"), Duration::ZERO, &process);
    assert!(clerk.take(7, true).is_err());
    let why = "for want of space".into();
    say(&clerks_end, 1, &Answer::NotTaken { why }, None);
    drop(process.0.stdin.take());
    assert_eq!(clerk.leaves_within(LONG), None);
}
