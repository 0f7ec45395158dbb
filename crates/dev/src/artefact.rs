// SPDX-License-Identifier: MIT OR Apache-2.0
//! `docs/agreement.json`: every documented figure of the model's agreement with real kernels. `validate --into`
//! replaces its measured part. The pages are rendered only from it (`published.rs`).

use crate::Failure;
use crate::agreement::{Case, Outcome, Row, SHARE, Verdict, off_share};
use crate::input::shown;
use crate::unseen::Unseen;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// Version of the file.
const SCHEMA: &str = "floodline.agreement/4";

/// Values that fit into this number of columns stay on one line, so that a changed figure is a changed line.
const LINE: usize = 420;

/// Kinds of figures, with the ends of their names; the first that fits counts.
pub(crate) const KINDS: &[(&str, &[&str])] = &[
    (
        "bytes dirtied, written and read",
        &["dirtied_bytes", "written_bytes", "read_bytes", "dirtied_bytes_per_second", "read_bytes_per_second"],
    ),
    ("throughput", &["bytes_per_second"]),
    ("finish times", &["finished_seconds"]),
    ("dirty and writeback levels", &["_mean_bytes", "_peak_bytes"]),
    ("usual latencies of syncs and unmounts", &["sync.p50_seconds", "syncfs.p50_seconds", "umount.p50_seconds"]),
    ("longest latencies of syncs and unmounts", &["sync.max_seconds", "syncfs.max_seconds", "umount.max_seconds"]),
    ("the slowest hundredth of the reads", &["read.p99_seconds"]),
    ("usual latencies of other calls", &["p50_seconds"]),
    ("longest latencies of other calls", &["max_seconds"]),
];

/// Name of the kind of a figure.
pub(crate) fn kind(figure: &str) -> &'static str {
    let fits = |(_, ends): &&(&str, &[&str])| ends.iter().any(|end| figure.ends_with(end));
    KINDS.iter().find(fits).map_or("other", |(name, _)| name)
}

/// The file.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Artefact {
    /// [`SCHEMA`].
    pub(crate) schema: String,
    /// Figure by figure: existing recordings compared with the model by `validate`.
    pub(crate) measured: Measured,
    /// Scores on machines that were not seen before, the newest first.
    pub(crate) unseen: Vec<Unseen>,
    /// What stands below them: name, bytes within 10 % and 25 %, longest waits within a factor of two.
    pub(crate) beside_unseen: Vec<[String; 4]>,
    /// Sums of an earlier comparison.
    pub(crate) earlier: Earlier,
    /// Rows of the throttle's trace points, recomputed.
    pub(crate) throttle: Throttle,
    /// Part of the model, its module, its agreement. `{usual}` and `{longest}` stand for the earlier median distances of syncs.
    pub(crate) modules: Vec<[String; 3]>,
    /// Figure, value on a real kernel, value of the model, of single runs.
    pub(crate) single_runs: Vec<[String; 3]>,
}

/// Recordings compared with the model.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Measured {
    /// Number of simulated runs of each case.
    pub(crate) seeds: u64,
    /// The cases, in the order of their names.
    pub(crate) cases: Vec<Compared>,
}

/// A variant of a scenario on a kernel.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Compared {
    /// Name of the scenario.
    pub(crate) scenario: String,
    /// Name of the variant.
    pub(crate) variant: String,
    /// Version of the kernel.
    pub(crate) kernel: String,
    /// Number of recordings.
    pub(crate) recordings: usize,
    /// Reason why the case could not be simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) not_simulated: Option<String>,
    /// All figures that both have.
    pub(crate) figures: Vec<Line>,
}

/// One figure of a case.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    /// Its name.
    pub(crate) figure: String,
    /// Whether the speed of an emulated CPU decides it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_cpu_bound: bool,
    /// Smallest, mean and largest value of the real runs.
    pub(crate) real: [f64; 3],
    /// Number of real runs that have it.
    pub(crate) real_runs: usize,
    /// Smallest, mean and largest value of the seeds.
    pub(crate) model: [f64; 3],
    /// Its verdict.
    pub(crate) verdict: Verdict,
    /// Mean of the model without the recording's moments of slow disks and late CPUs; only for waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unreplayed: Option<f64>,
}

impl Line {
    /// Its kind.
    pub(crate) fn kind(&self) -> &'static str {
        kind(&self.figure)
    }

    /// Unit of its values, which is the end of its name.
    pub(crate) fn unit(&self) -> &'static str {
        ["bytes_per_second", "bytes", "seconds"].into_iter().find(|unit| self.figure.ends_with(unit)).unwrap_or("")
    }

    /// Distance of the means as a part of the real one.
    pub(crate) fn off_share(&self) -> f64 {
        off_share(self.real[1], self.model[1])
    }

    /// Whether the model's mean is within 10 % of the real one.
    pub(crate) fn is_within(&self) -> bool {
        self.off_share() <= SHARE
    }
}

/// Sums whose recordings are no longer kept.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Earlier {
    /// Source of the sums.
    pub(crate) origin: String,
    /// Number of recordings.
    pub(crate) recordings: u64,
    /// Releases of the kernels.
    pub(crate) kernels: Vec<String>,
    /// Number of figures within 10 %; known only for all kinds together.
    pub(crate) within_tenth: u64,
    /// By kind.
    pub(crate) kinds: Vec<Sum>,
    /// By scenario and variant.
    pub(crate) scenarios: Vec<Sum>,
}

