// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of containers from files that their runtimes leave on disk. No daemon is queried: a hung daemon cannot hang
//! Floodline. Absent files are normal. The number and size of the files that are read are bounded. Files of users come
//! last, and their names are kept apart ([`users`]).

mod users;

use super::{Prober, join};
use crate::root::LARGE;
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::name::Name;

/// Maximum number of containers that are looked up.
const CONTAINERS_MAX: usize = 10_000;
/// Maximum size of one container's configuration, bytes.
const CONFIG_MAX: usize = 1 << 20;

const DOCKER: &[u8] = b"/var/lib/docker/containers";
/// Podman and CRI-O keep their list in the storage library's files.
const STORAGE: [&[u8]; 2] = [
    b"/var/lib/containers/storage/overlay-containers/containers.json",
    b"/run/containers/storage/overlay-containers/volatile-containers.json",
];
/// The kubelet's links, named POD_NAMESPACE_CONTAINER-ID.log.
const KUBERNETES: &[u8] = b"/var/log/containers";
/// The kubelet's folders of logs, named NAMESPACE_POD_UID.
const PODS: &[u8] = b"/var/log/pods";
/// Containers started by containerd, in folders NAMESPACE/ID.
const CONTAINERD: &[u8] = b"/run/containerd/io.containerd.runtime.v2.task";

/// Annotations that name a container, and what comes before the name: in Kubernetes its pod.
const ANNOTATIONS: [(&[&str], &str); 2] = [
    (&["io.kubernetes.cri.sandbox-namespace", "io.kubernetes.cri.sandbox-name"], "io.kubernetes.cri.container-name"),
    (&[], "nerdctl/name"),
];

pub(super) fn probe(prober: &mut Prober<'_>) {
    docker(prober);
    for path in STORAGE {
        storage(prober, path);
    }
    containerd(prober);
    kubernetes(prober);
    users::probe(prober);
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
    let Some(named) = names_of_storage(&content) else { return malformed(prober, "a list of containers", path) };
    for (id, name) in named {
        insert(prober, id.as_bytes(), &name);
    }
}

/// Parses a list of the storage library into ids and first names.
fn names_of_storage(content: &[u8]) -> Option<Vec<(String, String)>> {
    let list: serde_json::Value = serde_json::from_slice(content).ok()?;
    let named = list.as_array()?.iter().take(CONTAINERS_MAX).filter_map(|container| {
        let id = container.get("id")?.as_str()?;
        let name = container.get("names")?.get(0)?.as_str()?;
        Some((id.to_owned(), name.to_owned()))
    });
    Some(named.collect())
}

fn kubernetes(prober: &mut Prober<'_>) {
    for entry in list(prober, KUBERNETES).unwrap_or_default() {
        if let Some((id, name)) = name_of_log(&entry) {
            insert(prober, id.as_bytes(), &name);
        }
    }
    for entry in list(prober, PODS).unwrap_or_default() {
        if let Some((uid, name)) = name_of_pod(&entry) {
            insert_any(prober, uid, &name);
        }
    }
}

/// Parses the name of a pod: "shop_web-6d4cf_UID" is `shop/web-6d4cf`. The uid of a static pod is the hash of its
/// manifest.
fn name_of_pod(folder: &[u8]) -> Option<(String, String)> {
    let mut parts = std::str::from_utf8(folder).ok()?.splitn(3, '_');
    let (namespace, pod, uid) = (parts.next()?, parts.next()?, parts.next()?);
    let is_uid = matches!(uid.len(), 32 | 36) && uid.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_uid.then(|| (uid.to_owned(), format!("{namespace}/{pod}")))
}

