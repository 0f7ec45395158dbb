// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes records, one frame at a time and without seeking, so that pipes work. Memory is bounded by one frame and one
//! sample. A frame whose checksum is wrong is never used: its samples are missing, and [`Decoder::cuts`] reports the
//! times around them and the cause. The samples after it, which are differences to missing ones, are missing too, up to
//! the next keyframe.

mod lend;

use super::columns::Fold;
use super::cut::{Cut, DecodeError, Why};
use super::frame::{FrameReader, MAGIC, PREAMBLE, Step, kind};
use super::item::{self, Item};
use super::limits::{Limit, Spent, Stop, check_facts};
use super::schema::{Differences, Header, Mapping, Written};
use super::spare::{KnownHeader, Spare};
use super::table::Scratch;
use super::tables::GetTables;
use super::wire::{Cursor, Malformed, unzigzag};
use super::{FORMAT, MAX_CONTENT};
use crate::record::Record;
use crate::sample::{Sample, SampleTime};
use crate::text::Text;
use crate::units::Nanos;
pub use lend::Unused;
use std::any::Any;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;
use zstd::stream::raw::{InBuffer, Operation, OutBuffer};

/// Initial buffer for a frame's content, bytes. It grows only as zstd produces more.
const FIRST_CONTENT: usize = 256 << 10;

/// Maximum number of cuts that are kept apart. Further cuts are added to the last.
const MAX_CUTS: usize = 64;

/// Reads a recording.
pub struct Decoder<R> {
    frames: FrameReader<R>,
    zstd: Option<zstd::stream::raw::Decoder<'static>>,
    /// The header as in the file, and its parsed form once it is requested.
    header_json: Arc<[u8]>,
    header: OnceCell<Header>,
    mapping: Arc<Mapping>,
    /// The header of the recording that this thread read last.
    known: Option<KnownHeader>,
    format: (u16, u16),
    tables: BTreeMap<&'static str, Box<dyn Any + Send>>,
    scratch: Scratch,
    /// Content of the current frame, and the position in it.
    content: Vec<u8>,
    at: usize,
    hand: Hand,
    /// Expected number of the next records frame.
    frames_due: u64,
    /// Expected number of the next sample.
    samples_due: u64,
    /// Whether the previous sample is available for decoding differences.
    in_step: bool,
    /// Whether descriptions of entities may be missing.
    lost: bool,
    last: SampleTime,
    last_read: Option<SampleTime>,
    cuts: Vec<Cut>,
    /// Whether no sample has followed the last cut yet.
    cut_open: bool,
    unknown_records: u64,
    closed: bool,
    over: bool,
    spent: Spent,
    /// Whether rows of tables are lent and taken back, instead of copied.
    lends: bool,
    /// Takes the tables that are folded by column instead.
    fold: Option<Box<Fold>>,
}

/// Remaining content of the current frame.
#[derive(Clone, Copy)]
enum Hand {
    Nothing,
    /// Items, followed by a sample if the frame has one.
    Items(Frame),
}

/// Start of a records frame.
#[derive(Clone, Copy, Default)]
struct Frame {
    /// Length in the file.
    bytes: u64,
    /// Samples that were written before it.
    sample_number: u64,
    /// Whether a sample follows the items.
    sample: bool,
    /// Whether that sample is a keyframe, which needs no previous sample.
    keyframe: bool,
}

impl<R: Read> Decoder<R> {
    /// Opens a recording: reads up to its first whole header.
    pub fn new(reader: R) -> Result<Decoder<R>, DecodeError> {
        let Spare { zstd, content, read, header: known } = Spare::take()?;
        let mut decoder = Decoder {
            frames: FrameReader::with(reader, read),
            zstd: Some(zstd),
            header_json: Arc::default(),
            header: OnceCell::new(),
            mapping: Arc::default(),
            known,
            format: (0, 0),
            tables: BTreeMap::new(),
            scratch: Scratch::default(),
            content,
            at: 0,
            hand: Hand::Nothing,
            frames_due: 0,
            samples_due: 0,
            in_step: false,
            lost: false,
            last: SampleTime::default(),
            last_read: None,
            cuts: Vec::new(),
            cut_open: false,
            unknown_records: 0,
            closed: false,
            over: false,
            spent: Spent::default(),
            lends: false,
            fold: None,
        };
        decoder.format = preamble(decoder.frames.preamble()?)?;
        decoder.open()?;
        Ok(decoder)
    }

