//! Runs a job on one node at a time, keeps it on that node while it is well, and
//! moves it by itself when the node dies, with nothing but a database.
//!
//! The modules by layer, each importing only from those below it:
//!
//! | layer | modules |
//! |---|---|
//! | verbs | [`run()`] here, [`verbs`] |
//! | command line | [`cli`] |
//! | configuration files | [`config`] |
//! | words | [`report`] |
//! | a run | [`mod@run`] |
//! | outside | [`store`], [`job`] |
//! | system calls | [`sys`] |
//! | pure | [`token`], [`moment`], [`duration`], [`size`], [`exit`] |

pub mod cli;
pub mod config;
pub mod duration;
pub mod exit;
pub mod job;
pub mod moment;
#[cfg(test)]
mod mutated;
pub mod report;
pub mod run;
pub mod size;
pub mod store;
pub mod sys;
pub mod token;
pub mod verbs;

use std::ffi::OsString;

use anyhow::{Context as _, Result};
use cli::Unusable;
use exit::Exit;
use report::log::{Log, Style};
use report::panic;
use sys::signals::Inherited;
use verbs::shared::Context;
use verbs::shared::environment::warn_of_visible_password;
use verbs::shared::failure::{SYSTEM_REFUSED, reported};
use verbs::shared::terminal;

/// Does what the command line asks for. Returns how the process ends. Must be called before any
/// thread exists.
#[must_use]
pub fn run(arguments: &[OsString]) -> Exit {
    panic::install();
    let mut log = Log::new(Style::default());
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
        return terminal::print(version);
    }
    let line = match verbs::parse(arguments) {
        Ok(line) => line,
        Err(unusable) => return explained(unusable, arguments, log),
    };
    let style = line.action.style();
    panic::in_style(style);
    *log = Log::new(style);
    warn_of_visible_password(arguments, &line.origins, log);
    line.action.run(&mut Context {
        arguments,
        origins: &line.origins,
        command: verbs::command,
        settable: verbs::settable,
        inherited,
        log,
    })
}

/// Prints the page that replaces a request, or the error.
fn explained(unusable: Unusable, arguments: &[OsString], log: &mut Log) -> Result<Exit> {
    if unusable.asked_for {
        return terminal::print(&unusable.text);
    }
    if cli::asks_for_json(arguments) {
        *log = Log::new(Style {
            json: true,
            ..Style::default()
        });
        return Err(unusable.in_a_line().into());
    }
    if unusable.is_page {
        terminal::tell(&unusable.text);
        return Ok(Exit::Code(unusable.code));
    }
    Err(unusable.into())
}
