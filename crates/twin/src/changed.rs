// SPDX-License-Identifier: MIT OR Apache-2.0
//! A change of a host, applied to its twin: settings, knobs of devices, limits of cgroups, another kernel or cgroup
//! hierarchy, other memory, filesystems or mount options. Names are those of a host (`bdi/8:0/max_ratio`,
//! `cgroup/PATH/memory.max`) or of the scenario (`vm.dirty_bytes`, `machine.memory`). The scenario's own checks refuse
//! what the kernel refuses.

mod ceilings;
mod hierarchy;
mod io_max;
mod journald;
mod members;
mod mounts;
mod names;
mod steps;

pub use self::steps::{kernel_default, of_steps};

use self::hierarchy::without_v2;
use self::journald::journald;
use self::members::Member;
use self::mounts::{fitting, mounted};
use self::names::{cgroup, device};
use crate::fits::{fits, fits_machine, heap_within};
use floodline_analysis::prediction::Setting;
use floodline_kernel::{Behaviour, OLDEST_MODELLED, Planned, is_modelled, newest_modelled};
use floodline_record::nearest::nearest;
use floodline_record::units::Bytes;
use floodline_record::version::KernelVersion;
use floodline_record::window::Window;
use floodline_scenario::{
    ByteSize, CgroupMode, Scenario, ScenarioFile, SetLimits, SizeLimit, Step, UsedKey, split_setting, unknown_host_key,
};
use floodline_sim::SimError;

/// Reads `KEY=VALUE`.
///
/// # Errors
///
/// There is no key or no value.
pub fn setting(text: &str) -> Result<Setting, NotChanged> {
    match split_setting(text) {
        Some((key, value)) if !key.trim().is_empty() && !value.trim().is_empty() => {
            Ok(Setting::new(key.trim(), value.trim()))
        }
        _ => Err(NotChanged::new(
            format!("invalid setting {text:?}: expected KEY=VALUE"),
            "e.g. --set vm.dirty_background_bytes=64M",
        )),
    }
}

/// A change that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct NotChanged {
    what: String,
    /// Correct input to type instead.
    pub hint: String,
    /// What the refusal tells of the host.
    pub refusal: Refusal,
}

/// What a refused change tells of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Nothing: the change is wrong, or the model lacks it.
    Other,
    /// The change is in force already.
    InForce,
    /// The programs do not fit into the memory that the change leaves them.
    MemoryTooSmall,
}

impl NotChanged {
    pub(crate) fn new(what: impl Into<String>, hint: impl Into<String>) -> NotChanged {
        NotChanged { what: what.into(), hint: hint.into(), refusal: Refusal::Other }
    }

    /// The hint for a recording of this name.
    pub fn hint_for(&self, file: &str) -> String {
        self.hint.replace(&format!(" {FILE}"), &format!(" {file}"))
    }

    pub(crate) fn telling(self, refusal: Refusal) -> NotChanged {
        NotChanged { refusal, ..self }
    }
}

/// A twin after a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// The changed scenario.
    pub scenario: Scenario,
    /// The kernel that it runs on.
    pub kernel: KernelVersion,
}

/// Maps names of the host to those of the twin.
#[derive(Clone, Copy, Debug)]
pub struct Host<'a> {
    /// The recording, which holds numbers and names of devices.
    pub window: &'a Window,
    /// Tasks of the scenario that stand for journald.
    pub journald: &'a [String],
}

/// A hint has this word where the name of the recording belongs. [`NotChanged::hint_for`] puts it in.
const FILE: &str = "FILE";
const SHOWS_SETTINGS: &str = "floodline twin FILE -o - shows the settings of the recording";
const LISTS_NAMES: &str = "floodline twin FILE -o - lists the names of the recording";

const KNOWN: &str = "vm.dirty_bytes, machine.memory, cgroup=v2, kernel=6.12, bdi/8:0/max_ratio, \
    queue/sda/wbt_lat_usec, cgroup/PATH/memory.max, mount/PATH/options, loop/loop0/direct_io, journald/Storage";

