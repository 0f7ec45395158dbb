// SPDX-License-Identifier: MIT OR Apache-2.0
//! Protocol between the two processes: frames of a kind, a length and content. Records are sent as a small recording,
//! which is checked like every recording.

use crate::collect::now;
use floodline_record::record::{Record, Sink};
use floodline_record::recording::{Decoder, Encoder, Header};
use floodline_record::units::Nanos;
use rustix::time::ClockId;
use std::io::{self, Read, Write};

/// Maximum content of one frame, bytes: far more than the tables of the tracer hold.
const CONTENT_MAX: u32 = 16 << 20;

/// Kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// Load the programs; the content is the facts about the machine. Answered with the same kind and no content.
    Start = 1,
    /// A sample begins. Answered with the same kind and no content.
    Turn = 2,
    /// A sample ends; the content is [`Moment`]. Answered with the same kind and the records.
    Collect = 3,
    /// Remove the programs. Not answered.
    Stop = 4,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Start, Kind::Turn, Kind::Collect, Kind::Stop];
}

/// Writes one frame.
pub(super) fn send(mut to: impl Write, kind: Kind, content: &[u8]) -> io::Result<()> {
    let length = u32::try_from(content.len()).ok().filter(|length| *length <= CONTENT_MAX).ok_or_else(malformed)?;
    let mut frame = Vec::with_capacity(5 + content.len());
    frame.push(kind as u8);
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(content);
    to.write_all(&frame)
}

/// Reads one frame. Returns [`io::ErrorKind::InvalidData`] if it is malformed.
pub(super) fn receive(mut from: impl Read) -> io::Result<(Kind, Vec<u8>)> {
    let mut head = [0; 5];
    from.read_exact(&mut head)?;
    let [kind, length @ ..] = head;
    let kind = Kind::ALL.into_iter().find(|known| *known as u8 == kind).ok_or_else(malformed)?;
    let length = u32::from_le_bytes(length);
    if length > CONTENT_MAX {
        return Err(malformed());
    }
    let mut content = Vec::new();
    from.take(length.into()).read_to_end(&mut content)?;
    if content.len() as u64 != u64::from(length) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok((kind, content))
}

/// Packs records.
pub(super) fn pack(records: &[Record]) -> io::Result<Vec<u8>> {
    let packed = || -> Result<Vec<u8>, floodline_record::recording::EncodeError> {
        let mut encoder = Encoder::new(Vec::new(), Header::new(None))?;
        for record in records {
            encoder.record(record)?;
        }
        encoder.finish()
    };
    packed().map_err(io::Error::other)
}

/// Unpacks records; damaged ones are an error.
pub(super) fn unpack(content: &[u8]) -> io::Result<Vec<Record>> {
    let mut decoder = Decoder::new(content).map_err(io::Error::other)?;
    let records: Result<Vec<Record>, _> = decoder.by_ref().collect();
    let records = records.map_err(io::Error::other)?;
    if decoder.cut().is_some() { Err(malformed()) } else { Ok(records) }
}

fn malformed() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

/// When a sample was taken, and the machine's thresholds at that time in pages, where both are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) at: Nanos,
    pub(super) thresholds: Option<(u64, u64)>,
}

impl Moment {
    pub(super) fn pack(self) -> Vec<u8> {
        let (thresh, bg_thresh) = self.thresholds.unzip();
        let words = [Some(self.at.0), thresh, bg_thresh].into_iter().flatten();
        words.flat_map(u64::to_le_bytes).collect()
    }

    /// Decodes the moment in `content`, or the current time if it has none.
    pub(super) fn unpack(content: &[u8]) -> Moment {
        let (words, _) = content.as_chunks::<8>();
        let word = |index: usize| words.get(index).copied().map(u64::from_le_bytes);
        Moment { at: word(0).map_or_else(|| now(ClockId::Boottime), Nanos), thresholds: word(1).zip(word(2)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::gap::{Cause, Gap, Source};
    use floodline_record::record::{Event, What};

    #[test]
    fn records_arrive_as_they_were_sent() {
        let started = What::TraceStarted { parts: vec!["throttle".into()] };
        let records = vec![
            Record::Gap(Gap { times: 3, ..Gap::detailed(Source::TraceBytes, Cause::NotPlanned, "an interval") }),
            Record::Event(Event { at: Nanos(7), what: started }),
        ];
        let mut sent = Vec::new();
        send(&mut sent, Kind::Collect, &pack(&records).unwrap()).unwrap();
        let (kind, content) = receive(&*sent).unwrap();
        assert_eq!((kind, unpack(&content).unwrap()), (Kind::Collect, records));
    }

    #[test]
    fn a_moment_arrives_as_it_was_sent() {
        for thresholds in [None, Some((20_000, u64::MAX))] {
            let moment = Moment { at: Nanos(42), thresholds };
            assert_eq!(Moment::unpack(&moment.pack()), moment);
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        let check = |bytes: &[u8], expect| assert_eq!(receive(bytes).unwrap_err().kind(), expect, "{bytes:?}");
        check(&[], io::ErrorKind::UnexpectedEof);
        check(&[9, 0, 0, 0, 0], io::ErrorKind::InvalidData);
        check(&[1, 255, 255, 255, 255], io::ErrorKind::InvalidData);
        check(&[1, 2, 0, 0, 0, 1], io::ErrorKind::UnexpectedEof);
        assert!(unpack(b"no recording").is_err());
        let mut cut = pack(&[Record::Gap(Gap::new(Source::TraceBytes, Cause::NotPlanned))]).unwrap();
        cut.truncate(cut.len() - 9);
        assert!(unpack(&cut).is_err());
    }
}
