// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a host shows of its kernel: files and mounts that only exist where a change is in. They count more than the
//! version, because distributions carry changes back. Shows presence only: that a file was not read proves nothing.

use floodline_kernel::Behaviour;
use floodline_record::version::KernelVersion;
use floodline_record::window::Window;

/// The behaviour of the kernel of a window: by its version, and by what the host shows. `None` where the version is not
/// known.
pub fn behaviour(window: &Window) -> Option<Behaviour> {
    Some(behaviour_of(window, window.facts.as_ref()?.kernel?))
}

/// The behaviour of a kernel of this version, with what the host of a window shows of its own.
pub fn behaviour_of(window: &Window, version: KernelVersion) -> Behaviour {
    Behaviour::probed(version, |change| shows(window, change).then_some(true))
}

/// Whether the host shows that its kernel has a change, given by its id.
fn shows(window: &Window, change: &str) -> bool {
    let facts = || window.facts.iter();
    match change {
        // The file of a backing device with every cgroup's wb.
        "wb-stats" => window.wbs.values().any(|span| span.last.reclaimable.is_some()),
        "bdi-ratios-ppm" => window.bdis.values().any(|span| span.last.max_bytes.or(span.last.min_bytes).is_some()),
        "wbt" => facts().flat_map(|facts| &facts.devices).any(|device| device.wbt_lat.is_some()),
        "overlay-volatile" => facts()
            .flat_map(|facts| &facts.mounts)
            .any(|mount| mount.overlay.as_ref().is_some_and(|overlay| overlay.volatile)),
        _ => false,
    }
}

/// Changes that [`behaviour`] looks for.
#[cfg(test)]
const SHOWN: &[&str] = &["wb-stats", "bdi-ratios-ppm", "wbt", "overlay-volatile"];

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_kernel::change;
    use floodline_record::facts::HostFacts;
    use floodline_record::sample::{BdiRow, WbRow};
    use floodline_record::units::Bytes;
    use floodline_record::window::Span;
    use floodline_testkit::Fixture;

    #[test]
    fn every_change_that_is_looked_for_exists_and_sets_a_field() {
        for id in SHOWN {
            assert!(change(id).is_some_and(|change| change.set.is_some()), "{id}");
        }
    }

    #[test]
    fn a_file_that_is_there_counts_more_than_the_version() {
        let old = || {
            let mut window = Fixture::healthy().kernel("5.10.223").window();
            (window.wbs, window.bdis) = Default::default();
            window
        };
        let by_version = behaviour(&old()).expect("a version");
        assert!(!by_version.files.wb_stats && !by_version.files.bdi_stats_sum && !by_version.knobs.bdi_fine);
        let mut window = old();
        let id = floodline_record::id::EntityId(900);
        let row = WbRow { reclaimable: Some(Bytes(1)), ..WbRow::default() };
        window.wbs.insert(id, Span { last: row, ..Span::default() });
        let shown = behaviour(&window).expect("a version");
        assert!(shown.files.wb_stats && shown.files.bdi_stats_sum && !shown.knobs.bdi_fine);
        let row = BdiRow { max_bytes: Some(Bytes(1)), ..BdiRow::default() };
        window.bdis.insert(id, Span { last: row, ..Span::default() });
        assert!(behaviour(&window).expect("a version").knobs.bdi_fine);
    }

    #[test]
    fn without_a_version_nothing_is_assumed() {
        let window = Window { facts: Some(HostFacts::default()), ..Window::default() };
        assert!(behaviour(&window).is_none());
    }
}
