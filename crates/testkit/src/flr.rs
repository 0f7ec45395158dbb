// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings taken apart and put together again with right checksums, so that a test can change a byte behind them.
//! Written from the description of the format, apart from the encoder and the decoder.

/// Bytes before the first frame.
const PREAMBLE: usize = 32;
/// Mark, kind, length of the payload, its crc32, crc32 of the head.
const HEAD: usize = 16;

/// A recording, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Magic and versions.
    pub preamble: Vec<u8>,
    /// Kind and unpacked content of each frame.
    pub frames: Vec<(u8, Vec<u8>)>,
}

/// Largest content of a frame, bytes.
const CONTENT_MAX: usize = 32 << 20;

impl File {
    /// Takes a recording apart.
    ///
    /// # Panics
    /// If the recording is damaged: tests start from a good one.
    pub fn parse(bytes: &[u8]) -> File {
        let (preamble, mut rest) = bytes.split_at(PREAMBLE);
        let mut frames = Vec::new();
        while !rest.is_empty() {
            let (head, after) = rest.split_at(HEAD);
            let length = u32::from_le_bytes(head[4..8].try_into().expect("four bytes")) as usize;
            let (payload, after) = after.split_at(length);
            let content = zstd::bulk::decompress(payload, CONTENT_MAX).expect("a packed payload");
            frames.push((head[3], content));
            rest = after;
        }
        File { preamble: preamble.to_vec(), frames }
    }

    /// Puts the recording together.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = self.preamble.clone();
        for (kind, content) in &self.frames {
            let payload = zstd::bulk::compress(content, -7).expect("memory");
            let mut head = vec![0xf1, 0x0d, 0x1e, *kind];
            head.extend_from_slice(&(payload.len() as u32).to_le_bytes());
            head.extend_from_slice(&crc32fast::hash(&payload).to_le_bytes());
            out.extend_from_slice(&head);
            out.extend_from_slice(&crc32fast::hash(&head).to_le_bytes());
            out.extend_from_slice(&payload);
        }
        out
    }

    /// Changes the contents as `choices` say, six bytes at a time: frame, place, and what is done there. Equal choices
    /// make equal changes, so that a fuzzer can learn which matter.
    pub fn change(&mut self, choices: &[u8]) {
        let frames = self.frames.len().max(1);
        for choice in choices.chunks_exact(6) {
            let Some((_, content)) = self.frames.get_mut(usize::from(choice[0]) % frames) else { return };
            let at = usize::from(u16::from_le_bytes([choice[1], choice[2]])) * 256 + usize::from(choice[3]);
            let at = at % content.len().max(1);
            let value = choice[5];
            match choice[4] % 6 {
                0 | 1 => content.iter_mut().skip(at).take(1).for_each(|byte| *byte = value),
                2 => content.iter_mut().skip(at).take(usize::from(value % 16)).for_each(|byte| *byte = 0xff),
                3 => drop(content.splice(at..at, std::iter::repeat_n(value, 1 + usize::from(value % 4)))),
                4 => drop(content.drain(at..content.len().min(at + usize::from(value)))),
                _ => {
                    let piece: Vec<u8> = content.iter().skip(at).take(usize::from(value)).copied().collect();
                    content.splice(at..at, piece);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::File;
    use crate::Fixture;
    use floodline_record::record::Sink;
    use floodline_record::recording::{Decoder, Encoder, Header};

    #[test]
    fn what_is_put_together_again_is_what_was_taken_apart() {
        let records = Fixture::healthy().seconds(2).records();
        let mut encoder = Encoder::new(Vec::new(), Header::new(None)).expect("an encoder");
        records.iter().for_each(|record| encoder.record(record).expect("a record"));
        let file = encoder.finish().expect("an end");
        let apart = File::parse(&file);
        let together = apart.bytes();
        let mut decoder = Decoder::new(&*together).expect("a recording");
        let read: Vec<_> = decoder.by_ref().map(|record| record.expect("a good recording")).collect();
        assert_eq!((read, decoder.cut()), (records, None));
        let mut changed = apart.clone();
        changed.change(&[0, 0, 0, 3, 0, b'!']);
        assert_eq!(changed.frames[0].1[3], b'!');
        changed.change(&[1, 255, 255, 255, 5, 200]);
        assert!(changed.frames[1].1.len() >= apart.frames[1].1.len());
    }
}
