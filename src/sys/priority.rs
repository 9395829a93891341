//! Process priorities: which process the kernel runs first when there are not enough processors.

#![allow(unsafe_code)]

use nix::errno::Errno;
use nix::libc;
use rustix::process::{Resource, getpriority_process, getrlimit};

/// The time slice that a process that seldom runs requests, in nanoseconds: the kernel prefers
/// processes with short slices. This is the smallest allowed value. Kernels before 6.12 ignore it.
const SHORT_SLICE: u64 = 100_000;

/// The least niceness that there is.
const LEAST_NICE: i32 = -20;

/// The argument of sched_setattr(2), in its first version, which every kernel knows.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Children have ordinary priority again.
const RESET_ON_FORK: u64 = 1;

/// Gives this process precedence, so that it runs however many others want to: at the highest
/// real-time priority allowed (CAP_SYS_NICE, or RLIMIT_RTPRIO), otherwise before other ordinary
/// processes as far as allowed. Its children do not inherit that.
///
/// Only for a process that runs seldom, and never for long.
pub fn run_first() {
    let highest = highest_real_time();
    let allowed = soft_limit(Resource::Rtprio).min(highest);
    if !run_in_real_time(highest) && !run_in_real_time(allowed) {
        run_first_in_turn();
    }
}

/// Gives this process precedence among ordinary ones.
fn run_first_in_turn() {
    let own = getpriority_process(None).unwrap_or_default();
    let allowed = 20 - soft_limit(Resource::Nice);
    let tries = [LEAST_NICE, allowed.min(own), own];
    let _ = tries.into_iter().any(run_in_turn);
}

fn highest_real_time() -> i32 {
    // SAFETY: sched_get_priority_max(2) takes no pointer.
    unsafe { libc::sched_get_priority_max(libc::SCHED_RR) }
}

fn run_in_real_time(priority: i32) -> bool {
    schedule(&Attributes {
        policy: libc::SCHED_RR.cast_unsigned(),
        priority: u32::try_from(priority).unwrap_or_default(),
        ..Attributes::default()
    })
}

fn run_in_turn(nice: i32) -> bool {
    schedule(&Attributes {
        policy: libc::SCHED_OTHER.cast_unsigned(),
        nice,
        runtime: SHORT_SLICE,
        ..Attributes::default()
    })
}

/// By the kernel's own call: musl's sched_setscheduler(3) does nothing, and returns ENOSYS.
fn schedule(wanted: &Attributes) -> bool {
    let wanted = Attributes {
        size: u32::try_from(size_of::<Attributes>()).unwrap_or_default(),
        flags: RESET_ON_FORK,
        ..*wanted
    };
    // SAFETY: sched_setattr(2) reads a struct that is ours, up to the size in it.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) };
    Errno::result(done).is_ok()
}

fn soft_limit(of: Resource) -> i32 {
    let limit = getrlimit(of).current.unwrap_or(u64::MAX);
    i32::try_from(limit).unwrap_or(i32::MAX)
}
