// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `dirty-data-at-risk`: how much data exists only in memory, how old it may get, and how long
//! writing it out takes. Works in one look. Whether it stalls anybody is `dirty-cliff`.
#![doc = include_str!("dirty_data_at_risk.md")]

mod folios;

use crate::advise::beside;
use crate::advise::threshold::{self, Pair};
use crate::diagnose::derived::Derived;
use crate::diagnose::device::{Basis, Device, Speed};
use crate::diagnose::settings::Settings;
use crate::diagnose::{Rule, Verdict, burst, cgroup, cycle, dirty};
use crate::report::{Brief, Evidence, Finding, Severity, Step};
use floodline_record::gap::Source;
use floodline_record::human;

/// The rule and its manual page.
pub const RULE: Rule = Rule {
    name: "dirty-data-at-risk",
    summary: "Much data exists only in memory: a power cut loses it, and a clean stop waits for it",
    manual: include_str!("dirty_data_at_risk.md"),
    explains: &[],
    check,
};

/// Writing it out takes longer than people and stop timeouts wait, seconds.
const LONG_STOP_S: f64 = 10.0;
/// A stop of this length is harm even if only the worst moment has one, seconds.
const VERY_LONG_STOP_S: f64 = 30.0;
/// Part of the samples with a long stop from which a stop at any moment is likely to be long.
const LIKELY: f64 = 0.5;
/// The same for an observation that is shorter than this and than an expiry cycle: all samples.
const ALWAYS: f64 = 1.0;
/// Such an observation, seconds.
const SHORT_S: f64 = 20.0;
/// Data older than this are not what anybody expects to lose, seconds.
const OLD_S: f64 = 600.0;
/// Less than this is little, however old, bytes.
const LITTLE: u64 = 16 << 20;
/// Worth knowing on any machine, bytes.
const MUCH: u64 = 1 << 30;

/// Unwritten data at the most dirty moment.
#[derive(Clone, Copy)]
struct AtRisk {
    /// Bytes that the kernel counts: whole folios.
    counted: u64,
    /// Part of what was counted and cleaned that the disks wrote, where it is small: since 6.6 a filesystem with large folios writes
    /// only their dirty blocks (`iomap_writepage_map`).
    written: Option<f64>,
}

impl AtRisk {
    /// The bytes that a power cut loses, as far as known.
    fn bytes(self) -> u64 {
        (self.counted as f64 * self.written.unwrap_or(1.0)) as u64
    }
}

fn check(derived: &Derived<'_>) -> Verdict {
    let Some(at_risk) = at_risk(derived) else {
        return derived.not_checked(Source::Vmstat, "nr_dirty");
    };
    let (risk, at_risk) = (at_risk, at_risk.bytes());
    let Some(age) = oldest_seconds(derived) else {
        return derived.not_checked(Source::SysctlVm, "dirty_expire_centisecs");
    };
    let drain = drain(derived, risk);
    let seconds = drain.seconds();
    let is_old = age >= OLD_S && at_risk >= LITTLE;
    let is_long = |least: f64| seconds.is_some_and(|seconds| seconds >= least) && at_risk >= LITTLE;
    // A short observation may be of the end of an expiry cycle alone, in which data are dirty that soon go to the disk.
    let is_long_enough = derived.seconds >= SHORT_S || cycle::is_whole(derived);
    let needed = if is_long_enough { LIKELY } else { ALWAYS };
    let is_likely = || drain.part_with(LONG_STOP_S) >= needed;
    // A program that writes faster than the disk keeps memory full up to the limit for as long as it runs. A short observation may be of
    // one burst alone.
    let outrun = drain.to.filter(|(device, _)| is_long_enough && is_outrun(derived, device)).map(|(device, _)| device);
    // A pile that the defaults allow is there by design: a stop of ten seconds is no fault of this machine.
    let is_set = || !is_by_default(derived);
    let is_likely = is_long(LONG_STOP_S) && outrun.is_none() && is_likely() && is_set();
    let severity = if is_old || is_long(VERY_LONG_STOP_S) || is_likely {
        Severity::Warning
    } else if at_risk >= MUCH || is_long(LONG_STOP_S) {
        Severity::Info
    } else {
        let drained = match seconds {
            Some(seconds) => format!(", {} of writing", human::seconds(seconds)),
            None => String::new(),
        };
        return Verdict::Clear(format!(
            "the most that was dirty or under writeback in a sample is {}{drained}; {}",
            in_words(risk),
            match age.is_finite() {
                true => format!("the flusher writes it once it is {} old", human::seconds(age)),
                false => "the flusher does not write by age".to_owned(),
            }
        ));
    };
    Verdict::Found(vec![finding(derived, severity, (risk, drain.part), (age, outrun), drain.to.zip(seconds))])
}

