// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline lab bisect SCENARIO --metric M --kernels …`: between which two kernels a figure jumps, by running.
//! What was run before is remembered. Wiring only: the search is `floodline_lab::bisect`.

use super::execute::{Bench, HowRemembered, Trial, read_scenario};
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use floodline_lab::bisect::{Answer, bisect};
use floodline_lab::kernels::Kernel;
use floodline_scenario::Figure;
use floodline_view::figures::short;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Find the two adjacent kernels between which a figure changes
#[derive(clap::Args)]
#[command(
    override_usage = "floodline lab bisect [OPTIONS] --metric <FIGURE>\n           --kernels <KERNELS> <SCENARIO>",
    after_help = "Without --repeat, every difference counts as a change. With --repeat, two kernels are equal \
        if they differ by less than three standard deviations of the repeats. A change that is reverted between \
        the ends is not seen: choose closer ends.\n\n\
        Examples:\n  \
        floodline lab bisect scenarios/starved-budget.toml \\\n    \
        --metric writers.dirtied_bytes_per_second --kernels 5.10..7.2\n  \
        floodline lab bisect scenarios/inode-switch-storm.toml \\\n    \
        --metric host.cpu_system_seconds --kernels 6.12.43,6.12.117 --repeat 3"
)]
pub(super) struct Bisect {
    /// Scenario file
    scenario: PathBuf,
    /// Name of the figure, as lab run prints it
    #[arg(long, value_name = "FIGURE")]
    metric: String,
    /// Kernels: OLD..NEW for all cached kernels in that range, or a list separated by commas
    #[arg(long, value_name = "KERNELS")]
    kernels: String,
    /// Variant to run [default: the one named incident, or the only one]
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Number of runs per kernel
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,
    #[command(flatten)]
    how: HowRemembered,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Bisect {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let (variant, scenario) = read_scenario(&self.scenario, self.variant.as_deref())?;
        let (kernels, answer, unit) = {
            let mut bench = Bench::remembering(console, &self.how)?;
            let kernels = self.kernels(&bench)?;
            let mut unit = "";
            let answer = bisect(kernels.len(), self.repeat, |place, turn| {
                let kernel = kernels.get(place).ok_or_else(|| CliError::bug("a kernel that is not in the row"))?;
                let report = bench.remembered(Trial { scenario: &scenario, variant: &variant, kernel }, turn)?;
                let figure = report.figures.get(&self.metric).ok_or_else(|| {
                    let names: Vec<&str> = report.figures.keys().map(String::as_str).collect();
                    CliError::usage(format!("a run on {} has no figure {:?}", kernel.version, self.metric))
                        .hint(format!("its figures: {}", names.join(", ")))
                })?;
                unit = figure.unit;
                Ok::<f64, CliError>(figure.value)
            })?;
            (kernels, answer, unit)
        };
        let names: Vec<String> = kernels.iter().map(|kernel| kernel.version.to_string()).collect();
        console.print(&match self.format {
            Format::Text => self.text(&names, &answer, unit),
            Format::Json => self.json(&names, &answer, unit),
        })?;
        Ok(Exit::Done)
    }

    /// The kernels in order of their versions.
    fn kernels(&self, bench: &Bench<'_>) -> Result<Vec<Kernel>, CliError> {
        let mut kernels = match self.kernels.split_once("..") {
            Some((old, new)) => {
                let (old, new) = (bench.kernel(old)?, bench.kernel(new)?);
                let mut between = bench.cached()?;
                between.retain(|kernel| (old.version..=new.version).contains(&kernel.version));
                between.extend([old, new]);
                between
            }
            None => self.kernels.split(',').map(|wanted| bench.kernel(wanted)).collect::<Result<_, _>>()?,
        };
        kernels.sort_by(|a, b| (a.version, &a.release).cmp(&(b.version, &b.release)));
        kernels.dedup_by(|a, b| a.release == b.release);
        match kernels.len() {
            0 | 1 => Err(CliError::usage("bisect needs at least two kernels")
                .hint("floodline lab kernels lists the kernels; --fetch downloads one")),
            _ => Ok(kernels),
        }
    }

    fn text(&self, names: &[String], answer: &Answer, unit: &'static str) -> String {
        let measured = match answer {
            Answer::Jump(jump) => &jump.measured,
            Answer::NoJump(measured) => measured,
        };
        let mut text = format!("{}\n", self.metric);
        for (place, name) in names.iter().enumerate() {
            let values = measured.get(&place).map_or("not run".to_owned(), |values| {
                values.iter().map(|value| short(Figure { value: *value, unit })).collect::<Vec<_>>().join("  ")
            });
            text.push_str(&format!("  {name:<12} {values}\n"));
        }
        let name = |place: usize| names.get(place).map_or("", String::as_str);
        text.push_str(&match answer {
            Answer::Jump(jump) => {
                let sure = match jump.separation {
                    Some(apart) => format!("the sides are {apart:.1} standard deviations of the repeats apart"),
                    None => "how sure that is, is not known without --repeat".to_owned(),
                };
                format!("\nIt jumps between {} and {}: {sure}.\n", name(jump.before), name(jump.after))
            }
            Answer::NoJump(_) => "\nThe ends do not differ by more than a tenth and the noise of repeats.\n".to_owned(),
        });
        text
    }

    fn json(&self, names: &[String], answer: &Answer, unit: &str) -> String {
        let (measured, jump) = match answer {
            Answer::Jump(jump) => (&jump.measured, Some(jump)),
            Answer::NoJump(measured) => (measured, None),
        };
        let measured: BTreeMap<&str, &Vec<f64>> =
            measured.iter().filter_map(|(place, values)| Some((names.get(*place)?.as_str(), values))).collect();
        let jump = jump.map(|jump| {
            json!({ "before": names.get(jump.before), "after": names.get(jump.after), "separation": jump.separation })
        });
        let value = json!({ "schema": "floodline.lab.bisect/1", "metric": self.metric, "unit": unit,
                            "kernels": names, "measured": measured, "jump": jump });
        format!("{value}\n")
    }
}
