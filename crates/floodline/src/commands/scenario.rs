// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline scenario …`: check, list and show scenario files, and print their schema for editors.

use super::Run;
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::{scenario_text, shown};
use floodline_analysis::diagnose::rules::RULES;
use floodline_record::human;
use floodline_record::name::{Name, harmless};
use floodline_record::nearest::nearest;
use floodline_scenario::shipped;
use floodline_scenario::{
    DEFAULT_VARIANT, DEVICE_PROFILES, DeviceProfile, Executor, Expect, Problem, Scenario, ScenarioError, ScenarioFile,
    wrong_with_figure,
};
use floodline_sim::SimError;
use floodline_view::paragraph;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Check, list and show scenario files
#[derive(clap::Parser)]
#[command(
    name = "scenario",
    after_help = "Examples:\n  \
        floodline scenario check scenarios/*.toml\n  \
        floodline scenario show dirty-cliff --variant remedy\n  \
        floodline scenario schema > scenario.schema.json"
)]
pub(crate) struct ScenarioCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Report the errors in scenario files, with line and hint
    Check {
        /// Scenario files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Output format
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// List scenarios and their variants
    List {
        /// Folder of scenario files [default: the scenarios of this program]
        #[arg(value_name = "FOLDER")]
        folder: Option<PathBuf>,
        /// Output format
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Print one variant as it runs: merged with the base, presets expanded
    Show {
        /// Scenario file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Variant to print; may be omitted if the scenario has only one, or one called default
        #[arg(long)]
        variant: Option<String>,
        /// Output format; JSON lists every copy of every cgroup, mount and task
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// List the device profiles that a scenario can name
    Devices {
        /// Output format
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Print the JSON Schema of scenario files, for editors
    Schema,
}

/// Version of the JSON forms.
const SCHEMA: &str = "floodline.scenario/1";

impl Run for ScenarioCommand {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        match self.verb {
            Verb::Check { files, format } => check(console, &files, format),
            Verb::List { folder, format } => list(console, folder.as_deref(), format),
            Verb::Show { file, variant, format } => show(console, &file, variant.as_deref(), format),
            Verb::Devices { format } => devices(console, format),
            Verb::Schema => {
                console.print(&format!("{:#}\n", floodline_scenario::schema()))?;
                Ok(Exit::Done)
            }
        }
    }
}

/// Reads a scenario file; what is wrong in it is the error's text.
pub(crate) fn load(path: &Path) -> Result<ScenarioFile, CliError> {
    parse(path)?.map_err(|error| {
        let lines: Vec<String> = error.problems.iter().map(|problem| line(path, problem)).collect();
        CliError::usage(lines.join("\n"))
    })
}

/// The variant that is meant: the one named, else the only one there is, or the one that is called `default`.
pub(crate) fn variant<'a>(file: &'a ScenarioFile, name: Option<&'a str>) -> Result<(&'a str, &'a Scenario), CliError> {
    let known: Vec<&str> = file.variants.keys().map(String::as_str).collect();
    let wanted = match (name, known.as_slice()) {
        (Some(name), _) => name,
        (None, [only]) => *only,
        (None, _) if file.variants.contains_key(DEFAULT_VARIANT) => DEFAULT_VARIANT,
        (None, _) => {
            let cause = format!("{} has {} variants", file.name, known.len());
            return Err(CliError::usage(cause).hint(format!("--variant {}", known.join(" | "))));
        }
    };
    match file.variants.get(wanted) {
        Some(scenario) => Ok((wanted, scenario)),
        None => Err(CliError::usage(format!("{} has no variant {:?}", file.name, Name::from(wanted)))
            .hint(format!("its variants: {}", known.join(", ")))),
    }
}

fn parse(path: &Path) -> Result<Result<ScenarioFile, ScenarioError>, CliError> {
    let text = scenario_text(path)?;
    Ok(ScenarioFile::parse(&text))
}

/// Reads a file, and judges its variants: those of a file that is wrong as far as they are of the right types.
fn judged(path: &Path) -> Result<(Result<ScenarioFile, ScenarioError>, Judged), CliError> {
    let text = scenario_text(path)?;
    let mut wrong = BTreeMap::new();
    let file = ScenarioFile::parse_with(&text, &mut wrong);
    let judged = match &file {
        Ok(file) => Judged::of(&file.variants, true),
        Err(_) => Judged::of(&wrong, false),
    };
    Ok((file, judged))
}

fn line(path: &Path, problem: &Problem) -> String {
    // The text may quote the file's own bytes.
    let one_line = |text: &str| harmless(text).replace('\n', "\\n");
    let mut line = format!("{}:{}", shown(path), one_line(&problem.to_string()));
    if let Some(hint) = &problem.hint {
        line.push_str(&format!("\n  hint: {}", one_line(hint)));
    }
    line
}

/// What a file that parses says of findings that do not exist, and of keys that a command does not support. Each text is told once, with
/// its variants.
#[derive(Default)]
struct Judged {
    /// Findings that the scenario expects and that do not exist.
    unknown: BTreeMap<String, Vec<String>>,
    /// Figures that the scenario expects and that no run has, each with what is wrong with it.
    figures: BTreeMap<String, Vec<String>>,
    /// Why `floodline simulate` refuses variants.
    simulator: BTreeMap<String, Vec<String>>,
    /// Why `floodline lab run` refuses variants.
    lab: BTreeMap<String, Vec<String>>,
}

impl Judged {
    /// `is_whole` says that nothing is wrong with the variants.
    fn of(variants: &BTreeMap<String, Scenario>, is_whole: bool) -> Judged {
        let mut judged = Judged::default();
        let put = |texts: &mut BTreeMap<String, Vec<String>>, text: String, variant: &str| {
            texts.entry(text).or_default().push(variant.to_owned());
        };
        for (variant, scenario) in variants {
            let tasks = || scenario.workload.tasks.keys().map(String::as_str);
            for name in expected_figures(&scenario.expect) {
                // The name of a group holds its letters, as the figures do.
                if let Some(wrong) = wrong_with_figure(name, tasks()) {
                    put(&mut judged.figures, format!("{:?} {wrong}", Name::from(name)), variant);
                }
            }
            for name in expected(&scenario.expect) {
                put(&mut judged.unknown, name.to_owned(), variant);
            }
            if let Err(error) = floodline_sim::check(scenario) {
                let keys = if let SimError::NotHonoured(keys) = &error { keys.as_slice() } else { &[] };
                let meant: Vec<String> =
                    keys.iter().filter_map(|key| Executor::Simulator.meant(key)).map(|key| key.to_string()).collect();
                let hint =
                    if meant.is_empty() { String::new() } else { format!("; did you mean {}?", meant.join(", ")) };
                put(&mut judged.simulator, format!("{error}{hint}"), variant);
            }
            if let Err(error) = floodline_lab::run::check(scenario)
                && is_whole
            {
                put(&mut judged.lab, error.to_string(), variant);
            }
        }
        judged
    }

    /// Whether all findings exist, and each variant can be run by one of the two commands.
    fn is_good(&self) -> bool {
        let refused: Vec<&String> = self.lab.values().flatten().collect();
        self.unknown.is_empty()
            && self.figures.is_empty()
            && !self.simulator.values().flatten().any(|variant| refused.contains(&variant))
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        let unknown = self.unknown.iter().map(|(name, variants)| {
            let near = nearest(name, RULES.iter().map(|rule| rule.name));
            let hint = near.map_or_else(
                || "; floodline explain lists the findings".to_owned(),
                |near| format!("; did you mean {near}?"),
            );
            format!("expect: unknown finding {:?}{}{hint}", Name::from(name.as_str()), of(variants))
        });
        let figures = self.figures.iter().map(|(what, variants)| format!("expect: {what}{}", of(variants)));
        let refused = |command: &'static str, texts: &BTreeMap<String, Vec<String>>| {
            let line = move |(text, variants): (&String, &Vec<String>)| {
                format!("floodline {command} refuses this file{}: {}", of(variants), harmless(text).replace('\n', " "))
            };
            texts.iter().map(line).collect::<Vec<String>>()
        };
        let (simulator, lab) = (refused("simulate", &self.simulator), refused("lab run", &self.lab));
        unknown.chain(figures).collect::<Vec<String>>().into_iter().chain(simulator).chain(lab)
    }
}

