//! tokenrun: calls the library, and ends in one place.
//!
//! `main` is C's, not Rust's: Rust's own would ignore SIGPIPE before tokenrun could see the signal
//! dispositions that it was given, and the job must get exactly those.
#![no_main]

use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;

use tokenrun::exit::Exit;
use tokenrun::sys::process::exit_now;
use tokenrun::sys::signals::die_of;

#[cfg(target_env = "musl")]
#[global_allocator]
static HEAP: tokenrun::sys::allocator::Heap = tokenrun::sys::allocator::Heap;

/// The program's entry point, called by the C runtime.
///
/// # Safety
/// `argv` must point to `argc` pointers to strings, as C's runtime sees to.
#[allow(unsafe_code)]
// SAFETY: no other symbol has this name, and the signature is the one that C's runtime calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn main(argc: c_int, argv: *const *const c_char) -> c_int {
    // SAFETY: the caller promises what `words` asks for. Nothing unwinds into C: a panic ends the process.
    match tokenrun::run(&unsafe { words(argc, argv) }) {
        // An exit leaves nothing to do: each writer has flushed its output.
        Exit::Code(code) => exit_now(c_int::from(code)),
        Exit::Signal(signal) => die_of(signal),
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
