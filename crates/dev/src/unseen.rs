// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scores of the model on recordings of machines that were not seen before: one line of `docs/agreement.json` for each comparison, from
//! which the tables of the summary and of the notes are rendered. Figures that an emulated CPU decides are left out.

use crate::artefact::{Line, Measured};
use floodline_fleet::thousands;
use serde::{Deserialize, Serialize};

/// The score of one or more rounds.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Unseen {
    /// Names of the rounds.
    pub(crate) rounds: String,
    /// Load average of the host during the runs, and what else was special.
    pub(crate) load: String,
    /// Recordings that the model simulates, of all recordings.
    pub(crate) simulated: String,
    /// Bytes and throughput within 10 % and 25 %, longest waits for syncs and unmounts within 25 % and a factor of two, slowest reads
    /// within a factor of two, levels within 10 %, all figures within 10 %. The first of a kind has its number.
    pub(crate) cells: [String; 7],
}

/// Shares that are wanted, in the order of [`Unseen::cells`].
const TARGET: [&str; 7] = ["85 %", "97 %", "60 %", "95 %", "80 %", "", ""];

const BYTES: [&str; 2] = ["bytes dirtied, written and read", "throughput"];
const LONGEST: [&str; 1] = ["longest latencies of syncs and unmounts"];
const READS: [&str; 1] = ["the slowest hundredth of the reads"];
const LEVELS: [&str; 1] = ["dirty and writeback levels"];

fn within_share(line: &Line, share: f64) -> bool {
    line.off_share() <= share
}

fn within_twice(line: &Line) -> bool {
    line.model[1] == line.real[1] || (0.5..=2.0).contains(&(line.model[1] / line.real[1]))
}

/// Share of the lines that fit, and their number.
fn share(lines: &[&Line], fits: impl Fn(&Line) -> bool) -> (String, String) {
    let fitting = lines.iter().filter(|line| fits(line)).count();
    match lines.len() {
        0 => ("–".to_owned(), String::new()),
        all => {
            let number = thousands(u64::try_from(all).unwrap_or(u64::MAX));
            (format!("{:.0} %", 100.0 * fitting as f64 / all as f64), format!(" of {number}"))
        }
    }
}

impl Unseen {
    /// The score of what was compared.
    pub(crate) fn of(rounds: &str, load: &str, measured: &Measured) -> Unseen {
        let judged: Vec<&Line> = measured.figures().filter(|line| !line.is_cpu_bound).collect();
        let of = |kinds: &[&str]| -> Vec<&Line> {
            judged.iter().filter(|line| kinds.contains(&line.kind())).copied().collect()
        };
        let numbered = |lines: &[&Line], fits: &dyn Fn(&Line) -> bool| {
            let (share, number) = share(lines, fits);
            share + &number
        };
        let (bytes, longest, reads) = (of(&BYTES), of(&LONGEST), of(&READS));
        let recordings = |is_left_out: bool| -> usize {
            let cases = measured.cases.iter().filter(|case| case.not_simulated.is_some() == is_left_out);
            cases.map(|case| case.recordings).sum()
        };
        let simulated = recordings(false);
        Unseen {
            rounds: rounds.to_owned(),
            load: load.to_owned(),
            simulated: format!("{simulated} of {}", simulated + recordings(true)),
            cells: [
                numbered(&bytes, &|line| within_share(line, 0.1)),
                share(&bytes, |line| within_share(line, 0.25)).0,
                numbered(&longest, &|line| within_share(line, 0.25)),
                share(&longest, within_twice).0,
                numbered(&reads, &within_twice),
                numbered(&of(&LEVELS), &|line| within_share(line, 0.1)),
                numbered(&judged, &|line| within_share(line, 0.1)),
            ],
        }
    }
}

/// The table with all cells.
pub(crate) fn table(unseen: &[Unseen]) -> String {
    let mut text =
        "| rounds | load | simulated | bytes: within 10 % | within 25 % | longest waits: within 25 % | within 2 × | \
                    slowest reads: within 2 × | levels: within 10 % | all: within 10 % |\n\
                    |---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
            .to_owned();
    text.push_str(&format!("| target | | | {} |\n", TARGET.join(" | ")));
    for one in unseen {
        text.push_str(&format!("| {} | {} | {} | {} |\n", one.rounds, one.load, one.simulated, one.cells.join(" | ")));
    }
    text
}

/// Number of comparisons in the short table.
const NEWEST: usize = 12;

/// The short table: the newest comparisons, and further lines of the same columns.
pub(crate) fn summary(unseen: &[Unseen], beside: &[[String; 4]]) -> String {
    let mut text = "| rounds of machines not seen before | load of the host | machines | bytes and rates: within 10 % | within 25 % | \
                    longest waits for syncs and unmounts: within a factor of two |\n|---|---|---:|---:|---:|---:|\n"
        .to_owned();
    text.push_str(&format!("| target | | | {} | {} | {} |\n", TARGET[0], TARGET[1], TARGET[3]));
    for one in unseen.iter().take(NEWEST) {
        let number = one.cells[2].split_once(" of ").map(|(_, number)| format!(" of {number}")).unwrap_or_default();
        let Unseen { rounds, load, simulated, cells } = one;
        text.push_str(&format!(
            "| {rounds} | {load} | {simulated} | {} | {} | {}{number} |\n",
            cells[0], cells[1], cells[3]
        ));
    }
    for [name, tenth, quarter, twice] in beside {
        text.push_str(&format!("| {name} | | | {tenth} | {quarter} | {twice} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement::Verdict;
    use crate::artefact::Compared;

    fn line(figure: &str, real: f64, model: f64) -> Line {
        Line {
            figure: figure.to_owned(),
            is_cpu_bound: false,
            real: [real; 3],
            real_runs: 1,
            model: [model; 3],
            verdict: Verdict::Agrees,
            unreplayed: None,
        }
    }

    fn case(figures: Vec<Line>) -> Compared {
        Compared {
            scenario: "a".to_owned(),
            variant: "b".to_owned(),
            kernel: "6.1.0".to_owned(),
            recordings: 1,
            not_simulated: figures.is_empty().then(|| "programs".to_owned()),
            figures,
        }
    }

    #[test]
    fn a_score_counts_what_is_not_decided_by_the_cpu() {
        let bytes = |model| line("host.written_bytes", 100.0, model);
        let by_cpu = Line { is_cpu_bound: true, ..bytes(900.0) };
        let sync = |model| line("a.fsync.max_seconds", 1.0, model);
        let figures = vec![bytes(105.0), bytes(120.0), bytes(130.0), by_cpu, sync(0.6), sync(2.1)];
        let measured = Measured { seeds: 5, cases: vec![case(figures), case(Vec::new())] };
        let score = Unseen::of("first", "1 to 2", &measured);
        assert_eq!(score.simulated, "1 of 2");
        assert_eq!(score.cells, ["33 % of 3", "67 %", "0 % of 2", "50 %", "–", "–", "20 % of 5"]);
        let short = summary(std::slice::from_ref(&score), &[]);
        assert!(short.ends_with("| first | 1 to 2 | 1 of 2 | 33 % of 3 | 67 % | 50 % of 2 |\n"), "{short}");
        assert!(table(&[score]).contains("| 0 % of 2 | 50 % | – | – | 20 % of 5 |"));
    }
}