/// The variants that a line concerns, three of them at most.
fn of(variants: &[String]) -> String {
    let (named, more) = variants.split_at(variants.len().min(3));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    format!(" (variant {}{more})", harmless(&named.join(", ")))
}

/// The findings that an expectation names, on any kernel, and that do not exist.
fn expected(expect: &Expect) -> BTreeSet<&str> {
    let all = std::iter::once(expect).chain(expect.kernels.values());
    let names = all.flat_map(|expect| {
        let lists = expect.found.iter().chain(&expect.not_found).flatten();
        lists.chain(expect.confirmed.keys()).map(String::as_str)
    });
    names.filter(|name| floodline_analysis::diagnose::rule(name).is_none()).collect()
}

/// The figures that an expectation names, on any kernel.
fn expected_figures(expect: &Expect) -> BTreeSet<&str> {
    let all = std::iter::once(expect).chain(expect.kernels.values());
    all.flat_map(|expect| expect.figures.keys().map(String::as_str)).collect()
}

fn check(console: &mut Console, files: &[PathBuf], format: Format) -> Result<Exit, CliError> {
    let mut text = String::new();
    let mut exit = Exit::Done;
    for path in files {
        let (parsed, judged) = match judged(path) {
            Ok((parsed, judged)) => (Ok(parsed), judged),
            Err(error) => (Err(error), Judged::default()),
        };
        if !matches!(parsed, Ok(Ok(_))) || !judged.is_good() {
            exit = Exit::Usage;
        }
        let mut put = |line: String| text.push_str(&(line + "\n"));
        match (format, parsed) {
            (Format::Text, Ok(Ok(file))) => {
                if judged.is_good() {
                    put(format!("{}: good", shown(path)));
                    let variants: Vec<&str> = file.variants.keys().map(String::as_str).collect();
                    text.push_str(&paragraph(&variants.join(", "), 2, console.width()));
                }
                for problem in judged.lines() {
                    let line = format!("{}: {problem}", shown(path));
                    text.push_str(&paragraph(&line, 0, console.width()));
                }
            }
            (Format::Text, Ok(Err(error))) => {
                error.problems.iter().for_each(|problem| put(line(path, problem)));
                for problem in judged.lines() {
                    let line = format!("{}: {problem}", shown(path));
                    text.push_str(&paragraph(&line, 0, console.width()));
                }
            }
            // The others are judged all the same.
            (Format::Text, Err(unreadable)) => put(unreadable.to_string()),
            (Format::Json, parsed) => {
                let unreadable = parsed.as_ref().err().map(ToString::to_string);
                let problems = parsed.ok().and_then(Result::err).map(|error| error.problems).unwrap_or_default();
                let file = shown(path).to_string();
                let Judged { unknown, figures, simulator, lab } = &judged;
                let line = json!({ "schema": SCHEMA, "file": file, "problems": problems, "unreadable": unreadable,
                    "unknown_findings": unknown, "unknown_figures": figures, "not_simulated": simulator, "not_in_lab": lab });
                put(line.to_string());
            }
        }
    }
    console.print(&text)?;
    Ok(exit)
}

