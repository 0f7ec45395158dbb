// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times the operations of a task by the clock of the guest.

use super::clock::{now, until};
use floodline_scenario::program::Measures;

/// Measures that are taken with a clock.
pub(super) trait Timed {
    /// Performs one operation and measures it. A failed operation is not counted.
    fn time<T, E>(&mut self, operation: &'static str, bytes: u64, act: impl FnOnce() -> Result<T, E>) -> Result<T, E>;
}

impl Timed for Measures {
    fn time<T, E>(&mut self, operation: &'static str, bytes: u64, act: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let at = now();
        let answer = act();
        if answer.is_ok() {
            self.took(operation, at, until(at, now()), bytes);
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::record::{TaskName, What};
    use floodline_record::units::Nanos;

    #[test]
    fn an_operation_is_timed_and_a_failed_one_is_not_measured() {
        let mut measures = Measures::new(Nanos(0), Nanos::SECOND);
        assert!(measures.time("write", 1, || Err::<(), _>("full")).is_err());
        let waited = std::time::Duration::from_millis(2);
        let done = measures.time("read", 7, || {
            std::thread::sleep(waited);
            Ok::<_, ()>(3)
        });
        assert_eq!(done, Ok(3));
        let events = measures.events(&TaskName { task: "t".into(), copy: 0 }, now());
        let [event] = &events[..] else { panic!("one operation: {events:?}") };
        let What::TaskOperations { operation, count, bytes, latency, .. } = &event.what else { panic!("{event:?}") };
        assert_eq!((operation.as_str(), *count, *bytes), ("read", 1, 7));
        assert!(u128::from(latency.max.0) >= waited.as_nanos(), "{latency:?}");
    }
}
