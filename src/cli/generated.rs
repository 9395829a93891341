//! The manual pages and the completion scripts, as they stand in the repository. A test generates them from
//! the command line's description, and keeps them current.

use clap::ValueEnum;

/// The files of these names in the folder.
macro_rules! files {
    ($folder:literal: $($name:literal)+) => {
        &[$((
            $name,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $folder, "/", $name)),
        )),+]
    };
}

/// The manual pages: file names and contents.
pub const MANUAL: &[(&str, &str)] = files![
    "man":
    "tokenrun-check.1"
    "tokenrun-completions.1"
    "tokenrun-config.1"
    "tokenrun-configuration.7"
    "tokenrun-distrust.1"
    "tokenrun-doctor.1"
    "tokenrun-environment.7"
    "tokenrun-exit-codes.7"
    "tokenrun-expect.1"
    "tokenrun-explain.1"
    "tokenrun-fence-advance.1"
    "tokenrun-fence-raise.1"
    "tokenrun-fence-verify.1"
    "tokenrun-fence.1"
    "tokenrun-handoff.1"
    "tokenrun-help.1"
    "tokenrun-history.1"
    "tokenrun-hold.1"
    "tokenrun-init.1"
    "tokenrun-json.7"
    "tokenrun-man.1"
    "tokenrun-metrics.1"
    "tokenrun-metrics.7"
    "tokenrun-move.1"
    "tokenrun-once-forget.1"
    "tokenrun-once-list.1"
    "tokenrun-once.1"
    "tokenrun-output.1"
    "tokenrun-page.1"
    "tokenrun-pause.1"
    "tokenrun-release.1"
    "tokenrun-resume.1"
    "tokenrun-revoke.1"
    "tokenrun-settle.1"
    "tokenrun-status.1"
    "tokenrun.1"
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
        const SCRIPTS: &[(&str, &str)] =
            files!["completions": "tokenrun.bash" "tokenrun.fish" "_tokenrun"];
        match self {
            Self::Bash => SCRIPTS[0],
            Self::Fish => SCRIPTS[1],
            Self::Zsh => SCRIPTS[2],
        }
    }
}
