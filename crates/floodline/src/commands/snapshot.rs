// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline snapshot`: one look at the machine, small enough to be collected from thousands of hosts: settings, memory,
//! devices, mounts, and of each cgroup what its dirty limit depends on. No rates and no processes.

use super::Run;
use super::record::Recorder;
use crate::console::Console;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::live::{Host, StatReads};
use crate::observe::{Schedule, observe};
use crate::output::Existing;
use crate::redaction::Redaction;
use floodline_host::Needs;
use floodline_record::facts::HostFacts;
use floodline_record::name::Name;
use floodline_record::record::Record;
use std::path::PathBuf;
use std::time::Duration;

/// Write one small sample of this machine, for floodline preflight and budget
#[derive(clap::Parser)]
#[command(
    name = "snapshot",
    after_help = "A snapshot contains settings, memory, devices, mounts, and what the dirty limit of each cgroup depends \
        on. It contains no rates and no processes: floodline record --for 60s records these.\n\n\
        Examples:\n  \
        (umask 077; ssh db1 sudo floodline snapshot > db1.flr)\n  \
        floodline snapshot --redact @redact.key -o host.flr\n  \
        floodline budget db1.flr --as-if cgroup=v2\n  \
        floodline preflight snapshots/ --cgroup v2"
)]
pub(crate) struct Snapshot {
    /// File to write; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Read a captured tree instead of this machine
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    redaction: Redaction,
}

/// One look.
const ONCE: Schedule = Schedule { length: Some(Duration::ZERO), every: Duration::from_secs(1) };

impl Run for Snapshot {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        // A collector cannot use a part of a snapshot.
        console.note(&self.written().map_err(CliError::needed_whole)?);
        Ok(Exit::Done)
    }
}

impl Snapshot {
    /// Writes the snapshot and prints a summary.
    fn written(&self) -> Result<String, CliError> {
        let redactor = self.redaction.redactor()?;
        let interrupt = Interrupt::watch()?;
        let host = Host::open(self.root.as_deref())?;
        let mut recorder = Recorder::start(&self.output, Existing::by_force(self.force), None)?.redacted(redactor);
        observe(ONCE, &interrupt, host.looks(Needs::BUDGET, StatReads::default(), None), |record| match record {
            Record::Facts(facts) => recorder.record(&Record::Facts(Box::new(without_layers(facts)))),
            _ => recorder.record(record),
        })?;
        recorder.finish()
    }
}

/// The facts without the lower layers of overlays: nothing is computed from them, and on a host with hundreds of
/// containers they are most of a snapshot.
fn without_layers(facts: &HostFacts) -> HostFacts {
    let mut facts = facts.clone();
    for mount in facts.mounts.iter_mut().filter(|mount| mount.overlay.is_some()) {
        let options = mount.super_options.as_bytes().split(|&c| c == b',');
        let is_kept = |option: &&[u8]| !option.starts_with(b"lowerdir=") && !option.starts_with(b"workdir=");
        mount.super_options = Name::new(options.filter(is_kept).collect::<Vec<_>>().join(&b','));
    }
    facts
}
