// SPDX-License-Identifier: MIT OR Apache-2.0
//! A library of devices: `profile = "nvme-boot"` gives a device the figures of one that exists, as far as the
//! scenario does not say otherwise. Not a model of any device: caps of bytes and requests per second and a
//! latency, which both executors know how to keep. How fast one reader alone is, and that an SSD has one time for reads
//! and writes, the simulator knows besides; the lab's disks are held to each cap by itself.
//!
//! Figures of SSDs are single rows of the public iocost-benchmarks collection (Apache-2.0): parameters measured
//! for the kernel's io.cost controller, sequential bytes and random requests per second. Disks that turn and
//! network volumes are round figures of data sheets and of what providers promise.

use super::machine::{Device, Machine};
use super::quantity::{ByteRate, ByteSize, IoRate, Time};
use floodline_record::units::{Bytes, BytesPerSecond, Nanos};

/// One device of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceProfile {
    /// What a scenario calls it.
    pub name: &'static str,
    /// What it stands for.
    pub about: &'static str,
    /// Where the figures are from.
    pub source: &'static str,
    /// Size, bytes.
    pub size: u64,
    /// Whether its caps are of reads and writes together: a volume that a provider sells.
    pub is_volume: bool,
    /// Bytes per second of one reader in order; none where that is all of the bandwidth.
    pub read_stream: Option<u64>,
    /// Bytes per second, reading and writing.
    pub bandwidth: (u64, u64),
    /// Requests per second, reading and writing.
    pub iops: (u64, u64),
    /// Milliseconds that a single request takes besides; none where it is not worth a figure.
    pub latency_ms: Option<u64>,
    /// Whether it turns.
    pub rotational: bool,
    /// Microseconds until its arm is at another place and the sector below it; none where it has no arm.
    pub seek_us: Option<u64>,
}

/// Percent of the writes before it that a read overtakes in an SSD: estimated, half of them.
pub(super) const READ_PREFERENCE: u32 = 50;
/// Percent of an SSD's reading bandwidth that one reader in order gets through the page cache: measured on a SATA SSD.
const STREAM: u64 = 90;
const GB: u64 = 1_000_000_000;

const DATA_SHEET: &str = "data sheets, round figures";
const PROVIDER: &str = "promised by providers, round figures";

const fn disk(
    name: &'static str,
    about: &'static str,
    size: u64,
    megabytes: u64,
    iops: u64,
    seek_us: u64,
) -> DeviceProfile {
    let bandwidth = (megabytes * 1_000_000, megabytes * 1_000_000);
    // Small requests as a queue and a cache on the disk make them; larger ones are bound by bandwidth. A seek is an average
    // one and half a turn.
    let (iops, seek_us) = ((iops, iops), Some(seek_us));
    DeviceProfile {
        name,
        about,
        source: DATA_SHEET,
        size: size * GB,
        is_volume: false,
        read_stream: None,
        bandwidth,
        iops,
        latency_ms: None,
        rotational: true,
        seek_us,
    }
}

const fn ssd(
    name: &'static str,
    about: &'static str,
    model: &'static str,
    size: u64,
    figures: [u64; 4],
) -> DeviceProfile {
    let [rbps, rrandiops, wbps, wrandiops] = figures;
    DeviceProfile {
        name,
        about,
        source: model,
        size: size * GB,
        is_volume: false,
        read_stream: Some(rbps / 100 * STREAM),
        bandwidth: (rbps, wbps),
        iops: (rrandiops, wrandiops),
        latency_ms: None,
        rotational: false,
        seek_us: None,
    }
}

const fn volume(name: &'static str, about: &'static str, megabytes: u64, iops: u64, latency_ms: u64) -> DeviceProfile {
    let bandwidth = (megabytes * 1_000_000, megabytes * 1_000_000);
    let (source, latency_ms) = (PROVIDER, Some(latency_ms));
    DeviceProfile {
        name,
        about,
        source,
        size: 500 * GB,
        is_volume: true,
        read_stream: None,
        bandwidth,
        iops: (iops, iops),
        latency_ms,
        rotational: false,
        seek_us: None,
    }
}

/// All of them, slow ones first within each kind.
pub const DEVICE_PROFILES: &[DeviceProfile] = &[
    disk("hdd-5400", "a SATA disk of 5400 turns a minute", 4_000, 120, 90, 17_600),
    disk("hdd-7200", "a SATA disk of 7200 turns a minute", 4_000, 180, 160, 12_700),
    disk("hdd-10000", "a SAS disk of 10,000 turns a minute", 1_200, 200, 280, 7_600),
    ssd(
        "sata-ssd",
        "a SATA SSD",
        "iocost-benchmarks: Samsung_SSD_870",
        1_000,
        [571_729_370, 98_441, 539_657_135, 90_935],
    ),
    ssd(
        "nvme-slow-writes",
        "an NVMe SSD that writes slower than a disk once its cache is full",
        "iocost-benchmarks: SKhynix_Phoenix",
        512,
        [1_201_391_400, 114_215, 31_940_421, 15_064],
    ),
    ssd(
        "nvme-boot",
        "a small NVMe SSD as servers boot from",
        "iocost-benchmarks: INTEL_SSDPEKKA256G7",
        256,
        [1_320_294_621, 45_012, 119_694_755, 17_634],
    ),
    ssd(
        "nvme-256g",
        "an NVMe SSD of 256 GB",
        "iocost-benchmarks: WDC_CL_SN720_SDAQNTW-256G-1020",
        256,
        [2_319_819_327, 91_580, 377_802_583, 13_765],
    ),
    ssd(
        "nvme-512g",
        "an NVMe SSD of 512 GB",
        "iocost-benchmarks: KXG6AZNV512G_TOSHIBA",
        512,
        [2_419_411_544, 229_994, 833_689_535, 22_672],
    ),
    ssd(
        "nvme-fast",
        "a fast NVMe SSD",
        "iocost-benchmarks: Samsung_SSD_980_PRO_1TB",
        1_000,
        [2_548_800_265, 304_477, 2_314_893_629, 84_113],
    ),
    volume("network-out-of-credit", "a volume whose burst credit is used up", 128, 100, 2),
    volume("network-small", "a small general-purpose volume", 60, 500, 2),
    volume("network-general", "a general-purpose volume", 125, 3_000, 1),
    volume("network-fast", "a volume with guaranteed requests", 1_000, 16_000, 1),
];

