// SPDX-License-Identifier: MIT OR Apache-2.0
//! A slot: one setting of the host with everything that is needed to put it back. Both members of a pair are one slot.
//! The journal holds it, the guard acts on it. A value that is neither the old one nor one of ours belongs to another
//! administrator and stays (compare and set).

use crate::host::Host;
use crate::knob::{Access, Attribute, Knob};
use crate::port::{self, Port};
use serde::{Deserialize, Serialize};
use std::io;

/// One write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// Place of the attribute in the slot.
    pub at: usize,
    /// Value.
    pub value: String,
    /// Number of the step of the plan's ramp that it belongs to, from 0.
    #[serde(default, skip_serializing_if = "is_first")]
    pub step: usize,
}

impl Write {
    /// A write of the first step.
    pub fn new(at: usize, value: impl Into<String>) -> Write {
        Write { at, value: value.into(), step: 0 }
    }
}

fn is_first(step: &usize) -> bool {
    *step == 0
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slot {
    /// Attributes that are read or written. The first [`Slot::state`] of them hold the setting.
    pub attributes: Vec<Attribute>,
    /// Number of attributes that hold the setting: 2 for a pair.
    pub state: usize,
    /// Whether a value that was written is read back as it is.
    pub is_exact: bool,
    /// Values before the change.
    pub old: Vec<String>,
    /// Writes that set it, in order. All but the last are steps of a ramp.
    pub writes: Vec<Write>,
    /// Writes that put it back, in order.
    pub undo: Vec<Write>,
    /// Steps of a ramp before these, in a trial that sets it and puts it back by turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub back: Vec<Write>,
}

/// Outcome of putting a slot back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It had its old value already.
    Unchanged,
    /// It has its old value again.
    PutBack,
    /// Its value is neither the old one nor one of ours. It was left unchanged.
    Foreign,
    /// It cannot be read or written.
    Failed,
    /// Its cgroup or device was removed.
    Gone,
}

impl Outcome {
    /// Returns true if none of our values is in force.
    pub fn is_undone(self) -> bool {
        !matches!(self, Outcome::Failed)
    }
}

impl Slot {
    /// The slot of a knob with its present values, and the write of a new value. `value` is canonical.
    pub fn read(host: &Host, knob: &Knob, value: String) -> io::Result<Slot> {
        let old: Vec<String> =
            knob.state.iter().map(|attribute| Port::look(host, attribute)).collect::<io::Result<_>>()?;
        if knob.place().is_none() {
            Port::may_write(host, &knob.written)?;
        }
        let mut attributes = knob.state.clone();
        let at = knob.place().unwrap_or_else(|| {
            attributes.push(knob.written.clone());
            attributes.len() - 1
        });
        let undo = undo(&old);
        let writes = vec![Write::new(at, value)];
        Ok(Slot { attributes, state: knob.state.len(), is_exact: knob.is_exact, old, writes, undo, back: Vec::new() })
    }

    /// Whether it is a bytes/ratio pair.
    pub fn is_pair(&self) -> bool {
        self.state == 2
    }

    /// Whether it is a setting of journald, whose restart takes longer than a write.
    pub fn is_journald(&self) -> bool {
        self.attributes.first().is_some_and(|first| first.access == Access::Journald)
    }

    /// Name of the attribute that a write sets.
    pub fn name(&self, write: &Write) -> &str {
        self.attributes.get(write.at).map_or("", |attribute| &attribute.name)
    }

    /// Values of the state after a write.
    pub fn after(&self, write: &Write) -> Vec<String> {
        (0..self.state).map(|at| if at == write.at { write.value.clone() } else { "0".to_owned() }).collect()
    }

    /// Values of the state after the last write; `None` where they are known only from reading them.
    pub fn wanted(&self) -> Option<Vec<String>> {
        self.is_exact.then(|| self.writes.last().map(|write| self.after(write))).flatten()
    }

    /// Old value as `NAME=VALUE`: of a pair the member that was in force.
    pub fn old_shown(&self) -> String {
        let in_force = self.old.iter().position(|value| self.old.len() > 1 && value != "0").unwrap_or(0);
        let name = self.attributes.get(in_force).map_or("", |attribute| &attribute.name);
        format!("{name}={}", self.old.get(in_force).map_or("", String::as_str))
    }

    /// New value as `NAME=VALUE`.
    pub fn new_shown(&self) -> String {
        self.writes.last().map(|write| format!("{}={}", self.name(write), write.value)).unwrap_or_default()
    }
}

/// Writes that bring a state back. A pair of which both are 0 needs a detour: the kernel takes a ratio of 0 only as a
/// change from another ratio.
fn undo(old: &[String]) -> Vec<Write> {
    match old {
        [bytes, ratio] if bytes == "0" && ratio == "0" => ["1", "0"].map(|value| Write::new(1, value)).to_vec(),
        [bytes, ratio] if bytes == "0" => vec![Write::new(1, ratio)],
        _ => old.first().map(|value| Write::new(0, value)).into_iter().collect(),
    }
}

/// A slot with its attributes open and all values as bytes: nothing in [`Live::put_back`] takes memory or looks up a
/// path.
#[derive(Debug)]
pub struct Live {
    ports: Vec<Port>,
    state: usize,
    is_exact: bool,
    old: Vec<Vec<u8>>,
    ours: Vec<Vec<Vec<u8>>>,
    undo: Vec<(usize, Vec<u8>)>,
}

