//! How a run ended, and how its client got the token: words in stores, tables and JSON.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a run ended, or that it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The run goes on.
    Running,
    /// The job exited with 0.
    Succeeded,
    /// The job exited with another code.
    Failed,
    /// The job was killed by a signal.
    Signalled,
    /// The job was ended because it ran longer than `--timeout`.
    TimedOut,
    /// The job was ended because its token was lost or could not be guarded.
    Lost,
    /// The token was granted, the job not started.
    NotStarted,
    /// The holder vanished, so the outcome is unknown.
    Unknown,
}

impl Outcome {
    /// The word in tables, JSON, metrics and messages. Stores keep an older word for a killed job, which
    /// programs of any version read.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Signalled => "killed",
            other => other.as_str(),
        }
    }

    /// True if the job ran and did not succeed.
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Signalled | Self::TimedOut)
    }
}

/// How a client got the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantKind {
    /// The token belonged to no client.
    Bind,
    /// The token belonged to this client.
    Renew,
    /// The token belonged to another client.
    Takeover,
    /// The token belonged to another client, and this client is the expected one.
    Failback,
    /// The token was handed off to this client.
    Handoff,
}

macro_rules! words {
    ($type:ty { $($variant:ident => $word:literal),+ $(,)? }) => {
        impl $type {
            /// The word in stores.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.word())
            }
        }
    };
}

words!(Outcome {
    Running => "running", Succeeded => "succeeded", Failed => "failed",
    Signalled => "signalled", TimedOut => "timed_out", Lost => "lost",
    NotStarted => "not_started", Unknown => "unknown",
});
words!(GrantKind {
    Bind => "bind", Renew => "renew", Takeover => "takeover",
    Failback => "failback", Handoff => "handoff",
});

impl GrantKind {
    /// The word in tables, JSON, metrics and messages.
    pub const fn word(self) -> &'static str {
        self.as_str()
    }
}
