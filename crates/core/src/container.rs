// SPDX-License-Identifier: MIT OR Apache-2.0
//! What runs in a cgroup, told from its path: systemd units, containers of Docker, containerd, CRI-O and
//! Podman, LXC (and LXD and Incus, which use its paths), virtual machines of libvirt, Kubernetes pods.
//! A table of path shapes, one row each; nobody is asked. Names that are not in a path come from local
//! files (`HostFacts::container_names`).

use crate::name::Name;
use std::collections::BTreeMap;

/// What kind of thing runs in a cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The root of the hierarchy.
    Root,
    /// A systemd service.
    Service,
    /// A systemd scope: a session, or processes that somebody else started.
    Scope,
    /// A systemd slice: other units live in it.
    Slice,
    /// A container of Docker.
    Docker,
    /// A container of containerd.
    Containerd,
    /// A container of CRI-O.
    CriO,
    /// A container of Podman.
    Podman,
    /// The process that watches over a container of Podman or CRI-O.
    Conmon,
    /// A pod of Podman.
    PodmanPod,
    /// A container of LXC, LXD or Incus.
    Lxc,
    /// The process that watches over a container of LXC, LXD or Incus.
    LxcMonitor,
    /// A virtual machine of libvirt.
    Libvirt,
    /// A container of systemd-nspawn, or another machine that systemd knows of.
    Machine,
    /// A pod of Kubernetes.
    KubernetesPod,
    /// A container in a pod of Kubernetes whose runtime the path does not tell.
    KubernetesContainer,
    /// A build step of BuildKit.
    BuildKit,
    /// Nothing known.
    Other,
}

impl Kind {
    /// In a word or two.
    pub fn label(self) -> &'static str {
        match self {
            Kind::Root => "root",
            Kind::Service => "service",
            Kind::Scope => "scope",
            Kind::Slice => "slice",
            Kind::Docker => "docker",
            Kind::Containerd => "containerd",
            Kind::CriO => "cri-o",
            Kind::Podman => "podman",
            Kind::Conmon => "conmon",
            Kind::PodmanPod => "podman pod",
            Kind::Lxc => "lxc",
            Kind::LxcMonitor => "lxc monitor",
            Kind::Libvirt => "libvirt",
            Kind::Machine => "machine",
            Kind::KubernetesPod => "pod",
            Kind::KubernetesContainer => "container",
            Kind::BuildKit => "buildkit",
            Kind::Other => "cgroup",
        }
    }

    /// Whether it has processes of its own kind in it, as opposed to a part of the tree.
    pub fn is_container(self) -> bool {
        !matches!(self, Kind::Root | Kind::Service | Kind::Scope | Kind::Slice | Kind::Other)
    }
}

/// What a cgroup is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// What kind of thing.
    pub kind: Kind,
    /// Name of the unit, container or machine, as far as the path has it.
    pub name: Option<Name>,
    /// Full id of the container or pod, in the runtime's own spelling.
    pub id: Option<String>,
    /// The container or pod it lives in, where it is a part of one.
    pub inside: Option<Box<Identity>>,
}

/// Characters of an id that are shown.
const SHORT_ID: usize = 12;

impl Identity {
    /// The id as people know it: twelve characters, or the first group of a uid.
    pub fn short_id(&self) -> Option<&str> {
        let id = self.id.as_deref()?;
        let group = id.split('-').next().unwrap_or(id);
        Some(group.get(..SHORT_ID).unwrap_or(group))
    }

    /// What a person would call it, e.g. `redis.service`, `docker web`, `pod 0f1e2d3c4b5a`; `names` are
    /// those found in local files, by full id.
    pub fn label(&self, names: &BTreeMap<String, Name>) -> String {
        let known = self.id.as_ref().and_then(|id| names.get(id)).or(self.name.as_ref());
        let own = match (self.kind, known, self.short_id()) {
            (Kind::Root, ..) => "/".to_owned(),
            (Kind::Service | Kind::Scope | Kind::Slice | Kind::Other, Some(name), _) => name.to_string(),
            (kind, Some(name), _) => format!("{} {name}", kind.label()),
            (kind, None, Some(id)) => format!("{} {id}", kind.label()),
            (kind, None, None) => kind.label().to_owned(),
        };
        match self.inside.as_deref() {
            // A container's pod is told by the pod's own row; what else lives in a container is not.
            Some(outer) if !self.kind.is_container() => format!("{own} in {}", outer.label(names)),
            _ => own,
        }
    }
}