    fn open(&mut self) -> Result<(), DecodeError> {
        loop {
            match self.frames.next()? {
                Step::End => {
                    let is_cut_only = self.cuts.iter().all(|cut| cut.why == Why::Truncated);
                    return Err(if is_cut_only { DecodeError::NoHeader } else { DecodeError::DamagedHeader });
                }
                Step::Damaged { bytes, cut_off, .. } => {
                    self.miss(if cut_off { Why::Truncated } else { Why::Damaged }, bytes);
                }
                Step::Frame { kind: kind::HEADER, bytes } => match self.read_header(bytes)? {
                    true => return Ok(()),
                    false => self.miss(Why::Malformed, bytes),
                },
                Step::Frame { bytes, .. } => self.miss(Why::Damaged, bytes),
            }
            self.lost = true;
        }
    }

    /// Reads the current frame as a header. Returns false if it is not one.
    fn read_header(&mut self, bytes: u64) -> Result<bool, DecodeError> {
        let known = match self.known.take().filter(|known| known.is(self.frames.payload())) {
            Some(known) => {
                self.spent.read(bytes);
                self.spent.unpacked(known.json.len() as u64)?;
                known
            }
            None => {
                let unpacked = is_whole(self.unpack(bytes))?;
                let header = serde_json::from_slice::<Written<'_>>(&self.content).ok().filter(|_| unpacked);
                let Some(header) = header else { return Ok(false) };
                KnownHeader::new(self.frames.payload(), &self.content, Mapping::new(&header.tables))
            }
        };
        (self.header_json, self.mapping) = (Arc::clone(&known.json), Arc::clone(&known.mapping));
        self.known = Some(known);
        Ok(true)
    }

    /// Returns the header of the file.
    pub fn header(&self) -> &Header {
        let nothing =
            || Header { program: Text::default(), version: Text::default(), every_ns: None, tables: Vec::new() };
        // It was checked when the recording was opened.
        self.header.get_or_init(|| serde_json::from_slice(&self.header_json).unwrap_or_else(|_| nothing()))
    }

    /// Returns the file's format version.
    pub fn format(&self) -> (u16, u16) {
        self.format
    }

    /// Returns the differences between the file's columns and those of this build.
    pub fn differences(&self) -> &Differences {
        &self.mapping.differences
    }

    /// Returns the number of records skipped up to now because this build does not know their kind.
    pub fn unknown_records(&self) -> u64 {
        self.unknown_records
    }

    /// Returns the missing stretches up to now, in order. The list is complete once the iterator has ended.
    pub fn cuts(&self) -> &[Cut] {
        &self.cuts
    }

    /// Returns all missing stretches as one cut, for a one-line message; `None` if the recording is whole. Its cause is
    /// the gravest one, its times are those around all stretches.
    pub fn cut(&self) -> Option<Cut> {
        let (first, last) = (self.cuts.first()?, self.cuts.last()?);
        let grave = |why| match why {
            Why::Malformed => 4,
            Why::Damaged => 3,
            Why::Truncated => 2,
            Why::AfterEnd => 1,
            Why::NotClosed => 0,
        };
        Some(Cut {
            why: self.cuts.iter().map(|cut| cut.why).max_by_key(|why| grave(*why))?,
            bytes: self.cuts.iter().fold(0, |sum, cut| sum.saturating_add(cut.bytes)),
            samples: self.cuts.iter().map(|cut| cut.samples).sum(),
            after: first.after,
            before: last.before,
        })
    }

    /// Decompresses the current frame into `content`.
    fn unpack(&mut self, bytes: u64) -> Result<(), Stop> {
        self.spent.read(bytes);
        let left = usize::try_from(self.spent.content_left()).unwrap_or(usize::MAX);
        let result = self.decompress(left);
        self.spent.unpacked(self.content.len() as u64)?;
        Ok(result?)
    }

    /// Decompresses until the frame ends or more than `left` came out of it.
    fn decompress(&mut self, left: usize) -> Result<(), Malformed> {
        self.content.clear();
        self.at = 0;
        let Some(zstd) = &mut self.zstd else { return Err(Malformed("cannot decompress")) };
        zstd.reinit().map_err(|_| Malformed("cannot decompress"))?;
        let mut input = InBuffer::around(self.frames.payload());
        loop {
            if self.content.len() > left {
                return Ok(());
            }
            if self.content.len() == self.content.capacity() {
                let more = self.content.len().max(FIRST_CONTENT).min(MAX_CONTENT - self.content.len());
                if more == 0 {
                    return Err(Malformed("a frame's content is too long"));
                }
                self.content.reserve_exact(more);
            }
            let filled = self.content.len();
            let mut output = OutBuffer::around_pos(&mut self.content, filled);
            let left = zstd.run(&mut input, &mut output).map_err(|_| Malformed("cannot decompress"))?;
            if left == 0 {
                return Ok(());
            }
            if self.content.len() < self.content.capacity() && input.pos() == input.src.len() {
                return Err(Malformed("a frame's content ends early"));
            }
        }
    }

