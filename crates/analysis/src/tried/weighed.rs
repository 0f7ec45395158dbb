// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plans that help on the twin and that a person has to weigh, and what such a candidate may cost. Runs nothing.

use super::is_exact;
use crate::judgement::{OF_RISK, SHORTEST_FELT_S};
use crate::plan::{PAIRS, set_aside};
use crate::prediction::{LEADS, Prediction, Row, differ, shown_value};
use crate::report::{Plan, Step};
use floodline_record::human;
use floodline_record::window::Window;

/// Why a plan that helps on the twin is for a person to weigh; `None` where the plan itself gives no reason.
pub(super) fn by_a_person(plan: &Plan) -> Option<String> {
    lowers_limit_for_risk(plan).or_else(|| flushes_for_risk(plan)).or_else(|| meets_full_disk(plan))
}

/// Why a plan that only puts less data at risk is for a person to weigh: it lowers the limit at which writers are paused, and no
/// finding of waits asks for that.
fn lowers_limit_for_risk(plan: &Plan) -> Option<String> {
    let is_limit = |name: String| PAIRS[0].contains(&name.as_str());
    let lowers = plan.steps.iter().filter_map(Step::sysctl).any(is_limit);
    let is_for_risk = !plan.rules.is_empty() && plan.rules.iter().all(|rule| *rule == OF_RISK);
    (is_for_risk && lowers).then(|| {
        "no finding is of waits, and writers are paused at the lower limit: less data at risk is for you to weigh"
            .to_owned()
    })
}

/// Why a plan that only puts less data at risk is for a person to weigh: it shortens the age of dirty data and leaves the background
/// threshold, so that all old data go to the disk at once. A sync waits behind them.
fn flushes_for_risk(plan: &Plan) -> Option<String> {
    let is_for_risk = !plan.rules.is_empty() && plan.rules.iter().all(|rule| *rule == OF_RISK);
    let sets = |names: &[&str]| plan.steps.iter().filter_map(Step::sysctl).any(|name| names.contains(&name.as_str()));
    let is_at_once = sets(&["vm.dirty_expire_centisecs"]) && !sets(PAIRS[1].as_slice());
    (is_for_risk && is_at_once).then(|| {
        "no finding is of waits, and old data go to the disk at once: less data at risk is for you to weigh".to_owned()
    })
}

/// Why a plan is for a person to weigh where programs dirty more than the disk writes: no setting makes the disk write more. Less data in
/// memory then means that programs wait for the disk instead.
fn meets_full_disk(plan: &Plan) -> Option<String> {
    plan.is_outrun.then(|| {
        "programs dirty more than the disk writes, so no setting ends their waits, and some may get longer".to_owned()
    })
}

/// Makes a change a candidate if it makes a wait longer on disks of a usual speed. `prediction` is that of a twin with such disks, where the
/// recording shows no speed.
pub fn on_usual_disks(plan: &mut Plan, prediction: &Prediction) {
    let waits = prediction.losses().into_iter().find(|row| row.unit == "seconds" && row.then >= SHORTEST_FELT_S);
    let missed = prediction.roughly_longer();
    let said = waits.map(Row::sentence).or_else(|| missed.map(Row::roughly_said));
    if let Some(said) = said.filter(|_| !prediction.is_cut && !is_exact(plan)) {
        plan.costs.insert(0, format!("On a slow disk: {said}."));
        set_aside(
            plan,
            "the disk was never full, so its speed is not known. On a slow disk, a wait gets longer".to_owned(),
        );
    }
}

/// Rules whose finding is that periodic writeback is off, or that data get old.
const OF_TIMER: [&str; 2] = ["contradictory-dirty-settings", OF_RISK];

