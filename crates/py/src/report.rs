// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of `floodline report` as a value that shows itself in a notebook.

use crate::failure::Failure;
use crate::source::Source;
use crate::trials::try_plan;
use crate::watch::Control;
use floodline_analysis::compare::{Reading, Side, compare};
use floodline_record::record::Sink;
use floodline_view::page::{self, Fold, Whole};
use pyo3::prelude::*;

/// One HTML page that loads nothing. A notebook shows it in a frame of its own. To keep it:
/// ``pathlib.Path("page.html").write_text(page.html)``.
///
/// >>> import floodline
/// >>> page = floodline.simulate("dirty-cliff", seconds=5).recording.report()
/// >>> page.html.startswith("<!doctype html>")
/// True
#[pyclass(frozen, module = "floodline")]
pub(crate) struct Report {
    /// The page as one text.
    #[pyo3(get)]
    html: String,
}

#[pymethods]
impl Report {
    fn _repr_html_(&self) -> String {
        let text = self.html.replace('&', "&amp;").replace('"', "&quot;");
        format!(
            "<iframe srcdoc=\"{text}\" sandbox=\"allow-scripts\" title=\"Floodline report\" \
             style=\"width:100%;height:640px;border:0\"></iframe>"
        )
    }

    fn __repr__(&self) -> String {
        format!("<floodline.Report: {} bytes of HTML>", self.html.len())
    }
}

fn read(source: &Source, control: &Control) -> Result<Whole, Failure> {
    let mut fold = Fold::default();
    source.each(control, |record| {
        let Ok(()) = fold.record(&record);
        Ok(true)
    })?;
    let mut whole = fold.finish(source.name.clone()).ok_or_else(|| source.no_sample())?;
    try_plan(&mut whole.report, source, control)?;
    Ok(whole)
}

/// The page of a recording, or of two that are compared.
pub(crate) fn of(source: &Source, after: Option<&Source>, control: &Control) -> Result<Report, Failure> {
    let whole = read(source, control)?;
    let html = match after {
        None => page::host(&whole.host()),
        Some(after) => {
            let after = read(after, control)?;
            let side = |read: &Whole| Side { label: read.label.clone(), readings: vec![Reading::of(&read.window)] };
            let comparison = compare(&[side(&whole), side(&after)]);
            let comparison = comparison.ok_or_else(|| Failure::bug("two recordings are not two sides"))?;
            page::compared(&whole.host(), &after.host(), &comparison)
        }
    };
    Ok(Report { html })
}
