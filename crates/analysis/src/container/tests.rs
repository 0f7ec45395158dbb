// SPDX-License-Identifier: MIT OR Apache-2.0
//! A row per shape of path and its near misses. `ID` and `ID2` stand for container ids, `UID` for the
//! uid of a pod. An identity is shown from the inside out: `Kind name|id [user N] < outer`.

use super::*;
use floodline_record::redact::Redactor;
use floodline_record::text::Text;
use std::collections::BTreeMap;

const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const ID2: &str = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210";
const UID: &str = "2f4e1c9a-77d0-4b7e-9c25-0a1b2c3d4e5f";

fn shown(identity: &Identity) -> String {
    let mut text = format!("{:?}", identity.kind);
    for part in [&identity.name.as_ref().map(Name::to_string), &identity.id].into_iter().flatten() {
        text.push_str(&format!(" {part}"));
    }
    if let Some(uid) = identity.uid {
        text.push_str(&format!(" [user {uid}]"));
    }
    if let Some(outer) = &identity.inside {
        text.push_str(&format!(" < {}", shown(outer)));
    }
    text.replace(ID, "ID").replace(ID2, "ID2").replace(UID, "UID")
}

fn spelled(path: &str) -> String {
    let dashless = UID.replace('-', "_");
    path.replace("ID2", ID2).replace("U_ID", &dashless).replace("UID", UID).replace("ID", ID)
}

fn check(path: &str, expect: &str) {
    let path = Name::from(spelled(path).as_str());
    let identity = identify(&path);
    assert_eq!(shown(&identity), expect, "{path}");
    // Without its names it is of the same kind still.
    let redacted = Redactor::new(b"a key").path(&path);
    assert_eq!(kinds(&identify(&redacted)), kinds(&identity), "{path} became {redacted}");
}

fn kinds(identity: &Identity) -> Vec<(Kind, Option<u32>)> {
    std::iter::successors(Some(identity), |one| one.inside.as_deref()).map(|one| (one.kind, one.uid)).collect()
}

#[test]
fn units_of_systemd_are_told_by_their_type() {
    check("/system.slice/nginx.service", "Service nginx.service");
    check("/init.scope", "Scope init.scope");
    check("/system.slice", "Slice system.slice");
    check("/system.slice/system-postgresql.slice/postgresql@16-main.service", "Service postgresql@16-main.service");
    check("/system.slice/system-systemd\\x2dfsck.slice", "Slice system-systemd-fsck.slice");
    check("/system.slice/srv-data\\x2d1.mount", "Service srv-data-1.mount");
    check("/system.slice/dev-sda2.swap", "Service dev-sda2.swap");
    check("/system.slice/ssh.socket", "Service ssh.socket");
    check("/_cpu.service", "Service cpu.service");
    check("/system.slice/nginx.service/worker", "Service nginx.service");
    check("/system.slice/foo", "Other foo");
    check("/", "Root");
    check("", "Root");
    check("/.service", "Other .service");
    check("/system.slice/docker.service", "Service docker.service");
    check("/system.slice/docker-proxy.scope", "Scope docker-proxy.scope");
}

#[test]
fn units_of_users_say_whose_they_are() {
    check("/user.slice/user-1000.slice/session-3.scope", "Session 3 [user 1000]");
    check("/user.slice/user-0.slice/session-c1.scope", "Session c1 [user 0]");
    check("/user.slice/user-1000.slice/user@1000.service", "Service user@1000.service [user 1000]");
    check(
        "/user.slice/user-1000.slice/user@1000.service/app.slice/app-org.gnome.Terminal.slice/vte-spawn-1.scope",
        "Scope vte-spawn-1.scope [user 1000] < Service user@1000.service [user 1000]",
    );
    check(
        "/user.slice/user-1000.slice/user@1000.service/init.scope",
        "Scope init.scope [user 1000] < Service user@1000.service [user 1000]",
    );
    check("/user.slice/user-x.slice/session-3.scope", "Session 3");
    check("/user.slice/user-99999999999.slice", "Slice user-99999999999.slice");
}

