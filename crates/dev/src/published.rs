// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline-dev publish`: the figures of agreement in the documentation, rendered from `docs/agreement.json` between the
//! comments `<!-- agreement: NAME -->` and `<!-- agreement ends -->`. A test fails if a page and the artefact differ.

use crate::agreement::Verdict;
use crate::artefact::{self, Artefact, Compared, KINDS, Line, Sum};
use crate::input::shown;
use crate::{Answer, Failure};
use floodline_fleet::thousands;
use floodline_record::human;
use floodline_scenario::Figure;
use floodline_view::figures::short;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Pages with such figures, below the folder of the documentation.
pub(crate) const PAGES: &[&str] = &["how-well-the-model-agrees.md", "internals/model.md", "internals/validation.md"];
/// The artefact, below the folder of the documentation.
pub(crate) const ARTEFACT: &str = "agreement.json";

const BEGIN: &str = "<!-- agreement: ";
const END: &str = "<!-- agreement ends -->";
/// Number of misses that the page names.
const WORST: usize = 15;

/// Renders the figures of agreement in the documentation from docs/agreement.json
#[derive(clap::Args)]
#[command(
    after_help = "The pages change between the comments \"<!-- agreement: NAME -->\" and \"<!-- agreement ends -->\" only.\n\n\
        Examples:\n  \
        floodline-dev publish\n  \
        floodline-dev validate recordings/ --into docs/agreement.json && floodline-dev publish"
)]
pub(crate) struct Publish {
    /// Folder of the documentation
    #[arg(value_name = "FOLDER", default_value = "docs")]
    docs: PathBuf,
}

impl Publish {
    pub(crate) fn run(self) -> Result<Answer, Failure> {
        let artefact = artefact::read(&self.docs.join(ARTEFACT))?;
        let mut text = String::new();
        for name in PAGES {
            let path = self.docs.join(name);
            let unusable = |error| Failure::input(format!("cannot use {}: {error}", shown(&path)));
            let page = std::fs::read_to_string(&path).map_err(unusable)?;
            let rendered = page_of(&page, &artefact)?;
            let word = if page == rendered { "unchanged" } else { "written" };
            text.push_str(&format!("{}: {word}\n", shown(&path)));
            std::fs::write(&path, rendered).map_err(unusable)?;
        }
        Ok(Answer { text, is_as_expected: true })
    }
}

/// A page with its parts rendered anew.
pub(crate) fn page_of(page: &str, artefact: &Artefact) -> Result<String, Failure> {
    let mut text = String::new();
    let mut rest = page;
    while let Some(at) = rest.find(BEGIN) {
        let (before, from) = rest.split_at(at);
        let name = from[BEGIN.len()..].split(" -->").next().unwrap_or_default();
        // The end of a later part does not close this one.
        let own = from[BEGIN.len()..].find(BEGIN).map_or(from, |next| &from[..BEGIN.len() + next]);
        let Some(end) = own.find(END) else {
            return Err(Failure::input(format!("the part \"{name}\" of a page has no \"{END}\"")));
        };
        text.push_str(&format!("{before}{BEGIN}{name} -->\n\n{}\n{END}", part(name, artefact)?));
        rest = &from[end + END.len()..];
    }
    Ok(text + rest)
}

fn part(name: &str, artefact: &Artefact) -> Result<String, Failure> {
    Ok(match name {
        "unseen" => crate::unseen::table(&artefact.unseen),
        "unseen, short" => crate::unseen::summary(&artefact.unseen, &artefact.beside_unseen),
        "headline" => headline(artefact),
        "scenarios" => scenarios(artefact),
        "earlier" => earlier(artefact),
        "holds" => holds(artefact),
        "repeats" => repeats(artefact),
        "replay" => replay(artefact),
        "misses" => misses(artefact),
        "throttle" => throttle(artefact),
        "modules" => modules(artefact),
        "single runs" => rows("figure | measured on a real kernel | model", &artefact.single_runs),
        _ => return Err(Failure::input(format!("a page has an unknown part \"{name}\" of agreement figures"))),
    })
}

fn count(number: usize) -> String {
    thousands(u64::try_from(number).unwrap_or(u64::MAX))
}

fn percent(part: usize, whole: usize) -> String {
    match whole {
        0 => "–".to_owned(),
        _ => format!("{:.0} %", 100.0 * part as f64 / whole as f64),
    }
}

/// Number of figures, share within 10 %, median distance: three cells.
fn cells(lines: &[&Line]) -> String {
    let within = lines.iter().filter(|line| line.is_within()).count();
    let mut off: Vec<f64> = lines.iter().map(|line| line.off_share()).collect();
    off.sort_unstable_by(f64::total_cmp);
    let median = off.get(off.len() / 2).map_or("–".to_owned(), |off| format!("{:.1} %", off * 100.0));
    format!(" {} | {} | {median} |", count(lines.len()), percent(within, lines.len()))
}

