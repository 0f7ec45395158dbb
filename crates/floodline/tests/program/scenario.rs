// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline scenario` from outside.

use crate::harness::{Run, floodline};
use std::path::PathBuf;

fn scenarios() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

/// Checks a file with this text; its name is cut out of what is printed.
fn check(text: &str, format: &str) -> Run {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("bad.toml");
    std::fs::write(&path, text).expect("written");
    let mut run = floodline(&["scenario", "check", path.to_str().expect("a plain path"), "--format", format]);
    run.stdout = run.stdout.replace(&format!("{}/", folder.path().display()), "");
    run
}

const BAD: &str = r#"name = "bad"
summary = "what people get wrong"

[machine]
memory = "4 GB"
sysctl.vm = { dirty_bytes = "4 KiB" }

[machine.devices.data]
size = "1 GiB"

[machine.mounts."/data"]
type = "ext4"
device = "dat"

[workload.tasks.writer]
steps = [{ write = { file = "/dat/x", total = "1 MiB" } }]
"#;

#[test]
fn everything_wrong_is_told_with_line_and_hint() {
    let run = check(BAD, "text");
    insta::assert_snapshot!(run, @r#"
    exit code 2
    --- stdout
    bad.toml:6:29: machine.sysctl.vm.dirty_bytes: the kernel refuses 4096 here (EINVAL): it takes at least 8192
    bad.toml:13:10: machine.mounts."/data".device: no device is called "dat"
      hint: did you mean "data"?
    bad.toml:16:20: workload.tasks.writer.steps[0].write: "/dat/x" is on no filesystem of this machine
      hint: mounted: /data
    --- stderr
    "#);
}

#[test]
fn problems_are_json_for_programs() {
    let run = check(BAD, "json");
    let told: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(told["schema"], "floodline.scenario/1");
    assert_eq!(told["problems"][1]["line"], 13);
    assert_eq!(told["problems"][1]["key"], "machine.mounts.\"/data\".device");
    assert_eq!(run.code, 2);
}

#[test]
fn a_file_that_cannot_be_read_does_not_keep_others_from_being_judged() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let put = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        path.to_str().expect("a plain path").to_owned()
    };
    let (binary, bad) = (put("binary.toml", b"\xff"), put("bad.toml", BAD.as_bytes()));
    let good = scenarios().join("healthy-idle.toml");
    let files = ["/no/such.toml", &binary, &bad, good.to_str().expect("a plain path")];
    let run = floodline(&[&["scenario", "check"], &files[..]].concat());
    assert_eq!(run.code, 2, "{run}");
    for part in
        ["cannot read /no/such.toml: ", "binary.toml is not UTF-8", "bad.toml:6:29: ", "healthy-idle.toml: good"]
    {
        assert!(run.stdout.contains(part), "without {part:?}: {run}");
    }
    let json = floodline(&[&["scenario", "check", "--format", "json"], &files[..]].concat());
    assert_eq!((json.code, json.stdout.lines().count()), (2, 4), "{json}");
    assert!(json.stdout.contains("\"unreadable\":\"cannot read /no/such.toml: "), "{json}");
    let list = floodline(&["scenario", "list", folder.path().to_str().expect("a plain path")]);
    assert_eq!(list.code, 2, "{list}");
    assert!(list.stderr.contains("bad.toml: 3 problems") && list.stderr.contains("binary.toml is not"), "{list}");
}

#[test]
fn findings_that_do_not_exist_and_keys_that_no_command_supports_are_told() {
    let text = |more: &str| {
        let (name, machine) = ("name = \"x\"\nsummary = \"x\"", "[machine]\nmemory = \"1 GiB\"\ncpus = 1");
        format!(
            "{name}\n{more}\n{machine}\n[workload]\n[workload.tasks.w]\nsteps = [{{ sleep = {{ for = \"1s\" }} }}]\n"
        )
    };
    let slip = check(&text("expect.found = [\"dirty-clif\"]"), "text");
    assert!(slip.code == 2 && slip.stdout.contains("did you mean dirty-cliff?"), "{slip}");
    assert!(!slip.stdout.contains("good"), "{slip}");
    let setting = check(&text("").replace("cpus = 1", "cpus = 1\nsysctl.vm.dirty_ration = 3"), "text");
    assert!(setting.stdout.contains("floodline simulate refuses this file (variant"), "{setting}");
    assert!(setting.stdout.contains("vm.dirty_ratio?"), "{setting}");
    let setting = check(&text("").replace("cpus = 1", "cpus = 1\nsysctl.vm.dirty_ration = 3"), "json");
    let told: serde_json::Value = serde_json::from_str(&setting.stdout).expect("JSON");
    assert_eq!(told["not_simulated"].as_object().map(serde_json::Map::len), Some(1), "{setting}");
    assert_eq!(check(&text(""), "text").code, 0);
    // Figures that no run has, and what is wrong beside them.
    let figures = "expect.figures.\"hosts.dirty_peak_bytes\".max = 1\nexpect.figures.\"b.write.max_seconds\".max = 1";
    let run = check(&text(figures), "text");
    let told = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(run.code, 2);
    assert!(told.contains("\"hosts.dirty_peak_bytes\" names no task; did you mean host?"), "{told}");
    assert!(told.contains("\"b.write.max_seconds\" names no task"), "{told}");
    let both = text("expect.found = [\"dirty-clif\"]")
        .replace("cpus = 1", "cpus = 1\nmounts.\"/d\" = { type = \"ext4\", device = \"none\" }");
    let run = check(&both, "text");
    let told = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("no device is called \"none\"") && told.contains("did you mean dirty-cliff?"), "{told}");
}

