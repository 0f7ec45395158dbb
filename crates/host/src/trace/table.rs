// SPDX-License-Identifier: MIT OR Apache-2.0
//! BPF tables with typed keys and entries: opened in a loaded part, read, cleared, written.

use super::drain::{drain, each_entry};
use super::layout::{self, Layout};
use super::load::Loaded;
use floodline_record::gap::Cause;
use libbpf_rs::{Map, MapCore, MapFlags};
use std::marker::PhantomData;

/// A table by its name and its sizes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    /// Its name in C.
    pub(super) name: &'static str,
    /// Bytes of a key.
    pub(super) key: usize,
    /// Bytes of an entry.
    pub(super) entry: usize,
}

/// A table by its name and the types of its keys and entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableOf<K, E> {
    name: &'static str,
    types: PhantomData<fn() -> (K, E)>,
}

impl<K: Layout, E: Layout> TableOf<K, E> {
    pub(super) const fn new(name: &'static str) -> TableOf<K, E> {
        TableOf { name, types: PhantomData }
    }

    /// Returns the table without its types.
    pub(super) const fn table(&self) -> Table {
        Table { name: self.name, key: K::SIZE, entry: E::SIZE }
    }

    /// Opens the table in a loaded part.
    pub(super) fn of<'a>(&self, loaded: &'a Loaded) -> Result<Open<'a, K, E>, Cause> {
        let map = loaded.map(self.name);
        let map = map.ok_or_else(|| Cause::Refused { why: format!("table {} not found", self.name).into() })?;
        Ok(Open { map, types: PhantomData })
    }
}

/// An open table.
pub(super) struct Open<'a, K, E> {
    map: Map<'a>,
    types: PhantomData<fn() -> (K, E)>,
}

impl<K: Layout, E: Layout> Open<'_, K, E> {
    /// Hands on every entry of `epoch`, the first field of its key, and removes it.
    pub(super) fn drain(&self, epoch: u32, mut each: impl FnMut(K, E)) -> Result<(), Cause> {
        drain(&self.map, epoch, |key, entry| each(layout::read(key), layout::read(entry)))
    }

    /// Hands on every entry. An entry that is made or removed meanwhile may be handed on or not.
    pub(super) fn each(&self, mut each: impl FnMut(K, E)) -> Result<(), Cause> {
        each_entry(&self.map, |key, entry| each(layout::read(key), layout::read(entry)))
    }

    /// Returns the entry of a key.
    pub(super) fn get(&self, key: &K) -> Option<E> {
        let entry = self.map.lookup(&layout::bytes(key), MapFlags::ANY).ok()??;
        Some(layout::read(&entry))
    }

    /// Removes an entry and returns it. Kernels before 5.14 cannot do both at once: there an event between the lookup
    /// and the removal is not counted.
    pub(super) fn remove(&self, key: &K) -> Option<E> {
        let key = layout::bytes(key);
        let entry = match self.map.lookup_and_delete(&key) {
            Ok(entry) => entry?,
            Err(_) => {
                let entry = self.map.lookup(&key, MapFlags::ANY).ok()??;
                self.map.delete(&key).ok()?;
                entry
            }
        };
        Some(layout::read(&entry))
    }
}

/// Tables with a single entry.
impl<E: Layout> Open<'_, u32, E> {
    /// Returns the entry of each CPU.
    pub(super) fn of_cpus(&self) -> Result<Vec<E>, Cause> {
        let of_cpus = self.map.lookup_percpu(&layout::bytes(&0u32), MapFlags::ANY).map_err(|error| failed(&error))?;
        Ok(of_cpus.iter().flatten().map(|entry| layout::read(entry)).collect())
    }

    /// Sets the entry.
    pub(super) fn set(&self, entry: &E) -> Result<(), Cause> {
        let (key, entry) = (layout::bytes(&0u32), layout::bytes(entry));
        self.map.update(&key, &entry, MapFlags::ANY).map_err(|error| failed(&error))
    }

    /// Fills the entry with zeroes.
    pub(super) fn clear(&self) -> Result<(), Cause> {
        self.map.update(&layout::bytes(&0u32), &vec![0; E::SIZE], MapFlags::ANY).map_err(|error| failed(&error))
    }

    /// Fills the entries of all CPUs with zeroes.
    pub(super) fn clear_of_cpus(&self, cpus: usize) -> Result<(), Cause> {
        let entries = vec![vec![0; E::SIZE]; cpus];
        self.map.update_percpu(&layout::bytes(&0u32), &entries, MapFlags::ANY).map_err(|error| failed(&error))
    }
}

fn failed(error: &libbpf_rs::Error) -> Cause {
    Cause::Refused { why: format!("a table cannot be read: {error}").into() }
}