/// Reads the bundles of containerd, which exist while a container runs, independent of the names of its logs.
fn containerd(prober: &mut Prober<'_>) {
    for namespace in list(prober, CONTAINERD).unwrap_or_default() {
        let folder = join(CONTAINERD, &namespace);
        let ids = list(prober, &folder).unwrap_or_default();
        for id in ids.into_iter().filter(|id| is_id(id)) {
            let path = join(&join(&folder, &id), b"config.json");
            match prober.root.read(&path, CONFIG_MAX) {
                // Docker's bundles have no name: Docker keeps the names itself.
                Ok(content) => match serde_json::from_slice(&content) {
                    Ok(config) => {
                        if let Some(name) = name_of_bundle(&config) {
                            insert(prober, &id, &name);
                        }
                    }
                    Err(_) => malformed(prober, "a container's configuration in JSON", &path),
                },
                Err(Cause::NotFound) => {}
                Err(cause) => prober.gap(Source::ContainerNames, cause, &path),
            }
        }
    }
}

fn name_of_bundle(config: &serde_json::Value) -> Option<String> {
    let annotations = config.get("annotations")?;
    let text = |key: &&str| annotations.get(key)?.as_str().filter(|text| !text.is_empty());
    ANNOTATIONS.iter().find_map(|(before, last)| {
        let parts: Option<Vec<&str>> = before.iter().chain([last]).map(text).collect();
        parts.map(|parts| parts.join("/"))
    })
}

/// Parses the name of a log: "web-6d4cf_shop_nginx-ID.log" is `shop/web-6d4cf/nginx`.
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
                prober.gap(Source::ContainerNames, Cause::Malformed { what: what.into() }, folder);
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
    if is_id(id) {
        insert_any(prober, String::from_utf8_lossy(id).into_owned(), name);
    }
}

/// Keeps the first name of a container: that of the runtime comes before that of the kubelet.
fn insert_any(prober: &mut Prober<'_>, id: String, name: &str) {
    if prober.facts.container_names.len() < CONTAINERS_MAX {
        prober.facts.container_names.entry(id.into()).or_insert_with(|| Name::new(name));
    }
}

fn is_id(text: &[u8]) -> bool {
    text.len() == 64 && text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Adds one gap for all malformed files.
fn malformed(prober: &mut Prober<'_>, what: &str, path: &[u8]) {
    let is_same = |gap: &&mut Gap| {
        gap.source == Source::ContainerNames && matches!(&gap.cause, Cause::Malformed { what: other } if other == what)
    };
    match prober.gaps.iter_mut().find(is_same) {
        Some(gap) => gap.times = gap.times.saturating_add(1),
        None => prober.gap(Source::ContainerNames, Cause::Malformed { what: what.into() }, path),
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
        check("/var/log/pods/shop_web-6d4cf_1f6c0f0f-0c5b-4e35-a0a7-5f8a0f5e1a2b/nginx/0.log", "", "shop/web-6d4cf");
        check("/var/log/pods/kube-system_etcd-node1_0123456789abcdef0123456789abcdef/x", "", "kube-system/etcd-node1");
        let bundle = "/run/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json";
        check(
            bundle,
            r#"{"annotations":{"io.kubernetes.cri.sandbox-namespace":"shop",
               "io.kubernetes.cri.sandbox-name":"web-6d4cf","io.kubernetes.cri.container-name":"nginx"}}"#,
            "shop/web-6d4cf/nginx",
        );
        check(&bundle.replace("k8s.io", "default"), r#"{"annotations":{"nerdctl/name":"cache"}}"#, "cache");
    }

    #[test]
    fn a_bundle_without_a_name_is_no_gap() {
        let bundle = "/run/containerd/io.containerd.runtime.v2.task/moby/ID/config.json";
        assert_eq!(names_of(&[(bundle, r#"{"annotations":{}}"#)]), (Vec::new(), 0));
        assert_eq!(names_of(&[(bundle, "{")]), (Vec::new(), 1));
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
            let _ = (name_of_docker(bytes), name_of_log(bytes), name_of_pod(bytes), names_of_storage(bytes));
        });
    }
}
