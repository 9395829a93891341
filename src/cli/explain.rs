//! Asking the rule.

use clap::Args;

use super::instant::GivenTime;
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
    /// Explain it for this client [default: $CLIENT_ID, else the host name]
    #[arg(long, value_name = "ID", env = "TOKENRUN_CLIENT_ID")]
    client_id: Option<String>,
    /// As if the client came with --failback
    #[arg(long, env = "TOKENRUN_FAILBACK")]
    failback: bool,
    /// Explain what happened around this time, a quarter of an hour before and after: 02:00,
    /// 'yesterday 02:00', '2026-11-21 02:00', 12h (ago)
    ///
    /// It tells which clients came, which were refused and why, and which ran. A run that is
    /// refused records its refusal.
    #[arg(long, value_name = "TIME", value_parser = GivenTime::parse, conflicts_with = "since")]
    at: Option<GivenTime>,
    /// Explain what happened since this time, given as for --at, or a day: yesterday, 2026-11-21
    #[arg(long, value_name = "TIME", value_parser = GivenTime::parse)]
    since: Option<GivenTime>,
    /// Explain what happened before this time, with --since
    #[arg(long, value_name = "TIME", value_parser = GivenTime::parse, requires = "since")]
    until: Option<GivenTime>,
    /// Times in UTC, given and shown, instead of the zone of this host (TZ)
    #[arg(long)]
    utc: bool,
    /// An array of one JSON object instead of sentences
    #[arg(long)]
    json: bool,
}

/// The time of a story.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoryTime {
    /// Around an instant.
    At(GivenTime),
    /// From one until another; until now, if there is none.
    Since(GivenTime, Option<GivenTime>),
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
    /// What happened then, instead of what the rule decides now.
    pub story: Option<StoryTime>,
    /// Times in UTC.
    pub utc: bool,
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
            story: match (flags.at, flags.since) {
                (Some(at), _) => Some(StoryTime::At(at)),
                (None, Some(since)) => Some(StoryTime::Since(since, flags.until)),
                (None, None) => None,
            },
            utc: flags.utc,
            json: flags.json,
        })
    }
}
