// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machines of the blind set: their scenarios, and the tables that say on which kernels each of them is judged. Shared
//! by the tests that judge the findings and by those that compute their evidence again.

use floodline_record::units::Nanos;
use floodline_scenario::{Scenario, ScenarioFile};
use std::collections::BTreeMap;

macro_rules! scenarios {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../scenarios/blind/", $name, ".toml")))),*]
    };
}

const SCENARIOS: &[(&str, &str)] = scenarios![
    "cliff-in-parts",
    "cliff-of-boot-disk",
    "cliff-of-export",
    "cliff-of-scattered-pages",
    "cliff-that-only-the-flusher-meets",
    "cliff-v1",
    "data-at-risk",
    "eighteenth-sick",
    "eighteenth-well",
    "eighth-budgets",
    "eighth-storage",
    "eighth-well",
    "eleventh-sick",
    "eleventh-well",
    "fifteenth-sick",
    "fifteenth-well",
    "fifth-round",
    "foreign-owner",
    "fortieth-sick",
    "fortieth-well",
    "fourteenth-sick",
    "fourteenth-well",
    "fourth-budgets",
    "fourth-storage",
    "fourth-well",
    "inode-storm",
    "io-limit",
    "journal-in-mirror",
    "limits-that-do-not-hold",
    "loop-images",
    "more-bursts",
    "more-limits",
    "more-overload",
    "more-removals",
    "more-rewrites",
    "nineteenth-sick",
    "nineteenth-well",
    "ninth-budgets",
    "ninth-storage",
    "ninth-well",
    "outrun",
    "overlay-teardown",
    "periodic-writeback-off",
    "rewritten-after-read",
    "rewritten-after-write",
    "rewritten-by-host",
    "rewritten-in-small-cgroups",
    "rewritten-on-large-host",
    "rewritten-on-v1",
    "rewritten-quietly",
    "saturated-by-direct-writes",
    "saturated-by-reads",
    "saturated-by-syncs",
    "seventeenth-sick",
    "seventeenth-well",
    "seventh-budgets",
    "seventh-storage",
    "seventh-well",
    "shared-file",
    "sixteenth-sick",
    "sixteenth-well",
    "sixth-budgets",
    "sixth-storage",
    "sixth-well",
    "strict-device",
    "synced-folios",
    "syncs-behind-a-stream",
    "tenth-sick",
    "tenth-well",
    "third-round",
    "thirteenth-sick",
    "thirteenth-well",
    "thirtieth-sick",
    "thirtieth-well",
    "thirtyeighth-sick",
    "thirtyeighth-well",
    "thirtyfifth-sick",
    "thirtyfifth-well",
    "thirtyfirst-sick",
    "thirtyfirst-well",
    "thirtyfourth-sick",
    "thirtyfourth-well",
    "thirtyninth-sick",
    "thirtyninth-well",
    "thirtysecond-sick",
    "thirtysecond-well",
    "thirtysixth-sick",
    "thirtysixth-well",
    "thirtyseventh-sick",
    "thirtyseventh-well",
    "thirtythird-sick",
    "thirtythird-well",
    "twelfth-sick",
    "twelfth-well",
    "twentieth-more-sick",
    "twentieth-more-well",
    "twentieth-sick",
    "twentieth-well",
    "twentyeighth-sick",
    "twentyeighth-well",
    "twentyfifth-sick",
    "twentyfifth-well",
    "twentyfirst-sick",
    "twentyfirst-well",
    "twentyfourth-sick",
    "twentyfourth-well",
    "twentyninth-sick",
    "twentyninth-well",
    "twentysecond-sick",
    "twentysecond-well",
    "twentyseventh-sick",
    "twentyseventh-well",
    "twentysixth-sick",
    "twentysixth-well",
    "twentythird-sick",
    "twentythird-well",
    "two-disks",
    "variations-limits",
    "variations-owners",
    "void-settings",
    "well-containers",
    "well-servers",
    "small-limits",
];
pub(crate) const MACHINES: &str = include_str!("../blind/machines.txt");
pub(crate) const SECOND_SET: &str = include_str!("../blind/second-set.txt");
pub(crate) const THIRD_ROUND: &str = include_str!("../blind/third-round.txt");
pub(crate) const FOURTH_ROUND: &str = include_str!("../blind/fourth-round.txt");
pub(crate) const FIFTH_ROUND: &str = include_str!("../blind/fifth-round.txt");
pub(crate) const SIXTH_ROUND: &str = include_str!("../blind/sixth-round.txt");
pub(crate) const SEVENTH_ROUND: &str = include_str!("../blind/seventh-round.txt");
pub(crate) const EIGHTH_ROUND: &str = include_str!("../blind/eighth-round.txt");
pub(crate) const NINTH_ROUND: &str = include_str!("../blind/ninth-round.txt");
pub(crate) const TENTH_ROUND: &str = include_str!("../blind/tenth-round.txt");
pub(crate) const ELEVENTH_ROUND: &str = include_str!("../blind/eleventh-round.txt");
pub(crate) const TWELFTH_ROUND: &str = include_str!("../blind/twelfth-round.txt");
pub(crate) const THIRTEENTH_ROUND: &str = include_str!("../blind/thirteenth-round.txt");
pub(crate) const FOURTEENTH_ROUND: &str = include_str!("../blind/fourteenth-round.txt");
pub(crate) const FIFTEENTH_ROUND: &str = include_str!("../blind/fifteenth-round.txt");
pub(crate) const SIXTEENTH_ROUND: &str = include_str!("../blind/sixteenth-round.txt");
pub(crate) const SEVENTEENTH_ROUND: &str = include_str!("../blind/seventeenth-round.txt");
pub(crate) const EIGHTEENTH_ROUND: &str = include_str!("../blind/eighteenth-round.txt");
pub(crate) const NINETEENTH_ROUND: &str = include_str!("../blind/nineteenth-round.txt");
pub(crate) const TWENTIETH_ROUND: &str = include_str!("../blind/twentieth-round.txt");
pub(crate) const TWENTIETH_MORE: &str = include_str!("../blind/twentieth-more.txt");
pub(crate) const TWENTYFIRST_ROUND: &str = include_str!("../blind/twentyfirst-round.txt");
pub(crate) const TWENTYSECOND_ROUND: &str = include_str!("../blind/twentysecond-round.txt");
pub(crate) const TWENTYTHIRD_ROUND: &str = include_str!("../blind/twentythird-round.txt");
pub(crate) const TWENTYFOURTH_ROUND: &str = include_str!("../blind/twentyfourth-round.txt");
pub(crate) const TWENTYFIFTH_ROUND: &str = include_str!("../blind/twentyfifth-round.txt");
pub(crate) const TWENTYSIXTH_ROUND: &str = include_str!("../blind/twentysixth-round.txt");
pub(crate) const TWENTYSEVENTH_ROUND: &str = include_str!("../blind/twentyseventh-round.txt");
pub(crate) const TWENTYEIGHTH_ROUND: &str = include_str!("../blind/twentyeighth-round.txt");
pub(crate) const TWENTYNINTH_ROUND: &str = include_str!("../blind/twentyninth-round.txt");
pub(crate) const THIRTIETH_ROUND: &str = include_str!("../blind/thirtieth-round.txt");
pub(crate) const THIRTYFIRST_ROUND: &str = include_str!("../blind/thirtyfirst-round.txt");
pub(crate) const THIRTYSECOND_ROUND: &str = include_str!("../blind/thirtysecond-round.txt");
pub(crate) const THIRTYTHIRD_ROUND: &str = include_str!("../blind/thirtythird-round.txt");
pub(crate) const THIRTYFOURTH_ROUND: &str = include_str!("../blind/thirtyfourth-round.txt");
pub(crate) const THIRTYFIFTH_ROUND: &str = include_str!("../blind/thirtyfifth-round.txt");
pub(crate) const THIRTYSIXTH_ROUND: &str = include_str!("../blind/thirtysixth-round.txt");
pub(crate) const THIRTYSEVENTH_ROUND: &str = include_str!("../blind/thirtyseventh-round.txt");
pub(crate) const THIRTYEIGHTH_ROUND: &str = include_str!("../blind/thirtyeighth-round.txt");
pub(crate) const THIRTYNINTH_ROUND: &str = include_str!("../blind/thirtyninth-round.txt");
pub(crate) const FORTIETH_ROUND: &str = include_str!("../blind/fortieth-round.txt");
pub(crate) const VARIATIONS: &str = include_str!("../blind/variations.txt");
/// All tables.
pub(crate) const TABLES: &[&str] = &[
    MACHINES,
    SECOND_SET,
    THIRD_ROUND,
    FOURTH_ROUND,
    FIFTH_ROUND,
    SIXTH_ROUND,
    SEVENTH_ROUND,
    EIGHTH_ROUND,
    NINTH_ROUND,
    TENTH_ROUND,
    ELEVENTH_ROUND,
    TWELFTH_ROUND,
    THIRTEENTH_ROUND,
    FOURTEENTH_ROUND,
    FIFTEENTH_ROUND,
    SIXTEENTH_ROUND,
    SEVENTEENTH_ROUND,
    EIGHTEENTH_ROUND,
    NINETEENTH_ROUND,
    TWENTIETH_ROUND,
    TWENTIETH_MORE,
    TWENTYFIRST_ROUND,
    TWENTYSECOND_ROUND,
    TWENTYTHIRD_ROUND,
    TWENTYFOURTH_ROUND,
    TWENTYFIFTH_ROUND,
    TWENTYSIXTH_ROUND,
    TWENTYSEVENTH_ROUND,
    TWENTYEIGHTH_ROUND,
    TWENTYNINTH_ROUND,
    THIRTIETH_ROUND,
    THIRTYFIRST_ROUND,
    THIRTYSECOND_ROUND,
    THIRTYTHIRD_ROUND,
    THIRTYFOURTH_ROUND,
    THIRTYFIFTH_ROUND,
    THIRTYSIXTH_ROUND,
    THIRTYSEVENTH_ROUND,
    THIRTYEIGHTH_ROUND,
    THIRTYNINTH_ROUND,
    FORTIETH_ROUND,
    VARIATIONS,
];

