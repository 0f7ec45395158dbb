// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline verify [ID | BEFORE.flr AFTER.flr]`: is a change in force, and did it help? Wiring only: the answers are
//! `floodline_tune::verify` and `floodline_tune::benefit`.

use super::Run;
use super::budget::look;
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::folded;
use crate::trial::{Trial, parse_design, try_by_turns};
use crate::tuning::{SiteArgs, tell_settled};
use floodline_analysis::budget::{Agreed, AsIf, agreed};
use floodline_analysis::observer::{Watched, different};
use floodline_record::window::Window;
use floodline_tune::benefit::{Interval, Judgement, Loads, Verdict, Why, intervals, judge};
use floodline_tune::error::TuneError;
use floodline_tune::journal::{Entry, Journal};
use floodline_tune::recover::Site;
use floodline_tune::slot::Slot;
use floodline_tune::switchback::{Design, inverse};
use floodline_tune::verify::in_force;
use floodline_view::change as view;
use std::path::{Path, PathBuf};

/// Check that a change is in force, and whether it helped
#[derive(clap::Parser)]
#[command(
    name = "verify",
    after_help = "Whether a change is in force is read from the values now, from what each program that applies sysctl.d \
        would set at boot, and from the dirty limit of each cgroup. Whether it helped is judged by the seconds in \
        which tasks waited for I/O (PSI io some) per hour of writing, at similar load. The verdict is helped, harmed, \
        no difference larger than --difference, or not enough (with the minutes it needs). You may repeat the command \
        while the recording after the change grows. If the change has no effect, at most one of 20 such series ends \
        with a wrong verdict.\n\n\
        With --switchback a guard watches this host, and the change is in force at the end. If the change has \
        no effect, at most one of 20 such trials ends with a wrong verdict. A trial takes 6 blocks or more.\n\n\
        The exit code is 1 if the change is not in force or did harm.\n\n\
        Examples:\n  \
        floodline verify\n  \
        floodline verify before.flr after.flr\n  \
        floodline verify 12 before.flr after.flr --format json\n  \
        floodline verify before.flr after.flr --any-load\n  \
        floodline verify --switchback 6x10m"
)]
pub(crate) struct Verify {
    /// Number of the change [default: the last one in force], recordings before and after it, or both
    #[arg(value_name = "ID | FILE", num_args = 0..=3)]
    what: Vec<PathBuf>,
    /// Switch the change on and off on this host, and compare. A block has four parts: without, with, with and without the change, or the reverse, chosen at random
    #[arg(long, value_name = "BLOCKSxDURATION", value_parser = parse_design)]
    switchback: Option<Design>,
    /// Compare even if the loads differ. Meant for a change that itself reduces the writes
    #[arg(long, conflicts_with = "switchback")]
    any_load: bool,
    /// A difference of up to this percentage counts as no difference
    #[arg(long, value_name = "PERCENT", default_value = "20", value_parser = parse_difference)]
    difference: f64,
    #[command(flatten)]
    site: SiteArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Reads a difference as a share.
fn parse_difference(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim_end_matches('%').parse().ok();
    number
        .filter(|percent| (1.0..=500.0).contains(percent))
        .map(|percent| percent / 100.0)
        .ok_or_else(|| format!("invalid difference {text:?}: expected a percentage from 1 to 500"))
}

/// What the plan's endpoint is called.
const ENDPOINT: &str = "stall_seconds_per_hour";

impl Run for Verify {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let number = |path: &PathBuf| path.to_str().and_then(|text| text.parse::<u32>().ok());
        let id = self.what.first().and_then(number);
        let files = self.what.get(usize::from(id.is_some())..).unwrap_or_default();
        if let Some(design) = self.switchback {
            if !files.is_empty() {
                return Err(CliError::usage("--switchback takes no recordings: it observes this host")
                    .hint("floodline verify --switchback 6x10m"));
            }
            return self.by_turns(console, id, design);
        }
        let recordings = match files {
            [] => None,
            [before, after] => Some((read(before)?, read(after)?)),
            _ => {
                return Err(CliError::usage("expected two recordings: one before the change and one after it")
                    .hint("floodline verify before.flr after.flr"));
            }
        };
        // Two recordings alone may come from another host.
        let mut change = match id.is_some() || recordings.is_none() {
            true => Some(self.check(console, id)?),
            false => None,
        };
        let loads = if self.any_load { Loads::Any } else { Loads::Alike };
        let sides = recordings.as_ref();
        let judged = sides.map(|(before, after)| judge(&before.series, &after.series, loads, self.difference));
        let dirty_limits = match &change {
            Some((journal, _)) => dirty_limits(&self.site.site()?, journal, sides.map(|(before, _)| &before.window)),
            None => Vec::new(),
        };
        if judged.is_some_and(|judged| matches!(judged.verdict, Verdict::NotEnough { why: Why::OtherLoad, .. })) {
            console.note("for a change that itself reduces the writes, add --any-load");
        }
        let watched = sides.map(|(before, after)| (Watched::of(&before.window), Watched::of(&after.window)));
        let different =
            watched.and_then(|(before, after)| different(("the first recording", &[before]), ("the second", &[after])));
        if let Some(warning) = different {
            console.note(&warning);
        }
        let benefit = judged.map(|judged| self.benefit(&judged, change.as_ref().map(|(journal, _)| journal)));
        if let (Some((journal, _)), Some(benefit)) = (&mut change, &benefit) {
            self.keep(journal, benefit)?;
        }
        let verified = view::Verified {
            schema: view::VERIFIED,
            id: change.as_ref().map(|(journal, _)| journal.id),
            in_force: change.map(|(_, checks)| checks).unwrap_or_default(),
            dirty_limits,
            benefit,
        };
        self.tell(console, verified)
    }
}

