// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that rules know by the kernel's name of their process (`/proc/PID/comm`, at most 15 bytes). They stand here, in
//! one place, as a recording without names ([`crate::redact`]) has to keep them.

/// Databases that call fsync in the way of their clients.
pub const DATABASES: &[&[u8]] = &[
    b"redis-server",
    b"valkey-server",
    b"mysqld",
    b"mariadbd",
    b"postgres",
    b"mongod",
    b"etcd",
    b"influxd",
    b"rabbitmq-server",
    b"beam.smp",
    b"cockroach",
    b"tikv-server",
    b"zookeeper",
    b"sqlservr",
    b"oracle",
];

/// Programs that unmount, e.g. the filesystem of a container that ended.
pub const UNMOUNTERS: &[&[u8]] = &[b"umount", b"runc", b"crun", b"podman", b"buildah", b"conmon", b"(sd-umount)"];

/// systemd-journald, with and without the kernel's cut.
pub const JOURNALD: &[&[u8]] = &[b"systemd-journal", b"systemd-journald"];

/// The recorder itself.
pub const RECORDER: &[u8] = b"floodline";

/// Whether a rule knows a program by this name.
pub fn is_known(comm: &[u8]) -> bool {
    comm == RECORDER || [DATABASES, UNMOUNTERS, JOURNALD].iter().any(|known| known.contains(&comm))
}