    /// Notes bytes that were not used.
    fn miss(&mut self, why: Why, bytes: u64) {
        let full = self.cuts.len() >= MAX_CUTS;
        match self.cuts.last_mut() {
            Some(cut) if full || (self.cut_open && (why != Why::AfterEnd || cut.why == why)) => {
                cut.bytes = cut.bytes.saturating_add(bytes);
                cut.before = None;
            }
            _ => self.cuts.push(Cut { why, bytes, samples: None, after: self.last_read, before: None }),
        }
        self.cut_open = true;
    }

    /// Notes the loss of a frame that may have held records: the next differences cannot be decoded.
    fn lose_step(&mut self) {
        self.in_step = false;
        self.lost = true;
    }

    fn next_record(&mut self) -> Result<Option<Record>, DecodeError> {
        while !self.over {
            let record = match self.hand {
                Hand::Nothing => {
                    self.next_frame()?;
                    None
                }
                Hand::Items(frame) => self.next_item(frame)?,
            };
            if record.is_some() {
                return Ok(record);
            }
        }
        Ok(None)
    }

    fn next_frame(&mut self) -> Result<(), DecodeError> {
        match self.frames.next()? {
            Step::End => {
                if !self.closed && !self.cut_open {
                    self.miss(Why::NotClosed, 0);
                }
                self.over = true;
            }
            Step::Frame { bytes, .. } | Step::Damaged { bytes, .. } if self.closed => self.miss(Why::AfterEnd, bytes),
            Step::Damaged { kind, bytes, cut_off } => {
                self.miss(if cut_off { Why::Truncated } else { Why::Damaged }, bytes);
                if !matches!(kind, Some(kind::HEADER | kind::DIRECTORY | kind::END)) {
                    self.lose_step();
                }
            }
            Step::Frame { kind: kind::RECORDS, bytes } => {
                let begun = if is_whole(self.unpack(bytes))? { self.begin(bytes).ok() } else { None };
                match begun {
                    Some(None) => {
                        self.closed = true;
                        self.miss(Why::AfterEnd, bytes);
                    }
                    Some(Some(frame)) => self.hand = Hand::Items(frame),
                    None => self.malformed(bytes),
                }
            }
            Step::Frame { kind: kind::DIRECTORY, bytes } if self.lost => match is_whole(self.unpack(bytes))? {
                true => self.hand = Hand::Items(Frame { bytes, ..Frame::default() }),
                false => self.malformed(bytes),
            },
            Step::Frame { kind: kind::HEADER | kind::DIRECTORY, bytes } => self.spent.read(bytes),
            Step::Frame { kind: kind::END, .. } => self.closed = true,
            Step::Frame { .. } => self.unknown_records += 1,
        }
        Ok(())
    }

    fn malformed(&mut self, bytes: u64) {
        self.miss(Why::Malformed, bytes);
        self.lose_step();
        self.hand = Hand::Nothing;
    }

    /// Reads the start of a records frame. Returns `None` if it belongs to another recording, appended to this one.
    fn begin(&mut self, bytes: u64) -> Result<Option<Frame>, Malformed> {
        let mut cursor = Cursor::new(&self.content);
        let number = cursor.varint()?;
        let sample_number = cursor.varint()?;
        let flags = cursor.byte()?;
        self.at = self.content.len() - cursor.left();
        if number < self.frames_due {
            return Ok(None);
        }
        if number != self.frames_due {
            // Whole frames are missing. If no damage was detected, they were removed from the file.
            self.lose_step();
            if !self.cut_open {
                self.miss(Why::Damaged, 0);
            }
        }
        self.frames_due = number.wrapping_add(1);
        Ok(Some(Frame { bytes, sample_number, sample: flags & 1 != 0, keyframe: flags & 2 != 0 }))
    }

    /// Takes the next record out of the current frame.
    fn next_item(&mut self, frame: Frame) -> Result<Option<Record>, Limit> {
        let mut cursor = Cursor::new(self.content.get(self.at..).unwrap_or_default());
        let unused = self.fold.as_deref().map(Fold::unused_events);
        let item = item::get(&mut cursor, unused);
        self.at = self.content.len() - cursor.left();
        match item {
            Ok(Item::Record(record)) => {
                if let Record::Facts(facts) = &record {
                    check_facts(facts)?;
                }
                return Ok(Some(record));
            }
            Ok(Item::Unknown) => self.unknown_records += 1,
            Ok(Item::Stop) => {
                self.hand = Hand::Nothing;
                if frame.sample {
                    return Ok(self.sample(frame)?.map(|sample| Record::Sample(Box::new(sample))));
                }
            }
            Err(_) => self.malformed(frame.bytes),
        }
        Ok(None)
    }