/// Makes a change that switches periodic writeback on a candidate if the recording is shorter than the age at which data then go to the
/// disk. The trial of such a change ends before the first burst. A plan that ends another finding on the twin stays: that the timer is on
/// as well is no reason to wait with it.
pub fn of_short_look(plan: &mut Plan, window: &Window) {
    const PERIOD: &str = "vm.dirty_writeback_centisecs";
    let row = &window.host.last;
    let is_off = row.dirty_writeback_centisecs.is_some_and(|period| period.0 == 0);
    let set = |name: &str| {
        let step = plan.steps.iter().find(|step| step.sysctl().is_some_and(|set| set == name));
        step.and_then(|step| step.value.parse::<f64>().ok())
    };
    let expire = set("vm.dirty_expire_centisecs").or(row.dirty_expire_centisecs.map(|age| age.0 as f64));
    let Some((period, expire)) = set(PERIOD).filter(|_| is_off).zip(expire) else { return };
    let cycle_s = (period + expire) / 100.0;
    let ends_another = plan.tried.as_ref().is_some_and(|tried| {
        let is_other = |rule: &&str| !OF_TIMER.contains(rule) && plan.rules.contains(rule);
        tried.verdict == "helps" && tried.ended.iter().any(is_other)
    });
    if window.seconds() < cycle_s && !ends_another && !is_exact(plan) {
        let why = format!(
            "data then go to the disk once they are {} old, but the observation was shorter. Record for {} (--for)",
            human::seconds(cycle_s),
            human::seconds(2.0 * cycle_s)
        );
        set_aside(plan, why);
    }
}

/// What a candidate may cost, by its trial: waits that may grow although the most likely values fall, and writers that wait for a full
/// disk.
pub(super) fn costs(plan: &Plan, prediction: &Prediction) -> Vec<String> {
    let may_grow = LEADS.iter().filter_map(|name| prediction.rows.iter().find(|row| row.figure == *name));
    let may_grow = may_grow.filter(|row| row.unit == "seconds" && row.is_measured && may_grow_in_interval(row));
    let sentence = |row: &Row| {
        let (low, high) = (shown_value(row.unit, row.low), shown_value(row.unit, row.high));
        format!("{} {} → {low} to {high}", row.label, shown_value(row.unit, row.now))
    };
    let waits: Vec<String> = may_grow.take(2).map(sentence).collect();
    let full = "The disk stays full: programs wait for it instead of writing into memory.";
    let waits = (!waits.is_empty()).then(|| format!("A wait may get longer: {} (90 % interval).", waits.join("; ")));
    waits.into_iter().chain(plan.is_outrun.then(|| full.to_owned())).collect()
}

/// What gets or may get worse by a trial, the most important first and in words; `None` where the trial shows nothing of the kind. The second
/// is whether the trial has no reservation either, so that nothing gets worse by it.
pub fn price(prediction: &Prediction) -> (Option<String>, bool) {
    let sure = prediction.losses().first().map(|row| row.reserved());
    let rough = || prediction.roughly_longer().map(|row| format!("maybe {}", row.roughly_said()));
    let news = || prediction.appear.first().map(|seen| format!("{} appears", seen.rule));
    let wide = || costs(&Plan::default(), prediction).into_iter().next().map(|cost| bare(&cost));
    let cost = sure.or_else(rough).or_else(news).or_else(wide);
    let is_free = cost.is_none() && !prediction.is_cut && prediction.is_reliable() && prediction.reserve().is_none();
    (cost, is_free)
}

/// How the costs of a plan begin that its trial shows. The others are those of its findings.
const OF_TRIAL: [&str; 5] =
    [PREDICTED, "On the twin: ", "On a slow disk: ", "A wait may get longer: ", "The disk stays full"];
pub(super) const PREDICTED: &str = "Predicted: ";

/// The first cost that the trial of a plan shows, in words.
pub fn cost_of_trial(plan: &Plan) -> Option<String> {
    let of_rows = plan.tried.as_ref().and_then(|tried| tried.costs.first()).cloned();
    let is_of_trial = |cost: &&String| OF_TRIAL.iter().any(|start| cost.starts_with(start));
    of_rows.or_else(|| plan.costs.iter().find(is_of_trial).map(|cost| bare(cost)))
}