#[test]
fn docker_with_either_driver_and_within_itself() {
    check("/system.slice/docker-ID.scope", "Docker ID");
    check("/docker/ID", "Docker ID");
    check("/batch.slice/docker-ID.scope/init", "Docker ID");
    check("/docker/ID/docker/ID2", "Docker ID2 < Docker ID");
    check("/docker/ID/system.slice/docker-ID2.scope", "Docker ID2 < Docker ID");
    check("/docker/ID/system.slice/sshd.service", "Service sshd.service < Docker ID");
    check("/docker/ID/user.slice", "Slice user.slice < Docker ID");
    check("/ecs/task-1/ID", "Container ID");
    check("/docker", "Other docker");
    check("/docker/0123456789ab", "Other 0123456789ab");
    check(&format!("/docker/{}", &ID[1..]), &format!("Other {}", &ID[1..]));
    check(&format!("/docker/{ID}0"), "Other ID0");
    check(&format!("/docker/{}", ID.to_uppercase()), &format!("Other {}", ID.to_uppercase()));
    check("/system.slice/docker-0123.scope", "Scope docker-0123.scope");
}

#[test]
fn pods_of_kubernetes_with_every_runtime_and_driver() {
    let container = "Containerd ID < KubernetesPod UID";
    check(
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podU_ID.slice/cri-containerd-ID.scope",
        container,
    );
    check("/kubepods.slice/kubepods-podU_ID.slice/cri-containerd-ID.scope", container);
    check("/kubepods/burstable/podUID/ID", "KubernetesContainer ID < KubernetesPod UID");
    check("/kubepods/podUID/ID", "KubernetesContainer ID < KubernetesPod UID");
    check("/kubepods/besteffort/podUID/crio-ID", "CriO ID < KubernetesPod UID");
    check("/kubepods/besteffort/podUID/crio-conmon-ID", "Conmon ID < KubernetesPod UID");
    check(
        "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podU_ID.slice/crio-ID.scope/container",
        "CriO ID < KubernetesPod UID",
    );
    check("/kubepods.slice/kubepods-podU_ID.slice/crio-conmon-ID.scope", "Conmon ID < KubernetesPod UID");
    check("/kubepods.slice/kubepods-podU_ID.slice/docker-ID.scope", "Docker ID < KubernetesPod UID");
    check("/kubepods.slice/kubepods-podU_ID.slice", "KubernetesPod UID");
    check("/kubepods/burstable/podUID", "KubernetesPod UID");
    check(
        "/kubepods.slice/kubepods-burstable-pod0123456789abcdef0123456789abcdef.slice",
        "KubernetesPod 0123456789abcdef0123456789abcdef",
    );
    check(
        "/system.slice/containerd.service/kubepods-burstable-podU_ID.slice:cri-containerd:ID",
        "Containerd ID < KubernetesPod UID < Service containerd.service",
    );
    check("/kubepods.slice/kubepods-burstable.slice", "Slice kubepods-burstable.slice");
    check("/kubepods/burstable", "Other burstable");
    check("/kubepods.slice/kubepods-podfoo.slice", "Slice kubepods-podfoo.slice");
    check("/elsewhere/podUID", "Other podUID");
    check("/mypodU_ID.slice", "Slice mypodU_ID.slice".replace("U_ID", &UID.replace('-', "_")).as_str());
}

#[test]
fn kubernetes_in_docker_keeps_the_node_it_runs_in() {
    let expect = "Containerd ID2 < KubernetesPod UID < Docker ID";
    check(
        "/docker/ID/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/\
         kubelet-kubepods-burstable-podU_ID.slice/cri-containerd-ID2.scope",
        expect,
    );
    check(
        "/docker/ID/kubelet/kubepods/burstable/podUID/ID2",
        "KubernetesContainer ID2 < KubernetesPod UID < Docker ID",
    );
    check("/kubepods/podUID/ID/docker/ID2", "Docker ID2 < KubernetesContainer ID < KubernetesPod UID");
}

#[test]
fn containers_of_containerd_without_kubernetes() {
    check("/system.slice/nerdctl-ID.scope", "Containerd ID");
    check("/default/ID", "Containerd ID");
    check("/k8s.io/ID", "Containerd ID");
    check("/default/web", "Other web");
}

