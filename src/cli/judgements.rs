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
