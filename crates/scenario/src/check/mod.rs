// SPDX-License-Identifier: MIT OR Apache-2.0
//! What types cannot say: references, ranges, and what the kernel itself would refuse. All that is wrong
//! is collected, each with the path of its key.

mod bounds;
mod layers;
mod machine;
mod program;
mod shares;
mod workload;

use super::repair::is_named;
use super::{Expect, Scenario, load};
use floodline_record::nearest::nearest;
use std::collections::BTreeSet;

/// Something wrong at a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Complaint {
    pub(super) key: Vec<String>,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    /// Another key that would settle it, where that is not the key itself or one within it.
    pub(super) lacks: Option<Vec<String>>,
}

impl Complaint {
    /// Takes away the list of names that there are, where some were taken out.
    pub(super) fn without_list(&mut self) {
        let is_list = |hint: &String| LISTS.iter().any(|list| hint.starts_with(list));
        self.hint.take_if(|hint| is_list(hint));
    }
}

/// Beginnings of hints that list names.
const LISTS: &[&str] = &["known: ", "mounted: ", "this scenario has no "];

/// Most complaints about one scenario: a person reads no more, and each costs a search for its line.
pub(super) const COMPLAINTS_MAX: usize = 100;
/// Most names that a hint lists.
const LISTED_MAX: usize = 20;
/// Most names that one that names nothing is compared with, letter by letter.
const NEAREST_MAX: usize = 500;
/// Most comparisons of names for all variants of a file: where everything is compared with everything, a file of a
/// stranger would take minutes.
pub(super) const STEPS_MAX: usize = 4_000_000;

fn path(key: &[&str]) -> Vec<String> {
    key.iter().map(|&part| part.to_owned()).collect()
}

/// Collects complaints.
struct Complaints {
    found: Vec<Complaint>,
    /// Comparisons that are left.
    steps: usize,
    /// Whether they did not suffice; a complaint says so.
    is_spent: bool,
}

impl Complaints {
    fn add(&mut self, key: &[&str], message: impl Into<String>) {
        self.put(key, message.into(), None);
    }

    fn hint(&mut self, key: &[&str], message: impl Into<String>, hint: impl Into<String>) {
        self.put(key, message.into(), Some(hint.into()));
    }

    fn put(&mut self, key: &[&str], message: String, hint: Option<String>) {
        if self.found.len() < COMPLAINTS_MAX {
            self.found.push(Complaint { key: path(key), message, hint, lacks: None });
        }
    }

    /// Complains about the lack of another key.
    fn lack(&mut self, key: &[&str], message: impl Into<String>, hint: impl Into<String>, lacks: &[&str]) {
        if self.found.len() < COMPLAINTS_MAX {
            let (message, hint) = (message.into(), Some(hint.into()));
            self.found.push(Complaint { key: path(key), message, hint, lacks: Some(path(lacks)) });
        }
    }

    /// Takes comparisons from what is left. Returns `false`, with a complaint, when they are used up.
    fn spend(&mut self, steps: usize) -> bool {
        if let Some(left) = self.steps.checked_sub(steps) {
            self.steps = left;
            return true;
        }
        if !self.is_spent {
            self.is_spent = true;
            let hint = "use instances for what is alike, and fewer variants";
            self.hint(&["workload"], "too many names that refer to others to check them all", hint);
        }
        false
    }

    /// Whether nothing more is looked for.
    fn is_full(&self) -> bool {
        self.is_spent || self.found.len() >= COMPLAINTS_MAX
    }

    /// Complains about a name that names nothing.
    fn unknown<'a>(&mut self, key: &[&str], what: &str, name: &str, known: impl Iterator<Item = &'a String> + Clone) {
        let hint = match nearest(name, known.clone().map(String::as_str).take(NEAREST_MAX)) {
            Some(near) => format!("did you mean {near:?}?"),
            None => {
                let count = known.clone().count();
                let listed: Vec<&str> = known.map(String::as_str).take(LISTED_MAX).collect();
                match count.saturating_sub(LISTED_MAX) {
                    _ if count == 0 => format!("this scenario has no {what}"),
                    0 => format!("known: {}", listed.join(", ")),
                    more => format!("known: {} and {more} more", listed.join(", ")),
                }
            }
        };
        self.hint(key, format!("no {what} is called {name:?}"), hint);
    }
}

