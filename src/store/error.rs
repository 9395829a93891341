//! What goes wrong with a store, and what to do.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

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

/// An error of the operating system once more: its number, or its kind.
pub(super) fn copy_of(error: &io::Error) -> io::Error {
    error
        .raw_os_error()
        .map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// The store could not be used. Losing a token is not that. Its text is one line, and includes
/// the cause.
#[derive(Debug, Clone)]
pub struct StoreError {
    /// What kind of trouble it is.
    pub trouble: Trouble,
    /// What is wrong, and in which store.
    pub what: String,
    /// What to do, if that is known.
    pub remedy: Option<String>,
    /// The error of the driver or of the operating system behind it, for its kind and code.
    pub source: Option<Arc<dyn Error + Send + Sync>>,
}

/// Two errors are the same if they say the same: causes of drivers can't be compared.
impl PartialEq for StoreError {
    fn eq(&self, other: &Self) -> bool {
        let words = |it: &Self| (it.trouble, it.what.clone(), it.remedy.clone());
        words(self) == words(other)
    }
}

impl Eq for StoreError {}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source
            .as_deref()
            .map(|it| it as &(dyn Error + 'static))
    }
}

impl StoreError {
    /// The same, with what to do.
    #[must_use]
    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: Some(remedy.into()),
            ..self
        }
    }

    /// The same, with the error behind it.
    #[must_use]
    pub fn caused_by(self, source: impl Error + Send + Sync + 'static) -> Self {
        Self {
            source: Some(Arc::new(source)),
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
            source: None,
        }
    }
}
