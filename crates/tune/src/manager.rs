// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that set the same knobs and would fight with a change: TuneD with an active profile, bpftune.

use crate::host::Host;

/// A running manager, and what to do instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    /// What runs. Unescaped.
    pub text: String,
    /// What to type.
    pub hint: String,
}

/// The managers that are at work on a host.
pub fn managers(host: &Host) -> Vec<Manager> {
    let mut found = Vec::new();
    let is_alive =
        |pid: &str| pid.bytes().all(|byte| byte.is_ascii_digit()) && host.path(&format!("proc/{pid}")).exists();
    if let Some(pid) = host.line("run/tuned/tuned.pid").filter(|pid| is_alive(pid))
        && let Some(profile) = host.line("etc/tuned/active_profile")
    {
        found.push(Manager {
            text: format!("TuneD (process {pid}) applies its profile {profile:?}"),
            hint: "put the setting into the TuneD profile, or stop TuneD: tuned-adm off".to_owned(),
        });
    }
    if let Some(pid) = process(host, "bpftune") {
        found.push(Manager {
            text: format!("bpftune (process {pid}) changes sysctls"),
            hint: "stop it: systemctl stop bpftune".to_owned(),
        });
    }
    found
}

/// Process of a name.
fn process(host: &Host, name: &str) -> Option<String> {
    let pids =
        std::fs::read_dir(host.path("proc")).ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    pids.filter(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()))
        .find(|pid| host.line(&format!("proc/{pid}/comm")).as_deref() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_counts_only_while_it_runs() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("etc/tuned/active_profile", "throughput-performance\n");
        write("run/tuned/tuned.pid", "77\n");
        assert_eq!(managers(&host), []);
        write("proc/77/comm", "tuned\n");
        write("proc/78/comm", "bpftune\n");
        let texts: Vec<String> = managers(&host).into_iter().map(|manager| manager.text).collect();
        assert_eq!(
            texts,
            [
                "TuneD (process 77) applies its profile \"throughput-performance\"",
                "bpftune (process 78) changes sysctls"
            ]
        );
    }
}