/// Writeback settings that the model supports.
const VM: &[&str] = &[
    "vm.dirty_bytes",
    "vm.dirty_ratio",
    "vm.dirty_background_bytes",
    "vm.dirty_background_ratio",
    "vm.dirty_expire_centisecs",
    "vm.dirty_writeback_centisecs",
    "vm.dirtytime_expire_seconds",
    "vm.laptop_mode",
];

/// Applies settings to a scenario, in order.
///
/// # Errors
///
/// The kernel refuses a value, a name does not exist on this host, or nothing changes.
pub fn change(
    scenario: &Scenario,
    kernel: KernelVersion,
    settings: &[Setting],
    host: Host<'_>,
) -> Result<Changed, NotChanged> {
    let mut changed = Changed { scenario: scenario.clone(), kernel };
    for setting in settings {
        apply(&mut changed, setting, host)?;
    }
    if changed.scenario == *scenario && changed.kernel == kernel {
        let named: Vec<String> = settings.iter().map(|setting| format!("{}={}", setting.key, setting.value)).collect();
        return Err(NotChanged::new(
            format!("nothing changes: {} is in force already", named.join(", ")),
            SHOWS_SETTINGS,
        )
        .telling(Refusal::InForce));
    }
    // A scenario of the lab may run programs, which the model does not support before the change either.
    if let Err(error) = floodline_sim::check(&changed.scenario)
        && floodline_sim::check(scenario).is_ok()
    {
        return Err(NotChanged::new(error.to_string(), unsupported(&error)));
    }
    fitting(scenario, &changed.scenario)?;
    let behaviour = Behaviour::of(changed.kernel);
    for (name, device) in &changed.scenario.machine.devices {
        if let Some(knob) = device.bdi.missing_on(&behaviour) {
            return Err(NotChanged::new(
                format!("kernel {} has no {knob}, which {name} needs", changed.kernel),
                "use max_ratio, or a kernel since 6.2",
            ));
        }
    }
    Ok(changed)
}

/// What to type instead of a setting that the model does not support.
fn unsupported(error: &SimError) -> String {
    let values = match error {
        SimError::NotHonoured(keys) => keys.iter().find_map(values_of),
        _ => None,
    };
    match values {
        Some(values) => format!("it takes {values}"),
        None => "choose a value that the model supports, or another key".to_owned(),
    }
}

/// Values of a key of which the model supports only some.
fn values_of(key: &UsedKey) -> Option<&'static str> {
    (key.pattern == "machine.devices.*.queue.scheduler").then_some("none, mq-deadline, kyber or bfq")
}

/// The name under which two settings are the same one: bytes and ratio of a threshold exclude each other.
fn name_of(key: &str) -> String {
    let key = key.strip_prefix("machine.sysctl.").or_else(|| key.strip_prefix("machine.")).unwrap_or(key);
    let key = if key == "cgroup_mode" { "cgroup" } else { key };
    let stem = key.strip_prefix("vm.dirty_").and_then(|rest| rest.strip_suffix("bytes").or(rest.strip_suffix("ratio")));
    stem.map_or_else(|| key.to_owned(), |stem| format!("vm.dirty_{stem}"))
}

/// Refuses a setting that is given twice, as `apply` does.
///
/// # Errors
///
/// Two settings have one name, or are the bytes and the ratio of one threshold.
pub(crate) fn unambiguous(settings: &[Setting]) -> Result<(), NotChanged> {
    for (at, setting) in settings.iter().enumerate() {
        // Of a pair, 0 says that the other member is in force.
        let is_other = |other: &&Setting| {
            let is_void = other.key != setting.key && (other.value == "0" || setting.value == "0");
            name_of(&other.key) == name_of(&setting.key) && !(is_void && setting.key.contains("dirty_"))
        };
        if let Some(other) = settings[..at].iter().find(is_other) {
            return Err(NotChanged::new(
                format!("{}={} and {}={} set the same", other.key, other.value, setting.key, setting.value),
                "keep one of them",
            ));
        }
    }
    Ok(())
}

