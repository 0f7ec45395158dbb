// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads and clears those entries of a table that belong to one epoch; the programs fill the other one
//! meanwhile. Some hundred entries per call where the kernel has batches (5.6), else one by one.

use floodline_record::gap::Cause;
use libbpf_rs::{Map, MapCore, MapFlags};

/// Entries per call.
const BATCH: u32 = 512;

/// Hands on every entry of `epoch`, the first field of its key, and removes it.
pub(super) fn drain(map: &Map<'_>, epoch: u32, each: impl FnMut(&[u8], &[u8])) -> Result<(), Cause> {
    in_batches(map, epoch, each).map_err(|error| Cause::Refused { why: format!("a table cannot be read: {error}") })
}

fn in_batches(map: &Map<'_>, epoch: u32, mut each: impl FnMut(&[u8], &[u8])) -> Result<(), libbpf_rs::Error> {
    let is_of = |key: &[u8]| key.starts_with(&epoch.to_ne_bytes());
    let (mut seen, mut done, mut keys) = (0u64, 0u32, Vec::new());
    for (key, entry) in map.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY)? {
        seen += 1;
        if is_of(&key) {
            each(&key, &entry);
            keys.extend_from_slice(&key);
            done += 1;
        }
    }
    if done > 0 && map.delete_batch(&keys, done, MapFlags::ANY, MapFlags::ANY).is_ok() {
        return Ok(());
    }
    if seen > 0 {
        // All were handed on; what is left to do is to remove them.
        return keys.chunks_exact(map.key_size() as usize).try_for_each(|key| map.delete(key));
    }
    one_by_one(map, is_of, each)
}

/// The keys first: removing the one that was reached would begin again at the first.
fn one_by_one(
    map: &Map<'_>,
    is_of: impl Fn(&[u8]) -> bool,
    mut each: impl FnMut(&[u8], &[u8]),
) -> Result<(), libbpf_rs::Error> {
    let keys: Vec<Vec<u8>> = map.keys().filter(|key| is_of(key)).collect();
    for key in keys {
        if let Some(entry) = map.lookup(&key, MapFlags::ANY)? {
            each(&key, &entry);
            map.delete(&key)?;
        }
    }
    Ok(())
}