#[test]
fn hostile_text_reaches_no_terminal() {
    let run = check("name = \"\u{1b}[31mred\u{202e}\"\n\"\u{1b}]0;x\" = 1\n", "text");
    assert_eq!(run.code, 2);
    assert!(!run.stdout.contains('\u{1b}') && !run.stdout.contains('\u{202e}'), "{:?}", run.stdout);
}

#[test]
fn our_own_scenarios_are_good_and_listed() {
    let folder = scenarios();
    let folder = folder.to_str().expect("a plain path");
    let run = floodline(&["scenario", "list", folder]);
    let shipped = floodline(&["scenario", "list"]);
    assert_eq!(shipped.stdout, run.stdout, "the program has them all: {shipped}");
    let named = floodline(&["scenario", "show", "dirty-cliff", "--variant", "remedy"]);
    assert_eq!(named.code, 0, "{named}");
    let slip = floodline(&["scenario", "show", "dirty-clif", "--variant", "remedy"]);
    assert!(slip.code == 2 && slip.stderr.contains("a scenario of this program: dirty-cliff"), "{slip}");
    assert_eq!(run.code, 0, "{run}");
    for name in ["starved-budget", "dirty-cliff", "slow-disk-journal", "overlay-umount", "inode-switch-storm"] {
        assert!(run.stdout.contains(&format!("{name}\n")), "{run}");
        let run = floodline(&["scenario", "check", &format!("{folder}/{name}.toml")]);
        assert_eq!(run.code, 0, "{run}");
    }
}

#[test]
fn a_variant_is_shown_as_it_is_run_and_reads_back() {
    let path = scenarios().join("slow-disk-journal.toml");
    let path = path.to_str().expect("a plain path");
    let run = floodline(&["scenario", "show", path, "--variant", "remedy"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.contains("/run/log/journal/system.journal") && !run.stdout.contains("preset"), "{run}");
    let again = check(&run.stdout, "text");
    assert_eq!(again.code, 0, "{again}");
    let run = floodline(&["scenario", "show", path, "--variant", "remedy", "--format", "json"]);
    let shown: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(shown["variant"], "remedy");
    assert_eq!(shown["tasks"].as_array().map(Vec::len), Some(4));
}

#[test]
fn a_variant_that_is_not_there_is_answered_with_those_that_are() {
    let path = scenarios().join("overlay-umount.toml");
    let path = path.to_str().expect("a plain path");
    let run = floodline(&["scenario", "show", path, "--variant", "cure"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("its variants: incident, incident-short, neighbour, remedy"), "{run}");
    let run = floodline(&["scenario", "show", path]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("--variant incident | "), "{run}");
    let run = floodline(&["scenario", "show", "/nonexistent.toml"]);
    assert_eq!(run.code, 2);
}

#[test]
fn the_schema_is_json() {
    let run = floodline(&["scenario", "schema"]);
    let schema: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(schema["title"], "Floodline scenario");
}

/// Names of keys, of steps and of other words to choose from, in a schema.
fn words(schema: &serde_json::Value, found: &mut std::collections::BTreeSet<String>) {
    let choices = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    match schema {
        serde_json::Value::Object(object) => {
            for (key, inner) in object {
                match (key.as_str(), inner) {
                    ("properties", serde_json::Value::Object(properties)) => {
                        found.extend(properties.keys().cloned());
                        properties.values().for_each(|inner| words(inner, found));
                    }
                    ("enum", serde_json::Value::Array(values)) => found.extend(values.iter().filter_map(choices)),
                    ("const", value) => found.extend(choices(value)),
                    _ => words(inner, found),
                }
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| words(item, found)),
        _ => {}
    }
}

fn manual() -> String {
    std::fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios.md")).expect("it")
}

#[test]
fn the_manual_names_every_word_of_the_language() {
    let schema = serde_json::from_str(&floodline(&["scenario", "schema"]).stdout).expect("a schema");
    let mut found = std::collections::BTreeSet::new();
    words(&schema, &mut found);
    assert!(found.len() > 100, "{found:?}");
    let manual = manual();
    let is_named = |word: &String| manual.contains(&format!("`{word}`")) || manual.contains(&format!("`\"{word}\"`"));
    let missing: Vec<&String> = found.iter().filter(|word| !is_named(word)).collect();
    assert!(missing.is_empty(), "docs/scenarios.md does not explain {missing:?}");
}

#[test]
fn the_manuals_examples_are_good() {
    let manual = manual();
    let blocks: Vec<&str> = manual.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let [whole, programs @ ..] = &blocks[..] else { panic!("no example") };
    assert!(programs.len() > 1, "{blocks:?}");
    let run = check(whole, "text");
    assert_eq!((run.code, run.stdout.as_str()), (0, "bad.toml: good\n  incident, remedy\n"), "{run}");
    let variants = whole.find("[variants.incident]").expect("variants");
    for program in programs {
        let run = check(&format!("{}\n{program}", &whole[..variants]), "text");
        assert_eq!(run.code, 0, "{run}");
    }
}

#[test]
fn devices_are_listed_with_their_figures_and_where_they_are_from() {
    let run = floodline(&["scenario", "devices"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.contains("nvme-boot\n") && run.stdout.contains("iocost-benchmarks"), "{run}");
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 80), "{run}");
    assert!(run.stdout.contains(" MiB/s") && !run.stdout.contains(" MB/s"), "{run}");
    let run = floodline(&["scenario", "devices", "--format", "json"]);
    let first: serde_json::Value = serde_json::from_str(run.stdout.lines().next().expect("a line")).expect("JSON");
    assert_eq!((&first["name"], &first["write_requests_per_second"]), (&"hdd-5400".into(), &90.into()));
}
