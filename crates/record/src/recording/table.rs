// SPDX-License-Identifier: MIT OR Apache-2.0
//! One table of a sample, encoded as a difference to the same table of the last sample that had it: removed and added
//! entities, then every column. Writer and reader keep the same rows and bring them to the same order of entities
//! before the columns, so a new entity is a row without readings.

use super::column::{self, Column, Positions};
use super::limits::{Limit, Stop};
use super::wire::{Cursor, Malformed, put_varint};
use crate::id::EntityId;
use crate::metric::{Changed, Row};
use crate::units::Nanos;

/// Most rows of one table. A host has at most 4,194,304 processes; the limit bounds what a crafted
/// file can make a reader allocate.
pub(super) const MAX_ROWS: usize = 1 << 18;

/// Rows by entity.
pub(super) type Rows<R> = Vec<(EntityId, R)>;

/// Working memory, kept between tables.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) positions: Positions,
    column: Column,
    /// Positions of removed rows.
    pub(super) set: Vec<u32>,
    /// Entities of added rows.
    pub(super) ids: Vec<EntityId>,
    /// Steps of the rows that changed in a column.
    pub(super) steps: Vec<u64>,
}

/// State of a table that a reader keeps between samples.
pub(super) struct Kept<R> {
    /// The rows of the last sample that had the table.
    pub(super) rows: Rows<R>,
    /// Changes of each row since the previous sample that had the table.
    pub(super) changed: Vec<Changed>,
    /// Monotonic time of the last sample that had the table.
    pub(super) at: Nanos,
}

impl<R> Default for Kept<R> {
    fn default() -> Kept<R> {
        Kept { rows: Vec::new(), changed: Vec::new(), at: Nanos::default() }
    }
}

/// Writes `now` against `before` and leaves `before` equal to `now`. At most [`MAX_ROWS`] rows.
pub(super) fn put<R: Row>(out: &mut Vec<u8>, scratch: &mut Scratch, before: &mut Rows<R>, now: &[(EntityId, R)]) {
    let Scratch { positions, column, set, ids, .. } = scratch;
    positions.reset();
    // If an entity is twice in a table, its previous row is ambiguous: the table starts afresh.
    let afresh = !is_ascending(before) || !is_ascending(now);
    out.push(u8::from(afresh));
    if afresh {
        before.clear();
    } else {
        set.clear();
        let gone = |id: EntityId| now.binary_search_by_key(&id, |(id, _)| *id).is_err();
        if !same_ids(before, now) {
            set.extend((0u32..).zip(before.iter()).filter(|(_, (id, _))| gone(*id)).map(|(at, _)| at));
        }
        let mode = positions.mode(set, before.len());
        out.push(mode);
        positions.put(out, mode, set, before.len());
        remove(before, set);
    }
    ids.clear();
    if before.len() != now.len() {
        let old = |id: EntityId| before.binary_search_by_key(&id, |(id, _)| *id).is_ok();
        ids.extend(now.iter().map(|(id, _)| *id).filter(|id| afresh || !old(*id)));
    }
    put_varint(out, ids.len() as u64);
    let mut last = 0;
    for id in ids.iter() {
        put_varint(out, u64::from(id.0 - last));
        last = id.0;
    }
    add(before, ids);

    set.clear();
    set.extend((0u32..).zip(before.iter().zip(now)).filter(|(_, (before, now))| before.1 != now.1).map(|(at, _)| at));
    for index in 0..R::METRICS.len() {
        column.clear();
        for &at in set.iter() {
            if let (Some((_, before)), Some((_, now))) = (before.get(at as usize), now.get(at as usize)) {
                column.push(at, before.get(index), now.get(index));
            }
        }
        column.put(out, positions, now.len());
    }
    for &at in set.iter() {
        if let (Some(before), Some(now)) = (before.get_mut(at as usize), now.get(at as usize)) {
            before.clone_from(now);
        }
    }
}