    fn sample(&mut self, frame: Frame) -> Result<Option<Sample>, Limit> {
        if frame.keyframe {
            self.last = SampleTime::default();
            self.in_step = true;
        }
        if !self.in_step {
            self.miss(Why::Damaged, frame.bytes);
            return Ok(None);
        }
        self.spent.begin_sample();
        let mut sample = Sample::default();
        match self.parse_sample(frame.keyframe, &mut sample) {
            Ok(()) => {}
            Err(Stop::TooMuch(limit)) => return Err(limit),
            Err(Stop::Malformed) => {
                if let Some(fold) = &mut self.fold {
                    fold.is_spoilt = true;
                }
                self.take_back(&mut sample);
                self.malformed(frame.bytes);
                return Ok(None);
            }
        }
        if self.cut_open
            && let Some(cut) = self.cuts.last_mut()
        {
            let missing = frame.sample_number.checked_sub(self.samples_due);
            cut.samples = Some(cut.samples.unwrap_or(0).saturating_add(missing.unwrap_or(0)));
            cut.before = Some(sample.time);
            self.cut_open = false;
        }
        self.lost &= !frame.keyframe;
        self.samples_due = frame.sample_number.wrapping_add(1);
        self.last = sample.time;
        self.last_read = Some(sample.time);
        Ok(Some(sample))
    }

    fn parse_sample(&mut self, keyframe: bool, sample: &mut Sample) -> Result<(), Stop> {
        let mut cursor = Cursor::new(self.content.get(self.at..).unwrap_or_default());
        let mut time = |before: Nanos| cursor.varint().map(|step| Nanos(before.0.wrapping_add(unzigzag(step) as u64)));
        let time = SampleTime { monotonic: time(self.last.monotonic)?, wall: time(self.last.wall)? };
        (sample.time, sample.took) = (time, Nanos(cursor.varint()?));
        let mut sections = vec![None; self.mapping.count];
        while !cursor.is_empty() {
            let number = cursor.count(usize::MAX)?;
            let section = sections.get_mut(number).ok_or(Malformed("a table is not in the header"))?;
            if section.replace(cursor.bytes()?).is_some() {
                return Err(Malformed("a table stands twice in a sample").into());
            }
        }
        sample.visit_mut(&mut GetTables {
            sections: &sections,
            mapping: &self.mapping,
            before: &mut self.tables,
            keyframe,
            spent: &mut self.spent,
            scratch: &mut self.scratch,
            lends: self.lends,
            fold: self.fold.as_deref_mut(),
            now: time.monotonic,
        })
    }
}

impl<R> Drop for Decoder<R> {
    fn drop(&mut self) {
        if let Some(zstd) = self.zstd.take() {
            let (content, read) = (std::mem::take(&mut self.content), self.frames.take_buffer());
            Spare { zstd, content, read, header: self.known.take() }.keep();
        }
    }
}

impl<R: Read> Iterator for Decoder<R> {
    type Item = Result<Record, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_record();
        self.over |= next.is_err();
        next.transpose()
    }
}

/// Returns whether a part of a frame can be used. Fails if the whole recording cannot be used.
fn is_whole(result: Result<(), Stop>) -> Result<bool, Limit> {
    match result {
        Ok(()) => Ok(true),
        Err(Stop::Malformed) => Ok(false),
        Err(Stop::TooMuch(limit)) => Err(limit),
    }
}

/// Checks the fixed start of a file and takes the format version out of it.
fn preamble(bytes: &[u8]) -> Result<(u16, u16), DecodeError> {
    if bytes.is_empty() {
        return Err(DecodeError::Empty);
    }
    let (magic, rest) = bytes.split_at(bytes.len().min(MAGIC.len()));
    if !MAGIC.starts_with(magic) {
        return Err(if was_magic(magic) { DecodeError::DamagedStart } else { DecodeError::NotARecording });
    }
    if bytes.len() < PREAMBLE {
        return Err(DecodeError::NoHeader);
    }
    let number = |at: usize| rest.get(at..).and_then(|b| b.first_chunk()).map_or(0, |two| u16::from_le_bytes(*two));
    let (major, minor) = (number(0), number(2));
    let name = rest.get(4..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_graphic());
    let written_by: String = name.map(|&byte| char::from(byte)).collect();
    match major {
        0 => Err(DecodeError::DamagedStart),
        // A version writes only one format.
        _ if major > FORMAT.0 && written_by == Header::new(None).version => Err(DecodeError::DamagedStart),
        _ if major > FORMAT.0 => Err(DecodeError::NewerFormat { major, minor, written_by }),
        _ => Ok((major, minor)),
    }
}

