//! The style of messages, as the command line sets it.

use crate::cli::{LogFormat, LogRequest};
use crate::report::log::Style;
use crate::report::message::Level;

pub(crate) fn style(log: LogRequest) -> Style {
    let least = match log {
        LogRequest { quiet: 2.., .. } => None,
        LogRequest { quiet: 1, .. } => Some(Level::Warning),
        LogRequest { verbose: true, .. } => Some(Level::Detail),
        _ => Some(Level::Info),
    };
    Style {
        least,
        json: log.format == LogFormat::Json,
    }
}
