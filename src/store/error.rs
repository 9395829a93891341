//! What goes wrong with a store, and what to do.

use std::fmt;

/// What kind of trouble a store is in; it decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// It can't be used now; later may be better. Whether what it was asked has happened, or
    /// will, is not known.
    Unavailable,
    /// It could not be asked, or it refuses for now. Nothing happened; later may be better.
    Refused,
    /// Others hold its locks. Nothing happened.
    Locked,
    /// A transaction of another program holds this very token. Nothing happened.
    Held,
    /// It is not the one any more that was opened: others may be using another in
    /// its place, and nothing excludes them.
    Gone,
    /// It refused permission.
    Denied,
    /// It is no store of ours, or not as it must be.
    Misconfigured,
}

/// The store could not be used. Losing a token is not that. It is shown in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreError {
    /// What kind of trouble it is.
    pub trouble: Trouble,
    /// What is wrong, and in which store.
    pub what: String,
    /// What to do, if that is known.
    pub remedy: Option<String>,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for StoreError {}

impl StoreError {
    /// The same, with what to do.
    #[must_use]
    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: Some(remedy.into()),
            ..self
        }
    }

    /// A store that gave no clear answer.
    pub fn unavailable(what: impl Into<String>) -> Self {
        Self::of(Trouble::Unavailable, what)
    }

    /// A store that was not asked, or refuses for now.
    pub fn refused(what: impl Into<String>) -> Self {
        Self::of(Trouble::Refused, what)
    }

    /// The same, where it is known that nothing has happened.
    #[must_use]
    pub fn without_effect(self) -> Self {
        match self.trouble {
            Trouble::Unavailable => Self {
                trouble: Trouble::Refused,
                ..self
            },
            _ => self,
        }
    }

    /// A store whose locks others hold.
    pub fn locked(what: impl Into<String>) -> Self {
        Self::of(Trouble::Locked, what)
    }

    /// A token that a transaction of another program holds.
    pub fn held(what: impl Into<String>) -> Self {
        Self::of(Trouble::Held, what)
    }

    /// A store that is not the one any more that was opened.
    pub fn gone(what: impl Into<String>) -> Self {
        Self::of(Trouble::Gone, what)
    }

    /// A store that refused permission.
    pub fn denied(what: impl Into<String>) -> Self {
        Self::of(Trouble::Denied, what)
    }

    /// Something that is no store of ours, or not as it must be.
    pub fn misconfigured(what: impl Into<String>) -> Self {
        Self::of(Trouble::Misconfigured, what)
    }

    fn of(trouble: Trouble, what: impl Into<String>) -> Self {
        Self {
            trouble,
            what: what.into(),
            remedy: None,
        }
    }
}