/// Whether programs dirty more than a device writes while the device is busy nearly all the time. Dirty data then wait for their turn,
/// whatever their age.
fn is_outrun(derived: &Derived<'_>, device: &Device<'_>) -> bool {
    derived.is_outrun_on(device) && derived.has_no_time_left(device)
}

/// Whether the settings allow no more dirty data, and no older ones, than the kernel's defaults. `false` where a setting is not known.
fn is_by_default(derived: &Derived<'_>) -> bool {
    let row = &derived.window.host.last;
    let by_age = row.dirty_expire_centisecs.zip(row.dirty_writeback_centisecs);
    let is_soon = by_age.is_some_and(|(expire, period)| expire.0 <= EXPIRE && (1..=PERIOD).contains(&period.0));
    // In laptop mode, tasks over the background threshold do not wake the flusher.
    let is_laptop = row.laptop_mode.is_some_and(|mode| mode.0 > 0)
        && derived.behaviour.is_none_or(|kernel| kernel.arithmetic.laptop_mode);
    let dirtyable = derived.dirty.dirtyable_roughly;
    is_soon && !is_laptop && Settings::of(row).is_some_and(|settings| settings.are_at_most_default(dirtyable))
}

/// Dirty and under writeback: neither is on the disk. The most of any sample.
fn at_risk(derived: &Derived<'_>) -> Option<AtRisk> {
    // Not the sum of the largest of each: what leaves the one count enters the other.
    let counted = derived.dirty.unwritten_peak?.0;
    Some(AtRisk { counted, written: folios::written_part(derived, counted) })
}

/// The amount in words.
fn in_words(risk: AtRisk) -> String {
    let bytes = human::bytes(risk.bytes() as f64);
    match risk.written {
        None => bytes,
        Some(_) => format!("about {bytes} (at most {}, counted in whole folios)", human::bytes(risk.counted as f64)),
    }
}

/// The oldest that dirty data get: their expiry and the flusher's next look.
fn oldest_seconds(derived: &Derived<'_>) -> Option<f64> {
    let period = derived.window.host.last.dirty_writeback_centisecs.map_or(0.0, |interval| interval.0 as f64 / 100.0);
    derived.dirty.expiry_seconds.map(|expiry| expiry + period)
}

/// Where the data go, and how long that takes.
struct Drain<'a> {
    /// The device, its speed or the highest that it can have.
    to: Option<(Device<'a>, Speed)>,
    /// Most of the data for it in any sample, bytes.
    part: u64,
    /// What is unwritten for it in each sample, bytes.
    levels: Vec<u64>,
}

impl Drain<'_> {
    /// Part of the samples in which its data take as long as that to write, seconds.
    fn part_with(&self, seconds: f64) -> f64 {
        let Some((_, speed)) = self.to else { return 0.0 };
        let many = self.levels.iter().filter(|level| **level as f64 >= seconds * speed.value).count();
        many as f64 / self.levels.len().max(1) as f64
    }

    fn seconds(&self) -> Option<f64> {
        self.to.map(|(_, speed)| self.part as f64 / speed.value)
    }
}

