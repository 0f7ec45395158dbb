// SPDX-License-Identifier: MIT OR Apache-2.0
//! One column of a table: which rows gained or lost their reading, which changed, and by how much.
//! Everything is encoded as a difference to the previous reading, so an unchanged column is one byte. Columns are
//! self-delimiting: a reader skips a metric that it does not know.
//!
//! Layout: a byte with two position modes (gained or lost: bits 0-2; changed: bits 3-5), the two
//! position sets, and where any row changed, the common divisor of the steps and the steps.

use super::wire::{Cursor, Malformed, put_varint, unzigzag, varint_len, zigzag};
use std::convert::Infallible;

const EMPTY: u8 = 0;
const ALL: u8 = 1;
/// Position mode: the same rows as the last set written out in this table.
const SAME: u8 = 2;
const BITMAP: u8 = 3;
const LIST: u8 = 4;

/// Codec of sets of row positions. Keeps the last set, because most columns of a table change in the same rows.
#[derive(Default)]
pub(super) struct Positions {
    last: Vec<u32>,
    /// The last set that was read, if it is a bitmap; `last` is older then.
    bitmap: Vec<u8>,
}

impl Positions {
    /// Forgets the previous set. Called at the start of every table.
    pub(super) fn reset(&mut self) {
        self.last.clear();
        self.bitmap.clear();
    }

    /// Returns the shortest position mode for `set` (ascending, below `rows`).
    pub(super) fn mode(&self, set: &[u32], rows: usize) -> u8 {
        if set.is_empty() {
            EMPTY
        } else if set.len() == rows {
            ALL
        } else if set == self.last {
            SAME
        } else {
            let mut before = 0;
            let list = set.iter().fold(varint_len(set.len() as u64), |sum, &at| {
                let gap = at - before;
                before = at;
                sum + varint_len(u64::from(gap))
            });
            if list <= rows.div_ceil(8) { LIST } else { BITMAP }
        }
    }

    /// Writes the part of the set that is not implied by the mode of [`Positions::mode`].
    pub(super) fn put(&mut self, out: &mut Vec<u8>, mode: u8, set: &[u32], rows: usize) {
        match mode {
            LIST => {
                put_varint(out, set.len() as u64);
                let mut before = 0;
                for &at in set {
                    put_varint(out, u64::from(at - before));
                    before = at;
                }
            }
            BITMAP => {
                let start = out.len();
                out.resize(start + rows.div_ceil(8), 0);
                for &at in set {
                    if let Some(byte) = out.get_mut(start + at as usize / 8) {
                        *byte |= 1 << (at % 8);
                    }
                }
            }
            _ => return,
        }
        self.last.clear();
        self.last.extend_from_slice(set);
    }

    /// Reads a set of positions below `rows`.
    pub(super) fn get(&mut self, cursor: &mut Cursor<'_>, mode: u8, rows: usize) -> Result<Set<'_>, Malformed> {
        let Positions { last: set, bitmap } = self;
        match mode {
            EMPTY => return Ok(Set::Some(&[])),
            ALL => return Ok(Set::All(rows as u32)),
            SAME => {}
            BITMAP => {
                set.clear();
                bitmap.clear();
                bitmap.extend_from_slice(cursor.take(rows.div_ceil(8))?);
            }
            LIST => {
                bitmap.clear();
                set.clear();
                let count = cursor.count(rows)?;
                let mut at = 0u64;
                for _ in 0..count {
                    at = at.saturating_add(cursor.varint()?);
                    if at >= rows as u64 || set.last().is_some_and(|&before| u64::from(before) == at) {
                        return Err(Malformed("a row position is out of order"));
                    }
                    set.push(at as u32);
                }
            }
            _ => return Err(Malformed("an unknown way of writing positions")),
        }
        let set = if bitmap.is_empty() { Set::Some(set) } else { Set::Bits(bitmap) };
        if set.end() > rows {
            return Err(Malformed("a row position is out of range"));
        }
        Ok(set)
    }
}

/// Positions of rows, ascending.
#[derive(Clone, Copy, Debug)]
pub(super) enum Set<'a> {
    /// All of a number of rows.
    All(u32),
    /// These rows.
    Some(&'a [u32]),
    /// Rows whose bit is set, the lowest bit of a byte first.
    Bits(&'a [u8]),
}

impl Set<'_> {
    /// Passes each position to `each`.
    #[inline]
    pub(super) fn each(self, mut each: impl FnMut(u32)) {
        let Ok(()) = self.try_each(|at| {
            each(at);
            Ok::<(), Infallible>(())
        });
    }

    /// Passes each position to `each`, which can fail.
    #[inline]
    pub(super) fn try_each<E>(self, mut each: impl FnMut(u32) -> Result<(), E>) -> Result<(), E> {
        match self {
            Set::All(rows) => (0..rows).try_for_each(each),
            Set::Some(rows) => rows.iter().try_for_each(|&at| each(at)),
            Set::Bits(bitmap) => (0u32..).step_by(64).zip(words(bitmap)).try_for_each(|(first, mut bits)| {
                while bits != 0 {
                    each(first + bits.trailing_zeros())?;
                    bits &= bits - 1;
                }
                Ok(())
            }),
        }
    }

    /// Returns the number of positions.
    pub(super) fn count(self) -> usize {
        match self {
            Set::All(rows) => rows as usize,
            Set::Some(rows) => rows.len(),
            Set::Bits(bitmap) => words(bitmap).map(|bits| bits.count_ones() as usize).sum(),
        }
    }

    /// Returns the position after the last one; 0 without any.
    fn end(self) -> usize {
        match self {
            Set::All(rows) => rows as usize,
            Set::Some(rows) => rows.last().map_or(0, |at| *at as usize + 1),
            Set::Bits(bitmap) => match bitmap.iter().rposition(|bits| *bits != 0) {
                Some(at) => (at + 1) * 8 - bitmap.get(at).map_or(0, |bits| bits.leading_zeros() as usize),
                None => 0,
            },
        }
    }
}

/// The bits of a bitmap, 64 at a time.
#[inline]
fn words(bitmap: &[u8]) -> impl Iterator<Item = u64> {
    bitmap.chunks(8).map(|bytes| match bytes.first_chunk::<8>() {
        Some(eight) => u64::from_le_bytes(*eight),
        None => bytes.iter().rev().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte)),
    })
}

