// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel, CPUs, page size and tick rate, and the permissions of the reader.

use super::{Prober, first_line};
use crate::parse;
use crate::root::{LARGE, SMALL};
use floodline_kernel::Behaviour;
use floodline_record::facts::Hz;
use floodline_record::gap::{Cause, Source};
use floodline_record::name::Name;
use floodline_record::sample::HostRow;
use floodline_record::text::Text;
use floodline_record::units::Flag;
use floodline_record::version::KernelVersion;

/// Tick rate of most distributions' kernels, for a kernel that does not tell its own.
const HZ_USUAL: u32 = 250;

/// Page sizes Linux is built with.
const PAGE_SIZES: [u64; 3] = [4096, 16384, 65536];

pub(super) fn probe(prober: &mut Prober<'_>) {
    if let Some(release) = prober.expect(Source::KernelRelease, b"/proc/sys/kernel/osrelease", SMALL) {
        prober.facts.kernel_release = Name::new(first_line(&release)).to_string().into();
        let stable = [&b"/proc/sys/kernel/version"[..], b"/proc/version_signature"]
            .map(|path| prober.text(Source::KernelRelease, path));
        prober.facts.kernel = prober.facts.kernel_release.parse().ok().map(|version| {
            let told = |text: &Name| stable_version(version, text.as_bytes());
            stable.iter().flatten().find_map(told).unwrap_or(version)
        });
        if prober.facts.kernel.is_none() {
            let cause = Cause::Malformed { what: "a kernel release MAJOR.MINOR".into() };
            prober.gap(Source::KernelRelease, cause, b"/proc/sys/kernel/osrelease");
        }
    }
    if let Some(name) = prober.text(Source::KernelRelease, b"/proc/sys/kernel/hostname") {
        // The kernel's name for a machine without a hostname.
        prober.facts.hostname = if name.as_bytes() == b"(none)" { Name::default() } else { name };
    }
    if let Some(cmdline) = prober.expect(Source::Cmdline, b"/proc/cmdline", SMALL) {
        prober.facts.cmdline = Name::new(first_line(&cmdline));
    }
    prober.facts.boot_id = boot_id(prober);
    prober.facts.cpus_possible = cpus_possible(prober);
    prober.facts.page_size = page_size(prober);
    prober.facts.hz = Some(hz(prober));
    let delayacct =
        prober.value(Source::ProcessStat, b"/proc/sys/kernel/task_delayacct", parse::number::number::<Flag>);
    prober.facts.task_delayacct = match (delayacct, Behaviour::of_host(&prober.facts)) {
        (Some(flag), _) => Some(flag.0 != 0),
        // Always on before the sysctl came, unless switched off at boot.
        (None, Some(kernel)) if !kernel.knobs.task_delayacct => {
            Some(!words(prober.facts.cmdline.as_bytes()).any(|word| word == b"nodelayacct"))
        }
        (None, _) => None,
    };
    prober.facts.lru_gen = lru_gen(prober);
    prober.facts.privileged = prober.root.is_live().then(|| rustix::process::geteuid().is_root());
}

/// A UUID that the kernel makes at boot. A captured tree may not have it.
fn boot_id(prober: &mut Prober<'_>) -> Option<Text> {
    let path = b"/proc/sys/kernel/random/boot_id";
    let uuid = |text: &[u8]| {
        let line = std::str::from_utf8(first_line(text)).ok();
        let is_uuid = |id: &&str| id.len() == 36 && id.bytes().all(|c| c.is_ascii_hexdigit() || c == b'-');
        line.filter(is_uuid).map(Text::from).ok_or(parse::Flaw("a UUID"))
    };
    prober.value(Source::KernelRelease, path, uuid)
}

/// Bit 0 is the switch, the others are parts of it (6.1). A kernel that is older or built without it has no such file.
fn lru_gen(prober: &mut Prober<'_>) -> Option<bool> {
    let path = b"/sys/kernel/mm/lru_gen/enabled";
    let bits = |text: &[u8]| {
        let digits = std::str::from_utf8(first_line(text)).ok().and_then(|text| text.strip_prefix("0x"));
        let bits = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        bits.ok_or(parse::Flaw("a number such as 0x0007"))
    };
    let is_on = prober.value(Source::LruGen, path, bits).map(|bits| bits & 1 != 0);
    let exists = |path: &[u8]| prober.root.exists(path);
    let has_none = || exists(path) == Ok(false) && exists(b"/sys/kernel/mm") == Ok(true);
    is_on.or_else(|| has_none().then_some(false))
}

/// The stable release that a distribution's kernel is made of, where its own release says only the series: Debian's
/// version of the build has it (`#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-1 (2026-09-01)` of 6.1.0-56), and Ubuntu's
/// signature (`Ubuntu 5.15.0-91.101-generic 5.15.131`).
fn stable_version(series: KernelVersion, text: &[u8]) -> Option<KernelVersion> {
    let of_series = |word: &[u8]| {
        let version: KernelVersion = std::str::from_utf8(word).ok()?.parse().ok()?;
        (version.is_of_series_of(series) && series.is_series_only() && !version.is_series_only()).then_some(version)
    };
    words(text).find_map(of_series)
}

