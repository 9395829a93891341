//! Asking the rule.

use clap::Args;

use super::shared::{StoreFlags, StoreRequest, client, group_name};
use super::unusable::Unusable;
use crate::token::{ClientId, GroupName};

#[derive(Debug, Args)]
pub(super) struct ExplainFlags {
    /// The group
    #[arg(short, long, value_name = "NAME")]
    group: String,
    #[command(flatten)]
    store: StoreFlags,
    /// For this client [default: $CLIENT_ID, else the host name]
    #[arg(long, value_name = "ID", env = "TOKENRUN_CLIENT_ID")]
    client_id: Option<String>,
    /// As if it came with --failback
    #[arg(long, env = "TOKENRUN_FAILBACK")]
    failback: bool,
    /// An array of one JSON object instead of sentences
    #[arg(long)]
    json: bool,
}

/// A query of the rule for a client.
#[derive(Debug)]
pub struct ExplainRequest {
    pub group: GroupName,
    /// In which store.
    pub store: StoreRequest,
    /// The client id, if one was given.
    pub client_id: Option<ClientId>,
    /// Whether it would take the token back.
    pub failback: bool,
    /// JSON instead of sentences.
    pub json: bool,
}

impl TryFrom<ExplainFlags> for ExplainRequest {
    type Error = Unusable;

    fn try_from(flags: ExplainFlags) -> Result<Self, Unusable> {
        Ok(Self {
            group: group_name(&flags.group)?,
            store: flags.store.into(),
            client_id: client("--client-id", flags.client_id.as_deref())?,
            failback: flags.failback,
            json: flags.json,
        })
    }
}
