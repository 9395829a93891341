//! Why a configuration file can't be used.

/// Why a configuration file can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// The exit code.
    pub code: u8,
    /// One line: which file, which line of it, what is wrong, what to do.
    pub text: String,
}
