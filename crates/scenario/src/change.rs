// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario with one key changed, as a person writes it on a command line: `vm.dirty_bytes=256M`,
//! `machine.memory=8G`, `instances=500`. What comes out is checked like a file: a value that the kernel
//! would refuse is refused here with the kernel's rule.

use super::host_key;
use super::load::{DEFAULT_VARIANT, TEXT_MAX, of_tree};
use super::profile::FILLED;
use super::sysctl::EXCLUSIVE;
use super::text_bound::most_text;
use super::{ByteSize, Scenario, ScenarioFile, Time};
use floodline_record::nearest::nearest;
use toml::{Table, Value};

/// A change that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}={value}: {why}")]
pub struct NotAChange {
    key: String,
    value: String,
    why: String,
}

impl NotAChange {
    /// Description of the error, without the key and the value.
    pub fn why(&self) -> &str {
        &self.why
    }
}

/// Tables below `/proc/sys` that can be named without `machine.sysctl`.
const SYSCTLS: &[&str] = &["vm", "kernel", "fs", "net"];
/// Sizes as `dd` and systemd take them.
const SHORT_SIZES: &[(char, &str)] = &[('K', "KiB"), ('M', "MiB"), ('G', "GiB"), ('T', "TiB")];

/// What is wrong with a key of no kind.
pub(super) const NO_SUCH_KEY: &str =
    "no such key; write vm.dirty_bytes, machine.memory, bdi/NAME/max_ratio, workload.duration, instances, for or seed";

impl Scenario {
    /// The scenario with one key changed. `key` is a setting (`vm.dirty_ratio`), a key of the file
    /// (`machine.devices.data.write_bandwidth`), or `instances`, `for`, `seed`. `K`, `M`, `G`, `T` behind a
    /// number are KiB to TiB.
    pub fn changed(&self, key: &str, value: &str) -> Result<Scenario, NotAChange> {
        let wrong = |why: String| NotAChange { key: key.to_owned(), value: value.to_owned(), why };
        let value = long_size(value.trim());
        match key {
            "seed" => {
                let seed = value.parse().map_err(|_| wrong("a seed is a whole number".to_owned()))?;
                let mut changed = self.clone();
                changed.workload.seed = seed;
                return Ok(changed);
            }
            "for" => {
                let lasting: Time = value.parse().map_err(|error| wrong(format!("{error}")))?;
                let mut changed = self.clone();
                changed.workload.duration = Some(lasting);
                return changed.checked().map_err(wrong);
            }
            "instances" => {
                let instances = value.parse().map_err(|_| wrong("instances are a whole number".to_owned()))?;
                return self.with_instances(instances).map_err(wrong)?.checked().map_err(wrong);
            }
            _ => {}
        }
        if let Some(changed) = host_key::changed(self, key, &value) {
            return changed.map_err(wrong);
        }
        let path = if SYSCTLS.contains(&key.split('.').next().unwrap_or_default()) {
            format!("machine.sysctl.{key}")
        } else if ["machine.", "workload."].iter().any(|table| key.starts_with(table)) {
            key.to_owned()
        } else {
            return Err(wrong(NO_SUCH_KEY.to_owned()));
        };
        if let Some(changed) = self.with_machine(key, &path, &value) {
            return Ok(changed);
        }
        let tree = self.laid_over(key, &path, &value).map_err(wrong)?;
        let text = |tree: &Table| toml::to_string(tree).map_err(|error| wrong(error.to_string()));
        if most_text(&tree).is_none_or(|most| most > TEXT_MAX) {
            fitting(text(&tree)?.len()).map_err(wrong)?;
        }
        if let Some(changed) = of_tree(tree) {
            return Ok(changed);
        }
        // The text has a place for what is wrong.
        parse(&text(&self.laid_over(key, &path, &value).map_err(wrong)?)?).map_err(wrong)
    }

