// SPDX-License-Identifier: MIT OR Apache-2.0
//! What packages bring along: units that are as confined as they claim, and manifests that ask for as little.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn packaging() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

/// systemd's own score of a unit, times ten: 0 is confined, 100 is not.
fn exposure(unit: &str) -> Option<(u32, String)> {
    let path = packaging().join("systemd").join(unit);
    let run = Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--no-pager", "--threshold=100"])
        .arg(path)
        .output();
    let run = match run {
        Ok(run) => run,
        Err(error) => {
            floodline_skip::skip(floodline_skip::Need::Root, format!("systemd-analyze: {error}"));
            return None;
        }
    };
    let said = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    let score = said
        .split("Overall exposure level")
        .nth(1)
        .and_then(|rest| rest.split(": ").nth(1)?.split(' ').next()?.parse::<f64>().ok());
    let score = score.unwrap_or_else(|| panic!("a score: {said}"));
    Some(((score * 10.0).round() as u32, said))
}

#[test]
fn units_are_as_confined_as_they_claim() {
    for (unit, most) in [("floodline.service", 13), ("floodline-files.service", 5)] {
        if let Some((score, said)) = exposure(unit) {
            assert!(score <= most, "{unit}: {score} > {most}\n{said}");
        }
        let text = fs::read_to_string(packaging().join("systemd").join(unit)).expect("a unit");
        for directive in
            ["PrivateNetwork=yes", "ProtectSystem=strict", "NoNewPrivileges=yes", "MemoryDenyWriteExecute=yes"]
        {
            assert!(text.lines().any(|line| line == directive), "{unit}: {directive}");
        }
        assert!(text.contains("\nSystemCallErrorNumber=EPERM\n"), "{unit}: a refused call must not end the process");
    }
    // What a later line removes again is refused: bpf is in @privileged, and tracing is what the unit is for.
    let traced = fs::read_to_string(packaging().join("systemd/floodline.service")).expect("a unit");
    let last = traced.lines().rfind(|line| line.starts_with("SystemCallFilter=")).unwrap_or_default();
    assert!(last.contains("bpf") && !last.contains('~'), "{last}");
    let files = fs::read_to_string(packaging().join("systemd/floodline-files.service")).expect("a unit");
    assert!(files.contains("\nCapabilityBoundingSet=\n"), "no capability at all");
    let socket = fs::read_to_string(packaging().join("systemd/floodline.socket")).expect("a unit");
    assert!(socket.contains("ListenStream=127.0.0.1:"), "loopback unless told otherwise");
}

#[test]
fn what_a_reboot_cut_is_finished_before_boot_reads_its_files() {
    let unit = fs::read_to_string(packaging().join("systemd/floodline-settle.service")).expect("a unit");
    let line = |start: &str| unit.lines().find(|line| line.starts_with(start)).unwrap_or_default();
    assert!(line("Before=").contains("systemd-sysctl.service"), "{unit}");
    assert_eq!(line("ExecStart="), "ExecStart=/usr/bin/floodline history");
    // Hosts that floodline never changed start nothing.
    assert!(line("Condition").ends_with("/var/lib/floodline/journal/*.journal"), "{unit}");
    let package = fs::read_to_string(packaging().join("package")).expect("a script");
    assert!(package.contains("sysinit.target.wants/floodline-settle.service"), "it is enabled");
}

#[test]
fn manifests_ask_for_no_more_than_they_need() {
    let plain = fs::read_to_string(packaging().join("kubernetes/floodline.yaml")).expect("a manifest");
    let chart = fs::read_to_string(packaging().join("helm/floodline/templates/daemonset.yaml")).expect("a template");
    for text in [&plain, &chart] {
        for needed in [
            "readOnlyRootFilesystem: true",
            "allowPrivilegeEscalation: false",
            "automountServiceAccountToken: false",
            "drop: [ALL]",
            "type: RuntimeDefault",
            "hostNetwork: false",
        ] {
            assert!(text.contains(needed), "{needed}\n{text}");
        }
        for refused in ["privileged: true", "SYS_ADMIN", "hostNetwork: true", "ClusterRole", ":latest"] {
            assert!(!text.contains(refused), "{refused}\n{text}");
        }
        assert_eq!(
            text.matches("hostPath:").count(),
            text.matches("readOnly: true").count() + 1,
            "all but the ring is read-only"
        );
    }
    let values = fs::read_to_string(packaging().join("helm/floodline/values.yaml")).expect("values");
    let keys = values.lines().filter(|line| line.contains(':') && !line.trim_start().starts_with('#')).count();
    assert!(keys <= 25, "{keys} keys");
}
