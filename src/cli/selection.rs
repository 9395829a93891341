//! The groups that an act is about: one or several names, patterns, or all.

use clap::Args;

use super::shared::groups;
use super::unusable::Unusable;
use crate::token::{GroupName, Groups};

#[derive(Debug, Args)]
pub(super) struct SelectionFlags {
    /// The group, or a pattern such as 'etl-*'; can be repeated
    #[arg(short, long, value_name = "NAME", required_unless_present = "all")]
    group: Vec<String>,
    /// Every group of the store
    #[arg(long, conflicts_with = "group")]
    all: bool,
    /// Ask no question
    ///
    /// On a terminal, tokenrun asks before it acts on several groups that --all or a pattern has
    /// found, and before it gives a token to a client that was never seen. Without a terminal,
    /// --all and a pattern need --yes, and an unknown client causes a warning.
    #[arg(short, long)]
    yes: bool,
}

/// The groups that an act is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// This one.
    One(GroupName),
    /// Those of the store that have one of these names, or match one of these patterns.
    Several(Groups),
}

impl Selection {
    /// How the line names groups without their names; `None` if it gives each name.
    #[must_use]
    pub fn broad(&self) -> Option<String> {
        match self {
            Self::One(_) => None,
            Self::Several(Groups::All) => Some("--all".to_owned()),
            Self::Several(Groups::Matching(patterns)) => {
                let pattern = patterns.iter().find(|it| it.name().is_none())?;
                Some(format!("--group {:?}", pattern.as_str()))
            }
        }
    }
}

impl SelectionFlags {
    /// The groups, and whether no question is to be asked.
    pub(super) fn selection(self) -> Result<(Selection, bool), Unusable> {
        let all = groups(&self.group)?;
        let selection = match all.single() {
            Some(name) => Selection::One(name.clone()),
            None => Selection::Several(all),
        };
        Ok((selection, self.yes))
    }
}
