// SPDX-License-Identifier: MIT OR Apache-2.0
//! A change as requested: settings by `KEY=VALUE`, another kernel, cgroup version or memory. One value for the whole
//! fleet. Its effect on a host is decided per host.

use floodline_analysis::budget::AsIf;
use floodline_analysis::prediction::Setting;
use floodline_kernel::{OLDEST_MODELLED, Planned, is_modelled};
use floodline_record::nearest::nearest;
use floodline_record::text::Text;
use floodline_record::version::KernelVersion;
use floodline_twin::changed::{known_key, setting};

/// A planned change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// Every part of it, as the twin reads settings: `cgroup`, `kernel` and `memory` are settings, too.
    pub settings: Vec<Setting>,
    /// The parts that budgets depend on.
    pub(crate) as_if: AsIf,
    /// Keys that only a simulation can answer.
    pub(crate) simulated_only: Vec<String>,
}

/// A change that is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct NotAChange {
    what: String,
    /// Correct input to type instead.
    pub hint: String,
}

/// Pairs of settings of which writing one clears the other.
pub(crate) const PAIRS: [[&str; 2]; 2] =
    [["vm.dirty_ratio", "vm.dirty_bytes"], ["vm.dirty_background_ratio", "vm.dirty_background_bytes"]];
/// Settings of virtual memory that no budget depends on.
const SIMULATED_VM: [&str; 4] =
    ["vm.dirty_expire_centisecs", "vm.dirty_writeback_centisecs", "vm.dirtytime_expire_seconds", "vm.laptop_mode"];
/// Settings of virtual memory that budgets depend on.
const BUDGET_VM: [&str; 4] =
    ["vm.dirty_ratio", "vm.dirty_bytes", "vm.dirty_background_ratio", "vm.dirty_background_bytes"];
/// First parts of other keys that a twin reads.
const SIMULATED: [&str; 6] = ["bdi/", "queue/", "loop/", "mount/", "journald/", "machine."];

impl Change {
    /// Reads a change: settings as `KEY=VALUE`, and the three that have arguments of their own.
    ///
    /// # Errors
    ///
    /// A key is unknown, a value is not one that the kernel takes, or nothing is to change.
    pub fn parse<S: AsRef<str>>(
        settings: &[S],
        kernel: Option<&str>,
        cgroup: Option<&str>,
        memory: Option<&str>,
    ) -> Result<Change, NotAChange> {
        let mut change = Change::default();
        let named = [("kernel", kernel), ("cgroup", cgroup), ("memory", memory)];
        for (key, value) in named.into_iter().filter_map(|(key, value)| Some((key, value?))) {
            change.add(Setting::new(key, value.trim()))?;
        }
        for text in settings {
            let setting = setting(text.as_ref())
                .map_err(|error| NotAChange { what: error.to_string(), hint: error.hint.clone() })?;
            change.add(setting)?;
        }
        if change.settings.is_empty() {
            return Err(NotAChange {
                what: "no change is given".to_owned(),
                hint: "e.g. --cgroup v2, --kernel 6.12, --memory 8G or --set vm.dirty_ratio=10".to_owned(),
            });
        }
        Ok(change)
    }

    fn add(&mut self, setting: Setting) -> Result<(), NotAChange> {
        let setting = of_host(setting);
        let key = setting.key.as_str();
        if let Some(known) = self.settings.iter().find(|known| known.key == key && known.value != setting.value) {
            return Err(NotAChange {
                what: format!("{} is given twice: {} and {}", Text::new(key), known.value, setting.value),
                hint: "name each setting once".to_owned(),
            });
        }
        if let Some((other, value)) = self.contradicts(&setting) {
            return Err(NotAChange {
                what: format!(
                    "{} and {other} exclude each other: the kernel clears one when the other is written",
                    Text::new(key)
                ),
                hint: format!("name one of them, such as {other}={}", Text::new(value)),
            });
        }
        if SIMULATED_VM.contains(&key) || (is_simulated(key) && !is_arithmetic(key)) {
            known_key(&setting).map_err(|error| NotAChange {
                what: Text::new(error.to_string()).to_string(),
                hint: Text::new(&error.hint).to_string(),
            })?;
            self.simulated_only.push(key.to_owned());
        } else {
            if key.starts_with("vm.") && !BUDGET_VM.contains(&key) {
                let known = BUDGET_VM.into_iter().chain(SIMULATED_VM);
                let hint = nearest(key, known.clone()).map_or_else(
                    || format!("known: {}", known.collect::<Vec<_>>().join(", ")),
                    |near| format!("did you mean {near}?"),
                );
                return Err(NotAChange { what: format!("writeback does not depend on {}", Text::new(key)), hint });
            }
            self.assume(&setting)?;
        }
        self.settings.push(setting);
        Ok(())
    }

