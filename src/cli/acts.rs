//! Acts of operators on tokens.

use std::time::Duration;

use clap::Args;

use super::run::{FOREVER, wait_value};
use super::selection::{Selection, SelectionFlags};
use super::shared::{
    LogFlags, LogRequest, StoreFlags, StoreRequest, client, duration_value, fence_value,
    group_name, plain_text,
};
use super::unusable::Unusable;
use crate::run::machine::Wait;
use crate::token::{ClientId, Fence, OnceKey};

// An act on one group.
#[derive(Debug, Args)]
struct ActFlags {
    /// The group
    #[arg(short, long, value_name = "NAME")]
    group: String,
    #[command(flatten)]
    record: RecordFlags,
}

// An act on one or several groups.
#[derive(Debug, Args)]
struct ActsFlags {
    #[command(flatten)]
    selection: SelectionFlags,
    #[command(flatten)]
    record: RecordFlags,
}

// The store that records an act, and the form of its report.
#[derive(Debug, Args)]
pub(super) struct RecordFlags {
    #[command(flatten)]
    pub(super) store: StoreFlags,
    /// The reason, which is recorded and shown in history
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
    /// Print what was done as an array of JSON objects
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) log: LogFlags,
}

#[derive(Debug, Args)]
pub(super) struct PauseFlags {
    #[command(flatten)]
    acts: ActsFlags,
    /// How long the pause lasts [default: until tokenrun resume]
    #[arg(long = "for", value_name = "DURATION", value_parser = duration_value)]
    lasts: Option<Duration>,
}

#[derive(Debug, Args)]
pub(super) struct ResumeFlags {
    #[command(flatten)]
    acts: ActsFlags,
    /// End the pauses of other operators too; without it, resuming several groups leaves those
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
pub(super) struct HandoffFlags {
    #[command(flatten)]
    acts: ActsFlags,
    /// The client that gets the token next
    #[arg(long, value_name = "ID")]
    to: String,
}

#[derive(Debug, Args)]
pub(super) struct MoveFlags {
    #[command(flatten)]
    acts: ActsFlags,
    /// The client that gets the token
    #[arg(long, value_name = "ID")]
    to: String,
    /// Wait until that client can have the token, at most this long; then exit code 75 [default: on
    /// a terminal, without a limit]
    #[arg(
        long,
        value_name = "DURATION",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = FOREVER,
        value_parser = wait_value,
    )]
    wait: Option<Wait>,
    /// Do not wait, even on a terminal
    #[arg(long, conflicts_with = "wait")]
    no_wait: bool,
}

#[derive(Debug, Args)]
pub(super) struct ExpectFlags {
    #[command(flatten)]
    act: ActFlags,
    /// The client that is expected to have the token
    #[arg(value_name = "ID", required_unless_present = "clear")]
    client: Option<String>,
    /// Expect no client
    #[arg(long, conflicts_with = "client")]
    clear: bool,
}

#[derive(Debug, Args)]
pub(super) struct RevokeFlags {
    #[command(flatten)]
    acts: ActsFlags,
    /// Wait until the job has ended and the token is free, at most this long; then exit code 75
    /// [default: no; without a DURATION there is no limit]
    #[arg(
        long,
        value_name = "DURATION",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = FOREVER,
        value_parser = wait_value,
    )]
    wait: Option<Wait>,
}

#[derive(Debug, Args)]
pub(super) struct ReleaseFlags {
    #[command(flatten)]
    acts: ActsFlags,
    /// Free the token although a job holds it: that job can go on for a while, beside the next one
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
pub(super) struct ForgetFlags {
    #[command(flatten)]
    act: ActFlags,
    /// The key
    #[arg(value_name = "KEY")]
    key: String,
}

#[derive(Debug, Args)]
pub(super) struct RaiseFlags {
    #[command(flatten)]
    act: ActFlags,
    /// The least value after the rise: the highest that a resource has seen [default: a rise by a
    /// minute]
    #[arg(long, value_name = "N", value_parser = fence_value)]
    to: Option<Fence>,
}

/// An operator's wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// No new grants, for this long, or until they are allowed again.
    Pause(Option<Duration>),
    /// Grants again.
    Resume {
        /// Although another operator has paused them.
        others: bool,
    },
    /// The token goes to this client next.
    Handoff(ClientId),
    /// The token goes to this client next, and another client that runs the job now ends it.
    Move(ClientId),
    /// This client is the configured primary.
    Expect(Option<ClientId>),
    /// The holder ends its job and frees the token.
    Revoke,
    /// This key of `--once` is no longer done.
    Forget(OnceKey),
    /// The fence is at least this high.
    Raise(Option<Fence>),
    /// The token is freed.
    Release {
        /// Although a job may be running.
        force: bool,
    },
}

impl Wish {
    /// The verb that asks for it.
    #[must_use]
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Pause(_) => "pause",
            Self::Resume { .. } => "resume",
            Self::Handoff(_) => "handoff",
            Self::Move(_) => "move",
            Self::Expect(_) => "expect",
            Self::Revoke => "revoke",
            Self::Forget(_) => "once forget",
            Self::Raise(_) => "fence raise",
            Self::Release { .. } => "release",
        }
    }

    /// The client that is to get the token next.
    #[must_use]
    pub const fn target(&self) -> Option<&ClientId> {
        match self {
            Self::Handoff(to) | Self::Move(to) => Some(to),
            _ => None,
        }
    }
}

