// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names that a redactor has to replace, and words that it has to keep.

use super::Redactor;
use crate::facts::{HostFacts, Mount};
use crate::id::{DevId, Entity, Hierarchy};
use crate::name::Name;
use crate::record::{Event, Record, What};
use crate::units::Nanos;
use proptest::prelude::*;

const KEY: &[u8] = b"a key of thirty-two bytes, all in";

fn path(text: &str) -> String {
    Redactor::new(KEY).path(&Name::from(text)).to_string()
}

/// The shape of a redacted path: each hash as `#`, each digit of an id as `0`.
fn shape(text: &str) -> String {
    let redacted = path(text);
    let mut out = String::new();
    let mut rest = redacted.as_str();
    while let Some(c) = rest.chars().next() {
        let is_hash = |text: &str| text.len() >= 13 && text.bytes().skip(1).take(12).all(|c| c.is_ascii_hexdigit());
        match c {
            'x' if is_hash(rest) => {
                out.push('#');
                rest = &rest[13..];
            }
            _ => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    out
}

#[test]
fn the_kind_of_a_cgroup_stays_and_its_name_goes() {
    let check = |text: &str, expect: &str| assert_eq!(shape(text), expect, "{text}");
    check("/", "/");
    check("/system.slice/systemd-journald.service", "/system.slice/systemd-journald.service");
    check("/system.slice/payroll.service", "/system.slice/#.service");
    check("/system.slice/acme-payroll-7.service", "/system.slice/#.service");
    check("/user.slice/user-1000.slice/session-12.scope", "/user.slice/user-1000.slice/session-12.scope");
    check("/qemu.slice/101.scope", "/qemu.slice/101.scope");
    check("/machine.slice/machine-qemu\\x2d1\\x2dacme.scope", "/machine.slice/machine-qemu\\\\x2d1\\\\x2d#.scope");
    check("/mnt/10.20.30.40", "/mnt/#");
    check("/srv/acme/customers 2026/x", "/srv/#/#/#");
    check("/dev/mapper/acme--vg-data", "/dev/mapper/#-data");
    check("/dev/sda1", "/dev/sda1");
    check("/home/sdoe", "/home/#");
    check("/system.slice/hdfs.service", "/system.slice/#.service");
    check("/tenants/4711042/db", "/#/#/#");
    check("/user.slice/user-587201104.slice", "/user.slice/user-587201104.slice");
    check("/machine.slice/machine-qemu\\x2d1\\x2d2026.scope", "/machine.slice/machine-qemu\\\\x2d1\\\\x2d#.scope");
}

#[test]
fn ids_stay_ids_and_become_others() {
    let id = "4f5c2d7a".repeat(8);
    let docker = path(&format!("/system.slice/docker-{id}.scope"));
    assert_eq!(docker.len(), format!("/system.slice/docker-{id}.scope").len());
    assert!(docker.starts_with("/system.slice/docker-") && docker.ends_with(".scope") && !docker.contains(&id));
    let uid = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";
    let pod = path(&format!("/kubepods/burstable/pod{uid}"));
    let shown = pod.strip_prefix("/kubepods/burstable/pod").expect("the word stays");
    assert!(shown != uid && shown.len() == uid.len());
    assert!(shown.bytes().zip(uid.bytes()).all(|(a, b)| (a == b'-') == (b == b'-')), "{shown}");
    // The systemd driver writes the same id with `_`: the same digits.
    let slice = path(&format!("/kubepods-burstable-pod{}.slice", uid.replace('-', "_")));
    assert_eq!(slice, format!("/kubepods-burstable-pod{}.slice", shown.replace('-', "_")));
}

#[test]
fn the_same_name_is_the_same_hash_with_the_same_key_only() {
    let name = Name::from("/srv/acme");
    assert_eq!(Redactor::new(KEY).path(&name), Redactor::new(KEY).path(&name));
    assert_ne!(Redactor::new(KEY).path(&name), Redactor::new(b"another").path(&name));
    // RFC 4231 gives HMAC-SHA256 of this text with this key.
    let known = Redactor::new(b"Jefe").whole(&Name::from("what do ya want for nothing?"));
    assert_eq!(known.to_string(), "x5bdcc146bf60");
}

#[test]
fn a_host_of_someone_keeps_no_name() {
    let redactor = Redactor::new(KEY);
    let mount = Mount {
        dev: DevId { major: 8, minor: 1 },
        root: "/".into(),
        mount_point: "/srv/acme".into(),
        fs_type: "overlay".into(),
        source: "10.7.7.7:/acme".into(),
        options: "rw,relatime,acme".into(),
        super_options: "rw,lowerdir=/acme/a:/acme/b,upperdir=/acme/u,addr=10.7.7.7,data=ordered,size=4k,acme=1".into(),
        overlay: None,
    };
    let facts = HostFacts {
        hostname: "acme-7".into(),
        cmdline: "root=UUID=acme quiet cgroup_no_v1=all ro acme=1".into(),
        mounts: vec![mount],
        ..HostFacts::default()
    };
    let records = [
        Record::Facts(Box::new(facts)),
        Record::Entity(
            crate::id::EntityId(1),
            Entity::Cgroup { path: "/acme".into(), hierarchy: Hierarchy::V2, ino: None },
        ),
        Record::Event(Event { at: Nanos(1), what: What::Note { text: "acme is slow".into() } }),
    ];
    for record in &records {
        let shown = format!("{:?}", redactor.record(record));
        assert!(!shown.contains("acme") && !shown.contains("10.7"), "{shown}");
    }
    let Record::Facts(facts) = &*redactor.record(&records[0]) else { panic!("facts stay facts") };
    assert!(facts.cmdline.to_string().contains("quiet cgroup_no_v1=all ro"), "{}", facts.cmdline);
    assert!(facts.mounts[0].has_option("data=ordered") && facts.mounts[0].has_option("size=4k"));
}

#[test]
fn files_of_boot_keep_their_order_and_sentences_lose_their_names() {
    let redactor = Redactor::new(KEY);
    let drop_in = |path: &str| redactor.drop_in(&Name::from(path)).to_string();
    assert_eq!(drop_in("/etc/sysctl.d/99-zz-floodline.conf"), "/etc/sysctl.d/99-zz-floodline.conf");
    let (early, late) = (drop_in("/etc/sysctl.d/10-acme.conf"), drop_in("/etc/sysctl.d/99-zzz acme.conf"));
    assert!(early.starts_with("/etc/sysctl.d/10-a") && late.starts_with("/etc/sysctl.d/99-z"), "{early} {late}");
    assert!(!early.contains("acme") && !late.contains("acme"), "{early} {late}");
    let detail = |text: &str| redactor.text(&text.into()).as_str().to_owned();
    assert_eq!(detail("/proc/12/io"), "/proc/12/io");
    assert_eq!(detail("since 6.10"), "since 6.10");
    let path = detail("/etc/systemd/journald.conf.d/acme payroll secret.conf");
    assert!(path.starts_with("/etc/systemd/") && !path.contains("payroll") && !path.contains("secret"), "{path}");
    let release =
        |text: &str| redactor.facts(&HostFacts { kernel_release: text.into(), ..HostFacts::default() }).kernel_release;
    assert_eq!(release("6.12.117+deb13-cloud-amd64"), "6.12.117+deb13-cloud-amd64");
    assert_eq!(release("5.14.0-427.13.1.el9_4.x86_64"), "5.14.0-427.13.1.el9_4.x86_64");
    assert!(!release("6.6.30-acmecorp-payments+").contains("acme"));
}

proptest! {
    #[test]
    fn any_path_keeps_its_components(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let slashes = |name: &Name| name.as_bytes().iter().filter(|&&c| c == b'/').count();
        let name = Name::new(&bytes);
        prop_assert_eq!(slashes(&Redactor::new(KEY).path(&name)), slashes(&name));
    }

    #[test]
    fn a_word_of_someone_is_gone_wherever_it_stands(
        word in "[g-z]{5,12}",
        before in "(/|/system\\.slice/|/var/lib/|/docker-|/user-1000\\.slice/app-)",
        after in "(|\\.service|@1\\.service|-7\\.scope|/x|\\\\x2d1)",
    ) {
        prop_assume!(!super::words::is_word(word.as_bytes()));
        let redacted = path(&format!("{before}{word}{after}"));
        prop_assert!(!redacted.contains(&word), "{redacted}");
    }
}
