// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pre-flight of a change for a fleet: recording and change → one [`Row`]. Tier 1 is arithmetic on every host. Tier 2
//! runs the twin of hosts that tier 1 flags or leaves near a limit. Pure: it opens no file and starts no thread. A
//! recording that cannot answer is a row with a cause, never an error.

mod aged;
mod arithmetic;
mod backlog;
mod between;
mod boot;
mod change;
mod cliff;
mod copies;
mod harm;
mod label;
mod memory;
mod mounts;
mod overlay;
mod overwritten;
mod packed;
mod read;
mod removed;
mod reread;
mod rewriters;
mod row;
mod rules;
mod simulated;
mod storm;
mod summary;
mod waits;

pub use change::{Change, NotAChange};
pub use copies::note_copies;
pub use harm::Felt;
pub use label::tell_apart;
pub use packed::Packed;
pub use read::{SAMPLES_MAX, Unreadable};
pub use row::{Cause, Confidence, Row, SCHEMA, Verdict};
pub use summary::{Group, SUMMARY_SCHEMA, Summary, keep_latest, thousands};

use floodline_twin::Recorded;
use std::io::{self, Read};

/// Depth of a pre-flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Depth {
    /// Whether hosts that arithmetic flags are simulated.
    pub twin: bool,
    /// Share of all other hosts that is simulated as a control, from 0 to 1. Chosen by a hash of the host's name.
    pub control: f64,
    /// Simulated events after which a run ends.
    pub events_max: u64,
}

impl Depth {
    /// Arithmetic only.
    pub const ARITHMETIC: Depth = Depth { twin: false, control: 0.0, events_max: 0 };
    /// Arithmetic, then the twin of flagged hosts and of 1 % of the others.
    pub const WHOLE: Depth = Depth { twin: true, control: 0.01, events_max: 40_000_000 };
}

impl Default for Depth {
    fn default() -> Depth {
        Depth::WHOLE
    }
}

/// Judges a change by the bytes of a recording. `name` is the name of the file.
pub fn preflight(bytes: &[u8], name: &str, change: &Change, depth: Depth) -> Row {
    preflight_of(|| Ok(bytes), name, change, depth, &|| true)
}

/// Judges a change by a recording that `open` opens: once for the arithmetic, and once more for the twin. Calls `go_on`
/// while the twin runs. If it ends the run, the arithmetic is the result.
pub fn preflight_of<R: Read>(
    open: impl Fn() -> io::Result<R>,
    name: &str,
    change: &Change,
    depth: Depth,
    go_on: &dyn Fn() -> bool,
) -> Row {
    let opened = || open().map_err(|error| Unreadable::of_io(&error));
    let (window, note) = match read::window(opened, change) {
        Ok(read) => read,
        Err(why) => return why.named_by(&start(open())).row(name, change),
    };
    let mut row = arithmetic::judge(&window, name, change);
    let has_holes = note.as_ref().is_some_and(|note| note.has_holes);
    row.cut = note.as_ref().is_some_and(|note| note.is_cut);
    row.damaged = has_holes;
    row.notes.extend(note.map(|note| note.text));
    if let Some(wanted) = simulated::is_wanted(&row, change, depth) {
        simulate(&opened, change, wanted, depth, &mut row, go_on);
    }
    row.settle();
    if has_holes {
        row.confidence = Confidence::Low;
    }
    row
}

/// The first bytes of a file; none if they cannot be read.
fn start(opened: io::Result<impl Read>) -> Vec<u8> {
    let mut start = Vec::new();
    match opened.and_then(|file| file.take(read::START).read_to_end(&mut start)) {
        Ok(_) => start,
        Err(_) => Vec::new(),
    }
}

/// Runs the twin of a host on a recording that is opened once more.
fn simulate<R: Read>(
    opened: &impl Fn() -> Result<R, Unreadable>,
    change: &Change,
    wanted: simulated::Wanted,
    depth: Depth,
    row: &mut Row,
    go_on: &dyn Fn() -> bool,
) {
    // The window keeps sums only. A twin needs the activity of each process over time: the file is read again.
    match opened().and_then(read::fold::<Recorded>) {
        Ok((recorded, _)) => simulated::refine(&recorded, change, wanted, depth, row, go_on),
        Err(why) => row.notes.push(format!("Not simulated: {}", why.why)),
    }
}

/// Judges a change by a recording that is folded already.
pub fn preflight_recorded(
    recorded: &Recorded,
    name: &str,
    change: &Change,
    depth: Depth,
    go_on: &dyn Fn() -> bool,
) -> Row {
    let mut row = arithmetic::judge(&recorded.window, name, change);
    if let Some(wanted) = simulated::is_wanted(&row, change, depth) {
        simulated::refine(recorded, change, wanted, depth, &mut row, go_on);
    }
    row.settle();
    row
}