/// What stands between a shape's prefix and suffix.
#[derive(Clone, Copy)]
enum Body {
    /// A container id: 64 hexadecimal digits.
    Id,
    /// A pod's uid: 32 hexadecimal digits, with or without `-` or `_` between groups.
    Uid,
    /// A name.
    Text,
    /// The number libvirt or systemd counts by, then a name.
    Numbered,
}

/// One shape of a path's component.
struct Shape {
    kind: Kind,
    /// Component above it; empty for any.
    parent: &'static str,
    prefix: &'static str,
    body: Body,
    suffix: &'static str,
}

const fn shape(kind: Kind, parent: &'static str, prefix: &'static str, body: Body, suffix: &'static str) -> Shape {
    Shape { kind, parent, prefix, body, suffix }
}

/// The table. The first row that fits counts.
const SHAPES: &[Shape] = &[
    shape(Kind::Docker, "", "docker-", Body::Id, ".scope"),
    shape(Kind::Docker, "docker", "", Body::Id, ""),
    shape(Kind::BuildKit, "buildkit", "", Body::Text, ""),
    shape(Kind::Containerd, "", "cri-containerd-", Body::Id, ".scope"),
    shape(Kind::Containerd, "", "nerdctl-", Body::Id, ".scope"),
    shape(Kind::CriO, "", "crio-", Body::Id, ".scope"),
    shape(Kind::CriO, "", "crio-", Body::Id, ""),
    shape(Kind::Conmon, "", "crio-conmon-", Body::Id, ".scope"),
    shape(Kind::Conmon, "", "crio-conmon-", Body::Id, ""),
    shape(Kind::Podman, "", "libpod-", Body::Id, ".scope"),
    shape(Kind::Podman, "", "libpod-", Body::Id, ""),
    shape(Kind::Podman, "", "libpod-payload-", Body::Id, ""),
    shape(Kind::Conmon, "", "libpod-conmon-", Body::Id, ".scope"),
    shape(Kind::PodmanPod, "", "machine-libpod_pod_", Body::Id, ".slice"),
    shape(Kind::PodmanPod, "", "user-libpod_pod_", Body::Id, ".slice"),
    shape(Kind::PodmanPod, "", "libpod_pod_", Body::Id, ""),
    shape(Kind::Lxc, "", "lxc.payload.", Body::Text, ""),
    shape(Kind::LxcMonitor, "", "lxc.monitor.", Body::Text, ""),
    shape(Kind::Lxc, "lxc", "", Body::Text, ""),
    shape(Kind::Libvirt, "", "machine-qemu-", Body::Numbered, ".scope"),
    shape(Kind::Libvirt, "", "", Body::Text, ".libvirt-qemu"),
    shape(Kind::Lxc, "", "machine-lxc-", Body::Numbered, ".scope"),
    shape(Kind::Machine, "", "systemd-nspawn@", Body::Text, ".service"),
    shape(Kind::Machine, "", "machine-", Body::Text, ".scope"),
    shape(Kind::KubernetesPod, "", "kubepods-burstable-pod", Body::Uid, ".slice"),
    shape(Kind::KubernetesPod, "", "kubepods-besteffort-pod", Body::Uid, ".slice"),
    shape(Kind::KubernetesPod, "", "kubepods-pod", Body::Uid, ".slice"),
    // kind and other nested kubelets put the path of the kubelet in front.
    shape(Kind::KubernetesPod, "", "kubelet-kubepods-burstable-pod", Body::Uid, ".slice"),
    shape(Kind::KubernetesPod, "", "kubelet-kubepods-besteffort-pod", Body::Uid, ".slice"),
    shape(Kind::KubernetesPod, "", "kubelet-kubepods-pod", Body::Uid, ".slice"),
    shape(Kind::KubernetesPod, "kubepods", "pod", Body::Uid, ""),
    shape(Kind::KubernetesPod, "burstable", "pod", Body::Uid, ""),
    shape(Kind::KubernetesPod, "besteffort", "pod", Body::Uid, ""),
];

