//! Heap and stack, of which a short run touches nearly all that it begins with.

#![allow(unsafe_code)]

use nix::libc;

/// The bytes that the C library's heap begins with are about this many.
const FIRST_HEAP: usize = 128 * 1024;

const PAGE: usize = 4096;

/// How much of the stack is touched: reading the command line takes most.
const FIRST_STACK: usize = 48 * 1024;

/// Has the kernel give the pages of heap and stack at once, rather than one at each first
/// touch: in a virtual machine a page fault costs a microsecond or two, and a run has
/// hundreds. Where the kernel can't (before Linux 5.14) nothing changes.
pub fn touch_memory() {
    grow_in_large_steps();
    let first: Box<u8> = Box::new(0);
    let used = std::ptr::from_ref(&*first).addr().next_multiple_of(PAGE);
    // SAFETY: sbrk(2) with 0 changes nothing and tells where the heap ends.
    let end = unsafe { libc::sbrk(0) }.addr();
    populate(used, end.saturating_sub(used).min(FIRST_HEAP));
    let here = std::ptr::from_ref(&used).addr() / PAGE * PAGE;
    populate(here.saturating_sub(FIRST_STACK), FIRST_STACK);
}

fn populate(from: usize, length: usize) {
    let length = length / PAGE * PAGE;
    if length == 0 {
        return;
    }
    // SAFETY: populating gives pages that the process has asked for already; it
    // changes neither what is in them nor what is mapped. A range that is not heap or
    // stack (another allocator, a small limit) is refused or populated, no more.
    unsafe {
        libc::madvise(
            std::ptr::without_provenance_mut(from),
            length,
            libc::MADV_POPULATE_WRITE,
        )
    };
}

/// The heap grows and shrinks by system calls; in a short run these cost more than the
/// memory that they save.
#[cfg(target_env = "gnu")]
fn grow_in_large_steps() {
    const STEP: libc::c_int = 512 * 1024;
    // SAFETY: mallopt(3) sets numbers that the allocator goes by; this is the only thread.
    unsafe {
        libc::mallopt(libc::M_TOP_PAD, STEP);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * STEP);
    }
}

#[cfg(not(target_env = "gnu"))]
const fn grow_in_large_steps() {}
