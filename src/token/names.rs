//! The validated names and numbers of the protocol.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::hidden::is_hidden;

/// The longest name that is accepted, in characters.
pub const NAME_MAX: usize = 200;

/// Why a text is not a name. Reads after "the group" or "the client id".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Empty, or only blanks.
    #[error("is empty")]
    Empty,
    /// More than [`NAME_MAX`] characters.
    #[error("has {0} characters; at most {NAME_MAX} are allowed")]
    TooLong(usize),
    /// A character that would break a log line or a table.
    #[error("has a control character ({0:?}); use printable characters")]
    Control(char),
    /// White space at an end: two different names would look equal.
    #[error("begins or ends with a blank; leave it out")]
    Blank,
    /// An invisible character: two different names would look equal.
    #[error("has an invisible character (U+{:04X}); use visible ones", u32::from(*.0))]
    Hidden(char),
}

fn validated(text: &str) -> Result<String, NameError> {
    if text.trim().is_empty() {
        return Err(NameError::Empty);
    }
    let length = text.chars().count();
    if length > NAME_MAX {
        return Err(NameError::TooLong(length));
    }
    match text.chars().find(|c| c.is_control()) {
        Some(c) => Err(NameError::Control(c)),
        None if text.trim() != text => Err(NameError::Blank),
        None => Ok(text.to_owned()),
    }
}

/// Stricter than what a store may hold: the person who gives a name must see all of it.
fn visible(text: &str) -> Result<String, NameError> {
    let valid = validated(text)?;
    match valid.chars().find(|c| is_hidden(*c)) {
        Some(c) => Err(NameError::Hidden(c)),
        None => Ok(valid),
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                Self::new(&text)
            }
        }

        impl $name {
            /// Takes a text of 1 to 200 characters without control characters, and
            /// without white space at an end: what a store may hold.
            ///
            /// # Errors
            /// Says what is wrong with any other text.
            pub fn new(text: &str) -> Result<Self, NameError> {
                validated(text).map(Self)
            }

            /// Takes a name that a person or a configuration gives: as [`Self::new`], without
            /// invisible characters.
            ///
            /// # Errors
            /// Says what is wrong with any other text.
            pub fn given(text: &str) -> Result<Self, NameError> {
                visible(text).map(Self)
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::given(text)
            }
        }
    };
}

name!(
    /// The name of the job that must run on one node at a time.
    GroupName
);
name!(
    /// The id of a node.
    ClientId
);
name!(
    /// The random id of one invocation. Two containers with one client id are two sessions, so they
    /// never both run.
    SessionId
);

name!(
    /// The key of `--once`: what must not run again.
    OnceKey
);

name!(
    /// The name of something that a job writes to and that cannot check a fence itself.
    ResourceName
);

impl SessionId {
    /// The id for 128 random bits.
    pub fn from_random(bits: u128) -> Self {
        Self(format!("{bits:032x}"))
    }
}

/// A row's version: a random 63-bit number that the writer draws for each swap.
///
/// Random, because after a lossy failover or a restored backup a counter
/// repeats, and a heartbeat "from version 1" would overwrite another's grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version(i64);

impl Version {
    /// Makes a version of 64 random bits, of which 63 are used.
    pub const fn from_random(bits: u64) -> Self {
        Self((bits >> 1).cast_signed())
    }

    /// The version that a store has recorded.
    pub const fn from_stored(number: i64) -> Self {
        Self(number)
    }

    /// The number as a store records it.
    pub const fn number(self) -> i64 {
        self.0
    }
}

/// The fencing token: rises at every grant, never at a heartbeat. 0 means "never granted".
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(try_from = "i64")]
pub struct Fence(pub i64);

/// A fence is never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a fence is not negative")]
pub struct NegativeFence;

impl TryFrom<i64> for Fence {
    type Error = NegativeFence;
    fn try_from(number: i64) -> Result<Self, NegativeFence> {
        match number {
            0.. => Ok(Self(number)),
            _ => Err(NegativeFence),
        }
    }
}

impl Fence {
    /// The highest fence that a person may give: every reader of JSON keeps it exact, and as
    /// milliseconds since 1970 it is far in the future.
    pub const MAX: i64 = (1 << 53) - 1;

    /// The highest fence that a token may have: no sequence of grants reaches it, and there are
    /// higher ones.
    pub const HIGHEST: i64 = 1 << 62;
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a store reports as its identity. Two stores that may know different grants have two
/// incarnations. After a promotion the store's clock epoch changes too, so that a decision made on
/// one expires on the other. A restore into the same server, or of the same file's data, shows in
/// the note alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Incarnation(pub String);

impl std::fmt::Display for Incarnation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_to_two_hundred_printable_characters() {
        assert!(GroupName::new("nightly").is_ok());
        assert!(GroupName::new(&"ä".repeat(200)).is_ok());
        assert_eq!(GroupName::new(""), Err(NameError::Empty));
        assert_eq!(GroupName::new("  "), Err(NameError::Empty));
        assert_eq!(
            GroupName::new(&"x".repeat(201)),
            Err(NameError::TooLong(201))
        );
        assert_eq!(GroupName::new("a\nb"), Err(NameError::Control('\n')));
    }

    #[test]
    fn a_name_neither_begins_nor_ends_with_white_space() {
        for blank in [" nightly", "nightly ", "\u{a0}nightly", "nightly\u{3000}"] {
            assert_eq!(GroupName::new(blank), Err(NameError::Blank), "{blank:?}");
            assert_eq!(ClientId::given(blank), Err(NameError::Blank), "{blank:?}");
        }
        assert!(SessionId::new(" x").is_err() && ResourceName::new("x ").is_err());
        assert_eq!(GroupName::new("x\n"), Err(NameError::Control('\n')));
        assert!(GroupName::given("month end").is_ok());
    }

    #[test]
    fn a_given_name_has_no_invisible_character() {
        let hidden = "night\u{200b}ly";
        assert_eq!(GroupName::given(hidden), Err(NameError::Hidden('\u{200b}')));
        let text = NameError::Hidden('\u{200b}').to_string();
        assert!(text.contains("(U+200B)"), "{text}");
        assert_eq!(
            hidden.parse::<ClientId>(),
            Err(NameError::Hidden('\u{200b}'))
        );
        assert_eq!(GroupName::given("a\nb"), Err(NameError::Control('\n')));
        assert!(GroupName::given("Nächtlich 夜 \u{1f319}").is_ok());
        assert!(GroupName::new(hidden).is_ok(), "a store may have it");
    }

    #[test]
    fn a_version_has_63_bits() {
        assert_eq!(Version::from_random(u64::MAX).number(), i64::MAX);
        assert_eq!(Version::from_random(1).number(), 0);
    }
}