    /// The other of a pair of which only one can be in force, and its value, if both are to be set. Zero clears nothing.
    fn contradicts(&self, setting: &Setting) -> Option<(&str, &str)> {
        let pair = PAIRS.into_iter().find(|pair| pair.contains(&setting.key.as_str()))?;
        let is_set = |value: &str| value.trim() != "0";
        let is_other = |known: &&Setting| known.key != setting.key && pair.contains(&known.key.as_str());
        let other = self.settings.iter().find(is_other)?;
        (is_set(&setting.value) && is_set(&other.value)).then_some((other.key.as_str(), other.value.as_str()))
    }

    /// Adds a condition to those of the arithmetic.
    fn assume(&mut self, setting: &Setting) -> Result<(), NotAChange> {
        let planned = (setting.key == "kernel").then(|| setting.value.parse::<Planned>().ok()).flatten();
        if let Some(Planned { version, .. }) = planned.filter(|planned| !is_modelled(planned.version)) {
            return Err(NotAChange {
                what: format!(
                    "kernel {version} is older than {OLDEST_MODELLED}, the oldest kernel that the model supports"
                ),
                hint: format!("use --kernel {OLDEST_MODELLED} or newer"),
            });
        }
        let told: AsIf = format!("{}={}", setting.key, setting.value).parse().map_err(
            |error: floodline_analysis::budget::NotAsIf| NotAChange {
                what: Text::new(error.to_string()).to_string(),
                hint: match setting.key.as_str() {
                    "kernel" => format!("e.g. --kernel 6.12; the oldest is {OLDEST_MODELLED}"),
                    "cgroup" => "use --cgroup v2 or --cgroup v1".to_owned(),
                    "memory" => "e.g. --memory 8G".to_owned(),
                    key if key.ends_with("_bytes") => format!("e.g. --set {}=100M", Text::new(key)),
                    // A list of conditions is one value of --as-if and several options here.
                    _ if error.hint.contains(',') => "e.g. --set vm.dirty_ratio=10 --cgroup v2".to_owned(),
                    _ => Text::new(error.hint.replace("--as-if", "--set")).to_string(),
                },
            },
        )?;
        let AsIf { unified, kernel, settings, limits, memory } = told;
        self.as_if.unified = unified.or(self.as_if.unified);
        self.as_if.kernel = kernel.or(self.as_if.kernel);
        self.as_if.memory = memory.or(self.as_if.memory);
        self.as_if.settings.extend(settings);
        self.as_if.limits.extend(limits);
        Ok(())
    }

    /// The change in a few words (escaped), such as `cgroup v2, kernel 6.12.43`.
    pub fn label(&self) -> String {
        let newest = |setting: &Setting| {
            let planned = self.as_if.kernel.filter(|planned| setting.key == "kernel" && planned.told().is_some())?;
            Some(planned.version)
        };
        let part = |setting: &Setting| match setting.key.as_str() {
            key @ "kernel" => match newest(setting) {
                Some(newest) => format!("{key} {} (its newest known, {newest})", setting.value),
                None => format!("{key} {}", setting.value),
            },
            "cgroup" | "memory" => format!("{} {}", setting.key, setting.value),
            _ => format!("{}={}", setting.key, setting.value),
        };
        Text::new(self.settings.iter().map(part).collect::<Vec<_>>().join(", ")).to_string()
    }

    /// The kernel that a host has after the change, if the change names one. `now` is its present kernel.
    pub fn kernel_on(&self, now: Option<KernelVersion>) -> Option<KernelVersion> {
        Some(self.as_if.kernel?.on(now))
    }

    /// Whether the change requests the unified hierarchy; `None` if it names no cgroup version.
    pub fn unified(&self) -> Option<bool> {
        self.as_if.unified
    }

    /// Whether the change takes a reboot, so that the files read at boot decide what else is set.
    pub fn reboots(&self) -> bool {
        self.as_if.kernel.is_some() || self.as_if.unified.is_some() || self.as_if.memory.is_some()
    }
}

