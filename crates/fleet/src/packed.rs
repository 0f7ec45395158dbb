// SPDX-License-Identifier: MIT OR Apache-2.0
//! A row on its way from one process to another: all that the JSON form has, and what only [`crate::keep_latest`] needs.

use crate::row::{Cause, Row};
use serde::{Deserialize, Deserializer, Serialize};

/// A row with its hidden part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Packed {
    row: Row,
    is_named: bool,
}

impl From<Row> for Packed {
    fn from(row: Row) -> Packed {
        Packed { is_named: row.is_named, row }
    }
}

impl From<Packed> for Row {
    fn from(packed: Packed) -> Row {
        Row { is_named: packed.is_named, ..packed.row }
    }
}

impl<'de> Deserialize<'de> for Cause {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Cause, D::Error> {
        let word = String::deserialize(deserializer)?;
        let known = Cause::ALL.iter().find(|cause| cause.name() == word);
        known.copied().ok_or_else(|| serde::de::Error::custom("a cause of another version"))
    }
}

/// Reads a number; JSON has null where one is not finite.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;

    #[test]
    fn every_cause_and_the_hidden_part_arrive() {
        let change = Change::default();
        for cause in Cause::ALL {
            let mut row = Row::not_known("a.flr", &change, *cause, "Why.".to_owned());
            row.name_host("web1".to_owned());
            (row.severity, row.margin, row.demand_bytes) = (0.1, Some(1.5), Some(u64::MAX));
            let sent = serde_json::to_string(&Packed::from(row.clone())).unwrap();
            let arrived: Packed = serde_json::from_str(&sent).unwrap();
            assert_eq!(Row::from(arrived), row);
        }
        let row = Row { severity: f64::INFINITY, ..Row::default() };
        let sent = serde_json::to_string(&Packed::from(row)).unwrap();
        assert!(Row::from(serde_json::from_str::<Packed>(&sent).unwrap()).severity.is_nan());
    }
}