/// Everything wrong with a scenario that has the right types; `steps` is how many comparisons of names it may take.
pub(super) fn check(scenario: &Scenario, steps: usize) -> Vec<Complaint> {
    let mut complaints = Complaints { found: Vec::new(), steps, is_spent: false };
    if !load::is_kebab(&scenario.name) {
        complaints.hint(&["name"], "names of scenarios are kebab case", "write lower-case words joined by hyphens");
    }
    if scenario.summary.is_empty() || scenario.summary.len() > 200 || !is_shown(&scenario.summary) {
        complaints
            .add(&["summary"], "the summary is one line of at most 200 characters, none of them a control character");
    }
    if scenario.about.iter().flat_map(|about| about.lines()).any(|line| !is_shown(&line.replace('\t', " "))) {
        complaints.add(&["about"], "it contains control characters");
    }
    machine::check(&scenario.machine, &mut complaints);
    if complaints.found.is_empty() {
        layers::check(&scenario.machine, &mut complaints);
    }
    let of_machine = complaints.found.len();
    workload::check(scenario, &mut complaints);
    expect(&scenario.expect, &["expect"], &mut complaints);
    let (machine, rest) = complaints.found.split_at(of_machine);
    // A wrong group of cgroups may lack members that the rest names. All else that is wrong is there by its name.
    let is_group = |wrong: &Complaint| wrong.key.get(1).is_some_and(|table| table == "cgroups");
    let groups: Vec<&Complaint> = machine.iter().filter(|wrong| is_group(wrong)).collect();
    let is_repeated = |one: &Complaint| groups.iter().any(|wrong| is_named(&one.message, &wrong.key));
    machine.iter().chain(rest.iter().filter(|one| !is_repeated(one))).cloned().collect()
}

fn expect(expect: &Expect, at: &[&str], complaints: &mut Complaints) {
    for (name, bound) in &expect.figures {
        let key = [at, &["figures", name]].concat();
        match (bound.min, bound.max) {
            (None, None) => complaints.add(&key, "a bound has a min, a max, or both"),
            (Some(min), Some(max)) if min.0 > max.0 => complaints.add(&key, "min is above max: nothing is within"),
            _ => {}
        }
    }
    let not_found: BTreeSet<&String> = expect.not_found.iter().flatten().collect();
    for name in expect.found.iter().flatten() {
        if not_found.contains(name) {
            complaints.add(&[at, &["found"]].concat(), format!("{name} must be found and must not"));
        }
    }
    for (kernels, inner) in &expect.kernels {
        let name = kernels.to_string();
        let key = [at, &["kernels", &name]].concat();
        if !inner.kernels.is_empty() {
            complaints.add(&key, "kernels within kernels");
        }
        if at.len() == 1 {
            self::expect(inner, &key, complaints);
        }
    }
}

/// Longest path of a kernel, with the byte that ends it.
const PATH_MAX: usize = 4096;

/// Whether a path is absolute and says what it means: no empty, `.` or `..` parts.
fn is_plain_path(path: &str) -> bool {
    wrong_with_path(path).is_none()
}

/// Why a path is not one that is absolute and says what it means, as the end of a sentence about it.
fn wrong_with_path(path: &str) -> Option<&'static str> {
    let Some(rest) = path.strip_prefix('/') else { return Some("is not an absolute path") };
    if !is_shown(path) {
        return Some("contains control characters");
    }
    if path.len() >= PATH_MAX {
        return Some("is longer than the 4095 bytes of a path");
    }
    if rest.split('/').any(|part| part == "." || part == "..") {
        return Some("has a part \".\" or \"..\": write the path without it");
    }
    (!rest.is_empty() && rest.split('/').any(str::is_empty)).then_some("has an empty part: a slash too many")
}

/// Whether a terminal can show a text as it is: no control characters, none that turn the direction of writing.
fn is_shown(text: &str) -> bool {
    let is_hidden =
        |c: char| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !text.chars().any(|c| c.is_control() || is_hidden(c))
}

