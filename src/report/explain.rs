//! The rule's decision for a client now, and the decision that follows it.

use std::time::Duration;

use serde::Serialize;

use super::acts::{lasting, reason};
use super::incarnation::doubt_text;
use super::json::millis;
use super::printable::{printable, quoted, shell_word};
use super::refusal::wait_of;
use super::rfc3339;
use crate::duration::rounded;
use crate::token::{Claim, Decision, Doubt, Incarnation, Refusal, Row, StoreTime, Verdict};

/// The rule's decision, as `explain --json` shows it.
#[derive(Debug, Serialize)]
pub struct Explanation<'a> {
    pub group: &'a str,
    pub client: &'a str,
    /// The number of the clause that decides.
    pub clause: u8,
    /// That clause, in words.
    pub rule: &'static str,
    /// `run`, `nested`, `wait`, `observe`, `create` or `refused`.
    pub verdict: &'static str,
    /// The kind of the grant, if the token would be granted.
    pub grant: Option<&'static str>,
    /// The reason for a refusal, in a word.
    pub refused: Option<&'static str>,
    /// The times in the decision, in a sentence.
    pub because: String,
    /// How long until the decision changes by itself; `null` if only an act or another run changes
    /// it.
    pub changes_in_ms: Option<u64>,
    /// When it changes, by the store's wall clock.
    pub changes_at: Option<String>,
    /// The clause that decides then.
    pub then_clause: Option<u8>,
    /// What the client gets then.
    #[serde(skip)]
    pub then: Option<String>,
    /// The command that changes the decision, where one does.
    pub command: Option<String>,
    /// What that command is for; reads before it.
    #[serde(skip)]
    pub to: &'static str,
    /// The store's time.
    pub now: String,
}

/// How long until a verdict changes by time alone.
pub fn changes_in(verdict: &Verdict, now: &StoreTime) -> Option<Duration> {
    match verdict {
        Verdict::ObserveStore {
            doubt: Doubt::Unknown,
            ..
        } => None,
        Verdict::Observe(wait) | Verdict::Wait(wait) | Verdict::ObserveStore { wait, .. } => {
            Some(*wait)
        }
        Verdict::Nested | Verdict::Create | Verdict::Grant(_) => None,
        Verdict::RefusedWithHandoff(why) | Verdict::Refused(why) => match why {
            Refusal::Paused(pause) | Refusal::ClientPaused(pause) => pause
                .until
                .map(|until| until.since(now.stamp.wall).unwrap_or_default()),
            why => wait_of(why),
        },
    }
}

impl<'a> Explanation<'a> {
    /// The object for a decision. `then`: the decision that follows by time alone; `incarnation`: the store's.
    pub fn of(
        claim: &'a Claim,
        row: Option<&Row>,
        now: &StoreTime,
        decided: &Decision,
        then: Option<&(Duration, Decision)>,
        incarnation: Option<&Incarnation>,
    ) -> Self {
        let (verdict, grant, refused) = match &decided.verdict {
            Verdict::Nested => ("nested", None, None),
            Verdict::Observe(_) | Verdict::ObserveStore { .. } => ("observe", None, None),
            Verdict::Wait(_) => ("wait", None, None),
            Verdict::Create => ("create", None, None),
            Verdict::Grant(kind) => ("run", Some(kind.as_str()), None),
            Verdict::RefusedWithHandoff(why) | Verdict::Refused(why) => {
                ("refused", None, Some(why.word()))
            }
        };
        let remedy = remedy(claim, &decided.verdict, incarnation);
        let wait = then.map(|(wait, _)| *wait);
        let at = wait.map(|wait| rfc3339(now.plus(wait).stamp.wall));
        Self {
            group: claim.group.as_str(),
            client: claim.client.as_str(),
            clause: decided.clause.number(),
            rule: decided.clause.text(),
            verdict,
            grant,
            refused,
            because: because(claim, decided, row),
            changes_in_ms: wait.map(millis),
            changes_at: at,
            then_clause: then.map(|(_, decision)| decision.clause.number()),
            then: then.map(|(_, decision)| then_gets(claim, row, &decision.verdict)),
            to: remedy.as_ref().map_or("", |(to, _)| *to),
            command: remedy.map(|(_, command)| command),
            now: rfc3339(now.stamp.wall),
        }
    }

