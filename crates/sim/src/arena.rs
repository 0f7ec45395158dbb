// SPDX-License-Identifier: MIT OR Apache-2.0
//! State in arenas: items of one kind in order of creation, identified by a number of their own type. No item is
//! ever removed, so an id stays valid for the whole run and the order never depends on memory.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// An id: a number below the length of its arena.
pub(crate) trait Id: Copy {
    fn new(number: usize) -> Self;
    fn number(self) -> usize;
}

macro_rules! ids {
    ($($(#[$doc:meta])+ $name:ident;)+) => {$(
        $(#[$doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) struct $name(pub(crate) u32);

        impl Id for $name {
            fn new(number: usize) -> Self {
                // More than 2^32 items of a kind are refused before a run starts.
                $name(u32::try_from(number).unwrap_or(u32::MAX))
            }
            fn number(self) -> usize {
                self.0 as usize
            }
        }
    )+};
}

ids! {
    /// A block device.
    BlockId;
    /// A superblock.
    SbId;
    /// An inode.
    InodeId;
    /// A cgroup; the root of the hierarchy is number 0.
    CgId;
    /// A writeback structure.
    WbId;
    /// A backing device info.
    BdiId;
    /// A process: a copy of a task, or a kernel thread that is shown.
    PidId;
}

impl CgId {
    /// The root of the hierarchy.
    pub(crate) const ROOT: CgId = CgId(0);
}

/// Items by id.
#[derive(Debug)]
pub(crate) struct Arena<I, T> {
    items: Vec<T>,
    ids: PhantomData<I>,
}

impl<I, T> Default for Arena<I, T> {
    fn default() -> Self {
        Arena { items: Vec::new(), ids: PhantomData }
    }
}

impl<I: Id, T> Arena<I, T> {
    /// Adds an item and returns its id.
    pub(crate) fn push(&mut self, item: T) -> I {
        self.items.push(item);
        I::new(self.items.len() - 1)
    }

    /// Every id.
    pub(crate) fn ids(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..self.items.len()).map(I::new)
    }

    /// Every item, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.items.iter().enumerate().map(|(number, item)| (I::new(number), item))
    }

    /// Number of items.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }
}

impl<I: Id, T> Index<I> for Arena<I, T> {
    type Output = T;
    #[inline]
    fn index(&self, id: I) -> &T {
        &self.items[id.number()]
    }
}

impl<I: Id, T> IndexMut<I> for Arena<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.number()]
    }
}