    /// The scenario with another value of a key of its machine. Only what the key may change is read again: of a host with hundreds of
    /// cgroups, tasks are most of a scenario. `None` if the key is not of the machine, or where something is wrong: then all of the
    /// changed scenario has to be read.
    fn with_machine(&self, key: &str, path: &str, value: &str) -> Option<Scenario> {
        let key_of_machine = path.strip_prefix("machine.")?;
        let mut before = self.without_tasks();
        let has_cgroups = !key_of_machine.starts_with("sysctl.");
        if !has_cgroups {
            before.machine.cgroups.clear();
        }
        let mut read: Scenario = before.laid_over(key, path, value).ok()?.try_into().ok()?;
        if !has_cgroups {
            read.machine.cgroups = self.machine.cgroups.clone();
        }
        // A path that names more than one key changes more than the machine.
        before.machine = read.machine.clone();
        if before != read {
            return None;
        }
        read.workload = self.workload.clone();
        read.ready().filter(|changed| most_text(changed).is_some_and(|most| most <= TEXT_MAX))
    }

    /// The tree of the scenario with another value of a key of the file. `key` is as a person wrote it.
    fn laid_over(&self, key: &str, path: &str, value: &str) -> Result<Table, String> {
        let mut tree = Table::try_from(self).map_err(|error| error.to_string())?;
        for (ratio, bytes) in EXCLUSIVE {
            for (one, other) in [(ratio, bytes), (bytes, ratio)] {
                if key == *one || key == format!("machine.sysctl.{one}") {
                    remove(&mut tree, &format!("machine.sysctl.{other}"));
                }
            }
        }
        if let Some(device) = path.strip_suffix(".profile") {
            FILLED.iter().for_each(|key| remove(&mut tree, &format!("{device}.{key}")));
        }
        let over = over(path, value).ok_or_else(|| not_a_path(&tree, key))?;
        named(&tree, &over)?;
        lay_over(&mut tree, over);
        Ok(tree)
    }

    /// The scenario with another number of copies of what has copies: of its cgroups, else of its tasks.
    fn with_instances(&self, instances: u32) -> Result<Scenario, String> {
        let mut changed = self.clone();
        let mut of_cgroups: Vec<_> =
            changed.machine.cgroups.values_mut().filter_map(|cgroup| cgroup.instances.as_mut()).collect();
        if of_cgroups.is_empty() {
            of_cgroups = changed.workload.tasks.values_mut().filter_map(|task| task.instances.as_mut()).collect();
        }
        if of_cgroups.is_empty() {
            return Err("nothing in the scenario has copies".to_owned());
        }
        of_cgroups.into_iter().for_each(|count| *count = instances);
        Ok(changed)
    }

    /// The same scenario after all the checks of a file.
    ///
    /// # Errors
    ///
    /// A file with this scenario would be refused.
    pub fn checked(&self) -> Result<Scenario, String> {
        let text = self.to_toml().map_err(|error| error.to_string())?;
        fitting(text.len())?;
        parse(&text)
    }
}

/// Refuses a changed scenario whose text no reader would take.
fn fitting(bytes: usize) -> Result<(), String> {
    match bytes <= TEXT_MAX {
        true => Ok(()),
        false => {
            Err(format!("the changed scenario would be a file of {bytes} bytes; a scenario has at most {TEXT_MAX}"))
        }
    }
}

fn parse(text: &str) -> Result<Scenario, String> {
    let mut file = ScenarioFile::parse(text).map_err(|error| {
        // The text is written here: its line numbers tell a reader nothing.
        let said = |problem: &super::Problem| match &problem.hint {
            Some(hint) => format!("{}: {} ({hint})", problem.key, problem.message),
            None => format!("{}: {}", problem.key, problem.message),
        };
        error.problems.iter().map(said).collect::<Vec<_>>().join("; ")
    })?;
    file.variants.remove(DEFAULT_VARIANT).ok_or_else(|| "the scenario has variants".to_owned())
}

/// `64M` as `64 MiB`; everything else as it is.
fn long_size(value: &str) -> String {
    let long = SHORT_SIZES.iter().find_map(|(letter, unit)| {
        let number = value.strip_suffix(*letter)?;
        format!("{number} {unit}").parse::<ByteSize>().ok().map(|_| format!("{number} {unit}"))
    });
    long.unwrap_or_else(|| value.to_owned())
}

