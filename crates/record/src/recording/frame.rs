// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames: pieces of a file or a pipe that are checked one by one. A frame carries its kind, length and checksums. Its
//! payload is interpreted elsewhere. The reader finds the next frame after a damaged stretch, and never allocates
//! memory by an untrusted length.

use std::io::{self, Read};

/// The first bytes of a recording. The high bit, the CR LF and the LF catch transfers "as text".
pub(super) const MAGIC: [u8; 8] = *b"\x89FLR\r\n\x1a\n";

/// Magic, format version (two u16) and the version of the program that wrote it, NUL-padded. Fixed for
/// ever, so that a file of any later format can be refused by name.
pub(super) const PREAMBLE: usize = 32;

const MARK: [u8; 3] = [0xf1, 0x0d, 0x1e];
/// Mark, kind, payload length (u32), crc32 of the payload, crc32 of the twelve bytes before.
pub(super) const HEAD: usize = 16;

/// Longest payload of a frame, bytes.
pub(super) const MAX_PAYLOAD: usize = 32 << 20;
/// Number of bytes requested from the reader at once.
const CHUNK: usize = 64 << 10;

/// Kinds of frames. A build skips kinds that it does not know.
pub(super) mod kind {
    /// Schema of the file and the program that wrote it, JSON.
    pub(crate) const HEADER: u8 = 1;
    /// Records, the last of which may be a sample.
    pub(crate) const RECORDS: u8 = 2;
    /// Facts and entities again, for readers that lost a frame.
    pub(crate) const DIRECTORY: u8 = 3;
    /// The writer closed the recording.
    pub(crate) const END: u8 = 4;
}

/// Writes the fixed start of a file.
pub(super) fn put_preamble(out: &mut Vec<u8>, major: u16, minor: u16, version: &str) {
    let mut name = [0; PREAMBLE - 12];
    for (to, from) in name.iter_mut().zip(version.bytes()) {
        *to = from;
    }
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&major.to_le_bytes());
    out.extend_from_slice(&minor.to_le_bytes());
    out.extend_from_slice(&name);
}

/// Writes one frame. The caller keeps `payload` within [`MAX_PAYLOAD`].
pub(super) fn put_frame(out: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    let start = out.len();
    out.extend_from_slice(&MARK);
    out.push(kind);
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    out.extend_from_slice(&crc32fast::hash(payload).to_le_bytes());
    let check = crc32fast::hash(out.get(start..).unwrap_or_default());
    out.extend_from_slice(&check.to_le_bytes());
    out.extend_from_slice(payload);
}

/// Head of a frame with a correct checksum of its own.
struct Head {
    kind: u8,
    len: usize,
    crc: u32,
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Head> {
        let (body, check) = bytes.get(..HEAD)?.split_at_checked(12)?;
        if !body.starts_with(&MARK) || crc32fast::hash(body) != le32(check)? {
            return None;
        }
        let len = le32(body.get(4..8)?)? as usize;
        let crc = le32(body.get(8..12)?)?;
        (len <= MAX_PAYLOAD).then_some(Head { kind: *body.get(3)?, len, crc })
    }
}

fn le32(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|four| u32::from_le_bytes(*four))
}

/// Next piece of the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A whole frame; [`FrameReader::payload`] has its content.
    Frame {
        /// One of [`kind`], or a kind of a newer format.
        kind: u8,
        /// Length with its head.
        bytes: u64,
    },
    /// Skipped bytes that are not a whole frame.
    Damaged {
        /// Kind of the frame, if only its payload was damaged.
        kind: Option<u8>,
        /// How many.
        bytes: u64,
        /// The file ended within them.
        cut_off: bool,
    },
    /// The file ended.
    End,
}

/// Cuts a stream into frames. Holds at most one frame and one chunk.
pub(super) struct FrameReader<R> {
    inner: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    eof: bool,
    payload: std::ops::Range<usize>,
}

impl<R> FrameReader<R> {
    /// Takes the buffer out of a reader that is no longer used.
    pub(super) fn take_buffer(&mut self) -> Vec<u8> {
        (self.start, self.end, self.payload) = (0, 0, 0..0);
        std::mem::take(&mut self.buffer)
    }
}

impl<R: Read> FrameReader<R> {
    #[cfg(test)]
    pub(super) fn new(inner: R) -> FrameReader<R> {
        FrameReader::with(inner, Vec::new())
    }

    /// A reader into a buffer that was used before; what is in it counts for nothing.
    pub(super) fn with(inner: R, buffer: Vec<u8>) -> FrameReader<R> {
        FrameReader { inner, buffer, start: 0, end: 0, eof: false, payload: 0..0 }
    }

    /// Payload of the frame that [`FrameReader::next`] returned last.
    pub(super) fn payload(&self) -> &[u8] {
        self.buffer.get(self.payload.clone()).unwrap_or_default()
    }

    /// The fixed start, or as much of it as there is.
    pub(super) fn preamble(&mut self) -> io::Result<&[u8]> {
        self.fill(PREAMBLE)?;
        let taken = self.start..self.end.min(self.start + PREAMBLE);
        self.start = taken.end;
        Ok(self.buffer.get(taken).unwrap_or_default())
    }

