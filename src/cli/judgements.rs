//! Judgements of operators on a store that may have forgotten a grant.

use clap::Args;

use super::acts::RecordFlags;
use super::shared::{LogRequest, StoreRequest, plain_text};
use super::unusable::Unusable;
use crate::token::Incarnation;
use crate::token::operator::Judgement;

#[derive(Debug, Args)]
pub(super) struct SettleFlags {
    /// The incarnation of the store, as the message of the run that waits shows it
    #[arg(value_name = "INCARNATION")]
    incarnation: String,
    #[command(flatten)]
    judgement: JudgementFlags,
}

#[derive(Debug, Args)]
pub(super) struct DistrustFlags {
    #[command(flatten)]
    judgement: JudgementFlags,
}

#[derive(Debug, Args)]
struct JudgementFlags {
    #[command(flatten)]
    record: RecordFlags,
    /// Ask no question; needed without a terminal
    #[arg(short, long)]
    yes: bool,
}

/// An operator's judgement of a store, validated.
#[derive(Debug)]
pub struct JudgementRequest {
    /// The store.
    pub store: StoreRequest,
    pub judgement: Judgement,
    /// Ask no question.
    pub yes: bool,
    pub reason: Option<String>,
    /// Report the act as JSON.
    pub json: bool,
    /// The amount and the style of messages.
    pub log: LogRequest,
}

impl JudgementFlags {
    fn request(self, judgement: Judgement) -> Result<JudgementRequest, Unusable> {
        let RecordFlags {
            store,
            reason,
            json,
            log,
        } = self.record;
        Ok(JudgementRequest {
            store: store.into(),
            judgement,
            yes: self.yes,
            reason: plain_text("--reason", reason)?,
            json,
            log: log.into(),
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
        flags.judgement.request(Judgement::Settle(incarnation))
    }
}

impl TryFrom<DistrustFlags> for JudgementRequest {
    type Error = Unusable;

    fn try_from(flags: DistrustFlags) -> Result<Self, Unusable> {
        flags.judgement.request(Judgement::Distrust)
    }
}
