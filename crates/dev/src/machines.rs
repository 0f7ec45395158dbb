// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of known machines (`crates/sim/tests/blind/*.txt`) and their scenarios: file, variant and kernels of each, and the
//! time between two samples. Runs nothing.

use crate::Failure;
use crate::input::{scenario, shown};
use floodline_record::units::Nanos;
use floodline_record::version::KernelVersion;
use floodline_scenario::Scenario;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Time between two samples where a table does not name one.
pub(crate) const EVERY: Nanos = Nanos(500_000_000);

/// A machine of a table.
pub(crate) struct Machine {
    /// Name of its scenario file.
    pub(crate) file: String,
    /// Variant of the scenario.
    pub(crate) variant: String,
    /// Kernels that it runs on.
    pub(crate) kernels: Vec<String>,
    /// Time between two samples.
    pub(crate) every: Nanos,
    /// A rule that may come first as well as the one of the scenario.
    pub(crate) or: Option<String>,
    /// Its line.
    pub(crate) line: String,
}

impl Machine {
    fn read(line: &str) -> Machine {
        let option = |key: &str| line.split_whitespace().find_map(|word| word.strip_prefix(key));
        let mut words = line.split_whitespace().filter(|word| !word.contains('=')).map(str::to_owned);
        let seconds = option("every=").and_then(|every| every.strip_suffix('s')?.parse::<u64>().ok());
        Machine {
            file: words.next().unwrap_or_default(),
            variant: words.next().unwrap_or_default(),
            kernels: words.collect(),
            every: seconds.map_or(EVERY, |seconds| Nanos::from_millis(seconds.saturating_mul(1000))),
            or: option("or=").map(str::to_owned),
            line: line.to_owned(),
        }
    }
}

/// The machines of all tables of a folder.
pub(crate) fn machines(tables: &Path) -> Result<Vec<Machine>, Failure> {
    let mut machines = Vec::new();
    for path in named(tables, "txt")?.iter().filter(|path| !path.ends_with("misses.txt")) {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::input(format!("cannot read {}: {error}", shown(path))))?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        machines.extend(lines.map(Machine::read));
    }
    Ok(machines)
}

/// The scenarios of all files of folders, by the names of file and variant.
pub(crate) fn scenarios(folders: &[PathBuf]) -> Result<BTreeMap<(String, String), Scenario>, Failure> {
    let mut scenarios = BTreeMap::new();
    for folder in folders {
        for path in named(folder, "toml")? {
            let file = scenario(&path)?;
            scenarios.extend(file.variants.into_iter().map(|(variant, of)| ((file.name.clone(), variant), of)));
        }
    }
    Ok(scenarios)
}

/// A kernel version in a table.
pub(crate) fn version(text: &str) -> Result<KernelVersion, Failure> {
    text.parse().map_err(|_| Failure::input(format!("invalid kernel version {text}")))
}

/// Files of a folder with this extension, in order of their names.
fn named(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, Failure> {
    let entries =
        std::fs::read_dir(folder).map_err(|error| Failure::input(format!("cannot read {}: {error}", shown(folder))))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|of| of == extension));
    files.sort();
    Ok(files)
}
