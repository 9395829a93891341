//! Acts of operators on a token.

use std::time::Duration;

use clap::Args;

use super::shared::{
    LogFlags, LogRequest, StoreFlags, StoreRequest, client, duration_value, fence_value,
    group_name, plain_text,
};
use super::unusable::Unusable;
use crate::token::operator::Judgement;
use crate::token::{ClientId, Fence, GroupName, Incarnation, OnceKey};

#[derive(Debug, Args)]
struct ActFlags {
    /// The group
    #[arg(short, long, value_name = "NAME")]
    group: String,
    #[command(flatten)]
    record: RecordFlags,
}

// The store that records an act, and the form of its report.
#[derive(Debug, Args)]
struct RecordFlags {
    #[command(flatten)]
    store: StoreFlags,
    /// Why: recorded, and shown in history
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// What was done, as an array of one JSON object, on stdout
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    log: LogFlags,
}

#[derive(Debug, Args)]
pub(super) struct PauseFlags {
    #[command(flatten)]
    act: ActFlags,
    /// For how long [default: until it is resumed]
    #[arg(long = "for", value_name = "DURATION", value_parser = duration_value)]
    lasts: Option<Duration>,
}

#[derive(Debug, Args)]
pub(super) struct ResumeFlags {
    #[command(flatten)]
    act: ActFlags,
}

#[derive(Debug, Args)]
pub(super) struct HandoffFlags {
    #[command(flatten)]
    act: ActFlags,
    /// The client that gets the token next
    #[arg(long, value_name = "ID")]
    to: String,
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
    act: ActFlags,
}

#[derive(Debug, Args)]
pub(super) struct ReleaseFlags {
    #[command(flatten)]
    act: ActFlags,
    /// Free it although a job holds it: that job may go on for a while, beside the next
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

impl TryFrom<ForgetFlags> for ActRequest {
    type Error = Unusable;

    fn try_from(flags: ForgetFlags) -> Result<Self, Unusable> {
        let key = OnceKey::given(&flags.key)
            .map_err(|error| Unusable::usage(format!("the key {error}")))?;
        flags.act.request(Wish::Forget(key))
    }
}

#[derive(Debug, Args)]
pub(super) struct RaiseFlags {
    #[command(flatten)]
    act: ActFlags,
    /// The least that it is then: the highest that a resource has seen [default: by a minute]
    #[arg(long, value_name = "N", value_parser = fence_value)]
    to: Option<Fence>,
}

impl TryFrom<RaiseFlags> for ActRequest {
    type Error = Unusable;

    fn try_from(flags: RaiseFlags) -> Result<Self, Unusable> {
        flags.act.request(Wish::Raise(flags.to))
    }
}

#[derive(Debug, Args)]
pub(super) struct SettleFlags {
    /// The incarnation of the store, as the message of the run that waits shows it
    #[arg(value_name = "INCARNATION")]
    incarnation: String,
    #[command(flatten)]
    record: RecordFlags,
}

#[derive(Debug, Args)]
pub(super) struct DistrustFlags {
    #[command(flatten)]
    record: RecordFlags,
}

/// An operator's judgement of a store, validated.
#[derive(Debug)]
pub struct JudgementRequest {
    /// The store.
    pub store: StoreRequest,
    pub judgement: Judgement,
    pub reason: Option<String>,
    /// Report the act as JSON.
    pub json: bool,
    /// The amount and the style of messages.
    pub log: LogRequest,
}

impl RecordFlags {
    fn judgement(self, judgement: Judgement) -> Result<JudgementRequest, Unusable> {
        Ok(JudgementRequest {
            store: self.store.into(),
            judgement,
            reason: plain_text("--reason", self.reason)?,
            json: self.json,
            log: self.log.into(),
        })
    }
}

impl TryFrom<SettleFlags> for JudgementRequest {
    type Error = Unusable;

    fn try_from(flags: SettleFlags) -> Result<Self, Unusable> {
        if flags.incarnation.is_empty() {
            return Err(Unusable::usage(
                "settle: the incarnation is empty; use the one that the waiting run shows",
            ));
        }
        let incarnation = Incarnation(flags.incarnation);
        flags.record.judgement(Judgement::Settle(incarnation))
    }
}

impl TryFrom<DistrustFlags> for JudgementRequest {
    type Error = Unusable;

    fn try_from(flags: DistrustFlags) -> Result<Self, Unusable> {
        flags.record.judgement(Judgement::Distrust)
    }
}

/// An operator's wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// No new grants, for this long, or until they are allowed again.
    Pause(Option<Duration>),
    /// Grants again.
    Resume,
    /// The token goes to this client next.
    Handoff(ClientId),
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

/// An act of an operator, validated.
#[derive(Debug)]
pub struct ActRequest {
    /// The group.
    pub group: GroupName,
    /// The store.
    pub store: StoreRequest,
    /// The requested change.
    pub wish: Wish,
    pub reason: Option<String>,
    /// Report the act as JSON.
    pub json: bool,
    /// The amount and the style of messages.
    pub log: LogRequest,
}

impl ActFlags {
    fn request(self, wish: Wish) -> Result<ActRequest, Unusable> {
        Ok(ActRequest {
            group: group_name(&self.group)?,
            store: self.record.store.into(),
            wish,
            reason: plain_text("--reason", self.record.reason)?,
            json: self.record.json,
            log: self.record.log.into(),
        })
    }
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
        flags.act.request(Wish::Pause(flags.lasts))
    }
}

impl TryFrom<ResumeFlags> for ActRequest {
    type Error = Unusable;

    fn try_from(flags: ResumeFlags) -> Result<Self, Unusable> {
        flags.act.request(Wish::Resume)
    }
}

impl TryFrom<HandoffFlags> for ActRequest {
    type Error = Unusable;

    fn try_from(flags: HandoffFlags) -> Result<Self, Unusable> {
        let to = ClientId::given(&flags.to)
            .map_err(|error| Unusable::about(&["--to"], format!("--to {error}")))?;
        flags.act.request(Wish::Handoff(to))
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
        flags.act.request(Wish::Revoke)
    }
}

impl TryFrom<ReleaseFlags> for ActRequest {
    type Error = Unusable;

    fn try_from(flags: ReleaseFlags) -> Result<Self, Unusable> {
        let force = flags.force;
        flags.act.request(Wish::Release { force })
    }
}
