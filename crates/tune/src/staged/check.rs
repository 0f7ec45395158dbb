// SPDX-License-Identifier: MIT OR Apache-2.0
//! What must hold of the steps of a ramp before the first write. A plan is a file and may have been edited: each value of a
//! step lies between the value before it and the new one, no step voids the background threshold, and bounds can be broken.

use crate::host::Host;
use crate::port::Port;
use crate::ramp::{Memory, void_background};
use crate::slot::{Slot, Write};
use floodline_analysis::change::{Bound, IO_SOME_SHARE};
use floodline_analysis::prediction::PEAK;

/// A value of a setting: place of its attribute in the slot, the value as text, and what the kernel makes of it now in bytes,
/// if that is known.
struct Value<'a> {
    at: usize,
    text: &'a str,
    bytes: Option<f64>,
}

impl Value<'_> {
    /// The value as a number above 0. Nothing lies between a value and 0, which switches something off, or `max`.
    fn number(&self) -> Option<f64> {
        self.text.parse().ok().filter(|value: &f64| value.is_finite() && *value > 0.0)
    }

    /// Both values in one unit.
    fn compared(&self, other: &Value<'_>) -> Option<(f64, f64)> {
        if self.at == other.at { self.number().zip(other.number()) } else { self.bytes.zip(other.bytes) }
    }
}

fn is_of(slot: &Slot, names: [&str; 2]) -> bool {
    slot.attributes.first().is_some_and(|first| names.contains(&first.name.as_str()))
}

/// The write that sets what is in force now; `None` if it cannot be read.
fn now(host: &Host, slot: &Slot) -> Option<Write> {
    // The percent and the bytes of a device are views of one number.
    if let Some(written) = slot.attributes.get(slot.state) {
        return Some(Write::new(slot.state, Port::look(host, written).ok()?));
    }
    let at = slot.old.iter().position(|value| value != "0").unwrap_or(slot.state.checked_sub(1)?);
    slot.old.get(at).map(|value| Write::new(at, value))
}

/// Checks that the writes of a slot lead from what is in force to what the plan sets, each between the one before it and the
/// last. The error says which one does not.
pub(super) fn leads(host: &Host, slot: &Slot, writes: &[Write], memory: Option<&Memory>) -> Result<(), String> {
    let Some(last) = slot.writes.last() else { return Ok(()) };
    // Only a pair has values of two units: bytes, and percent of the memory.
    let of = |write: &Write| match slot.is_pair() && write.at == 1 {
        true => memory?.threshold(write).map(|bytes| bytes as f64),
        false => write.value.parse().ok(),
    };
    let start = now(host, slot);
    let started = start.as_ref().and_then(|start| {
        // A ratio in force has the threshold that the kernel prints.
        let printed = memory.filter(|_| slot.is_pair() && start.at == 1);
        match printed {
            Some(memory) if is_of(slot, crate::ramp::HARD) => Some(memory.hard as f64),
            Some(memory) if is_of(slot, crate::ramp::BACKGROUND) => Some(memory.background as f64),
            _ => of(start),
        }
    });
    let mut before = start.as_ref().map(|start| (start, started));
    for write in writes {
        let is_new = |write: &Write| (write.at, &write.value) == (last.at, &last.value);
        let shown = |write: &Write| format!("{}={}", slot.name(write), write.value);
        if !is_new(write) {
            let here = Value { at: write.at, text: &write.value, bytes: of(write) };
            let end = Value { at: last.at, text: &last.value, bytes: of(last) };
            let is_between = before.as_ref().is_some_and(|(before, bytes)| {
                let begin = Value { at: before.at, text: &before.value, bytes: *bytes };
                let numbers = [&begin, &here, &end].iter().all(|value| value.number().is_some());
                let sides = begin.compared(&here).zip(end.compared(&here));
                numbers
                    && sides.is_some_and(|((begin, by_begin), (end, by_end))| {
                        (begin <= by_begin && by_end <= end) || (begin >= by_begin && by_end >= end)
                    })
            });
            if !is_between {
                let from = before.map_or_else(|| "an unknown value".to_owned(), |(before, _)| shown(before));
                return Err(format!(
                    "step {} sets {}, which is not between {from} and {}",
                    write.step + 1,
                    shown(write),
                    shown(last)
                ));
            }
        }
        before = Some((write, of(write)));
    }
    Ok(())
}

/// Checks that no step before the last leaves a background threshold that the kernel does not use. `writes` are those of each
/// slot. A change that starts or ends with one is left to the warning about the whole change.
pub(super) fn thresholds(
    host: &Host,
    slots: &[Slot],
    writes: &[Vec<Write>],
    steps: usize,
    memory: Option<&Memory>,
) -> Result<(), String> {
    let Some(memory) = memory else { return Ok(()) };
    let old: Vec<Slot> =
        slots.iter().filter_map(|slot| Some(Slot { writes: vec![now(host, slot)?], ..slot.clone() })).collect();
    if void_background(slots, memory).is_some() || void_background(&old, memory).is_some() {
        return Ok(());
    }
    for step in 0..steps {
        let after = slots.iter().zip(writes).filter_map(|(slot, writes)| {
            let last = writes.iter().rfind(|write| write.step <= step)?;
            Some(Slot { writes: vec![last.clone()], ..slot.clone() })
        });
        if let Some(why) = void_background(&after.collect::<Vec<_>>(), memory) {
            return Err(format!("after step {}, {why}", step + 1));
        }
    }
    Ok(())
}

/// Checks that a bound is one that can hold and can be broken. `memory` is that of the host, bytes.
pub(super) fn bound(bound: &Bound, step: usize, memory: Option<u64>) -> Result<(), String> {
    let largest = match bound.figure.as_str() {
        IO_SOME_SHARE => 1.0,
        PEAK => memory.map_or(f64::MAX, |bytes| bytes as f64),
        _ => return Ok(()),
    };
    if bound.at_most > 0.0 && bound.at_most <= largest {
        return Ok(());
    }
    let expected = match bound.figure.as_str() {
        IO_SOME_SHARE => "a share above 0, at most 1",
        _ => "bytes above 0, at most the memory of the host",
    };
    Err(format!("step {step} has a bound of {} on {}, expected {expected}", bound.at_most, bound.figure))
}
