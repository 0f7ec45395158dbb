// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline-dev validate RECORDING…`: compares recordings of real runs with simulated ones. A recording contains its
//! scenario, variant and kernel; several of the same are repeats. Runs no machine.

use crate::agreement::{Case, Outcome, Told, add_unreplayed, longest_delay, other_setting, rows};
use crate::artefact::{self, Measured};
use crate::input::{Workload, files, read, shown};
use crate::unseen::Unseen;
use crate::{Answer, Failure, Format, note, pages};
use floodline_analysis::run::{Run, figures};
use floodline_record::facts::HostFacts;
use floodline_record::id::{Entity, EntityId};
use floodline_record::name::Name;
use floodline_record::record::{Event, Record, Sink, What};
use floodline_record::sample::HostRow;
use floodline_record::units::{BytesPerSecond, Nanos};
use floodline_record::version::KernelVersion;
use floodline_record::window::Window;
use floodline_scenario::{Backing, ByteRate, Figure, Scenario, Time};
use floodline_sim::{Found, Options, Speed, Steal, simulate};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::PathBuf;

/// Compare recordings of real runs with simulated runs
#[derive(clap::Args)]
#[command(after_help = "The mean of the simulated runs agrees if it is within 10 % of the real mean, or within \
        twice the spread of the real repeats. With fewer than three repeats, a difference within twice the spread of the seeds \
        is called chance and does not agree. Recordings without a scenario and recordings of simulated runs are skipped \
        with a note. Each recording is compared with the current scenario file.\n\n\
        Examples:\n  \
        floodline-dev validate recordings/ > validation.md\n  \
        floodline-dev validate recordings/ --into docs/agreement.json --unseen \"forty-first\" --load \"2 to 6\"\n  \
        floodline-dev validate run-1.flr run-2.flr run-3.flr --format json \\\n    \
        | jq .summary")]