/// A line of the earlier tables.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sum {
    /// Kind, or scenario and variant.
    pub(crate) name: String,
    /// Figures that were judged.
    pub(crate) figures: u64,
    /// Of these, those within 10 % or within twice the spread of real runs.
    pub(crate) agree: u64,
    /// Those within twice the spread of the model's seeds.
    pub(crate) chance: u64,
    /// The others.
    pub(crate) miss: u64,
    /// Median distance, per cent.
    pub(crate) median_off_percent: f64,
    /// Further figures, which an emulated CPU decides.
    pub(crate) cpu_bound: u64,
}

/// The throttle's rows.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Throttle {
    /// Names of the kernels, one per column.
    pub(crate) kernels: Vec<String>,
    /// What was recomputed.
    pub(crate) rows: Vec<Recomputed>,
}

/// What was recomputed of each row.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recomputed {
    /// Its name.
    pub(crate) name: String,
    /// Per kernel: rows that agree, rows.
    pub(crate) counts: Vec<[u64; 2]>,
}

impl Measured {
    /// What was compared.
    pub(crate) fn of(cases: &[Case], seeds: u64) -> Measured {
        let compared = |case: &Case| Compared {
            scenario: case.scenario.clone(),
            variant: case.variant.clone(),
            kernel: case.version.clone(),
            recordings: case.recordings,
            not_simulated: match &case.outcome {
                Outcome::NotSimulated(why) => Some(why.clone()),
                Outcome::Figures(_) => None,
            },
            figures: case.rows().iter().map(line).collect(),
        };
        Measured { seeds, cases: cases.iter().map(compared).collect() }
    }

    /// Its figures, without those that are close to zero on both sides.
    pub(crate) fn figures(&self) -> impl Iterator<Item = &Line> {
        self.cases.iter().flat_map(|case| &case.figures).filter(|line| line.verdict != Verdict::Negligible)
    }
}

fn line(row: &Row) -> Line {
    Line {
        figure: row.figure.clone(),
        is_cpu_bound: row.is_cpu_bound,
        real: [row.real.min, row.real.mean, row.real.max].map(rounded),
        real_runs: row.real.runs,
        model: [row.simulated.min, row.simulated.mean, row.simulated.max].map(rounded),
        verdict: row.verdict,
        unreplayed: row.unreplayed.filter(|_| row.real.unit == "seconds").map(rounded),
    }
}

/// A value with six significant digits: more of them are noise, and make the file longer.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// Parses the file.
pub(crate) fn parse(text: &str) -> Result<Artefact, Failure> {
    let artefact: Artefact = serde_json::from_str(text)?;
    match artefact.schema == SCHEMA {
        true => Ok(artefact),
        false => Err(Failure::input(format!("the artefact has another schema than {SCHEMA}"))),
    }
}

/// Reads the file.
pub(crate) fn read(path: &Path) -> Result<Artefact, Failure> {
    let unreadable = |error| {
        Failure::input(format!("cannot read {}: {error}", shown(path)))
            .hint("name the file that is renewed: --into docs/agreement.json")
    };
    parse(&std::fs::read_to_string(path).map_err(unreadable)?)
}

/// Writes the file.
pub(crate) fn write(path: &Path, artefact: &Artefact) -> Result<(), Failure> {
    Ok(std::fs::write(path, text(artefact)?)?)
}

/// The artefact as it is kept, one figure per line.
pub(crate) fn text(artefact: &Artefact) -> Result<String, Failure> {
    let mut text = String::new();
    lay_out(&serde_json::to_value(artefact)?, 0, &mut text);
    Ok(text + "\n")
}

fn lay_out(value: &Value, depth: usize, text: &mut String) {
    let short = value.to_string();
    let indent = "  ".repeat(depth + 1);
    match value {
        Value::Array(items) if depth == 0 || short.len() > LINE || items.iter().any(Value::is_array) => {
            text.push('[');
            for (number, item) in items.iter().enumerate() {
                text.push_str(if number == 0 { "\n" } else { ",\n" });
                text.push_str(&indent);
                lay_out(item, depth + 1, text);
            }
            text.push_str(&format!("\n{}]", "  ".repeat(depth)));
        }
        Value::Object(fields) if depth == 0 || short.len() > LINE => {
            text.push('{');
            for (number, (name, field)) in fields.iter().enumerate() {
                text.push_str(if number == 0 { "\n" } else { ",\n" });
                text.push_str(&format!("{indent}{}: ", Value::from(name.as_str())));
                lay_out(field, depth + 1, text);
            }
            text.push_str(&format!("\n{}}}", "  ".repeat(depth)));
        }
        _ => text.push_str(&short),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_is_of_one_kind() {
        let check = |figure: &str, expect: &str| assert_eq!(kind(figure), expect, "{figure}");
        check("task.a.dirtied_bytes_per_second", "bytes dirtied, written and read");
        check("a.append.bytes_per_second", "throughput");
        check("a.fdatasync.p50_seconds", "usual latencies of syncs and unmounts");
        check("a.umount.max_seconds", "longest latencies of syncs and unmounts");
        check("a.append.max_seconds", "longest latencies of other calls");
        check("host.dirty_peak_bytes", "dirty and writeback levels");
    }

    #[test]
    fn values_keep_six_digits() {
        for (value, expect) in [(0.0, 0.0), (204_657.965_493, 204_658.0), (0.000_827_111_25, 0.000_827_111)] {
            assert_eq!(rounded(value), expect);
        }
    }
}
