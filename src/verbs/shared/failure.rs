//! Why a command could not be carried out, and what the user sees of it: a message of one line
//! and an exit code. Also warnings.

use std::error::Error;
use std::fmt::Display;
use std::io;

use crate::cli::Unusable;
use crate::exit;
use crate::report::log::Log;
use crate::report::message::{Level, Message};
use crate::run::ending::of_trouble;
use crate::store::StoreError;

/// The context of a system call that tokenrun itself needs.
pub(crate) const SYSTEM_REFUSED: &str = "the operating system refused";

/// The event of a store that can't be used, as JSON messages name it.
pub(crate) const STORE_FAILED: &str = "store_failed";

/// A reason that no lower layer has: one sentence explains it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) code: u8,
    /// The event, as JSON messages name it.
    pub(crate) event: &'static str,
    /// One line for people.
    pub(crate) text: String,
}

impl Failure {
    /// An exit code, an event and the line that explains them.
    pub(crate) const fn new(code: u8, event: &'static str, text: String) -> Self {
        Self { code, event, text }
    }

    /// The message that explains it.
    pub(crate) fn message(&self) -> Message {
        Message::new(Level::Warning, self.event, self.text.clone())
    }
}

/// A file that can't be written.
pub(crate) fn not_written(what: impl Display, error: &io::Error) -> Failure {
    let text = format!("{what} can't be written: {error}");
    Failure::new(exit::DENIED, "not_written", text)
}

/// A write that other clients' writes got ahead of each time.
pub(crate) fn kept_changing(what: impl Display, tries: u32) -> Failure {
    let text = format!(
        "{what} kept changing; gave up after {tries} conflicts, and nothing was changed; try again"
    );
    Failure::new(exit::UNAVAILABLE, "conflicts", text)
}

/// What the user sees of an error.
#[derive(Debug)]
pub(crate) struct Reported {
    /// The exit code.
    pub(crate) code: u8,
    /// The message.
    pub(crate) message: Message,
}

/// The exit code and the event of a typed error. `None`: its cause has them.
fn kind_of(error: &(dyn Error + 'static)) -> Option<(u8, &'static str)> {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        Some((failure.code, failure.event))
    } else if let Some(error) = error.downcast_ref::<StoreError>() {
        Some((of_trouble(error.trouble), STORE_FAILED))
    } else if let Some(unusable) = error.downcast_ref::<Unusable>() {
        Some((unusable.code, "usage"))
    } else {
        let is_system = error.is::<io::Error>();
        is_system.then_some((exit::SYSTEM, "system"))
    }
}

/// The exit code and the message of an error: the contexts down to the first typed error, and
/// its own text, which includes its causes. An error without a typed one is a bug.
pub(crate) fn reported(error: &anyhow::Error) -> Reported {
    let mut parts = Vec::new();
    let mut kind = None;
    for cause in error.chain() {
        parts.push(cause.to_string());
        kind = kind_of(cause);
        if kind.is_some() {
            break;
        }
    }
    let (code, event) = kind.unwrap_or((exit::BUG, "bug"));
    let message = Message::new(Level::Warning, event, parts.join(": "));
    let message = match error.downcast_ref::<StoreError>() {
        Some(error) => message.because(error.trouble.word()),
        None => message,
    };
    Reported { code, message }
}

/// The exit code of an error.
pub(crate) fn code_of(error: &anyhow::Error) -> u8 {
    reported(error).code
}

/// Writes a warning.
pub(crate) fn warn(log: &mut Log, event: &'static str, text: String) {
    log.write(&Message::new(Level::Warning, event, text), false);
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn contexts_stand_before_the_typed_error_and_its_causes_are_not_repeated() {
        let cause = io::Error::from(io::ErrorKind::NotFound);
        let store = StoreError::denied("x.db can't be read").caused_by(cause);
        let shown = store.to_string();
        let error = Err::<(), _>(store).context("outer").unwrap_err();
        let reported = reported(&error);
        assert_eq!(reported.code, exit::DENIED);
        assert_eq!(reported.message.event, STORE_FAILED);
        assert_eq!(reported.message.text, format!("outer: {shown}"));
    }

    #[test]
    fn each_typed_error_has_its_exit_code() {
        let system = anyhow::Error::from(io::Error::other("x"));
        assert_eq!(code_of(&system), exit::SYSTEM);
        let own = Failure::new(exit::NOT_NOW, "held", "x".into());
        assert_eq!(code_of(&own.into()), exit::NOT_NOW);
        assert_eq!(code_of(&anyhow::anyhow!("x")), exit::BUG);
    }
}