/// A cost within a sentence.
fn bare(cost: &str) -> String {
    cost.strip_prefix(PREDICTED).unwrap_or(cost).trim_end_matches('.').to_owned()
}

/// Whether a wait that gets shorter by its most likely value gets longer at the upper end of its interval.
fn may_grow_in_interval(row: &Row) -> bool {
    row.improves() && row.high > row.now && differ(row.least, row.now, row.high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prediction::{LONGEST, PEAK, WAITS};
    use crate::report::When;
    use floodline_record::version::KernelVersion;

    fn wait(figure: &str, label: &str, now: f64, then: f64, high: f64) -> Row {
        Row { low: then / 2.0, high, least: 0.02, ..Row::new(figure, label, "seconds", now, then) }
    }

    fn of(rows: Vec<Row>) -> Prediction {
        Prediction { rows, ..Prediction::new(Vec::new(), KernelVersion::new(6, 12, 0)) }
    }

    #[test]
    fn a_disk_that_programs_outrun_makes_any_change_one_for_a_person() {
        let plan = |is_outrun| Plan { rules: vec!["dirty-cliff"], is_outrun, ..Plan::default() };
        assert_eq!(by_a_person(&plan(false)), None);
        assert!(by_a_person(&plan(true)).is_some_and(|why| why.contains("dirty more than the disk writes")));
        let costs = costs(&plan(true), &of(vec![Row::new(PEAK, "peak data at risk", "bytes", 1e9, 1e8)]));
        assert_eq!(costs, ["The disk stays full: programs wait for it instead of writing into memory."]);
    }

    #[test]
    fn a_candidate_names_the_wait_that_may_grow_within_its_interval() {
        let all = |high| wait(WAITS, "waits of all tasks", 60.0, 31.0, high);
        let costs = |rows| costs(&Plan::default(), &of(rows));
        assert_eq!(
            costs(vec![all(240.0)]),
            ["A wait may get longer: waits of all tasks 60 s → 16 s to 4 min (90 % interval)."]
        );
        assert!(costs(vec![all(50.0)]).is_empty(), "the whole interval is below the present value");
        let both = vec![wait(LONGEST, "longest fsync", 3.95, 0.36, 6.42), all(240.0)];
        let told = costs(both).join(" ");
        assert!(told.contains("waits of all tasks") && told.contains("longest fsync"), "{told}");
    }

    #[test]
    fn a_trial_with_a_wide_interval_or_a_new_finding_is_not_free() {
        let all = |high| of(vec![wait(WAITS, "waits of all tasks", 60.0, 31.0, high)]);
        let (cost, is_free) = price(&all(240.0));
        assert!(cost.is_some_and(|cost| cost.starts_with("A wait may get longer") && !cost.ends_with('.')) && !is_free);
        assert_eq!(price(&all(50.0)).0, None);
        let news = crate::prediction::Seen { rule: "dirty-cliff", severity: crate::report::Severity::Info };
        let appears = price(&Prediction { appear: vec![news], ..all(50.0) });
        assert_eq!(appears, (Some("dirty-cliff appears".to_owned()), false));
        let costs = |cost: &str| {
            cost_of_trial(&Plan { costs: vec!["More is lost.".to_owned(), cost.to_owned()], ..Plan::default() })
        };
        assert_eq!(costs("Predicted: a appears.").as_deref(), Some("a appears"));
        assert_eq!(costs("On a slow disk: b.").as_deref(), Some("On a slow disk: b"));
        assert_eq!(costs("Of a rule."), None);
    }

    #[test]
    fn a_timer_that_is_switched_on_after_a_short_look_is_to_be_measured() {
        use floodline_record::units::Centisecs;
        use floodline_testkit::Fixture;
        let plan = |period: u64, seconds: u32, rules: &[&'static str], ended: &[&'static str]| {
            let host = Fixture::healthy().seconds(seconds).host(move |_, row| {
                row.dirty_writeback_centisecs = Some(Centisecs(period));
            });
            let window = host.window();
            let steps = crate::advise::step::sysctls(&window, &[("vm.dirty_writeback_centisecs", 500)]);
            let now = vec!["sudo sysctl -w vm.dirty_writeback_centisecs=500".to_owned()];
            let mut plan = Plan { now, steps, rules: rules.to_vec(), ..Plan::default() };
            let ended = ended.to_vec();
            plan.tried = Some(crate::report::TriedPlan { verdict: "helps", ended, ..Default::default() });
            of_short_look(&mut plan, &window);
            plan.candidate.map(|candidate| candidate.why)
        };
        let own = ["contradictory-dirty-settings"];
        let after = |period: u64, seconds: u32| plan(period, seconds, &own, &own);
        assert!(after(0, 20).is_some_and(|why| why.starts_with("data then go to the disk once they are 35 s old")));
        assert_eq!(after(0, 40), None);
        assert_eq!(after(6000, 20), None);
        let both = ["contradictory-dirty-settings", "dirty-cliff"];
        assert_eq!(plan(0, 20, &both, &["dirty-cliff"]), None, "it ends another finding");
        assert!(plan(0, 20, &both, &own).is_some(), "the other finding stays");
    }

    #[test]
    fn a_lower_limit_for_less_data_at_risk_is_for_a_person_to_weigh() {
        let told = |name: &str, rules: &[&'static str]| {
            let step = Step {
                write: format!("/proc/sys/vm/{name}"),
                value: "134217728".to_owned(),
                undo: String::new(),
                command: String::new(),
                when: When::Now,
            };
            lowers_limit_for_risk(&Plan { steps: vec![step], rules: rules.to_vec(), ..Plan::default() }).is_some()
        };
        assert!(told("dirty_bytes", &["dirty-data-at-risk"]));
        assert!(!told("dirty_background_bytes", &["dirty-data-at-risk"]), "no writer is paused earlier");
        assert!(!told("dirty_bytes", &["dirty-cliff", "dirty-data-at-risk"]), "it is for waits too");
    }

    #[test]
    fn a_shorter_age_alone_for_less_data_at_risk_is_for_a_person_to_weigh() {
        let told = |names: &[&str], rules: &[&'static str]| {
            let step = |name: &&str| Step {
                write: format!("/proc/sys/vm/{name}"),
                value: "3000".to_owned(),
                undo: String::new(),
                command: String::new(),
                when: When::Now,
            };
            let steps = names.iter().map(step).collect();
            flushes_for_risk(&Plan { steps, rules: rules.to_vec(), ..Plan::default() }).is_some()
        };
        assert!(told(&["dirty_expire_centisecs"], &["dirty-data-at-risk"]));
        let both = ["dirty_expire_centisecs", "dirty_background_bytes"];
        assert!(!told(&both, &["dirty-data-at-risk"]), "the flusher begins earlier as well");
        assert!(!told(&["dirty_writeback_centisecs"], &["dirty-data-at-risk"]), "no data become old by it");
        assert!(!told(&["dirty_expire_centisecs"], &["dirty-cliff", "dirty-data-at-risk"]), "it is for waits too");
    }

    #[test]
    fn a_burst_that_only_a_disk_without_a_limit_hides_makes_a_candidate() {
        let after = |then: f64| {
            let now = vec!["sudo sysctl -w vm.dirty_writeback_centisecs=500".to_owned()];
            let mut plan = Plan { now, rules: vec!["contradictory-dirty-settings"], ..Plan::default() };
            on_usual_disks(&mut plan, &of(vec![wait(LONGEST, "longest fsync", 0.003, then, then)]));
            plan
        };
        let plan = after(1.5);
        assert!(plan.now.is_empty() && plan.candidate.is_some(), "{plan:?}");
        assert_eq!(plan.costs, ["On a slow disk: longest fsync 3.00 ms → about 1.50 s."]);
        assert!(after(0.05).candidate.is_none(), "too short to be felt");
    }
}
