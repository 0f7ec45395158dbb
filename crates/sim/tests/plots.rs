// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plots of `docs/how-writeback-works.md`, drawn from runs of the model: dirty and written-back bytes over
//! time, as SVG of lines only. The test compares the files of the repository with the drawings; `FLOODLINE_DRAW=1`
//! writes them anew.

#![expect(clippy::disallowed_methods, reason = "plots are files")]

use floodline_record::record::Record;
use floodline_scenario::ScenarioFile;
use floodline_sim::{Options, simulate};
use std::fmt::Write;
use std::path::Path;

const WIDTH: u64 = 720;
const HEIGHT: u64 = 220;
const MARGIN: u64 = 40;

/// Nanoseconds, dirty bytes, bytes under writeback.
type Point = (u64, u64, u64);

fn series(text: &str, variant: &str, kernel: &str) -> Vec<Point> {
    let scenario = ScenarioFile::parse(text).expect("a scenario").variants.remove(variant).expect("its variant");
    let options = Options::new(variant, kernel.parse().expect("a version"));
    let mut points = Vec::new();
    let take = |record: Record| {
        if let Record::Sample(sample) = record {
            let bytes = |pages: Option<floodline_record::units::Pages>| pages.map_or(0, |pages| pages.0 * 4096);
            points.push((sample.time.monotonic.0, bytes(sample.host.nr_dirty), bytes(sample.host.nr_writeback)));
        }
        Ok(())
    };
    simulate(&scenario, &options, take, |_| true).expect("a run");
    points
}

/// A line through values, 0 at the bottom.
fn line(points: &[Point], value: impl Fn(&Point) -> u64, most: u64, colour: &str) -> String {
    let end = points.last().map_or(1, |point| point.0.max(1));
    let mut path = String::new();
    for point in points {
        let x = MARGIN + point.0 * (WIDTH - 2 * MARGIN) / end;
        let y = HEIGHT - MARGIN - value(point) * (HEIGHT - 2 * MARGIN) / most;
        let _ = write!(path, "{x},{y} ");
    }
    format!("<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" points=\"{}\"/>\n", path.trim_end())
}

fn svg(title: &str, points: &[Point]) -> String {
    let most = points.iter().map(|point| point.1.max(point.2)).max().unwrap_or(0).max(1);
    let seconds = points.last().map_or(0, |point| point.0) / 1_000_000_000;
    let (bottom, right) = (HEIGHT - MARGIN, WIDTH - MARGIN);
    let label =
        |x: u64, y: u64, fill: &str, text: &str| format!("<text x=\"{x}\" y=\"{y}\" fill=\"{fill}\">{text}</text>\n");
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <path d=\"M{MARGIN},{MARGIN} V{bottom} H{right}\" stroke=\"#888\" fill=\"none\"/>\n"
    );
    svg.push_str(&line(points, |point| point.1, most, "#c33"));
    svg.push_str(&line(points, |point| point.2, most, "#36c"));
    svg.push_str(&label(MARGIN, 16, "#222", title));
    svg.push_str(&label(MARGIN, 30, "#c33", &format!("dirty, at most {} MB", most / 1_000_000)));
    svg.push_str(&label(MARGIN + 160, 30, "#36c", "under writeback"));
    svg.push_str(&label(right - 30, HEIGHT - 24, "#222", &format!("{seconds} s")));
    svg.push_str("</svg>\n");
    svg
}

fn check(file: &str, title: &str, text: &str, variant: &str, kernel: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/plots").join(file);
    let drawn = svg(title, &series(text, variant, kernel));
    if std::env::var_os("FLOODLINE_DRAW").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, &drawn).expect("a file");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == drawn,
        "{file} is not what the model draws: FLOODLINE_DRAW=1 cargo test -p floodline-sim --test plots"
    );
}

#[test]
fn the_plots_of_the_documentation_are_what_the_model_draws() {
    check(
        "dirty-cliff.svg",
        "dirty-cliff incident-short, 6.12: all goes at expiry",
        include_str!("../../../scenarios/dirty-cliff.toml"),
        "incident-short",
        "6.12",
    );
    check(
        "dirty-cliff-remedy.svg",
        "dirty-cliff remedy-short, 6.12: a background threshold of a second of the disk",
        include_str!("../../../scenarios/dirty-cliff.toml"),
        "remedy-short",
        "6.12",
    );
    check(
        "pipeline.svg",
        "pipeline-20gb, 4.18: a volume without a history is flushed early, then at expiry",
        include_str!("../../../scenarios/pipeline-20gb.toml"),
        "default",
        "4.18",
    );
    check(
        "slow-disk.svg",
        "slow-disk-journal incident-short, 6.12: a hundred scattered pages, one by one",
        include_str!("../../../scenarios/slow-disk-journal.toml"),
        "incident-short",
        "6.12",
    );
}
