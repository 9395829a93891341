//! Facts about a server, and rules that tell what they mean. Pure.

use std::collections::HashMap;

use super::{Check, Verdict};
use crate::store::Trouble;

/// Facts by their names.
#[derive(Debug, Clone, Default)]
pub(in crate::store) struct Facts(HashMap<String, String>);

impl Facts {
    pub(in crate::store) fn set(&mut self, name: impl Into<String>, value: impl ToString) {
        self.0.insert(name.into(), value.to_string());
    }

    /// Sets a fact that is true or not.
    pub(in crate::store) fn flag(&mut self, name: &str, value: bool) {
        self.set(name, if value { "on" } else { "" });
    }

    /// Takes a fact that changes from answer to answer.
    pub(in crate::store) fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// The fact, or nothing.
    pub(in crate::store) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// The fact, or 0 if it is no number.
    pub(in crate::store) fn number(&self, name: &str) -> i64 {
        self.text(name).parse().unwrap_or(0)
    }

    /// True if the fact is known, and its text is none that means no.
    pub(in crate::store) fn has(&self, name: &str) -> bool {
        !matches!(self.text(name), "" | "0" | "OFF" | "false")
    }

    pub(in crate::store) fn is(&self, name: &str, value: &str) -> bool {
        self.text(name) == value
    }

    /// True if the fact is a list with this item.
    pub(in crate::store) fn lists(&self, name: &str, item: &str) -> bool {
        self.text(name).split(", ").any(|it| it == item)
    }

    /// A text with the facts in the places of `{name}`, quoted in those of `{name:?}`.
    pub(in crate::store) fn fill(&self, text: &str) -> String {
        let mut parts = text.split('{');
        let mut filled = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (name, rest) = part.split_once('}').unwrap_or((part, ""));
            match name.strip_suffix(":?") {
                Some(name) => filled.push_str(&format!("{:?}", self.text(name))),
                None => filled.push_str(self.text(name)),
            }
            filled.push_str(rest);
        }
        filled
    }
}

impl<N: Into<String>, V: ToString> Extend<(N, V)> for Facts {
    fn extend<I: IntoIterator<Item = (N, V)>>(&mut self, pairs: I) {
        for (name, value) in pairs {
            self.set(name, value);
        }
    }
}

/// A text with facts in it: see [`Facts::fill`].
type Text = &'static str;

/// What facts mean for one step.
pub(in crate::store) struct Rule {
    step: &'static str,
    holds: fn(&Facts) -> bool,
    verdict: Verdict,
    found: Text,
    remedy: Text,
}

/// A rule for these facts; the call after it says what they mean.
pub(in crate::store) const fn on(step: &'static str, holds: fn(&Facts) -> bool) -> Rule {
    Rule {
        step,
        holds,
        verdict: Verdict::Fine,
        found: "",
        remedy: "",
    }
}

/// The rule for all other facts.
pub(in crate::store) const fn otherwise(step: &'static str) -> Rule {
    on(step, |_| true)
}

impl Rule {
    pub(in crate::store) const fn fine(self, found: Text) -> Self {
        self.says(Verdict::Fine, found, "")
    }

    pub(in crate::store) const fn unknown(self, found: Text, remedy: Text) -> Self {
        self.says(Verdict::Unknown, found, remedy)
    }

    pub(in crate::store) const fn warn(self, found: Text, remedy: Text) -> Self {
        self.says(Verdict::Warn, found, remedy)
    }

    /// It is misconfigured.
    pub(in crate::store) const fn wrong(self, found: Text, remedy: Text) -> Self {
        self.says(Verdict::Fail(Trouble::Misconfigured), found, remedy)
    }

    pub(in crate::store) const fn denied(self, found: Text, remedy: Text) -> Self {
        self.says(Verdict::Fail(Trouble::Denied), found, remedy)
    }

    pub(in crate::store) const fn unavailable(self, found: Text, remedy: Text) -> Self {
        self.says(Verdict::Fail(Trouble::Unavailable), found, remedy)
    }

    const fn says(self, verdict: Verdict, found: Text, remedy: Text) -> Self {
        Self {
            verdict,
            found,
            remedy,
            ..self
        }
    }
}

/// The check of a step: its first rule that holds, if one does.
pub(in crate::store) fn judge(rules: &[Rule], step: &str, facts: &Facts) -> Option<Check> {
    let mut of_step = rules.iter().filter(|rule| rule.step == step);
    let rule = of_step.find(|rule| (rule.holds)(facts))?;
    Some(Check {
        step: rule.step,
        server: None,
        verdict: rule.verdict,
        found: facts.fill(rule.found),
        remedy: (!rule.remedy.is_empty()).then(|| facts.fill(rule.remedy)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_take_their_places_and_bring_none_with_them() {
        let mut facts = Facts::default();
        facts.extend([("a", "{b}"), ("b", "it's \"b\"")]);
        for (text, filled) in [
            ("", ""),
            ("{a} and {b:?}.", "{b} and \"it's \\\"b\\\"\"."),
            ("{none}|{none:?}", "|\"\""),
            ("an end {a", "an end {b}"),
        ] {
            assert_eq!(facts.fill(text), filled, "{text}");
        }
    }

    #[test]
    fn a_fact_that_means_no_is_none() {
        let mut facts = Facts::default();
        for (text, has) in [
            ("", false),
            ("0", false),
            ("OFF", false),
            ("false", false),
            ("1", true),
            ("ON", true),
            ("x", true),
        ] {
            facts.set("it", text);
            assert_eq!(facts.has("it"), has, "{text}");
        }
        facts.flag("it", false);
        assert!(!facts.has("it") && !facts.has("another"));
        facts.set("it", "runs, tokens");
        assert!(facts.lists("it", "tokens") && !facts.lists("it", "run"));
    }
}
