// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of containers from files that their runtimes leave on disk. No daemon is asked, so that a hung
//! one cannot hang us. Absent files are normal; the number and size of what is read are bounded.

use super::{Prober, join};
use crate::root::LARGE;
use floodline_core::gap::{Cause, Gap, Source};
use floodline_core::name::Name;

/// Containers looked up at the most.
const CONTAINERS_MAX: usize = 10_000;
/// Bytes of one container's configuration.
const CONFIG_MAX: usize = 1 << 20;

const DOCKER: &[u8] = b"/var/lib/docker/containers";
/// Podman and CRI-O keep their list in the storage library's files.
const STORAGE: [&[u8]; 2] = [
    b"/var/lib/containers/storage/overlay-containers/containers.json",
    b"/run/containers/storage/overlay-containers/volatile-containers.json",
];
/// The kubelet's links, named POD_NAMESPACE_CONTAINER-ID.log.
const KUBERNETES: &[u8] = b"/var/log/containers";

pub(super) fn probe(prober: &mut Prober<'_>) {
    docker(prober);
    for path in STORAGE {
        storage(prober, path);
    }
    kubernetes(prober);
}

fn docker(prober: &mut Prober<'_>) {
    let Some(entries) = list(prober, DOCKER) else { return };
    for entry in entries.into_iter().filter(|name| is_id(name)) {
        let path = join(&join(DOCKER, &entry), b"config.v2.json");
        match prober.root.read(&path, CONFIG_MAX) {
            Ok(content) => match name_of_docker(&content) {
                Some(name) => insert(prober, &entry, &name),
                None => malformed(prober, "a container's configuration with a Name", &path),
            },
            Err(Cause::NotFound) => {}
            Err(cause) => prober.gap(Source::ContainerNames, cause, &path),
        }
    }
}

fn name_of_docker(content: &[u8]) -> Option<String> {
    let config: serde_json::Value = serde_json::from_slice(content).ok()?;
    let name = config.get("Name")?.as_str()?;
    Some(name.strip_prefix('/').unwrap_or(name).to_owned())
}

fn storage(prober: &mut Prober<'_>, path: &[u8]) {
    let content = match prober.root.read(path, LARGE) {
        Ok(content) => content,
        Err(Cause::NotFound) => return,
        Err(cause) => return prober.gap(Source::ContainerNames, cause, path),
    };
    let Ok(serde_json::Value::Array(containers)) = serde_json::from_slice(&content) else {
        return malformed(prober, "a list of containers", path);
    };
    for container in containers.iter().take(CONTAINERS_MAX) {
        let id = container.get("id").and_then(serde_json::Value::as_str);
        let name = container.get("names").and_then(|names| names.get(0)).and_then(serde_json::Value::as_str);
        if let (Some(id), Some(name)) = (id, name) {
            insert(prober, id.as_bytes(), name);
        }
    }
}

fn kubernetes(prober: &mut Prober<'_>) {
    for entry in list(prober, KUBERNETES).unwrap_or_default() {
        if let Some((id, name)) = name_of_log(&entry) {
            insert(prober, id.as_bytes(), &name);
        }
    }
}

/// "web-6d4cf_shop_nginx-ID.log" is `shop/web-6d4cf/nginx`.
fn name_of_log(file: &[u8]) -> Option<(String, String)> {
    let text = std::str::from_utf8(file).ok()?.strip_suffix(".log")?;
    let (front, id) = text.rsplit_once('-')?;
    let mut parts = front.splitn(3, '_');
    let (pod, namespace, container) = (parts.next()?, parts.next()?, parts.next()?);
    is_id(id.as_bytes()).then(|| (id.to_owned(), format!("{namespace}/{pod}/{container}")))
}

fn list(prober: &mut Prober<'_>, folder: &[u8]) -> Option<Vec<Box<[u8]>>> {
    match prober.root.list_dir(folder) {
        Ok(entries) => {
            if entries.len() > CONTAINERS_MAX {
                let what = format!("at most {CONTAINERS_MAX} containers; the rest go by their ids");
                prober.gap(Source::ContainerNames, Cause::Malformed { what }, folder);
            }
            Some(entries.into_iter().take(CONTAINERS_MAX).map(|entry| entry.name).collect())
        }
        Err(Cause::NotFound) => None,
        Err(cause) => {
            prober.gap(Source::ContainerNames, cause, folder);
            None
        }
    }
}

fn insert(prober: &mut Prober<'_>, id: &[u8], name: &str) {
    if is_id(id) && prober.facts.container_names.len() < CONTAINERS_MAX {
        prober.facts.container_names.insert(String::from_utf8_lossy(id).into_owned(), Name::new(name));
    }
}

fn is_id(text: &[u8]) -> bool {
    text.len() == 64 && text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// One gap stands for all files that were not understood.
fn malformed(prober: &mut Prober<'_>, what: &str, path: &[u8]) {
    let is_same = |gap: &&mut Gap| {
        gap.source == Source::ContainerNames && matches!(&gap.cause, Cause::Malformed { what: other } if other == what)
    };
    match prober.gaps.iter_mut().find(is_same) {
        Some(gap) => gap.times = gap.times.saturating_add(1),
        None => prober.gap(Source::ContainerNames, Cause::Malformed { what: what.to_owned() }, path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::HostRoot;
    use std::fs;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn names_of(files: &[(&str, &str)]) -> (Vec<String>, usize) {
        let tree = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = tree.path().join(path.trim_start_matches('/').replace("ID", ID));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content.replace("ID", ID)).unwrap();
        }
        let root = HostRoot::at(tree.path()).unwrap();
        let mut prober = Prober { root: &root, facts: Default::default(), gaps: Vec::new() };
        probe(&mut prober);
        (prober.facts.container_names.values().map(Name::to_string).collect(), prober.gaps.len())
    }

    #[test]
    fn every_runtime_leaves_its_names_somewhere() {
        let check = |path: &str, content: &str, expect: &str| {
            assert_eq!(names_of(&[(path, content)]), (vec![expect.to_owned()], 0), "{path}");
        };
        check("/var/lib/docker/containers/ID/config.v2.json", r#"{"ID":"ID","Name":"/web"}"#, "web");
        check(
            "/var/lib/containers/storage/overlay-containers/containers.json",
            r#"[{"id":"ID","names":["db"],"layer":"x"}]"#,
            "db",
        );
        check("/var/log/containers/web-6d4cf_shop_nginx-ID.log", "", "shop/web-6d4cf/nginx");
    }

    #[test]
    fn files_that_are_not_understood_are_one_gap() {
        let files = [
            ("/var/lib/docker/containers/ID/config.v2.json", "{\"Name\":7}"),
            ("/var/lib/containers/storage/overlay-containers/containers.json", "{}"),
            ("/var/log/containers/nonsense.log", ""),
        ];
        assert_eq!(names_of(&files), (Vec::new(), 2));
    }

    #[test]
    fn any_bytes_are_survived() {
        bolero::check!().for_each(|bytes: &[u8]| {
            let _ = (name_of_docker(bytes), name_of_log(bytes));
        });
    }
}
