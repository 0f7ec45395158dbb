// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline incidents`: what the flight recorder kept, newest first. And which recording `doctor last` means.

use super::Run;
use super::mark::RING;
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::shown;
use crate::stderr::tell;
use floodline_view::incidents::{self, Incident};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Longest file that describes an incident, bytes.
const FILE_MAX: u64 = 1 << 20;

/// List the incidents that the flight recorder kept, newest first
#[derive(clap::Parser)]
#[command(
    name = "incidents",
    after_help = "Reads the folder of floodline serve --ring; the server need not run.\n\n\
        Examples:\n  \
        floodline incidents\n  \
        floodline incidents --ring /srv/floodline --format json | jq .incidents[0]\n  \
        floodline doctor last"
)]
pub(crate) struct IncidentsCommand {
    /// Folder of the flight recorder
    #[arg(long, value_name = "DIR", default_value = RING)]
    ring: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Run for IncidentsCommand {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let incidents = kept(&self.ring, "floodline incidents --ring DIR")?;
        match self.format {
            Format::Text => {
                let folder = shown(&self.ring).to_string();
                console.print(&incidents::list(&incidents, &folder, console.width()))?;
            }
            Format::Json => console.print(&incidents::list_json(&incidents).map_err(CliError::bug)?)?,
        }
        Ok(Exit::Done)
    }
}

/// The incidents in a folder, newest first. A file that cannot be read is a remark. `command` names the folder.
fn kept(folder: &Path, command: &str) -> Result<Vec<Incident>, CliError> {
    let failed = |error: std::io::Error| {
        CliError::usage(format!("cannot read {}: {error}", shown(folder)))
            .hint(format!("name the folder of the flight recorder: {command}"))
            .hint("start it: floodline serve --ring DIR")
    };
    let mut incidents = Vec::new();
    let mut denied = None;
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !name.starts_with("incident-") || !name.ends_with(".json") {
            continue;
        }
        let is_small = fs::metadata(&path).is_ok_and(|file| file.is_file() && file.len() <= FILE_MAX);
        let text = if is_small { fs::read_to_string(&path) } else { Ok(String::new()) };
        match text.map(|text| incidents::parse(&text).ok()) {
            Ok(Some(incident)) => incidents.push(incident),
            Ok(None) => tell(format_args!("floodline: {}: not an incident of this version", shown(&path))),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => denied = Some(error),
            Err(error) => tell(format_args!("floodline: cannot read {}: {error}", shown(&path))),
        }
    }
    if let Some(error) = denied {
        return Err(CliError::usage(format!("cannot read the incidents in {}: {error}", shown(folder))).hint(format!(
            "only the user of floodline serve can read them: sudo floodline incidents --ring {}",
            shown(folder)
        )));
    }
    incidents.sort_by(|a, b| (b.at_wall_ns, &b.name).cmp(&(a.at_wall_ns, &a.name)));
    Ok(incidents)
}

/// The recording of the newest incident.
pub(crate) fn newest(folder: &Path) -> Result<PathBuf, CliError> {
    let incidents = kept(folder, "floodline doctor last --ring DIR")?;
    let newest = incidents.first().ok_or_else(|| {
        CliError::usage(format!("no incidents in {}", shown(folder)))
            .hint("floodline doctor observes this host now")
            .hint("name the folder of the flight recorder: floodline doctor last --ring DIR")
    })?;
    // A name leads to a file of the folder and nowhere else.
    let name = Path::new(&*newest.name).file_name().unwrap_or_default();
    Ok(folder.join(name).with_extension("flr"))
}
