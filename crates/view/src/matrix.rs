// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of scenarios on several kernels as tables: kernels side by side, a line per figure and variant. The
//! figures are those of which a scenario expects something.

use crate::figures::short;
use floodline_analysis::run::RunReport;
use serde_json::json;
use std::collections::BTreeSet;

/// All runs of one scenario.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its name.
    pub scenario: String,
    /// One line on what it shows.
    pub summary: String,
    /// Its runs.
    pub cells: Vec<Cell>,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Name of the variant.
    pub variant: String,
    /// Version of the kernel.
    pub kernel: String,
    /// Figures of which something is expected.
    pub shown: Vec<String>,
    /// How it went, or why there was no run.
    pub result: Result<RunReport, String>,
}

impl Cell {
    /// The worst finding, in a few letters.
    fn found(&self) -> String {
        match &self.result {
            Ok(report) => report
                .findings
                .first()
                .map_or("nothing".to_owned(), |first| format!("{} ({})", first.rule, first.severity.name())),
            Err(_) => "no run".to_owned(),
        }
    }

    fn is_as_expected(&self) -> bool {
        self.result.as_ref().is_ok_and(|report| report.not_as_expected.is_empty())
    }
}

impl Block {
    fn in_order(&self, of: impl Fn(&Cell) -> &String) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for cell in &self.cells {
            if !names.contains(&of(cell).as_str()) {
                names.push(of(cell));
            }
        }
        names
    }

    fn figures(&self) -> BTreeSet<&str> {
        self.cells.iter().flat_map(|cell| cell.shown.iter().map(String::as_str)).collect()
    }

    fn value(&self, variant: &str, kernel: &str, figure: &str) -> String {
        let cell = self.cells.iter().find(|cell| cell.variant == variant && cell.kernel == kernel);
        match cell.map(|cell| &cell.result) {
            Some(Ok(report)) => report.figures.get(figure).map_or("-".to_owned(), |figure| short(*figure)),
            Some(Err(_)) => "no run".to_owned(),
            None => String::new(),
        }
    }
}

/// Kernels that fit beside each other in 80 columns.
const KERNELS_A_ROW: usize = 6;

/// For people.
pub fn text(blocks: &[Block]) -> String {
    let mut text = String::new();
    for block in blocks {
        text.push_str(&format!("{}\n", block.scenario));
        let (kernels, variants) = (block.in_order(|cell| &cell.kernel), block.in_order(|cell| &cell.variant));
        for some in kernels.chunks(KERNELS_A_ROW) {
            for figure in block.figures() {
                text.push_str(&format!("  {figure}\n    {:<14}", "variant"));
                some.iter().for_each(|kernel| text.push_str(&format!(" {kernel:>9}")));
                text.push('\n');
                for variant in &variants {
                    let name: String = variant.chars().take(14).collect();
                    text.push_str(&format!("    {name:<14}"));
                    some.iter()
                        .for_each(|kernel| text.push_str(&format!(" {:>9}", block.value(variant, kernel, figure))));
                    text.truncate(text.trim_end().len());
                    text.push('\n');
                }
            }
        }
        for cell in &block.cells {
            let mark = if cell.is_as_expected() { ' ' } else { '!' };
            text.push_str(&format!("{mark} {} on {}: {}\n", cell.variant, cell.kernel, cell.found()));
            match &cell.result {
                Ok(report) => report.not_as_expected.iter().for_each(|miss| text.push_str(&format!("    {miss}\n"))),
                Err(why) => text.push_str(&format!("    {why}\n")),
            }
        }
        text.push('\n');
    }
    text
}

