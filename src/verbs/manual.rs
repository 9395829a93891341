//! `tokenrun man` and `tokenrun completions`: the files that are generated from the command line's
//! description, as they stand in the repository. A test keeps them current.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};

use super::shared::action::{Action, Context};
use super::shared::failure::not_written;
use super::shared::printing::print;
use crate::exit::Exit;
use crate::report::whole_file::write_whole;

/// Print the completion script for a shell
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell
    shell: Shell,
}

/// Write the manual pages
#[derive(Debug, Args)]
pub(super) struct Man {
    /// The directory; if it is called man1, pages of section 7 go to man7 beside it
    directory: PathBuf,
}

impl Action for Completions {
    fn run(&self, _: &mut Context<'_>) -> Result<Exit> {
        print(self.shell.script().1)
    }
}

impl Action for Man {
    fn run(&self, _: &mut Context<'_>) -> Result<Exit> {
        write(&self.directory, MANUAL)
    }
}

/// A file's name and its contents.
macro_rules! page {
    ($name:literal) => {
        ($name, include_str!(concat!("../../man/", $name)))
    };
}

macro_rules! script {
    ($name:literal) => {
        ($name, include_str!(concat!("../../completions/", $name)))
    };
}

/// The manual pages: file names and contents.
pub const MANUAL: &[(&str, &str)] = &[
    page!("tokenrun-check.1"),
    page!("tokenrun-completions.1"),
    page!("tokenrun-config.1"),
    page!("tokenrun-configuration.7"),
    page!("tokenrun-distrust.1"),
    page!("tokenrun-doctor.1"),
    page!("tokenrun-environment.7"),
    page!("tokenrun-exit-codes.7"),
    page!("tokenrun-expect.1"),
    page!("tokenrun-explain.1"),
    page!("tokenrun-fence-advance.1"),
    page!("tokenrun-fence-raise.1"),
    page!("tokenrun-fence-verify.1"),
    page!("tokenrun-fence.1"),
    page!("tokenrun-help.1"),
    page!("tokenrun-history.1"),
    page!("tokenrun-hold.1"),
    page!("tokenrun-init.1"),
    page!("tokenrun-json.7"),
    page!("tokenrun-man.1"),
    page!("tokenrun-metrics.1"),
    page!("tokenrun-metrics.7"),
    page!("tokenrun-move.1"),
    page!("tokenrun-once-forget.1"),
    page!("tokenrun-once-list.1"),
    page!("tokenrun-once.1"),
    page!("tokenrun-output.1"),
    page!("tokenrun-page.1"),
    page!("tokenrun-pause.1"),
    page!("tokenrun-release.1"),
    page!("tokenrun-resume.1"),
    page!("tokenrun-revoke.1"),
    page!("tokenrun-settle.1"),
    page!("tokenrun-status.1"),
    page!("tokenrun.1"),
];

/// A shell that has a completion script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Fish,
    Zsh,
}

impl Shell {
    /// The script's file: its name and contents.
    #[must_use]
    pub const fn script(self) -> (&'static str, &'static str) {
        match self {
            Self::Bash => script!("tokenrun.bash"),
            Self::Fish => script!("tokenrun.fish"),
            Self::Zsh => script!("_tokenrun"),
        }
    }
}

/// Writes pages, names and contents, into a directory. If that is `man1`, which man(1) searches for
/// pages of section 1 alone, the pages of section 7 go to `man7` beside it.
///
/// # Errors
/// If it can't be written.
fn write(directory: &Path, pages: &[(&str, &str)]) -> Result<Exit> {
    let failed = |path: &Path, error: &io::Error| not_written(path.display(), error);
    let beside = match directory.ends_with("man1") {
        true => directory.with_file_name("man7"),
        false => directory.to_owned(),
    };
    for (name, text) in pages {
        let directory = match name.ends_with(".7") {
            true => &beside,
            false => directory,
        };
        std::fs::create_dir_all(directory).map_err(|error| failed(directory, &error))?;
        let path = directory.join(name);
        let written = write_whole(&path, text.as_bytes(), std::process::id());
        written.map_err(|error| failed(&path, &error))?;
    }
    Ok(Exit::OK)
}