impl Verify {
    fn check(&self, console: &Console, id: Option<u32>) -> Result<(Journal, Vec<view::Check>), CliError> {
        let site = self.site.site()?;
        tell_settled(console, &site.settle_if_free()?);
        let found = in_force(&site, id)?;
        let checks = found.checks.into_iter().map(|check| view::Check {
            what: check.what,
            expected: check.expected,
            found: check.found,
            is_met: check.is_met,
        });
        Ok((found.journal, checks.collect()))
    }

    fn benefit(&self, judged: &Judgement, journal: Option<&Journal>) -> view::Benefit {
        let (verdict, why, needs_minutes) = match judged.verdict {
            Verdict::Helped => ("helped", None, None),
            Verdict::NoDifference => ("no_difference", None, None),
            Verdict::Harmed => ("harmed", None, None),
            Verdict::NotEnough { why, minutes } => ("not_enough", Some(because(why)), minutes),
        };
        let predicted = journal.and_then(|journal| predicted(journal, judged.after));
        view::Benefit {
            verdict,
            why,
            needs_minutes,
            difference: self.difference,
            before_stall_s_per_hour: judged.before,
            after_stall_s_per_hour: judged.after,
            ratio: judged.ratio,
            matched_share: judged.matched,
            any_load: self.any_load,
            predicted,
            switchback: None,
        }
    }

    /// Undoes and makes the change by turns, which is in force at the end.
    fn by_turns(&self, console: &mut Console, id: Option<u32>, design: Design) -> Result<Exit, CliError> {
        let site = self.site.site()?;
        let (mut journal, _) = self.check(console, id)?;
        let plan = inverse(&journal)?;
        let trial = Trial { plan, is_inverse: true, design, difference: self.difference, probe: None };
        let (_, mut benefit) = try_by_turns(console, &site, trial)?;
        let id = journal.id;
        benefit.predicted = predicted(&journal, benefit.after_stall_s_per_hour);
        self.keep(&mut journal, &benefit)?;
        let (_, checks) = self.check(console, Some(id))?;
        self.tell(
            console,
            view::Verified {
                schema: view::VERIFIED,
                id: Some(id),
                in_force: checks,
                dirty_limits: dirty_limits(&site, &journal, None),
                benefit: Some(benefit),
            },
        )
    }

