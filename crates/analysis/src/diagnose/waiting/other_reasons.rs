// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiters that did not wait for a device because of other programs: those that waited for another device, at a limit, or for data of
//! their own.

use super::super::derived::Derived;
use super::super::device::{Basis, Device};
use super::super::{asleep, begun, crowded, elsewhere, flow, placed, strict, synced, throttle};
use super::{MOSTLY, Waiter};
use floodline_record::record::What;
use std::collections::BTreeSet;

/// Returns whether a waiter waited for something else than this device. `by_state` is whether only the states in the samples tell of some
/// of these waiters.
pub(super) fn is_other<'d>(
    derived: &'d Derived<'_>,
    device: &Device<'_>,
    by_state: bool,
) -> impl Fn(&Waiter) -> bool + use<'d> {
    let elsewhere = synced_elsewhere(derived, device);
    let paused = flow::paused_for_another(derived, device);
    let mut own = for_own_data(derived, device);
    own.extend(begun::since_before(derived, device));
    let cgroups = elsewhere::cgroups_elsewhere(derived, device);
    let readers = elsewhere::readers_elsewhere(derived, device);
    let placed = placed::waiting_elsewhere(derived, device);
    let (strict, crowded) = (throttle::by_strict_limits(derived.window), crowded::shared_waits(derived, device));
    let elsewhere_limited = strict::paused_elsewhere(derived, device);
    let slept_elsewhere = asleep::elsewhere(derived, device, by_state);
    move |waiter: &Waiter| {
        let waited = waiter.seconds.unwrap_or(f64::INFINITY);
        let mostly = |paused: &f64| *paused >= MOSTLY * waited;
        let is_limited = [&strict, &crowded].iter().any(|paused| paused.get(&waiter.pid).is_some_and(mostly))
            // Samples that show when a process sleeps may not show how long.
            || elsewhere_limited.get(&waiter.pid).is_some_and(|paused| waiter.seconds.is_none() || mostly(paused));
        slept_elsewhere(waiter)
            || elsewhere.contains(&waiter.pid)
            || is_limited
            || readers.contains(&waiter.pid)
            || placed.contains(&waiter.pid)
            || own.contains(&waiter.pid)
            || waiter.cgroup.is_some_and(|cgroup| cgroups.contains(&cgroup) || paused == Some(cgroup))
    }
}

/// Processes that a trace saw wait for the data that they asked for themselves, and never saw paused: no other program makes
/// them wait.
fn for_own_data(derived: &Derived<'_>, device: &Device<'_>) -> BTreeSet<u32> {
    let window = derived.window;
    let speed = device.write_bandwidth().filter(|speed| speed.basis == Basis::Saturated);
    let Some(speed) = speed.filter(|_| throttle::events(window).is_some()) else { return BTreeSet::new() };
    let mut own = synced::for_own_data(window, &elsewhere::filesystems_on(derived, device), speed.value);
    for event in throttle::events(window).into_iter().flatten() {
        own.remove(&event.who.pid);
    }
    own
}

/// Processes that a trace saw write to other devices only and never saw paused: their syncs wait for those devices. A pause may
/// come from the data of another device, since all share the machine's threshold.
fn synced_elsewhere(derived: &Derived<'_>, device: &Device<'_>) -> BTreeSet<u32> {
    let window = derived.window;
    if derived.drains().len() < 2 || synced::waits(window).is_none() || throttle::events(window).is_none() {
        return BTreeSet::new();
    }
    let mut elsewhere = elsewhere::never_on(derived, device);
    for event in &window.events {
        if let What::Throttled(event) = &event.what {
            elsewhere.remove(&event.who.pid);
        }
    }
    elsewhere
}
