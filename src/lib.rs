//! Runs a job on one node at a time, keeps it on that node while it is well, and
//! moves it by itself when the node dies, with nothing but a database.
//!
//! The modules by layer, each importing only from those below it:
//!
//! | layer | modules |
//! |---|---|
//! | wiring | [`run()`] here, [`wiring`] |
//! | commands | [`commands`] |
//! | command line | [`cli`] |
//! | configuration files | [`config`] |
//! | words | [`report`] |
//! | a run | [`mod@run`] |
//! | outside | [`store`], [`job`] |
//! | system calls | [`sys`] |
//! | pure | [`token`], [`moment`], [`duration`], [`size`], [`exit`] |

pub mod cli;
pub mod commands;
pub mod config;
pub mod duration;
pub mod exit;
pub mod job;
pub mod moment;
pub mod report;
pub mod run;
pub mod size;
pub mod store;
pub mod sys;
pub mod token;
pub mod wiring;

use std::ffi::OsString;

use anyhow::{Context as _, Result};
use cli::{LogFormat, LogRequest, Unusable};
use commands::failure::{SYSTEM_REFUSED, reported};
use exit::Exit;
use report::last_words;
use report::log::Log;
use sys::signals::Inherited;

/// Does what the command line asks for. Returns how the process ends. Must be called before any
/// thread exists.
#[must_use]
pub fn run(arguments: &[OsString]) -> Exit {
    last_words::install();
    let mut log = Log::new(wiring::logging::style(LogRequest::default()));
    match answer(arguments, &mut log) {
        Ok(exit) => {
            log.close();
            exit
        }
        Err(error) => {
            let reported = reported(&error);
            log.write(&reported.message, false);
            log.close();
            Exit::Code(reported.code)
        }
    }
}

fn answer(arguments: &[OsString], log: &mut Log) -> Result<Exit> {
    sys::fds::fill_standard().context(SYSTEM_REFUSED)?;
    let inherited = Inherited::look().context(SYSTEM_REFUSED)?;
    if let Some(version) = cli::version_alone(arguments) {
        return commands::print(version);
    }
    let request = match cli::parse(arguments) {
        Ok(request) => request,
        Err(unusable) => return explained(unusable, arguments, log),
    };
    let style = wiring::logging::style(request.log());
    last_words::in_style(style);
    *log = Log::new(style);
    wiring::environment::warn_of_visible_password(arguments, &request, log);
    wiring::dispatch(request, arguments, inherited, log)
}

/// Prints the page that replaces a request, or the error.
fn explained(unusable: Unusable, arguments: &[OsString], log: &mut Log) -> Result<Exit> {
    if unusable.asked_for {
        return commands::print(&unusable.text);
    }
    if cli::asks_for_json(arguments) {
        *log = Log::new(wiring::logging::style(LogRequest {
            format: LogFormat::Json,
            ..LogRequest::default()
        }));
        return Err(unusable.in_a_line().into());
    }
    if unusable.is_page {
        commands::tell(&unusable.text);
        return Ok(Exit::Code(unusable.code));
    }
    Err(unusable.into())
}
