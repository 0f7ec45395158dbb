// SPDX-License-Identifier: MIT OR Apache-2.0
//! Variable-length integers, written to a vector and read from a slice. For any content of the slice, reading returns a
//! value or [`Malformed`]. Nothing is allocated by a length that was read.

/// The bytes do not follow the format. Names the expected content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Malformed(pub(super) &'static str);

/// Writes seven bits per byte, lowest first. The top bit is set if more follow.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Returns the number of bytes that [`put_varint`] writes.
pub(super) fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Maps small magnitudes of either sign to small numbers: 0, -1, 1, -2, …
pub(super) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Inverts [`zigzag`].
pub(super) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Writes a length and the bytes.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads from the front of a slice.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

/// Reads a number of any length. Takes and returns the bytes, so that those of a reader of short numbers stay in registers.
#[cold]
fn long_varint(bytes: &[u8]) -> Result<(u64, &[u8]), Malformed> {
    let mut value = 0u64;
    for (at, &byte) in bytes.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        if at == 9 && bits > 1 {
            return Err(Malformed("a number does not fit 64 bits"));
        }
        value |= bits << (7 * at);
        if byte & 0x80 == 0 {
            return Ok((value, bytes.get(at + 1..).unwrap_or_default()));
        }
    }
    Err(Malformed("a number does not end"))
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: bytes }
    }

    /// Returns the number of bytes not read yet.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        let (&first, rest) = self.rest.split_first().ok_or(Malformed("a byte is missing"))?;
        self.rest = rest;
        Ok(first)
    }

    #[inline]
    pub(super) fn varint(&mut self) -> Result<u64, Malformed> {
        // Most numbers have one byte to three.
        let (value, rest) = match *self.rest {
            [first @ 0..=0x7f, ref rest @ ..] => (u64::from(first), rest),
            [first, second @ 0..=0x7f, ref rest @ ..] => (u64::from(first & 0x7f) | u64::from(second) << 7, rest),
            [first, second, third @ 0..=0x7f, ref rest @ ..] => {
                (u64::from(first & 0x7f) | u64::from(second & 0x7f) << 7 | u64::from(third) << 14, rest)
            }
            _ => long_varint(self.rest)?,
        };
        self.rest = rest;
        Ok(value)
    }

    /// Reads as many variable-length integers as there is room for, and makes what is stored of each. Accepts what
    /// [`Cursor::varint`] accepts.
    #[inline]
    pub(super) fn varints(&mut self, room: &mut [u64], make: impl Fn(u64) -> u64) -> Result<(), Malformed> {
        for eight in room.chunks_mut(8) {
            // Most columns of counters have many small steps: eight numbers of a byte each are read at once.
            if let (Some(eight), Some((bytes, rest))) =
                (eight.first_chunk_mut::<8>(), self.rest.split_first_chunk::<8>())
                && u64::from_le_bytes(*bytes) & 0x8080_8080_8080_8080 == 0
            {
                *eight = bytes.map(|byte| make(u64::from(byte)));
                self.rest = rest;
                continue;
            }
            for some in eight.chunks_mut(4) {
                self.few(some, &make)?;
            }
        }
        Ok(())
    }

    /// Reads at most four variable-length integers.
    #[inline]
    fn few(&mut self, room: &mut [u64], make: &impl Fn(u64) -> u64) -> Result<(), Malformed> {
        // Where numbers of one byte and of two are mixed, a branch for each would be mispredicted half of the time. None is
        // needed where no number is longer: four of them lie within eight bytes.
        if let (Some(four), Some((bytes, _))) = (room.first_chunk_mut::<4>(), self.rest.split_first_chunk::<8>()) {
            let mut rest = u64::from_le_bytes(*bytes);
            let goes_on = rest & 0x8080_8080_8080_8080;
            if goes_on & (goes_on << 8) == 0 {
                let mut read = 4;
                for value in four {
                    let has_two = rest >> 7 & 1;
                    *value = make(rest & 0x7f | (rest >> 1 & 0x3f80) & has_two.wrapping_neg());
                    rest >>= 8 << has_two;
                    read += has_two as usize;
                }
                self.rest = self.rest.get(read..).unwrap_or_default();
                return Ok(());
            }
        }
        for value in room {
            *value = make(self.longer()?);
        }
        Ok(())
    }

    /// Reads a number that is often longer than two bytes: without a branch for each byte where it lies within eight.
    #[inline]
    fn longer(&mut self) -> Result<u64, Malformed> {
        let Some((bytes, _)) = self.rest.split_first_chunk::<8>() else { return self.varint() };
        let bits = u64::from_le_bytes(*bytes);
        let ends = !bits & 0x8080_8080_8080_8080;
        if ends == 0 {
            return self.varint();
        }
        // The bits up to the first byte without its top bit; then seven of each byte, of two bytes, and of four are joined.
        let bits = bits & (ends ^ (ends - 1)) & 0x7f7f_7f7f_7f7f_7f7f;
        let bits = bits & 0x007f_007f_007f_007f | (bits & 0x7f00_7f00_7f00_7f00) >> 1;
        let bits = bits & 0x0000_3fff_0000_3fff | (bits & 0x3fff_0000_3fff_0000) >> 2;
        let bits = bits & 0x0fff_ffff | (bits & 0x0fff_ffff_0000_0000) >> 4;
        self.rest = self.rest.get(ends.trailing_zeros() as usize / 8 + 1..).unwrap_or_default();
        Ok(bits)
    }

    /// Passes over a number of variable-length integers. Accepts what [`Cursor::varint`] accepts.
    pub(super) fn skip_varints(&mut self, mut count: usize) -> Result<(), Malformed> {
        // A number ends with a byte without its top bit: those that end within eight bytes are passed over at once.
        while count >= 8 {
            let Some((eight, _)) = self.rest.split_first_chunk::<8>() else { break };
            let ends = !u64::from_le_bytes(*eight) & 0x8080_8080_8080_8080;
            if ends == 0 {
                self.varint()?;
                count -= 1;
                continue;
            }
            let bytes = 8 - ends.leading_zeros() as usize / 8;
            self.rest = self.rest.get(bytes..).unwrap_or_default();
            count -= ends.count_ones() as usize;
        }
        (0..count).try_for_each(|_| self.varint().map(|_| ()))
    }

    /// Reads the number of elements that each take at least part of a byte, at most `limit`.
    pub(super) fn count(&mut self, limit: usize) -> Result<usize, Malformed> {
        let value = self.varint()?;
        usize::try_from(value).ok().filter(|&count| count <= limit).ok_or(Malformed("a count is too large"))
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Malformed("bytes are missing"))?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads bytes that [`put_bytes`] wrote.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.count(self.left())?;
        self.take(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_read_back(value in prop_oneof![any::<u64>(), 0u64..300, Just(u64::MAX)]) {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            prop_assert_eq!(out.len(), varint_len(value));
            let mut cursor = Cursor::new(&out);
            prop_assert_eq!(cursor.varint(), Ok(value));
            prop_assert!(cursor.is_empty());
            prop_assert_eq!(zigzag(unzigzag(value)), value);
        }
    }

    proptest! {
        #[test]
        fn numbers_are_passed_over_where_they_are_read(
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), 0u8..0x80, Just(0x80u8), Just(0xffu8)], 0..80),
            count in 0usize..40,
        ) {
            let (mut one, mut other, mut third) = (Cursor::new(&bytes), Cursor::new(&bytes), Cursor::new(&bytes));
            let read: Result<Vec<u64>, Malformed> = (0..count).map(|_| one.varint()).collect();
            prop_assert_eq!(other.skip_varints(count).is_ok(), read.is_ok());
            let mut room = vec![0; count];
            let together = third.varints(&mut room, |value| value.wrapping_mul(3));
            prop_assert_eq!(together, read.clone().map(|_| ()));
            if let Ok(read) = read {
                prop_assert_eq!((one.left(), one.left()), (other.left(), third.left()));
                prop_assert_eq!(room, read.iter().map(|value| value.wrapping_mul(3)).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_number_longer_than_64_bits_is_refused() {
        assert_eq!(Cursor::new(&[0xff; 10]).varint(), Err(Malformed("a number does not fit 64 bits")));
        assert_eq!(Cursor::new(&[0x80; 3]).varint(), Err(Malformed("a number does not end")));
    }
}
