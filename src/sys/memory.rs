//! Pages that stay in memory.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fs;
use std::ptr::with_exposed_provenance_mut;

use rustix::mm::{MlockFlags, mlock_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Keeps in memory what this process has there, and what it uses from now on, of all that is mapped now: as far as
/// allowed (`ulimit -l` up to the hard limit, CAP_IPC_LOCK). Nothing is read for that. A child does not inherit it.
pub fn keep_used_pages() {
    raise_limit();
    let text = fs::read("/proc/self/maps").unwrap_or_default();
    for (start, length) in text.split(|byte| *byte == b'\n').filter_map(range) {
        // SAFETY: the contents and the rights of a range stay what they are. The kernel refuses one that is not there.
        let _ = unsafe { mlock_with(start, length, MlockFlags::ONFAULT) };
    }
}

fn raise_limit() {
    let maximum = getrlimit(Resource::Memlock).maximum;
    let _ = setrlimit(
        Resource::Memlock,
        Rlimit {
            current: maximum,
            maximum,
        },
    );
}

/// The start and the length of a mapping, from its line in proc_pid_maps(5).
fn range(line: &[u8]) -> Option<(*mut c_void, usize)> {
    let addresses = line.split(|byte| *byte == b' ').next()?;
    let (start, end) = std::str::from_utf8(addresses).ok()?.split_once('-')?;
    let [start, end] = [start, end].map(|it| usize::from_str_radix(it, 16).ok());
    let start = start?;
    Some((with_exposed_provenance_mut(start), end?.checked_sub(start)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_of_a_mapping_is_the_first_field_of_its_line() {
        let line = b"7f861a44f000-7f861a5a5000 r-xp 00026000 fe:00 326279   /usr/lib/\xff a-b";
        let (start, length) = range(line).unwrap();
        assert_eq!((start.addr(), length), (0x7f86_1a44_f000, 0x15_6000));
        for odd in ["", "-", "7f-", "-7f", "7f", "x-7f", "7f-7e rw-p"] {
            assert_eq!(range(odd.as_bytes()), None, "{odd}");
        }
    }
}
