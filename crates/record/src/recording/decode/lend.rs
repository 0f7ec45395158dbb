// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads all records of a recording without copying rows: samples are lent to a caller and taken back, or most of their tables
//! are folded by column.

use super::super::columns::Fold;
use super::super::cut::DecodeError;
use super::super::tables::TakeBack;
use super::Decoder;
use crate::record::{Record, Sink};
use crate::sample::Sample;
use crate::window::Window;
use std::io::Read;
use std::ops::ControlFlow;

/// Parts of a recording for which a caller of [`Decoder::fold_into`] has no use.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unused<'a> {
    /// Columns by table. Only those of tables that have a row for each cgroup, process or wb are left out.
    pub columns: &'a [(&'a str, &'a [&'a str])],
    /// Kinds of events as they are in a file. An event of another form than this build writes is not left out.
    pub events: &'a [&'a str],
    /// Operations whose stalls are kept, unlike the other fields. Stalls of all other operations are left out. `None` keeps all stalls.
    pub stalls_of: Option<&'a [&'a str]>,
}

impl<R: Read> Decoder<R> {
    /// Passes every record to `each` until it breaks. Faster than the iterator: a sample is lent, and none of its rows
    /// is copied. Returns whether the recording ended.
    ///
    /// # Errors
    ///
    /// Those of the iterator.
    pub fn lend(&mut self, mut each: impl FnMut(&Record) -> ControlFlow<()>) -> Result<bool, DecodeError> {
        self.lends = true;
        let ended = loop {
            let next = self.next_record();
            self.over |= next.is_err();
            let Some(mut record) = next? else { break true };
            let went_on = each(&record);
            if let Record::Sample(sample) = &mut record {
                self.take_back(sample);
            }
            if went_on.is_break() {
                break false;
            }
        };
        self.lends = false;
        Ok(ended)
    }

    /// Folds a recording that was just opened, at most a number of samples of it. The window is the same as if it took
    /// each record, but only few samples are made: most tables are folded by column. Returns the number of samples;
    /// `None` if a sample is malformed or an entity has two rows in it. Then the recording has to be read again with
    /// [`Decoder::lend`]. The decoder gives no records after it. Parts without a use are left out of the window.
    ///
    /// # Errors
    ///
    /// Those of the iterator.
    pub fn fold_into(
        &mut self,
        window: &mut Window,
        samples_max: u64,
        unused: Unused<'_>,
    ) -> Result<Option<u64>, DecodeError> {
        (self.lends, self.fold) = (true, Some(Box::new(Fold::new(unused))));
        let samples = self.fold_samples(window, samples_max);
        let fold = self.fold.take();
        (self.lends, self.over) = (false, true);
        if let (Ok(Some(_)), Some(fold)) = (&samples, fold) {
            fold.finish(window);
        }
        samples
    }

    fn fold_samples(&mut self, window: &mut Window, samples_max: u64) -> Result<Option<u64>, DecodeError> {
        let mut samples = 0;
        while samples < samples_max {
            let next = self.next_record();
            let Some(fold) = self.fold.as_deref_mut().filter(|fold| !fold.is_spoilt) else { return Ok(None) };
            let Some(mut record) = next? else { break };
            match &record {
                Record::Sample(_) => {
                    fold.sample(window);
                    samples += 1;
                }
                Record::Entity(id, _) => fold.describe(*id),
                _ => {}
            }
            let Ok(()) = window.record(&record);
            if let Record::Sample(sample) = &mut record {
                self.take_back(sample);
            }
        }
        Ok(Some(samples))
    }

    /// Takes back the rows of a sample that was lent.
    pub(super) fn take_back(&mut self, sample: &mut Sample) {
        if self.lends {
            let Ok(()) = sample.visit_mut(&mut TakeBack(&mut self.tables));
        }
    }
}
