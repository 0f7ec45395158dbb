// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of knobs that a plan may change: the file of each, the values it takes, and the other attribute that the
//! kernel changes with it. A knob without a row here is never written. Names are those of
//! [`Change::knob`](floodline_analysis::change::Change::knob).

use crate::host::Host;
use crate::journald;
use floodline_record::nearest::nearest;
use serde::{Deserialize, Serialize};

/// How an attribute is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// A file that holds the value.
    File,
    /// Direct I/O of a loop device: `loop/dio` in sysfs, changed by the ioctl `LOOP_SET_DIRECT_IO`.
    LoopDirectIo,
    /// `Storage=` of a drop-in of journald, which is started again.
    Journald,
    /// One limit of one device in the `io.max` of a cgroup. The name ends with the device and the limit.
    IoMax,
}

/// One attribute of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attribute {
    /// Name of the knob.
    pub name: String,
    /// Path below the root of the host.
    pub path: String,
    /// How it is accessed.
    pub access: Access,
}

/// A knob, resolved on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    /// Attributes whose values are the state of the knob. Both members of a pair.
    pub state: Vec<Attribute>,
    /// The attribute that is written.
    pub written: Attribute,
    /// Whether a value that was written is read back as it is.
    pub is_exact: bool,
    values: Values,
}

/// Values that a knob takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    Number {
        min: u64,
        max: u64,
    },
    /// A number of bytes, rounded down to whole pages by the kernel, or `max`.
    Limit,
    /// A number above 0, or `max`.
    Rate,
    /// One of these words.
    Words(&'static [&'static str]),
}

/// A name that is not in the table, or a value that its knob does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KnobError {
    /// The name has no row.
    #[error("unknown knob {name:?}")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The value is refused.
    #[error("invalid value {value:?} for {name}: expected {expected}")]
    Value {
        /// Name of the knob.
        name: String,
        /// The value.
        value: String,
        /// What the knob takes.
        expected: String,
    },
}

/// Shown with an unknown name.
pub const NAMES: &str = "vm.dirty_bytes, vm.dirty_ratio, vm.dirty_background_bytes, vm.dirty_background_ratio, \
    vm.dirty_expire_centisecs, vm.dirty_writeback_centisecs, vm.dirtytime_expire_seconds, vm.laptop_mode, \
    bdi/8:0/max_ratio (min_ratio, max_bytes, min_bytes, strict_limit, read_ahead_kb), queue/sda/wbt_lat_usec, \
    cgroup/PATH/memory.high (memory.max), cgroup/PATH/io.max/8:0/wbps (rbps, riops, wiops), loop/loop0/direct_io, \
    journald/Storage";

/// Names of [`NAMES`] that are whole, for hints.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.split(", ").filter(|name| name.starts_with("vm.") || *name == journald::KNOB)
}

/// The name of a knob that is nearest to another name, for hints: a whole name, or an attribute of the same device.
pub fn near(name: &str) -> Option<String> {
    let of_device = || {
        let (device, attribute) = name.strip_prefix("bdi/")?.rsplit_once('/')?;
        let attribute = nearest(attribute, BDI.iter().map(|(known, ..)| *known))?;
        Some(format!("bdi/{device}/{attribute}"))
    };
    // A name that equals the typed one has a good attribute: its device is wrong, and no name helps.
    nearest(name, names()).map(str::to_owned).or_else(of_device).filter(|near| near != name)
}

const PAGE: u64 = 4096;
/// Since 6.10 and its backports, 2^32 pages and more are refused.
const DIRTY_BYTES_MAX: u64 = (u32::MAX as u64) * PAGE;
const INT_MAX: u64 = i32::MAX as u64;

/// A row of `vm`: name, other member of the pair, smallest and largest value.
type Row = (&'static str, Option<&'static str>, u64, u64);