    fn unread(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Reads until `want` bytes are there or the file ends. Grows as bytes arrive, never ahead of them.
    fn fill(&mut self, want: usize) -> io::Result<bool> {
        while self.end - self.start < want && !self.eof {
            if self.start > 0 && self.buffer.len() - self.end < CHUNK {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            if self.buffer.len() - self.end < CHUNK {
                self.buffer.resize(self.end + CHUNK, 0);
            }
            let Some(room) = self.buffer.get_mut(self.end..) else { break };
            match self.inner.read(room) {
                Ok(0) => self.eof = true,
                Ok(read) => self.end += read.min(room.len()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.end - self.start >= want)
    }

    /// The next frame, or the next stretch that is none.
    pub(super) fn next(&mut self) -> io::Result<Step> {
        if !self.fill(HEAD)? && self.unread().is_empty() {
            return Ok(Step::End);
        }
        let Some(head) = Head::parse(self.unread()) else { return self.pass_over() };
        let bytes = (HEAD + head.len) as u64;
        if !self.fill(HEAD + head.len)? {
            return self.pass_over();
        }
        self.payload = self.start + HEAD..self.start + HEAD + head.len;
        self.start = self.payload.end;
        if crc32fast::hash(self.payload()) == head.crc {
            Ok(Step::Frame { kind: head.kind, bytes })
        } else {
            Ok(Step::Damaged { kind: Some(head.kind), bytes, cut_off: false })
        }
    }

    /// Goes on to the next good head, or to the end of the file.
    fn pass_over(&mut self) -> io::Result<Step> {
        let mut bytes = 0;
        loop {
            bytes += 1;
            self.start += 1;
            let skip = find(self.unread(), &MARK).unwrap_or((self.end - self.start).saturating_sub(MARK.len() - 1));
            bytes += skip as u64;
            self.start += skip;
            if !self.fill(HEAD)? {
                // Too little left for a head: none of it is a frame.
                bytes += self.unread().len() as u64;
                self.start = self.end;
                return Ok(Step::Damaged { kind: None, bytes, cut_off: true });
            }
            if Head::parse(self.unread()).is_some() {
                return Ok(Step::Damaged { kind: None, bytes, cut_off: false });
            }
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time, as the slowest pipe would.
    struct Trickle<'a>(&'a [u8]);

    impl Read for Trickle<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let len = self.0.len().min(out.len()).min(1);
            let (now, later) = self.0.split_at(len);
            out[..len].copy_from_slice(now);
            self.0 = later;
            Ok(len)
        }
    }

    fn steps(bytes: &[u8]) -> Vec<Step> {
        let mut whole = FrameReader::new(bytes);
        let mut trickled = FrameReader::new(Trickle(bytes));
        let mut out = Vec::new();
        loop {
            let step = whole.next().unwrap();
            assert_eq!(step, trickled.next().unwrap());
            assert_eq!(whole.payload(), trickled.payload());
            if step == Step::End {
                return out;
            }
            out.push(step);
        }
    }

    fn three() -> Vec<u8> {
        let mut bytes = Vec::new();
        put_frame(&mut bytes, 2, b"first");
        put_frame(&mut bytes, 2, b"second");
        put_frame(&mut bytes, 4, b"");
        bytes
    }

    #[test]
    fn frames_read_back() {
        let frame = |kind, bytes| Step::Frame { kind, bytes };
        assert_eq!(steps(&three()), [frame(2, 21), frame(2, 22), frame(4, 16)]);
    }

    #[test]
    fn a_damaged_payload_costs_its_frame_alone() {
        let mut bytes = three();
        bytes[17] ^= 1;
        assert_eq!(steps(&bytes)[0], Step::Damaged { kind: Some(2), bytes: 21, cut_off: false });
        assert_eq!(steps(&bytes).len(), 3);
    }

    #[test]
    fn a_damaged_head_is_passed_over() {
        let mut bytes = three();
        bytes[5] ^= 0x80;
        assert_eq!(steps(&bytes)[0], Step::Damaged { kind: None, bytes: 21, cut_off: false });
        assert_eq!(steps(&bytes).len(), 3);
    }

    #[test]
    fn a_file_that_ends_within_a_frame_says_so() {
        let bytes = three();
        assert_eq!(steps(&bytes[..30])[1], Step::Damaged { kind: None, bytes: 9, cut_off: true });
        assert_eq!(steps(&bytes[..42])[1], Step::Damaged { kind: None, bytes: 21, cut_off: true });
    }

    #[test]
    fn frames_behind_a_torn_one_are_found() {
        let mut bytes = three()[..12].to_vec();
        bytes.extend(three());
        assert_eq!(steps(&bytes)[0], Step::Damaged { kind: None, bytes: 12, cut_off: false });
        assert_eq!(steps(&bytes).len(), 4);
    }

    #[test]
    fn the_buffer_holds_a_frame_and_a_chunk_or_two() {
        // A frame that is larger than what is read at once, and many small ones, from slow and from fast readers.
        for (length, count) in [(5 * CHUNK, 20), (CHUNK - 100, 100), (1000, 2000)] {
            let mut bytes = Vec::new();
            (0..count).for_each(|_| put_frame(&mut bytes, 2, &vec![7; length]));
            let mut reader = FrameReader::new(bytes.as_slice());
            let mut found = 0;
            while let Step::Frame { .. } = reader.next().unwrap() {
                found += 1;
                let most = (HEAD + length).next_multiple_of(CHUNK) + 2 * CHUNK;
                assert!(reader.buffer.len() <= most, "{} bytes for {length}", reader.buffer.len());
            }
            assert_eq!(found, count);
        }
    }

    #[test]
    fn an_interrupted_read_is_repeated_and_an_error_is_returned() {
        struct Failing(Vec<io::ErrorKind>);
        impl Read for Failing {
            fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
                match self.0.pop() {
                    Some(kind) => Err(kind.into()),
                    None => (&three()[..]).read(out),
                }
            }
        }
        let next = |kinds: &[io::ErrorKind]| FrameReader::new(Failing(kinds.to_vec())).next();
        let first = Step::Frame { kind: 2, bytes: 21 };
        assert_eq!(next(&[io::ErrorKind::Interrupted, io::ErrorKind::Interrupted]).unwrap(), first);
        assert_eq!(next(&[io::ErrorKind::PermissionDenied]).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
