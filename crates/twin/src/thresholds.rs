// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limit and the background threshold that a host would have after a change, and which of them are useless: a
//! background threshold that is not below the limit, and a limit that a moment of writing exceeds. Arithmetic only, no run.

use crate::Twin;
use floodline_analysis::diagnose::dirty::dirtyable_roughly;
use floodline_analysis::diagnose::settings::Settings;
use floodline_analysis::prediction::Setting;
use floodline_record::units::Centisecs;
use floodline_record::window::Window;
use floodline_scenario::ByteSize;

/// The length of a moment of writing, seconds.
const MOMENT: f64 = 0.005;

/// The two settings after a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Thresholds {
    set: Settings,
    /// Bytes that percentages are of; `None` where they were not read.
    dirtyable: Option<f64>,
    /// Age at which data are written, and time between two looks of the flusher, centiseconds.
    expire: Option<u64>,
    period: Option<u64>,
}

impl Thresholds {
    /// Of a host after a change; `None` where its settings were not read.
    pub(crate) fn of(window: &Window, settings: &[Setting]) -> Option<Thresholds> {
        let mut set = Settings::of(&window.host.last)?;
        let last = &window.host.last;
        let (mut expire, mut period) = (last.dirty_expire_centisecs, last.dirty_writeback_centisecs);
        for setting in settings {
            let Some(value) = number(&setting.value) else { continue };
            let pair = match setting.key.strip_prefix("machine.sysctl.").unwrap_or(&setting.key) {
                "vm.dirty_bytes" => [&mut set.bytes, &mut set.ratio],
                "vm.dirty_ratio" => [&mut set.ratio, &mut set.bytes],
                "vm.dirty_background_bytes" => [&mut set.background_bytes, &mut set.background_ratio],
                "vm.dirty_background_ratio" => [&mut set.background_ratio, &mut set.background_bytes],
                "vm.dirty_expire_centisecs" => {
                    expire = Some(Centisecs(value));
                    continue;
                }
                "vm.dirty_writeback_centisecs" => {
                    period = Some(Centisecs(value));
                    continue;
                }
                _ => continue,
            };
            // The kernel sets the other member of a pair to 0.
            let [named, other] = pair;
            (*named, *other) = (value, 0);
        }
        let dirtyable = dirtyable_roughly(window).map(|bytes| bytes.0 as f64);
        let (expire, period) = (expire.map(|age| age.0), period.map(|time| time.0));
        Some(Thresholds { set, dirtyable, expire, period })
    }

    fn bytes(&self, ratio: u64, bytes: u64) -> Option<f64> {
        if bytes > 0 { Some(bytes as f64) } else { Some(ratio as f64 / 100.0 * self.dirtyable?) }
    }

    /// The limit of the whole host in bytes.
    pub(crate) fn limit(&self) -> Option<f64> {
        self.bytes(self.set.ratio, self.set.bytes)
    }

    /// Whether the background threshold is at or above the limit, so that the kernel uses half of the limit.
    pub(crate) fn is_void(&self) -> bool {
        if self.set.bytes == 0 && self.set.background_bytes == 0 {
            return self.set.background_ratio >= self.set.ratio;
        }
        let background = self.bytes(self.set.background_ratio, self.set.background_bytes);
        background.zip(self.limit()).is_some_and(|(background, limit)| background >= limit)
    }

    /// What people have to know about a change: its background threshold is void.
    pub(crate) fn warning(&self) -> Option<String> {
        self.is_void().then(|| {
            format!(
                "The background threshold of {} is not below the limit of {}: the kernel uses half of the limit \
                 (contradictory-dirty-settings).",
                self.set.background(),
                self.set.limit()
            )
        })
    }

    /// Whether these settings contradict each other, as `contradictory-dirty-settings` judges: the background threshold is
    /// void or tiny, the limit is tiny, or data expire before the flusher looks.
    fn is_contradictory(&self) -> bool {
        let is_late = self.expire.zip(self.period).is_some_and(|(age, period)| period > 0 && age < period);
        self.is_void() || self.set.has_tiny_background() || self.set.has_tiny_limit() || is_late
    }

    /// Whether these thresholds can be advised: they do not contradict each other, unless those of now do, and the limit is
    /// no lower than `least` bytes, unless it is that low already.
    pub(crate) fn can_be_advised(&self, window: &Window, least: f64) -> bool {
        let now = Thresholds::of(window, &[]);
        let limit = now.and_then(|now| now.limit());
        let is_low = self.limit().is_some_and(|new| new < least && limit.is_none_or(|limit| new < limit));
        !is_low && !self.is_void() && (!self.is_contradictory() || now.is_some_and(|now| now.is_contradictory()))
    }
}

