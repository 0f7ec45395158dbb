// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses which bound of the demand the twin is: programs on a clock, or programs that wait for their own requests. A recording
//! of a full device shows the requests that the device let through. On a clock, a twin makes as many requests, and each of them
//! finds the device free. A twin that waits for its own requests keeps the device as full as the program did. The back-test of
//! both decides.

use crate::backtest::{backtest, simulated_error};
use crate::{Demand, Recorded, Twin};
use floodline_kernel::is_modelled;
use floodline_record::window::Window;
use floodline_scenario::Scenario;

/// The closed twin is taken if its error is below this share of the error of the open one, and smaller by this much.
pub(super) const CLEARLY: f64 = 0.8;
pub(super) const BY: f64 = 0.02;
/// Tasks times seconds from which on two more runs take too long.
pub(super) const SIZE_MAX: f64 = 6_000.0;

/// Makes the closed twin the first one where it is clearly nearer to the recording. A trace of the pauses leaves one of them.
pub(super) fn nearer(recorded: &Recorded, mut twin: Twin, is_traced: bool) -> Twin {
    let Demand::Bounded { other, .. } = &twin.demand else { return twin };
    let (open, closed) = (twin.scenario.clone(), (**other).clone());
    let is_small = twin.scenario.number_of_tasks() as f64 * twin.seconds <= SIZE_MAX;
    let is_closed = is_small
        && error(recorded, &mut twin, open)
            .zip(error(recorded, &mut twin, closed))
            .is_some_and(|(open, closed)| closed < CLEARLY * open && closed + BY < open);
    if let Demand::Bounded { other, is_closed: is_first } = &mut twin.demand
        && is_closed
    {
        std::mem::swap(&mut twin.scenario, other);
        *is_first = true;
    }
    if is_traced {
        twin.demand = Demand::Traced;
    }
    twin
}

/// Error of the back-test on the kernel of the recording. The twin keeps the run.
fn error(recorded: &Recorded, twin: &mut Twin, scenario: Scenario) -> Option<f64> {
    let programs = twin.programs.clone();
    simulated_error(&backtest(&recorded.window, ran(recorded, twin, scenario, &|_| true)?, &programs))
}

/// A run on the kernel of the recording. The twin keeps it. `None` where `go_on` ends it, or where it fails.
pub(super) fn ran<'a>(
    recorded: &Recorded,
    twin: &'a mut Twin,
    scenario: Scenario,
    go_on: &dyn Fn(u64) -> bool,
) -> Option<&'a Window> {
    let recorded_on = recorded.window.facts.as_ref()?.kernel;
    let kernel = recorded_on.filter(|kernel| is_modelled(*kernel)).unwrap_or(twin.kernel);
    let sampling = twin.sampling();
    if twin.known.window(&scenario, kernel, sampling).is_none() {
        let simulated = crate::run::run_while(&scenario, kernel, sampling, go_on).ok()??;
        twin.known.add(scenario.clone(), kernel, sampling, simulated);
    }
    twin.known.window(&scenario, kernel, sampling)
}