/// The letters in braces of a path; `None` where a brace is not part of one.
fn letters(text: &str) -> Option<Vec<char>> {
    let mut letters = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let inner = rest.get(at..)?.strip_prefix('{')?;
        let letter = inner.chars().next()?;
        rest = inner.get(letter.len_utf8()..)?.strip_prefix('}')?;
        letters.push(letter);
    }
    Some(letters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ScenarioFile;

    #[test]
    fn a_plain_path_is_absolute_and_has_no_way_up() {
        for plain in ["/", "/data", "/data/a b/..c", "/data/...", "/{i}/x"] {
            assert!(is_plain_path(plain), "{plain:?}");
        }
        let up = ["..", "/..", "/data/..", "/data/../x", "/../etc", "/data/./x", "/."];
        let strange =
            ["", "data", "./data", "//", "/data/", "//etc", "/a\0b", "/a\nb", "/\u{1b}[2J", "/\u{202e}x", "-d/etc"];
        for path in up.iter().chain(&strange) {
            assert!(!is_plain_path(path), "{path:?}");
        }
        assert!(!is_plain_path(&format!("/{}", "x".repeat(4096))));
    }

    /// Every place of a path or a name, `@` being where a text goes.
    const PLACES: &[&str] = &[
        "[machine.mounts.\"@\"]\ntype = \"tmpfs\"",
        "[machine.mounts.\"/o\"]\ntype = \"overlay\"\noverlay = { lower = \"@\", upper = \"/u\", work = \"/w\" }",
        "[machine.mounts.\"/o\"]\ntype = \"overlay\"\noverlay = { lower = \"/l\", upper = \"@\", work = \"/w\" }",
        "[machine.mounts.\"/o\"]\ntype = \"overlay\"\noverlay = { lower = \"/l\", upper = \"/u\", work = \"@\" }",
        "[machine.devices.image]\nsize = \"1 GiB\"\nbacking = { loop = { file = \"@\" } }",
        "[machine.devices.\"@\"]\nsize = \"1 GiB\"",
        "[machine.cgroups.\"@\"]",
        "[workload.tasks.t]\nsteps = [{ mkdir = { path = \"@\" } }]",
        "[workload.tasks.t]\nsteps = [{ write = { file = \"@\", count = 1 } }]",
        "[workload.tasks.t]\nsteps = [{ rename = { from = \"/data/a\", to = \"@\" } }]",
        "[workload.tasks.t]\nsteps = [{ syslog = { socket = \"@\", messages = \"1/s\", message = \"100 B\" } }]",
        "[workload.tasks.t]\ncgroup = \"@\"\nsteps = [\"sync\"]",
        "[workload.tasks.t]\nprogram = { package = \"bash\", command = [\"a\"], ready = \"@\" }",
        "[workload.tasks.t]\nprogram = { package = \"bash\", command = [\"a\"], files = { \"@\" = \"x\" } }",
        "[workload.tasks.t]\nprogram = { package = \"@\", command = [\"a\"] }",
        "[variants.\"@\"]",
    ];

    fn read(place: &str, text: &str) -> Result<ScenarioFile, String> {
        let base = "[machine]\nmemory = \"1 GiB\"\n[machine.mounts.\"/data\"]\ntype = \"tmpfs\"\n\
                    [workload]\nduration = \"1s\"\n[workload.tasks.other]\nsteps = [\"sync\"]\n";
        let file = format!("name = \"s\"\nsummary = \"s\"\n{base}{}\n", place.replace('@', text));
        ScenarioFile::parse(&file).map_err(|error| error.to_string())
    }

    #[test]
    fn no_place_takes_a_way_up() {
        for place in PLACES {
            for text in ["..", "/data/..", "/data/../../etc/shadow", "../x", "/..", "a/../b"] {
                assert!(read(place, text).is_err(), "{text:?} in {place}");
            }
        }
        assert_eq!(read(PLACES[7], "/data/x").err(), None);
        assert_eq!(read(PLACES[6], "system/x").err(), None);
    }

    /// Files of a stranger that hold as much as fits: each is refused in a moment, with the limit that it meets.
    #[test]
    fn what_is_compared_with_everything_is_bounded() {
        let head = "name = \"s\"\nsummary = \"s\"\n[machine]\nmemory = \"1 GiB\"\n";
        let check = |file: String, expect: &str| {
            assert!(file.len() <= crate::TEXT_MAX, "{}", file.len());
            let Err(error) = ScenarioFile::parse(&file) else { panic!("it is good, and should be {expect}") };
            assert!(error.problems.len() <= 20 * COMPLAINTS_MAX, "{}", error.problems.len());
            let told = error.to_string();
            assert!(told.contains(expect), "{}", told.chars().take(2000).collect::<String>());
        };
        let many = |count: usize, piece: &dyn Fn(usize) -> String| (0..count).map(piece).collect::<String>();
        let task = "[workload]\nduration = \"1s\"\n[workload.tasks.t]\nsteps = [\"sync\"]\n";
        // Variants are the whole file each.
        let variants = many(20_000, &|n| format!("[variants.v{n}]\n"));
        check(format!("{head}{task}{variants}"), "20000 variants of a file of");
        // Steps times mounts.
        let mounts = many(4_000, &|n| format!("[machine.mounts.\"/{n:05}\"]\ntype = \"tmpfs\"\n"));
        let steps = many(1_500, &|_| "{ mkdir = { path = \"/z/z\" } },\n".to_owned());
        check(format!("{head}{mounts}[workload.tasks.t]\nsteps = [{steps}]\n"), "is on no filesystem of this machine");
        let steps = many(1_500, &|_| "{ mkdir = { path = \"/03999/z\" } },\n".to_owned());
        check(format!("{head}{mounts}[workload.tasks.t]\nsteps = [{steps}]\n"), "too many names that refer to others");
        // Tasks that wait for tasks.
        let chain = many(3_000, &|n| {
            format!("[workload.tasks.t{n:05}]\nsteps = [{{ wait_for = {{ task = \"t{:05}\" }} }}]\n", n + 1)
        });
        check(
            format!("{head}{chain}[workload.tasks.t03000]\nsteps = [\"sync\"]\n"),
            "too many names that refer to others",
        );
        // Members of a group of cgroups are found by their number, not by trying every copy.
        let group = "[machine.cgroups.\"b{i}\"]\ninstances = 65_535\n";
        let steps = many(20_000, &|_| "{ move_to = { cgroup = \"b65534\" } },\n".to_owned());
        check(
            format!("{head}{group}[workload.tasks.t]\nsteps = [{steps}{{ move_to = {{ cgroup = \"b65535\" }} }}]\n"),
            "no cgroup is called \"b65535\"",
        );
        let members = many(50_000, &|_| "\"d\",".to_owned());
        check(
            format!("{head}[machine.devices.a]\nbacking = {{ raid1 = {{ members = [{members}] }} }}\n{task}"),
            "raid1 needs 2 to 32 members",
        );
    }

    #[test]
    fn a_path_is_refused_for_what_is_wrong_with_it() {
        let check = |path: &str, expect: &str| assert_eq!(wrong_with_path(path), Some(expect), "{path:?}");
        check("data/x", "is not an absolute path");
        check("", "is not an absolute path");
        check("/data/../../etc/passwd", "has a part \".\" or \"..\": write the path without it");
        check("/data/\u{1b}[2Jx", "contains control characters");
        check("/data//x", "has an empty part: a slash too many");
        check(&format!("/{}", "x".repeat(PATH_MAX)), "is longer than the 4095 bytes of a path");
        let told = read(PLACES[8], "/data/../x").unwrap_err();
        assert!(told.contains("\"/data/../x\" has a part \".\" or"), "{told}");
    }

    #[test]
    fn what_is_wrong_many_times_is_told_a_few_times() {
        let branch = "[{ write = { file = \"/data/a\", depth = 0, count = 1 } }],";
        let told = read(PLACES[7], "/data/x").err();
        assert_eq!(told, None);
        let step = format!("{{ parallel = {{ branches = [{}] }} }}", branch.repeat(200));
        let place = format!("[workload.tasks.t]\nsteps = [{step}]");
        let base = "name = \"s\"\nsummary = \"s\"\n[machine]\nmemory = \"1 GiB\"\n[machine.mounts.\"/data\"]\n\
                    type = \"tmpfs\"\n[machine.devices.small]\nsize = \"1 MiB\"\nbdi.max_ratio = 50\n";
        let Err(error) = ScenarioFile::parse(&format!("{base}{place}\n")) else { panic!("it is good") };
        assert_eq!(error.problems.len(), 5, "{error}");
        let last = error.problems.last().and_then(|last| last.hint.clone()).unwrap_or_default();
        assert_eq!(last, "95 more places have the same problem; only the first 100 problems are looked for");
    }

    #[test]
    fn names_that_become_file_names_are_words() {
        for name in ["..", ".", "a..b", ".a", "-a", "a-", "a/b", "A", "6.12-", ""] {
            assert!(!load::is_kebab(name), "{name:?}");
        }
        assert!(load::is_kebab("on-6.12.43") && load::is_kebab("a"));
    }

    #[test]
    fn a_package_is_named_as_debians_policy_has_it() {
        let place = PLACES[14];
        let user = "[workload.tasks.t]\nprogram = { package = \"bash\", command = [\"a\"], user = \"@\" }";
        for name in ["", "-u", "a:b", "A", "a b", "../x", "0"] {
            assert!(read(user, name).is_err_and(|error| error.contains("is not the name of a user")), "{name:?}");
        }
        assert_eq!(read(user, "_apt").err(), None);
        for name in ["-o", "x", "Redis", "redis-", "redis/sid", "redis=1", "redis:amd64", "./x.deb", "^x", "x*", "--"] {
            assert!(read(place, name).is_err_and(|error| error.contains("is not the name of a package")), "{name:?}");
        }
        for name in ["redis-server", "g++", "libc6", "0ad"] {
            assert_eq!(read(place, name).err(), None, "{name}");
        }
    }
}
