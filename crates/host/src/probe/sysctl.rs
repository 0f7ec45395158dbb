// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that set writeback's sysctls at boot: the drop-ins that systemd-sysctl applies (systemd's documentation:
//! sysctl.d(5)), and `/etc/sysctl.conf`, which `sysctl --system` applies last. Collects the lines only: their combined
//! effect, also with other programs, is simulated before a change is kept.

use super::Prober;
use floodline_record::facts::SysctlLine;
use floodline_record::gap::Source;
use floodline_record::name::Name;
use floodline_record::text::Text;

/// Folders of drop-ins, from the lowest rank to the highest.
const FOLDERS: [&[u8]; 4] = [b"/usr/lib/sysctl.d", b"/usr/local/lib/sysctl.d", b"/run/sysctl.d", b"/etc/sysctl.d"];
const LAST: &[u8] = b"/etc/sysctl.conf";
/// Maximum number of files that are read; a host has about ten.
const FILES_MAX: usize = 256;
/// Maximum number of lines that are kept.
const LINES_MAX: usize = 64;
/// Maximum length of a value that is kept, bytes; a number has few.
const VALUE_MAX: usize = 32;

pub(super) fn probe(prober: &mut Prober<'_>) {
    let mut files = prober.drop_ins(Source::SysctlFiles, &FOLDERS);
    files.truncate(FILES_MAX);
    // Distributions link `99-sysctl.conf` to the file, which then has its place among the drop-ins.
    let is_linked = |path: &Vec<u8>| {
        prober.root.read_link(path).is_ok_and(|target| target.ends_with(b"/sysctl.conf") || target == b"sysctl.conf")
    };
    if !files.iter().any(is_linked) {
        files.push(LAST.to_vec());
    }
    let mut lines = Vec::new();
    for path in files {
        let Some(content) = prober.maybe(Source::SysctlFiles, &path) else { continue };
        let numbered = (1..).zip(content.split(|&byte| byte == b'\n'));
        lines.extend(numbered.filter_map(|(line, text)| {
            let (key, value) = setting(text)?;
            Some(SysctlLine { file: Name::new(&path), line, key, value })
        }));
    }
    // The last lines are those that win.
    lines.drain(..lines.len().saturating_sub(LINES_MAX));
    prober.facts.sysctl_lines = lines;
}

/// Parses `vm.dirty_ratio = 10`, `vm/dirty_ratio=10` or `-vm.dirty_ratio=10`; `None` for other keys and for comments.
fn setting(line: &[u8]) -> Option<(Text, Text)> {
    let line = line.trim_ascii();
    let at =
        line.iter().position(|&byte| byte == b'=').filter(|_| !line.starts_with(b"#") && !line.starts_with(b";"))?;
    let (key, value) = (line[..at].trim_ascii(), line[at + 1..].trim_ascii());
    let key = std::str::from_utf8(key.strip_prefix(b"-").unwrap_or(key)).ok()?.replace('/', ".");
    let is_ours = key == "vm.laptop_mode" || key == "vm.dirtytime_expire_seconds" || key.starts_with("vm.dirty_");
    let is_name = key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte == b'.');
    let value = String::from_utf8_lossy(&value[..value.len().min(VALUE_MAX)]);
    (is_ours && is_name && key.len() <= 64).then(|| (Text::new(&key), Text::new(value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::HostRoot;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn lines(files: &[(&str, &str)], links: &[(&str, &str)]) -> Vec<String> {
        let tree = tempfile::tempdir().unwrap();
        let place = |path: &str| {
            let path = tree.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            path
        };
        for (path, content) in files {
            fs::write(place(path), content).unwrap();
        }
        for (path, target) in links {
            symlink(target, place(path)).unwrap();
        }
        let facts = super::super::probe(&HostRoot::at(tree.path()).unwrap()).facts;
        let shown = |line: SysctlLine| format!("{}:{} {}={}", line.file, line.line, line.key, line.value);
        facts.sysctl_lines.into_iter().map(shown).collect()
    }

    #[test]
    fn lines_come_in_the_order_in_which_they_are_applied() {
        let files = [
            ("/etc/sysctl.conf", "vm.dirty_ratio=9\n"),
            ("/etc/sysctl.d/50-a.conf", "# vm.dirty_ratio = 1\n\n-vm/dirty_bytes = 4096 \nnet.core.somaxconn=1\n"),
            ("/usr/lib/sysctl.d/50-a.conf", "vm.dirty_ratio = 2\n"),
            ("/usr/lib/sysctl.d/60-b.conf", "vm.laptop_mode=1"),
            ("/run/sysctl.d/10-c.conf", "vm.dirty_ratio=3"),
            ("/etc/sysctl.d/notes.txt", "vm.dirty_ratio=4"),
        ];
        let all = [
            "/run/sysctl.d/10-c.conf:1 vm.dirty_ratio=3",
            "/etc/sysctl.d/50-a.conf:3 vm.dirty_bytes=4096",
            "/usr/lib/sysctl.d/60-b.conf:1 vm.laptop_mode=1",
            "/etc/sysctl.conf:1 vm.dirty_ratio=9",
        ];
        assert_eq!(lines(&files, &[]), all);
        let linked = lines(&files, &[("/etc/sysctl.d/99-sysctl.conf", "../sysctl.conf")]);
        assert_eq!(linked[3..], ["/etc/sysctl.d/99-sysctl.conf:1 vm.dirty_ratio=9"]);
        let masked = lines(&files, &[("/etc/sysctl.d/60-b.conf", "/dev/null")]);
        assert_eq!(masked.len(), 3, "{masked:?}");
        assert_eq!(lines(&[], &[]), Vec::<String>::new());
    }

    #[test]
    fn lines_are_few_and_cannot_command_a_terminal() {
        let many = "vm.dirty_ratio = 10\n".repeat(100) + "vm.dirty_bytes=\u{1b}[31m" + &"9".repeat(1_000);
        let lines = lines(&[("/etc/sysctl.d/a\u{1b}.conf", &many)], &[]);
        assert_eq!(lines.len(), LINES_MAX);
        assert!(lines.iter().all(|line| !line.contains('\u{1b}') && line.len() < 100), "{lines:?}");
        assert!(lines[63].contains(":101 vm.dirty_bytes=\\x1b"), "{}", lines[63]);
    }
}
