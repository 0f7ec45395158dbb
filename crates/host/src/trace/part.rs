// SPDX-License-Identifier: MIT OR Apache-2.0
//! A part of the tracer: one C file in `bpf/`, one Rust file beside this one, one line in [`PARTS`]. Each part is
//! loaded, or refused, on its own.

use super::load::Loaded;
use super::table::Table;
use super::tracefs::Tracefs;
use super::tracepoint::Tracepoint;
use super::{bytes, flusher, switches, throttle};
use crate::root::HostRoot;
use floodline_record::gap::{Cause, Source};
use floodline_record::record::{Event, What};
use floodline_record::units::Nanos;

/// All parts, in the order in which they are loaded.
pub(super) static PARTS: &[&Part] = &[&throttle::PART, &bytes::PART, &flusher::PART, &switches::PART];

/// One part of the tracer.
pub(super) struct Part {
    /// Its name in recordings and reports.
    pub(super) name: &'static str,
    /// Source of its gaps.
    pub(super) source: Source,
    /// The compiled programs.
    pub(super) object: &'static [u8],
    /// Tracepoints that they are attached to.
    pub(super) tracepoints: &'static [Wanted],
    /// Facts that are missing if no program may be attached to a function; empty if the part has no such program.
    pub(super) functions: &'static str,
    /// Functions that not every kernel has, that of folios first, and the facts that are missing without them.
    pub(super) optional: (&'static [&'static str], &'static str),
    /// All tables of the object.
    pub(super) tables: &'static [Table],
    /// Whether it is useful only on machines where inodes belong to cgroups. Elsewhere every folio that a cgroup of
    /// version 1 dirties would count as foreign.
    pub(super) of_cgroup_writeback: bool,
    /// Makes the reader that turns the tables into events.
    pub(super) reader: fn(&Tracefs<'_>) -> Box<dyn Reader>,
}

/// A tracepoint of a part.
pub(super) struct Wanted {
    /// The tracepoint.
    pub(super) tracepoint: &'static Tracepoint,
    /// Whether the part can do without it.
    pub(super) need: Need,
}

/// When a part needs a tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// The part is not loaded without it.
    Always,
    /// Optional: the part reports more with it.
    Never,
    /// Replaces functions if no program may be attached to them.
    WithoutFunctions,
}

/// Turns the tables of a part into events.
pub(super) trait Reader: Send {
    /// Reads and clears the entries of one epoch.
    fn read(&mut self, loaded: &Loaded, turn: &Turn<'_>, out: &mut Vec<Event>) -> Result<(), Cause>;
}

/// The interval that is being read.
pub(super) struct Turn<'a> {
    /// The machine.
    pub(super) root: &'a HostRoot,
    /// Epoch of the entries of this interval.
    pub(super) epoch: u32,
    /// When it began.
    pub(super) since: Nanos,
    /// When it ended.
    pub(super) until: Nanos,
}

impl Turn<'_> {
    /// Makes an event for the whole interval.
    pub(super) fn event(&self, what: What) -> Event {
        Event { at: self.until, what }
    }
}

/// An object file embedded in this binary, aligned for its reader.
#[repr(align(8))]
pub(super) struct Aligned<T: ?Sized>(pub(super) T);

/// The object that `build/` compiled from `bpf/NAME.bpf.c`.
macro_rules! object {
    ($name:literal) => {{
        static OBJECT: &$crate::trace::part::Aligned<[u8]> =
            &$crate::trace::part::Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o")));
        &OBJECT.0
    }};
}
pub(super) use object;