fn by_cpu(name: &str, lines: &[&Line]) -> String {
    let (cpu, others): (Vec<&Line>, Vec<&Line>) = lines.iter().partition(|line| line.is_cpu_bound);
    format!("| {name} |{}{}\n", cells(&others), cells(&cpu))
}

const BY_CPU: &str = "figures | within 10 % | median off | CPU: figures | within 10 % | median off |\n\
                      |---|---:|---:|---:|---:|---:|---:|\n";

fn headline(artefact: &Artefact) -> String {
    let lines: Vec<&Line> = artefact.measured.figures().collect();
    let judged: Vec<&Line> = lines.iter().filter(|line| !line.is_cpu_bound).copied().collect();
    let within = |lines: &[&Line]| lines.iter().filter(|line| line.is_within()).count();
    let simulated = || artefact.measured.cases.iter().filter(|case| case.not_simulated.is_none());
    let recordings: usize = simulated().map(|case| case.recordings).sum();
    let kernels: BTreeSet<&str> = simulated().map(|case| case.kernel.as_str()).collect();
    let mut text = format!(
        "**{} of {} figures ({}) are within 10 % of the real mean.** These are the figures that an emulated CPU does not decide. \
         Of all figures,\n{} of {} ({}) are. {recordings} recordings of {} cases on {} were compared,\n\
         each case with the mean of {} seeds.\n\n| kind | {BY_CPU}",
        count(within(&judged)),
        count(judged.len()),
        percent(within(&judged), judged.len()),
        count(within(&lines)),
        count(lines.len()),
        percent(within(&lines), lines.len()),
        simulated().count(),
        kernels.into_iter().collect::<Vec<_>>().join(", "),
        artefact.measured.seeds,
    );
    for (kind, _) in KINDS {
        let of_kind: Vec<&Line> = lines.iter().filter(|line| line.kind() == *kind).copied().collect();
        text.push_str(&by_cpu(kind, &of_kind));
    }
    text + &by_cpu("**all**", &lines)
}

/// Kinds of waits whose agreement depends on the recording's moments of slow disks and late CPUs.
const WAITS: [&str; 3] = [
    "usual latencies of syncs and unmounts",
    "longest latencies of syncs and unmounts",
    "the slowest hundredth of the reads",
];

/// Table of waits with and without the recording's moments. Both halves count the same figures.
fn replay(artefact: &Artefact) -> String {
    let mut text =
        "| kind | figures | with the moments: within 25 % | within 2 × | without: within 25 % | within 2 × |\n\
                    |---|---:|---:|---:|---:|---:|\n"
            .to_owned();
    for kind in WAITS {
        let counts = |line: &&Line| line.kind() == kind && !line.is_cpu_bound && line.unreplayed.is_some();
        let lines: Vec<&Line> = artefact.measured.figures().filter(counts).collect();
        let told: Vec<f64> = lines.iter().map(|line| line.model[1] / line.real[1]).collect();
        let not_told: Vec<f64> = lines.iter().filter_map(|line| Some(line.unreplayed? / line.real[1])).collect();
        let within = |ratios: &[f64], fits: RangeInclusive<f64>| {
            percent(ratios.iter().filter(|ratio| fits.contains(ratio)).count(), lines.len())
        };
        let cells = [&told, &not_told].map(|ratios| [within(ratios, 0.75..=1.25), within(ratios, 0.5..=2.0)]).concat();
        text.push_str(&format!("| {kind} | {} | {} |\n", count(lines.len()), cells.join(" | ")));
    }
    text
}

/// Further keys from which a list of them is long.
const LONG_LIST: usize = 3;

fn scenarios(artefact: &Artefact) -> String {
    let mut text = format!("| scenario | {BY_CPU}");
    let same = |a: &Compared, b: &Compared| (&a.scenario, &a.variant) == (&b.scenario, &b.variant);
    for group in artefact.measured.cases.chunk_by(same) {
        let is_counted = |line: &&Line| line.verdict != Verdict::Negligible;
        let lines: Vec<&Line> = group.iter().flat_map(|case| &case.figures).filter(is_counted).collect();
        if !lines.is_empty() {
            text.push_str(&by_cpu(&format!("{} {}", group[0].scenario, group[0].variant), &lines));
        }
    }
    let left_out: Vec<&Compared> = artefact.measured.cases.iter().filter(|case| case.not_simulated.is_some()).collect();
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    for reason in left_out.iter().filter_map(|case| case.not_simulated.as_deref()) {
        *reasons.entry(shortened(reason)).or_default() += 1;
    }
    let recordings: usize = left_out.iter().map(|case| case.recordings).sum();
    if !left_out.is_empty() {
        text.push_str(&format!("\n{recordings} recordings of {} further cases are left out:\n\n", left_out.len()));
    }
    for (reason, number) in reasons {
        text.push_str(&format!("* {}: {reason}\n", human::plural(number, "case", "cases")));
    }
    text
}