/// What a cgroup is, told from its path. The innermost thing counts.
pub fn identify(path: &Name) -> Identity {
    let parts: Vec<Vec<u8>> =
        path.as_bytes().split(|&byte| byte == b'/').filter(|part| !part.is_empty()).map(unescape).collect();
    let Some(last) = parts.last() else {
        return Identity { kind: Kind::Root, name: None, id: None, inside: None };
    };
    let mut containers: Vec<Identity> = Vec::new();
    let mut innermost = None;
    for (at, part) in parts.iter().enumerate() {
        let above = at.checked_sub(1).and_then(|above| parts.get(above)).map(Vec::as_slice).unwrap_or_default();
        let in_pod = containers.last().is_some_and(|outer| outer.kind == Kind::KubernetesPod);
        if let Some(mut found) = container(part, above, in_pod) {
            found.inside = containers.last().cloned().map(Box::new);
            innermost = Some(at);
            containers.push(found);
        }
    }
    match (containers.pop(), innermost) {
        (Some(container), Some(at)) if at + 1 == parts.len() => container,
        (outer, _) => Identity { kind: unit(last), name: Some(Name::new(last)), id: None, inside: outer.map(Box::new) },
    }
}

fn container(part: &[u8], above: &[u8], in_pod: bool) -> Option<Identity> {
    let named = |kind, name: Option<Name>, id: Option<String>| Some(Identity { kind, name, id, inside: None });
    for shape in SHAPES {
        if !shape.parent.is_empty() && shape.parent.as_bytes() != above {
            continue;
        }
        let body =
            part.strip_prefix(shape.prefix.as_bytes()).and_then(|rest| rest.strip_suffix(shape.suffix.as_bytes()));
        let Some(body) = body.filter(|body| !body.is_empty()) else { continue };
        match shape.body {
            Body::Id => {
                if let Some(id) = container_id(body) {
                    return named(shape.kind, None, Some(id));
                }
            }
            Body::Uid => {
                if let Some(uid) = pod_uid(body) {
                    return named(shape.kind, None, Some(uid));
                }
            }
            Body::Text => return named(shape.kind, Some(Name::new(body)), None),
            Body::Numbered => {
                let digits = body.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let name = body.get(digits..).and_then(|rest| rest.strip_prefix(b"-")).unwrap_or(body);
                return named(shape.kind, Some(Name::new(name)), None);
            }
        }
    }
    let id = container_id(part).filter(|_| in_pod)?;
    named(Kind::KubernetesContainer, None, Some(id))
}

fn unit(part: &[u8]) -> Kind {
    let is = |suffix: &str| part.strip_suffix(suffix.as_bytes()).is_some_and(|name| !name.is_empty());
    if is(".service") {
        Kind::Service
    } else if is(".scope") {
        Kind::Scope
    } else if is(".slice") {
        Kind::Slice
    } else {
        Kind::Other
    }
}

