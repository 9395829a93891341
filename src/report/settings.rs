//! The settings of a run, and where each comes from.

use serde::Serialize;

use super::tables::{NONE, aligned};

/// A setting as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// The option's long name.
    pub setting: String,
    /// Its value, without passwords.
    pub value: Option<String>,
    /// Where it comes from.
    pub origin: String,
}

/// A table of settings, one a line.
#[must_use]
pub fn settings(all: &[Shown]) -> String {
    let line = |it: &Shown| {
        let value = it.value.clone().unwrap_or_else(|| NONE.to_owned());
        vec![it.setting.clone(), value, it.origin.clone()]
    };
    aligned(&["SETTING", "VALUE", "ORIGIN"], all.iter().map(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_a_line_with_any_value() {
        let shown = |setting: &str, value: Option<&str>| Shown {
            setting: setting.to_owned(),
            value: value.map(str::to_owned),
            origin: "default".to_owned(),
        };
        let table = settings(&[shown("keep", None), shown("on-change", Some("a\nb\u{1b}"))]);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 3, "{table}");
        assert!(lines[1].contains(" - "), "{table}");
        assert!(lines[2].contains(r"a\nb\u{1b}"), "{table}");
    }
}
