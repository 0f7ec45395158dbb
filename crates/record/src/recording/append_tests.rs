// SPDX-License-Identifier: MIT OR Apache-2.0
//! Windows that follow each other, appended, are the window of all their samples.

use super::tests::made;
use crate::metric::Row;
use crate::record::{Record, Sink};
use crate::sample::{HostRow, Sample, Table, TableVisitor};
use crate::window::Window;
use proptest::prelude::*;

/// A window as text, without what only saves work and without holes, which are counted elsewhere.
fn told(window: &Window) -> String {
    let mut window = Window { holes: Default::default(), ..window.clone() };
    window.lookup.take();
    format!("{window:?}").replace("is_settled: true", "is_settled: false")
}

/// Appends a window to those before it.
fn joined(whole: Option<(Window, Sample)>, next: &Window) -> Window {
    match whole {
        Some((mut whole, shared)) => {
            whole.append(next, &shared);
            whole
        }
        None => next.clone(),
    }
}

/// Whether each table has each entity once, as hosts have: rows of one entity within a sample have no order of time.
struct Once(bool);

impl TableVisitor for Once {
    fn host(&mut self, _: &HostRow) {}
    fn table<R: Row + 'static>(&mut self, table: &Table<R>) {
        self.0 &= table.rows().is_sorted_by(|one, other| one.0 < other.0);
    }
}

proptest! {
    #[test]
    fn windows_that_follow_each_other_are_one(
        bytes in proptest::collection::vec(any::<u8>(), 0..900),
        ends in proptest::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let records = made(&bytes);
        let mut once = Once(true);
        super::tests::samples(&records).iter().for_each(|sample| sample.visit(&mut once));
        prop_assume!(once.0);
        let ends: Vec<usize> = ends.iter().map(|end| end.index(records.len().max(1))).collect();
        let mut window = Window::default();
        let mut whole: Option<(Window, Sample)> = None;
        for (at, record) in records.iter().enumerate() {
            let Ok(()) = window.record(record);
            let Record::Sample(sample) = record else { continue };
            if let Some((whole, _)) = &mut whole {
                whole.push_kept(sample);
            }
            if ends.contains(&at) {
                whole = Some((joined(whole.take(), &window), Sample::clone(sample)));
                window.begin_again();
                let Ok(()) = window.record(record);
            }
        }
        prop_assert_eq!(told(&joined(whole, &window)), told(&Window::from_records(&records)));
    }
}