/// Keys that a profile fills in.
pub(super) const FILLED: &[&str] =
    &["bandwidth", "iops", "read_bandwidth", "write_bandwidth", "read_iops", "write_iops", "latency", "rotational"];

/// The profile of a name.
pub fn device_profile(name: &str) -> Option<&'static DeviceProfile> {
    DEVICE_PROFILES.iter().find(|profile| profile.name == name)
}

impl Machine {
    /// Gives every device with a profile what the scenario does not say of it. An unknown one is left to the checks.
    pub(super) fn fill_in_profiles(&mut self) {
        for device in self.devices.values_mut() {
            let profile = device.profile.as_deref().and_then(device_profile);
            profile.into_iter().for_each(|profile| profile.fill_in(device));
        }
    }
}

impl DeviceProfile {
    fn fill_in(&self, device: &mut Device) {
        let rate = |bytes: u64| Some(ByteRate(BytesPerSecond(bytes)));
        let requests = |count: u64| Some(IoRate(super::RequestsPerSecond(count)));
        device.size = device.size.or(Some(ByteSize(Bytes(self.size))));
        let each_way = [device.read_bandwidth.is_some(), device.write_bandwidth.is_some()];
        let requests_each_way = [device.read_iops.is_some(), device.write_iops.is_some()];
        // What a volume promises is for both ways together, unless the scenario has limits each way.
        if self.is_volume && !each_way.contains(&true) && !requests_each_way.contains(&true) {
            device.bandwidth = device.bandwidth.or(rate(self.bandwidth.0));
            device.iops = device.iops.or(requests(self.iops.0));
        } else {
            device.read_bandwidth = device.read_bandwidth.or(rate(self.bandwidth.0));
            device.write_bandwidth = device.write_bandwidth.or(rate(self.bandwidth.1));
            device.read_iops = device.read_iops.or(requests(self.iops.0));
            device.write_iops = device.write_iops.or(requests(self.iops.1));
        }
        device.latency = device.latency.or(self.latency_ms.map(|ms| Time(Nanos::from_millis(ms))));
        device.rotational |= self.rotational;
    }
}

#[cfg(test)]
mod tests {
    use super::super::ScenarioFile;
    use super::*;

    fn parse(device: &str) -> Result<ScenarioFile, String> {
        let text = format!(
            "name = \"p\"\nsummary = \"p\"\n[machine]\nmemory = \"1 GiB\"\n[machine.devices.d]\nsize = \"1 GiB\"\n{device}\n\
             [workload]\nduration = \"1s\"\n[workload.tasks.t]\nsteps = [\"sync\"]\n"
        );
        ScenarioFile::parse(&text).map_err(|error| error.problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_profile_gives_what_is_not_said() {
        let file = parse("profile = \"nvme-boot\"\nwrite_bandwidth = \"5 MB/s\"").unwrap();
        let device = &file.variants["default"].machine.devices["d"];
        assert_eq!(device.write_bandwidth.map(|rate| rate.0.0), Some(5_000_000));
        assert_eq!(device.read_bandwidth.map(|rate| rate.0.0), Some(1_320_294_621));
        assert_eq!(device.write_iops.map(|rate| rate.0.0), Some(17_634));
        let again = ScenarioFile::parse(&file.variants["default"].to_toml().unwrap()).unwrap();
        assert_eq!(again.variants["default"], file.variants["default"]);
    }

    #[test]
    fn an_unknown_profile_is_answered_with_one_that_was_meant() {
        let said = parse("profile = \"nvme-bot\"").unwrap_err();
        assert!(said.contains("no device profile is called \"nvme-bot\""), "{said}");
    }

    #[test]
    fn another_profile_on_the_command_line_replaces_all_figures() {
        let file = parse("profile = \"nvme-boot\"").unwrap();
        let changed = file.variants["default"].changed("machine.devices.d.profile", "hdd-7200").unwrap();
        let device = &changed.machine.devices["d"];
        assert!(device.rotational);
        assert_eq!(device.write_bandwidth.map(|rate| rate.0.0), Some(180_000_000));
    }

    #[test]
    fn names_are_unique_and_no_figure_is_zero() {
        let mut names: Vec<&str> = DEVICE_PROFILES.iter().map(|profile| profile.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), DEVICE_PROFILES.len());
        for profile in DEVICE_PROFILES {
            assert!(profile.bandwidth.0.min(profile.bandwidth.1).min(profile.iops.0).min(profile.iops.1) > 0);
        }
    }
}
