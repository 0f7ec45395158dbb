// SPDX-License-Identifier: MIT OR Apache-2.0
//! A twin as text and as JSON: how far it is from its own recording, where its keys come from, and what it cannot know.

use crate::layout::{hanging, shortened};
use floodline_record::human;
use floodline_twin::backtest::{Figure, Tested, simulated_error};
use floodline_twin::{Origin, Twin};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Version of the JSON form.
pub const SCHEMA: &str = "floodline.twin/1";

/// Columns of a number.
const NUMBER: usize = 11;
/// Assumptions that are listed.
const ASSUMED_MAX: usize = 12;

/// For people: the error first. Without `details`, only the figures that miss.
pub fn text(twin: &Twin, tested: &[Tested<'_>], width: usize, details: bool) -> String {
    let width = width.clamp(60, 120);
    let mut out = String::new();
    let machine = &twin.scenario.machine;
    let head = format!(
        "Twin of {} on Linux {}: {}, {}, {}, {}.",
        human::seconds(twin.seconds),
        twin.kernel,
        human::plural(u64::from(machine.cpus), "CPU", "CPUs"),
        human::bytes(machine.memory.bytes() as f64),
        human::plural(machine.devices.len() as u64, "device", "devices"),
        human::plural(twin.programs.len() as u64, "program", "programs"),
    );
    hanging(&mut out, "", &head, width);
    for tested in tested {
        out.push('\n');
        backtest(&mut out, tested, width, details);
    }
    if tested.len() > 1 {
        let said = "Nothing was traced, so the demand of throttled writers is not known. The open twin begins each \
                    write at its recorded time. The closed twin begins it when the previous write has ended. The demand of \
                    the host lies between the two.";
        hanging(&mut out, "", said, width);
    }
    out.push_str("\nDevices\n");
    for ceiling in &twin.ceilings {
        hanging(&mut out, "  ", &format!("{}.", ceiling.text), width);
    }
    let count = |origin| twin.provenance.iter().filter(|known| known.origin == origin).count();
    let _ = writeln!(
        out,
        "\nOrigin of the keys: {} measured, {} derived, {} assumed",
        count(Origin::Measured),
        count(Origin::Derived),
        count(Origin::Assumed)
    );
    let assumed: Vec<_> = twin.provenance.iter().filter(|known| known.origin == Origin::Assumed).collect();
    for known in assumed.iter().take(ASSUMED_MAX) {
        hanging(&mut out, "  ", &format!("assumed {}: {}", known.key, known.text), width);
    }
    if let Some(more) = assumed.len().checked_sub(ASSUMED_MAX).filter(|more| *more > 0) {
        let _ = writeln!(out, "  and {more} more: --format json has all");
    }
    out.push_str("\nWhat this twin cannot know\n");
    for said in &twin.unknown {
        hanging(&mut out, "  ", said, width);
    }
    crate::run::simplified(&mut out, &twin.simplified, width);
    out
}

/// What a run of a twin is compared with.
fn title(tested: &Tested<'_>) -> String {
    match tested.recorded_on {
        None => format!("Back-test ({})", tested.demand),
        Some(kernel) => format!("Compared with the recording on Linux {kernel} ({})", tested.demand),
    }
}

fn backtest(out: &mut String, tested: &Tested<'_>, width: usize, details: bool) {
    let figures = match &tested.figures {
        Ok(figures) => figures,
        Err(why) => {
            hanging(out, "", &format!("{}: the model could not run this twin: {why}.", title(tested)), width);
            return;
        }
    };
    let near = figures.iter().filter(|figure| figure.is_predictable()).count();
    let said = format!(
        "{}: median {} {}, {near} of {} figures within 25 %.",
        title(tested),
        if tested.recorded_on.is_some() { "difference" } else { "error" },
        human::percent(simulated_error(figures).unwrap_or(0.0)),
        figures.len()
    );
    hanging(out, "", &said, width);
    if !details && near == figures.len() {
        return;
    }
    let room = width.saturating_sub(3 * (NUMBER + 1) + 2);
    let _ = writeln!(out, "  {:<room$} {:>NUMBER$} {:>NUMBER$} {:>NUMBER$}", "figure", "recorded", "twin", "off");
    for figure in figures.iter().filter(|figure| details || !figure.is_predictable()) {
        let name = shortened(&figure.name, room);
        let pad = room.saturating_sub(crate::layout::columns(&name));
        let off = if figure.is_predictable() { human::percent(figure.off_share) } else { far(figure.off_share) };
        let _ = writeln!(
            out,
            "  {name}{} {:>NUMBER$} {:>NUMBER$} {off:>NUMBER$}",
            " ".repeat(pad),
            amount(figure.real, figure.unit),
            amount(figure.simulated, figure.unit),
        );
    }
    if near < figures.len() {
        let rest = if details { "" } else { " The other figures: add --details." };
        hanging(out, "  ", &format!("* off by more than 25 %: floodline predict leaves it out.{rest}"), width);
    }
    // A small difference counts against a floor, not against the small value.
    let is_small = |figure: &Figure| {
        (figure.simulated - figure.real).abs() > 2.0 * figure.off_share * figure.real.abs() && figure.off_share > 0.0
    };
    if details && figures.iter().any(is_small) {
        hanging(out, "  ", "Values below 1 MiB or 20 ms count as 1 MiB or 20 ms in the last column.", width);
    }
}

fn far(share: f64) -> String {
    if share > 10.0 { "> 1000 % *".to_owned() } else { format!("{} *", human::percent(share)) }
}

fn amount(value: f64, unit: &str) -> String {
    match unit {
        "bytes" => human::bytes(value),
        "bytes_per_second" => human::bytes_per_second(value),
        "seconds" => human::seconds(value),
        _ => human::number(value),
    }
}

/// Renders the twin as JSON.
///
/// # Errors
///
/// None for a twin, whose parts all have a JSON form.
pub fn json(twin: &Twin, tested: &[Tested<'_>]) -> Result<String, serde_json::Error> {
    let tested: Vec<Value> = tested
        .iter()
        .map(|tested| {
            let figures = tested.figures.as_ref().ok().map(|figures| {
                figures
                    .iter()
                    .map(|figure| {
                        json!({
                            "name": figure.name,
                            "unit": figure.unit,
                            "recorded": figure.real,
                            "twin": figure.simulated,
                            "off_share": figure.off_share,
                            "is_predictable": figure.is_predictable(),
                        })
                    })
                    .collect::<Vec<_>>()
            });
            json!({
                "demand": tested.demand,
                "median_off_share": tested.figures.as_ref().ok().and_then(|figures| simulated_error(figures)),
                "figures": figures,
                "not_run": tested.figures.as_ref().err(),
                "scenario": tested.scenario,
            })
        })
        .collect();
    crate::json::line(&json!({
        "schema": SCHEMA,
        "kernel": twin.kernel.to_string(),
        "seconds": twin.seconds,
        "sample_interval_seconds": twin.every.as_secs_f64(),
        "twins": tested,
        "ceilings": twin.ceilings,
        "programs": twin.programs,
        "provenance": twin.provenance,
        "unknown": twin.unknown,
        "simplified": twin.simplified,
    }))
}
