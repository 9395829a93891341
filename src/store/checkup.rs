//! The checks that `doctor` makes of a store. Examining a store changes nothing in it.

pub mod advice;
pub(in crate::store) mod clock;
mod connecting;
pub mod directory;
#[cfg(test)]
pub(in crate::store) mod pinned;
pub(in crate::store) mod rules;
pub(in crate::store) mod walk;

use super::Trouble;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// In order.
    Fine,
    /// Unknown from here.
    Unknown,
    /// It works, and should be improved.
    Warn,
    /// It does not work, for this reason.
    Fail(Trouble),
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The check's name: a stable word.
    pub step: &'static str,
    /// The server, if there are several; `None` if the check concerns the whole store.
    pub server: Option<String>,
    pub verdict: Verdict,
    /// The finding.
    pub found: String,
    /// What to do; empty only if all is well.
    pub remedy: Option<String>,
}

impl Check {
    /// In order.
    pub fn fine(step: &'static str, found: impl Into<String>) -> Self {
        Self {
            step,
            server: None,
            verdict: Verdict::Fine,
            found: found.into(),
            remedy: None,
        }
    }

    /// Unknown from here; the remedy names a source, or says that it does not matter.
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

    /// It works, and should be improved.
    pub fn warn(step: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Warn,
            remedy: Some(remedy.into()),
            ..Self::fine(step, found)
        }
    }

    /// It does not work.
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

    pub(in crate::store) const fn failed(&self) -> bool {
        matches!(self.verdict, Verdict::Fail(_))
    }

    /// This check, for one server.
    pub fn on(self, server: &str) -> Self {
        Self {
            server: Some(server.to_owned()),
            ..self
        }
    }
}

/// Receives each check as soon as it is made.
pub type Tell<'a> = dyn FnMut(Check) + 'a;
