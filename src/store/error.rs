//! Errors of a store, with what to do.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

/// The kind of an error; it decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The store is unusable now; a retry may succeed. Whether the request has happened, or will,
    /// is unknown.
    Unavailable,
    /// The request could not be sent, or the store refuses it for now. Nothing happened; a retry
    /// may succeed.
    Refused,
    /// Other processes hold the store's locks. Nothing happened.
    Locked,
    /// A transaction of another program holds this very token. Nothing happened.
    Held,
    /// The store that was opened is gone: other processes may be using another in its place, and
    /// nothing excludes them. Or its disk has failed to write.
    Gone,
    /// Permission denied.
    Denied,
    /// Not a tokenrun store, or wrongly configured.
    Misconfigured,
}

impl Trouble {
    /// The kind in a word for scripts.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Refused => "refused",
            Self::Locked => "locked",
            Self::Held => "held",
            Self::Gone => "gone",
            Self::Denied => "denied",
            Self::Misconfigured => "misconfigured",
        }
    }
}

/// A copy of an operating system error: its number, or its kind.
pub(super) fn copy_of(error: &io::Error) -> io::Error {
    error
        .raw_os_error()
        .map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// The store is unusable. A lost token is not such an error. The text is one line, and includes the
/// cause.
#[derive(Debug, Clone)]
pub struct StoreError {
    pub trouble: Trouble,
    /// What is wrong, and in which store.
    pub what: String,
    /// What to do, if known.
    pub remedy: Option<String>,
    /// The error of the driver or of the operating system behind this one, for its kind and code.
    pub source: Option<Arc<dyn Error + Send + Sync>>,
}

/// Two errors are equal if their texts are: causes of drivers can't be compared.
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
    /// Adds what to do.
    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: Some(remedy.into()),
            ..self
        }
    }

    /// Adds the cause.
    pub fn caused_by(self, source: impl Error + Send + Sync + 'static) -> Self {
        Self {
            source: Some(Arc::new(source)),
            ..self
        }
    }

    /// A store without a clear answer.
    pub fn unavailable(what: impl Into<String>) -> Self {
        Self::of(Trouble::Unavailable, what)
    }

    /// A store that got no request, or refuses for now.
    pub fn refused(what: impl Into<String>) -> Self {
        Self::of(Trouble::Refused, what)
    }

    /// The operating system gives no random number: nothing was sent.
    pub fn without_random(error: io::Error) -> Self {
        let what = format!("the operating system gave no random number: {error}");
        Self::refused(what).caused_by(error)
    }

    /// This error, where it is certain that nothing has happened.
    pub fn without_effect(self) -> Self {
        match self.trouble {
            Trouble::Unavailable => Self {
                trouble: Trouble::Refused,
                ..self
            },
            _ => self,
        }
    }

    /// This error, with the mark that the store must not be asked again.
    pub fn never_again(self) -> Self {
        Self {
            trouble: Trouble::Gone,
            ..self
        }
    }

    /// A store whose locks are held by other processes.
    pub fn locked(what: impl Into<String>) -> Self {
        Self::of(Trouble::Locked, what)
    }

    /// A token that is held by another program's transaction.
    pub fn held(what: impl Into<String>) -> Self {
        Self::of(Trouble::Held, what)
    }

    /// A store that is no longer the one that was opened.
    pub fn gone(what: impl Into<String>) -> Self {
        Self::of(Trouble::Gone, what)
    }

    /// A store that denied permission.
    pub fn denied(what: impl Into<String>) -> Self {
        Self::of(Trouble::Denied, what)
    }

    /// Not a tokenrun store, or wrongly configured.
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
