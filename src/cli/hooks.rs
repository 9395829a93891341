//! Hooks: commands that a run starts when its end is known.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use super::shared::duration_value;
use super::unusable::Unusable;
use crate::job::hooks::Order;

/// The first word of the process that keeps a hook. No person writes it.
pub const HOOK_KEEPER: &str = "hook:keeper";

/// How long a hook may take.
pub(super) const HOOK_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(super) struct HookFlags {
    /// A shell command to run after a success [default: none]
    ///
    /// It runs once the token is released, with the variables of the job and TOKENRUN_OUTCOME,
    /// TOKENRUN_EXIT_CODE and TOKENRUN_REASON. Its stdout goes to stderr. It never changes the exit
    /// code. An empty text stands for none.
    #[arg(
        long,
        value_name = "CMD",
        env = "TOKENRUN_ON_SUCCESS",
        hide_env_values = true,
        help_heading = "Hooks"
    )]
    on_success: Option<String>,
    /// A shell command to run after any end that is not a success [default: none]
    ///
    /// As --on-success, if the job failed, timed out, lost its token or was not started, or if the
    /// store can't be used. A run that takes over from a holder that vanished also runs it for that
    /// holder, beside its job. TOKENRUN_OUTCOME is unknown then.
    #[arg(
        long,
        value_name = "CMD",
        env = "TOKENRUN_ON_FAILURE",
        hide_env_values = true,
        help_heading = "Hooks"
    )]
    on_failure: Option<String>,
    /// A shell command to run when the run is refused [default: none]
    ///
    /// As --on-success. TOKENRUN_REASON is held, bound, reserved, paused, too_soon, behind, alive_here,
    /// store_observed, head_start or observed.
    #[arg(
        long,
        value_name = "CMD",
        env = "TOKENRUN_ON_REFUSED",
        hide_env_values = true,
        help_heading = "Hooks"
    )]
    on_refused: Option<String>,
    /// How long a hook may take; then it is killed with every process that it has started [default:
    /// 10s]
    ///
    /// tokenrun ends after its hooks.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_HOOK_TIMEOUT", value_parser = duration_value, help_heading = "Hooks")]
    hook_timeout: Option<Duration>,
}

/// The hooks of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookRequest {
    /// The command after a success.
    pub on_success: Option<String>,
    /// The command after any end that is no success.
    pub on_failure: Option<String>,
    /// The command after a refusal.
    pub on_refused: Option<String>,
    /// How long each may take.
    pub timeout: Duration,
}

impl TryFrom<HookFlags> for HookRequest {
    type Error = Unusable;

    fn try_from(flags: HookFlags) -> Result<Self, Unusable> {
        let timeout = flags.hook_timeout.unwrap_or(HOOK_TIMEOUT);
        if timeout.is_zero() {
            return Err(Unusable::about(
                &["--hook-timeout"],
                "--hook-timeout must be longer than 0, as in --hook-timeout 10s",
            ));
        }
        let given = |command: Option<String>| command.filter(|text| !text.trim().is_empty());
        Ok(Self {
            on_success: given(flags.on_success),
            on_failure: given(flags.on_failure),
            on_refused: given(flags.on_refused),
            timeout,
        })
    }
}

/// The order in a command line, if the line belongs to a keeper of a hook.
pub(super) fn order_of(arguments: &[OsString]) -> Option<Order> {
    let [_, word, order] = arguments else {
        return None;
    };
    (word == HOOK_KEEPER)
        .then(|| serde_json::from_str(order.to_str()?).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(command: Option<&str>, timeout: Option<u64>) -> HookFlags {
        HookFlags {
            on_success: command.map(str::to_owned),
            on_failure: None,
            on_refused: None,
            hook_timeout: timeout.map(Duration::from_secs),
        }
    }

    #[test]
    fn an_empty_command_is_none() {
        let request = |command| HookRequest::try_from(flags(command, None)).unwrap();
        assert_eq!(request(Some(" ")).on_success, None);
        assert_eq!(request(None).on_success, None);
        assert_eq!(request(Some("true")).on_success.as_deref(), Some("true"));
        assert_eq!(request(None).timeout, Duration::from_secs(10));
    }

    #[test]
    fn a_hook_without_time_is_refused() {
        let refused = HookRequest::try_from(flags(None, Some(0))).unwrap_err();
        assert!(refused.text.contains("--hook-timeout 10s"), "{refused:?}");
    }

    #[test]
    fn only_a_whole_order_is_one() {
        let order = Order {
            command: "true".into(),
            limit_ms: 10,
        };
        let text = serde_json::to_string(&order).unwrap();
        let line = |word: &str, text: &str| ["tokenrun", word, text].map(OsString::from);
        assert_eq!(order_of(&line(HOOK_KEEPER, &text)), Some(order));
        assert_eq!(order_of(&line("hook", &text)), None);
        assert_eq!(order_of(&line(HOOK_KEEPER, "{")), None);
    }
}
