//! Requests to a store, and its answers, as values.

use super::{Queue, Reading, Records, Retention, StoreError, Tokens};
use crate::token::{
    GroupName, NoteSwap, OnceMark, OutputRecord, Recorded, RefusalRecord, RunRecord, SessionId,
    Swap, Swapped, Until, Waiter,
};

/// A request to a store.
#[derive(Debug, Clone)]
pub enum Request {
    /// Read the group's row, and whether this key of `--once` is done.
    Read(GroupName, Option<String>),
    /// Join the queue, or stay in it, until this time of the store's; then read the same.
    Join(GroupName, Box<Waiter>, Until, Option<String>),
    /// Leave the queue.
    Leave(GroupName, SessionId),
    /// Change a row.
    Swap(Box<Swap>),
    /// Write the note of the store's incarnation.
    Note(Box<NoteSwap>),
    /// Read whether a key of `--once` is done.
    Once { group: GroupName, key: String },
    /// Prune old records.
    Prune {
        group: GroupName,
        retention: Retention,
    },
    /// Write the finished run of the session itself.
    Record(Box<RunRecord>),
    /// Record that the session is refused.
    Refuse(Box<RefusalRecord>),
    /// Write the end of the output of the session's own run.
    KeepOutput(Box<OutputRecord>),
}

/// A store's answer.
#[derive(Debug, Clone)]
pub enum Answer {
    /// To [`Request::Read`] and [`Request::Join`].
    Read(Result<Box<Reading>, StoreError>),
    /// To [`Request::Leave`].
    Left(Result<(), StoreError>),
    /// To [`Request::Swap`] and [`Request::Note`].
    Swapped(Result<Swapped, StoreError>),
    /// To [`Request::Once`].
    Once(Result<Option<Box<OnceMark>>, StoreError>),
    /// To [`Request::Prune`].
    Pruned(Result<(), StoreError>),
    /// To [`Request::Record`].
    Recorded(Result<Recorded, StoreError>),
    /// To [`Request::Refuse`].
    Refused(Result<(), StoreError>),
    /// To [`Request::KeepOutput`].
    Kept(Result<(), StoreError>),
}

impl Request {
    /// Carries the request out, however long the store takes.
    pub fn carry_out<S>(&self, store: &mut S) -> Answer
    where
        S: Tokens + Queue + Records + ?Sized,
    {
        match self {
            Self::Read(group, key) => Answer::Read(store.look(group, key.as_deref()).map(Box::new)),
            Self::Join(group, waiter, expiry, key) => {
                let reading = store.join(group, waiter, expiry, key.as_deref());
                Answer::Read(reading.map(Box::new))
            }
            Self::Leave(group, session) => Answer::Left(store.leave(group, session)),
            Self::Swap(swap) => Answer::Swapped(store.swap(swap)),
            Self::Note(swap) => Answer::Swapped(store.note(swap)),
            Self::Once { group, key } => {
                Answer::Once(store.once(group, key).map(|mark| mark.map(Box::new)))
            }
            Self::Prune { group, retention } => Answer::Pruned(store.prune(group, *retention)),
            Self::Record(run) => Answer::Recorded(store.record(run)),
            Self::Refuse(refusal) => Answer::Refused(store.refuse(refusal)),
            Self::KeepOutput(output) => Answer::Kept(store.keep_output(output)),
        }
    }

    /// The answer that this request gets when the store's thread is gone.
    pub fn failed(&self, error: StoreError) -> Answer {
        match self {
            Self::Read(..) | Self::Join(..) => Answer::Read(Err(error)),
            Self::Leave(..) => Answer::Left(Err(error)),
            Self::Swap(_) | Self::Note(_) => Answer::Swapped(Err(error)),
            Self::Once { .. } => Answer::Once(Err(error)),
            Self::Prune { .. } => Answer::Pruned(Err(error)),
            Self::Record(_) => Answer::Recorded(Err(error)),
            Self::Refuse(_) => Answer::Refused(Err(error)),
            Self::KeepOutput(_) => Answer::Kept(Err(error)),
        }
    }
}

impl Answer {
    /// The error in it, if it is one.
    pub const fn error(&self) -> Option<&StoreError> {
        match self {
            Self::Read(Err(error))
            | Self::Left(Err(error))
            | Self::Swapped(Err(error))
            | Self::Once(Err(error))
            | Self::Pruned(Err(error))
            | Self::Recorded(Err(error))
            | Self::Refused(Err(error))
            | Self::Kept(Err(error)) => Some(error),
            Self::Read(Ok(_))
            | Self::Left(Ok(()))
            | Self::Swapped(Ok(_))
            | Self::Once(Ok(_))
            | Self::Pruned(Ok(()))
            | Self::Recorded(Ok(_))
            | Self::Refused(Ok(()))
            | Self::Kept(Ok(())) => None,
        }
    }
}