/// How long an act waits for its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// However long it takes if a person sees it on a terminal, else not at all.
    OnTerminal,
    /// This long.
    Given(Wait),
}

/// An act of an operator, validated.
#[derive(Debug)]
pub struct ActRequest {
    /// The groups.
    pub selection: Selection,
    /// Ask no question.
    pub yes: bool,
    /// The store.
    pub store: StoreRequest,
    /// The requested change.
    pub wish: Wish,
    /// How long it waits for the effect of the change.
    pub patience: Patience,
    pub reason: Option<String>,
    /// Report the acts as JSON.
    pub json: bool,
    /// The amount and the style of messages.
    pub log: LogRequest,
}

impl RecordFlags {
    fn request(
        self,
        (selection, yes): (Selection, bool),
        wish: Wish,
    ) -> Result<ActRequest, Unusable> {
        Ok(ActRequest {
            selection,
            yes,
            store: self.store.into(),
            wish,
            patience: Patience::Given(Wait::No),
            reason: plain_text("--reason", self.reason)?,
            json: self.json,
            log: self.log.into(),
        })
    }
}

impl ActFlags {
    fn request(self, wish: Wish) -> Result<ActRequest, Unusable> {
        let group = group_name(&self.group)?;
        self.record.request((Selection::One(group), true), wish)
    }
}

impl ActsFlags {
    fn request(self, wish: Wish) -> Result<ActRequest, Unusable> {
        self.record.request(self.selection.selection()?, wish)
    }
}

fn target(to: &str) -> Result<ClientId, Unusable> {
    ClientId::given(to).map_err(|error| Unusable::about(&["--to"], format!("--to {error}")))
}

impl TryFrom<PauseFlags> for ActRequest {
    type Error = Unusable;

    fn try_from(flags: PauseFlags) -> Result<Self, Unusable> {
        if flags.lasts.is_some_and(|lasts| lasts.is_zero()) {
            return Err(Unusable::about(
                &["--for"],
                "--for must be longer than 0; leave it out for a pause until tokenrun resume",
            ));
        }
        flags.acts.request(Wish::Pause(flags.lasts))
    }
}

impl TryFrom<ResumeFlags> for ActRequest {
    type Error = Unusable;

    fn try_from(flags: ResumeFlags) -> Result<Self, Unusable> {
        let force = flags.force;
        let mut request = flags.acts.request(Wish::Resume { others: force })?;
        if matches!(request.selection, Selection::One(_)) {
            request.wish = Wish::Resume { others: true };
        }
        Ok(request)
    }
}

impl TryFrom<HandoffFlags> for ActRequest {
    type Error = Unusable;

    fn try_from(flags: HandoffFlags) -> Result<Self, Unusable> {
        flags.acts.request(Wish::Handoff(target(&flags.to)?))
    }
}

impl TryFrom<MoveFlags> for ActRequest {
    type Error = Unusable;

    fn try_from(flags: MoveFlags) -> Result<Self, Unusable> {
        let patience = match (flags.wait, flags.no_wait) {
            (Some(wait), _) => Patience::Given(wait),
            (None, true) => Patience::Given(Wait::No),
            (None, false) => Patience::OnTerminal,
        };
        let request = flags.acts.request(Wish::Move(target(&flags.to)?))?;
        Ok(Self {
            patience,
            ..request
        })
    }
}

impl TryFrom<ExpectFlags> for ActRequest {
    type Error = Unusable;

    fn try_from(flags: ExpectFlags) -> Result<Self, Unusable> {
        let expected = client("the client id", flags.client.as_deref())?;
        flags.act.request(Wish::Expect(expected))
    }
}

impl TryFrom<RevokeFlags> for ActRequest {
    type Error = Unusable;

    fn try_from(flags: RevokeFlags) -> Result<Self, Unusable> {
        let patience = Patience::Given(flags.wait.unwrap_or_default());
        let request = flags.acts.request(Wish::Revoke)?;
        Ok(Self {
            patience,
            ..request
        })
    }
}

impl TryFrom<ReleaseFlags> for ActRequest {
    type Error = Unusable;

    fn try_from(flags: ReleaseFlags) -> Result<Self, Unusable> {
        let force = flags.force;
        flags.acts.request(Wish::Release { force })
    }
}

impl TryFrom<ForgetFlags> for ActRequest {
    type Error = Unusable;

    fn try_from(flags: ForgetFlags) -> Result<Self, Unusable> {
        let key = OnceKey::given(&flags.key)
            .map_err(|error| Unusable::usage(format!("the key {error}")))?;
        flags.act.request(Wish::Forget(key))
    }
}

impl TryFrom<RaiseFlags> for ActRequest {
    type Error = Unusable;

    fn try_from(flags: RaiseFlags) -> Result<Self, Unusable> {
        flags.act.request(Wish::Raise(flags.to))
    }
}
