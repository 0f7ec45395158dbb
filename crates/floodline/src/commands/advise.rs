// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline advise FILE`: tries settings on the twin of a recording and prints the best, or says that none is better.
//! Wiring only: the search is `floodline_twin::advise`. Nothing of this host is read or changed.

use super::Run;
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::shown as shown_path;
use crate::interrupt::Interrupt;
use crate::output::{Existing, is_standard, refuse_existing};
use crate::twins::{Threads, study};
use crate::whole;
use floodline_analysis::advice::{Advice, Goal};
use floodline_analysis::report::Report;
use floodline_record::human;
use floodline_scenario::{ByteSize, Time};
use floodline_twin::advise::{FOLIOS, Wanted};
use floodline_twin::trial::{self, GoOn, Studied};
use std::io::Write;
use std::path::PathBuf;

/// Find the settings that serve the host of a recording best
#[derive(clap::Parser)]
#[command(
    name = "advise",
    after_help = "Tries settings on the twin of the recording. Constraints come first: data at risk, the smallest cgroup \
        limit, the longest pause. Then the goal decides, by the worst part of the recording. The present settings \
        and the kernel's defaults are always candidates. Data at risk is what a power cut would lose: dirty data and data \
        under writeback. Settings are advised only if they are better by more than the error \
        of the back-test.\n\n\
        Examples:\n  \
        floodline advise host.flr\n  \
        floodline advise host.flr --goal safety --max-at-risk 256M -o plan.json"
)]
pub(crate) struct Advise {
    /// Recording of the host, made with floodline record
    file: PathBuf,
    /// What to improve once the constraints hold
    #[arg(long, value_enum, default_value_t)]
    goal: Wish,
    /// Most data at risk, e.g. 256M [default: what the fastest disk writes in 3 s, up to 5 % of memory, or 1.1 × the present peak if that
    /// is more; with --goal safety, the present peak]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_at_risk: Option<u64>,
    /// Longest pause of a write call, e.g. 200ms [default: as long as now, at least 200ms]
    #[arg(long, value_name = "DURATION", value_parser = parse_pause)]
    max_pause: Option<f64>,
    /// Smallest dirty limit of a cgroup to allow, in folios of 2 MiB
    #[arg(long, value_name = "N", default_value_t = FOLIOS)]
    min_folios: u64,
    /// Number of settings to try
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(2..=5000))]
    settings: u64,
    /// Save the plan to this file, for floodline apply
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite the file of --output if it exists
    #[arg(long, requires = "output")]
    force: bool,
    /// Also print every setting that was tried
    #[arg(long)]
    details: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// What is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Wish {
    /// Least waiting in the worst part of the recording
    #[default]
    Latency,
    /// Most bytes written per second
    Throughput,
    /// Least data at risk, among the settings that do not make tasks wait longer
    Safety,
}

fn parse_size(text: &str) -> Result<u64, String> {
    let short = [('K', "KiB"), ('M', "MiB"), ('G', "GiB"), ('T', "TiB")];
    let long = short.iter().find_map(|(letter, unit)| Some(format!("{} {unit}", text.strip_suffix(*letter)?)));
    let size: ByteSize =
        long.as_deref().unwrap_or(text).parse().map_err(|_| "expected a size such as 256M".to_owned())?;
    Ok(size.bytes())
}

fn parse_pause(text: &str) -> Result<f64, String> {
    let pause: Time = text.parse().map_err(|_| "expected a duration such as 200ms".to_owned())?;
    Ok(pause.nanos() as f64 / 1e9)
}

impl Run for Advise {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        self.output.as_deref().map_or(Ok(()), |path| refuse_existing(path, self.force))?;
        // A search takes minutes: a file that cannot be written is refused before it.
        self.output.as_deref().map_or(Ok(()), whole::try_out)?;
        let interrupt = Interrupt::watch()?;
        let go_on = |_| !interrupt.is_asked();
        let (studied, report) = study(&self.file, &go_on)?;
        let advice = self.advise(console, &studied, report.as_ref(), &go_on)?;
        if interrupt.is_asked() {
            return Err(CliError::cannot_observe("interrupted before all settings were tried, so nothing is advised"));
        }
        console.print(&match self.format {
            Format::Text => floodline_view::advise::text(&advice, console.width(), self.details),
            Format::Json => floodline_view::advise::json(&advice).map_err(CliError::bug)?,
        })?;
        self.save(console, &advice)?;
        Ok(Exit::Done)
    }
}

impl Advise {
    fn advise(
        &self,
        console: &Console,
        studied: &Studied,
        report: Option<&Report>,
        go_on: GoOn<'_>,
    ) -> Result<Advice, CliError> {
        let wanted = Wanted {
            goal: match self.goal {
                Wish::Latency => Goal::Latency,
                Wish::Throughput => Goal::Throughput,
                Wish::Safety => Goal::Safety,
            },
            at_risk_bytes: self.max_at_risk,
            folios: self.min_folios,
            pause_seconds: self.max_pause,
            most: usize::try_from(self.settings).unwrap_or(usize::MAX),
        };
        let mut progress = console.progress();
        Ok(trial::advise(studied, report, wanted, go_on, &mut Threads { progress: Some(&mut progress) })?)
    }

    fn save(&self, console: &Console, advice: &Advice) -> Result<(), CliError> {
        let Some(path) = &self.output else {
            if advice.plan.is_some() && matches!(self.format, Format::Text) && !is_standard(&self.file) {
                let file = human::quoted(&shown_path(&self.file).to_string());
                console.note(&format!("save it for floodline apply: floodline advise {file} -o plan.json"));
            }
            return Ok(());
        };
        let Some(plan) = &advice.plan else {
            console.note("no plan is written, because nothing is advised");
            return Ok(());
        };
        let text = serde_json::to_string_pretty(plan).map_err(CliError::bug)?;
        let target = path.display().to_string();
        let (mut file, pending) = whole::create(path, Existing::by_force(self.force))?;
        file.write_all(format!("{text}\n").as_bytes())
            .and_then(|()| file.flush())
            .map_err(|error| CliError::write(&target, &error))?;
        pending.commit()?;
        let word = human::quoted(&target);
        console.note(&format!("plan written to {word}; try it with: floodline apply {word} --dry-run"));
        Ok(())
    }
}
