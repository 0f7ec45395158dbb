// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entities of a window by number. A recording numbers them from 0 in order of appearance, so most of them are found by their
//! number alone: rules look up an entity for each row. Numbers in any other order are kept in a map.

use crate::id::{Entity, EntityId};
use std::collections::{BTreeMap, btree_map};
use std::{fmt, slice};

/// An entity with its number; `None` where there was one.
type Slot = Option<(EntityId, Entity)>;

/// Entities by number.
#[derive(Clone, Default)]
pub struct Entities {
    /// Entities whose number is their position.
    dense: Vec<Slot>,
    /// The others. Their numbers are not below the length of `dense`.
    others: BTreeMap<EntityId, Entity>,
    /// Number of all.
    len: usize,
}

impl Entities {
    /// Returns an entity.
    pub fn get(&self, id: &EntityId) -> Option<&Entity> {
        match self.dense.get(id.0 as usize) {
            Some(slot) => slot.as_ref().map(|(_, entity)| entity),
            None => self.others.get(id),
        }
    }

    /// Whether there is an entity of that number.
    pub fn contains_key(&self, id: &EntityId) -> bool {
        self.get(id).is_some()
    }

    /// Sets an entity. Returns the one that had its number.
    pub fn insert(&mut self, id: EntityId, entity: Entity) -> Option<Entity> {
        let (at, end) = (id.0 as usize, self.dense.len());
        let known = match self.dense.get_mut(at) {
            Some(slot) => slot.replace((id, entity)).map(|(_, known)| known),
            None if at > end || self.others.contains_key(&id) => self.others.insert(id, entity),
            None => {
                self.dense.push(Some((id, entity)));
                self.absorb();
                None
            }
        };
        self.len += usize::from(known.is_none());
        known
    }

    /// Moves those of the others that are next to `dense` now.
    fn absorb(&mut self) {
        while let Some(first) = self.others.first_entry()
            && first.key().0 as usize == self.dense.len()
        {
            self.dense.push(Some(first.remove_entry()));
        }
    }

    /// Keeps only the entities for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&EntityId, &mut Entity) -> bool) {
        for slot in &mut self.dense {
            slot.take_if(|(id, entity)| !keep(id, entity));
        }
        self.others.retain(keep);
        let left = self.dense.iter().flatten().count();
        self.len = left + self.others.len();
        // Positions of removed entities take memory.
        if left < self.dense.len() / 2 {
            self.others.extend(std::mem::take(&mut self.dense).into_iter().flatten());
        }
    }

    /// Returns the number of entities.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the entities with their numbers, in order of number.
    pub fn iter(&self) -> Iter<'_> {
        Iter { dense: self.dense.iter(), others: self.others.iter() }
    }

    /// Returns the entities in order of number.
    pub fn values(&self) -> impl Iterator<Item = &Entity> {
        self.iter().map(|(_, entity)| entity)
    }

    /// Returns the entities with their numbers, in order of number, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&EntityId, &mut Entity)> {
        let dense = self.dense.iter_mut().flatten().map(|(id, entity)| (&*id, entity));
        dense.chain(self.others.iter_mut())
    }

    /// Returns the entities in order of number, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Entity> {
        self.iter_mut().map(|(_, entity)| entity)
    }
}

/// Entities with their numbers, in order of number.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    dense: slice::Iter<'a, Slot>,
    others: btree_map::Iter<'a, EntityId, Entity>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a EntityId, &'a Entity);

    fn next(&mut self) -> Option<Self::Item> {
        match self.dense.find_map(Option::as_ref) {
            Some((id, entity)) => Some((id, entity)),
            None => self.others.next(),
        }
    }
}

impl<'a> IntoIterator for &'a Entities {
    type Item = (&'a EntityId, &'a Entity);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl Extend<(EntityId, Entity)> for Entities {
    fn extend<I: IntoIterator<Item = (EntityId, Entity)>>(&mut self, entities: I) {
        for (id, entity) in entities {
            self.insert(id, entity);
        }
    }
}

impl FromIterator<(EntityId, Entity)> for Entities {
    fn from_iter<I: IntoIterator<Item = (EntityId, Entity)>>(entities: I) -> Entities {
        let mut all = Entities::default();
        all.extend(entities);
        all
    }
}

impl fmt::Debug for Entities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn named(name: u32) -> Entity {
        Entity::Bdi { name: name.to_string().as_str().into() }
    }

    proptest! {
        #[test]
        fn they_are_what_a_map_has(changes in proptest::collection::vec((0u32..4, 0u32..12, any::<u32>()), 0..60)) {
            let (mut entities, mut map) = (Entities::default(), BTreeMap::new());
            let mut next = 0;
            for (change, number, name) in changes {
                match change {
                    0 | 1 => {
                        let id = EntityId(if change == 0 { next } else { number });
                        next += 1;
                        prop_assert_eq!(entities.insert(id, named(name)), map.insert(id, named(name)));
                    }
                    2 => entities.values_mut().chain(map.values_mut()).for_each(|entity| *entity = named(number)),
                    _ => {
                        let keep = |id: &EntityId, _: &mut Entity| (id.0 ^ name) % 4 > number % 4;
                        entities.retain(keep);
                        map.retain(keep);
                    }
                }
                prop_assert!(entities.iter().eq(&map));
                prop_assert!(entities.values().eq(map.values()));
                prop_assert_eq!((entities.len(), entities.is_empty()), (map.len(), map.is_empty()));
                for id in (0..70).map(EntityId) {
                    prop_assert_eq!(entities.get(&id), map.get(&id));
                    prop_assert_eq!(entities.contains_key(&id), map.contains_key(&id));
                }
            }
            prop_assert!(entities.iter().eq(&entities.iter().map(|(id, one)| (*id, one.clone())).collect::<Entities>()));
        }
    }

    #[test]
    fn numbers_in_any_order_take_no_more_memory_than_a_map() {
        let mut entities = Entities::default();
        entities.insert(EntityId(u32::MAX), named(1));
        (1..1000).rev().for_each(|number| drop(entities.insert(EntityId(number), named(number))));
        assert_eq!((entities.dense.len(), entities.len()), (0, 1000));
        entities.insert(EntityId(0), named(0));
        assert_eq!((entities.dense.len(), entities.others.len(), entities.len()), (1000, 1, 1001));
        // Over days, processes come and go.
        entities.retain(|id, _| id.0 % 100 == 0);
        assert_eq!((entities.dense.len(), entities.others.len(), entities.len()), (0, 10, 10));
    }
}