/// Of several devices, the one that needs longest for its own data, where the kernel counts each. Else the one that most is written to,
/// with all data.
fn drain<'a>(derived: &Derived<'a>, risk: AtRisk) -> Drain<'a> {
    let at_risk = risk.bytes();
    let written = |counted: u64| (counted as f64 * risk.written.unwrap_or(1.0)) as u64;
    let speed = |device: &Device<'_>| {
        let speed = burst::speed(derived, device).filter(|speed| speed.basis.is_known());
        speed.or_else(|| device.fastest_of_its_kind())
    };
    let own = |device: &Device<'a>| {
        let levels: Vec<u64> =
            burst::own_levels(derived, device)?.into_iter().map(|(_, bytes)| written(bytes)).collect();
        let part = levels.iter().copied().max()?.min(at_risk);
        Some(Drain { to: speed(device).map(|speed| (*device, speed)), part, levels })
    };
    let owned: Vec<Drain<'_>> = derived.drains().iter().filter_map(own).collect();
    let most = owned.iter().max_by_key(|drain| drain.part).filter(|drain| drain.part >= at_risk / 2);
    match most.map(|most| most.to.is_some()) {
        Some(true) => {
            let seconds = |drain: &Drain<'_>| drain.seconds().unwrap_or(0.0);
            let longest = owned.into_iter().max_by(|one, other| seconds(one).total_cmp(&seconds(other)));
            longest.unwrap_or(Drain { to: None, part: at_risk, levels: Vec::new() })
        }
        // Most of the data go to a device whose speed is not known.
        Some(false) => Drain { to: None, part: at_risk, levels: Vec::new() },
        None => {
            let window = derived.window;
            let rows = window.host_series.iter();
            let levels = rows.filter_map(|(_, row)| Some(written(dirty::unwritten_of(window, row)?.0))).collect();
            let first = derived.drains().first().copied();
            Drain { to: first.and_then(|device| Some((device, speed(&device)?))), part: at_risk, levels }
        }
    }
}