/// The tables down to a key, with its value.
fn over(path: &str, value: &str) -> Option<Table> {
    // The file's own parser reads the path, quoted parts and all.
    let mut table: Table = toml::from_str(&format!("{path} = 0")).ok()?;
    let value = match (value.parse::<i64>(), value.parse::<bool>()) {
        (Ok(number), _) => Value::Integer(number),
        (_, Ok(flag)) => Value::Boolean(flag),
        _ => Value::String(value.to_owned()),
    };
    let mut here = &mut table;
    loop {
        let inner = here.iter_mut().next()?.1;
        match inner {
            Value::Table(next) => here = next,
            leaf => {
                *leaf = value;
                break;
            }
        }
    }
    Some(table)
}

/// What people name in a scenario: a change of one that is not there would make another, and change nothing.
const NAMED: &[(&str, &str, &str)] = &[
    ("machine", "devices", "device"),
    ("machine", "mounts", "mount"),
    ("machine", "cgroups", "cgroup"),
    ("workload", "tasks", "task"),
];

/// Names of the things of a kind.
fn names<'a>(of: &'a Table, above: &str, table: &str) -> Vec<&'a str> {
    let tables = of.get(above).and_then(|above| above.get(table)).and_then(Value::as_table);
    tables.into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

/// Why a text is not a path of keys. A name in it that is not a bare key needs quotes.
fn not_a_path(tree: &Table, key: &str) -> String {
    let quoted = NAMED.iter().find_map(|&(above, table, _)| {
        let rest = key.strip_prefix(above)?.strip_prefix('.')?.strip_prefix(table)?.strip_prefix('.')?;
        let below = |name: &str| rest.strip_prefix(name)?.strip_prefix('.').map(str::to_owned);
        let known = names(tree, above, table).into_iter().filter_map(|name| Some((name, below(name)?)));
        let (name, last) = known.max_by_key(|(name, _)| name.len())?;
        Some(format!("{above}.{table}.\"{name}\".{last}"))
    });
    match quoted {
        Some(quoted) => {
            format!("names with other characters than letters, digits, - and _ need quotes: write '{quoted}=…'")
        }
        None => format!("{key:?} is not a path of keys, such as machine.memory"),
    }
}

/// Whether all that a change names is there.
fn named(tree: &Table, over: &Table) -> Result<(), String> {
    for &(above, table, what) in NAMED {
        let known = names(tree, above, table);
        let unknown = names(over, above, table).into_iter().find(|name| !known.contains(name));
        let Some(unknown) = unknown else { continue };
        let meant = match nearest(unknown, known.iter().copied()) {
            Some(near) => format!(" (did you mean {near:?}?)"),
            None if known.is_empty() => String::new(),
            None => format!(" (known here: {})", known.iter().take(8).copied().collect::<Vec<_>>().join(", ")),
        };
        return Err(format!("no {what} is called {unknown:?}{meant}"));
    }
    Ok(())
}

fn lay_over(tree: &mut Table, over: Table) {
    for (key, value) in over {
        match (tree.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(over)) => lay_over(below, over),
            (_, value) => {
                tree.insert(key, value);
            }
        }
    }
}