/// The scenario files of a folder.
fn files(console: &Console, folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    let entries = std::fs::read_dir(folder).map_err(|error| {
        CliError::usage(format!("cannot read {}: {error}", shown(folder)))
            .hint("without a folder, floodline scenario list shows the scenarios of this program")
    })?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    if paths.is_empty() {
        console.note(&format!("{} contains no scenarios (files named *.toml)", shown(folder)));
    }
    Ok(paths)
}

fn list(console: &mut Console, folder: Option<&Path>, format: Format) -> Result<Exit, CliError> {
    let paths = match folder {
        Some(folder) => files(console, folder)?,
        None => shipped::names().map(PathBuf::from).collect(),
    };
    let mut text = String::new();
    let mut exit = Exit::Done;
    for path in paths {
        match (parse(&path), format) {
            (Ok(Ok(file)), Format::Text) => {
                let variants: Vec<&str> = file.variants.keys().map(String::as_str).collect();
                let _ = writeln!(text, "{}", file.name);
                for said in [&file.summary, &variants.join(", ")] {
                    text.push_str(&paragraph(said, 2, console.width()));
                }
            }
            (Ok(Ok(file)), Format::Json) => {
                let variants: Vec<&String> = file.variants.keys().collect();
                let (file, name, summary) = (shown(&path).to_string(), file.name, file.summary);
                let line =
                    json!({ "schema": SCHEMA, "file": file, "name": name, "summary": summary, "variants": variants });
                let _ = writeln!(text, "{line}");
            }
            (Ok(Err(error)), _) => {
                exit = Exit::Usage;
                let problems = human::plural(error.problems.len() as u64, "problem", "problems");
                console.note(&format!("{}: {problems}; run floodline scenario check", shown(&path)));
            }
            (Err(unreadable), _) => {
                exit = Exit::Usage;
                console.note(&unreadable.to_string());
            }
        }
    }
    console.print(&text)?;
    Ok(exit)
}