impl Live {
    /// Opens the attributes of a slot.
    pub fn open(host: &Host, slot: &Slot) -> io::Result<Live> {
        let ports = slot.attributes.iter().map(|attribute| Port::open(host, attribute)).collect::<io::Result<_>>()?;
        let bytes = |state: &[String]| state.iter().map(|value| value.clone().into_bytes()).collect::<Vec<_>>();
        let mut ours: Vec<_> = slot.writes.iter().map(|write| bytes(&slot.after(write))).collect();
        // The first half of an undo that takes two writes, and of a write to a pair in an imitated host.
        ours.extend(slot.undo.iter().chain(&slot.back).map(|write| bytes(&slot.after(write))));
        if host.is_imitated() && slot.is_pair() {
            ours.push(vec![b"0".to_vec(), b"0".to_vec()]);
        }
        Ok(Live {
            ports,
            state: slot.state,
            is_exact: slot.is_exact,
            old: bytes(&slot.old),
            ours,
            undo: slot.undo.iter().map(|write| (write.at, write.value.clone().into_bytes())).collect(),
        })
    }

    /// Puts a value back in a file that exists in memory only, so that all code of a restore has run once.
    pub fn rehearse() -> io::Result<()> {
        let port = Port::rehearsal()?;
        port.write(b"1")?;
        let bytes = |text: &str| text.as_bytes().to_vec();
        let live = Live {
            ports: vec![port],
            state: 1,
            is_exact: true,
            old: vec![bytes("0")],
            ours: vec![vec![bytes("1")]],
            undo: vec![(0, bytes("0"))],
        };
        match live.put_back() {
            Outcome::PutBack => Ok(()),
            _ => Err(io::ErrorKind::Other.into()),
        }
    }

    /// Writes one value.
    pub fn write(&self, write: &Write) -> io::Result<()> {
        port::write(&self.ports, self.state == 2, write.at, write.value.as_bytes())
    }

    /// Values of the state as they are now.
    pub fn values(&self) -> io::Result<Vec<String>> {
        self.ports.iter().take(self.state).map(|port| Ok(port.read()?.to_text())).collect()
    }

    /// Whether the old value is in force.
    pub fn is_old(&self) -> bool {
        self.is(&self.old).unwrap_or(false)
    }

    /// Puts the old value back if the present one is ours, and reads it back.
    pub fn put_back(&self) -> Outcome {
        match self.is(&self.old) {
            Ok(true) => return Outcome::Unchanged,
            Ok(false) => {}
            Err(error) => return failed(&error),
        }
        if self.is_exact && !self.ours.iter().any(|ours| self.is(ours).unwrap_or(false)) {
            return Outcome::Foreign;
        }
        for (at, value) in &self.undo {
            if let Err(error) = port::write(&self.ports, self.state == 2, *at, value) {
                return failed(&error);
            }
        }
        match self.is(&self.old) {
            Ok(true) => Outcome::PutBack,
            _ => Outcome::Failed,
        }
    }

    /// Whether the state has these values.
    fn is(&self, values: &[Vec<u8>]) -> io::Result<bool> {
        for (port, value) in self.ports.iter().take(self.state).zip(values) {
            if port.read()?.as_bytes() != value.as_slice() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// An attribute whose cgroup or device was removed fails with ENODEV.
fn failed(error: &io::Error) -> Outcome {
    if error.raw_os_error() == Some(libc::ENODEV) { Outcome::Gone } else { Outcome::Failed }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pair in an imitated host: values now, the change, what another administrator writes, what is expected.
    fn check(before: [&str; 2], change: (&str, &str), meanwhile: Option<[&str; 2]>, expect: (Outcome, [&str; 2])) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("proc/sys/vm")).unwrap();
        let set = |values: [&str; 2]| {
            for (name, value) in ["dirty_bytes", "dirty_ratio"].iter().zip(values) {
                std::fs::write(folder.path().join("proc/sys/vm").join(name), format!("{value}\n")).unwrap();
            }
        };
        set(before);
        let host = Host::below(folder.path());
        let knob = Knob::resolve(&host, change.0).unwrap();
        let slot = Slot::read(&host, &knob, change.1.to_owned()).unwrap();
        let live = Live::open(&host, &slot).unwrap();
        for write in &slot.writes {
            live.write(write).unwrap();
        }
        assert_eq!(Some(live.values().unwrap()), slot.wanted());
        if let Some(values) = meanwhile {
            set(values);
        }
        let outcome = live.put_back();
        let values = live.values().unwrap();
        assert_eq!((outcome, [values[0].as_str(), values[1].as_str()]), expect, "{before:?} {change:?} {meanwhile:?}");
    }

    #[test]
    fn both_members_of_a_pair_are_put_back() {
        check(["0", "20"], ("vm.dirty_bytes", "8388608"), None, (Outcome::PutBack, ["0", "20"]));
        check(["8388608", "0"], ("vm.dirty_ratio", "20"), None, (Outcome::PutBack, ["8388608", "0"]));
        check(["0", "20"], ("vm.dirty_ratio", "5"), None, (Outcome::PutBack, ["0", "20"]));
        check(["0", "0"], ("vm.dirty_bytes", "8388608"), None, (Outcome::PutBack, ["0", "0"]));
    }

    #[test]
    fn a_value_of_another_administrator_stays() {
        let theirs = ["4194304", "0"];
        check(["0", "20"], ("vm.dirty_bytes", "8388608"), Some(theirs), (Outcome::Foreign, theirs));
        check(["0", "20"], ("vm.dirty_bytes", "8388608"), Some(["0", "20"]), (Outcome::Unchanged, ["0", "20"]));
    }
}
