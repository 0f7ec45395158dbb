// SPDX-License-Identifier: MIT OR Apache-2.0
//! Budgets under other conditions, in words.

use super::as_if::{AsIf, AsIfRow};
use super::as_if_strict::{names, strict_note};
use super::{Budgets, Flag, Scope};
use floodline_kernel::{Behaviour, Planned, is_newer_than_modelled};
use floodline_record::human;
use floodline_record::window::Window;

/// Effect of conditions that change nothing.
pub(super) const IN_FORCE: &str = "Nothing changes: each condition is in force on this host already.";

/// Names the machine and counts the cgroups of rows.
fn owners(rows: &[&AsIfRow]) -> String {
    let cgroups = rows.iter().filter(|row| row.cgroup.is_some()).count() as u64;
    let of_cgroups = human::plural(cgroups, "cgroup", "cgroups");
    match (rows.len() as u64 > cgroups, cgroups) {
        (true, 0) => "The machine".to_owned(),
        (true, _) => format!("The machine and {of_cgroups}"),
        (false, _) => of_cgroups,
    }
}

/// Whether a limit is new, or smaller by more than 1 %.
fn shrinks(row: &AsIfRow) -> bool {
    match (row.now_thresh_bytes, row.then_thresh_bytes) {
        (Some(now), Some(then)) => then < now - now / 100,
        _ => true,
    }
}

/// Effect of the conditions, in a sentence or two.
pub(super) fn headline(now: &Budgets, then: &Budgets, rows: &[AsIfRow]) -> String {
    let mut said = Vec::new();
    let cgroups = || rows.iter().filter(|row| row.cgroup.is_some());
    let limited = cgroups().filter(|row| row.then_thresh_bytes.is_some()).count() as u64;
    let were = cgroups().filter(|row| row.now_thresh_bytes.is_some()).count() as u64;
    let name = |row: &AsIfRow| row.container.clone().or_else(|| row.cgroup.clone()).unwrap_or_default();
    match (were, limited) {
        (0, 0) => {}
        (0, limited) => {
            let get = if limited == 1 { "gets" } else { "get" };
            said.push(format!("{} {get} a dirty limit", human::plural(limited, "cgroup", "cgroups")));
        }
        (were, 0) => {
            let lose = if were == 1 { "loses its dirty limit" } else { "lose their dirty limits" };
            said.push(format!("{} {lose}", human::plural(were, "cgroup", "cgroups")));
        }
        _ => {}
    }
    if let Some(least) = cgroups().filter(|row| row.then_thresh_bytes.is_some()).min_by_key(|row| row.then_thresh_bytes)
    {
        let bytes = least.then_thresh_bytes.unwrap_or(0);
        said.push(format!("the smallest limit is {} ({})", human::bytes(bytes as f64), name(least)));
    }
    let high = |budgets: &Budgets| budgets.global.thresh.map(|bound| bound.high.0);
    if let (Some(now), Some(then)) = (high(now), high(then))
        && now.abs_diff(then) > now / 100
    {
        let (now, then) = (human::bytes(now as f64), human::bytes(then as f64));
        said.push(format!("the machine's limit changes from {now} to {then}"));
    }
    let of = |word: &str| rows.iter().filter(|row| row.verdict == word).collect::<Vec<&AsIfRow>>();
    let ((over, over_now), slowed): ((Vec<&AsIfRow>, Vec<&AsIfRow>), _) =
        (of("over").into_iter().partition(|row| shrinks(row)), of("slowed"));
    let mut text = match said.is_empty() {
        true => "No limit changes by more than 1 %.".to_owned(),
        false => sentence(&said),
    };
    if !over.is_empty() {
        let (who, has) = (owners(&over), if over.len() == 1 { "has" } else { "have" });
        text.push_str(&format!(
            " {who} {has} held more dirty data than the new limit allows. The writers there will stop."
        ));
    } else if !over_now.is_empty() {
        let (who, has) = (owners(&over_now), if over_now.len() == 1 { "has" } else { "have" });
        text.push_str(&format!(
            " {who} {has} held more dirty data than the limit allows. The change does not make this limit smaller."
        ));
    } else if !slowed.is_empty() {
        let (who, has) = (owners(&slowed), if slowed.len() == 1 { "has" } else { "have" });
        text.push_str(&format!(" {who} {has} held so much dirty data that the writers there will be slowed."));
    } else {
        let strict = names(rows);
        match strict.is_empty() {
            true => text.push_str(" The dirty data seen here fits below every new limit."),
            false => text.push_str(&format!(
                " The dirty data seen here is below every new limit, but strict_limit pauses writers earlier on {}.",
                strict.join(", ")
            )),
        }
    }
    text
}

fn sentence(parts: &[String]) -> String {
    let mut text = parts.join("; ");
    if let Some(first) = text.get(..1).map(str::to_uppercase) {
        text.replace_range(..1, &first);
    }
    text.push('.');
    text
}

/// Notes to the rows.
pub(super) fn notes(as_if: &AsIf, window: &Window, then: &Budgets, rows: &[AsIfRow]) -> Vec<String> {
    let mut notes: Vec<String> = strict_note(rows).into_iter().collect();
    match then.scope {
        Scope::NoUnifiedHierarchy if as_if.unified == Some(false) => {
            notes.push("On cgroup version 1 no cgroup has a dirty limit of its own.".to_owned());
        }
        Scope::NoUnifiedHierarchy => {
            notes.push(
                "No cgroup has a dirty limit of its own then: add cgroup=v2 to see those of version 2.".to_owned(),
            );
        }
        Scope::KernelTooOld => notes.push("Kernels before 4.2 have no dirty limits of cgroups.".to_owned()),
        Scope::Unknown => notes.push("The cgroup setup was not read: add cgroup=v2 or cgroup=v1.".to_owned()),
        Scope::PerCgroup if then.cgroups.is_empty() => {
            notes.push("No memory cgroup was read here, so none gets a limit.".to_owned());
        }
        Scope::PerCgroup => {}
    }
    let small = then.cgroups.iter().filter(|budget| budget.outlook.flags.contains(&Flag::BelowLargestFolio)).count();
    if small > 0 {
        notes.push(format!(
            "{} a limit below one folio of 2 MiB: one store or write can exceed it.",
            human::plural(small as u64, "cgroup has", "cgroups have")
        ));
    }
    let facts = window.facts.as_ref();
    notes.extend(as_if.kernel.and_then(Planned::told).map(|told| format!("{told}.")));
    let kernel_then = as_if.kernel.map(|kernel| kernel.on(facts.and_then(|facts| facts.kernel)));
    if let Some(kernel) = kernel_then.filter(|kernel| is_newer_than_modelled(*kernel)) {
        notes.push(format!(
            "{kernel} is newer than the kernels that Floodline knows. It assumes that the arithmetic is unchanged."
        ));
    }
    let now = facts.and_then(|facts| Some((facts.kernel?, Behaviour::of_host(facts)?)));
    if let (Some((kernel, now)), Some(then)) = (now, kernel_then)
        && now.arithmetic != Behaviour::of(then).arithmetic
    {
        notes.push(format!(
            "The arithmetic of limits differs between the two kernels: floodline kernels {kernel} {then} lists how."
        ));
    }
    notes.push(
        "This is arithmetic: page cache, free memory and dirty pages are those of the last sample. To simulate the \
         change, use floodline predict."
            .to_owned(),
    );
    notes
}