/// A machine on a kernel.
pub(crate) struct Machine {
    pub(crate) file: &'static str,
    pub(crate) variant: &'static str,
    pub(crate) kernel: &'static str,
    /// Its line of the table.
    pub(crate) line: &'static str,
}

impl Machine {
    pub(crate) fn name(&self) -> String {
        format!("{} {} {}", self.file, self.variant, self.kernel)
    }

    /// Time between two samples, if it is not the simulator's.
    pub(crate) fn every(&self) -> Option<Nanos> {
        let value = option(self.line, "every")?;
        let (number, unit_ms) = match value.strip_suffix("ms") {
            Some(number) => (number, 1),
            None => (value.strip_suffix('s').expect("seconds or milliseconds"), 1000),
        };
        Some(Nanos::from_millis(number.parse::<u64>().expect("a whole number") * unit_ms))
    }
}

/// An option of a line: `every`, or `or`, a rule that may come first as well as the one of the scenario.
pub(crate) fn option(line: &'static str, key: &str) -> Option<&'static str> {
    let of = |word: &'static str| word.split_once('=').filter(|(of, _)| *of == key);
    line.split_whitespace().find_map(of).map(|(_, value)| value)
}

pub(crate) fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

pub(crate) fn machines(table: &'static str) -> Vec<Machine> {
    let of_line = |line: &'static str| {
        let mut words = line.split_whitespace().filter(|word| !word.contains('='));
        let (file, variant) = (words.next().expect("a file"), words.next().expect("a variant"));
        words.map(move |kernel| Machine { file, variant, kernel, line })
    };
    lines(table).flat_map(of_line).collect()
}

pub(crate) fn variants() -> BTreeMap<(&'static str, String), Scenario> {
    let of_file = |(file, text): &(&'static str, &str)| {
        let file = *file;
        let parsed = ScenarioFile::parse(text).unwrap_or_else(|error| panic!("{file}: {error}"));
        parsed.variants.into_iter().map(move |(variant, scenario)| ((file, variant), scenario))
    };
    SCENARIOS.iter().flat_map(of_file).collect()
}