#[test]
fn podman_as_root_and_rootless_and_in_pods() {
    check("/machine.slice/libpod-ID.scope", "Podman ID");
    check("/machine.slice/libpod-ID.scope/container", "Podman ID");
    check("/machine.slice/libpod-conmon-ID.scope", "Conmon ID");
    check("/machine.slice/machine-libpod_pod_ID.slice/libpod-ID2.scope", "Podman ID2 < PodmanPod ID");
    check("/machine.slice/machine-libpod_pod_ID.slice", "PodmanPod ID");
    check("/libpod_parent/libpod-ID", "Podman ID");
    check("/libpod_parent/ID/libpod-ID2", "Podman ID2 < PodmanPod ID");
    check(
        "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope/container",
        "Podman ID [user 1000] < Service user@1000.service [user 1000]",
    );
    check("/system.slice/web.service/libpod-payload-ID", "Podman ID < Service web.service");
    check("/user.slice/user-libpod_pod_ID.slice", "PodmanPod ID");
    check("/libpod_parent/libpod_pod_ID", "PodmanPod ID");
    check("/libpod_parent", "Other libpod_parent");
}

#[test]
fn lxc_of_every_age() {
    check("/lxc/mail", "Lxc mail");
    check("/lxc/101/ns/system.slice/nginx.service", "Service nginx.service < Lxc 101");
    check("/lxc.payload.mail", "Lxc mail");
    check("/lxc.payload/mail", "Lxc mail");
    check("/lxc.monitor.mail", "LxcMonitor mail");
    check("/lxc.monitor/mail", "LxcMonitor mail");
    check("/lxc.payload.a/lxc.payload.b", "Lxc b < Lxc a");
    check("/lxc.payload.shop_web/docker/ID", "Docker ID < Lxc shop_web");
    check("/lxc", "Other lxc");
    check("/lxc.payload.", "Other lxc.payload.");
}

#[test]
fn virtual_machines_and_machined() {
    check("/machine.slice/machine-qemu\\x2d1\\x2dweb\\x2d01.scope", "Libvirt web-01");
    check("/machine.slice/machine-qemu\\x2d1\\x2dweb.scope/libvirt/vcpu0", "Libvirt web");
    check("/machine.slice/machine-lxc\\x2d77\\x2dweb.scope", "Libvirt web");
    check("/machine/qemu-3-web.libvirt-qemu/emulator", "Libvirt web");
    check("/machine/web.libvirt-qemu", "Libvirt web");
    check("/machine/web.libvirt-lxc", "Libvirt web");
    check("/machine/lxc-7-web.libvirt-lxc", "Libvirt web");
    check(
        "/machine.slice/systemd-nspawn@deb.service/payload/system.slice/cron.service",
        "Service cron.service < Machine deb",
    );
    check("/machine.slice/machine-deb\\x2d12.scope", "Machine deb-12");
    check("/machine.slice/machine-qemu\\x2dx.scope", "Machine qemu-x");
    check("/qemu.slice/100.scope", "Proxmox 100");
    check("/system.slice/100.scope", "Scope 100.scope");
    check("/firecracker/vm-7", "Firecracker vm-7");
}

#[test]
fn builds_and_batch_jobs() {
    check("/buildkit/x7qz", "BuildKit x7qz");
    check("/docker/buildkit/x7qz", "BuildKit x7qz");
    check("/garden/UID", "Garden UID");
    check("/garden/good/UID", "Garden UID");
    check("/garden/bad/UID", "Garden UID");
    check("/mesos/UID", "Mesos UID");
    check("/slurm/uid_1000/job_42/step_0/task_0", "Slurm 42");
    check("/system.slice/slurmstepd.scope/job_42/step_0/user/task_0", "Slurm 42 < Scope slurmstepd.scope");
    check("/jobs/job_x", "Other job_x");
}

#[test]
fn every_row_of_the_table_is_reached_by_a_test() {
    let source = include_str!("tests.rs");
    for prefix in shape::prefixes() {
        assert!(source.contains(&prefix.replace('\\', "\\\\")), "no test has a path with {prefix:?}: add one");
    }
}

