// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a scenario should show: findings that must and must not appear, figures within bounds, and what
//! differs on some kernels. Judging is elsewhere; this only says what was expected.

use super::quantity::Level;
use floodline_record::severity::Severity;
use floodline_record::version::{KernelVersion, Series};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// What a run should show.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Rules that must find something; the first of them must be the first finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Vec<String>>,
    /// Rules that must find nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_found: Option<Vec<String>>,
    /// Of what is found in a traced recording: the rule, and the cgroup, file or process that the trace must
    /// name, or a part of its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub confirmed: BTreeMap<String, String>,
    /// Besides `found`, nothing may be found at or above this severity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_from: Option<Severity>,
    /// Figures by name, e.g. `"writers.dirtied_bytes_per_second"`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, Bound>,
    /// What differs on some kernels: `"5.10"`, `"6.12.43"`, `">=6.8"`, `"<6.1"`. Ranges apply first, then
    /// the most exact; lists replace lists, figures are merged by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kernels: BTreeMap<KernelMatch, Expect>,
}

/// Where a figure should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// At least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Level>,
    /// At most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Level>,
}

impl Bound {
    /// Whether a value is within.
    pub fn holds(&self, value: f64) -> bool {
        self.min.is_none_or(|min| value >= min.0) && self.max.is_none_or(|max| value <= max.0)
    }
}

impl Expect {
    /// Whether figures whose names begin so are expected, on all kernels or some.
    pub fn has_figure(&self, beginning: &str) -> bool {
        self.figures.keys().any(|name| name.starts_with(beginning))
            || self.kernels.values().any(|over| over.has_figure(beginning))
    }

    /// What is expected on one kernel: this, with what differs there laid over it.
    pub fn on(&self, kernel: KernelVersion) -> Expect {
        let mut expect = Expect { kernels: BTreeMap::new(), ..self.clone() };
        let mut matching: Vec<_> = self.kernels.iter().filter(|(wanted, _)| wanted.matches(kernel)).collect();
        matching.sort_by_key(|(wanted, _)| wanted.exactness());
        for (_, over) in matching {
            expect.found = over.found.clone().or(expect.found);
            expect.not_found = over.not_found.clone().or(expect.not_found);
            expect.quiet_from = over.quiet_from.or(expect.quiet_from);
            expect.confirmed.extend(over.confirmed.clone());
            expect.figures.extend(over.figures.iter().map(|(name, bound)| (name.clone(), *bound)));
        }
        expect
    }
}

/// Which kernels something applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KernelMatch {
    /// That version or later.
    Since(KernelVersion),
    /// Before that version.
    Before(KernelVersion),
    /// Every patch level of a release.
    Release(Series),
    /// One version.
    Exactly(KernelVersion),
}

impl KernelMatch {
    /// Whether it applies.
    pub fn matches(self, kernel: KernelVersion) -> bool {
        match self {
            KernelMatch::Since(version) => kernel >= version,
            KernelMatch::Before(version) => kernel < version,
            KernelMatch::Release(series) => kernel.series() == series,
            KernelMatch::Exactly(version) => kernel == version,
        }
    }

    fn exactness(self) -> u8 {
        match self {
            KernelMatch::Since(_) | KernelMatch::Before(_) => 0,
            KernelMatch::Release(..) => 1,
            KernelMatch::Exactly(_) => 2,
        }
    }
}

/// The text names no kernels.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid kernels {0:?}: expected \"5.10\", \"6.12.43\", \">=6.8\" or \"<6.1\"")]
pub struct NotAKernelMatch(String);

impl FromStr for KernelMatch {
    type Err = NotAKernelMatch;
    fn from_str(text: &str) -> Result<KernelMatch, NotAKernelMatch> {
        let version = |text: &str| -> Result<KernelVersion, NotAKernelMatch> {
            let dots = text.bytes().filter(|&b| b == b'.').count();
            if !text.bytes().all(|b| b.is_ascii_digit() || b == b'.') || !(1..=2).contains(&dots) || text.ends_with('.')
            {
                return Err(NotAKernelMatch(text.to_owned()));
            }
            text.parse().map_err(|_| NotAKernelMatch(text.to_owned()))
        };
        if let Some(rest) = text.strip_prefix(">=") {
            return version(rest).map(KernelMatch::Since);
        }
        if let Some(rest) = text.strip_prefix('<') {
            return version(rest).map(KernelMatch::Before);
        }
        let exact = version(text)?;
        Ok(match text.bytes().filter(|&b| b == b'.').count() {
            1 => KernelMatch::Release(exact.series()),
            _ => KernelMatch::Exactly(exact),
        })
    }
}

impl fmt::Display for KernelMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelMatch::Since(version) => write!(f, ">={version}"),
            KernelMatch::Before(version) => write!(f, "<{version}"),
            KernelMatch::Release(series) => write!(f, "{series}"),
            KernelMatch::Exactly(version) => version.fmt(f),
        }
    }
}

impl Serialize for KernelMatch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KernelMatch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<KernelMatch, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for KernelMatch {
    fn schema_name() -> Cow<'static, str> {
        "KernelMatch".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": r"^(>=|<)?[0-9]+\.[0-9]+(\.[0-9]+)?$" })
    }
}