/// A reason, of whose long list of keys only the first is named.
fn shortened(reason: &str) -> String {
    let mut parts = reason.split(", ");
    match (parts.next(), parts.count()) {
        (Some(first), more) if more >= LONG_LIST => format!("{first} and {more} more"),
        _ => reason.to_owned(),
    }
}

fn earlier(artefact: &Artefact) -> String {
    let earlier = &artefact.earlier;
    let (figures, agree): (u64, u64) =
        earlier.kinds.iter().fold((0, 0), |(figures, agree), sum| (figures + sum.figures, agree + sum.agree));
    let table = |heading: &str, sums: &[Sum]| {
        let line = |sum: &Sum| {
            let Sum { name, figures, agree, chance, miss, median_off_percent, cpu_bound } = sum;
            format!("| {name} | {figures} | {agree} | {chance} | {miss} | {median_off_percent:.1} % | {cpu_bound} |\n")
        };
        let lines: String = sums.iter().map(line).collect();
        format!(
            "| {heading} | figures | agree | chance | miss | median off | CPU |\n|---|---:|---:|---:|---:|---:|---:|\n{lines}"
        )
    };
    format!(
        "{} recordings of {} were compared. {}\nOf {} figures {} ({:.0} %) were within 10 %, {} more within twice the spread \
         of repeated real runs. *agree* counts both.\n\n{}\n{}",
        earlier.recordings,
        earlier.kernels.join(", "),
        earlier.origin,
        thousands(figures),
        thousands(earlier.within_tenth),
        100.0 * earlier.within_tenth as f64 / figures as f64,
        thousands(agree.saturating_sub(earlier.within_tenth)),
        table("kind", &earlier.kinds),
        table("scenario", &earlier.scenarios),
    )
}

/// Rows that agree, and rows, of all kernels and of the lines whose name begins so.
fn recomputed(artefact: &Artefact, name: &str) -> (u64, u64) {
    let lines = artefact.throttle.rows.iter().filter(|row| row.name.starts_with(name));
    lines.flat_map(|row| &row.counts).fold((0, 0), |(agree, of), count| (agree + count[0], of + count[1]))
}

fn holds(artefact: &Artefact) -> String {
    let of = |name| {
        let (agree, of) = recomputed(artefact, name);
        format!("{} of {} {name}s", thousands(agree), thousands(of))
    };
    format!(
        "* The throttle, recomputed from the fields of recorded rows, is exact for {}, {},\n  {} and {}.\n",
        of("rate"),
        of("base rate"),
        of("period"),
        of("pause")
    )
}

fn repeats(artefact: &Artefact) -> String {
    let lines: Vec<&Line> = artefact.measured.figures().collect();
    let of = |runs: usize| percent(lines.iter().filter(|line| line.real_runs == runs).count(), lines.len());
    let more = match lines.iter().filter(|line| line.real_runs > 2).count() {
        0 => String::new(),
        some => format!(", {} have more", percent(some, lines.len())),
    };
    let agree: Vec<&&Line> = lines.iter().filter(|line| line.verdict == Verdict::Agrees).collect();
    let within = agree.iter().filter(|line| line.is_within()).count();
    format!(
        "{} of the figures have one real run and no spread, {} have two{more}. Of the {} figures that agree, {} \
         are within 10 %, the rest within the spread.\n",
        of(1),
        of(2),
        count(agree.len()),
        count(within)
    )
}

fn misses(artefact: &Artefact) -> String {
    let mut worst: Vec<(&Compared, &Line)> = Vec::new();
    for case in &artefact.measured.cases {
        worst.extend(case.figures.iter().filter(|line| line.verdict == Verdict::Misses).map(|line| (case, line)));
    }
    worst.sort_by(|a, b| b.1.off_share().total_cmp(&a.1.off_share()));
    let mut text = format!(
        "{} figures miss. The {} farthest off:\n\n| scenario | kernel | figure | real | model | off |\n\
         |---|---|---|---:|---:|---:|\n",
        worst.len(),
        worst.len().min(WORST)
    );
    for (case, line) in worst.into_iter().take(WORST) {
        let value = |value: f64| short(Figure { value, unit: line.unit() });
        text.push_str(&format!(
            "| {} {} | {} | `{}` | {} | {} | {:.0} % |\n",
            case.scenario,
            case.variant,
            case.kernel,
            line.figure,
            value(line.real[1]),
            value(line.model[1]),
            line.off_share() * 100.0
        ));
    }
    text
}