/// Reads which rows were removed and added, into `set` and `ids` of the working memory. `rows` is the number of rows
/// before. Returns whether the table starts afresh: then all of them are removed.
pub(super) fn head(cursor: &mut Cursor<'_>, scratch: &mut Scratch, rows: usize) -> Result<bool, Malformed> {
    let Scratch { positions, ids, set, .. } = scratch;
    positions.reset();
    set.clear();
    let afresh = match cursor.byte()? {
        0 => {
            let mode = cursor.byte()?;
            positions.get(cursor, mode, rows)?.each(|at| set.push(at));
            false
        }
        1 => true,
        _ => return Err(Malformed("an unknown way of writing rows")),
    };
    let kept = if afresh { 0 } else { rows.saturating_sub(set.len()) };
    let added = cursor.count(MAX_ROWS.saturating_sub(kept).min(cursor.left()))?;
    ids.clear();
    let mut last = 0u32;
    for _ in 0..added {
        let gap = u32::try_from(cursor.varint()?).ok();
        last = gap.and_then(|gap| last.checked_add(gap)).ok_or(Malformed("an entity's number does not fit"))?;
        ids.push(EntityId(last));
    }
    Ok(afresh)
}

/// Reads what [`put`] wrote and brings `rows` up to date. `columns` has, for each column of the file, its index in
/// [`Row::METRICS`], or `None` for a column that this build does not know. `may` gets the number of rows and the added
/// entities, before rows are allocated.
pub(super) fn get<R: Row>(
    cursor: &mut Cursor<'_>,
    scratch: &mut Scratch,
    kept: &mut Kept<R>,
    columns: &[Option<usize>],
    may: impl FnOnce(usize, &[EntityId]) -> Result<(), Limit>,
) -> Result<(), Stop> {
    let Kept { rows, changed, .. } = kept;
    match head(cursor, scratch, rows.len())? {
        true => rows.clear(),
        false => remove(rows, &scratch.set),
    }
    let Scratch { positions, ids, .. } = scratch;
    may(rows.len() + ids.len(), ids)?;
    add(rows, ids);
    changed.clear();
    changed.resize(rows.len(), Changed::NOTHING);
    for id in ids.iter() {
        // Ids can repeat: the rows of one entity are adjacent.
        let first = rows.partition_point(|(known, _)| known < id);
        let same = rows.get(first..).unwrap_or_default().iter().take_while(|(known, _)| known == id).count();
        changed.get_mut(first..first + same).unwrap_or_default().fill(Changed::ANYTHING);
    }
    let mut into = (rows, changed);
    for index in columns {
        let count = into.0.len();
        match *index {
            Some(index) => column::get(
                cursor,
                positions,
                count,
                &mut into,
                |(rows, changed), at| {
                    if let (Some((_, row)), Some(changed)) = (rows.get_mut(at as usize), changed.get_mut(at as usize)) {
                        let gained = row.get(index).is_none();
                        row.set(index, gained.then_some(0));
                        *changed = Changed::ANYTHING;
                    }
                },
                |(rows, changed), at, step| {
                    if let (Some((_, row)), Some(changed)) = (rows.get_mut(at as usize), changed.get_mut(at as usize)) {
                        row.add(index, step);
                        changed.insert(index);
                    }
                },
            )?,
            // A column that this build does not know.
            None => column::get(cursor, positions, count, &mut (), |(), _| {}, |(), _, _| {})?,
        }
    }
    Ok(())
}

fn is_ascending<R>(rows: &[(EntityId, R)]) -> bool {
    rows.is_sorted_by(|a, b| a.0 < b.0)
}

fn same_ids<R>(a: &[(EntityId, R)], b: &[(EntityId, R)]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.0 == b.0)
}

/// Removes the rows at `positions` (ascending).
fn remove<R>(rows: &mut Rows<R>, positions: &[u32]) {
    if positions.is_empty() {
        return;
    }
    let mut at = 0u32;
    let mut gone = positions.iter().peekable();
    rows.retain(|_| {
        let here = gone.next_if(|&&position| position == at).is_some();
        at += 1;
        !here
    });
}

/// Inserts empty rows for `ids` (ascending), in order of the entity.
fn add<R: Row>(rows: &mut Rows<R>, ids: &[EntityId]) {
    if ids.is_empty() {
        return;
    }
    rows.extend(ids.iter().map(|id| (*id, R::default())));
    rows.sort_by_key(|(id, _)| *id);
}
