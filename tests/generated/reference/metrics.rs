//! What `tokenrun metrics` prints.

use clap::Command;

use super::topic::{Part, Table, Topic, paragraph};
use tokenrun::report::metrics::METRICS;

pub(crate) fn topic(_: &Command) -> Topic {
    let row = |metric: &tokenrun::report::metrics::Metric| {
        vec![
            metric.name.to_owned(),
            metric.kind.to_owned(),
            metric.help.to_owned(),
        ]
    };
    Topic {
        title: "Metrics",
        about: "the metrics of tokenrun for Prometheus",
        parts: vec![
            paragraph(
                "`tokenrun metrics` prints the state of every group in the text format of Prometheus. With --textfile it writes a file for the textfile collector of the node exporter; the file is replaced as a whole.",
            ),
            Part::Table(Table {
                columns: vec!["metric", "type", "meaning"],
                rows: METRICS.iter().map(row).collect(),
            }),
            paragraph(
                "Each metric has the label `group`, except `tokenrun_unreadable_groups`. `tokenrun_client_info` has the label `client`, `tokenrun_runs_total` has `outcome`, and `tokenrun_refusals_total` has `reason`.",
            ),
            paragraph(
                "The counters of grants, runs, takeovers and losses are stored in the token: pruning the history does not lower them. `tokenrun_last_success_timestamp_seconds` and `tokenrun_last_run_duration_seconds` come from the history.",
            ),
        ],
    }
}
