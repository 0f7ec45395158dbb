// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads whole tables of the kernel, some hundred entries per call (batches of BPF maps, since 5.6), and clears the
//! entries of one epoch; the programs fill the other epoch meanwhile. The loop is our own, because a batch that is not
//! full need not be the last one: the kernel hands out whole buckets and returns early, with success, if the next
//! bucket does not fit. Only ENOENT ends a table.
#![allow(unsafe_code, reason = "libbpf has no safe form of a batch that says how it ended")]

use super::layout;
use floodline_record::gap::Cause;
use libbpf_rs::MapCore;
use libbpf_sys::{bpf_map_batch_opts, bpf_map_delete_batch, bpf_map_lookup_batch};
use std::ffi::c_void;
use std::io;
use std::os::fd::AsRawFd;

/// Entries per call at first.
const BATCH: usize = 512;
/// Entries per call at most: no bucket of a table of this size has more.
const BATCH_MAX: usize = 1 << 16;

const ENOENT: i32 = 2;
const EINTR: i32 = 4;
const EAGAIN: i32 = 11;
const ENOSPC: i32 = 28;

/// Hands on every entry of `epoch`, the first field of its key, and removes it.
pub(super) fn drain(map: &impl MapCore, epoch: u32, mut each: impl FnMut(&[u8], &[u8])) -> Result<(), Cause> {
    let mut keys = Vec::new();
    let mut done = 0;
    let first = layout::bytes(&epoch);
    each_entry(map, |key, entry| {
        if key.starts_with(&first) {
            each(key, entry);
            keys.extend_from_slice(key);
            done += 1;
        }
    })?;
    if done > 0 { remove(map, &keys, done).map_err(|error| unreadable(&error)) } else { Ok(()) }
}

/// Hands on every entry of a hash table. An entry that is made or removed meanwhile may be handed on or not.
pub(super) fn each_entry(map: &impl MapCore, each: impl FnMut(&[u8], &[u8])) -> Result<(), Cause> {
    in_batches(map, each).map_err(|error| unreadable(&error))
}

fn unreadable(error: &io::Error) -> Cause {
    Cause::Refused { why: format!("a table cannot be read: {error}").into() }
}

fn in_batches(map: &impl MapCore, mut each: impl FnMut(&[u8], &[u8])) -> io::Result<()> {
    let (key_size, entry_size) = (map.key_size() as usize, map.value_size() as usize);
    let mut batch = BATCH;
    let (mut keys, mut entries) = (vec![0; batch * key_size], vec![0; batch * entry_size]);
    // For a hash table: the number of a bucket.
    let mut place: Option<u64> = None;
    loop {
        let mut next = 0u64;
        let mut count = u32::try_from(batch).unwrap_or(u32::MAX);
        let from = place.as_mut().map_or(std::ptr::null_mut(), |place| std::ptr::from_mut(place).cast::<c_void>());
        // SAFETY: `keys` and `entries` have room for `count` keys and values of this map, `from` is null or points to
        // a place that an earlier call wrote, and `next` and `count` are alive; the call keeps none of them.
        let result = unsafe {
            bpf_map_lookup_batch(
                map.as_fd().as_raw_fd(),
                from,
                (&raw mut next).cast(),
                keys.as_mut_ptr().cast(),
                entries.as_mut_ptr().cast(),
                &raw mut count,
                &OPTIONS,
            )
        };
        let ended = match result {
            0 => false,
            error => match -error {
                ENOENT => true,
                EINTR | EAGAIN => continue,
                // A single bucket has more entries than the batch.
                ENOSPC if batch < BATCH_MAX => {
                    batch *= 2;
                    keys.resize(batch * key_size, 0);
                    entries.resize(batch * entry_size, 0);
                    continue;
                }
                errno => return Err(io::Error::from_raw_os_error(errno)),
            },
        };
        let handed = keys.chunks_exact(key_size).zip(entries.chunks_exact(entry_size));
        handed.take(count as usize).for_each(|(key, entry)| each(key, entry));
        if ended {
            return Ok(());
        }
        place = Some(next);
    }
}