pub(crate) struct Validate {
    /// Recordings, or folders of them
    #[arg(required = true, value_name = "RECORDING")]
    recordings: Vec<PathBuf>,
    /// Folder of the scenarios; its subfolders blind, compared and stacks are searched, too
    #[arg(long, value_name = "FOLDER", default_value = "scenarios")]
    scenarios: PathBuf,
    /// Number of simulated runs of each, with seeds from 1
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: u64,
    /// Also replace the measured figures of this artefact
    #[arg(long, value_name = "ARTEFACT")]
    into: Option<PathBuf>,
    /// With --into: also add the score of these recordings as that of these rounds of machines, such as "forty-first", of which nothing
    /// was seen before, and leave the other measured figures as they are
    #[arg(long, value_name = "ROUNDS", requires = "into")]
    unseen: Option<String>,
    /// Load average of the host during these runs, such as "2 to 6"
    #[arg(long, value_name = "LOAD", requires = "unseen", default_value = "")]
    load: String,
    /// Output format; text is Markdown
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Subfolders of the scenarios.
const SUBFOLDERS: [&str; 3] = ["blind", "compared", "stacks"];

/// Scenario, variant, kernel.
type Of = (String, String, KernelVersion);

/// Real runs of one of these.
#[derive(Clone, Default)]
struct Real {
    release: String,
    repeats: Vec<BTreeMap<String, Figure>>,
    /// Speed of the machine, in recordings that contain it.
    speeds: Vec<Speed>,
    /// What it was.
    facts: HostFacts,
    /// Circumstances of its first run.
    found: Found,
    /// Its settings at the start.
    host: HostRow,
    /// End of its tasks, since the start of the workload.
    ends: Vec<Nanos>,
    /// Largest delay of its recorder, in the run where that is smallest.
    longest_delay: Option<Nanos>,
}

impl Real {
    /// Returns the machine without the moments of slow disks and late CPUs.
    fn without_moments(&self) -> Real {
        let found = Found { moments: BTreeMap::new(), wake_ups: Vec::new(), ..self.found.clone() };
        Real { found, ..self.clone() }
    }
}

/// The median speed by slowdown, for cases that tell none. A few recordings of tasks that do next to nothing but wake up
/// tell slowdowns of hundreds, which would decide a mean.
fn median(mut speeds: Vec<Speed>) -> Option<Speed> {
    speeds.sort_unstable_by_key(|speed| speed.slowdown);
    speeds.get(speeds.len() / 2).copied()
}

/// The mean of the repeats of a case.
fn mean(speeds: &[Speed]) -> Option<Speed> {
    let count = u64::try_from(speeds.len()).ok().filter(|count| *count > 0)?;
    let mean = |of: fn(&Speed) -> u64| speeds.iter().map(of).sum::<u64>() / count;
    Some(Speed {
        slowdown: mean(|speed| speed.slowdown),
        copies: mean(|speed| speed.copies),
        calls: mean(|speed| speed.calls),
        observer: Nanos(mean(|speed| speed.observer.0)),
    })
}

impl Validate {
    pub(crate) fn run(self) -> Result<Answer, Failure> {
        // A file that cannot be renewed is told before the runs, not after them.
        let artefact = self.into.as_deref().map(artefact::read).transpose()?;
        let mut real: BTreeMap<Of, Real> = BTreeMap::new();
        for path in self.recordings.iter().map(|path| files(path)).collect::<Result<Vec<_>, _>>()?.concat() {
            match read(&path, one) {
                Ok(One { of, facts, figures, speed, found, host, ends, longest_delay }) => {
                    let release = facts.kernel_release.to_string();
                    let real =
                        real.entry(of).or_insert_with(|| Real { release, facts, found, host, ends, ..Real::default() });
                    real.repeats.push(figures);
                    real.speeds.extend(speed);
                    real.longest_delay = real.longest_delay.into_iter().chain(longest_delay).min();
                }
                Err(why) => note(&why),
            }
        }
        if real.is_empty() {
            return Err(Failure::input("the arguments contain no recording of a scenario on a real kernel")
                .hint("floodline lab run scenarios/dirty-cliff.toml --kernel 6.12 --save real.flr"));
        }
        if !real.keys().any(|(scenario, ..)| self.file_of(scenario).is_file()) {
            let names: BTreeSet<&str> = real.keys().map(|(scenario, ..)| scenario.as_str()).collect();
            let names: Vec<&str> = names.into_iter().collect();
            return Err(Failure::input(format!("{} contains none of {}", shown(&self.scenarios), names.join(", ")))
                .hint("name the folder of the scenarios that were run: --scenarios FOLDER"));
        }
        let mut cases = Vec::new();
        let count = real.len();
        let usual = median(real.values().flat_map(|real| real.speeds.clone()).collect());
        for ((scenario, variant, kernel), real) in real {
            note(&format!("{} of {count} simulated: {scenario} {variant}", cases.len()));
            let speed = mean(&real.speeds).or(usual).unwrap_or_default();
            let simulated = |real: &Real| -> Result<Vec<_>, _> {
                (1..=self.seeds).map(|seed| self.simulated((&scenario, &variant, kernel), seed, speed, real)).collect()
            };
            let (told, unreplayed) = (simulated(&real), simulated(&real.without_moments()));
            let (outcome, ran) = match (told, unreplayed) {
                (Ok(told), Ok(unreplayed)) => {
                    let (figures, ran): (Vec<_>, Vec<_>) = told.into_iter().unzip();
                    let mut rows = rows(&real.repeats, &figures, real.longest_delay);
                    let unreplayed: Vec<_> = unreplayed.into_iter().map(|(figures, _)| figures).collect();
                    add_unreplayed(&mut rows, &unreplayed);
                    (Outcome::Figures(rows), ran.first().copied().flatten())
                }
                (Err(why), _) | (_, Err(why)) => (Outcome::NotSimulated(why), None),
            };
            let recordings = real.repeats.len();
            let told = Told { slowdown_percent: speed.slowdown, observer_ns: speed.observer.0, ran };
            cases.push(Case {
                scenario,
                variant,
                kernel: real.release,
                version: kernel.to_string(),
                recordings,
                told,
                outcome,
            });
        }
        if let (Some(path), Some(mut artefact)) = (&self.into, artefact) {
            let measured = Measured::of(&cases, self.seeds);
            match &self.unseen {
                Some(rounds) => {
                    artefact.unseen.retain(|one| one.rounds != *rounds);
                    artefact.unseen.insert(0, Unseen::of(rounds, &self.load, &measured));
                }
                None => artefact.measured = measured,
            }
            artefact::write(path, &artefact)?;
        }
        let text = match self.format {
            Format::Text => pages::markdown(&cases),
            Format::Json => pages::json(&cases)?,
        };
        Ok(Answer { text, is_as_expected: true })
    }

