// SPDX-License-Identifier: MIT OR Apache-2.0
//! Folded rows by entity. Entities are numbered in order of appearance, so nearly always the rows come in order of
//! their entity. They then lie in an array in that order, and a binary search in the numbers alone finds a row. A
//! search in a tree with rows of two kilobytes misses the cache several times. Copies of a window share the rows until
//! one is changed. A what-if change alters few readings, and a whole copy of a host with hundreds of cgroups takes
//! megabytes.

use super::Span;
use crate::id::EntityId;
use std::collections::{BTreeMap, btree_map};
use std::sync::Arc;
use std::{fmt, iter, ops, slice};

/// Rows of one kind, folded, by entity.
#[derive(Clone)]
pub struct Spans<R>(Arc<Rows<R>>);

/// The rows in order of arrival.
#[derive(Clone)]
struct Rows<R> {
    ids: Vec<EntityId>,
    spans: Vec<Span<R>>,
    /// Where the row of each entity is. Empty while the rows are in order of their entity.
    places: BTreeMap<EntityId, usize>,
}

impl<R> Rows<R> {
    fn place(&self, id: EntityId) -> Option<usize> {
        match self.places.is_empty() {
            // A new entity mostly comes after all others.
            true if self.ids.last().is_none_or(|last| *last < id) => None,
            true => self.ids.binary_search(&id).ok(),
            false => self.places.get(&id).copied(),
        }
    }

    /// Adds a row of an entity that has none. Returns its place.
    fn push(&mut self, id: EntityId, span: Span<R>) -> usize {
        let place = self.ids.len();
        let is_next = self.places.is_empty() && self.ids.last().is_none_or(|last| *last < id);
        self.ids.push(id);
        self.spans.push(span);
        if !is_next {
            self.note_places();
        }
        place
    }

    /// Notes the places of rows that are not noted yet.
    fn note_places(&mut self) {
        let noted = self.places.len();
        self.places.extend(self.ids.iter().copied().zip(0..).skip(noted));
    }
}

impl<R> Spans<R> {
    /// Returns the row of an entity.
    pub fn get(&self, id: &EntityId) -> Option<&Span<R>> {
        self.0.spans.get(self.0.place(*id)?)
    }

    /// Whether an entity has a row.
    pub fn contains_key(&self, id: &EntityId) -> bool {
        self.0.place(*id).is_some()
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.0.ids.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.0.ids.is_empty()
    }

    /// Returns the rows with their entities, in order of the entity.
    pub fn iter(&self) -> Iter<'_, R> {
        let Rows { ids, spans, places } = &*self.0;
        match places.is_empty() {
            true => Iter::InOrder(ids.iter().zip(spans)),
            false => Iter::ByPlace(places.iter(), spans),
        }
    }

    /// Returns the entities, in their order.
    pub fn keys(&self) -> impl Iterator<Item = &EntityId> + Clone {
        self.iter().map(|(id, _)| id)
    }

    /// Returns the rows, in order of their entities.
    pub fn values(&self) -> impl Iterator<Item = &Span<R>> + Clone {
        self.iter().map(|(_, span)| span)
    }
}

impl<R: Clone> Spans<R> {
    fn own(&mut self) -> &mut Rows<R> {
        Arc::make_mut(&mut self.0)
    }

    /// Returns the row of an entity, to be changed.
    pub fn get_mut(&mut self, id: &EntityId) -> Option<&mut Span<R>> {
        let place = self.0.place(*id)?;
        self.own().spans.get_mut(place)
    }

    /// Returns the rows in no order, to be changed.
    pub fn values_mut(&mut self) -> slice::IterMut<'_, Span<R>> {
        self.own().spans.iter_mut()
    }

    /// Sets the row of an entity. Returns the one that it had.
    pub fn insert(&mut self, id: EntityId, span: Span<R>) -> Option<Span<R>> {
        match self.get_mut(&id) {
            Some(known) => Some(std::mem::replace(known, span)),
            None => {
                self.own().push(id, span);
                None
            }
        }
    }

    /// Removes the row of an entity. Visits all rows.
    pub fn remove(&mut self, id: &EntityId) -> Option<Span<R>> {
        let place = self.0.place(*id)?;
        let rows = self.own();
        rows.ids.remove(place);
        let span = rows.spans.remove(place);
        if !std::mem::take(&mut rows.places).is_empty() {
            rows.note_places();
        }
        Some(span)
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        *self = Spans::default();
    }

    /// Makes room for more rows.
    pub(crate) fn reserve(&mut self, more: usize) {
        let rows = self.own();
        rows.ids.reserve(more);
        rows.spans.reserve(more);
    }
}

impl<R: Clone + Default> Spans<R> {
    /// Returns the row of an entity, which is a new one if it has none.
    pub fn or_default(&mut self, id: EntityId) -> &mut Span<R> {
        let rows = self.own();
        let place = match rows.place(id) {
            Some(place) => place,
            None => rows.push(id, Span::default()),
        };
        &mut rows.spans[place]
    }

    /// Returns the row of an entity, which is a new one if it has none. Fast for entities that mostly follow each other.
    /// `next` is where the row is expected, and becomes the place after it. Also returns whether the row was known, at the
    /// expected place or behind it.
    pub(super) fn next_or_default(&mut self, id: EntityId, next: &mut usize) -> (&mut Span<R>, bool) {
        let rows = self.own();
        let expected = *next;
        let (place, is_known) = match rows.ids.get(expected) {
            Some(known) if *known == id => (expected, true),
            _ => match rows.place(id) {
                Some(place) => (place, place > expected),
                None => (rows.push(id, Span::default()), false),
            },
        };
        *next = place + 1;
        (&mut rows.spans[place], is_known)
    }
}