const VM: &[Row] = &[
    ("dirty_ratio", Some("dirty_bytes"), 0, 100),
    ("dirty_bytes", Some("dirty_ratio"), 2 * PAGE, DIRTY_BYTES_MAX),
    ("dirty_background_ratio", Some("dirty_background_bytes"), 0, 100),
    ("dirty_background_bytes", Some("dirty_background_ratio"), 1, DIRTY_BYTES_MAX),
    ("dirty_expire_centisecs", None, 0, INT_MAX),
    ("dirty_writeback_centisecs", None, 0, INT_MAX),
    ("dirtytime_expire_seconds", None, 0, INT_MAX),
    ("laptop_mode", None, 0, INT_MAX),
];

/// Attributes of a bdi: name, smallest and largest value.
const BDI: &[(&str, u64, u64)] = &[
    ("max_ratio", 0, 100),
    ("min_ratio", 0, 100),
    ("max_bytes", 0, DIRTY_BYTES_MAX),
    ("min_bytes", 0, DIRTY_BYTES_MAX),
    ("strict_limit", 0, 1),
    ("read_ahead_kb", 0, 1 << 20),
];

/// Limits of a device in `io.max`.
const IO_MAX: &[&str] = &["rbps", "wbps", "riops", "wiops"];

impl Knob {
    /// The knob of a name, as the host has it.
    pub fn resolve(host: &Host, name: &str) -> Result<Knob, KnobError> {
        let name = name.trim();
        let unknown = || KnobError::Unknown { name: name.to_owned() };
        if let Some(sysctl) = name.strip_prefix("vm.").or_else(|| name.strip_prefix("vm/")) {
            return VM.iter().find(|row| row.0 == sysctl).map(sysctl_of).ok_or_else(unknown);
        }
        if name == journald::KNOB {
            return Ok(alone(name, journald::NOW.to_owned(), Access::Journald, Values::Words(journald::VALUES)));
        }
        let (family, rest) = name.split_once('/').ok_or_else(unknown)?;
        let (object, attribute) = rest.rsplit_once('/').ok_or_else(unknown)?;
        let is_component = !object.contains('/') && is_path(object);
        match family {
            "bdi" if is_component => {
                BDI.iter().find(|row| row.0 == attribute).map(|row| bdi(host, object, row)).ok_or_else(unknown)
            }
            "queue" if is_component && attribute == "wbt_lat_usec" => {
                let path = format!("sys/block/{object}/queue/{attribute}");
                Ok(alone(name, path, Access::File, Values::Number { min: 0, max: INT_MAX }))
            }
            "cgroup" if is_path(object) && ["memory.high", "memory.max"].contains(&attribute) => {
                let path = format!("sys/fs/cgroup/{object}/{attribute}");
                Ok(alone(name, path, Access::File, Values::Limit))
            }
            "cgroup" if IO_MAX.contains(&attribute) => {
                let (path, device) = object.rsplit_once('/').ok_or_else(unknown)?;
                let is_number =
                    |part: &str| part.parse::<u32>().is_ok() && part.bytes().all(|byte| byte.is_ascii_digit());
                let is_device =
                    device.split_once(':').is_some_and(|(major, minor)| is_number(major) && is_number(minor));
                if !is_device || !is_path(path) || !path.ends_with("/io.max") {
                    return Err(unknown());
                }
                Ok(alone(name, format!("sys/fs/cgroup/{path}"), Access::IoMax, Values::Rate))
            }
            "loop" if is_component && object.starts_with("loop") && attribute == "direct_io" => {
                let path = format!("sys/block/{object}/loop/dio");
                Ok(alone(name, path, Access::LoopDirectIo, Values::Number { min: 0, max: 1 }))
            }
            _ => Err(unknown()),
        }
    }