    /// The decision in sentences.
    pub fn text(&self) -> String {
        let (group, client) = (quoted(self.group), printable(self.client));
        let answer = match (self.verdict, self.grant, self.refused) {
            (_, Some(kind), _) => format!("{client} would run {group} now ({kind})"),
            (_, _, Some(why)) => format!("{client} is refused {group} now ({why})"),
            ("nested", ..) => format!("{client} would run {group} now, under the outer lease"),
            ("observe", ..) if self.clause == 0 => {
                format!("{client} would watch the store before it takes {group}")
            }
            ("observe", ..) => format!("{client} would watch {group} before it takes it"),
            ("wait", ..) => format!("{client} would wait before it takes {group}"),
            _ => format!("{client} would make {group} known, and look again"),
        };
        let mut text = format!(
            "{answer}.\nClause {} of the rule decides: {}.\n{}.\n",
            self.clause,
            self.rule,
            printable(&self.because)
        );
        if let (Some(ms), Some(at), Some(then)) =
            (&self.changes_in_ms, &self.changes_at, &self.then)
        {
            let wait = rounded(Duration::from_millis(*ms));
            let when = match self.refused {
                Some("held") => format!(
                    "when the run ends. If no new heartbeat comes, it changes in {wait}, at {at}"
                ),
                _ => format!("in {wait}, at {at}, unless something else changes it first"),
            };
            text.push_str(&format!("That changes {when}: then {}.\n", printable(then)));
        }
        if let Some(command) = &self.command {
            text.push_str(&format!("{}: {command}\n", self.to));
        }
        text
    }
}

/// What the client gets by a later decision. Reads after "then".
fn then_gets(claim: &Claim, row: Option<&Row>, verdict: &Verdict) -> String {
    let client = &claim.client;
    match verdict {
        Verdict::Nested | Verdict::Create | Verdict::Grant(_) => format!("{client} can have it"),
        Verdict::Wait(wait) => {
            let first = row.and_then(Row::next_client);
            let first = first.map_or_else(|| "another client".to_owned(), ToString::to_string);
            format!("{first} can have it, and {client} after {}", rounded(*wait))
        }
        Verdict::Observe(wait) | Verdict::ObserveStore { wait, .. } => {
            format!("{client} watches it for {} more", rounded(*wait))
        }
        Verdict::Refused(why) | Verdict::RefusedWithHandoff(why) => {
            let why = match why {
                Refusal::AliveHere(_) => "something of the old run is alive on this host",
                Refusal::Held { .. } => "it is held",
                Refusal::Paused(_) => "the group is paused",
                Refusal::ClientPaused(_) => "the client is paused",
                Refusal::TooSoon { .. } => "the run before began too recently",
                Refusal::Behind { .. } => "others are ahead in the queue",
                Refusal::Bound { .. } => "it is kept for another client",
                Refusal::Reserved { .. } => "it is reserved for another client",
                Refusal::Forgetful { .. } => "the store may have forgotten a grant",
                Refusal::HeadStart { .. } => "another client has a head start",
                Refusal::Observed { .. } => "its age is unknown",
            };
            format!("{client} is refused still, as {why}")
        }
    }
}

/// The command by which an operator changes a decision, after what it is for.
fn remedy(
    claim: &Claim,
    verdict: &Verdict,
    incarnation: Option<&Incarnation>,
) -> Option<(&'static str, String)> {
    let group = shell_word(claim.group.as_str());
    let why = match verdict {
        Verdict::ObserveStore { .. } => {
            let incarnation = shell_word(&incarnation?.0);
            let command = format!("tokenrun settle {incarnation}");
            return Some(("If you know that nothing was lost", command));
        }
        Verdict::Refused(why) | Verdict::RefusedWithHandoff(why) => why,
        _ => return None,
    };
    Some(match why {
        Refusal::Paused(_) => ("To end the pause", format!("tokenrun resume -g {group}")),
        Refusal::ClientPaused(_) => {
            let client = shell_word(claim.client.as_str());
            (
                "To end the pause",
                format!("tokenrun resume --client {client}"),
            )
        }
        Refusal::Held {
            same_client: false, ..
        } => ("To end that job", format!("tokenrun revoke -g {group}")),
        Refusal::TooSoon { .. } => (
            "To let it run before",
            format!("tokenrun release -g {group}"),
        ),
        Refusal::Bound { .. } => (
            "To free it for any client",
            format!("tokenrun release -g {group}"),
        ),
        Refusal::Reserved { .. } => {
            let client = shell_word(claim.client.as_str());
            (
                "To expect this client",
                format!("tokenrun expect -g {group} {client}"),
            )
        }
        _ => return None,
    })
}

