//! Faults between this process and a server, and what they mean.

use std::error::Error;
use std::io;
use std::sync::Arc;

use super::deadline::{Activity, TimedOut};
use super::tls::{Insecure, Remedies, is_certain};
use crate::store::error::copy_of;
use crate::store::{StoreError, Trouble};

/// What a server, or its protocol's driver, has answered in place of what was asked for.
pub(in crate::store) trait Said {
    /// What to do about TLS.
    const TLS: Remedies;

    /// The kind of the error.
    fn trouble(&self) -> Trouble;

    fn words(&self) -> String;

    /// What to do, if known.
    fn remedy(&self) -> Option<&'static str>;

    /// True if the server accepts no writes, and another may: nothing has happened.
    fn is_elsewhere(&self) -> bool;

    /// True if the server has refused the request: it has not happened, and the connection stays usable.
    fn is_refusal(&self) -> bool;

    /// The cause, for its code.
    fn cause(&self) -> Option<Arc<dyn Error + Send + Sync>> {
        None
    }
}

#[derive(Debug)]
pub(in crate::store) enum Fault<S> {
    /// A step was not done in time.
    TimedOut(TimedOut),
    /// An error of the operating system, or a closed connection.
    Io(Activity, io::Error),
    /// There is no TLS, and why, in words.
    Tls(Insecure, String),
    /// The settings require something impossible.
    Settings(String),
    Said(S),
}

impl<S> From<TimedOut> for Fault<S> {
    fn from(late: TimedOut) -> Self {
        Self::TimedOut(late)
    }
}

impl<S> Fault<S> {
    /// An error of the operating system while doing this; to be used with `map_err`.
    pub(in crate::store) fn io(doing: Activity) -> impl Fn(io::Error) -> Self + Copy {
        move |error| Self::Io(doing, error)
    }

    /// Bytes that are no answer.
    pub(in crate::store) fn nonsense(what: &str) -> Self {
        let error = io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        Self::Io(Activity::Asking, error)
    }

    pub(in crate::store) fn no_server() -> Self {
        Self::Settings("the store has no server".into())
    }

    /// The fault of a TLS handshake that failed, while doing this.
    pub(in crate::store) fn of_handshake(doing: Activity, error: io::Error) -> Self {
        if !is_certain(&error) {
            return Self::Io(doing, error);
        }
        Self::Tls(Insecure::of(&error), error.to_string())
    }

    pub(in crate::store) const fn said(&self) -> Option<&S> {
        match self {
            Self::Said(said) => Some(said),
            _ => None,
        }
    }
}

impl<S: Said> Fault<S> {
    pub(in crate::store) fn is_elsewhere(&self) -> bool {
        self.said().is_some_and(Said::is_elsewhere)
    }

    pub(in crate::store) fn is_refusal(&self) -> bool {
        self.said().is_some_and(Said::is_refusal)
    }

    pub(in crate::store) fn trouble(&self) -> Trouble {
        match self {
            Self::TimedOut(_) => Trouble::Unavailable,
            Self::Io(_, error) => match error.kind() {
                io::ErrorKind::PermissionDenied => Trouble::Denied,
                io::ErrorKind::InvalidInput => Trouble::Misconfigured,
                _ => Trouble::Unavailable,
            },
            Self::Tls(..) | Self::Settings(_) => Trouble::Misconfigured,
            Self::Said(said) => said.trouble(),
        }
    }

    pub(in crate::store) fn words(&self) -> String {
        match self {
            Self::TimedOut(late) => late.words(),
            Self::Io(doing, error) => format!("{error}, while {}", doing.words()),
            Self::Tls(_, what) | Self::Settings(what) => what.clone(),
            Self::Said(said) => said.words(),
        }
    }

    pub(in crate::store) fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Tls(why, _) => Some(why.remedy(&S::TLS)),
            Self::Said(said) => said.remedy(),
            _ => None,
        }
    }

    /// The fault as a store's error: `place` is the store, `host` the server.
    pub(in crate::store) fn store_error(&self, place: &str, host: &str) -> StoreError {
        let source = match self {
            Self::Io(_, cause) => Some(Arc::new(copy_of(cause)) as Arc<dyn Error + Send + Sync>),
            Self::Said(said) => said.cause(),
            _ => None,
        };
        StoreError {
            trouble: self.trouble(),
            what: format!(
                "the store {place} can't be used: server {host}: {}",
                self.words()
            ),
            remedy: self.remedy().map(str::to_owned),
            source,
        }
    }
}
