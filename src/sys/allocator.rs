//! The memory of the program with musl: one heap for Rust and for C.
//!
//! musl's own allocator takes memory from the kernel page by page and gives it back, which is a third of the system
//! calls of a refused run (docs/decisions/0056-released-with-musl.md). SQLite allocates by C's functions, so these are
//! defined here too. musl lets a program do that if it defines all of them.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dlmalloc::{Allocator, Dlmalloc};
use nix::libc::{self, EINVAL, ENOMEM, c_int};

/// How much memory is taken from the kernel at a time, in bytes. A refused run uses all of one such piece, so the
/// kernel gives the pages of the first one at once: each would be a page fault.
const STEP: usize = 128 * 1024;

/// What the C library promises of `malloc`, in bytes.
const ALIGNMENT: usize = 2 * size_of::<usize>();

static HEAP: Mutex<Dlmalloc<Pages>> = Mutex::new({
    let mut heap = Dlmalloc::new_with_allocator(Pages {
        is_first: AtomicBool::new(true),
    });
    assert!(heap.set_granularity(STEP), "a power of two");
    heap
});

/// The kernel's pages.
struct Pages {
    /// No page was taken yet.
    is_first: AtomicBool,
}

#[allow(unsafe_code)]
// SAFETY: each region is a mapping of its own, of zeros, and stays until it is freed as a whole.
unsafe impl Allocator for Pages {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let mut flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        if self.is_first.swap(false, Ordering::Relaxed) {
            flags |= libc::MAP_POPULATE;
        }
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses a place where nothing is.
        let place = unsafe { libc::mmap(null_mut(), size, rights, flags, -1, 0) };
        match place == libc::MAP_FAILED {
            true => (null_mut(), 0, 0),
            false => (place.cast(), size, 0),
        }
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        null_mut()
    }

    fn free_part(&self, _: *mut u8, _: usize, _: usize) -> bool {
        false
    }

    fn free(&self, place: *mut u8, size: usize) -> bool {
        // SAFETY: dlmalloc gives back what `alloc` returned.
        unsafe { libc::munmap(place.cast(), size) == 0 }
    }

    fn can_release_part(&self, _: u32) -> bool {
        false
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        4096
    }
}

/// A child of a fork has the lock as it was: the program forks itself only where it has no second thread.
fn heap() -> MutexGuard<'static, Dlmalloc<Pages>> {
    HEAP.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The allocator of the program's Rust code.
#[derive(Debug)]
pub struct Heap;

#[allow(unsafe_code)]
// SAFETY: dlmalloc keeps the contract of each function under a lock, and never unwinds on a valid heap.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is dlmalloc's.
        unsafe { heap().malloc(layout.size(), layout.align()) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is dlmalloc's.
        unsafe { heap().free(place, layout.size(), layout.align()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is dlmalloc's.
        unsafe { heap().calloc(layout.size(), layout.align()) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is dlmalloc's.
        unsafe { heap().realloc(place, layout.size(), layout.align(), size) }
    }
}

/// C's functions, by their contracts in malloc(3) and posix_memalign(3).
#[allow(unsafe_code, missing_docs, clippy::missing_safety_doc)]
mod c {
    use super::{ALIGNMENT, EINVAL, ENOMEM, c_int, c_void, heap, null_mut};

    #[unsafe(no_mangle)]
    pub(super) unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
        // SAFETY: any size is allowed.
        unsafe { heap().c_malloc(size).cast() }
    }

    #[unsafe(no_mangle)]
    pub(super) unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
        match count.checked_mul(size) {
            // SAFETY: any size is allowed, and the alignment is a power of two.
            Some(bytes) => unsafe { heap().calloc(bytes, ALIGNMENT).cast() },
            None => null_mut(),
        }
    }

    #[unsafe(no_mangle)]
    pub(super) unsafe extern "C" fn realloc(place: *mut c_void, size: usize) -> *mut c_void {
        // SAFETY: the caller gives a place of this heap, or none.
        unsafe { heap().c_realloc(place.cast(), size).cast() }
    }

    #[unsafe(no_mangle)]
    pub(super) unsafe extern "C" fn free(place: *mut c_void) {
        // SAFETY: the caller gives a place of this heap, or none.
        unsafe { heap().c_free(place.cast()) }
    }

    #[unsafe(no_mangle)]
    pub(super) unsafe extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
        // SAFETY: the caller gives a power of two.
        unsafe { heap().c_memalign(alignment, size).cast() }
    }

    #[unsafe(no_mangle)]
    pub(super) unsafe extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
        // SAFETY: the caller gives a power of two.
        unsafe { heap().c_memalign(alignment, size).cast() }
    }

    #[unsafe(no_mangle)]
    pub(super) unsafe extern "C" fn posix_memalign(
        place: *mut *mut c_void,
        alignment: usize,
        size: usize,
    ) -> c_int {
        if !alignment.is_power_of_two() || alignment < size_of::<*mut c_void>() {
            return EINVAL;
        }
        // SAFETY: the alignment is a power of two.
        let found = unsafe { heap().c_memalign(alignment, size) };
        if found.is_null() {
            return ENOMEM;
        }
        // SAFETY: the caller gives a place for the answer.
        unsafe { *place = found.cast() };
        0
    }
}
