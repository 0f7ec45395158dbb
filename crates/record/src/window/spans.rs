// SPDX-License-Identifier: MIT OR Apache-2.0
//! Folded rows by entity, as a map. Copies of a window share them until one is changed. A what-if change
//! alters few readings, and a whole copy of a host with hundreds of cgroups takes megabytes.

use super::Span;
use crate::id::EntityId;
use std::collections::{BTreeMap, btree_map};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Rows of one kind, folded, by entity.
#[derive(Clone)]
pub struct Spans<R>(Arc<BTreeMap<EntityId, Span<R>>>);

impl<R> Default for Spans<R> {
    fn default() -> Spans<R> {
        Spans(Arc::default())
    }
}

impl<R> Deref for Spans<R> {
    type Target = BTreeMap<EntityId, Span<R>>;

    fn deref(&self) -> &BTreeMap<EntityId, Span<R>> {
        &self.0
    }
}

impl<R: Clone> DerefMut for Spans<R> {
    fn deref_mut(&mut self) -> &mut BTreeMap<EntityId, Span<R>> {
        Arc::make_mut(&mut self.0)
    }
}

impl<R> From<BTreeMap<EntityId, Span<R>>> for Spans<R> {
    fn from(spans: BTreeMap<EntityId, Span<R>>) -> Spans<R> {
        Spans(Arc::new(spans))
    }
}

impl<R> FromIterator<(EntityId, Span<R>)> for Spans<R> {
    fn from_iter<I: IntoIterator<Item = (EntityId, Span<R>)>>(spans: I) -> Spans<R> {
        Spans(Arc::new(spans.into_iter().collect()))
    }
}

impl<'a, R> IntoIterator for &'a Spans<R> {
    type Item = (&'a EntityId, &'a Span<R>);
    type IntoIter = btree_map::Iter<'a, EntityId, Span<R>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<R: fmt::Debug> fmt::Debug for Spans<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::WbRow;
    use crate::units::Nanos;

    #[test]
    fn a_copy_that_is_changed_leaves_the_other_as_it_was() {
        let mut spans = Spans::<WbRow>::default();
        spans.entry(EntityId(1)).or_default().last_at = Nanos(7);
        let mut copy = spans.clone();
        assert!(std::ptr::eq(&*copy, &*spans));
        copy.clear();
        assert_eq!((copy.len(), spans.len(), spans[&EntityId(1)].last_at), (0, 1, Nanos(7)));
    }
}