/// Reads one column of a table of `rows` rows. `toggle` gets each row that gained a reading (0) or lost its reading.
/// Then
/// `step` gets each row whose reading changed, and by how much, wrapping.
#[inline]
pub(super) fn get<T>(
    cursor: &mut Cursor<'_>,
    positions: &mut Positions,
    rows: usize,
    into: &mut T,
    toggle: impl Fn(&mut T, u32),
    step: impl Fn(&mut T, u32, u64),
) -> Result<(), Malformed> {
    let modes = modes(cursor)?;
    positions.get(cursor, modes.toggled, rows)?.each(|at| toggle(into, at));
    let changed = positions.get(cursor, modes.changed, rows)?;
    if changed.count() == 0 {
        return Ok(());
    }
    let divisor = divisor(cursor)?;
    changed.try_each(|at| {
        step(into, at, self::step(cursor.varint()?, divisor));
        Ok(())
    })
}

/// How the positions of a column are written: of the rows that gained or lost a reading, and of those whose reading changed.
pub(super) struct Modes {
    pub(super) toggled: u8,
    pub(super) changed: u8,
}

/// Reads the start of a column.
pub(super) fn modes(cursor: &mut Cursor<'_>) -> Result<Modes, Malformed> {
    let modes = cursor.byte()?;
    Ok(Modes { toggled: modes & 7, changed: modes >> 3 })
}

/// Reads what divides every step of a column with a row that changed.
pub(super) fn divisor(cursor: &mut Cursor<'_>) -> Result<i64, Malformed> {
    Ok(cursor.varint()? as i64)
}

/// Returns how much a reading changed, wrapping.
#[inline]
pub(super) fn step(written: u64, divisor: i64) -> u64 {
    unzigzag(written).wrapping_mul(divisor) as u64
}

/// Passes over one column of a table of `rows` rows. Accepts what [`get`] accepts.
pub(super) fn skip(cursor: &mut Cursor<'_>, positions: &mut Positions, rows: usize) -> Result<(), Malformed> {
    let modes = modes(cursor)?;
    positions.get(cursor, modes.toggled, rows)?;
    match positions.get(cursor, modes.changed, rows)?.count() {
        0 => Ok(()),
        changed => {
            divisor(cursor)?;
            cursor.skip_varints(changed)
        }
    }
}

/// Working memory of a writer for one column, kept between columns.
#[derive(Default)]
pub(super) struct Column {
    /// Rows that gained or lost their reading.
    toggled: Vec<u32>,
    /// Rows with a reading that differs from the previous one.
    changed: Vec<u32>,
    /// Differences, in the order of `changed`.
    steps: Vec<i64>,
}

impl Column {
    /// Forgets the previous column.
    pub(super) fn clear(&mut self) {
        self.toggled.clear();
        self.changed.clear();
        self.steps.clear();
    }

    /// Takes one row, in ascending order of `at`.
    pub(super) fn push(&mut self, at: u32, before: Option<u64>, now: Option<u64>) {
        if before.is_some() != now.is_some() {
            self.toggled.push(at);
        }
        if let Some(now) = now {
            let step = now.wrapping_sub(before.unwrap_or(0)) as i64;
            if step != 0 {
                self.changed.push(at);
                self.steps.push(step);
            }
        }
    }

