//! The manual pages and the completion scripts, as they stand in the repository. A test generates them from
//! the command line's description, and keeps them current.

use clap::ValueEnum;

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
    page!("tokenrun-handoff.1"),
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