/// For a page of documentation.
pub fn markdown(blocks: &[Block]) -> String {
    let mut text = String::new();
    for block in blocks {
        let variants = block.in_order(|cell| &cell.variant);
        let figures = block.figures();
        text.push_str(&format!("## {}\n\n{}.\n\n| kernel | figure |", block.scenario, block.summary));
        variants.iter().for_each(|variant| text.push_str(&format!(" {variant} |")));
        text.push_str(&format!("\n|---|---|{}\n", "---:|".repeat(variants.len())));
        for kernel in block.in_order(|cell| &cell.kernel) {
            for figure in &figures {
                let values: Vec<String> = variants.iter().map(|variant| block.value(variant, kernel, figure)).collect();
                // What only other kernels show is left out.
                if values.iter().any(|value| !value.is_empty() && value != "-") {
                    text.push_str(&format!("| {kernel} | `{figure}` | {} |\n", values.join(" | ")));
                }
            }
            text.push_str(&format!("| {kernel} | `doctor` finds first |"));
            for variant in &variants {
                let cell = block.cells.iter().find(|cell| cell.variant == *variant && cell.kernel == kernel);
                text.push_str(&format!(" {} |", cell.map_or(String::new(), Cell::found)));
            }
            text.push('\n');
        }
        let misses: Vec<String> = block
            .cells
            .iter()
            .filter_map(|cell| {
                let what = match &cell.result {
                    Ok(report) if report.not_as_expected.is_empty() => return None,
                    Ok(report) => report.not_as_expected.join("; "),
                    Err(why) => format!("no run: {why}"),
                };
                Some(format!("- {} on {}: {what}\n", cell.variant, cell.kernel))
            })
            .collect();
        if !misses.is_empty() {
            text.push_str("\nNot as the scenario expects:\n\n");
            text.push_str(&misses.concat());
        }
        text.push('\n');
    }
    text
}

/// For programs.
pub fn json(blocks: &[Block]) -> Result<String, serde_json::Error> {
    let cell = |cell: &Cell| match &cell.result {
        Ok(report) => json!({ "variant": cell.variant, "kernel": cell.kernel, "run": report }),
        Err(why) => json!({ "variant": cell.variant, "kernel": cell.kernel, "error": why }),
    };
    let blocks: Vec<_> = blocks
        .iter()
        .map(|block| json!({ "scenario": block.scenario, "runs": block.cells.iter().map(cell).collect::<Vec<_>>() }))
        .collect();
    crate::json::line(&json!({ "schema": "floodline.lab.matrix/1", "scenarios": blocks }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_analysis::run::SCHEMA;
    use floodline_record::version::KernelVersion;
    use floodline_scenario::Figure;

    fn block() -> Block {
        let cell = |variant: &str, kernel: &str, value: Option<f64>| Cell {
            variant: variant.to_owned(),
            kernel: kernel.to_owned(),
            shown: vec!["teardown.umount.max_seconds".to_owned()],
            result: value.ok_or_else(|| "the guest's kernel panicked".to_owned()).map(|value| RunReport {
                schema: SCHEMA,
                executor: "lab",
                scenario: "overlay-umount".to_owned(),
                variant: variant.to_owned(),
                kernel: kernel.to_owned(),
                kernel_version: KernelVersion::new(6, 12, 0),
                samples: 1,
                seconds: 1.0,
                first_sample_seconds: None,
                beside_seconds: None,
                figures: [("teardown.umount.max_seconds".to_owned(), Figure { value, unit: "seconds" })].into(),
                findings: Vec::new(),
                plan: None,
                not_as_expected: Vec::new(),
                has_expectations: true,
                simplified: Vec::new(),
                recording: None,
            }),
        };
        Block {
            scenario: "overlay-umount".to_owned(),
            summary: "One waits for all".to_owned(),
            cells: vec![
                cell("incident", "5.10.223", Some(9.95)),
                cell("incident", "6.12.117", None),
                cell("remedy", "5.10.223", Some(0.02)),
            ],
        }
    }

    #[test]
    fn kernels_stand_side_by_side() {
        let expect = "\
overlay-umount
  teardown.umount.max_seconds
    variant         5.10.223  6.12.117
    incident          9.95 s    no run
    remedy           20.0 ms
  incident on 5.10.223: nothing
! incident on 6.12.117: no run
    the guest's kernel panicked
  remedy on 5.10.223: nothing

";
        assert_eq!(text(&[block()]), expect);
    }

    #[test]
    fn a_page_has_a_row_per_kernel_and_figure() {
        let expect = "\
## overlay-umount

One waits for all.

| kernel | figure | incident | remedy |
|---|---|---:|---:|
| 5.10.223 | `teardown.umount.max_seconds` | 9.95 s | 20.0 ms |
| 5.10.223 | `doctor` finds first | nothing | nothing |
| 6.12.117 | `teardown.umount.max_seconds` | no run |  |
| 6.12.117 | `doctor` finds first | no run |  |

Not as the scenario expects:

- incident on 6.12.117: no run: the guest's kernel panicked

";
        assert_eq!(markdown(&[block()]), expect);
    }
}
