//! The settings of a run, and where each comes from.

use std::fmt;

use serde::{Serialize, Serializer};

use super::table::{NONE, aligned};

/// Where a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The command line.
    Flag,
    /// This variable.
    Environment(String),
    /// This line of a file.
    File(String),
    /// The default.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Environment(variable) => write!(f, "environment {variable}"),
            Self::File(place) => f.write_str(place),
            Self::Default => f.write_str("default"),
        }
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A setting, as a run would use it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Effective {
    /// The option's long name.
    pub setting: String,
    /// The value, without passwords; `None` for none, or a default that depends on more than
    /// the command line.
    pub value: Option<String>,
    pub origin: Origin,
}

/// A table of settings, one a line.
pub fn settings(all: &[Effective]) -> String {
    let line = |it: &Effective| {
        let value = it.value.clone().unwrap_or_else(|| NONE.to_owned());
        vec![it.setting.clone(), value, it.origin.to_string()]
    };
    aligned(&["SETTING", "VALUE", "ORIGIN"], all.iter().map(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_a_line_with_any_value() {
        let shown = |setting: &str, value: Option<&str>| Effective {
            setting: setting.to_owned(),
            value: value.map(str::to_owned),
            origin: Origin::Default,
        };
        let table = settings(&[shown("keep", None), shown("on-change", Some("a\nb\u{1b}"))]);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 3, "{table}");
        assert!(lines[1].contains(" - "), "{table}");
        assert!(lines[2].contains(r"a\nb\u{1b}"), "{table}");
    }
}
