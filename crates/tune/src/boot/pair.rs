// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel makes of writes in their order: a value out of range is refused, and a member of a bytes/ratio pair
//! zeroes the other one.

use super::applier::Assignment;
use crate::knob::sysctl_range;
use std::collections::BTreeMap;

/// Settings after boot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Boot {
    /// Key with slashes → value and the line that set it. Keys that nothing set are left out.
    set: BTreeMap<String, (u64, String)>,
}

/// Pairs, and whether a write of the value that is in force counts as a write.
const PAIRS: [(&str, &str, bool); 2] =
    [("vm/dirty_bytes", "vm/dirty_ratio", false), ("vm/dirty_background_bytes", "vm/dirty_background_ratio", true)];

/// What a kernel starts with.
const DEFAULTS: [(&str, u64); 2] = [("vm/dirty_ratio", 20), ("vm/dirty_background_ratio", 10)];

impl Boot {
    /// Settings after these writes, from the kernel's defaults.
    pub fn after(writes: &[Assignment]) -> Boot {
        let mut boot = Boot::default();
        for write in writes {
            boot.write(write);
        }
        boot
    }

    fn write(&mut self, write: &Assignment) {
        let Some(name) = write.key.strip_prefix("vm/") else { return };
        let (Some((min, max)), Ok(value)) = (sysctl_range(name), write.value.parse::<u64>()) else { return };
        if !(min..=max).contains(&value) {
            return;
        }
        let before = self.value(&write.key);
        let pair = PAIRS.iter().find(|(bytes, ratio, _)| [bytes, ratio].contains(&&write.key.as_str()));
        if let Some((bytes, ratio, always)) = pair {
            let partner = if write.key == *bytes { ratio } else { bytes };
            if *always || before != Some(value) {
                self.set.insert((*partner).to_owned(), (0, write.by.clone()));
            }
        }
        self.set.insert(write.key.clone(), (value, write.by.clone()));
    }

    /// Value of a key, by its name with slashes; `None` if nothing sets it and its default is not known here.
    pub fn value(&self, key: &str) -> Option<u64> {
        let set = self.set.get(key).map(|(value, _)| *value);
        set.or_else(|| DEFAULTS.iter().find(|(name, _)| *name == key).map(|(_, value)| *value))
            .or_else(|| PAIRS.iter().any(|(bytes, _, _)| *bytes == key).then_some(0))
    }

    /// Line that decided a key, as `PATH:LINE`.
    pub fn by(&self, key: &str) -> Option<&str> {
        self.set.get(key).map(|(_, by)| by.as_str())
    }

    /// What a line of a file leaves in force of a setting: a key with slashes, its value, and the line, as `PATH:LINE`. Of a bytes/ratio
    /// pair that is the member that is not zero.
    pub fn in_force(&self, key: &str) -> Option<(&str, u64, &str)> {
        let partner = PAIRS.iter().find_map(|(bytes, ratio, _)| match key {
            _ if key == *bytes => Some(*ratio),
            _ if key == *ratio => Some(*bytes),
            _ => None,
        });
        let own = self.set.get_key_value(key)?;
        let of_partner = partner.and_then(|partner| self.set.get_key_value(partner));
        let is_in_force = |(_, (value, _)): &(&String, &(u64, String))| own.1.0 == 0 && *value > 0;
        let (key, (value, by)) = of_partner.filter(is_in_force).unwrap_or(own);
        Some((key, *value, by))
    }
}