/// Returns the error for a value that is not of the kind that its key takes.
fn invalid(setting: &Setting, expected: &str) -> NotChanged {
    NotChanged::new(format!("{}={}: expected {expected}", setting.key, setting.value), format!("keys: {KNOWN}"))
}

fn apply(changed: &mut Changed, setting: &Setting, host: Host<'_>) -> Result<(), NotChanged> {
    let (key, value) = (setting.key.as_str(), setting.value.as_str());
    let parts: Vec<&str> = key.split('/').collect();
    match parts.as_slice() {
        ["kernel"] => kernel(changed, setting),
        ["cgroup"] => {
            if value == "v1" {
                without_v2(&mut changed.scenario);
            }
            set(changed, "machine.cgroup_mode", value, setting)
        }
        ["memory" | "machine.memory"] => {
            set(changed, key, value, setting)?;
            fits_machine(changed.scenario.machine.memory.bytes(), setting, host.window)
        }
        [kind @ ("bdi" | "queue" | "loop"), name, knob] => {
            let device = device(&changed.scenario, name, host, setting)?;
            set(changed, &format!("{kind}/{device}/{knob}"), value, setting)?;
            // Both set the largest share of the device: the kernel keeps the one that was set last.
            if let Some(device) = changed.scenario.machine.devices.get_mut(&device).filter(|_| *kind == "bdi") {
                match *knob {
                    "max_ratio" => device.bdi.max_bytes = None,
                    "max_bytes" => device.bdi.max_ratio = None,
                    _ => {}
                }
            }
            Ok(())
        }
        ["cgroup", path @ .., "io.max", device, what] if !path.is_empty() => {
            let path = cgroup(&changed.scenario, &path.join("/"), setting, host)?;
            io_max::set(changed, &path, &format!("{device} {what}={value}"), setting, host)
        }
        ["cgroup", path @ .., file] if !path.is_empty() => {
            let path = cgroup(&changed.scenario, &path.join("/"), setting, host)?;
            if *file == "io.max" {
                return io_max::set(changed, &path, value, setting, host);
            }
            set(changed, &format!("cgroup/{path}/{file}"), value, setting)?;
            keep_limit(&mut changed.scenario, &path, file);
            let limit = changed.scenario.machine.cgroups.get(&path).and_then(|cgroup| cgroup.memory_max);
            if *file != "memory.max" {
                return Ok(());
            }
            fits(&path, limit, setting, host.window)?;
            if let Some(SizeLimit::Size(limit)) = limit {
                keep_heap(&mut changed.scenario, &path, limit.bytes());
            }
            Ok(())
        }
        ["mount", path @ .., what] if !path.is_empty() => mounted(changed, (&path.join("/"), what), setting, host),
        ["journald", "Storage"] => journald(changed, value, host),
        _ if is_of_run(key) => Err(NotChanged::new(
            format!("{key}={value}: changes the run of the model, not the host"),
            format!("keys: {KNOWN}"),
        )),
        _ => match Member::of(&changed.scenario, key, host) {
            Some(member) => member.set(changed, setting, host.window),
            None => {
                let before = changed.scenario.clone();
                set(changed, key, value, setting)?;
                ceilings::replace(&before, &mut changed.scenario, key);
                Ok(())
            }
        },
    }
}

/// The steps of the twin that change limits.
fn changes_of_limits(scenario: &mut Scenario) -> impl Iterator<Item = &mut SetLimits> {
    let steps = scenario.workload.tasks.values_mut().flat_map(|task| &mut task.steps);
    steps.filter_map(|step| if let Step::SetLimits(set) = step { Some(set) } else { None })
}

/// Lets a limit stay as it is set. The twin changes the limits that changed on the host.
fn keep_limit(scenario: &mut Scenario, path: &str, file: &str) {
    for set in changes_of_limits(scenario).filter(|set| set.cgroup == path) {
        match file {
            "memory.max" => set.limits.memory_max = None,
            "memory.high" => set.limits.memory_high = None,
            "memory.low" => set.limits.memory_low = None,
            _ => {}
        }
    }
}