impl<R> Default for Spans<R> {
    fn default() -> Spans<R> {
        Spans(Arc::new(Rows { ids: Vec::new(), spans: Vec::new(), places: BTreeMap::new() }))
    }
}

impl<R> ops::Index<&EntityId> for Spans<R> {
    type Output = Span<R>;

    fn index(&self, id: &EntityId) -> &Span<R> {
        self.get(id).expect("no row of that entity")
    }
}

impl<R: Clone> Extend<(EntityId, Span<R>)> for Spans<R> {
    fn extend<I: IntoIterator<Item = (EntityId, Span<R>)>>(&mut self, spans: I) {
        for (id, span) in spans {
            self.insert(id, span);
        }
    }
}

impl<R: Clone> FromIterator<(EntityId, Span<R>)> for Spans<R> {
    fn from_iter<I: IntoIterator<Item = (EntityId, Span<R>)>>(spans: I) -> Spans<R> {
        let mut all = Spans::default();
        all.extend(spans);
        all
    }
}

/// Rows with their entities, in order of the entity.
pub enum Iter<'a, R> {
    /// Rows that lie in this order.
    InOrder(iter::Zip<slice::Iter<'a, EntityId>, slice::Iter<'a, Span<R>>>),
    /// Rows that lie in another order, with the place of each.
    ByPlace(btree_map::Iter<'a, EntityId, usize>, &'a [Span<R>]),
}

impl<R> Clone for Iter<'_, R> {
    fn clone(&self) -> Self {
        match self {
            Iter::InOrder(rows) => Iter::InOrder(rows.clone()),
            Iter::ByPlace(places, spans) => Iter::ByPlace(places.clone(), spans),
        }
    }
}

impl<'a, R> Iterator for Iter<'a, R> {
    type Item = (&'a EntityId, &'a Span<R>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Iter::InOrder(rows) => rows.next(),
            Iter::ByPlace(places, spans) => places.next().and_then(|(id, place)| Some((id, spans.get(*place)?))),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Iter::InOrder(rows) => rows.size_hint(),
            Iter::ByPlace(places, _) => places.size_hint(),
        }
    }
}

impl<'a, R> IntoIterator for &'a Spans<R> {
    type Item = (&'a EntityId, &'a Span<R>);
    type IntoIter = Iter<'a, R>;

    fn into_iter(self) -> Iter<'a, R> {
        self.iter()
    }
}

impl<R: fmt::Debug> fmt::Debug for Spans<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::WbRow;
    use crate::units::Nanos;
    use proptest::prelude::*;

    #[test]
    fn a_copy_that_is_changed_leaves_the_other_as_it_was() {
        let mut spans = Spans::<WbRow>::default();
        spans.or_default(EntityId(1)).last_at = Nanos(7);
        let mut copy = spans.clone();
        assert!(Arc::ptr_eq(&copy.0, &spans.0));
        copy.or_default(EntityId(1)).last_at = Nanos(8);
        assert_eq!((copy[&EntityId(1)].last_at, spans[&EntityId(1)].last_at), (Nanos(8), Nanos(7)));
        copy.clear();
        assert_eq!((copy.len(), spans.len(), spans[&EntityId(1)].last_at), (0, 1, Nanos(7)));
    }

    proptest! {
        #[test]
        fn they_are_what_a_map_has(changes in proptest::collection::vec((0u32..6, 0u32..12, any::<u64>()), 0..60)) {
            let (mut spans, mut map) = (Spans::<WbRow>::default(), BTreeMap::new());
            let span = |at| Span::<WbRow> { last_at: Nanos(at), ..Span::default() };
            let (mut newest, mut next) = (0, 0);
            for (change, number, at) in changes {
                newest += 1;
                let id = EntityId(if change == 0 { 12 + newest } else { number });
                match change {
                    0 | 1 => prop_assert_eq!(
                        spans.insert(id, span(at)).map(|span| span.last_at),
                        map.insert(id, span(at)).map(|span| span.last_at)
                    ),
                    2 => spans.or_default(id).last_at = map.entry(id).or_default().last_at,
                    3 => {
                        let known = map.contains_key(&id);
                        let (span, is_known) = spans.next_or_default(id, &mut next);
                        prop_assert!(known || !is_known);
                        span.last_at = Nanos(at);
                        map.entry(id).or_default().last_at = Nanos(at);
                    }
                    4 => prop_assert_eq!(spans.remove(&id).is_some(), map.remove(&id).is_some()),
                    _ => spans.values_mut().chain(map.values_mut()).for_each(|span| span.last_at.0 /= 2),
                }
                let times = |span: &Span<WbRow>| span.last_at;
                prop_assert!(spans.iter().map(|(id, span)| (*id, times(span))).eq(map.iter().map(|(id, span)| (*id, times(span)))));
                prop_assert!(spans.keys().eq(map.keys()));
                prop_assert_eq!((spans.len(), spans.is_empty()), (map.len(), map.is_empty()));
                for id in (0..70).map(EntityId) {
                    prop_assert_eq!(spans.get(&id).map(times), map.get(&id).map(times));
                    prop_assert_eq!(spans.contains_key(&id), map.contains_key(&id));
                }
            }
        }
    }
}