#[test]
fn a_label_has_the_name_that_is_known_and_says_where_it_lies() {
    let names: BTreeMap<Text, Name> = [
        (ID.into(), Name::from("web")),
        (ID2.into(), Name::from("shop/cart-0/app")),
        (UID.into(), Name::from("shop/cart-0")),
    ]
    .into();
    let facts = HostFacts { container_names: names, ..HostFacts::default() };
    let label = |path: &str, facts| identify(&Name::from(spelled(path).as_str())).label(facts);
    let check = |path: &str, expect: &str| assert_eq!(label(path, Some(&facts)), expect, "{path}");
    check("/system.slice/nginx.service", "nginx.service");
    check("/docker/ID", "docker web");
    check("/docker/ID/system.slice/nginx.service", "nginx.service in docker web");
    check("/user.slice/user-7.slice/session-3.scope", "session 3 of user 7");
    check("/user.slice/user-7.slice/user@7.service", "user@7.service");
    check("/kubepods/podUID", "pod shop/cart-0");
    check("/kubepods/podUID/ID2", "pod shop/cart-0/app");
    check("/machine.slice/libpod-conmon-ID.scope", "conmon web");
    check("/lxc.payload.a\x1b[31m", "lxc a\\x1b[31m");
    check("/kubepods/podUID/crio-conmon-ID2", "conmon shop/cart-0/app in pod shop/cart-0");
    check("/", "/");
    check("/mygroup", "mygroup");
    check("/docker/ID/kubelet/kubepods/podUID/ID2", "pod shop/cart-0/app in docker web");
    check("/docker/ID2/docker/ID", "docker web in docker shop/cart-0/app");
    assert_eq!(label("/docker/ID", None), "docker 0123456789ab");
    assert_eq!(label("/machine/qemu-3-db.libvirt-qemu/vcpu0", None), "libvirt db");
    assert_eq!(label("/kubepods/podUID/ID2", None), "pod 2f4e1c9a/fedcba987654");
}

#[test]
fn a_user_names_only_what_lies_below_that_users_slice() {
    let of_user = |uid: u32, id: &str, name: &str| (uid, BTreeMap::from([(id.into(), Name::from(name))]));
    let facts = HostFacts {
        container_names: [(ID2.into(), Name::from("web"))].into(),
        user_container_names: [of_user(7, ID, "toolbox"), of_user(8, ID2, "mine")].into(),
        ..HostFacts::default()
    };
    let check = |path: &str, expect: &str| {
        let label = identify(&Name::from(spelled(path).as_str())).label(Some(&facts));
        assert_eq!(label, expect, "{path}");
    };
    check("/user.slice/user-7.slice/user@7.service/user.slice/libpod-ID.scope", "podman toolbox");
    check("/user.slice/user-8.slice/user@8.service/user.slice/libpod-ID.scope", "podman 0123456789ab");
    check("/machine.slice/libpod-ID.scope", "podman 0123456789ab");
    // Any process that may create cgroups may name them like a user's slice.
    check("/user.slice/user-8.slice/user@8.service/user-7.slice/libpod-ID.scope", "podman 0123456789ab");
    check("/system.slice/ci.service/user.slice/user-7.slice/libpod-ID.scope", "podman 0123456789ab");
    // Names from root's runtimes take precedence over those from a user's.
    check("/user.slice/user-8.slice/libpod-ID2.scope", "podman web");
}

#[test]
fn any_bytes_are_survived_and_shown_without_control_characters() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let label = identify(&Name::new(bytes)).label(None);
        assert!(!label.is_empty() && !label.chars().any(char::is_control));
    });
}

/// Paths composed of pieces from the table, so that random tests get past the first row.
#[test]
fn any_sequence_of_known_pieces_is_survived() {
    const PIECES: [&str; 16] = [
        "docker",
        "docker-ID.scope",
        "ID",
        "kubepods",
        "podUID",
        "user-1000.slice",
        "user@1000.service",
        "lxc",
        "\\x2",
        "\\x",
        "machine-qemu\\x2d1\\x2da.scope",
        ":",
        "kubepods-podU_ID.slice:cri-containerd:ID",
        "init.scope",
        "..",
        "",
    ];
    bolero::check!().with_type::<Vec<u8>>().for_each(|choices| {
        let path: Vec<String> =
            choices.iter().map(|choice| spelled(PIECES[usize::from(*choice) % PIECES.len()])).collect();
        let deep = identify(&Name::from(path.join("/").as_str()));
        assert!(std::iter::successors(Some(&deep), |identity| identity.inside.as_deref()).count() <= NEST_MAX);
    });
}

#[test]
fn a_path_of_any_length_is_answered() {
    check(&"/a".repeat(100_000), "Other a");
    let nested = identify(&Name::from("/lxc/a".repeat(2000).as_str()));
    assert_eq!(std::iter::successors(Some(&nested), |identity| identity.inside.as_deref()).count(), NEST_MAX);
    let huge = identify(&Name::from(format!("/lxc/{}", "\\x2d".repeat(1 << 16)).as_str()));
    assert_eq!(huge.name.map(|name| name.as_bytes().len()), Some(1 << 16));
}