fn finding(
    derived: &Derived<'_>,
    severity: Severity,
    (risk, part): (AtRisk, u64),
    (age, outrun): (f64, Option<Device<'_>>),
    drain: Option<((Device<'_>, Speed), f64)>,
) -> Finding {
    let (amount, at_risk) = (in_words(risk), risk.bytes());
    let counted = |bytes: u64| (bytes as f64 / risk.written.unwrap_or(1.0)).round() as u64;
    let older = match (age.is_finite(), outrun.is_some()) {
        (false, _) => ", and their age never triggers a write".to_owned(),
        (true, true) => String::new(),
        (true, false) => format!(", up to {} old", human::seconds(age)),
    };
    let summary = match &drain {
        Some(((device, speed), seconds)) => format!(
            "{amount} are only in memory{older}: a power cut loses them, a clean stop takes {}{} to write them to {}{}.",
            if speed.basis == Basis::AtMost { "at least " } else { "" },
            human::seconds(*seconds),
            device.name,
            speed.by_estimate()
        ),
        None => format!(
            "{amount} are only in memory{older}: a power cut loses them. The time to write them is not known, because \
             their disk was not busy enough to show its speed."
        ),
    };
    let mut evidence = vec![
        Evidence::bytes("Dirty and under writeback, most", risk.counted, "/proc/vmstat nr_dirty + nr_writeback")
            .against(MUCH as f64),
    ];
    evidence.extend(outrun.is_none().then(|| {
        Evidence::seconds("Oldest it may get", age, "dirty_expire_centisecs + dirty_writeback_centisecs").against(OLD_S)
    }));
    evidence.extend(risk.written.map(|part| {
        Evidence::share("Part of it that the disks write", part, "/proc/diskstats written ÷ /proc/vmstat nr_written")
    }));
    if let Some(((device, speed), seconds)) = &drain {
        let name = format!("Of it, for {}", device.name);
        evidence.extend(
            (part < at_risk)
                .then(|| Evidence::bytes(name, counted(part), "debugfs bdi stats BdiReclaimable + BdiWriteback")),
        );
        evidence.push(Evidence::seconds("Time to write it", *seconds, "dirty ÷ device bandwidth").against(LONG_STOP_S));
        evidence.push(Evidence::rate(format!("Bandwidth of {}", device.name), speed.value, speed.basis.source()));
    }
    evidence.extend(dirtiest(derived));
    let drain = drain.map(|(drain, _)| drain);
    let known = drain.as_ref().map(|(_, speed)| *speed).filter(|speed| speed.basis.is_known());
    let Remedy { plan, trade_off, costs } = remedy(derived, age, known);
    let held = drain.as_ref().and_then(|(device, speed)| beside::cost_of_held(derived, device, Some(*speed)));
    let costs = held.into_iter().chain([costs]).collect::<Vec<_>>().join(" ");
    let brief = Brief {
        because: match (age >= OLD_S, &outrun) {
            (true, _) => "The age at which the kernel writes data out is very long or switched off.".to_owned(),
            (false, Some(disk)) => format!(
                "Programs write more than {} takes. The rest stays in memory, up to the limit of the kernel.",
                disk.name
            ),
            (false, None) => {
                "Below the background threshold the kernel writes data out only when they are old.".to_owned()
            }
        },
        expect: "Data reach the disk sooner. Less is lost in a power cut.".to_owned(),
        costs,
        ..Brief::default()
    };
    Finding {
        rule: RULE.name,
        severity,
        summary,
        evidence,
        cause: match (age >= OLD_S, &outrun) {
            (true, _) => "The age at which dirty data are written is very long or switched off.".to_owned(),
            (false, Some(disk)) => format!(
                "Programs dirty more than {} writes. The kernel pauses them near its limit. Up to that limit, data stay in memory.",
                disk.name
            ),
            (false, None) => {
                "The background threshold is a part of memory. Below it, only age makes the flusher write.".to_owned()
            }
        },
        brief,
        plan,
        trade_off,
        ..Finding::default()
    }
}

/// The cgroups with the most dirty data of their own.
fn dirtiest(derived: &Derived<'_>) -> impl Iterator<Item = Evidence> {
    let own = cgroup::own_amounts(derived.window, |span| span.max.file_dirty.map(|bytes| bytes.0));
    own.into_iter()
        .filter(|(_, bytes)| *bytes >= LITTLE)
        .take(3)
        .map(|(id, bytes)| Evidence::bytes(format!("Of it, in {}", derived.label(id)), bytes, "memory.stat file_dirty"))
}

/// Longest age and period that a change sets, centiseconds: the kernel's defaults.
const EXPIRE: u64 = 3000;
const PERIOD: u64 = 500;

/// What writes data out sooner.
struct Remedy {
    plan: Vec<Step>,
    trade_off: String,
    /// The same for the first screen.
    costs: String,
}

fn remedy(derived: &Derived<'_>, age: f64, speed: Option<Speed>) -> Remedy {
    let advice = threshold::choose(&threshold::Needs::of(derived, speed));
    let advice = advice.filter(|advice| matches!(advice.pair, Pair::Bytes { .. }));
    let lower = advice.as_ref().and_then(|advice| Some((threshold::lowering(derived, advice)?, advice)));
    if age >= OLD_S {
        // Age alone would send all that is old at once.
        let mut changes = lower.iter().flat_map(|(pair, _)| pair.changes()).collect::<Vec<_>>();
        let row = &derived.window.host.last;
        // An age that is shorter already stays.
        let expire = row.dirty_expire_centisecs.map_or(EXPIRE, |expire| expire.0);
        if expire > EXPIRE {
            changes.push(("vm.dirty_expire_centisecs", EXPIRE));
        }
        if row.dirty_writeback_centisecs.is_none_or(|period| period.0 == 0 || period.0 > PERIOD) {
            changes.push(("vm.dirty_writeback_centisecs", PERIOD));
        }
        let each_s = expire.min(EXPIRE) as f64 / 100.0;
        let each = human::seconds(each_s);
        let at_once = match lower {
            Some(_) => "With the smaller thresholds, old data do not go to the disk in one burst.".to_owned(),
            None => format!(
                "All old data go to the disk at once after the change. After that, so does what programs write in {each}. \
                 A sync waits behind it. Where that takes the disk more than a second, lower the background threshold too."
            ),
        };
        let costs = match lower {
            Some(_) => REWRITTEN.to_owned(),
            None => threshold::cost_of_age(each_s),
        };
        let trade_off = format!("Disks wake up every {each} while programs write. {at_once}");
        return Remedy { plan: derived.sysctls(&changes), trade_off, costs };
    }
    let (plan, trade_off) = match lower {
        Some((pair, advice)) => (derived.sysctls(&pair.changes()), format!("{} {}", advice.why, advice.trade_off)),
        None => (
            derived.sysctls(&[("vm.dirty_expire_centisecs", 1000), ("vm.dirty_writeback_centisecs", 200)]),
            "Pages that change often are written up to three times as often.".to_owned(),
        ),
    };
    Remedy { plan, trade_off, costs: REWRITTEN.to_owned() }
}

const REWRITTEN: &str = "Pages that change often are written more often.";

#[cfg(test)]
mod tests;