    /// Writes a verdict to the journal of the change.
    fn keep(&self, journal: &mut Journal, benefit: &view::Benefit) -> Result<(), CliError> {
        let verified = Entry::Verified {
            verdict: benefit.verdict.to_owned(),
            stall_s_per_hour: benefit.before_stall_s_per_hour.zip(benefit.after_stall_s_per_hour),
            predicted: benefit.predicted.map(|(_, _, is_inside)| is_inside),
        };
        Ok(journal.append(verified).map_err(TuneError::from)?)
    }

    fn tell(&self, console: &mut Console, verified: view::Verified) -> Result<Exit, CliError> {
        match self.format {
            Format::Text => console.print(&view::verified(&verified))?,
            Format::Json => console.print(&view::json(&verified).map_err(CliError::bug)?)?,
        }
        let is_well = verified.in_force.iter().all(|check| check.is_met)
            && verified.benefit.is_none_or(|benefit| benefit.verdict != "harmed");
        Ok(if is_well { Exit::Done } else { Exit::Findings })
    }
}

/// Predicted interval of a change, and whether a measured figure is inside.
fn predicted(journal: &Journal, measured: Option<f64>) -> Option<(f64, f64, bool)> {
    let expected = journal.planned.plan.expected.iter().find(|expected| expected.figure == ENDPOINT)?;
    let measured = measured?;
    Some((expected.low, expected.high, (expected.low..=expected.high).contains(&measured)))
}

fn because(why: Why) -> &'static str {
    match why {
        Why::ShortBefore => {
            "the recording before the change is shorter than 100 s, and a longer one after it does not mend that \
             (before the next change, make one with floodline record --for 10m -o before.flr)"
        }
        Why::Short => "the recording after the change is shorter than 5 minutes",
        Why::Silent => "nothing was written on one side",
        Why::OtherLoad => "the loads before and after are too different",
        Why::NoStalls => "tasks did not stall before or after",
        Why::Varying => "the stalls vary too much for this length",
    }
}

/// A recording and its series.
struct Side {
    window: Window,
    series: Vec<Interval>,
}

fn read(file: &Path) -> Result<Side, CliError> {
    let window: Window = folded(file, |window: &Window| window.samples)?;
    let series = intervals(&window);
    if series.is_empty() && window.samples > 1 {
        return Err(CliError::usage(format!("{} contains no pressure of I/O or no dirtied pages", file.display()))
            .hint("record on a kernel with PSI (CONFIG_PSI, psi=1): floodline record --for 10m -o FILE.flr"));
    }
    Ok(Side { window, series })
}

/// The limits that a change was expected to bring, by the recording before it where there is one, beside those of now. A host
/// whose limits cannot be read has none.
fn dirty_limits(site: &Site, journal: &Journal, before: Option<&Window>) -> Vec<view::DirtyLimit> {
    let moved = journal.planned.slots.iter().map(Slot::new_shown);
    let conditions: Vec<String> =
        moved.filter(|name| name.starts_with("vm.dirty_") || name.contains("/memory.")).collect();
    let root = site.host.is_imitated().then(|| site.host.root());
    let agreed = || -> Option<Vec<Agreed>> {
        let conditions: AsIf = conditions.join(",").parse().ok()?;
        let now = look(root).ok()?;
        agreed(before.unwrap_or(&now), &conditions, &now).ok()
    };
    let limits = agreed().unwrap_or_default().into_iter();
    limits
        .map(|limit| view::DirtyLimit {
            is_met: limit.is_met(),
            cgroup: limit.cgroup,
            expected_bytes: limit.expected,
            found_bytes: limit.found,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_a_percentage() {
        assert_eq!(parse_difference("20"), Ok(0.2));
        assert_eq!(parse_difference("20%"), Ok(0.2));
        for text in ["0", "-1", "nan", "inf", "x", "501"] {
            assert!(parse_difference(text).is_err(), "{text}");
        }
    }
}
