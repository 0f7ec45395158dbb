// SPDX-License-Identifier: MIT OR Apache-2.0
//! A grid of settings: every combination of the values of some keys, and the scenario that each stands for.

use crate::{NotAChange, Scenario, ScenarioFile};

/// Largest number of combinations.
const CELLS_MAX: usize = 100_000;

/// Keys and the values that each takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    axes: Vec<(String, Vec<String>)>,
}

/// Keys and values that are no grid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAGrid {
    /// A key has two lists of values.
    #[error("{0} appears in two grids")]
    Twice(String),
    /// More combinations than anyone waits for.
    #[error("too many combinations: the maximum is {CELLS_MAX}")]
    TooMany,
}

/// A combination that is no scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotACell {
    /// The file has several variants and none is named.
    #[error("the scenario has several variants: {0}")]
    SeveralVariants(String),
    /// The file has no such variant.
    #[error("unknown variant {0:?}; the scenario has {1}")]
    UnknownVariant(String, String),
    /// A key or value cannot be set.
    #[error(transparent)]
    Change(#[from] NotAChange),
}

impl Grid {
    /// Takes keys with their values; the last key varies fastest.
    ///
    /// # Errors
    ///
    /// A key is named twice, or there are too many combinations.
    pub fn new(axes: Vec<(String, Vec<String>)>) -> Result<Grid, NotAGrid> {
        let again = |at: usize, key: &String| axes.iter().take(at).any(|(earlier, _)| earlier == key);
        if let Some((_, (key, _))) = axes.iter().enumerate().find(|(at, (key, _))| again(*at, key)) {
            return Err(NotAGrid::Twice(key.clone()));
        }
        let count = axes.iter().try_fold(1_usize, |count, (_, values)| count.checked_mul(values.len()));
        if count.is_none_or(|count| count > CELLS_MAX) {
            return Err(NotAGrid::TooMany);
        }
        Ok(Grid { axes })
    }

    /// The keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.axes.iter().map(|(key, _)| key.as_str())
    }

    /// Every combination as a value for each key, the last key fastest.
    pub fn combinations(&self) -> Vec<Vec<String>> {
        let mut all: Vec<Vec<String>> = vec![Vec::new()];
        for (_, values) in &self.axes {
            let with = |at: &Vec<String>, value: &String| at.iter().chain([value]).cloned().collect();
            all = all.iter().flat_map(|at| values.iter().map(move |value| with(at, value))).collect();
        }
        all
    }

    /// The value of a key in a combination.
    pub fn value<'a>(&self, at: &'a [String], key: &str) -> Option<&'a str> {
        self.keys().zip(at).find(|(known, _)| *known == key).map(|(_, value)| value.as_str())
    }

    /// The scenario of a combination and the name of its variant: the one that the grid or else `variant` names, that
    /// called `incident`, or the only one. `change` makes the changes that all combinations share. Which kernel runs it is
    /// no part of a scenario.
    ///
    /// # Errors
    ///
    /// The variant is not there, or a key or value cannot be set.
    pub fn scenario<E: From<NotACell>>(
        &self,
        file: &ScenarioFile,
        at: &[String],
        variant: Option<&str>,
        change: impl FnOnce(&Scenario) -> Result<Scenario, E>,
    ) -> Result<(String, Scenario), E> {
        let (name, scenario) = file.variant(self.value(at, "variant").or(variant))?;
        let mut scenario = change(scenario)?;
        for (key, value) in self.keys().zip(at).filter(|(key, _)| !["kernel", "variant"].contains(key)) {
            scenario = scenario.changed(key, value).map_err(NotACell::Change)?;
        }
        Ok((name.to_owned(), scenario))
    }
}

impl ScenarioFile {
    /// The variant of a name; without one that called `incident`, or the only one.
    ///
    /// # Errors
    ///
    /// There is none of that name, or there are several and none is named.
    pub fn variant(&self, name: Option<&str>) -> Result<(&str, &Scenario), NotACell> {
        let all = || self.variants.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let usual = self.variants.keys().find(|name| *name == "incident" || self.variants.len() == 1);
        let Some(wanted) = name.or(usual.map(String::as_str)) else { return Err(NotACell::SeveralVariants(all())) };
        let found = self.variants.get_key_value(wanted);
        let (name, scenario) = found.ok_or_else(|| NotACell::UnknownVariant(wanted.to_owned(), all()))?;
        Ok((name, scenario))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(key: &str, values: &[&str]) -> (String, Vec<String>) {
        (key.to_owned(), values.iter().map(|value| (*value).to_owned()).collect())
    }

    #[test]
    fn the_last_key_varies_fastest_and_a_key_has_one_list() {
        let grid = Grid::new(vec![axis("a", &["1", "2"]), axis("b", &["x", "y"])]).unwrap();
        assert_eq!(grid.combinations(), [["1", "x"], ["1", "y"], ["2", "x"], ["2", "y"]]);
        assert_eq!(grid.value(&["2".to_owned(), "y".to_owned()], "b"), Some("y"));
        assert_eq!(Grid::new(vec![axis("a", &["1"]), axis("a", &["2"])]), Err(NotAGrid::Twice("a".to_owned())));
        let many: Vec<String> = (0..400).map(|n: u32| n.to_string()).collect();
        assert_eq!(Grid::new(vec![("a".to_owned(), many.clone()), ("b".to_owned(), many)]), Err(NotAGrid::TooMany));
    }

    #[test]
    fn a_combination_names_its_variant_and_its_changes() {
        let file = ScenarioFile::parse(crate::shipped::text(std::path::Path::new("dirty-cliff")).unwrap()).unwrap();
        let grid = Grid::new(vec![axis("kernel", &["6.1"]), axis("vm.dirty_bytes", &["64M"])]).unwrap();
        let at = ["6.1".to_owned(), "64M".to_owned()];
        let same = |scenario: &Scenario| Ok::<Scenario, NotACell>(scenario.clone());
        let (name, scenario) = grid.scenario(&file, &at, None, same).unwrap();
        assert_eq!(
            (name.as_str(), &scenario),
            ("incident", &file.variants["incident"].changed("vm.dirty_bytes", "64M").unwrap())
        );
        assert!(matches!(grid.scenario(&file, &at, Some("no"), same), Err(NotACell::UnknownVariant(..))));
    }
}