    /// A value as the kernel shows it after it is written.
    pub fn canonical(&self, value: &str) -> Result<String, KnobError> {
        let refused =
            |expected: String| KnobError::Value { name: self.written.name.clone(), value: value.to_owned(), expected };
        let number = value.trim().parse::<u64>().ok();
        match (self.values, number) {
            (Values::Number { min, max }, Some(number)) if (min..=max).contains(&number) => Ok(number.to_string()),
            (Values::Number { min, max }, _) => Err(refused(format!("a number from {min} to {max}"))),
            (Values::Limit, Some(number)) => Ok((number - number % PAGE).to_string()),
            (Values::Limit, None) if value.trim() == "max" => Ok("max".to_owned()),
            (Values::Limit, None) => Err(refused("a number of bytes, or max".to_owned())),
            (Values::Rate, Some(number)) if number > 0 => Ok(number.to_string()),
            (Values::Rate, None) if value.trim() == "max" => Ok("max".to_owned()),
            (Values::Rate, _) => Err(refused("a number above 0, or max".to_owned())),
            (Values::Words(words), _) => match words.iter().find(|word| **word == value.trim()) {
                Some(word) => Ok((*word).to_owned()),
                None => Err(refused(format!("one of {}", words.join(", ")))),
            },
        }
    }

    /// Place of the written attribute among those of the state; `None` if the state is held by another attribute.
    pub fn place(&self) -> Option<usize> {
        self.state.iter().position(|attribute| *attribute == self.written)
    }

    /// Whether writing one of its attributes zeroes the other.
    pub fn is_pair(&self) -> bool {
        self.state.len() == 2
    }
}

/// Smallest and largest value of a `vm` sysctl of the table.
pub fn sysctl_range(name: &str) -> Option<(u64, u64)> {
    VM.iter().find(|row| row.0 == name).map(|row| (row.2, row.3))
}

fn sysctl_of(row: &Row) -> Knob {
    let attribute = |name: &str| Attribute {
        name: format!("vm.{name}"),
        path: format!("proc/sys/vm/{name}"),
        access: Access::File,
    };
    let (name, partner, min, max) = *row;
    let written = attribute(name);
    let mut state = vec![written.clone()];
    state.extend(partner.map(attribute));
    // One order for both members, so that two changes of one pair are seen as such.
    state.sort_by(|a, b| a.name.cmp(&b.name));
    Knob { state, written, is_exact: true, values: Values::Number { min, max } }
}

fn bdi(host: &Host, object: &str, (attribute, min, max): &(&str, u64, u64)) -> Knob {
    let of = |attribute: &str| Attribute {
        name: format!("bdi/{object}/{attribute}"),
        path: format!("sys/class/bdi/{object}/{attribute}"),
        access: Access::File,
    };
    let written = of(attribute);
    // Since 6.2, percent and bytes are views of one number, which `*_ratio_fine` shows exactly.
    let fine = match *attribute {
        "max_ratio" | "max_bytes" => Some(of("max_ratio_fine")),
        "min_ratio" | "min_bytes" => Some(of("min_ratio_fine")),
        _ => None,
    };
    let fine = fine.filter(|fine| host.path(&fine.path).exists());
    let is_exact = fine.is_none();
    Knob {
        state: vec![fine.unwrap_or_else(|| written.clone())],
        written,
        is_exact,
        values: Values::Number { min: *min, max: *max },
    }
}

fn alone(name: &str, path: String, access: Access, values: Values) -> Knob {
    let written = Attribute { name: name.to_owned(), path, access };
    Knob { state: vec![written.clone()], written, is_exact: true, values }
}

