// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the tables of a sample from their sections, and takes lent rows back.

use super::columns::Fold;
use super::limits::{Spent, Stop};
use super::schema::Mapping;
use super::table::{self, Kept, Scratch};
use super::wire::{Cursor, Malformed};
use crate::id::EntityId;
use crate::metric::Row;
use crate::sample::{HostRow, Since, Table, TableVisitorMut};
use crate::units::Nanos;
use std::any::Any;
use std::collections::BTreeMap;
use std::convert::Infallible;

/// Fills the tables of a sample from their sections.
pub(super) struct GetTables<'a> {
    pub(super) sections: &'a [Option<&'a [u8]>],
    pub(super) mapping: &'a Mapping,
    pub(super) before: &'a mut BTreeMap<&'static str, Box<dyn Any + Send>>,
    /// Whether the sample is a keyframe: previous rows do not count.
    pub(super) keyframe: bool,
    pub(super) spent: &'a mut Spent,
    pub(super) scratch: &'a mut Scratch,
    pub(super) lends: bool,
    /// Takes the tables that are folded by column.
    pub(super) fold: Option<&'a mut Fold>,
    pub(super) now: Nanos,
}

/// An updated table, and the time of the sample that it is a difference to.
type Updated<'a, R> = (&'a mut Kept<R>, Option<Nanos>);

impl GetTables<'_> {
    /// Brings the rows of one table up to date. Returns `None` if this sample does not have the table. Also returns the
    /// time of the sample that the rows are a difference to; `None` for a keyframe.
    fn rows<R: Row>(&mut self) -> Result<Option<Updated<'_, R>>, Stop> {
        let found = self.mapping.tables.get(R::TABLE);
        let section = found.and_then(|(number, _)| self.sections.get(*number).copied().flatten());
        let (Some((_, columns)), Some(section)) = (found, section) else {
            if self.keyframe {
                self.before.remove(R::TABLE);
            }
            return Ok(None);
        };
        let before = self.before.entry(R::TABLE).or_insert_with(|| Box::new(Kept::<R>::default()));
        let kept = before.downcast_mut::<Kept<R>>().ok_or(Malformed("two tables of one name"))?;
        let known: Vec<EntityId> = match self.keyframe {
            true => kept.rows.drain(..).map(|(id, _)| id).collect(),
            false => Vec::new(),
        };
        table::get(&mut Cursor::new(section), self.scratch, kept, columns, |rows, added| {
            let is_new = |id: &&EntityId| known.binary_search(id).is_err();
            self.spent.rows(rows, added.iter().filter(is_new).count(), R::METRICS.len())
        })?;
        let since = std::mem::replace(&mut kept.at, self.now);
        Ok(Some((kept, (!self.keyframe).then_some(since))))
    }

    /// Folds one table by column. Returns false if this table is not folded.
    fn fold<R: Row>(&mut self) -> Result<bool, Stop> {
        let GetTables { fold: Some(fold), spent, .. } = self else { return Ok(false) };
        let Some(table) = fold.table(R::TABLE) else { return Ok(false) };
        table.is_new = false;
        let found = self.mapping.tables.get(R::TABLE);
        let section = found.and_then(|(number, _)| self.sections.get(*number).copied().flatten());
        let known = if self.keyframe { table.ids() } else { Vec::new() };
        if self.keyframe {
            table.clear();
        }
        let (Some((_, columns)), Some(section)) = (found, section) else { return Ok(true) };
        let once = table.get(&mut Cursor::new(section), self.scratch, columns, self.now, |rows, added| {
            let is_new = |id: &&EntityId| known.binary_search(id).is_err();
            spent.rows(rows, added.iter().filter(is_new).count(), R::METRICS.len())
        })?;
        fold.is_spoilt |= !once;
        Ok(true)
    }
}

impl TableVisitorMut for GetTables<'_> {
    type Error = Stop;

    fn host(&mut self, row: &mut HostRow) -> Result<(), Stop> {
        match self.rows::<HostRow>()?.map(|(kept, _)| kept.rows.as_slice()) {
            None => Ok(()),
            Some([(EntityId(_), only)]) => {
                row.clone_from(only);
                Ok(())
            }
            Some(_) => Err(Malformed("the machine has one row").into()),
        }
    }

    fn table<R: Row + 'static>(&mut self, table: &mut Table<R>) -> Result<(), Stop> {
        if self.fold::<R>()? {
            return Ok(());
        }
        let lends = self.lends;
        if let Some((kept, since)) = self.rows::<R>()? {
            let (rows, changed) = match lends {
                true => (std::mem::take(&mut kept.rows), std::mem::take(&mut kept.changed)),
                false => (kept.rows.clone(), kept.changed.clone()),
            };
            *table = Table::decoded(rows, Since { time: since, changed });
        }
        Ok(())
    }
}

/// Puts the rows of a lent sample back into the decoder.
pub(super) struct TakeBack<'a>(pub(super) &'a mut BTreeMap<&'static str, Box<dyn Any + Send>>);

impl TableVisitorMut for TakeBack<'_> {
    type Error = Infallible;

    fn host(&mut self, _: &mut HostRow) -> Result<(), Infallible> {
        Ok(())
    }

    fn table<R: Row + 'static>(&mut self, table: &mut Table<R>) -> Result<(), Infallible> {
        let kept = self.0.get_mut(R::TABLE).and_then(|kept| kept.downcast_mut::<Kept<R>>());
        if let (Some(kept), Some((rows, since))) = (kept, std::mem::take(table).into_decoded()) {
            (kept.rows, kept.changed) = (rows, since.changed);
        }
        Ok(())
    }
}
