// SPDX-License-Identifier: MIT OR Apache-2.0
//! Thins out old samples: several recordings of one run become one with fewer samples. This suffices for counters,
//! whose growth can be computed from any two samples.

use super::carry::Carry;
use floodline_kernel::FLUSH_TIME;
use floodline_record::id::EntityId;
use floodline_record::record::{Record, Sink};
use floodline_record::recording::{Decoder, EncodeError, Encoder, Header};
use floodline_record::sample::Sample;
use floodline_record::units::Nanos;
use std::collections::BTreeMap;
use std::io::Read;

/// Joins recordings of one run, whose ids agree. Takes the records that `keep` wants; facts, entities and gaps that are
/// known already are left out. Recordings that cannot be read are skipped.
pub(crate) struct Joined {
    encoder: Encoder<Vec<u8>>,
    known: Known,
    carry: Carry,
    last: Option<Nanos>,
}

#[derive(Default)]
struct Known {
    facts: Option<Record>,
    entities: BTreeMap<EntityId, Record>,
    gaps: Vec<Record>,
}

impl Known {
    /// Returns true if a description differs from the known one.
    fn is_new(&mut self, record: &Record) -> bool {
        match record {
            Record::Facts(_) if self.facts.as_ref() == Some(record) => false,
            Record::Facts(_) => {
                self.facts = Some(record.clone());
                true
            }
            Record::Entity(id, _) if self.entities.get(id) == Some(record) => false,
            Record::Entity(id, _) => {
                self.entities.insert(*id, record.clone());
                true
            }
            Record::Gap(_) if self.gaps.contains(record) => false,
            Record::Gap(_) => {
                self.gaps.push(record.clone());
                true
            }
            Record::Sample(_) | Record::Event(_) => true,
        }
    }
}

/// Time that a thinned recording waits for a sample that reads `memory.stat`.
const LATE: Nanos = Nanos(2 * FLUSH_TIME.0);

/// Whether a sample reads `memory.stat`, or has no cgroup that it could read.
fn has_stat(sample: &Sample) -> bool {
    let rows = sample.cgroups.rows();
    rows.is_empty() || rows.iter().any(|(_, row)| row.file_dirty.is_some())
}

impl Joined {
    /// Nothing yet.
    pub(crate) fn new(every: Option<Nanos>) -> Result<Joined, EncodeError> {
        let encoder = Encoder::new(Vec::new(), Header::new(every))?;
        Ok(Joined { encoder, known: Known::default(), carry: Carry::default(), last: None })
    }

    /// Adds a recording: its samples within `from..=to` that are at least `step` apart.
    pub(crate) fn add(
        &mut self,
        recording: impl Read,
        (from, to): (Nanos, Nanos),
        step: Nanos,
        mut each: impl FnMut(&Record),
    ) -> Result<(), EncodeError> {
        let Ok(decoder) = Decoder::new(recording) else { return Ok(()) };
        for record in decoder {
            // What is damaged is left out; the rest is still worth keeping.
            let Ok(record) = record else { return Ok(()) };
            let record = match record {
                Record::Sample(sample) => {
                    self.carry.note(&sample);
                    let at = sample.time.monotonic;
                    let is_due = self.last.is_none_or(|last| {
                        let after = at.0.saturating_sub(last.0);
                        // Samples at a fixed distance could each lack what only one sample of several reads.
                        after >= step.0 && (step.0 == 0 || has_stat(&sample) || after >= step.0.saturating_add(LATE.0))
                    });
                    if at < from || at > to || !is_due {
                        continue;
                    }
                    let is_thinned = self.last.is_none() || step.0 > 0;
                    self.last = Some(at);
                    let sample = if is_thinned { Box::new(self.carry.complete(&sample)) } else { sample };
                    Record::Sample(sample)
                }
                Record::Event(event) if event.at < from || event.at > to => continue,
                record => record,
            };
            if self.known.is_new(&record) {
                self.encoder.record(&record)?;
                each(&record);
            }
        }
        Ok(())
    }

    /// Adds one record of the caller's.
    pub(crate) fn put(&mut self, record: &Record) -> Result<(), EncodeError> {
        self.encoder.record(record)
    }

    /// Samples in it.
    pub(crate) fn samples(&self) -> u64 {
        self.encoder.samples()
    }

    /// The recording.
    pub(crate) fn finish(self) -> Result<Vec<u8>, EncodeError> {
        self.encoder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::units::Bytes;
    use floodline_testkit::Fixture;
    use floodline_testkit::sparse::sparse;

    #[test]
    fn a_thinned_recording_has_the_samples_that_read_the_counters_of_cgroups() {
        let fixture =
            Fixture::healthy().cgroup("/a", |t, row| row.file_dirty = Some(Bytes(t as u64))).every(1.0).seconds(60);
        let mut records = sparse(fixture.records(), 2);
        // The first sample is one that does not read them: at a fixed distance, no other one would.
        let first = records.iter().position(|record| matches!(record, Record::Sample(_))).expect("a sample");
        records.remove(first);
        let mut encoder = Encoder::new(Vec::new(), Header::new(None)).expect("memory");
        records.iter().for_each(|record| encoder.record(record).expect("memory"));
        let file = encoder.finish().expect("memory");
        let mut joined = Joined::new(None).expect("memory");
        let mut read = Vec::new();
        let all = (Nanos(0), Nanos(u64::MAX));
        joined
            .add(file.as_slice(), all, Nanos(10 * Nanos::SECOND.0), |record| {
                if let Record::Sample(sample) = record {
                    read.push(has_stat(sample));
                }
            })
            .expect("memory");
        assert_eq!(read, [false, true, true, true, true, true]);
    }
}
