// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios that are part of the program, so that they can be named without a file: `dirty-cliff`. A file of that name
//! comes first.

use std::path::Path;

/// Name and text of each, in order of name.
pub const SCENARIOS: &[(&str, &str)] = &[
    ("dirty-cliff", include_str!("../../../scenarios/dirty-cliff.toml")),
    ("exact-budgets", include_str!("../../../scenarios/exact-budgets.toml")),
    ("healthy-containers", include_str!("../../../scenarios/healthy-containers.toml")),
    ("healthy-database", include_str!("../../../scenarios/healthy-database.toml")),
    ("healthy-idle", include_str!("../../../scenarios/healthy-idle.toml")),
    ("inode-switch-storm", include_str!("../../../scenarios/inode-switch-storm.toml")),
    ("overlay-umount", include_str!("../../../scenarios/overlay-umount.toml")),
    ("pipeline-20gb", include_str!("../../../scenarios/pipeline-20gb.toml")),
    ("slow-disk-journal", include_str!("../../../scenarios/slow-disk-journal.toml")),
    ("starved-budget", include_str!("../../../scenarios/starved-budget.toml")),
];

/// The text of a scenario by its name.
pub fn text(name: &Path) -> Option<&'static str> {
    SCENARIOS.iter().find(|(known, _)| Path::new(known) == name).map(|(_, text)| *text)
}

/// Names, for hints.
pub fn names() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ScenarioFile;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test compares the list with the folder")]
    fn every_scenario_of_the_folder_is_shipped_under_its_name() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let files = std::fs::read_dir(folder).expect("the folder").flatten().map(|entry| entry.path());
        let mut stems: Vec<String> = files
            .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
            .map(|path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned())
            .collect();
        stems.sort();
        assert_eq!(names().collect::<Vec<_>>(), stems, "add the file to SCENARIOS");
        for (name, text) in SCENARIOS {
            assert_eq!(ScenarioFile::parse(text).map(|file| file.name).as_deref(), Ok(*name));
        }
        assert!(text(Path::new("dirty-cliff")).is_some() && text(Path::new("dirty-cliff.toml")).is_none());
    }
}