    /// The file of a scenario, which may be in one of the subfolders.
    fn file_of(&self, scenario: &str) -> PathBuf {
        let name = format!("{scenario}.toml");
        let below = SUBFOLDERS.iter().map(|folder| self.scenarios.join(folder).join(&name)).find(|path| path.is_file());
        below.unwrap_or_else(|| self.scenarios.join(name))
    }

    fn simulated(
        &self,
        (scenario, variant, kernel): (&str, &str, KernelVersion),
        seed: u64,
        speed: Speed,
        real: &Real,
    ) -> Result<(BTreeMap<String, Figure>, Option<Nanos>), String> {
        let path = self.file_of(scenario);
        if !path.is_file() {
            return Err(format!("{} does not exist", shown(&path)));
        }
        let file = crate::input::scenario(&path).map_err(|_| format!("{} is not a valid scenario", shown(&path)))?;
        let absent = match variant.ends_with(".advised") {
            true => "the recording is of advised settings, which no variant has",
            false => "the scenario no longer has this variant",
        };
        let scenario = file.variants.get(variant).ok_or(absent)?;
        if let Some(name) = other_setting(&scenario.machine, &real.host) {
            return Err(format!("the recording and the current scenario differ in {name}"));
        }
        let (mut scenario, delays) = as_found(scenario, real);
        scenario.workload.seed = seed;
        let ran = scenario.workload.duration.and_then(|told| other_duration(told.0, &real.ends));
        scenario.workload.duration = ran.map(Time).or(scenario.workload.duration);
        let every = Nanos::from_millis(500);
        let found = Found { delays, ..real.found.clone() };
        let options = Options { every, speed, found, ..Options::new(variant, kernel) };
        let mut run = Run::expecting(&scenario.expect.on(kernel));
        let fold = |record| {
            let Ok(()) = run.record(&record);
            Ok(())
        };
        simulate(&scenario, &options, fold, |_| true).map_err(|error| error.to_string())?;
        Ok((run.figures(), ran))
    }
}

/// The scenario with the properties of its disks as recorded: whether they rotate, which sets the target of writeback
/// throttling, the time of a request where the scenario omits it, and their highest speed. A guest's disks are the
/// scenario's in order of their names. A latency in the scenario is a delay of device-mapper; the delays are returned
/// by disk. The lab gives a device of the library its limits with QEMU's throttle, which has a tenth of a second of credit:
/// such a disk does not seek, and its reads and writes do not share one time.
fn as_found(scenario: &Scenario, real: &Real) -> (Scenario, BTreeMap<String, Nanos>) {
    let mut delays = BTreeMap::new();
    let mut scenario = scenario.clone();
    let disks = scenario.machine.devices.values_mut().filter(|device| device.backing == Backing::Disk);
    for (device, letter) in disks.zip('a'..='z') {
        (device.profile, device.seek) = (None, None);
        let name = format!("vd{letter}");
        if let Some(latency) = device.latency.take() {
            delays.insert(name.clone(), latency.0);
        }
        let Some(disk) = real.facts.devices.iter().find(|disk| disk.name == Name::new(&name)) else { continue };
        device.rotational |= disk.rotational.unwrap_or(false);
        let Some(found) = real.found.disks.get(&name) else { continue };
        device.latency = found.latency.map(Time);
        let lower = |told: Option<ByteRate>, rate: Option<u64>| {
            let rate = rate.filter(|rate| told.is_none_or(|told| *rate < told.0.0));
            rate.map(|rate| ByteRate(BytesPerSecond(rate))).or(told)
        };
        // Of a limit of both ways together, reads leave less to the writes, but the disk is as fast.
        match device.bandwidth {
            Some(told) => device.bandwidth = lower(Some(told), found.bandwidth),
            None => device.write_bandwidth = lower(device.write_bandwidth, found.write_bandwidth),
        }
    }
    (scenario, delays)
}

/// Duration of the workload, if the scenario now states another. Programs that run until their time is up end together,
/// just after a whole second. A last call may delay them by some seconds, and others end earlier. If a program ended when
/// the stated duration was up, that duration is right, whatever ended together before.
fn other_duration(told: Nanos, ends: &[Nanos]) -> Option<Nanos> {
    const TOGETHER: u64 = 300_000_000;
    const LATE: u64 = 5 * Nanos::SECOND.0;
    let second = |at: &Nanos| at.0 / Nanos::SECOND.0 * Nanos::SECOND.0;
    let at_once = |whole: u64| ends.iter().filter(|at| (whole..whole + TOGETHER).contains(&at.0)).count();
    if at_once(told.0) > 0 {
        return None;
    }
    let ran = ends.iter().map(second).max_by_key(|whole| at_once(*whole))?;
    (2 * at_once(ran) >= ends.len() && ran.abs_diff(told.0) > LATE).then_some(Nanos(ran))
}

/// A recording of a guest: its window, and what its recorder used. That is the first process.
#[derive(Default)]
struct Recorded {
    window: Window,
    recorder: Option<EntityId>,
    /// Its CPU time by time of the samples.
    used: Vec<(Nanos, Nanos)>,
}

impl Sink for Recorded {
    type Error = Infallible;

