// SPDX-License-Identifier: MIT OR Apache-2.0
//! A change judged for many hosts. `judge` makes the rows of some files, on whatever machine runs it; `conclude` groups the
//! rows of all. Between machines rows travel pickled. Which files, and who runs what, is in `python/floodline/fleet.py`.

use crate::arrow::Columns;
use crate::change::{loads, settings};
use crate::failure::Failure;
use crate::source::Source;
use crate::table::Table;
use crate::watch::{Control, on_threads, watched};
use floodline_fleet::{
    Cause, Change, Depth, NotAChange, Packed, Row, Summary, Unreadable, keep_latest, note_copies, preflight_of,
    tell_apart,
};
use floodline_record::name::Name;
use floodline_record::nearest::nearest;
use floodline_view::preflight as view;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use std::io;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

impl From<NotAChange> for Failure {
    fn from(error: NotAChange) -> Failure {
        Failure::new(&error).hint(in_python(&error.hint))
    }
}

/// A hint of the command line as Python writes it.
fn in_python(hint: &str) -> String {
    match hint.contains("--") {
        true => {
            "e.g. {\"cgroup\": \"v2\", \"kernel\": \"6.12\", \"memory\": \"8G\", \"vm.dirty_ratio\": 10}".to_owned()
        }
        false => hint.to_owned(),
    }
}

/// Reads a change: keys are settings, `kernel`, `cgroup` and `memory`.
fn change(of: Option<&Bound<'_, PyAny>>) -> PyResult<Change> {
    let settings: Vec<String> = settings(of)?.iter().map(|(key, value)| format!("{key}={value}")).collect();
    Ok(Change::parse(&settings, None, None, None).map_err(Failure::from)?)
}

/// Refuses a change that cannot be made on any host. Returns it in a few words.
#[pyfunction]
pub(crate) fn _change(of: Bound<'_, PyAny>) -> PyResult<String> {
    Ok(change(Some(&of))?.label())
}

/// Rows of some hosts, in the order of their files.
#[pyclass(frozen, module = "floodline._floodline")]
pub(crate) struct _Rows {
    rows: Vec<Row>,
}

#[pymethods]
impl _Rows {
    fn __len__(&self) -> usize {
        self.rows.len()
    }

    /// Number of hosts that were simulated.
    #[getter]
    fn simulated(&self) -> usize {
        self.rows.iter().filter(|row| row.tier == 2).count()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let packed: Vec<Packed> = self.rows.iter().cloned().map(Packed::from).collect();
        let bytes = serde_json::to_vec(&packed).map_err(Failure::bug)?;
        Ok((py.import("floodline._floodline")?.getattr("_unpack")?, (PyBytes::new(py, &bytes),)))
    }
}

/// Rows that were pickled.
#[pyfunction]
pub(crate) fn _unpack(packed: &[u8]) -> PyResult<_Rows> {
    let packed: Vec<Packed> = serde_json::from_slice(packed).map_err(|error| {
        Failure::new(format!("rows of another version: {error}")).hint("install one version of floodline everywhere")
    })?;
    Ok(_Rows { rows: packed.into_iter().map(Row::from).collect() })
}

/// One file of a fleet: where its bytes are, or why there are none.
enum Content {
    Path(PathBuf),
    Bytes(PyBackedBytes),
    Missing(String),
}

