// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of path shapes, one row each, and the facts that a row yields from one component of a path. The first
//! matching row wins, so specific rows stand before general ones. To add a runtime, add a row here and an example to
//! the tests; a test lists the rows without one.

use super::{Identity, Kind};
use floodline_record::name::{Name, hex_byte, unescaped};

/// What a component may hold between a row's prefix and suffix.
#[derive(Clone, Copy, Debug)]
enum Body {
    /// A container id: 64 lower-case hexadecimal digits.
    Id,
    /// Any name.
    Name,
    /// A name in systemd's escapes (`\x2d`), after a word and a number: `1-web` of `qemu-1-web`.
    NumberedName,
    /// A number.
    Number,
    /// A UUID.
    Uuid,
    /// `[…-]kubepods[-QOS]-podUID`, or `podUID`: the part after the last `pod` is the uid of a pod.
    PodUid,
    /// A systemd unit; the name is that of the whole component.
    Unit,
}

/// One shape.
struct Shape {
    kind: Kind,
    /// The component before must be one of these; empty: any.
    parents: &'static [&'static str],
    prefix: &'static str,
    suffix: &'static str,
    body: Body,
}

const fn row(kind: Kind, prefix: &'static str, body: Body, suffix: &'static str) -> Shape {
    Shape { kind, parents: &[], prefix, suffix, body }
}

const fn below(kind: Kind, parents: &'static [&'static str], body: Body) -> Shape {
    Shape { kind, parents, prefix: "", suffix: "", body }
}

/// The shapes.
static SHAPES: &[Shape] = &[
    // Docker: the systemd driver, then the cgroupfs driver.
    row(Kind::Docker, "docker-", Body::Id, ".scope"),
    below(Kind::Docker, &["docker"], Body::Id),
    // containerd: Kubernetes and nerdctl with the systemd driver; namespaces of containerd without.
    row(Kind::Containerd, "cri-containerd-", Body::Id, ".scope"),
    row(Kind::Containerd, "nerdctl-", Body::Id, ".scope"),
    below(Kind::Containerd, &["k8s.io", "default"], Body::Id),
    // CRI-O: with systemd, without.
    row(Kind::CriO, "crio-", Body::Id, ".scope"),
    row(Kind::Conmon, "crio-conmon-", Body::Id, ".scope"),
    row(Kind::CriO, "crio-", Body::Id, ""),
    row(Kind::Conmon, "crio-conmon-", Body::Id, ""),
    // Podman: with systemd, without; a pod's own cgroup in both.
    row(Kind::Podman, "libpod-", Body::Id, ".scope"),
    row(Kind::Conmon, "libpod-conmon-", Body::Id, ".scope"),
    row(Kind::Podman, "libpod-payload-", Body::Id, ""),
    row(Kind::Podman, "libpod-", Body::Id, ""),
    row(Kind::Conmon, "libpod-conmon-", Body::Id, ""),
    row(Kind::PodmanPod, "machine-libpod_pod_", Body::Id, ".slice"),
    row(Kind::PodmanPod, "user-libpod_pod_", Body::Id, ".slice"),
    row(Kind::PodmanPod, "libpod_pod_", Body::Id, ""),
    below(Kind::PodmanPod, &["libpod_parent"], Body::Id),
    // Kubernetes: the kubelet with the systemd driver, without; kind nests both below "kubelet".
    row(Kind::KubernetesPod, "", Body::PodUid, ".slice"),
    below(Kind::KubernetesPod, &["kubepods", "burstable", "besteffort"], Body::PodUid),
    // BuildKit.
    below(Kind::BuildKit, &["buildkit"], Body::Name),
    // LXC, LXD, Incus: 4.0 and later; the layout between; before.
    row(Kind::Lxc, "lxc.payload.", Body::Name, ""),
    row(Kind::LxcMonitor, "lxc.monitor.", Body::Name, ""),
    below(Kind::Lxc, &["lxc.payload", "lxc"], Body::Name),
    below(Kind::LxcMonitor, &["lxc.monitor"], Body::Name),
    // libvirt: registered with machined, then on its own.
    row(Kind::Libvirt, "machine-qemu\\x2d", Body::NumberedName, ".scope"),
    row(Kind::Libvirt, "machine-lxc\\x2d", Body::NumberedName, ".scope"),
    row(Kind::Libvirt, "qemu-", Body::NumberedName, ".libvirt-qemu"),
    row(Kind::Libvirt, "", Body::Name, ".libvirt-qemu"),
    row(Kind::Libvirt, "lxc-", Body::NumberedName, ".libvirt-lxc"),
    row(Kind::Libvirt, "", Body::Name, ".libvirt-lxc"),
    // systemd-nspawn: as a service, and from a shell.
    row(Kind::Machine, "systemd-nspawn@", Body::Name, ".service"),
    row(Kind::Machine, "machine-", Body::Name, ".scope"),
    // Virtual machines of Proxmox VE and of Firecracker's jailer.
    Shape { parents: &["qemu.slice"], ..row(Kind::Proxmox, "", Body::Number, ".scope") },
    below(Kind::Firecracker, &["firecracker"], Body::Name),
    // Garden; Mesos; Slurm on version 1 (below uid_N) and on version 2 (below slurmstepd.scope).
    below(Kind::Garden, &["garden", "good", "bad"], Body::Uuid),
    below(Kind::Mesos, &["mesos"], Body::Uuid),
    row(Kind::Slurm, "job_", Body::Number, ""),
    // Any other id is a container of a runtime with a parent of its own.
    row(Kind::Container, "", Body::Id, ""),
    // systemd.
    row(Kind::Session, "session-", Body::Name, ".scope"),
    row(Kind::Service, "", Body::Unit, ".service"),
    row(Kind::Scope, "", Body::Unit, ".scope"),
    row(Kind::Slice, "", Body::Unit, ".slice"),
    row(Kind::Service, "", Body::Unit, ".socket"),
    row(Kind::Service, "", Body::Unit, ".mount"),
    row(Kind::Service, "", Body::Unit, ".swap"),
];

