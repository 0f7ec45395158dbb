// SPDX-License-Identifier: MIT OR Apache-2.0
//! What helps: to sync before the unmount, to keep less dirty, or to give the sync up.

use crate::advise::beside;
use crate::advise::threshold::{self, Pair};
use crate::diagnose::derived::Derived;
use crate::diagnose::device::Speed;
use crate::diagnose::unmount::upper::Upper;
use crate::plan::is_shell_word;
use crate::report::{Step, When};
use floodline_record::human;
use floodline_record::name::Name;

/// What helps, how far, and what it costs.
pub(super) struct Remedy {
    pub(super) plan: Vec<Step>,
    pub(super) trade_off: String,
    /// For the first screen.
    pub(super) expect: String,
    /// For the first screen.
    pub(super) costs: String,
}

/// Returns the plan, how far it helps, and what it costs.
pub(super) fn remedy(derived: &Derived<'_>, upper: &Upper<'_>) -> Remedy {
    let place = shell_word(&upper.mount.mount_point).unwrap_or_else(|| "UPPER".to_owned());
    let mut plan = vec![Step {
        when: When::Later,
        write: "the hook that removes containers, before the unmount".to_owned(),
        value: format!("sync -f {place}"),
        undo: "take the line out of the hook".to_owned(),
        command: format!("# Run sync -f {place} before the unmount, in the hook that removes containers."),
    }];
    let needs = threshold::Needs::of(derived, upper.speed);
    let advice = threshold::choose(&needs).filter(|advice| matches!(advice.pair, threshold::Pair::Bytes { .. }));
    let smaller = advice.and_then(|advice| threshold::lowering(derived, &advice));
    plan.extend(smaller.iter().flat_map(|pair| derived.sysctls(&pair.changes())));
    let volatile = match derived.behaviour {
        Some(kernel) if !kernel.stack.overlay_volatile => {
            "The mount option volatile, which skips this for containers whose data may be lost, needs kernel 5.10."
        }
        _ => {
            "Where a container's data may be lost with the machine, let its runtime mount the overlay with the option \
             volatile. Then nothing is synced, and after a crash the upper directory must be deleted."
        }
    };
    let keeps_less = match smaller {
        Some(_) => {
            " The smaller thresholds keep less dirty at any time; pages that change often are written more often."
        }
        None => "",
    };
    Remedy {
        plan,
        trade_off: format!(
            "A sync before the unmount takes as long, but blocks no unmount and holds no lock meanwhile. \
             {volatile}{keeps_less}"
        ),
        expect: expect(smaller, upper.speed),
        costs: match smaller {
            Some(pair) => {
                let syncs = beside::cost_of_syncs(derived, &upper.device, upper.speed, pair);
                let earlier = threshold::earlier(syncs.as_deref()).to_owned();
                let costs = threshold::cost_of_pair(pair).into_iter().chain(syncs).chain([earlier]);
                costs.collect::<Vec<_>>().join(" ")
            }
            None => String::new(),
        },
    }
}

/// States how far smaller thresholds help: an unmount waits for what may still be unwritten.
fn expect(smaller: Option<Pair>, speed: Option<Speed>) -> String {
    match (smaller, speed.filter(|speed| speed.basis.is_known())) {
        (Some(Pair::Bytes { hard, .. }), Some(speed)) => format!(
            "Less data is unwritten: an unmount waits for {} of it at most, {} of writing.",
            human::bytes(hard as f64),
            human::seconds(hard as f64 / speed.value)
        ),
        (Some(_), _) => "Less data is unwritten, so an unmount waits for less.".to_owned(),
        (None, _) => "The unmount finds the data written. The sync before it takes the time instead.".to_owned(),
    }
}

/// A name from the host as a word of a command, where it needs no quoting.
fn shell_word(name: &Name) -> Option<String> {
    (name.as_bytes().starts_with(b"/") && is_shell_word(name.as_bytes())).then(|| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_mount_point_never_becomes_a_command() {
        let check = |name: &str, expect: Option<&str>| assert_eq!(shell_word(&Name::from(name)).as_deref(), expect);
        check("/var/lib/docker", Some("/var/lib/docker"));
        check("/var/$(reboot)", None);
        check("/a b", None);
        check("-rf", None);
    }
}
