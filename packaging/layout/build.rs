//! Has the linker lay the functions of a short run side by side (`functions.ld`), so that
//! its three processes touch fewer pages of the program.
//!
//! Only for the program as it is released, and only for linkers that are known to read such
//! a script (LLVM's and GNU's, which compilers call by default). What has no place in the
//! script, or none any more, is laid out as ever.

#![allow(
    clippy::expect_used,
    reason = "Cargo says what a build script's panic says"
)]

use std::env;

fn main() {
    let script = "packaging/layout/functions.ld";
    println!("cargo:rerun-if-changed={script}");
    println!("cargo:rerun-if-env-changed=RUSTC_LINKER");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let is_released = variable("PROFILE") == "release";
    let flags = variable("CARGO_ENCODED_RUSTFLAGS");
    let has_another_linker = env::var_os("RUSTC_LINKER").is_some()
        || flags.contains("linker=")
        || flags.contains("fuse-ld");
    if is_released && variable("CARGO_CFG_TARGET_OS") == "linux" && !has_another_linker {
        let folder = env::var("CARGO_MANIFEST_DIR").expect("Cargo gives the package's folder");
        println!("cargo:rustc-link-arg-bin=tokenrun=-Wl,-T,{folder}/{script}");
    }
}
