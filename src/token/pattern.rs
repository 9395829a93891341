//! Patterns for group names, and the groups that a request is about. Pure.

use super::names::{GroupName, NameError};

/// A name, or a pattern in which `*` stands for any characters, also none, and `?` for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupPattern(GroupName);

impl GroupPattern {
    /// Takes a name or a pattern, as a person gives it.
    ///
    /// # Errors
    /// Says what is wrong with a text that neither is.
    pub fn given(text: &str) -> Result<Self, NameError> {
        GroupName::given(text).map(Self)
    }

    /// The group, if this is a name without `*` and `?`.
    pub fn name(&self) -> Option<&GroupName> {
        (!self.0.as_str().contains(['*', '?'])).then_some(&self.0)
    }

    /// True if a group has this name, or matches this pattern. A group whose name is the pattern
    /// itself does, too.
    pub fn matches(&self, group: &str) -> bool {
        let pattern: Vec<char> = self.0.as_str().chars().collect();
        let text: Vec<char> = group.chars().collect();
        matches(&pattern, &text)
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// Compares without recursion: after a mismatch the last `*` takes one character more.
fn matches(pattern: &[char], text: &[char]) -> bool {
    let (mut at, mut read) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(c) = text.get(read) {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(p) if p == c || *p == '?' => {
                at += 1;
                read += 1;
            }
            _ => {
                let Some((after, taken)) = &mut star else {
                    return false;
                };
                *taken += 1;
                (at, read) = (*after + 1, *taken);
            }
        }
    }
    pattern.iter().skip(at).all(|p| *p == '*')
}

/// The groups that a request is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Groups {
    /// Every group.
    #[default]
    All,
    /// Those that match one of these, at least one.
    Matching(Vec<GroupPattern>),
}

impl From<Vec<GroupPattern>> for Groups {
    /// Every group, if none is named.
    fn from(patterns: Vec<GroupPattern>) -> Self {
        match patterns.is_empty() {
            true => Self::All,
            false => Self::Matching(patterns),
        }
    }
}

impl From<GroupName> for Groups {
    fn from(group: GroupName) -> Self {
        Self::Matching(vec![GroupPattern(group)])
    }
}

impl Groups {
    /// True if a group is one of them.
    pub fn has(&self, group: &str) -> bool {
        match self {
            Self::All => true,
            Self::Matching(patterns) => patterns.iter().any(|it| it.matches(group)),
        }
    }

    /// The group, if they are one name and no pattern.
    pub fn single(&self) -> Option<&GroupName> {
        match self {
            Self::Matching(patterns) => match patterns.as_slice() {
                [only] => only.name(),
                _ => None,
            },
            Self::All => None,
        }
    }

    /// The names without `*` and `?` among them: each must exist.
    pub fn names(&self) -> impl Iterator<Item = &GroupName> {
        let patterns = match self {
            Self::All => &[],
            Self::Matching(patterns) => patterns.as_slice(),
        };
        patterns.iter().filter_map(GroupPattern::name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(patterns: &[&str]) -> Groups {
        let patterns = patterns.iter().map(|it| GroupPattern::given(it).unwrap());
        Groups::Matching(patterns.collect())
    }

    #[test]
    fn a_star_stands_for_any_characters_and_a_question_mark_for_one() {
        for (pattern, text, is_match) in [
            ("etl", "etl", true),
            ("etl", "etl-1", false),
            ("etl-*", "etl-", true),
            ("etl-*", "etl-nightly", true),
            ("etl-*", "my-etl-nightly", false),
            ("*", "anything at all", true),
            ("*-*", "a-b-c", true),
            ("*b*d", "abcbd", true),
            ("*b*d", "abcbde", false),
            ("a?c", "aäc", true),
            ("a?c", "ac", false),
            ("**", "x", true),
            ("[ab]", "[ab]", true),
            ("[ab]", "a", false),
            ("a*?", "a", false),
            ("a*?", "a*?", true),
        ] {
            assert_eq!(groups(&[pattern]).has(text), is_match, "{pattern} {text}");
        }
        let long = "a".repeat(200);
        assert!(!groups(&["*a*a*a*a*a*a*a*a*a*b"]).has(&long));
    }

    #[test]
    fn a_name_is_not_a_pattern() {
        assert_eq!(groups(&["etl"]).single().unwrap().as_str(), "etl");
        assert_eq!(groups(&["etl*"]).single(), None);
        assert_eq!(groups(&["a", "b"]).single(), None);
        assert_eq!(groups(&["a", "b*", "c"]).names().count(), 2);
        assert!(Groups::All.has("x") && Groups::All.names().next().is_none());
        assert!(groups(&["a", "b*"]).has("bc") && !groups(&["a", "b*"]).has("c"));
    }
}