    /// Writes the column.
    pub(super) fn put(&self, out: &mut Vec<u8>, positions: &mut Positions, rows: usize) {
        let head = out.len();
        out.push(0);
        let toggled = positions.mode(&self.toggled, rows);
        positions.put(out, toggled, &self.toggled, rows);
        let changed = positions.mode(&self.changed, rows);
        positions.put(out, changed, &self.changed, rows);
        if let Some(byte) = out.get_mut(head) {
            *byte = toggled | changed << 3;
        }
        if self.steps.is_empty() {
            return;
        }
        let divisor = common_divisor(&self.steps);
        put_varint(out, divisor as u64);
        for step in &self.steps {
            put_varint(out, zigzag(step / divisor));
        }
    }
}

/// Returns the largest number that divides every step: most columns are multiples of a page size, a clock tick or a
/// KiB. Returns at least 1, and 1 if the magnitude of a step does not fit.
fn common_divisor(steps: &[i64]) -> i64 {
    let mut divisor = 0u64;
    for step in steps {
        let mut rest = step.unsigned_abs();
        while rest != 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        if divisor == 1 {
            return 1;
        }
    }
    i64::try_from(divisor).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Readings = Vec<Option<u64>>;

    fn through(before: &Readings, now: &Readings) -> (Readings, usize) {
        let mut column = Column::default();
        for (at, (before, now)) in before.iter().zip(now).enumerate() {
            column.push(at as u32, *before, *now);
        }
        let mut bytes = Vec::new();
        column.put(&mut bytes, &mut Positions::default(), now.len());

        let mut cursor = Cursor::new(&bytes);
        let mut got = before.clone();
        let toggle = |got: &mut Readings, at| got[at as usize] = got[at as usize].is_none().then_some(0);
        let step = |got: &mut Readings, at, step| {
            got[at as usize] = got[at as usize].map(|before: u64| before.wrapping_add(step));
        };
        get(&mut cursor, &mut Positions::default(), now.len(), &mut got, toggle, step).unwrap();
        assert!(cursor.is_empty());
        (got, bytes.len())
    }

    fn check(before: &[Option<u64>], now: &[Option<u64>], bytes: usize) {
        let (got, len) = through(&before.to_vec(), &now.to_vec());
        assert_eq!((got.as_slice(), len), (now, bytes));
    }

    #[test]
    fn a_column_costs_what_changed_in_it() {
        let all = [Some(4096 * 7); 100];
        let mut one = all;
        one[50] = Some(4096 * 9);
        check(&all, &all, 1);
        check(&[None; 100], &[None; 100], 1);
        check(&[None; 100], &[Some(0); 100], 1);
        check(&all, &one, 1 + 2 + 2 + 1);
        check(&all, &[None; 100], 1);
        check(&[None; 100], &all, 1 + 3 + 100);
    }

    #[test]
    fn extremes_keep_their_value() {
        check(&[Some(0)], &[Some(u64::MAX)], 3);
        check(&[Some(0)], &[Some(1 << 63)], 1 + 1 + 10);
        check(&[Some(u64::MAX)], &[Some(0)], 3);
        check(&[None], &[Some(u64::MAX)], 3);
    }

    #[test]
    fn positions_are_written_the_shorter_way() {
        let positions = Positions { last: vec![1, 2], ..Positions::default() };
        let check = |set: &[u32], rows, expect| assert_eq!(positions.mode(set, rows), expect, "{set:?} of {rows}");
        check(&[], 4, EMPTY);
        check(&[0, 1, 2, 3], 4, ALL);
        check(&[1, 2], 2000, SAME);
        // A list takes a byte for its length and one for each gap; gaps from 128 on take two.
        check(&[1, 3], 16, BITMAP);
        check(&[1, 3], 17, LIST);
        check(&[127], 17, LIST);
        check(&[127], 16, LIST);
        check(&[128], 16, BITMAP);
        check(&[128], 17, LIST);
        // One for the length, then two, one and two.
        check(&[200, 327, 456], 5 * 8, BITMAP);
        check(&[200, 327, 456], 5 * 8 + 1, LIST);
    }

    #[test]
    fn positions_are_in_order_and_below_the_number_of_rows() {
        let mut positions = Positions { last: vec![1, 2], ..Positions::default() };
        let mut check = |mode, bytes: &[u8], rows, expect: Option<&[u32]>| {
            let read = positions.get(&mut Cursor::new(bytes), mode, rows).ok().map(|read| {
                let mut set = Vec::new();
                read.each(|at| set.push(at));
                assert_eq!(read.count(), set.len());
                set
            });
            assert_eq!(read.as_deref(), expect, "{mode} {bytes:?} {rows}");
        };
        check(SAME, &[], 4, Some(&[1, 2]));
        check(EMPTY, &[], 4, Some(&[]));
        check(ALL, &[], 3, Some(&[0, 1, 2]));
        // Neither of them is remembered as a set.
        check(SAME, &[], 4, Some(&[1, 2]));
        check(LIST, &[1, 3], 4, Some(&[3]));
        check(SAME, &[], 4, Some(&[3]));
        check(SAME, &[], 3, None);
        check(LIST, &[1, 4], 4, None);
        check(LIST, &[2, 1, 2], 4, Some(&[1, 3]));
        check(LIST, &[2, 1, 0], 4, None);
        check(LIST, &[2, 0, 0], 4, None);
        check(LIST, &[2, 1], 4, None);
        check(LIST, &[5, 0, 1, 1, 1, 1], 4, None);
        // 2^32 is row 0 in 32 bits.
        check(LIST, &[1, 0x80, 0x80, 0x80, 0x80, 0x10], 4, None);
        check(BITMAP, &[0b1010], 4, Some(&[1, 3]));
        check(SAME, &[], 4, Some(&[1, 3]));
        check(SAME, &[], 3, None);
        check(BITMAP, &[0b1_0000], 4, None);
        check(BITMAP, &[0b1000_0000, 1], 9, Some(&[7, 8]));
        check(BITMAP, &[0b1000_0000], 9, None);
        check(BITMAP, &[0, 0b10], 9, None);
        check(7, &[], 4, None);
    }

    fn readings() -> impl Strategy<Value = Vec<(Option<u64>, Option<u64>)>> {
        let reading = prop_oneof![
            Just(None),
            Just(Some(0)),
            (0u64..50).prop_map(|v| Some(v * 4096)),
            any::<u64>().prop_map(Some)
        ];
        proptest::collection::vec((reading.clone(), reading), 0..70)
    }

    proptest! {
        #[test]
        fn columns_read_back(pairs in readings()) {
            let (before, now): (Readings, Readings) = pairs.into_iter().unzip();
            prop_assert_eq!(through(&before, &now).0, now);
        }

        #[test]
        fn columns_are_passed_over_where_they_are_read(
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), 0u8..40, Just(0x80u8)], 0..200),
            pairs in proptest::collection::vec((readings(), any::<bool>()), 1..5),
            rows in 0usize..70,
            is_written: bool,
        ) {
            // Columns as they are written, or any bytes: each is read by one reader, and read or skipped by the other.
            let (rows, bytes) = if is_written {
                let rows = pairs.iter().map(|(pairs, _)| pairs.len()).min().unwrap_or(0);
                let (mut out, mut positions) = (Vec::new(), Positions::default());
                for (pairs, _) in &pairs {
                    let mut column = Column::default();
                    for (at, (before, now)) in (0u32..).zip(&pairs[..rows]) {
                        column.push(at, *before, *now);
                    }
                    column.put(&mut out, &mut positions, rows);
                    // The next column often changes in the same rows.
                    column.put(&mut out, &mut positions, rows);
                }
                (rows, out)
            } else {
                (rows, bytes)
            };
            let mut whole = (Cursor::new(&bytes), Positions::default());
            let mut part = whole.0.clone();
            let mut positions = Positions::default();
            for (_, is_skipped) in pairs.iter().flat_map(|pair| [pair, pair]) {
                let read = |cursor: &mut Cursor<'_>, positions: &mut Positions| {
                    let mut seen = Vec::new();
                    get(cursor, positions, rows, &mut seen, |seen, at| seen.push((at, 0)), |seen, at, by| seen.push((at, by)))
                        .map(|()| seen)
                };
                let expected = read(&mut whole.0, &mut whole.1);
                match is_skipped {
                    true => prop_assert_eq!(skip(&mut part, &mut positions, rows), expected.clone().map(|_| ())),
                    false => prop_assert_eq!(&read(&mut part, &mut positions), &expected),
                }
                if expected.is_err() {
                    break;
                }
                prop_assert_eq!(part.left(), whole.0.left());
            }
        }

        #[test]
        fn any_bytes_read_as_a_column_or_not_at_all(bytes in proptest::collection::vec(any::<u8>(), 0..40), rows in 0usize..50) {
            let mut most = None;
            let toggle = |most: &mut Option<u32>, at| *most = (*most).max(Some(at));
            let step = |most: &mut Option<u32>, at, _| *most = (*most).max(Some(at));
            let _ = get(&mut Cursor::new(&bytes), &mut Positions::default(), rows, &mut most, toggle, step);
            prop_assert!(most.is_none_or(|at| (at as usize) < rows));
        }
    }
}
