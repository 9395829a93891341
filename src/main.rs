//! tokenrun: calls the library, and ends in one place.
//!
//! `main` is C's, not Rust's: Rust's own would ignore SIGPIPE before tokenrun could see the signal
//! dispositions that it was given, and the job must get exactly those.
#![no_main]

use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::panic::catch_unwind;

use tokenrun::exit::{self, Exit};
use tokenrun::sys::process::exit_now;
use tokenrun::sys::signals::die_of;

/// musl's own takes memory from the kernel page by page, and gives it back: 8 % of a short run.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// The program's entry point, called by the C runtime.
///
/// # Safety
/// `argv` must point to `argc` pointers to strings, as C's runtime sees to.
#[allow(unsafe_code)]
// SAFETY: no other symbol has this name, and the signature is the one that C's runtime calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn main(argc: c_int, argv: *const *const c_char) -> c_int {
    // SAFETY: the caller promises what `words` asks for.
    let ending = catch_unwind(|| tokenrun::run(&unsafe { words(argc, argv) }));
    match ending {
        // An exit leaves nothing to do: each writer has flushed its output.
        Ok(Exit::Code(code)) => exit_now(c_int::from(code)),
        Ok(Exit::Signal(signal)) => die_of(signal),
        Err(_) => c_int::from(exit::BUG),
    }
}

/// The words of the command line.
///
/// # Safety
/// `argv` must point to `argc` pointers to strings.
#[allow(unsafe_code)]
unsafe fn words(argc: c_int, argv: *const *const c_char) -> Vec<OsString> {
    let count = usize::try_from(argc).unwrap_or_default();
    let word = |index| {
        // SAFETY: the index is below `argc`, so this is what the caller promised.
        let word = unsafe { CStr::from_ptr(*argv.add(index)) };
        OsStr::from_bytes(word.to_bytes()).to_owned()
    };
    (0..count).map(word).collect()
}