fn is_simulated(key: &str) -> bool {
    SIMULATED.iter().any(|prefix| key.starts_with(prefix)) || (key.starts_with("cgroup/") && !is_arithmetic(key))
}

/// The setting under the host's name for it, if its key is one of a scenario for a limit of memory or a setting of virtual memory.
fn of_host(setting: Setting) -> Setting {
    let of_cgroup = |key: &str| {
        let (path, limit) = key.strip_prefix("machine.cgroups.")?.rsplit_once('.')?;
        let file = match limit {
            "memory_max" => "memory.max",
            "memory_high" => "memory.high",
            _ => return None,
        };
        let quoted = ['"', '\''].into_iter().find_map(|quote| path.strip_prefix(quote)?.strip_suffix(quote));
        let path = quoted.unwrap_or(path).trim_start_matches('/');
        (!path.is_empty()).then(|| format!("cgroup/{path}/{file}"))
    };
    let of_vm = |key: &str| key.strip_prefix("machine.sysctl.").map(str::to_owned);
    match of_cgroup(&setting.key).or_else(|| of_vm(&setting.key)) {
        Some(key) => Setting { key, ..setting },
        None => setting,
    }
}

/// Whether a key of the machine or of a cgroup is one that budgets depend on.
fn is_arithmetic(key: &str) -> bool {
    matches!(key, "machine.memory" | "machine.cgroup_mode")
        || (key.starts_with("cgroup/") && (key.ends_with("/memory.max") || key.ends_with("/memory.high")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(settings: &[&str], kernel: Option<&str>, cgroup: Option<&str>, memory: Option<&str>) -> String {
        match Change::parse(settings, kernel, cgroup, memory) {
            Ok(change) => change.label(),
            Err(error) => format!("{error} | {}", error.hint),
        }
    }

    #[test]
    fn a_change_is_read_as_the_twin_reads_it() {
        assert_eq!(
            parse(&["vm.dirty_bytes=64M"], Some("6.12.43"), Some("v2"), Some("8G")),
            "kernel 6.12.43, cgroup v2, memory 8G, vm.dirty_bytes=64M"
        );
        let change = Change::parse(&["vm.dirty_expire_centisecs=100", "bdi/8:0/max_ratio=40"], None, None, None);
        assert_eq!(change.unwrap().simulated_only, ["vm.dirty_expire_centisecs", "bdi/8:0/max_ratio"]);
        let change = Change::parse(&["cgroup/app/memory.max=1G", "vm.dirty_ratio=10"], None, None, None).unwrap();
        assert_eq!((change.as_if.limits.len(), change.as_if.settings.len()), (1, 1));
        assert!(!change.reboots() && change.simulated_only.is_empty());
        // Keys of a scenario for the same settings.
        let keys = ["machine.cgroups.\"pods/app\".memory_high=1 GiB", "machine.sysctl.vm.dirty_ratio=10"];
        let change = Change::parse(&keys, None, None, None).unwrap();
        assert_eq!(change.label(), "cgroup/pods/app/memory.high=1 GiB, vm.dirty_ratio=10");
        assert_eq!((change.as_if.limits.len(), change.as_if.settings.len()), (1, 1));
        assert!(change.simulated_only.is_empty());
        let keys = ["machine.cgroups.'app'.memory_max=1G", "machine.cgroups.\"\".memory_max=1G"];
        assert_eq!(
            Change::parse(&keys, None, None, None).unwrap().label(),
            "cgroup/app/memory.max=1G, machine.cgroups.\"\".memory_max=1G"
        );
    }

    #[test]
    fn a_misspelt_key_is_refused_as_predict_refuses_it() {
        let told = |setting: &str| parse(&[setting], None, None, None);
        assert!(
            told("machine.foo=1").starts_with("machine.foo=1: machine.foo: unknown key \"foo\" (known here: memory,")
        );
        let of_queue = "queue/vda/foo=1: expected wbt_lat_usec, scheduler or nr_requests | keys: vm.dirty_bytes,";
        assert!(told("queue/vda/foo=1").starts_with(of_queue), "{}", told("queue/vda/foo=1"));
        assert!(told("bdi/vda/foo=1").starts_with("bdi/vda/foo=1: expected min_ratio, max_ratio, max_bytes,"));
        assert!(told("cgroup/x/foo=1").starts_with("cgroup/x/foo=1: expected io.max, memory.max,"));
        assert!(told("mount/data/foo=1").starts_with("mount/data/foo=1: expected type or options |"));
        assert!(told("bdi/vda=1").starts_with("bdi/vda=1: no such key; write vm.dirty_bytes,"));
        assert!(told("journald/Foo=volatile").contains("expected Storage"));
        // What depends on the host is left to the host.
        for good in [
            "machine.devices.vda.bdi.max_ratio=5",
            "machine.cpus=4",
            "queue/vda/scheduler=none",
            "bdi/8:0/strict_limit=1",
            "loop/loop0/direct_io=1",
            "cgroup/a/b/io.weight=50",
            "cgroup/a/b/io.max/8:0/wbps=1000000",
            "mount/overlay/options=volatile",
            "journald/Storage=volatile",
        ] {
            assert_eq!(told(good), good);
        }
    }

    #[test]
    fn what_no_host_can_take_is_refused_with_what_to_type() {
        let check = |told: String, expect: &str| assert!(told.contains(expect), "{told}");
        check(parse(&[], None, None, None), "no change is given | e.g. --cgroup v2");
        check(parse(&["vm.dirty_ratio"], None, None, None), "expected KEY=VALUE");
        check(parse(&["vm.dirty_ratoi=10"], None, None, None), "did you mean vm.dirty_ratio?");
        check(parse(&["vm.dirty_ratio=101"], None, None, None), "0 to 100");
        check(parse(&["vm.dirty_ratio=10", "vm.dirty_ratio=20"], None, None, None), "given twice");
        check(parse(&["vm.dirty_bytes=1"], None, None, None), "| e.g. --set vm.dirty_bytes=100M");
        let both = parse(&["vm.dirty_ratio=10", "vm.dirty_bytes=100M"], None, None, None);
        check(
            both,
            "exclude each other: the kernel clears one when the other is written | name one of them, such as vm.dirty_ratio=10",
        );
        let cleared = parse(&["vm.dirty_bytes=100M", "vm.dirty_ratio=0"], None, None, None);
        check(cleared, "vm.dirty_bytes=100M, vm.dirty_ratio=0");
        check(parse(&[], Some("new"), None, None), "use a version such as 6.12".trim_start_matches("use "));
        check(parse(&[], Some("2.6.18"), None, None), "| use --kernel 4.4 or newer");
        check(parse(&[], None, Some("v3"), None), "use --cgroup v2 or --cgroup v1");
        check(parse(&[], None, None, Some("lots")), "expected a size such as 8G or 8 GiB | e.g. --memory 8G");
        check(parse(&[], None, None, Some("8M")), "expected 64M or more");
        let bytes = |memory| Change::parse::<&str>(&[], None, None, Some(memory)).unwrap().as_if.memory;
        assert_eq!([bytes("8GB"), bytes("8GiB"), bytes("8G")], [Some(8_000_000_000), Some(8 << 30), Some(8 << 30)]);
        check(parse(&["colour=\u{1b}[2Jred"], None, None, None), "unknown condition");
        assert!(!parse(&["colour\u{1b}[2J=red"], None, None, None).contains('\u{1b}'));
    }

    #[test]
    fn a_series_is_its_newest_known_release_and_never_a_way_back() {
        let newest = floodline_kernel::newest_of(floodline_record::version::Series(6, 12));
        let change = Change::parse::<&str>(&[], Some("6.12"), None, None).expect("a change");
        assert_eq!(change.label(), format!("kernel 6.12 (its newest known, {newest})"));
        let on = |now: &str| change.kernel_on(now.parse().ok()).map(|kernel| kernel.to_string());
        assert_eq!(
            [on("5.10.223"), on("6.12.1"), on("6.12.999")],
            [&newest.to_string(), &newest.to_string(), "6.12.999"].map(|text| Some(text.to_owned()))
        );
        let exact = Change::parse::<&str>(&[], Some("6.12.0"), None, None).expect("a change");
        assert_eq!(
            (exact.label(), exact.kernel_on(None).map(|kernel| kernel.to_string())),
            ("kernel 6.12.0".to_owned(), Some("6.12.0".to_owned()))
        );
    }

    #[test]
    fn a_kernel_that_predict_refuses_is_refused() {
        let told = parse(&[], Some("3.2"), None, None);
        assert_eq!(
            told,
            "kernel 3.2.0 is older than 4.4, the oldest kernel that the model supports | use --kernel 4.4 or newer"
        );
        assert_eq!(parse(&["kernel=4.1"], None, None, None).split(" | ").nth(1), Some("use --kernel 4.4 or newer"));
    }
}
