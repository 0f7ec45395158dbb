// SPDX-License-Identifier: MIT OR Apache-2.0
//! Identifies what runs in a cgroup from its path: systemd units, containers of the usual runtimes, pods, virtual
//! machines, batch jobs. The shapes of paths are a table ([`shape`]), read component by component. The innermost match
//! is the result and records the thing it lies in. No daemon is queried: names that are not in a path (a Docker
//! container's) come from local files ([`HostFacts::container_name`]).

mod shape;
#[cfg(test)]
mod tests;

use floodline_record::facts::HostFacts;
use floodline_record::name::Name;
use std::borrow::Cow;

/// Kind of thing that runs in a cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The root of the hierarchy.
    Root,
    /// A systemd service, or a socket, mount or swap unit with processes.
    Service,
    /// A systemd scope: processes that systemd did not start itself.
    Scope,
    /// A systemd slice: it contains other units.
    Slice,
    /// A login session.
    Session,
    /// A container of Docker.
    Docker,
    /// A container of containerd: of Kubernetes, nerdctl or ctr.
    Containerd,
    /// A container of CRI-O.
    CriO,
    /// A container of Podman.
    Podman,
    /// The monitor process of a container of Podman or CRI-O.
    Conmon,
    /// A pod of Podman.
    PodmanPod,
    /// A container of LXC, LXD or Incus: their paths are the same.
    Lxc,
    /// The monitor process of a container of LXC, LXD or Incus.
    LxcMonitor,
    /// A virtual machine or container of libvirt.
    Libvirt,
    /// A container of systemd-nspawn, or another machine registered with systemd.
    Machine,
    /// A pod of Kubernetes.
    KubernetesPod,
    /// A container in a pod of Kubernetes whose path does not show the runtime.
    KubernetesContainer,
    /// A build step of BuildKit.
    BuildKit,
    /// A virtual machine of Proxmox VE.
    Proxmox,
    /// A virtual machine of Firecracker's jailer.
    Firecracker,
    /// A container of Garden (Cloud Foundry, Concourse).
    Garden,
    /// A container of Mesos.
    Mesos,
    /// A job of Slurm.
    Slurm,
    /// A container id below a parent that no runtime uses by default.
    Container,
    /// Not of a known kind.
    Other,
}

impl Kind {
    /// Words for the kind.
    pub fn label(self) -> &'static str {
        match self {
            Kind::Root => "root",
            Kind::Service => "service",
            Kind::Scope => "scope",
            Kind::Slice => "slice",
            Kind::Session => "session",
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
            Kind::KubernetesContainer | Kind::Container => "container",
            Kind::BuildKit => "buildkit",
            Kind::Proxmox => "proxmox vm",
            Kind::Firecracker => "firecracker",
            Kind::Garden => "garden",
            Kind::Mesos => "mesos",
            Kind::Slurm => "slurm job",
            Kind::Other => "cgroup",
        }
    }

    /// Whether it is a runtime's container, machine or job, as opposed to a part of the tree.
    pub fn is_container(self) -> bool {
        !matches!(self, Kind::Root | Kind::Other | Kind::Session) && !self.is_unit()
    }

    /// Whether its name contains its kind: `nginx.service`.
    fn is_unit(self) -> bool {
        matches!(self, Kind::Service | Kind::Scope | Kind::Slice)
    }
}

/// Identity of a cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its kind.
    pub kind: Kind,
    /// Name of the unit, container, machine or job, if the path contains it, with systemd's escapes undone.
    pub name: Option<Name>,
    /// Full id of the container or pod, in the runtime's own spelling. A pod's is its uid; a static pod's
    /// the hash of its manifest.
    pub id: Option<String>,
    /// The user that owns the slice it is in.
    pub uid: Option<u32>,
    /// The host user below whose slice (`/user.slice/user-UID.slice`) it lies: names from that user's own files apply
    /// to no other user.
    pub host_uid: Option<u32>,
    /// The thing that contains it: a container's pod, a unit's container.
    pub inside: Option<Box<Identity>>,
}

/// Characters of an id that are shown, as the runtimes' own commands show them.
const SHORT_ID: usize = 12;
/// Most components that are read; a path cannot have more (4 KiB of one-letter names).
const DEPTH_MAX: usize = 2048;
/// Most nested things that are kept, the innermost ones.
const NEST_MAX: usize = 8;

impl Identity {
    fn of(kind: Kind) -> Identity {
        Identity { kind, name: None, id: None, uid: None, host_uid: None, inside: None }
    }

    /// The id in its usual short form: twelve characters, or the first group of a uid.
    pub fn short_id(&self) -> Option<&str> {
        let id = self.id.as_deref()?;
        let group = id.split('-').next().unwrap_or(id);
        Some(group.get(..SHORT_ID).unwrap_or(group))
    }