fn remove(tree: &mut Table, path: &str) {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    match tree.get_mut(first) {
        Some(Value::Table(below)) if !rest.is_empty() => remove(below, rest),
        _ => {
            tree.remove(first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = r#"
name = "base"
summary = "a disk and a writer"
[machine]
memory = "2 GiB"
sysctl.vm.dirty_ratio = 20
[machine.devices.data]
size = "1 GiB"
[machine.mounts."/a.b"]
type = "ext4"
device = "data"
[machine.cgroups."box{i}"]
instances = 2
[workload]
duration = "5s"
[workload.tasks.w]
steps = [{ write = { file = "/a.b/x", total = "1 MiB" } }]
"#;

    fn check(change: &str, expect: Result<&str, &str>) {
        let scenario = parse(BASE).unwrap();
        let (key, value) = change.split_once('=').unwrap();
        let told = scenario.changed(key, value).map_err(|error| error.to_string());
        let told = told.map(|changed| changed.to_toml().unwrap());
        match (told, expect) {
            (Ok(text), Ok(part)) => assert!(text.contains(part), "{change}: {text}"),
            (Err(error), Err(part)) => assert!(error.contains(part), "{change}: {error}"),
            (told, expect) => panic!("{change}: {told:?}, expected {expect:?}"),
        }
    }

    #[test]
    fn settings_sizes_and_keys_of_the_file_can_be_changed() {
        check("vm.dirty_bytes=64M", Ok("dirty_bytes = 67108864"));
        check("vm.dirty_expire_centisecs=300", Ok("dirty_expire_centisecs = 300"));
        check("machine.memory=8G", Ok("memory = \"8 GiB\""));
        check("machine.devices.data.write_bandwidth=42 MB/s", Ok("write_bandwidth = \"42 MB/s\""));
        check("machine.mounts.\"/a.b\".type=xfs", Ok("type = \"xfs\""));
        check("instances=500", Ok("instances = 500"));
        check("for=1min", Ok("duration = \"1 min\""));
        check("seed=7", Ok("seed = 7"));
    }

    #[test]
    fn of_a_pair_the_last_written_stays() {
        let changed = parse(BASE).unwrap().changed("vm.dirty_bytes", "64M").unwrap();
        assert_eq!(changed.machine.sysctl.number("vm.dirty_ratio"), None);
        let back = changed.changed("machine.sysctl.vm.dirty_ratio", "5").unwrap();
        assert_eq!(back.machine.sysctl.number("vm.dirty_bytes"), None);
    }

    #[test]
    fn what_the_kernel_would_refuse_is_refused_with_its_rule() {
        check("vm.dirty_bytes=1", Err("the kernel refuses 1 here (EINVAL): it takes at least 8192"));
        check("vm.dirty_bytes=18446744073709551615", Err("refuses more than 2^32 - 1 pages (ERANGE)"));
        check("vm.dirty_ratio=101", Err("the kernel refuses 101 here (EINVAL): it takes 0 to 100"));
        check("vm.dirty_ratio=ten", Err("the kernel refuses ten here (EINVAL)"));
        check("machine.memory=1M", Err("no kernel boots in less than 16 MiB"));
        check("instances=10000000", Err("at most 65535 memory cgroups"));
        check("machine.devices.data.write_bandwidth=0 B/s", Err("nothing would ever complete"));
    }

    #[test]
    fn a_scenario_that_becomes_too_large_is_refused_with_its_size() {
        let mut scenario = parse(BASE).unwrap();
        let size = |scenario: &Scenario| scenario.to_toml().unwrap().len();
        scenario.about = Some("x".to_owned());
        scenario.about = Some("x".repeat(1 + TEXT_MAX - size(&scenario)));
        let told = |key: &str, value: &str| {
            scenario.changed(key, value).map(|changed| size(&changed)).map_err(|error| error.why().to_owned())
        };
        let too_large = |bytes: usize| {
            Err(format!("the changed scenario would be a file of {bytes} bytes; a scenario has at most {TEXT_MAX}"))
        };
        assert_eq!(told("machine.memory", "8 GiB"), Ok(TEXT_MAX));
        assert_eq!(told("machine.memory", "16 GiB"), too_large(TEXT_MAX + 1));
        assert_eq!(told("for", "50s"), too_large(TEXT_MAX + 1));
    }

    /// All scenarios of the program, and one with cgroups.
    fn every_scenario() -> Vec<Scenario> {
        let texts = crate::shipped::names().filter_map(|name| crate::shipped::text(std::path::Path::new(name)));
        let files = texts.map(|text| ScenarioFile::parse(text).expect("a scenario of the program"));
        let every: Vec<Scenario> = files.flat_map(|file| file.variants.into_values()).chain(parse(BASE)).collect();
        assert!(every.len() > 20, "{}", every.len());
        every
    }

    #[test]
    fn reading_parts_of_a_scenario_again_is_as_good_as_reading_all_of_it() {
        let mut made = 0;
        for scenario in every_scenario() {
            assert_eq!(scenario.reread(), of_tree(Table::try_from(&scenario).unwrap()), "{}", scenario.name);
            let (text, most) = (scenario.to_toml().unwrap().len(), most_text(&scenario).unwrap());
            assert!((text..text * 12).contains(&most), "{}: {text} and {most}", scenario.name);
            let device = scenario.machine.devices.keys().next().cloned().unwrap_or_default();
            let cgroup = scenario.machine.cgroups.keys().next().cloned().unwrap_or_default();
            for (key, value) in [
                ("machine.sysctl.vm.dirty_bytes".to_owned(), "67108864"),
                ("machine.sysctl.vm.dirty_background_ratio".to_owned(), "3"),
                ("machine.sysctl.vm.dirty_ratio".to_owned(), "101"),
                ("machine.memory".to_owned(), "16 GiB"),
                ("machine.memory".to_owned(), "1 MiB"),
                ("machine.cgroup_mode".to_owned(), "v1"),
                (format!("machine.devices.{device:?}.write_bandwidth"), "42 MB/s"),
                (format!("machine.devices.{device:?}.size"), "1 MiB"),
                (format!("machine.cgroups.{cgroup:?}.memory_max"), "64 MiB"),
                ("machine.cgroups.absent.memory_max".to_owned(), "64 MiB"),
                ("machine.memory = 1\nworkload.seed".to_owned(), "3"),
            ] {
                let whole = scenario.laid_over(&key, &key, value).ok().and_then(of_tree);
                let part = scenario.with_machine(&key, &key, value);
                made += usize::from(part.is_some());
                let is_one_key = !key.contains('\n');
                assert!(part == whole || (part.is_none() && !is_one_key), "{}: {key}={value}", scenario.name);
            }
        }
        assert!(made > 5 * 20, "{made}");
    }

    #[test]
    fn a_text_is_never_longer_than_its_bound() {
        for text in [BASE.to_owned(), BASE.replace("box{i}", "b\\u0001\\\\\\\"{i}")] {
            let scenario: Scenario = toml::from_str(&text).unwrap();
            let tree = Table::try_from(&scenario).unwrap();
            let (least, most) = (toml::to_string(&tree).unwrap().len(), most_text(&tree).unwrap());
            assert!((least..least * 12).contains(&most), "{least} and {most}");
        }
        for number in [1e300, f64::MIN, -f64::MIN_POSITIVE, -5e-324] {
            let numbers: Table = (0..100).map(|at| (format!("n{at}"), toml::Value::Float(number))).collect();
            let (least, most) = (toml::to_string(&numbers).unwrap().len(), most_text(&numbers).unwrap());
            assert!((least..least * 12).contains(&most), "{least} and {most} for {number}");
        }
    }

    #[test]
    fn what_is_no_key_or_no_value_is_said() {
        check("dirty_bytes=1G", Err("no such key; write vm.dirty_bytes"));
        check("machine.devices.dat.size=1G", Err("no device is called \"dat\" (did you mean \"data\"?)"));
        check("machine.mounts.\"/b\".type=xfs", Err("no mount is called \"/b\""));
        check("machine.cgroups.box.memory_max=1G", Err("no cgroup is called \"box\" (known here: box{i})"));
        check("workload.tasks.v.start=1s", Err("no task is called \"v\""));
        check("machine.colour=red", Err("colour"));
        check("machine.=1", Err("\"machine.\" is not a path of keys, such as machine.memory"));
        check("machine.mounts./a.b.type=xfs", Err("need quotes: write 'machine.mounts.\"/a.b\".type=…'"));
        check(
            "machine.cgroups.box{i}.memory_max=1G",
            Err("need quotes: write 'machine.cgroups.\"box{i}\".memory_max=…'"),
        );
        check("machine.devices.data.size=big", Err("\"big\" is not a size"));
        check("machine.memory=8388608 TiB", Err("\"8388608 TiB\" is too large for a size"));
        check("instances=many", Err("whole number"));
    }
}
