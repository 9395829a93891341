//! A page of HTML that shows the store.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::shared::{StoreFlags, StoreRequest, duration_value, plain_text};
use super::unusable::Unusable;
use crate::token::{GroupPattern, Groups};

/// The least time between two loads of a page.
const LEAST_REFRESH: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(super) struct PageFlags {
    /// The file to write; it is replaced as a whole; - for stdout
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Only this group, or the groups that match a pattern such as 'etl-*'; can be repeated
    #[arg(short, long, value_name = "NAME")]
    group: Vec<String>,
    #[command(flatten)]
    store: StoreFlags,
    /// The heading of the page
    #[arg(long, value_name = "TEXT", default_value = "tokenrun")]
    title: String,
    /// Times in UTC instead of the local time zone
    #[arg(long)]
    utc: bool,
    /// A browser loads the page again after this time, such as 60s or 5m [default: never]
    #[arg(long, value_name = "DURATION", value_parser = duration_value)]
    refresh: Option<Duration>,
}

/// A page.
#[derive(Debug)]
pub struct PageRequest {
    /// The file that it becomes; `None`: stdout.
    pub output: Option<PathBuf>,
    pub groups: Groups,
    pub store: StoreRequest,
    pub title: String,
    /// Times are in UTC.
    pub utc: bool,
    /// After which time a browser loads it anew.
    pub refresh: Option<Duration>,
}

impl TryFrom<PageFlags> for PageRequest {
    type Error = Unusable;

    fn try_from(flags: PageFlags) -> Result<Self, Unusable> {
        if flags.refresh.is_some_and(|every| every < LEAST_REFRESH) {
            let text = "--refresh is shorter than a second; write for example --refresh 60s";
            return Err(Unusable::about(&["--refresh"], text));
        }
        let title = plain_text("--title", Some(flags.title))?;
        Ok(Self {
            output: (flags.output.as_os_str() != "-").then_some(flags.output),
            groups: groups(&flags.group)?,
            store: flags.store.into(),
            title: title.unwrap_or_default(),
            utc: flags.utc,
            refresh: flags.refresh,
        })
    }
}

fn groups(patterns: &[String]) -> Result<Groups, Unusable> {
    let given = |text: &String| GroupPattern::given(text);
    let patterns: Result<Vec<_>, _> = patterns.iter().map(given).collect();
    match patterns {
        Ok(patterns) if patterns.is_empty() => Ok(Groups::All),
        Ok(patterns) => Ok(Groups::Matching(patterns)),
        Err(error) => {
            let text = format!("--group {error}; write for example --group 'etl-*'");
            Err(Unusable::about(&["--group"], text))
        }
    }
}
