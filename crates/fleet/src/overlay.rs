// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tier 1 for overlays that lose the option `volatile`. The kernel then no longer leaves out their syncs (`ovl_sync_fs`): each `syncfs`, and
//! each unmount, writes all unwritten data of the filesystem that carries the overlay. No recording shows these calls, as they end at once
//! now. Does not cover overlays that are synced already.

use crate::harm::LONGEST_S;
use crate::waits;
use floodline_analysis::diagnose::derived::Derived;
use floodline_analysis::diagnose::unmount::upper::{Level, Upper, dirty_of, uppers};
use floodline_record::human;
use floodline_record::window::Window;

/// What a sync or an unmount of an overlay waits for after the change.
pub(crate) struct Synced {
    /// Time to write the most data that was unwritten, seconds.
    pub(crate) seconds: f64,
    pub(crate) told: String,
}

/// The longest wait for an overlay that is synced in the window `then` and not `now`. `None` where it is too short to be noticed.
pub(crate) fn synced(now: &Derived<'_>, then: &Window) -> Option<Synced> {
    let volatile = |window: &Window| {
        let mounts = window.facts.iter().flat_map(|facts| &facts.mounts);
        mounts.filter(|mount| mount.overlay.as_ref().is_some_and(|overlay| overlay.volatile)).count()
    };
    if volatile(now.window) <= volatile(then) {
        return None;
    }
    let then = Derived::of(then);
    let before = uppers(now);
    let is_new = |upper: &Upper<'_>| {
        let known = before.iter().find(|known| known.device.id == upper.device.id);
        known.is_none_or(|known| known.overlays < upper.overlays)
    };
    let of_upper = |upper: Upper<'_>| {
        let ((least, _), _) = dirty_of(&then, &upper.device, Level::Most, upper.is_one_drain)?;
        let speed = waits::speed(&upper.device).filter(|speed| *speed > 0.0)?;
        let (bytes, seconds) = (least as f64, least as f64 / speed);
        let told = format!(
            "An overlay on {} loses the option volatile. A sync or unmount of it then writes all unwritten data of that disk. In the recording, up to {} was unwritten, which the disk writes in {}.",
            upper.device.name,
            human::bytes(bytes),
            human::seconds(seconds)
        );
        Some(Synced { seconds, told })
    };
    let new = uppers(&then).into_iter().filter(is_new).filter_map(of_upper);
    new.max_by(|one, other| one.seconds.total_cmp(&other.seconds)).filter(|longest| longest.seconds >= LONGEST_S)
}

#[cfg(test)]
mod tests {
    use crate::arithmetic;
    use crate::change::Change;
    use crate::row::{Cause, Row, Verdict};
    use floodline_record::facts::{Mount, Overlay};
    use floodline_record::name::Name;
    use floodline_record::units::Bytes;
    use floodline_testkit::{Fixture, dev_of, mib, mib_pages, mount, secs};

    /// A host with an overlay on a disk of 10 MB/s that holds `held` MiB of unwritten data for some seconds, and none at the end.
    fn judged(held: f64, volatile: bool, change: &str) -> Row {
        let upper = Overlay { upperdir: Some(Name::from("/upper")), upper_dev: Some(dev_of("sda")), volatile };
        let layer = Mount { overlay: Some(upper), ..mount("sda", "overlay", "/layer", "rw") };
        let recording = Fixture::healthy()
            .settings((20, 0, 10, 0))
            .facts(|facts| facts.mounts.push(layer))
            .host(move |t, row| row.nr_dirty = Some(mib_pages(if t < 4.0 { held } else { 0.0 })))
            .bdi("8:0", move |t, row| row.reclaimable = Some(Bytes(if t < 4.0 { mib(held) } else { 0 })))
            .disk("sda", |t, row| {
                row.written = Some(Bytes(mib(2.0 * t)));
                row.io_time = Some(secs(mib(2.0 * t) as f64 / 10e6));
            });
        let change = Change::parse(&[change], None, None, None).unwrap();
        arithmetic::judge(&recording.window(), "a.flr", &change)
    }

    #[test]
    fn an_overlay_that_is_no_longer_volatile_waits_for_the_most_that_was_unwritten() {
        let row = judged(60.0, true, "mount/layer/options=relatime");
        assert_eq!((row.verdict, row.cause), (Verdict::Suffers, Cause::OverlaySync), "{row:?}");
        assert!((row.severity - mib(60.0) as f64 / 10e6).abs() < 0.2, "{}", row.severity);
        assert!(row.finding.contains("loses the option volatile"), "{}", row.finding);
        // Too little, volatile after the change too, or synced before it.
        assert_ne!(judged(6.0, true, "mount/layer/options=relatime").verdict, Verdict::Suffers);
        assert_ne!(judged(60.0, true, "mount/layer/options=volatile").verdict, Verdict::Suffers);
        assert_ne!(judged(60.0, false, "mount/layer/options=relatime").verdict, Verdict::Suffers);
    }
}