fn show(console: &mut Console, path: &Path, name: Option<&str>, format: Format) -> Result<Exit, CliError> {
    let file = load(path)?;
    let (name, scenario) = variant(&file, name)?;
    let text = match format {
        Format::Text => {
            let counts = [
                (scenario.cgroup_copies().len(), "cgroups"),
                (scenario.mount_copies().len(), "mounts"),
                (scenario.task_copies().len(), "tasks"),
            ];
            let counts: Vec<String> = counts.iter().map(|(count, what)| format!("{count} {what}")).collect();
            let toml = scenario.with_presets_written_out().to_toml().map_err(CliError::bug)?;
            format!("# variant {name}: {}\n{toml}", counts.join(", "))
        }
        Format::Json => {
            let shown = json!({
                "schema": SCHEMA,
                "scenario": scenario,
                "variant": name,
                "cgroups": scenario.cgroup_copies(),
                "mounts": scenario.mount_copies(),
                "tasks": scenario.task_copies(),
            });
            format!("{shown}\n")
        }
    };
    console.print(&text)?;
    Ok(Exit::Done)
}

fn devices(console: &mut Console, format: Format) -> Result<Exit, CliError> {
    let mut text = String::new();
    for device in DEVICE_PROFILES {
        let DeviceProfile { name, about, source, size, bandwidth, iops, latency_ms, rotational, seek_us, .. } = device;
        let (is_volume, read_stream) = (device.is_volume, device.read_stream);
        let _ = match format {
            Format::Text => {
                let rate = |bytes: u64| human::bytes_per_second(bytes as f64);
                let latency = latency_ms.map(|ms| format!("{ms} ms"));
                let seek = seek_us.map(|us| format!("a seek {}.{} ms", us / 1000, us % 1000 / 100));
                let stream = read_stream.map(|bytes| format!("one reader {}", rate(bytes)));
                let together = is_volume.then(|| "both ways together".to_owned());
                let more: Vec<String> = [together, latency, seek, stream].into_iter().flatten().collect();
                let more = if more.is_empty() { String::new() } else { format!("\n  {}", more.join(", ")) };
                let size = human::bytes(*size as f64);
                writeln!(
                    text,
                    "{name}\n  {about}, {size}\n  {source}\n  reads {}, {} IO/s; writes {}, {} IO/s{more}",
                    rate(bandwidth.0),
                    iops.0,
                    rate(bandwidth.1),
                    iops.1
                )
            }
            Format::Json => {
                let line = json!({
                    "schema": SCHEMA,
                    "name": name,
                    "about": about,
                    "source": source,
                    "size_bytes": size,
                    "limits_are_of_both_ways_together": is_volume,
                    "read_stream_bytes_per_second": read_stream,
                    "read_bytes_per_second": bandwidth.0,
                    "write_bytes_per_second": bandwidth.1,
                    "read_requests_per_second": iops.0,
                    "write_requests_per_second": iops.1,
                    "latency_ms": latency_ms,
                    "rotational": rotational,
                    "seek_us": seek_us,
                });
                writeln!(text, "{line}")
            }
        };
    }
    console.print(&text)?;
    Ok(Exit::Done)
}
