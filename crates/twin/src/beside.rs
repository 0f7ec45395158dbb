// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a prediction says of the change itself, beside its figures: how a kernel was taken, and what of the changed host is not
//! simulated. Runs nothing.

use crate::Twin;
use crate::changed::Changed;
use crate::thresholds::Thresholds;
use floodline_analysis::prediction::Setting;
use floodline_kernel::{Planned, is_newer_than_modelled, newest_modelled};
use floodline_record::version::KernelVersion;
use floodline_record::window::Window;

/// What people have to know about a change.
pub(crate) fn warnings(window: &Window, settings: &[Setting], now: KernelVersion) -> Vec<String> {
    let void = Thresholds::of(window, settings).and_then(|set| set.warning());
    void.into_iter().chain(of_kernel(settings, now)).collect()
}

/// How the kernel of a change was taken, if a series was named, and whether it is newer than the newest that is known.
pub(crate) fn of_kernel(settings: &[Setting], now: KernelVersion) -> Vec<String> {
    let planned = settings.iter().filter(|one| one.key == "kernel").find_map(|one| one.value.parse::<Planned>().ok());
    let Some(planned) = planned else { return Vec::new() };
    let then = planned.on(Some(now));
    let kept = planned.is_series && then == now;
    let series = planned.told().filter(|_| !kept).map(|told| format!("{told}."));
    let newer = is_newer_than_modelled(then).then(|| {
        let newest = newest_modelled();
        format!(
            "Linux {} is newer than {newest}, the newest kernel known here: it is simulated like that one.",
            then.series()
        )
    });
    series.into_iter().chain(newer).collect()
}

/// What the model leaves out of a host: of the present one, and of the changed one.
pub(crate) fn simplified(twin: &Twin, then: Option<&Changed>) -> Vec<String> {
    let mut said = twin.simplified.clone();
    let Some(then) = then else { return said };
    let now = floodline_sim::simplified(&twin.scenario);
    let of_change = floodline_sim::simplified(&then.scenario).into_iter().filter(|one| !now.contains(one));
    let mut added: Vec<String> = of_change.filter(|one| !twin.simplified.contains(one)).collect();
    // What the change brings stands first.
    added.append(&mut said);
    added
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_is_not_the_one_that_was_typed_is_said() {
        let told = |kernel: &str, now: &str| {
            of_kernel(&[Setting::new("kernel", kernel)], now.parse().expect("a version")).join(" ")
        };
        assert!(told("6.12", "6.1.0").starts_with("6.12 is taken as 6.12."), "{}", told("6.12", "6.1.0"));
        assert_eq!(told("6.12.43", "6.1.0"), "");
        assert_eq!(told("6.12", "6.12.999"), "");
        let newer = format!(
            "Linux 99.1 is newer than {}, the newest kernel known here: it is simulated like that one.",
            newest_modelled()
        );
        assert_eq!(told("99.1", "6.1.0"), newer);
        assert_eq!(of_kernel(&[Setting::new("vm.dirty_ratio", 5)], KernelVersion::new(6, 1, 0)), Vec::<String>::new());
    }
}