/// `nr_cpu_ids`: one more than the highest CPU that may ever come online, as in "0-3,8-11".
fn cpus_possible(prober: &mut Prober<'_>) -> Option<u32> {
    let path = b"/sys/devices/system/cpu/possible";
    let content = prober.expect(Source::CpuPossible, path, SMALL)?;
    let highest = highest_cpu(first_line(&content));
    if highest.is_none() {
        prober.gap(Source::CpuPossible, Cause::Malformed { what: "a list of CPUs such as 0-3".into() }, path);
    }
    highest.and_then(|highest| highest.checked_add(1))
}

fn highest_cpu(list: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(list).ok()?;
    let ends = text.split(',').map(|range| range.rsplit('-').next().unwrap_or_default().trim().parse::<u32>().ok());
    ends.collect::<Option<Vec<u32>>>()?.into_iter().max()
}

/// Returns the page size: from the kernel on the live machine, in a captured tree from its free memory in kB and in
/// pages.
fn page_size(prober: &mut Prober<'_>) -> u64 {
    let mut row = HostRow::default();
    if let Some(meminfo) = prober.expect(Source::Meminfo, b"/proc/meminfo", SMALL) {
        // Every sample reports a flaw in this file.
        let _ = parse::meminfo::parse(&meminfo, &mut row);
        prober.facts.mem_total = row.mem_total;
    }
    if prober.root.is_live() {
        return rustix::param::page_size() as u64;
    }
    if let Ok(vmstat) = prober.root.read("/proc/vmstat", LARGE) {
        let _ = parse::vmstat::parse(&vmstat, &mut row);
    }
    match (row.mem_free, row.nr_free_pages) {
        (Some(bytes), Some(pages)) if pages.0 > 0 => {
            let measured = bytes.0 / pages.0;
            PAGE_SIZES.into_iter().min_by_key(|size| size.abs_diff(measured)).unwrap_or(PAGE_SIZES[0])
        }
        _ => PAGE_SIZES[0],
    }
}

fn hz(prober: &mut Prober<'_>) -> Hz {
    let release = prober.facts.kernel_release.clone();
    let plain = prober.root.read(format!("/boot/config-{release}"), LARGE).ok();
    let config = plain.or_else(|| prober.root.read("/proc/config.gz", LARGE).ok().and_then(|packed| unpack(&packed)));
    let known = config.as_deref().and_then(hz_of_config);
    if known.is_none() {
        prober.gap(Source::KernelConfig, Cause::NotFound, format!("HZ assumed to be {HZ_USUAL}").as_bytes());
    }
    Hz { value: known.unwrap_or(HZ_USUAL), assumed: known.is_none() }
}

/// Unpacks a gzip file, if its size is plausible for a kernel configuration.
fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    use std::io::Read;
    let mut content = Vec::new();
    flate2::read::GzDecoder::new(packed).take(LARGE as u64).read_to_end(&mut content).ok()?;
    Some(content)
}

fn hz_of_config(config: &[u8]) -> Option<u32> {
    let value = config.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"CONFIG_HZ="))?;
    std::str::from_utf8(value).ok()?.trim().parse().ok().filter(|hz| (24..=10_000).contains(hz))
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_possible_cpu_counts_however_the_list_is_written() {
        let check = |list: &str, expect: Option<u32>| assert_eq!(highest_cpu(list.as_bytes()), expect, "{list}");
        check("0", Some(0));
        check("0-1", Some(1));
        check("0-3,8-11", Some(11));
        check("8-11,0-3", Some(11));
        check("", None);
        check("0-x", None);
        check("99999999999", None);
    }

    #[test]
    fn distributions_that_name_the_series_only_say_the_stable_release_elsewhere() {
        let check = |series: &str, text: &str, expect: Option<&str>| {
            let expect = expect.map(|version| version.parse().unwrap());
            assert_eq!(stable_version(series.parse().unwrap(), text.as_bytes()), expect, "{text}");
        };
        let debian = "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-1 (2026-09-01)";
        check("6.1.0-56-cloud-amd64", debian, Some("6.1.192"));
        check("5.15.0-91-generic", "Ubuntu 5.15.0-91.101-generic 5.15.131", Some("5.15.131"));
        check("6.12.43+deb12-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.12.43-1~bpo12+1 (2025-09-06)", None);
        check("6.18.0", "#1 SMP PREEMPT_DYNAMIC @0", None);
        check("5.10.0-32-amd64", debian, None);
    }

    #[test]
    fn the_tick_rate_is_read_from_a_configuration() {
        assert_eq!(hz_of_config(b"# CONFIG_HZ_100 is not set\nCONFIG_HZ_250=y\nCONFIG_HZ=250\n"), Some(250));
        assert_eq!(hz_of_config(b"CONFIG_HZ=0\n"), None);
        assert_eq!(hz_of_config(b"\xff\xfe"), None);
    }

    #[test]
    fn what_is_not_gzip_is_no_configuration() {
        assert_eq!(unpack(b"CONFIG_HZ=250"), None);
    }
}