fn is_hex(byte: &u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn container_id(body: &[u8]) -> Option<String> {
    (body.len() == 64 && body.iter().all(is_hex)).then(|| String::from_utf8_lossy(body).into_owned())
}

/// systemd allows no `-` in the name of a slice's last level, so the kubelet writes `_` there.
fn pod_uid(body: &[u8]) -> Option<String> {
    let digits = body.iter().filter(|byte| is_hex(byte)).count();
    let is_uid = digits == 32 && body.iter().all(|byte| is_hex(byte) || matches!(byte, b'-' | b'_'));
    is_uid.then(|| String::from_utf8_lossy(body).replace('_', "-"))
}

/// systemd's escapes in unit names: `\x2d` is a dash.
fn unescape(part: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(part.len());
    let mut rest = part;
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = after.strip_prefix(b"x").and_then(|digits| digits.get(..2)).filter(|_| byte == b'\\');
        let value = escaped.and_then(|digits| std::str::from_utf8(digits).ok()).and_then(|digits| {
            // `from_str_radix` would take a sign.
            digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u8::from_str_radix(digits, 16).ok()).flatten()
        });
        match value {
            Some(value) => {
                out.push(value);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const UID: &str = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";

    fn label(path: &str) -> String {
        let path = path.replace("UID_", &UID.replace('-', "_")).replace("UID", UID).replace("ID", ID);
        identify(&Name::from(path.as_str())).label(&BTreeMap::new())
    }

    fn check(path: &str, expect: &str) {
        assert_eq!(label(path), expect, "{path}");
    }

    #[test]
    fn systemd_units_are_named_as_systemd_names_them() {
        check("/", "/");
        check("/system.slice", "system.slice");
        check("/system.slice/redis.service", "redis.service");
        check("/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service");
        check(r"/system.slice/dev-disk-by\x2duuid.swap", "dev-disk-by-uuid.swap");
        check("/user.slice/user-1000.slice/session-3.scope", "session-3.scope");
        check("/user.slice/user-1000.slice/user@1000.service/app.slice/editor.service", "editor.service");
        check("/init.scope", "init.scope");
        check("/mygroup", "mygroup");
    }

    #[test]
    fn containers_are_found_in_the_paths_of_every_runtime() {
        check("/system.slice/docker-ID.scope", "docker 0123456789ab");
        check("/docker/ID", "docker 0123456789ab");
        check("/docker/buildkit/abc123", "buildkit abc123");
        check("/system.slice/cri-containerd-ID.scope", "containerd 0123456789ab");
        check("/system.slice/nerdctl-ID.scope", "containerd 0123456789ab");
        check("/machine.slice/crio-ID.scope", "cri-o 0123456789ab");
        check("/machine.slice/crio-conmon-ID.scope", "conmon 0123456789ab");
        check("/machine.slice/libpod-ID.scope", "podman 0123456789ab");
        check("/libpod_parent/libpod-ID", "podman 0123456789ab");
        check("/machine.slice/libpod-conmon-ID.scope", "conmon 0123456789ab");
        check("/machine.slice/machine-libpod_pod_ID.slice", "podman pod 0123456789ab");
        check("/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope", "podman 0123456789ab");
        check("/lxc.payload.web", "lxc web");
        check("/lxc.monitor.web", "lxc monitor web");
        check("/lxc/web", "lxc web");
        check(r"/machine.slice/machine-qemu\x2d1\x2ddb.scope", "libvirt db");
        check(r"/machine.slice/machine-qemu\x2d1\x2ddb.scope/libvirt/vcpu0", "vcpu0 in libvirt db");
        check("/machine/db.libvirt-qemu", "libvirt db");
        check("/machine.slice/systemd-nspawn@build.service", "machine build");
        check(r"/machine.slice/machine-my\x2dbox.scope", "machine my-box");
    }

    #[test]
    fn pods_and_their_containers_are_found_in_both_drivers() {
        check("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID_.slice", "pod 0f1e2d3c");
        check("/kubepods.slice/kubepods-podUID_.slice/cri-containerd-ID.scope", "containerd 0123456789ab");
        check("/kubepods/burstable/podUID/ID", "container 0123456789ab");
        check("/kubepods/podUID", "pod 0f1e2d3c");
        check("/kubepods/besteffort/pod0123456789abcdef0123456789abcdef", "pod 0123456789ab");
        check(
            "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-podUID_.slice/crio-ID.scope",
            "cri-o 0123456789ab",
        );
        let inside = identify(&Name::from(format!("/kubepods/pod{UID}/{ID}").as_str())).inside;
        assert_eq!(inside.and_then(|pod| pod.id), Some(UID.to_owned()));
    }

    #[test]
    fn the_innermost_thing_counts_and_says_what_it_lives_in() {
        let other = "f".repeat(64);
        check(&format!("/docker/{other}/docker/ID"), "docker 0123456789ab");
        check("/system.slice/docker-ID.scope/system.slice/nginx.service", "nginx.service in docker 0123456789ab");
        check("/lxc.payload.web/init.scope", "init.scope in lxc web");
    }

    #[test]
    fn what_only_looks_like_a_container_is_none() {
        check("/system.slice/docker.service", "docker.service");
        check("/system.slice/docker-0123.scope", "docker-0123.scope");
        check("/system.slice/docker-0123456789ABCDEF.scope", "docker-0123456789ABCDEF.scope");
        check("/ID", ID);
        check("/kubepods.slice/kubepods-burstable.slice", "kubepods-burstable.slice");
        check("/kubepods/podium", "podium");
        check(r"/a\x2", r"a\\x2");
    }

    #[test]
    fn names_from_local_files_are_used() {
        let names = BTreeMap::from([(ID.to_owned(), Name::from("web"))]);
        assert_eq!(identify(&Name::from(format!("/docker/{ID}").as_str())).label(&names), "docker web");
    }

    #[test]
    fn any_bytes_are_survived() {
        bolero::check!().for_each(|bytes: &[u8]| {
            let label = identify(&Name::new(bytes)).label(&BTreeMap::new());
            assert!(!label.is_empty() && !label.chars().any(char::is_control));
        });
    }
}
