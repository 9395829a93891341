//! The program under test.

/// Its path: that of the released program, which `tests/run-all` builds and names by this variable, or else of the
/// one that Cargo builds for the tests.
pub(crate) const TOKENRUN: &str = match option_env!("TOKENRUN_TEST_PROGRAM") {
    Some(program) => program,
    None => env!("CARGO_BIN_EXE_tokenrun"),
};
