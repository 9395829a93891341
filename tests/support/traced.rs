//! What a process asks of the kernel for the disk: its writes, syncs and renames, in order.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::thread;

use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;

use super::{Ended, Line, Store};

/// A call that has come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    /// These bytes were written to this file.
    Write(PathBuf, Vec<u8>),
    /// What was written to this file before, or to this directory, is on the disk.
    Sync(PathBuf),
    /// A file has the name of another.
    Rename,
}

/// Runs a line to its end under ptrace(2), with all its threads and without its children.
/// `meanwhile` is called while it runs.
pub(crate) fn calls(
    store: &Store,
    line: Line,
    meanwhile: impl FnOnce() + Send,
) -> (Vec<Call>, Ended) {
    // It waits until it is traced.
    let wait = "until read -r _ < go; do :; done; exec \"$@\"";
    let run = line.under(&["sh", "-c", wait, "sh"]).start();
    let pid = Pid::from_raw(run.pid());
    let options =
        Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACECLONE | Options::PTRACE_O_TRACEEXIT;
    ptrace::seize(pid, options).expect("ptrace(2) has to be allowed here");
    ptrace::interrupt(pid).unwrap();
    store.go(0);
    let calls = thread::scope(|scope| {
        scope.spawn(meanwhile);
        follow(pid)
    });
    (calls, run.end())
}

/// Looks for the next event, which stays.
const LOOK: WaitPidFlag = WaitPidFlag::WEXITED
    .union(WaitPidFlag::WSTOPPED)
    .union(WaitPidFlag::WNOWAIT);

/// Until each of its threads exits; the process is its parent's to wait for.
fn follow(process: Pid) -> Vec<Call> {
    // Of this thread's children only: other tests have children too.
    let of_mine = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
    let mut threads = BTreeSet::from([process.as_raw()]);
    let mut calls = Vec::new();
    while !threads.is_empty() {
        let next = waitid(Id::All, of_mine | LOOK).unwrap();
        if let WaitStatus::Exited(of, _) | WaitStatus::Signaled(of, ..) = next
            && of == process
        {
            break;
        }
        match waitpid(next.pid(), Some(of_mine)).unwrap() {
            WaitStatus::PtraceSyscall(thread) => {
                calls.extend(call(thread));
                go_on(thread, None);
            }
            WaitStatus::PtraceEvent(thread, _, libc::PTRACE_EVENT_EXIT) => {
                threads.remove(&thread.as_raw());
                // It may have been killed meanwhile.
                let _ = ptrace::detach(thread, None);
            }
            WaitStatus::PtraceEvent(thread, _, libc::PTRACE_EVENT_CLONE) => {
                let new = ptrace::getevent(thread).unwrap();
                threads.insert(i32::try_from(new).unwrap());
                go_on(thread, None);
            }
            WaitStatus::PtraceEvent(thread, ..) => go_on(thread, None),
            WaitStatus::Stopped(thread, signal) => go_on(thread, Some(signal)),
            // A thread that dies with its process may not stop before.
            WaitStatus::Exited(thread, _) | WaitStatus::Signaled(thread, ..) => {
                threads.remove(&thread.as_raw());
            }
            other => panic!("{other:?}"),
        }
    }
    calls
}

fn go_on(thread: Pid, signal: Option<nix::sys::signal::Signal>) {
    // It may have been killed meanwhile.
    let _ = ptrace::syscall(thread, signal);
}

/// The call that a thread has just begun, as far as it is of interest. It is noted when it
/// begins: nothing else of that thread comes before its end.
fn call(thread: Pid) -> Option<Call> {
    if !is_at_entry(thread) {
        return None;
    }
    let text = fs::read_to_string(format!("/proc/{thread}/syscall")).ok()?;
    let mut words = text.split(' ');
    let number: i64 = words.next()?.parse().ok()?;
    let args = words.map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16));
    let args: Vec<u64> = args.map_while(Result::ok).collect();
    let file = || fs::read_link(format!("/proc/{thread}/fd/{}", args[0])).ok();
    match number {
        libc::SYS_pwrite64 | libc::SYS_write => {
            let mut bytes = vec![0; usize::try_from(args[2]).ok()?];
            let memory = File::open(format!("/proc/{thread}/mem")).ok()?;
            memory.read_exact_at(&mut bytes, args[1]).ok()?;
            Some(Call::Write(file()?, bytes))
        }
        libc::SYS_fsync | libc::SYS_fdatasync => Some(Call::Sync(file()?)),
        libc::SYS_renameat | libc::SYS_renameat2 => Some(Call::Rename),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename => Some(Call::Rename),
        _ => None,
    }
}

/// `PTRACE_GET_SYSCALL_INFO` of `<linux/ptrace.h>`. The crates have it only where they are linked with glibc.
const GET_SYSCALL_INFO: libc::c_long = 0x420e;

/// The first byte of its answer at the entry of a call.
const AT_ENTRY: u8 = 1;

/// Whether a stopped thread has just begun a call, and not ended one.
#[allow(unsafe_code)]
fn is_at_entry(thread: Pid) -> bool {
    let mut info = [0_u8; 128];
    // SAFETY: ptrace(2) writes at most as many bytes as its third argument says, into an array that is ours.
    let got = unsafe {
        libc::syscall(
            libc::SYS_ptrace,
            GET_SYSCALL_INFO,
            libc::c_long::from(thread.as_raw()),
            info.len(),
            info.as_mut_ptr(),
        )
    };
    got > 0 && info[0] == AT_ENTRY
}
