//! Questions to an operator, and what is said where none is asked.

use super::message::{Level, Message};
use super::printable::quoted;
use crate::token::operator::Judgement;
use crate::token::{ClientId, GroupName};

/// How many groups a question names.
const NAMED: usize = 20;

/// Whether to act on all these groups.
#[must_use]
pub fn many(verb: &str, groups: &[GroupName], store: &str) -> String {
    let names = groups.iter().take(NAMED);
    let names: Vec<_> = names.map(|group| quoted(group.as_str())).collect();
    let more = match groups.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "{verb} {} groups in {store}: {}{more}?",
        groups.len(),
        names.join(", ")
    )
}

/// The question before a judgement of the whole store.
#[must_use]
pub fn all(judgement: &Judgement, store: &str) -> String {
    match judgement {
        Judgement::Settle(_) => format!(
            "settle {store}: every group may be granted at once, beside a job whose grant the store has lost; is it certain that it has lost nothing?"
        ),
        Judgement::Distrust => format!(
            "distrust {store}: no group is granted until every lease is over that the store may have lost; go on?"
        ),
    }
}

/// Whether a client that the store has never seen is to get the token.
#[must_use]
pub fn for_stranger(verb: &str, to: &ClientId, store: &str) -> String {
    format!(
        "{} was never seen in {store}; {verb} to it anyway?",
        quoted(to.as_str())
    )
}

/// The warning that a client that the store has never seen is to get the token.
#[must_use]
pub fn stranger(to: &ClientId, store: &str) -> Message {
    let text = format!(
        "{} was never seen in {store}: check the name (tokenrun status lists the clients); if it is wrong, other clients get the token after their head start",
        quoted(to.as_str())
    );
    Message::new(Level::Warning, "unknown_client", text)
}

/// The message after a question that was not answered with yes.
#[must_use]
pub fn not_agreed() -> Message {
    let text = "nothing was changed: the answer was not yes".to_owned();
    Message::new(Level::Info, "not_agreed", text)
}

/// The message that the store has failed, and groups are left.
#[must_use]
pub fn aborted(left: usize, store: &str) -> Message {
    let groups = match left {
        1 => "1 group was".to_owned(),
        left => format!("{left} groups were"),
    };
    let text = format!("{groups} not acted on, because the store {store} failed");
    Message::new(Level::Warning, "aborted", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_names_some_groups_and_counts_all() {
        let groups = |count: usize| -> Vec<_> {
            let names = (1..=count).map(|n| GroupName::new(&format!("g{n}")).unwrap());
            names.collect()
        };
        assert_eq!(
            many("pause", &groups(2), "the store"),
            "pause 2 groups in the store: \"g1\", \"g2\"?"
        );
        let long = many("revoke", &groups(23), "the store");
        assert!(long.starts_with("revoke 23 groups in the store: \"g1\", "));
        assert!(long.ends_with(", \"g20\" and 3 more?"), "{long}");
    }
}
