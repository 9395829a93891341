//! What `doctor` finds out about a store, check by check. Examining a store changes
//! nothing in it.

pub mod advice;
pub mod directory;

use super::Trouble;

/// What a check comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// As it should be.
    Fine,
    /// It can't be known from here.
    Unknown,
    /// It works, and something about it should be otherwise.
    Warn,
    /// It does not work, and this is why.
    Fail(Trouble),
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was looked at: a stable word.
    pub step: &'static str,
    /// On which of several servers; `None` for what concerns the whole store.
    pub server: Option<String>,
    /// What it comes to.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do; there is something unless all is well.
    pub remedy: Option<String>,
}

impl Check {
    /// All is well.
    #[must_use]
    pub fn fine(step: &'static str, found: impl Into<String>) -> Self {
        Self {
            step,
            server: None,
            verdict: Verdict::Fine,
            found: found.into(),
            remedy: None,
        }
    }

    /// It can't be known from here; the remedy says who knows it, or that it does not matter.
    #[must_use]
    pub fn unknown(
        step: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            verdict: Verdict::Unknown,
            ..Self::warn(step, found, remedy)
        }
    }

    /// Something should be otherwise.
    #[must_use]
    pub fn warn(step: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Warn,
            remedy: Some(remedy.into()),
            ..Self::fine(step, found)
        }
    }

    /// It does not work.
    #[must_use]
    pub fn fail(
        step: &'static str,
        trouble: Trouble,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            verdict: Verdict::Fail(trouble),
            ..Self::warn(step, found, remedy)
        }
    }

    /// The same, of one server.
    #[must_use]
    pub fn on(self, server: &str) -> Self {
        Self {
            server: Some(server.to_owned()),
            ..self
        }
    }
}

/// Whoever is told of each check as soon as it is made.
pub type Tell<'a> = dyn FnMut(Check) + 'a;