fn throttle(artefact: &Artefact) -> String {
    let throttle = &artefact.throttle;
    let dashes = "---:|".repeat(throttle.kernels.len());
    let mut text = format!("| recomputed | {} |\n|---|{dashes}\n", throttle.kernels.join(" | "));
    for row in &throttle.rows {
        let counts: Vec<String> =
            row.counts.iter().map(|[agree, of]| format!("{} of {}", thousands(*agree), thousands(*of))).collect();
        text.push_str(&format!("| {} | {} |\n", row.name, counts.join(" | ")));
    }
    text
}

fn rows(heading: &str, rows: &[[String; 3]]) -> String {
    let lines: String = rows.iter().map(|row| format!("| {} |\n", row.join(" | "))).collect();
    format!("| {heading} |\n| --- | --- | --- |\n{lines}")
}

fn modules(artefact: &Artefact) -> String {
    let median = |kind: &str| {
        let sum = artefact.earlier.kinds.iter().find(|sum| sum.name == kind);
        sum.map_or("–".to_owned(), |sum| format!("{:.0} %", sum.median_off_percent))
    };
    let usual = median("usual latencies of syncs and unmounts");
    let longest = median("longest latencies of syncs and unmounts");
    rows("part | module | agreement with real kernels", &artefact.modules)
        .replace("{usual}", &usual)
        .replace("{longest}", &longest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn docs() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
    }

    fn kept() -> (String, Artefact) {
        let text = std::fs::read_to_string(docs().join(ARTEFACT)).expect("docs/agreement.json exists");
        let artefact = artefact::parse(&text).expect("docs/agreement.json is an artefact");
        (text, artefact)
    }

    #[test]
    fn the_pages_show_what_the_artefact_holds() {
        let (_, artefact) = kept();
        for name in PAGES {
            let page = std::fs::read_to_string(docs().join(name)).expect("the page exists");
            assert!(page.contains(BEGIN), "docs/{name} has no part that is rendered");
            let rendered = page_of(&page, &artefact).expect("the page can be rendered");
            let differs = page.lines().zip(rendered.lines()).find(|(is, ought)| is != ought);
            assert!(
                page == rendered,
                "docs/{name} differs from docs/agreement.json: run make validation; {differs:#?}"
            );
        }
    }

    #[test]
    fn a_part_without_its_own_end_is_refused() {
        let (_, artefact) = kept();
        for page in [format!("{BEGIN}headline -->\n"), format!("{BEGIN}headline -->\nprose\n{BEGIN}holds -->\n{END}\n")]
        {
            let error = page_of(&page, &artefact).expect_err("it has no end").to_string();
            assert!(error.contains("headline"), "{error}");
        }
    }

    #[test]
    fn the_artefact_is_as_it_is_written() {
        let (text, artefact) = kept();
        let is_same = artefact::text(&artefact).expect("text") == text;
        assert!(is_same, "docs/agreement.json was changed by hand: make validate writes it as it ought to be");
    }

    #[test]
    fn sums_are_those_of_their_lines() {
        let (_, artefact) = kept();
        let lines: Vec<&Line> = artefact.measured.figures().collect();
        let known: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
        assert!(lines.iter().all(|line| known.contains(&line.kind())));
        let counts = |sum: &Sum| [sum.figures, sum.agree, sum.chance, sum.miss, sum.cpu_bound];
        let add = |sums: &[Sum]| sums.iter().map(counts).fold([0; 5], |a, b| std::array::from_fn(|at| a[at] + b[at]));
        assert_eq!(add(&artefact.earlier.kinds), add(&artefact.earlier.scenarios));
        for sum in artefact.earlier.kinds.iter().chain(&artefact.earlier.scenarios) {
            assert_eq!(sum.agree + sum.chance + sum.miss, sum.figures, "{}", sum.name);
        }
        for row in &artefact.throttle.rows {
            assert_eq!(row.counts.len(), artefact.throttle.kernels.len(), "{}", row.name);
        }
    }

    #[test]
    fn a_hand_edit_of_a_page_is_undone() {
        let (_, artefact) = kept();
        let page = "before\n<!-- agreement: throttle -->\n99 % of 1,866\n<!-- agreement ends -->\nafter\n";
        let rendered = page_of(page, &artefact).expect("rendered");
        assert!(rendered.starts_with("before\n<!-- agreement: throttle -->\n\n| recomputed |"), "{rendered}");
        assert!(rendered.ends_with(" |\n\n<!-- agreement ends -->\nafter\n"), "{rendered}");
        assert!(!rendered.contains("99 % of"));
        assert_eq!(page_of(&rendered, &artefact).expect("again"), rendered);
        assert!(page_of("<!-- agreement: weather -->\n<!-- agreement ends -->", &artefact).is_err());
        assert!(page_of("<!-- agreement: throttle -->\n", &artefact).is_err());
    }
}
