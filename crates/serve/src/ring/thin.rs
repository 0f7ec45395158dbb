// SPDX-License-Identifier: MIT OR Apache-2.0
//! Thins out old samples: several recordings of one run become one with fewer samples. This suffices for counters,
//! whose growth can be computed from any two samples.

use super::carry::Carry;
use floodline_record::id::EntityId;
use floodline_record::record::{Record, Sink};
use floodline_record::recording::{Decoder, EncodeError, Encoder, Header};
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
                    let is_due = self.last.is_none_or(|last| at.0 >= last.0.saturating_add(step.0));
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
