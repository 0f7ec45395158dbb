// SPDX-License-Identifier: MIT OR Apache-2.0
//! Container names from files of users' own container runtimes. Root cannot trust these files: they are read with the
//! checks of [`FoundDir`], and their names are kept by user, so that they count only below that user's own slice.

use super::{CONFIG_MAX, is_id, join, malformed, names_of_storage};
use crate::probe::Prober;
use crate::root::{FoundDir, LARGE, MountPoints};
use floodline_record::facts::Mount;
use floodline_record::gap::{Cause, Source};
use floodline_record::name::Name;
use std::collections::BTreeMap;

/// Podman's lists of permanent containers, in the homes of users.
const HOMES: (&[u8], &[u8]) = (b"/home", b".local/share/containers/storage/overlay-containers/containers.json");
/// Podman's lists of containers that are gone at logout, in folders named by the user's number.
const RUNTIME: (&[u8], &[u8]) = (b"/run/user", b"containers/overlay-containers/volatile-containers.json");

/// Maximum number of users in one folder.
const USERS_MAX: usize = 10_000;
/// Maximum number of containers of one user.
const CONTAINERS_PER_USER: usize = 1_000;
/// Maximum total size of all users' lists, bytes.
const BYTES_MAX: usize = 32 << 20;

pub(super) fn probe(prober: &mut Prober<'_>) {
    let mounts: Vec<Mount> = std::mem::take(&mut prober.facts.mounts);
    let points = MountPoints::new(prober.root, &mounts);
    let homes = if prober.root.is_live() { BTreeMap::new() } else { captured_homes(prober) };
    let mut bytes = 0;
    for (folder, path) in [HOMES, RUNTIME] {
        let found = prober.root.find_dir(folder, &points).and_then(|dir| Ok((dir.list()?, dir)));
        let (users, dir) = match found {
            Ok((users, dir)) => (users, dir),
            Err(Cause::NotFound) => continue,
            Err(cause) => {
                prober.gap(Source::ContainerNames, cause, folder);
                continue;
            }
        };
        for user in users.iter().take(USERS_MAX) {
            let home = join(dir.path(), &user.name);
            let uid = match folder == RUNTIME.0 {
                true => std::str::from_utf8(&user.name).ok().and_then(|name| name.parse().ok()),
                false => homes.get(&home).copied(),
            };
            // A file beside the folders of users.
            if folder == RUNTIME.0 && uid.is_none() {
                continue;
            }
            match read(prober, &home, path, uid, &points) {
                Ok((uid, content)) => {
                    bytes += content.len();
                    insert(prober, uid, &content, &join(&home, path));
                }
                Err(Cause::NotFound | Cause::Vanished) => {}
                Err(cause) => prober.gap(Source::ContainerNames, cause, &home),
            }
            if bytes > BYTES_MAX {
                let what =
                    format!("at most {BYTES_MAX} bytes of users' lists; other users' containers go by their ids");
                prober.gap(Source::ContainerNames, Cause::Malformed { what: what.into() }, folder);
                break;
            }
        }
    }
    prober.facts.mounts = mounts;
}

/// Reads a user's list and its owner: the owner of the folder, which needs to be the expected user.
fn read(
    prober: &Prober<'_>,
    home: &[u8],
    path: &[u8],
    uid: Option<u32>,
    points: &MountPoints<'_>,
) -> Result<(u32, Vec<u8>), Cause> {
    let dir: FoundDir = match prober.root.find_dir(home, points) {
        // A file in /home.
        Err(Cause::Malformed { .. }) => return Err(Cause::NotFound),
        found => found?,
    };
    let owner = dir.owner()?;
    match uid {
        Some(uid) if prober.root.is_live() && uid != owner => {
            Err(Cause::Refused { why: format!("user {owner} owns it, not user {uid}").into() })
        }
        uid => Ok((uid.unwrap_or(owner), dir.read_owned(path, owner, CONFIG_MAX)?)),
    }
}

fn insert(prober: &mut Prober<'_>, uid: u32, content: &[u8], path: &[u8]) {
    let Some(named) = names_of_storage(content) else { return malformed(prober, "a list of containers", path) };
    let names = prober.facts.user_container_names.entry(uid).or_default();
    for (id, name) in named.into_iter().filter(|(id, _)| is_id(id.as_bytes())) {
        if names.len() < CONTAINERS_PER_USER {
            names.entry(id.into()).or_insert_with(|| Name::new(&name));
        }
    }
}

/// Returns the owners of the homes in a captured tree: a copied file belongs to the user that copied it.
fn captured_homes(prober: &Prober<'_>) -> BTreeMap<Vec<u8>, u32> {
    let passwd = prober.root.read("/etc/passwd", LARGE).unwrap_or_default();
    let home = |line: &[u8]| {
        let mut fields = line.split(|&byte| byte == b':');
        let uid = std::str::from_utf8(fields.nth(2)?).ok()?.parse().ok()?;
        Some((fields.nth(2)?.to_vec(), uid))
    };
    passwd.split(|&byte| byte == b'\n').filter_map(home).collect()
}

#[cfg(test)]
mod tests;
