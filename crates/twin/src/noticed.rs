// SPDX-License-Identifier: MIT OR Apache-2.0
//! The least difference of a figure that people notice: one value for each kind of figure. The back-test, predictions and advice
//! share it, so that no command calls a twin wrong for a difference that another one takes for none.

/// What a figure measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The wait of one call. Programs make such calls one after the other, so that a short wait already slows them.
    Call,
    /// Time over the whole recording: waits of all tasks, or of a disk.
    Total,
    /// Bytes that are dirtied, written or at risk.
    Bytes,
    /// Bytes per second of one program.
    Rate,
    /// The limit of a cgroup.
    Limit,
}

impl Kind {
    /// The kind of a figure by its name, whose end is its unit.
    fn of(name: &str) -> Kind {
        if name.starts_with("program ") {
            Kind::Rate
        } else if name.starts_with("budget.") || name.ends_with("_budget_bytes") {
            Kind::Limit
        } else if name.ends_with("_wait_seconds") {
            Kind::Call
        } else if name.ends_with("_seconds") {
            Kind::Total
        } else {
            Kind::Bytes
        }
    }

    fn least(self) -> f64 {
        match self {
            Kind::Call => 0.02,
            Kind::Total => 0.2,
            Kind::Bytes => 1_048_576.0,
            Kind::Rate => 1024.0,
            Kind::Limit => 4096.0,
        }
    }
}

/// The least difference of a figure that people notice, in its unit.
pub(crate) fn least(figure: &str) -> f64 {
    Kind::of(figure).least()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shown::FIGURES;

    #[test]
    fn every_figure_has_the_value_of_its_kind() {
        let check = |name: &str, least: f64| assert_eq!(super::least(name), least, "{name}");
        for figure in FIGURES {
            let of_unit: &[f64] = if figure.unit == "seconds" { &[0.02, 0.2] } else { &[4096.0, 1_048_576.0] };
            assert!(of_unit.contains(&least(figure.name)), "{}", figure.name);
        }
        check("durable.p99_wait_seconds", 0.02);
        check("umount.longest_wait_seconds", 0.02);
        check("stall_seconds", 0.2);
        check("host.io_pressure_seconds", 0.2);
        check("devices.busy_seconds", 0.2);
        check("program.cp.waited_seconds", 0.2);
        check("program.cp.dirtied_bytes", 1_048_576.0);
        check("program cp", 1024.0);
        check("budget.a/wait_seconds.bytes", 4096.0);
        check("smallest_budget_bytes", 4096.0);
    }
}