/// Lets the heap of a cgroup fit into a limit: a part of it are slabs, which give way.
fn keep_heap(scenario: &mut Scenario, path: &str, limit: u64) {
    let tasks = scenario.workload.tasks.values_mut().filter(|task| task.cgroup.as_deref() == Some(path));
    for step in tasks.flat_map(|task| task.setup.iter_mut().chain(&mut task.steps)) {
        if let Step::Anon(anon) = step {
            anon.size = ByteSize(Bytes(anon.size.bytes().min(heap_within(limit))));
        }
    }
}

/// Whether a key is of a run rather than of a machine or of a task: a run that is longer or has another seed does not
/// compare with the recording.
fn is_of_run(key: &str) -> bool {
    const KEYS: [&str; 6] = ["for", "seed", "instances", "workload.duration", "workload.seed", "workload.settle"];
    KEYS.contains(&key) || key == "expect" || key.starts_with("expect.")
}

fn kernel(changed: &mut Changed, setting: &Setting) -> Result<(), NotChanged> {
    let newest = || format!("a version such as 6.12; the newest kernel known here is {}", newest_modelled());
    let planned: Planned = setting.value.parse().map_err(|_| invalid(setting, &newest()))?;
    let kernel = planned.on(Some(changed.kernel));
    if !is_modelled(kernel) {
        return Err(NotChanged::new(
            format!("kernel {kernel} is older than {OLDEST_MODELLED}, the oldest kernel that the model supports"),
            format!("use --kernel {OLDEST_MODELLED} or newer"),
        ));
    }
    changed.kernel = kernel;
    Ok(())
}

/// Changes what the scenario's own key names. `setting` is what was asked for.
fn set(changed: &mut Changed, key: &str, value: &str, setting: &Setting) -> Result<(), NotChanged> {
    if let Some(name) = key.strip_prefix("vm.").filter(|_| !VM.contains(&key)) {
        let near = nearest(key, VM.iter().copied());
        return Err(NotChanged::new(
            format!("a twin has no setting vm.{name}"),
            near.map_or_else(|| format!("it has {}", VM.join(", ")), |near| format!("did you mean {near}?")),
        ));
    }
    let meant = format!("vm.{key}");
    if VM.contains(&meant.as_str()) {
        let hint = format!("did you mean {meant}={}?", setting.value);
        return Err(NotChanged::new(format!("{}={}: no such key", setting.key, setting.value), hint));
    }
    let refused = |why: &str| NotChanged::new(format!("{}={}: {why}", setting.key, setting.value), hint(why));
    changed.scenario = changed.scenario.changed(key, value).map_err(|error| refused(error.why()))?;
    Ok(())
}

/// Refuses a key that no twin has, whatever its host is. What [`change`] refuses because of the host is not refused here.
///
/// # Errors
///
/// The key is misspelt.
pub fn known_key(setting: &Setting) -> Result<(), NotChanged> {
    let Setting { key, value } = setting;
    let refused = |why: &str| NotChanged::new(format!("{key}={value}: {why}"), hint(why));
    if let Some(why) = unknown_host_key(key) {
        return Err(refused(&why));
    }
    if !key.starts_with("machine.") {
        return Ok(());
    }
    let machine = ScenarioFile::parse(ANY_MACHINE).ok().and_then(|mut file| file.variants.remove("default"));
    match machine.map(|machine| machine.changed(key, value)) {
        Some(Err(error)) if error.why().contains("unknown key") => Err(refused(error.why())),
        _ => Ok(()),
    }
}

/// A scenario that has nothing but what every scenario has.
const ANY_MACHINE: &str =
    "name = \"any\"\nsummary = \"any\"\n[machine]\nmemory = \"1 GiB\"\n[workload.tasks.any]\nsteps = [\"sync\"]\n";