    /// The nearest container: this one, or the one it lives in.
    pub fn container(&self) -> Option<&Identity> {
        std::iter::successors(Some(self), |identity| identity.inside.as_deref()).find(|one| one.kind.is_container())
    }

    /// Its usual name, escaped: `redis.service`, `docker web`, `pod shop/cart-0/app`, `sshd.service in lxc mail`.
    /// `facts` hold the names found in local files.
    pub fn label(&self, facts: Option<&HostFacts>) -> String {
        let mut label = self.own_label(facts);
        let names_user = self.name.as_ref().is_some_and(|name| shape::user(name.as_bytes()).is_some());
        if let Some(uid) = self.uid.filter(|_| !self.kind.is_container() && !names_user) {
            label.push_str(&format!(" of user {uid}"));
        }
        // A container's own label already contains its pod.
        let outer = if self.pod().is_some() {
            self.pod().and_then(|pod| pod.inside.as_deref())
        } else {
            self.inside.as_deref()
        };
        if let Some(outer) = outer.and_then(Identity::container) {
            label.push_str(&format!(" in {}", outer.own_label(facts)));
        }
        label
    }

    fn pod(&self) -> Option<&Identity> {
        self.inside
            .as_deref()
            .filter(|outer| self.kind.is_container() && self.kind != Kind::Conmon && outer.kind == Kind::KubernetesPod)
    }

    fn own_label(&self, facts: Option<&HostFacts>) -> String {
        let found = facts.and_then(|facts| facts.container_name(self.id.as_ref()?, self.host_uid));
        let known = found.or(self.name.as_ref()).map(Name::to_string);
        let is_named = known.is_some();
        let text = known.or_else(|| self.short_id().map(str::to_owned));
        match (self.kind, self.pod(), text) {
            (Kind::Root, ..) => "/".to_owned(),
            // Found by its id, a container of Kubernetes has a name with its pod: shop/cart-0/app.
            (_, Some(_), Some(text)) if is_named => format!("pod {text}"),
            (_, Some(pod), Some(text)) => format!("{}/{text}", pod.own_label(facts)),
            (kind, _, Some(text)) if kind.is_unit() || kind == Kind::Other => text,
            (kind, _, Some(text)) => format!("{} {text}", kind.label()),
            (kind, _, None) => kind.label().to_owned(),
        }
    }
}

/// Identifies a cgroup from its path below the hierarchy's mount. The innermost thing counts.
pub fn identify(path: &Name) -> Identity {
    let parts: Vec<&[u8]> =
        path.as_bytes().split(|&byte| byte == b'/').filter(|part| !part.is_empty()).take(DEPTH_MAX).collect();
    let Some(last) = parts.last() else { return Identity::of(Kind::Root) };
    let host_uid = match parts.as_slice() {
        [b"user.slice", slice, ..] if slice.starts_with(b"user-") => shape::user(slice),
        _ => None,
    };
    let mut found: Vec<Identity> = Vec::new();
    let mut uid = None;
    let mut above: &[u8] = b"";
    for (at, part) in parts.iter().enumerate() {
        for piece in pieces(part) {
            uid = shape::user(&piece).or(uid);
            let Some(mut identity) = shape::identify(&piece, above) else { continue };
            // A slice only groups: an unknown cgroup below a slice is not that slice.
            if identity.kind == Kind::Slice && at + 1 < parts.len() {
                continue;
            }
            if identity.kind == Kind::Container && found.last().is_some_and(|outer| outer.kind == Kind::KubernetesPod) {
                identity.kind = Kind::KubernetesContainer;
            }
            identity.uid = uid;
            identity.host_uid = host_uid;
            // A container has its own users.
            if identity.kind.is_container() {
                uid = None;
            }
            found.push(identity);
        }
        above = part;
    }
    if found.is_empty() {
        found.push(Identity { name: Some(shape::unescape(last)), uid, host_uid, ..Identity::of(Kind::Other) });
    }
    let skip = found.len().saturating_sub(NEST_MAX);
    let nested =
        found.into_iter().skip(skip).reduce(|outer, identity| Identity { inside: Some(Box::new(outer)), ..identity });
    nested.unwrap_or(Identity::of(Kind::Other))
}

/// The components that one component stands for. runc without its systemd driver turns a path meant for systemd into
/// `SLICE:RUNTIME:ID`, which is the same as `SLICE/RUNTIME-ID.scope`.
fn pieces(part: &[u8]) -> Vec<Cow<'_, [u8]>> {
    let mut fields = part.split(|&byte| byte == b':');
    match (fields.next(), fields.next(), fields.next(), fields.next()) {
        (Some(slice), Some(runtime), Some(id), None) if shape::is_id(id) => {
            vec![Cow::Borrowed(slice), Cow::Owned([runtime, b"-", id, b".scope"].concat())]
        }
        _ => vec![Cow::Borrowed(part)],
    }
}