/// Whether a path stays where it starts.
fn is_path(path: &str) -> bool {
    path.len() < 4096
        && path.split('/').all(|part| !part.is_empty() && part != "." && part != ".." && !part.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_knob_has_a_near_one() {
        assert_eq!(near("vm.dirty_byte").as_deref(), Some("vm.dirty_bytes"));
        assert_eq!(near("bdi/8:0/max_ration").as_deref(), Some("bdi/8:0/max_ratio"));
        assert_eq!(near("bdi/8:0/colour"), None);
    }

    fn check(name: &str, value: &str, expect: &str) {
        let host = Host::below(std::path::Path::new("/nonexistent"));
        let found = Knob::resolve(&host, name).and_then(|knob| Ok((knob.canonical(value)?, knob)));
        let shown = match found {
            Ok((value, knob)) => format!("{}={value}", knob.written.path),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expect, "{name}={value}");
    }

    #[test]
    fn only_what_is_in_the_table_has_a_path() {
        check("vm.dirty_bytes", "1048576", "proc/sys/vm/dirty_bytes=1048576");
        check("vm/dirty_ratio", "020", "proc/sys/vm/dirty_ratio=20");
        check("bdi/8:0/max_ratio", "5", "sys/class/bdi/8:0/max_ratio=5");
        check("queue/sda/wbt_lat_usec", "0", "sys/block/sda/queue/wbt_lat_usec=0");
        check("cgroup/a/b.scope/memory.high", "5000", "sys/fs/cgroup/a/b.scope/memory.high=4096");
        check("cgroup/a/memory.high", "max", "sys/fs/cgroup/a/memory.high=max");
        check("loop/loop3/direct_io", "1", "sys/block/loop3/loop/dio=1");
        check("journald/Storage", "volatile", &format!("{}=volatile", journald::NOW));
        check("cgroup/a/b/io.max/8:16/wbps", "1048576", "sys/fs/cgroup/a/b/io.max=1048576");
        check("cgroup/a/io.max/8:16/riops", "max", "sys/fs/cgroup/a/io.max=max");
        for name in [
            "kernel.panic",
            "vm.swappiness",
            "vm.dirty_*",
            "bdi/../max_ratio",
            "bdi/a/b/max_ratio",
            "cgroup/../../etc/memory.high",
            "cgroup/memory.high",
            "cgroup//memory.high",
            "loop/sda/direct_io",
            "queue/sda/scheduler",
            "journald/SystemMaxUse",
            "cgroup/a/io.max",
            "cgroup/a/io.max/8:0/idle",
            "cgroup/a/io.max/sda/wbps",
            "cgroup/io.max/8:0/wbps",
            "cgroup/../io.max/8:0/wbps",
            "cgroup/a/io.max/8:0 rbps=1\n8:0/wbps",
            "",
            "/",
        ] {
            check(name, "1", &format!("unknown knob {name:?}"));
        }
    }

    #[test]
    fn a_value_that_the_kernel_refuses_is_refused_before_it_is_written() {
        check("vm.dirty_ratio", "101", "invalid value \"101\" for vm.dirty_ratio: expected a number from 0 to 100");
        check(
            "vm.dirty_bytes",
            "0",
            "invalid value \"0\" for vm.dirty_bytes: expected a number from 8192 to 17592186040320",
        );
        check(
            "vm.laptop_mode",
            "-1",
            "invalid value \"-1\" for vm.laptop_mode: expected a number from 0 to 2147483647",
        );
        check(
            "cgroup/a/memory.high",
            "1G",
            "invalid value \"1G\" for cgroup/a/memory.high: expected a number of bytes, or max",
        );
        check(
            "journald/Storage",
            "Volatile",
            "invalid value \"Volatile\" for journald/Storage: expected one of auto, none, persistent, volatile, unset",
        );
        check(
            "cgroup/a/io.max/8:0/wbps",
            "0",
            "invalid value \"0\" for cgroup/a/io.max/8:0/wbps: expected a number above 0, or max",
        );
    }

    #[test]
    fn both_members_of_a_pair_have_one_state() {
        let host = Host::below(std::path::Path::new("/nonexistent"));
        let state = |name| Knob::resolve(&host, name).unwrap().state;
        assert_eq!(state("vm.dirty_bytes"), state("vm.dirty_ratio"));
        assert_eq!(state("vm.dirty_background_bytes"), state("vm.dirty_background_ratio"));
        assert_eq!(state("vm.dirty_bytes").len(), 2);
    }
}