fn hint(why: &str) -> String {
    if why.contains("(known here") || why.contains("did you mean") {
        return LISTS_NAMES.to_owned();
    }
    match why.contains("no such key") || why.starts_with("expected ") {
        true => format!("keys: {KNOWN}"),
        false => "choose a value that the kernel accepts, or another key".to_owned(),
    }
}

/// Whether a scenario has version 2 of cgroups.
pub fn is_unified(scenario: &Scenario) -> bool {
    scenario.machine.cgroup_mode == CgroupMode::V2
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_scenario::ScenarioFile;
    use floodline_testkit::Fixture;

    const BASE: &str = r#"
name = "twin"
summary = "a disk, a writer and a journal"
[machine]
memory = "2 GiB"
cgroup_mode = "v1"
sysctl.vm.dirty_ratio = 20
[machine.devices.sda]
size = "4 GiB"
write_bandwidth = "50 MB/s"
[machine.mounts."/rootfs"]
type = "ext4"
device = "sda"
[machine.cgroups."app.slice"]
memory_max = "256 MiB"
[workload]
duration = "5s"
[workload.tasks.w]
cgroup = "app.slice"
steps = [{ write = { file = "/rootfs/x", total = "1 MiB" } }]
[workload.tasks.journal]
steps = [{ write = { file = "/rootfs/j", total = "1 MiB" } }]
"#;

    fn base() -> Scenario {
        ScenarioFile::parse(BASE).unwrap().variants.remove("default").unwrap()
    }

    fn changed(settings: &[&str]) -> Result<Changed, NotChanged> {
        let window = Fixture::healthy().window();
        let journald = ["journal".to_owned()];
        let settings: Result<Vec<Setting>, NotChanged> = settings.iter().map(|text| setting(text)).collect();
        let host = Host { window: &window, journald: &journald };
        change(&base(), KernelVersion::new(6, 12, 0), &settings?, host)
    }

    #[test]
    fn a_scenario_whose_programs_only_the_lab_runs_is_changed_too() {
        let program = "[workload.tasks.real.program]\npackage = \"coreutils\"\ncommand = [\"true\"]\nexit_code = 0\n";
        let scenario = ScenarioFile::parse(&format!("{BASE}{program}")).unwrap().variants.remove("default").unwrap();
        assert!(floodline_sim::check(&scenario).is_err());
        let host = Host { window: &Fixture::healthy().window(), journald: &[] };
        let made = change(&scenario, KernelVersion::new(6, 12, 0), &[setting("vm.dirty_ratio=5").unwrap()], host);
        assert!(made.unwrap().scenario.to_toml().unwrap().contains("dirty_ratio = 5"));
    }

    #[test]
    fn a_limit_that_is_set_stays_as_it_is_set() {
        let host = Host { window: &Fixture::healthy().window(), journald: &[] };
        let tasks = "[workload.tasks.limits]\nsteps = [{ set_limits = { cgroup = \"app.slice\", limits = { memory_max = \
            \"64 MiB\", memory_high = \"32 MiB\" } } }]\n";
        let base = BASE.replace("\"v1\"", "\"v2\"");
        let scenario = ScenarioFile::parse(&format!("{base}{tasks}")).unwrap().variants.remove("default").unwrap();
        let steps = |text: &str| {
            let made = change(&scenario, KernelVersion::new(6, 12, 0), &[setting(text).unwrap()], host).unwrap();
            made.scenario.workload.tasks["limits"].steps.clone()
        };
        let limits = |memory_max: Option<&str>, memory_high: Option<&str>| {
            let size = |text: Option<&str>| text.map(|text| text.parse().unwrap());
            let limits = floodline_scenario::Cgroup {
                memory_max: size(memory_max),
                memory_high: size(memory_high),
                ..Default::default()
            };
            vec![Step::SetLimits(SetLimits { cgroup: "app.slice".to_owned(), limits })]
        };
        assert_eq!(steps("cgroup/app.slice/memory.max=256M"), limits(None, Some("32 MiB")));
        assert_eq!(steps("vm.dirty_ratio=5"), limits(Some("64 MiB"), Some("32 MiB")));
        assert_eq!(steps("cgroup=v1"), limits(Some("64 MiB"), None));
    }

    #[test]
    fn a_heap_fits_into_a_limit_that_is_set() {
        let heap = "[workload.tasks.heap]\ncgroup = \"app.slice\"\nsetup = [{ anon = { size = \"200 MiB\" } }]\nsteps = [{ \
            sleep = { for = \"5s\" } }]\n";
        let scenario = ScenarioFile::parse(&format!("{BASE}{heap}")).unwrap().variants.remove("default").unwrap();
        let host = Host { window: &Fixture::healthy().window(), journald: &[] };
        let held = |limit: &str| {
            let set = setting(&format!("cgroup/app.slice/memory.max={limit}")).unwrap();
            let made = change(&scenario, KernelVersion::new(6, 12, 0), &[set], host).unwrap();
            match &made.scenario.workload.tasks["heap"].setup[0] {
                Step::Anon(anon) => anon.size.bytes() >> 20,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!((held("1G"), held("100M"), held("max")), (200, 90, 200));
    }

    #[test]
    fn a_hint_names_the_recording_and_prints_the_twin() {
        let refused = changed(&["vm.dirty_ratio=20"]).unwrap_err();
        assert_eq!(refused.hint_for("db 1.flr"), "floodline twin db 1.flr -o - shows the settings of the recording");
    }

    #[test]
    fn the_share_of_a_device_is_the_one_that_was_set_last() {
        let made = changed(&["bdi/sda/max_bytes=16M", "bdi/sda/max_ratio=3"]).unwrap();
        let knobs = &made.scenario.machine.devices["sda"].bdi;
        assert_eq!((knobs.max_bytes, knobs.max_ratio), (None, Some(3)));
        let made = changed(&["bdi/sda/max_ratio=3", "bdi/sda/max_bytes=16M"]).unwrap();
        assert_eq!(made.scenario.machine.devices["sda"].bdi.max_ratio, None);
    }

    fn check(setting: &str, expect: Result<&str, &str>) {
        let told = changed(&[setting]).map(|changed| changed.scenario.to_toml().unwrap());
        match (told, expect) {
            (Ok(text), Ok(part)) => assert!(text.contains(part), "{setting}: {text}"),
            (Err(error), Err(part)) => {
                let told = format!("{error} | {}", error.hint);
                assert!(told.contains(part), "{setting}: {told}");
            }
            (told, expect) => panic!("{setting}: {told:?}, expected {expect:?}"),
        }
    }

    #[test]
    fn names_of_the_host_and_of_the_scenario_are_taken() {
        check("vm.dirty_bytes=64M", Ok("dirty_bytes = 67108864"));
        check("memory=8G", Ok("memory = \"8 GiB\""));
        check("memory=8589934592", Ok("memory = \"8 GiB\""));
        check("bdi/8:0/max_ratio=40", Ok("max_ratio = 40"));
        check("bdi/8:0/max_bytes=16777216", Ok("max_bytes = \"16 MiB\""));
        check("bdi/sda/strict_limit=1", Ok("strict_limit = true"));
        check("queue/sda/wbt_lat_usec=-1", Ok("wbt_latency = \"2 ms\""));
        check("cgroup/app.slice/memory.max=1G", Ok("memory_max = \"1 GiB\""));
        check("cgroup//app.slice/memory.max=536870912", Ok("memory_max = \"512 MiB\""));
        check("mount//options=noatime,lazytime", Ok("options = [\"noatime\", \"lazytime\"]"));
        check("mount//type=xfs", Ok("type = \"xfs\""));
        check("machine.devices.sda.write_bandwidth=90 MB/s", Ok("write_bandwidth = \"90 MB/s\""));
        let moved = changed(&["cgroup=v2", "kernel=6.1"]).unwrap();
        let newest = floodline_kernel::newest_of(floodline_record::version::Series(6, 1));
        assert!(is_unified(&moved.scenario) && moved.kernel == newest);
        let old = changed(&["kernel=6.1.0", "bdi/sda/max_bytes=64M"]).unwrap_err();
        assert_eq!(old.to_string(), "kernel 6.1.0 has no max_bytes, which sda needs");
        let volatile = changed(&["journald/Storage=volatile"]).unwrap();
        assert_eq!(volatile.scenario.workload.tasks.keys().collect::<Vec<_>>(), ["w"]);
    }

    #[test]
    fn a_setting_that_is_given_twice_is_refused() {
        let check = |settings: &[&str], is_good: bool| {
            let settings: Vec<Setting> = settings.iter().map(|text| setting(text).unwrap()).collect();
            assert_eq!(unambiguous(&settings).is_ok(), is_good, "{settings:?}");
        };
        check(&["vm.dirty_bytes=64M", "vm.dirty_background_bytes=16M"], true);
        check(&["vm.dirty_bytes=64M", "vm.dirty_bytes=32M"], false);
        check(&["vm.dirty_bytes=64M", "vm.dirty_ratio=5"], false);
        check(&["vm.dirty_bytes=64M", "vm.dirty_ratio=0"], true);
        check(&["vm.dirty_bytes=64M", "machine.sysctl.vm.dirty_bytes=32M"], false);
        check(&["memory=8G", "machine.memory=4 GiB"], false);
        check(&["kernel=6.1", "kernel=6.12"], false);
        check(&["cgroup/a/memory.max=1G", "cgroup/b/memory.max=1G"], true);
    }

    #[test]
    fn what_a_kernel_refuses_or_this_host_does_not_have_is_refused_with_what_to_type() {
        check("vm.dirty_bytes=1", Err("the kernel refuses 1 here (EINVAL)"));
        check("vm.dirty_ratio=20", Err("nothing changes: vm.dirty_ratio=20 is in force already"));
        check("vm.dirty_ratio", Err("expected KEY=VALUE"));
        check("bdi/8:99/max_ratio=40", Err("no device \"8:99\" that was written to | known here: sda"));
        check("queue/sda/depth=1", Err("expected wbt_lat_usec, scheduler or nr_requests"));
        check("queue/sda/scheduler=foo", Err("it takes none, mq-deadline, kyber or bfq"));
        for scheduler in ["mq-deadline", "kyber", "bfq"] {
            check(&format!("queue/sda/scheduler={scheduler}"), Ok(scheduler));
        }
        check("dirty_ratio=10", Err("did you mean vm.dirty_ratio=10?"));
        check("cgroup/ap.slice/memory.max=1G", Err("did you mean \"app.slice\"?"));
        check("kernel=3.10", Err("the oldest kernel that the model supports"));
        check("kernel=new", Err("expected a version"));
        check("colour=red", Err("no such key"));
        check("vm.dirty_ratio=20", Err("floodline twin FILE -o - shows"));
        check("for=3s", Err("changes the run of the model, not the host"));
        check("seed=3", Err("changes the run of the model, not the host"));
        check("mount//options=frobnicate", Err("a value that the model supports"));
        check("mount//options=volatile", Err("volatile is an option of overlay, and /rootfs is ext4"));
        check("mount//options=inode64", Err("inode64 is an option of xfs, and /rootfs is ext4"));
        check("mount//options=commit=30", Ok("commit=30"));
        check("journald/Storage=persistent", Err("a twin knows volatile and none"));
        check("queue/sda/wbt_lat_usec=2ms", Err("expected microseconds, or -1 | keys: "));
        check("mount//colour=red", Err("expected type or options | keys: "));
        check("loop/sda/direct_io=1", Err("loop/sda/direct_io=1: sda is not a loop device"));
        check("loop/loop0/direct_io=1", Err("no device \"loop0\""));
        check("machine.devices.sda.write_bandwidth=0 B/s", Err("nothing would ever complete"));
    }
}