    fn record(&mut self, record: &Record) -> Result<(), Infallible> {
        match record {
            Record::Entity(id, Entity::Process { pid: 1, .. }) => self.recorder = Some(*id),
            Record::Sample(sample) => {
                let row = self.recorder.and_then(|id| sample.processes.get(id));
                let used = row.and_then(|row| Some(row.utime?.0.saturating_add(row.stime?.0)));
                self.used.extend(used.map(|used| (sample.time.monotonic, Nanos(used))));
            }
            _ => {}
        }
        self.window.record(record)
    }
}

/// One recording of a real run.
struct One {
    of: Of,
    facts: HostFacts,
    figures: BTreeMap<String, Figure>,
    speed: Option<Speed>,
    found: Found,
    host: HostRow,
    ends: Vec<Nanos>,
    longest_delay: Option<Nanos>,
}

/// Returns the case of a recording and its values, or the reason why it is left out.
fn one(recorded: Recorded) -> Result<One, &'static str> {
    let Recorded { window, mut used, .. } = recorded;
    let Workload { scenario, variant, kernel, facts } = Workload::of(&window)?;
    let began = window.events.iter().find(|event| matches!(event.what, What::WorkloadStarted { .. }));
    let began = began.map_or(Nanos(0), |event| event.at);
    let ended = |event: &Event| matches!(event.what, What::TaskEnded { .. }).then_some(Nanos(event.at.0 - began.0));
    let ends = window.events.iter().filter(|event| event.at.0 >= began.0).filter_map(ended).collect();
    used.retain(|(at, _)| *at >= began);
    Ok(One {
        of: (scenario, variant, kernel),
        facts: facts.clone(),
        figures: figures(&window),
        speed: Speed::of(&window),
        found: Found { steal: Steal::of(&used), ..Found::of(&window) },
        host: window.host.first.clone(),
        ends,
        longest_delay: longest_delay(&window),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_speed_is_the_median() {
        let of = |slowdown| Speed { slowdown, ..Speed::default() };
        assert_eq!(median(vec![of(100_000), of(3_000), of(4_000)]), Some(of(4_000)));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn a_recording_of_another_duration_tells_its_own() {
        let check = |told: u64, ends: &[u64], expect: Option<u64>| {
            let ends: Vec<Nanos> = ends.iter().map(|millis| Nanos::from_millis(*millis)).collect();
            assert_eq!(other_duration(Nanos::from_millis(told), &ends), expect.map(Nanos::from_millis), "{ends:?}");
        };
        check(35_000, &[35_050, 35_100, 41_000], None);
        check(25_000, &[35_050, 35_100, 41_000], Some(35_000));
        check(80_000, &[3_000, 35_050, 35_060], Some(35_000));
        // One task ends earlier, the others when a long fsync does.
        check(35_000, &[30_000, 37_400, 37_410], None);
        check(35_000, &[35_100, 43_900, 44_000, 43_800], None);
        check(25_000, &[], None);
        // Twelve builds end together, and the others when the time is up.
        check(30_000, &[4_100, 4_150, 4_200, 4_250, 15_000, 30_040], None);
    }
}