/// The times and names on which a decision rests.
fn because(claim: &Claim, decided: &Decision, row: Option<&Row>) -> String {
    let refusal = match &decided.verdict {
        Verdict::RefusedWithHandoff(why) | Verdict::Refused(why) => why,
        Verdict::Observe(wait) => {
            return format!("It must stay unchanged for {} more", rounded(*wait));
        }
        Verdict::ObserveStore { wait, doubt } => return forgetful(*wait, *doubt),
        Verdict::Wait(wait) => {
            if row.is_some_and(|row| row.gives_way(&claim.client)) {
                return format!(
                    "It gives way, after a failed run or by an operator: any other client can have it for {} more",
                    rounded(*wait)
                );
            }
            let first = row.and_then(Row::next_client);
            let first = first.map_or_else(|| "another".to_owned(), ToString::to_string);
            return format!("The head start of {first} is {} more", rounded(*wait));
        }
        Verdict::Nested | Verdict::Create | Verdict::Grant(_) => return state_of(row),
    };
    let left = wait_of(refusal).map_or_else(String::new, rounded);
    match refusal {
        Refusal::Held {
            by,
            session,
            same_client,
            silent_for,
            ..
        } => {
            let twin = match *same_client {
                true => ", another session with the same client id",
                false => "",
            };
            let next = match &decided.verdict {
                Verdict::RefusedWithHandoff(_) => {
                    "; a run with --failback leaves a hand-off to itself for the next slot"
                }
                _ => "",
            };
            let age = rounded(*silent_for);
            format!(
                "{by}{twin} (session {session}) sent its last heartbeat {age} ago, and may be silent for {left} more{next}"
            )
        }
        Refusal::AliveHere(processes) if processes.is_empty() => {
            "They can't be seen from here: another user's, or a container's".to_owned()
        }
        Refusal::AliveHere(processes) => format!("They are {}", processes.join(", ")),
        Refusal::Paused(pause) => {
            let (until, reason) = (lasting(pause, rfc3339), reason(pause, ": ", ""));
            format!("{} paused it {until}{reason}", pause.by)
        }
        Refusal::ClientPaused(pause) => {
            let (until, reason) = (lasting(pause, rfc3339), reason(pause, ": ", ""));
            format!("{} paused this client {until}{reason}", pause.by)
        }
        Refusal::TooSoon { .. } => {
            let began = row.and_then(|row| row.acquired_at());
            let began = began.map_or_else(|| "-".to_owned(), |at| rfc3339(at.wall));
            format!(
                "The last run began at {began}; the next may in {left}, or after tokenrun release"
            )
        }
        Refusal::Behind { ahead } => format!("{ahead} came before"),
        Refusal::Bound { to, .. } => {
            format!("It belongs to {to} and is kept for it for {left} more")
        }
        Refusal::Forgetful { wait, doubt } => forgetful(*wait, *doubt),
        Refusal::HeadStart { of, .. } => {
            let first = of.as_ref().map_or("another client", |of| of.as_str());
            format!("It is open, and {first} has a head start of {left} more")
        }
        Refusal::Observed { .. } => {
            format!("Its age is unknown; it is observed for {left} more")
        }
        Refusal::Reserved { to, .. } => format!("It is reserved for {to} for {left} more"),
    }
}

fn forgetful(wait: Duration, doubt: Doubt) -> String {
    let (why, more) = (doubt_text(doubt), rounded(wait));
    if doubt == Doubt::Unknown {
        return format!("The store {why}; nothing is granted until it does");
    }
    format!("The store {why}; it is observed for {more} more")
}

fn state_of(row: Option<&Row>) -> String {
    let Some(row) = row else {
        return "No run of the group was ever granted".to_owned();
    };
    let word = super::json::state_word(&row.state);
    row.client_bound().map_or_else(
        || format!("The token is {word}"),
        |client| format!("The token is {word} and belongs to {client}"),
    )
}
