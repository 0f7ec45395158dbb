// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `dirty-data-at-risk`: how much data exists only in memory, how old it may get, and how long
//! writing it out takes. Works in one look. Whether it stalls anybody is `dirty-cliff`.
#![doc = include_str!("dirty_data_at_risk.md")]

mod folios;

use crate::advise::beside;
use crate::advise::threshold::{self, Pair};
use crate::diagnose::derived::Derived;
use crate::diagnose::device::{Basis, Device, Speed};
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
    let severity = if is_old || is_long(VERY_LONG_STOP_S) || (is_long(LONG_STOP_S) && outrun.is_none() && is_likely()) {
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
            "{amount} are only in memory{older}: a power cut loses them, a clean stop writes {}{} to {}{}.",
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
            "Pages that are rewritten often are written up to three times as often.".to_owned(),
        ),
    };
    Remedy { plan, trade_off, costs: REWRITTEN.to_owned() }
}

const REWRITTEN: &str = "Pages rewritten often are written more often.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::check_rule;
    use floodline_record::facts::{HostFacts, Mount};
    use floodline_record::gap::Cause;
    use floodline_record::sample::BdiRow;
    use floodline_record::units::{Bytes, BytesPerSecond, Centisecs};
    use floodline_testkit::incidents::{dirty_cliff, dirty_cliff_published};
    use floodline_testkit::{Fixture, mib, mib_pages};

    fn whole(counted: u64) -> AtRisk {
        AtRisk { counted, written: None }
    }

    fn dirty_mib(amount: f64) -> Fixture {
        Fixture::healthy().host(move |_, row| row.nr_dirty = Some(mib_pages(amount)))
    }

    #[test]
    fn amounts_are_held_against_the_time_to_write_them() {
        check_rule(
            &RULE,
            &dirty_mib(100.0),
            "clear: the most that was dirty or under writeback in a sample is 100 MiB, 243 ms of writing; the flusher writes it once it is 35 s old",
        );
        check_rule(&RULE, &dirty_mib(1200.0), "info: 1.17 GiB are only in memory, up to 35 s old");
        // A counter that fell below zero is not data: the value of meminfo counts.
        let wrapped =
            Fixture::healthy().host(|_, row| row.nr_dirty = Some(floodline_record::units::Pages(u64::MAX - 5)));
        check_rule(&RULE, &wrapped, "clear: ");
        let slow =
            |amount: f64| dirty_mib(amount).bdi("8:0", |_, row| row.write_bandwidth = Some(BytesPerSecond(mib(30.0))));
        check_rule(&RULE, &slow(400.0), "warning: 400 MiB are only in memory, up to 35 s old");
        check_rule(&RULE, &slow(200.0), "clear:");
        check_rule(&RULE, &dirty_cliff_published(), "warning: 11.0 GiB");
        check_rule(&RULE, &dirty_cliff(), "clear: the most that was dirty or under writeback in a sample is 298 MiB");
    }

    #[test]
    fn folios_that_are_written_in_parts_are_not_all_at_risk() {
        let on = |facts: &mut HostFacts, fs_type: &str, kernel: &str| {
            facts.mounts[0].fs_type = fs_type.into();
            facts.kernel = kernel.parse().ok();
        };
        let host = |written_mib: f64, dirty_mib: f64| {
            Fixture::healthy()
                .host(move |t, row| {
                    row.nr_dirty = Some(mib_pages(dirty_mib));
                    row.nr_written = Some(mib_pages(300.0 * t));
                })
                .disk("sda", move |t, row| row.written = Some(Bytes(mib(written_mib * t))))
                .seconds(50)
                .facts(move |facts| on(facts, "xfs", "6.12.1"))
        };
        check_rule(&RULE, &host(300.0, 1600.0), "info: 1.56 GiB are only in memory");
        check_rule(
            &RULE,
            &host(3.0, 1600.0),
            "clear: the most that was dirty or under writeback in a sample is about 105 MiB (at most 1.56 GiB, counted in whole folios)",
        );
        check_rule(
            &RULE,
            &host(60.0, 12_000.0),
            "info: about 2.34 GiB (at most 11.7 GiB, counted in whole folios) are only in memory",
        );
        // Nothing shows parts of folios where the kernel or the filesystem writes none, and where data are compressed.
        let whole = "info: 1.56 GiB are only in memory";
        check_rule(&RULE, &host(3.0, 1600.0).facts(move |facts| on(facts, "xfs", "6.1.170")), whole);
        check_rule(&RULE, &host(3.0, 1600.0).facts(move |facts| on(facts, "ext4", "6.12.1")), whole);
        let compressed = |facts: &mut HostFacts| {
            let mount = Mount { super_options: "rw,compress=zstd:3".into(), ..facts.mounts[0].clone() };
            facts.mounts.push(mount);
        };
        check_rule(&RULE, &host(3.0, 1600.0).facts(compressed), whole);
    }

    #[test]
    fn data_that_came_after_the_folios_are_at_risk_as_a_whole() {
        // A store dirties parts of folios all the time, and a copy is in memory at the end.
        let copy = |copied_s: f64| {
            Fixture::healthy()
                .seconds(50)
                .facts(|facts| facts.mounts[0].fs_type = "xfs".into())
                .host(move |t, row| {
                    row.nr_dirty = Some(mib_pages(if t > copied_s { 1200.0 } else { 100.0 }));
                    row.nr_written = Some(mib_pages(100.0 * t));
                })
                .disk("sda", |t, row| row.written = Some(Bytes(mib(0.5 * t))))
        };
        check_rule(&RULE, &copy(45.0), "info: 1.17 GiB are only in memory");
        // The store's folios are cleaned again and again. The copy is not old enough.
        check_rule(&RULE, &copy(30.0), "info: 1.17 GiB are only in memory");
    }

    #[test]
    fn the_disk_that_needs_longest_for_its_own_data_counts() {
        let two_disks = |reclaimable: f64| {
            let bdi = move |bytes: f64, speed: f64| {
                move |t: f64, row: &mut BdiRow| {
                    row.reclaimable = Some(Bytes(mib(bytes - t)));
                    row.writeback = Some(Bytes(0));
                    row.write_bandwidth = Some(BytesPerSecond(mib(speed)));
                }
            };
            dirty_mib(700.0)
                .disk("sdb", |t, row| row.written = Some(Bytes(mib(t))))
                .disk("sda", |t, row| row.written = Some(Bytes(mib(50.0 * t))))
                .bdi("8:0", bdi(695.0 - reclaimable, 50.0))
                .bdi("8:16", bdi(reclaimable, 20.0))
        };
        let told = |reclaimable: f64| {
            let window = two_disks(reclaimable).window();
            let drain = drain(&Derived::of(&window), whole(mib(700.0)));
            (drain.to.map(|(device, _)| device.name.to_string()), drain.part, drain.seconds())
        };
        assert_eq!(told(650.0), (Some("sdb".to_owned()), mib(650.0), Some(32.5)));
        // The slow one needs longer for less.
        assert_eq!(told(300.0).0, Some("sdb".to_owned()));
        // The other disk says nothing of a disk whose speed is not known.
        let unknown = two_disks(650.0).bdi("8:16", |t, row| {
            (row.reclaimable, row.writeback) = (Some(Bytes(mib(650.0 - t))), Some(Bytes(0)));
            row.write_bandwidth = None;
        });
        let unknown = unknown.disk("sdb", |_, _| {}).window();
        assert!(drain(&Derived::of(&unknown), whole(mib(700.0))).to.is_none());
    }

    #[test]
    fn a_pile_that_is_soon_gone_is_no_warning_unless_a_stop_would_take_very_long() {
        let pile = |amount: f64, until: f64| {
            Fixture::healthy()
                .host(move |t, row| row.nr_dirty = Some(mib_pages(if t < until { amount } else { 1.0 })))
                .bdi("8:0", |_, row| row.write_bandwidth = Some(BytesPerSecond(mib(30.0))))
                .seconds(20)
        };
        check_rule(&RULE, &pile(400.0, 6.0), "info: 400 MiB are only in memory, up to 35 s old");
        check_rule(&RULE, &pile(400.0, 14.0), "warning: 400 MiB are only in memory, up to 35 s old");
        check_rule(&RULE, &pile(1000.0, 6.0), "warning: 0.98 GiB are only in memory, up to 35 s old");
        // Ten seconds may be the last of a cycle.
        check_rule(&RULE, &pile(400.0, 7.0).seconds(10), "info: 400 MiB are only in memory, up to 35 s old");
        check_rule(&RULE, &pile(400.0, 14.0).seconds(10), "warning: 400 MiB are only in memory, up to 35 s old");
        check_rule(&RULE, &pile(400.0, 14.0).one_look(), "warning: 400 MiB are only in memory, up to 35 s old");
    }

    #[test]
    fn data_of_a_copy_that_outruns_the_disk_do_not_wait_for_their_age() {
        let copy = |amount: f64, dirtied: f64| {
            Fixture::healthy()
                .seconds(60)
                .host(move |t, row| {
                    row.nr_dirty = Some(mib_pages(amount));
                    row.nr_dirtied = Some(mib_pages(dirtied * t));
                })
                .disk("sda", |t, row| {
                    row.written = Some(Bytes(mib(95.0 * t)));
                    row.writes = Some(floodline_record::units::Count(90 * t as u64));
                    row.io_time = Some(floodline_testkit::secs(t));
                    row.weighted_io_time = Some(floodline_testkit::secs(100.0 * t));
                })
                .bdi("8:0", |_, row| row.write_bandwidth = Some(BytesPerSecond(mib(95.0))))
        };
        check_rule(&RULE, &copy(1400.0, 120.0), "info: 1.37 GiB are only in memory: a power cut loses them, a clean");
        let finding = crate::diagnose::first_finding(&RULE, &copy(1400.0, 120.0));
        assert!(finding.brief.because.starts_with("Programs write more than sda takes."), "{}", finding.brief.because);
        assert!(!finding.cause.contains("age"), "{}", finding.cause);
        assert!(!finding.evidence.iter().any(|row| row.name.starts_with("Oldest")), "{:?}", finding.evidence);
        // One burst may be as long as a short look.
        let burst = crate::diagnose::first_finding(&RULE, &copy(1400.0, 120.0).seconds(12)).brief.because;
        assert!(!burst.starts_with("Programs write more"), "{burst}");
        // The same amount, on a disk that keeps up.
        check_rule(&RULE, &copy(1400.0, 20.0), "warning: 1.37 GiB are only in memory, up to 35 s old");
        // A stop of half a minute is long, whatever the reason.
        check_rule(&RULE, &copy(4000.0, 120.0), "warning: 3.91 GiB are only in memory: a power cut");
    }

    #[test]
    fn a_disk_that_turns_is_never_faster_than_its_kind() {
        let turning = |amount: f64| {
            dirty_mib(amount).bdi("8:0", |_, row| row.write_bandwidth = Some(BytesPerSecond(200 << 20))).facts(
                |facts| {
                    facts.devices.iter_mut().for_each(|device| device.rotational = Some(true));
                },
            )
        };
        check_rule(&RULE, &turning(1200.0), "info: 1.17 GiB are only in memory, up to 35 s old");
        check_rule(
            &RULE,
            &turning(3600.0),
            "warning: 3.52 GiB are only in memory, up to 35 s old: a power cut loses them, a clean stop writes at least 13 s",
        );
    }

    #[test]
    fn what_moves_from_dirty_to_writeback_is_counted_once() {
        let moves = Fixture::healthy().host(|t, row| {
            let written = 300.0 * t;
            row.nr_dirty = Some(mib_pages(3000.0 - written));
            row.nr_writeback = Some(mib_pages(written));
        });
        check_rule(&RULE, &moves, "info: 2.93 GiB are only in memory");
    }

    #[test]
    fn an_age_without_end_matters_when_there_is_something_to_lose() {
        let off = |amount: f64| dirty_mib(amount).host(|_, row| row.dirty_writeback_centisecs = Some(Centisecs(0)));
        check_rule(&RULE, &off(20.0), "warning: 20.0 MiB are only in memory, and their age never triggers a write");
        check_rule(
            &RULE,
            &off(2.0),
            "clear: the most that was dirty or under writeback in a sample is 2.00 MiB, 4.85 ms of writing; the \
             flusher does not write by age",
        );
    }

    #[test]
    fn an_age_that_is_short_already_is_not_made_longer() {
        let off = |expire: u64| {
            let fixture = dirty_mib(300.0).host(move |_, row| {
                row.dirty_writeback_centisecs = Some(Centisecs(0));
                row.dirty_expire_centisecs = Some(Centisecs(expire));
            });
            let Verdict::Found(findings) = check(&Derived::of(&fixture.window())) else { panic!("nothing found") };
            let set = |step: &Step| step.command.clone();
            findings[0].plan.iter().filter(|step| step.command.contains("_centisecs=")).map(set).collect::<Vec<_>>()
        };
        assert_eq!(off(1000), ["sysctl -w vm.dirty_writeback_centisecs=500"]);
        let both = ["sysctl -w vm.dirty_expire_centisecs=3000", "sysctl -w vm.dirty_writeback_centisecs=500"];
        assert_eq!(off(360_000), both);
    }

    #[test]
    fn one_look_is_enough() {
        check_rule(&RULE, &dirty_mib(1200.0).one_look(), "info: 1.17 GiB");
    }

    #[test]
    fn the_cgroups_it_belongs_to_are_named() {
        let fixture = dirty_mib(1300.0)
            .cgroup("/system.slice", |_, row| row.file_dirty = Some(Bytes(mib(650.0))))
            .cgroup("/system.slice/db.service", |_, row| row.file_dirty = Some(Bytes(mib(640.0))));
        let Verdict::Found(findings) = check(&Derived::of(&fixture.window())) else { panic!("nothing found") };
        let names: Vec<&str> = findings[0].evidence.iter().map(|row| row.name.as_str()).collect();
        assert!(names.contains(&"Of it, in /system.slice/db.service"), "{names:?}");
        assert!(!names.contains(&"Of it, in /system.slice"), "{names:?}");
    }

    #[test]
    fn without_its_inputs_it_says_so() {
        let vanished =
            Fixture::healthy().without(Source::Vmstat, Cause::Vanished).without(Source::Meminfo, Cause::Vanished);
        check_rule(&RULE, &vanished, "not checked: /proc/vmstat: removed before it was read");
        let no_sysctl = Fixture::healthy().without(Source::SysctlVm, Cause::NotFound);
        check_rule(&RULE, &no_sysctl, "not checked: /proc/sys/vm/NAME: does not exist here");
    }
}