/// Judges some files. An item is a name, and a path, bytes, or an exception that says why there are no bytes.
#[pyfunction]
#[pyo3(signature = (items, change, tier, control, jobs=None, progress=None))]
pub(crate) fn _judge(
    py: Python<'_>,
    items: Vec<(String, Bound<'_, PyAny>)>,
    change: Bound<'_, PyAny>,
    tier: u8,
    control: f64,
    jobs: Option<NonZeroUsize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<_Rows> {
    let change = self::change(Some(&change))?;
    let depth = match tier {
        1 => Depth::ARITHMETIC,
        2 if (0.0..=1.0).contains(&control) => Depth { control, ..Depth::WHOLE },
        2 => return Err(Failure::new("control is a share from 0 to 1").hint("e.g. control=0.01").into()),
        _ => return Err(Failure::new("tier is 1 (arithmetic) or 2 (and simulation)").into()),
    };
    let items: Vec<(String, Content)> = items
        .into_iter()
        .map(|(name, content)| {
            let content = if let Ok(bytes) = content.extract::<PyBackedBytes>() {
                Content::Bytes(bytes)
            } else if let Ok(path) = content.extract::<PathBuf>() {
                Content::Path(path)
            } else {
                Content::Missing(content.str()?.to_string())
            };
            Ok((name, content))
        })
        .collect::<PyResult<_>>()?;
    let jobs = jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let rows = watched(py, progress, |control| {
        let rows = on_threads(jobs, &items, control, 0, |item| judge(item, &change, depth, control));
        control.check()?;
        Ok(rows)
    })?;
    Ok(_Rows { rows })
}

/// The row of one file. A bug of ours in one file is that file's row.
fn judge((name, content): &(String, Content), change: &Change, depth: Depth, control: &Control) -> Row {
    if control.is_stopped() {
        return Row::default();
    }
    let go_on = || !control.is_stopped();
    let unreadable = |error: io::Error| Unreadable::of_io(&error).row(name, change);
    let judged = catch_unwind(AssertUnwindSafe(|| match content {
        Content::Missing(why) => unreadable(io::Error::other(Name::from(why.as_str()).to_string())),
        Content::Bytes(bytes) => preflight_of(|| Ok(&bytes[..]), name, change, depth, &go_on),
        Content::Path(path) => match Source::file(path) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                Unreadable::not_a_file("a pipe, a socket, a device or a folder").row(name, change)
            }
            Err(error) => unreadable(error),
            Ok(source) => preflight_of(|| Ok(source.reader()), name, change, depth, &go_on),
        },
    }));
    judged.unwrap_or_else(|_| {
        Row::not_known(name, change, Cause::Failed, "Floodline failed on this file. This is a bug.".to_owned())
    })
}

/// What a change does to a fleet. It shows itself as the text of ``floodline preflight``.
#[pyclass(frozen, module = "floodline")]
pub(crate) struct Preflight {
    summary: Summary,
    rows: Vec<Row>,
}

#[pymethods]
impl Preflight {
    /// One sentence: how many hosts suffer, and how many causes explain them.
    #[getter]
    fn headline(&self) -> String {
        self.summary.headline()
    }

    /// Groups of hosts by cause, and ``rows`` with each host: the same as ``floodline preflight --format json``, schema
    /// ``floodline.preflight/1``.
    #[getter]
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        loads(py, &view::json(&self.summary, &self.rows).map_err(Failure::from)?)
    }

    /// One row per file, texts first; the unit is at the end of a column's name. The table that
    /// ``floodline preflight -o hosts.parquet`` writes.
    #[getter]
    fn table(&self) -> PyResult<Table> {
        let flat = view::table(&self.rows).map_err(Failure::bug)?;
        Ok(Table::new("preflight", Columns::of_flat(&flat)?))
    }

    /// Number of files.
    fn __len__(&self) -> usize {
        self.rows.len()
    }

    fn __str__(&self) -> String {
        let options = view::Options { width: 80, details: false, arguments: "…", each_host: "the rows of .table" };
        view::text(&self.summary, &self.rows, options)
    }

    fn __repr__(&self) -> String {
        format!("<floodline.Preflight: {}>", self.summary.headline())
    }
}

/// Puts the rows of all files together. `accepted` has keys of findings that do not count.
#[pyfunction]
pub(crate) fn _conclude(parts: Vec<Py<_Rows>>, change: Bound<'_, PyAny>, accepted: Vec<String>) -> PyResult<Preflight> {
    let change = self::change(Some(&change))?;
    for key in &accepted {
        let cause = key.split('@').next().unwrap_or_default();
        let known = || Cause::ALL.iter().map(|known| known.name());
        if !known().any(|known| known == cause) {
            let failure = Failure::new(format!("no finding has the cause {}", Name::from(cause)));
            return Err(match nearest(cause, known()) {
                Some(near) => failure.hint(format!("did you mean {near}?")),
                None => failure.hint("rows have it as key"),
            }
            .into());
        }
    }
    let mut rows: Vec<Row> = parts.iter().flat_map(|part| part.get().rows.iter().cloned()).collect();
    keep_latest(&mut rows);
    // A file that is somewhere else is compared with none.
    note_copies(
        &mut rows,
        |one, other| matches!((std::fs::read(one), std::fs::read(other)), (Ok(one), Ok(other)) if one == other),
    );
    tell_apart(&mut rows);
    for row in &mut rows {
        row.accepted = row.verdict.name() != "fine" && accepted.iter().any(|key| row.is_named_by(key));
    }
    Ok(Preflight { summary: Summary::of(&rows, change.label()), rows })
}