/// A value as `sysctl` takes it, with a unit where it has one: `64M` is 64 MiB.
fn number(value: &str) -> Option<u64> {
    let short = [('K', "KiB"), ('M', "MiB"), ('G', "GiB"), ('T', "TiB")];
    let long = short.iter().find_map(|(letter, unit)| Some(format!("{} {unit}", value.strip_suffix(*letter)?)));
    let value = long.as_deref().unwrap_or(value);
    value.parse().ok().or_else(|| value.parse::<ByteSize>().ok().map(|size| size.bytes()))
}

/// Seconds of writing at the speed of the fastest disk that may be at risk without being harm.
const DRAIN_S: f64 = 3.0;
/// Part of memory that may be at risk without being harm.
const RISK_SHARE: f64 = 0.05;

/// Data at risk that a change may have without being worse for it: 1.1 times the present peak or, if that is
/// more, what the fastest disk writes in 3 s, up to 5 % of the memory. Every command judges by it.
pub(crate) fn risk_room(twin: &Twin, now: f64) -> f64 {
    let speeds = twin.ceilings.iter().filter_map(|ceiling| ceiling.write_bytes_per_second);
    let memory = twin.scenario.machine.memory.bytes() as f64;
    let drained = (speeds.fold(0.0, f64::max) * DRAIN_S).min(memory * RISK_SHARE);
    (now * 1.1).max(drained)
}

/// The smallest limit of a whole host that helps anyone: that many bytes of folios, and what the host dirtied in a moment
/// of its fastest interval.
pub(crate) fn least_limit(window: &Window, folios: f64) -> f64 {
    let page = window.facts.as_ref().map_or(4096, |facts| facts.page_size.max(1)) as f64;
    let rates = window.host_series.windows(2).filter_map(|pair| {
        let [(from, before), (to, after)] = pair else { return None };
        let seconds = to.monotonic.0.checked_sub(from.monotonic.0).filter(|ns| *ns > 0)? as f64 / 1e9;
        Some(after.nr_dirtied?.0.saturating_sub(before.nr_dirtied?.0) as f64 * page / seconds)
    });
    folios.max(rates.fold(0.0, f64::max) * MOMENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_testkit::Fixture;

    const MIB: u64 = 1 << 20;

    fn after(settings: &[(&str, u64)]) -> Thresholds {
        let window = Fixture::healthy().settings((20, 0, 10, 0)).window();
        let settings: Vec<Setting> = settings.iter().map(|(key, value)| Setting::new(*key, value)).collect();
        Thresholds::of(&window, &settings).unwrap()
    }

    #[test]
    fn a_background_threshold_at_the_limit_or_above_is_void() {
        assert!(!after(&[]).is_void());
        assert!(after(&[("vm.dirty_ratio", 10)]).is_void());
        assert!(after(&[("vm.dirty_bytes", 64 * MIB), ("vm.dirty_background_bytes", 64 * MIB)]).is_void());
        assert!(!after(&[("vm.dirty_bytes", 64 * MIB), ("vm.dirty_background_bytes", 63 * MIB)]).is_void());
        // The kept ratio of 10 % is more than the new limit.
        assert!(after(&[("vm.dirty_bytes", MIB)]).is_void());
        let told = after(&[("vm.dirty_ratio", 5)]).warning().unwrap();
        assert!(told.contains("10 %") && told.contains("5 %"), "{told}");
    }

    #[test]
    fn values_have_the_units_of_the_command_line() {
        assert_eq!(["64M", "64 MiB", "67108864"].map(number), [Some(64 * MIB); 3]);
        assert_eq!(["2G", "much"].map(number), [Some(2048 * MIB), None]);
    }

    #[test]
    fn a_limit_that_a_moment_exceeds_is_not_advised() {
        let window = Fixture::healthy().settings((20, 0, 10, 0)).window();
        let least = least_limit(&window, (8 * MIB) as f64);
        assert!(least >= (8 * MIB) as f64);
        let can = |bytes: u64| {
            let set = [("vm.dirty_bytes", bytes), ("vm.dirty_background_bytes", bytes / 2)];
            after(&set).can_be_advised(&window, least)
        };
        assert!(!can(2 * MIB) && !can(4 * MIB) && can(64 * MIB));
        let late = [("vm.dirty_expire_centisecs", 300)];
        assert!(after(&[("vm.dirty_expire_centisecs", 600)]).can_be_advised(&window, least));
        assert!(!after(&late).can_be_advised(&window, least), "data expire before the flusher looks");
        let tiny = after(&[("vm.dirty_bytes", 16 * MIB), ("vm.dirty_background_bytes", 3 * MIB / 4)]);
        assert!(!tiny.can_be_advised(&window, least), "contradictory-dirty-settings would appear");
        let low = Fixture::healthy().settings((0, 2 * MIB, 0, MIB)).window();
        assert!(Thresholds::of(&low, &[]).unwrap().can_be_advised(&low, least), "it is that low already");
    }
}
