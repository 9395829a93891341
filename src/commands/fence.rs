//! `tokenrun fence verify` and `tokenrun fence advance`: whether a job may go on writing.

use anyhow::Result;

use super::failure::Failure;
use super::print_json;
use super::status::unknown_group;
use crate::cli::{FenceQuestion, FenceRequest};
use crate::exit::{self, Exit};
use crate::report::fence::{Marked, Verified, advanced, behind, current, not_granted, stale};
use crate::report::log::Log;
use crate::store::{Advanced, Store};
use crate::token::{Fence, GroupName};

/// Answers a question about a fence: 0, or 76 if it is stale.
///
/// # Errors
/// If the store can't be used, or the group is unknown.
pub fn fence(store: &mut dyn Store, request: &FenceRequest, log: &mut Log) -> Result<Exit> {
    let fence = request.fence;
    let (good, message) = match &request.question {
        FenceQuestion::Verify(group) => {
            let reading = store.read(group);
            let reading = reading?;
            let Some(row) = reading.row else {
                return Err(unknown_group(store.name(), group).into());
            };
            let is_current = row.fence == fence;
            if request.json {
                print_json(&[Verified {
                    group: row.group.as_str(),
                    fence: fence.0,
                    current: row.fence.0,
                    is_current,
                }])?;
            }
            match is_current {
                true => (true, current(&row, store.name())),
                false => (false, stale(&row, fence, store.name())),
            }
        }
        FenceQuestion::Advance { resource, group } => {
            if let Some(group) = group {
                check_origin(store, group, fence)?;
            }
            let answer = store.advance(resource, fence);
            let answer = answer?;
            if request.json {
                let highest = match answer {
                    Advanced::Stored => fence,
                    Advanced::Behind(mark) => mark,
                };
                print_json(&[Marked {
                    resource: resource.as_str(),
                    fence: fence.0,
                    highest: highest.0,
                    is_stale: highest != fence,
                }])?;
            }
            match answer {
                Advanced::Stored => (true, advanced(resource, fence, store.name())),
                Advanced::Behind(mark) => (false, behind(resource, fence, mark, store.name())),
            }
        }
    };
    log.write(&message, false);
    Ok(if good {
        Exit::OK
    } else {
        Exit::Code(exit::LOST)
    })
}

/// A mark in another store than the run's keeps no late job from writing.
fn check_origin(store: &mut dyn Store, group: &GroupName, fence: Fence) -> Result<()> {
    let row = store.read(group)?.row;
    if row.is_some_and(|row| row.fence >= fence) {
        return Ok(());
    }
    let text = not_granted(group, fence, store.name());
    Err(Failure::new(exit::CONFIG, "fence_not_granted", text).into())
}
