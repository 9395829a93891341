//! The texts of checks, case by case, as snapshots have them.

use std::fmt::Write as _;

use super::Check;

/// Compares the checks of each case with a snapshot.
#[track_caller]
pub(in crate::store) fn pin(
    name: &str,
    cases: impl IntoIterator<Item = (impl Into<String>, Vec<Check>)>,
) {
    let mut text = String::new();
    for (case, checks) in cases {
        writeln!(text, "{}", case.into()).unwrap();
        for check in checks {
            let verdict = format!("{:?}", check.verdict);
            writeln!(text, "    {} {verdict}: {}", check.step, check.found).unwrap();
            if let Some(remedy) = check.remedy {
                writeln!(text, "        -> {remedy}").unwrap();
            }
        }
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}
