// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs whose write calls meet pages that are dirty already, such as a server that saves the same file each second. These pages are
//! written once in each expiry cycle. Below a smaller background threshold they are written after each call. Bytes passed to pipes and
//! sockets look the same, so only a simulation can tell that the host suffers.

use crate::arithmetic::SAME;
use crate::harm::WRITTEN;
use crate::row::Cause;
use floodline_analysis::budget::{AsIfRow, Assumed};
use floodline_analysis::diagnose::cgroup::is_within;
use floodline_analysis::diagnose::derived::Derived;
use floodline_record::human;
use floodline_record::id::Entity;
use floodline_record::name::Name;

/// Least bytes passed to write calls per dirtied byte of a program that may write to dirty pages.
const AGAIN: u64 = 2;
/// Dirtied bytes below which a program does not count.
const LEAST: u64 = 256 << 10;

/// Returns why pages may be written again and again below a smaller background threshold. `None` without such a program.
pub(crate) fn overwritten(derived: &Derived<'_>, assumed: &Assumed<'_>) -> Option<(Cause, String)> {
    let window = derived.window;
    let of_machine = assumed.now.global.bg_thresh.map(|bound| bound.high.0);
    // A cgroup without a threshold of its own has that of the machine.
    let is_smaller = |row: &&AsIfRow| {
        let now = row.now_bg_thresh_bytes.or(of_machine).zip(row.then_bg_thresh_bytes);
        now.is_some_and(|(now, then)| (then as f64) < now as f64 * (1.0 - SAME))
    };
    let is_crossed =
        |row: &&AsIfRow| row.peak_bytes.zip(row.then_bg_thresh_bytes).is_some_and(|(peak, then)| peak > then);
    let crossed: Vec<&AsIfRow> = assumed.rows.iter().filter(is_crossed).filter(is_smaller).collect();
    derived.writers().processes.iter().filter(|writer| !writer.kthread).find_map(|writer| {
        let (passed, dirtied) = (writer.application_bytes?, writer.dirtied_bytes.filter(|bytes| *bytes >= LEAST)?);
        let again = passed.saturating_sub(dirtied) as f64;
        if passed < dirtied.saturating_mul(AGAIN) || again < WRITTEN * derived.seconds {
            return None;
        }
        let path = writer.cgroup.and_then(|id| match window.entities.get(&id)? {
            Entity::Cgroup { path, .. } => Some(path),
            _ => None,
        });
        // What a program rewrites is unwritten in its cgroup, and written at most about once a second. A server that answers on sockets has
        // little there.
        let own = writer.cgroup.and_then(|id| window.unwritten_max.get(&id));
        if own.is_some_and(|own| (*own as f64) < WRITTEN) {
            return None;
        }
        // The row of the machine has each process, one whose cgroup is not known too.
        let holds = |row: &&&AsIfRow| {
            let is_above = |above: &String| path.is_some_and(|path| is_within(path, &Name::from_escaped(above)));
            row.cgroup.as_ref().is_none_or(is_above)
        };
        let row = crossed.iter().filter(holds).max_by_key(|row| row.cgroup.as_ref().map_or(0, String::len))?;
        let cause = if row.cgroup.is_some() { Cause::CgroupLimit } else { Cause::MachineLimit };
        let bytes = |bytes: Option<u64>| human::bytes(bytes.unwrap_or(0) as f64);
        let told = format!(
            "{} passed {} to write calls and dirtied {}, so it may write to pages that are dirty already. Up to {} were unwritten. \
             After the change the kernel starts to write at {} and may write the same pages again and again.",
            writer.label(),
            human::bytes(passed as f64),
            human::bytes(dirtied as f64),
            bytes(row.peak_bytes),
            bytes(row.then_bg_thresh_bytes),
        );
        Some((cause, told))
    })
}

#[cfg(test)]
mod tests {
    use crate::arithmetic::judge;
    use crate::change::Change;
    use crate::row::Verdict;
    use floodline_record::units::{Bytes, Limit, Pages};
    use floodline_testkit::{Fixture, mib};

    /// A program that passes `passed` MiB a second to its write calls. 16 MiB are dirty, and become dirty again each 20 s.
    fn host(passed: f64) -> Fixture {
        Fixture::healthy()
            .seconds(40)
            .host(|_, row| row.nr_dirty = Some(Pages(4096)))
            .cgroup("/world", |_, row| row.file_dirty = Some(Bytes(mib(16.0))))
            .process("tick", 700, "/world", move |t, row| {
                row.wchar = Some(Bytes(mib(passed * t)));
                row.write_bytes = Some(Bytes(mib(16.0 * (1.0 + (t / 20.0).floor()))));
            })
    }

    #[test]
    fn a_smaller_background_threshold_of_a_cgroup_counts_without_a_smaller_limit() {
        let host = host(8.0).limits("/world", |_, row| row.memory_max = Some(Limit(mib(192.0))));
        let change = Change::parse(&["vm.dirty_background_ratio=1"], None, None, None).expect("a change");
        let row = judge(&host.window(), "host.flr", &change);
        assert!(row.verdict == Verdict::Tight && row.finding.contains("again and again"), "{row:?}");
    }

    #[test]
    fn pages_that_are_written_again_may_be_flushed_each_time_below_a_smaller_threshold() {
        let check = |host: &Fixture, background: u64, expect: Verdict| {
            let change = format!("vm.dirty_background_bytes={background}");
            let change = Change::parse(&[&change], None, None, None).expect("a change");
            let row = judge(&host.window(), "host.flr", &change);
            assert_eq!(row.verdict, expect, "{}", row.finding);
            row.finding
        };
        let told = check(&host(8.0), 2 << 20, Verdict::Tight);
        assert!(told.contains("the same pages again and again"), "{told}");
        // What is dirty stays below the threshold, or most calls dirty a page.
        check(&host(8.0), 32 << 20, Verdict::Fine);
        check(&host(1.0), 2 << 20, Verdict::Fine);
        // A server passes as much to sockets, and its log is all that it has unwritten.
        let server = host(8.0).cgroup("/world", |_, row| row.file_dirty = Some(Bytes(mib(1.0))));
        check(&server, 2 << 20, Verdict::Fine);
    }
}