/// Identity of one component, if it has a known shape.
pub(super) fn identify(part: &[u8], parent: &[u8]) -> Option<Identity> {
    SHAPES.iter().find_map(|shape| shape.fit(part, parent))
}

/// The user that owns the slice or service manager of a component.
pub(super) fn user(part: &[u8]) -> Option<u32> {
    let slice = part.strip_prefix(b"user-").and_then(|rest| rest.strip_suffix(b".slice"));
    let manager = part.strip_prefix(b"user@").and_then(|rest| rest.strip_suffix(b".service"));
    number(slice.or(manager)?)
}

/// Whether it is a container id.
pub(super) fn is_id(text: &[u8]) -> bool {
    text.len() == 64 && is_hex(text)
}

impl Shape {
    fn fit(&self, part: &[u8], parent: &[u8]) -> Option<Identity> {
        if !self.parents.is_empty() && !self.parents.iter().any(|one| one.as_bytes() == parent) {
            return None;
        }
        let body = part.strip_prefix(self.prefix.as_bytes())?.strip_suffix(self.suffix.as_bytes())?;
        let mut identity = Identity::of(self.kind);
        match self.body {
            Body::Id => identity.id = Some(is_id(body).then(|| text(body))?),
            Body::Number => identity.name = number(body).map(|_| Some(Name::new(body)))?,
            Body::Uuid => identity.id = Some(is_uuid(body).then(|| text(body))?),
            Body::PodUid => identity.id = Some(pod_uid(body)?),
            Body::Name if body.is_empty() => return None,
            Body::Name => identity.name = Some(unescape(body)),
            Body::NumberedName => identity.name = Some(numbered_name(body)?),
            // systemd puts `_` before names that would clash with files of the kernel.
            Body::Unit if body.is_empty() => return None,
            Body::Unit => identity.name = Some(unescape(part.strip_prefix(b"_").unwrap_or(part))),
        }
        Some(identity)
    }
}

/// Undoes systemd's escapes: `\x2d` is a byte.
pub(super) fn unescape(body: &[u8]) -> Name {
    Name::new(unescaped(body, |rest| match rest {
        [b'\\', b'x', high, low, ..] if is_hex(&[*high, *low]) => Some((hex_byte([*high, *low])?, 4)),
        _ => None,
    }))
}

/// `1\x2dweb` or `1-web`: the name after the number.
fn numbered_name(body: &[u8]) -> Option<Name> {
    let name = unescape(body);
    let at = name.as_bytes().iter().position(|&byte| byte == b'-')?;
    let (digits, rest) = (name.as_bytes().get(..at)?, name.as_bytes().get(at + 1..)?);
    number(digits).filter(|_| !rest.is_empty()).map(|_| Name::new(rest))
}

/// The uid at the end of `kubepods-burstable-podUID`; systemd's `_` in it were `-`.
fn pod_uid(body: &[u8]) -> Option<String> {
    let at = body.windows(3).rposition(|window| window == b"pod")?;
    let (before, uid) = (body.get(..at)?, body.get(at + 3..)?);
    let is_of_kubelet =
        before.is_empty() || before.ends_with(b"-") && before.windows(8).any(|part| part == b"kubepods");
    let uid: Vec<u8> = uid.iter().map(|&byte| if byte == b'_' { b'-' } else { byte }).collect();
    // The uid of a static pod is the hash of its manifest, without dashes.
    (is_of_kubelet && (is_uuid(&uid) || uid.len() == 32 && is_hex(&uid))).then(|| text(&uid))
}

fn is_uuid(text: &[u8]) -> bool {
    const DASHES: [usize; 4] = [8, 13, 18, 23];
    let fits = |(at, byte): (usize, &u8)| if DASHES.contains(&at) { *byte == b'-' } else { is_hex(&[*byte]) };
    text.len() == 36 && text.iter().enumerate().all(fits)
}

fn is_hex(text: &[u8]) -> bool {
    text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn number(text: &[u8]) -> Option<u32> {
    let digits = std::str::from_utf8(text).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok()
}

/// Text that was checked to be ASCII.
fn text(ascii: &[u8]) -> String {
    String::from_utf8_lossy(ascii).into_owned()
}

/// Distinguishes the rows by their paths, for the test that tries all of them.
#[cfg(test)]
pub(super) fn prefixes() -> impl Iterator<Item = &'static str> {
    SHAPES.iter().flat_map(|shape| shape.parents.iter().copied().chain([shape.prefix, shape.suffix]))
}