/// Removes these keys. A key that is already gone is not an error.
fn remove(map: &impl MapCore, keys: &[u8], count: u32) -> io::Result<()> {
    let mut removed = count;
    // SAFETY: `keys` holds `count` keys of this map, and the call keeps neither.
    let result =
        unsafe { bpf_map_delete_batch(map.as_fd().as_raw_fd(), keys.as_ptr().cast(), &raw mut removed, &OPTIONS) };
    if result == 0 {
        return Ok(());
    }
    for key in keys.chunks_exact(map.key_size() as usize) {
        match map.delete(key) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::NotFound => {
                return Err(io::Error::other(error.to_string()));
            }
            _ => {}
        }
    }
    Ok(())
}

const OPTIONS: bpf_map_batch_opts =
    bpf_map_batch_opts { sz: size_of::<bpf_map_batch_opts>() as libbpf_sys::size_t, elem_flags: 0, flags: 0 };

#[cfg(test)]
mod tests {
    use super::super::part::PARTS;
    use super::super::table::Table;
    use super::*;
    use floodline_skip::{Need, skip};
    use libbpf_rs::{MapFlags, MapHandle, MapType};
    use std::collections::BTreeMap;

    /// A prime number, and many more than one batch.
    const KEYS: u32 = 10_007;

    /// A table of the kernel like one of ours, with room for all keys; `None` where this process may not make one.
    fn table_like(table: &Table) -> Option<MapHandle> {
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
            ..Default::default()
        };
        let (key, entry) = (table.key as u32, table.entry as u32);
        // As crowded as a table of the programs may become.
        let made = MapHandle::create(MapType::Hash, Some("test"), key, entry, KEYS + 13, &options);
        made.inspect_err(|error| skip(Need::Trace, format!("no table can be made here: {error}"))).ok()
    }

    fn key(table: &Table, epoch: u32, number: u32) -> Vec<u8> {
        let mut key = vec![0; table.key];
        key[..4].copy_from_slice(&epoch.to_ne_bytes());
        key[table.key - 4..].copy_from_slice(&number.to_ne_bytes());
        key
    }

    /// How often each key is seen.
    fn seen(read: impl FnOnce(&mut dyn FnMut(&[u8], &[u8]))) -> BTreeMap<Vec<u8>, (u32, Vec<u8>)> {
        let mut seen = BTreeMap::<Vec<u8>, (u32, Vec<u8>)>::new();
        read(&mut |key, entry| {
            let one = seen.entry(key.to_vec()).or_default();
            one.0 += 1;
            one.1 = entry.to_vec();
        });
        seen
    }

    #[test]
    fn every_entry_of_every_table_is_read_once_and_those_of_the_epoch_are_removed() {
        for table in PARTS.iter().flat_map(|part| part.tables).filter(|table| table.key >= 16) {
            let Some(map) = table_like(table) else { return };
            let all: Vec<Vec<u8>> = (0..KEYS).map(|number| key(table, 1, number)).collect();
            let of_next: Vec<Vec<u8>> = (0..7).map(|number| key(table, 0, number)).collect();
            for (number, key) in all.iter().chain(&of_next).enumerate() {
                map.update(key, &vec![number as u8; table.entry], MapFlags::ANY).unwrap();
            }
            let whole = seen(|each| each_entry(&map, each).unwrap());
            assert_eq!(whole.len(), all.len() + of_next.len(), "{}", table.name);
            let drained = seen(|each| drain(&map, 1, each).unwrap());
            assert_eq!(drained.len(), all.len(), "{}", table.name);
            for (number, key) in all.iter().enumerate() {
                assert_eq!(drained[key], (1, vec![number as u8; table.entry]), "{}", table.name);
            }
            let left = seen(|each| each_entry(&map, each).unwrap());
            assert_eq!(left.keys().cloned().collect::<Vec<_>>(), of_next, "{}", table.name);
        }
    }

    #[test]
    fn an_empty_table_has_no_entries() {
        let table = Table { name: "test", key: 16, entry: 8 };
        let Some(map) = table_like(&table) else { return };
        assert!(seen(|each| drain(&map, 0, each).unwrap()).is_empty());
    }
}