/// Returns whether these were the magic bytes of a recording before some of them changed, as in a transfer "as text".
/// Other formats begin and end with the same bytes, but have other letters.
fn was_magic(bytes: &[u8]) -> bool {
    let same = |range: std::ops::Range<usize>| range.filter(|&at| bytes.get(at) == MAGIC.get(at)).count();
    same(1..4) >= 2 && same(0..MAGIC.len()) >= MAGIC.len() / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::frame::put_frame;
    use crate::recording::{Encoder, Header};

    /// Unpacks a frame's payload, of which at most `left` bytes and one step more may come. Returns the content's
    /// length.
    fn unpack(payload: &[u8], left: usize) -> Result<usize, &'static str> {
        let file = Encoder::new(Vec::new(), Header::new(None)).unwrap().finish().unwrap();
        let mut framed = file[..PREAMBLE].to_vec();
        let head = Decoder::new(&file[..]).unwrap().header().clone();
        let head = zstd::bulk::compress(&serde_json::to_vec(&head).unwrap(), 1).unwrap();
        put_frame(&mut framed, kind::HEADER, &head);
        put_frame(&mut framed, kind::RECORDS, payload);
        let mut decoder = Decoder::new(&framed[..]).unwrap();
        assert!(matches!(decoder.frames.next().unwrap(), Step::Frame { kind: kind::RECORDS, .. }));
        let result = decoder.decompress(left).map_err(|malformed| malformed.0);
        assert!(decoder.content.capacity() <= MAX_CONTENT, "{}", decoder.content.capacity());
        result.map(|()| decoder.content.len())
    }

    #[test]
    fn a_frame_is_unpacked_whole_or_not_far_beyond_what_may_come() {
        // Zeros are packed into a few bytes, which are read long before all has come out.
        for content in [0, 1, FIRST_CONTENT - 1, FIRST_CONTENT, FIRST_CONTENT + 1, 5 * FIRST_CONTENT, MAX_CONTENT] {
            let packed = zstd::bulk::compress(&vec![0; content], 1).unwrap();
            assert_eq!(unpack(&packed, MAX_CONTENT), Ok(content));
        }
        let packed = zstd::bulk::compress(&vec![0; 8 * FIRST_CONTENT], 1).unwrap();
        let over = unpack(&packed, 10).unwrap();
        assert!(over > 10 && over <= FIRST_CONTENT, "{over}");
        // What may come ends where the first room does: one byte more is unpacked, so that it is counted and refused.
        let packed = zstd::bulk::compress(&vec![0; FIRST_CONTENT + 1], 1).unwrap();
        assert_eq!(unpack(&packed, FIRST_CONTENT), Ok(FIRST_CONTENT + 1));
        let bomb = zstd::bulk::compress(&vec![0; MAX_CONTENT + 1], 1).unwrap();
        assert_eq!(unpack(&bomb, usize::MAX), Err("a frame's content is too long"));
    }

    #[test]
    fn a_block_that_is_read_whole_and_does_not_fit_comes_out_later() {
        // One segment with its length, then blocks as they are, the last of which begins before the room ends.
        let mut packed = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
        packed.extend_from_slice(&300_000_u32.to_le_bytes());
        for last in [0, 0, 1_u32] {
            packed.extend_from_slice(&(100_000_u32 << 3 | last).to_le_bytes()[..3]);
            packed.extend_from_slice(&[7; 100_000]);
        }
        assert_eq!(unpack(&packed[..packed.len() - 1], MAX_CONTENT), Err("a frame's content ends early"));
        assert_eq!(unpack(&packed, MAX_CONTENT), Ok(300_000));
    }

    #[test]
    fn a_frame_that_ends_early_is_malformed() {
        let content: Vec<u8> = (0..1000_u32).flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect();
        let packed = zstd::bulk::compress(&content, 1).unwrap();
        assert_eq!(unpack(&packed, MAX_CONTENT), Ok(4000));
        for end in [1, 4, packed.len() / 2, packed.len() - 1] {
            assert_eq!(unpack(&packed[..end], MAX_CONTENT), Err("a frame's content ends early"), "{end}");
        }
        assert_eq!(unpack(b"not zstd at all", MAX_CONTENT), Err("cannot decompress"));
    }
}
