// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios on the model of the kernel: one run with its recording, or a grid of settings.

use crate::arrow::Columns;
use crate::change::{duration, kernel, loads, settings, value_text};
use crate::failure::Failure;
use crate::recording::Recording;
use crate::source::{Source, shown};
use crate::table::Table;
use crate::watch::{Control, on_threads, watched};
use floodline_analysis::run::order::best;
use floodline_record::facts::HostFacts;
use floodline_record::name::Name;
use floodline_record::nearest::nearest;
use floodline_record::record::{Record, Sink};
use floodline_record::recording::{Encoder, Header};
use floodline_record::units::Nanos;
use floodline_record::version::KernelVersion;
use floodline_scenario::{Grid, Scenario, ScenarioFile, TEXT_MAX, Time, shipped};
use floodline_sim::{Found, SimError, Speed};
use floodline_twin::model::{self, Order};
use floodline_view::sweep::{self as view, Row};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString};
use std::fs::File;
use std::io::Read;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// One run of a scenario on the model.
///
/// >>> import floodline
/// >>> run = floodline.simulate("dirty-cliff", set={"vm.dirty_bytes": "64M"}, seconds=5)
/// >>> run.result["scenario"], run.recording.samples > 5
/// ('dirty-cliff', True)
#[pyclass(frozen, module = "floodline")]
pub(crate) struct Run {
    json: String,
    recording: Py<Recording>,
}

#[pymethods]
impl Run {
    /// Figures and findings: the same as ``floodline simulate SCENARIO --format json``, schema ``floodline.run/1``.
    #[getter]
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        loads(py, &self.json)
    }

    /// The recording, which reads like one of a real host.
    #[getter]
    fn recording<'py>(&self, py: Python<'py>) -> Bound<'py, Recording> {
        self.recording.bind(py).clone()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let result = self.result(py)?;
        let text =
            |key: &str| result.get_item(key).map(|value| value.map_or_else(String::new, |value| value.to_string()));
        Ok(format!("<floodline.Run {} {} on {}>", text("scenario")?, text("variant")?, text("kernel")?))
    }
}

/// A scenario under every combination of some settings.
///
/// >>> import floodline
/// >>> sweep = floodline.sweep("dirty-cliff", {"vm.dirty_bytes": ["64M", "256M"]}, seconds=5)
/// >>> len(sweep.table), sweep.table.columns[0]
/// (2, 'vm.dirty_bytes')
#[pyclass(frozen, module = "floodline")]
pub(crate) struct Sweep {
    json: String,
    table: Py<Table>,
}

#[pymethods]
impl Sweep {
    /// Rows in the order of the grid: the same as ``floodline sweep SCENARIO --grid … --format json``, schema
    /// ``floodline.sweep/1``.
    #[getter]
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        loads(py, &self.json)
    }

    /// One row per combination: the varied keys, why a combination could not run, the findings, then every figure with its
    /// unit at the end of its name.
    #[getter]
    fn table<'py>(&self, py: Python<'py>) -> Bound<'py, Table> {
        self.table.bind(py).clone()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<floodline.Sweep: {} rows>", self.table.bind(py).len()?))
    }
}

/// What is asked of the model, beside the scenario.
struct Asked {
    variant: Option<String>,
    settings: Vec<(String, String)>,
    kernel: KernelVersion,
    every: Nanos,
}

/// The kernel where none is named, as in the program.
const KERNEL: &str = "6.12";
/// Time between two samples where none is given, as in the program.
const EVERY: Nanos = Nanos(500_000_000);

/// Arguments that a run and a sweep share.
fn asked(
    variant: Option<String>,
    set: Option<&Bound<'_, PyAny>>,
    named: Option<&str>,
    every: Option<&Bound<'_, PyAny>>,
    seconds: Option<f64>,
    instances: Option<u32>,
    seed: Option<u64>,
) -> PyResult<Asked> {
    let mut changes = Vec::new();
    if let Some(seconds) = seconds {
        if !(seconds > 0.0 && seconds < 9e9) {
            return Err(Failure::new(format!("invalid duration {seconds}: expected seconds, more than 0")).into());
        }
        changes.push(("for".to_owned(), Time(Nanos((seconds * 1e9) as u64)).to_string()));
    }
    changes.extend(instances.map(|count| ("instances".to_owned(), count.to_string())));
    changes.extend(settings(set)?);
    changes.extend(seed.map(|seed| ("seed".to_owned(), seed.to_string())));
    let every = every.map(duration).transpose()?.unwrap_or(EVERY);
    if every < Nanos(1_000_000) {
        return Err(Failure::new("interval too short: the minimum is 1ms").into());
    }
    Ok(Asked { variant, settings: changes, kernel: kernel(named.unwrap_or(KERNEL))?, every })
}

impl Asked {
    /// A variant with all changes made.
    fn changed(&self, scenario: &Scenario) -> Result<Scenario, Failure> {
        self.settings
            .iter()
            .try_fold(scenario.clone(), |scenario, (key, value)| scenario.changed(key, value).map_err(Failure::new))
    }

    fn order<'a>(&self, scenario: &'a Scenario, variant: &'a str, kernel: KernelVersion) -> Order<'a> {
        Order { scenario, variant, kernel, every: self.every, speed: Speed::default(), found: Found::default() }
    }
}

/// A scenario file: the name of one that is part of the package, a path, or TOML of more than one line.
fn file(scenario: &Bound<'_, PyAny>) -> PyResult<ScenarioFile> {
    let (text, name) = match scenario.cast::<PyString>() {
        Ok(text) if text.to_string().contains('\n') => (text.to_string(), "the scenario".to_owned()),
        _ => {
            let path: PathBuf = scenario
                .extract()
                .map_err(|_| PyTypeError::new_err("a scenario is a name, a path, or the text of a scenario file"))?;
            (read(&path)?, shown(&path))
        }
    };
    Ok(ScenarioFile::parse(&text).map_err(|error| Failure::new(error).within(name))?)
}

/// The text of a scenario, of which no more is read than a scenario may have.
fn read(path: &Path) -> Result<String, Failure> {
    let limit = u64::try_from(TEXT_MAX).unwrap_or(u64::MAX).saturating_add(1);
    let name = shown(path);
    if let Some(text) = shipped::text(path).filter(|_| !path.exists()) {
        return Ok(text.to_owned());
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes)).map_err(|error| {
        let failure = Failure::new(format!("cannot read {name}: {error}"));
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        match nearest(&stem, shipped::names()) {
            Some(near) => failure.hint(format!("a scenario of this package: {near}")),
            None => failure.hint("floodline.scenarios() lists the scenarios of this package"),
        }
    })?;
    String::from_utf8(bytes).map_err(|_| Failure::new(format!("{name} is not UTF-8 text")))
}

/// Names of the scenarios that are part of the package.
///
/// >>> import floodline
/// >>> "starved-budget" in floodline.scenarios()
/// True
#[pyfunction]
pub(crate) fn scenarios() -> Vec<&'static str> {
    shipped::names().collect()
}

/// Runs one variant of a scenario on the model of the kernel's writeback.
///
/// ``scenario`` is the name of a scenario of the package (``scenarios()``), a path, or the text of a scenario file. ``set``
/// overrides settings and keys of the scenario. ``kernel`` is the version to model. ``seconds`` is the duration of the
/// workload, ``every`` the time between two samples (seconds, or ``"500ms"``), ``instances`` the number of copies, ``seed``
/// the seed of all randomness, ``hostname`` the name of the host in the recording. ``progress`` is called with simulated milliseconds and those in all, where the scenario
/// has a duration.
#[pyfunction]
#[pyo3(signature = (scenario, /, *, set=None, variant=None, kernel=None, seconds=None, every=None, instances=None, seed=None, hostname=None, progress=None))]
#[allow(clippy::too_many_arguments, reason = "they have names in Python")]
pub(crate) fn simulate(
    py: Python<'_>,
    scenario: Bound<'_, PyAny>,
    set: Option<Bound<'_, PyAny>>,
    variant: Option<String>,
    kernel: Option<&str>,
    seconds: Option<f64>,
    every: Option<Bound<'_, PyAny>>,
    instances: Option<u32>,
    seed: Option<u64>,
    hostname: Option<&str>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Run> {
    let asked = asked(variant, set.as_ref(), kernel, every.as_ref(), seconds, instances, seed)?;
    let file = file(&scenario)?;
    let (json, bytes, name) = watched(py, progress, |control| run(&asked, &file, hostname, control))?;
    let recording = Recording::of(Source::made(bytes, name))?;
    Ok(Run { json, recording: Py::new(py, recording)? })
}

/// Runs a scenario and keeps its recording.
fn run(
    asked: &Asked,
    file: &ScenarioFile,
    hostname: Option<&str>,
    control: &Control,
) -> Result<(String, Vec<u8>, String), Failure> {
    let (variant, scenario) = file.variant(asked.variant.as_deref())?;
    let (variant, scenario) = (variant.to_owned(), asked.changed(scenario)?);
    let mut encoder = Encoder::new(Vec::new(), Header::new(Some(asked.every))).map_err(Failure::bug)?;
    let total = scenario.workload.duration.map_or(0, |duration| duration.nanos() / 1_000_000);
    let outcome = model::run(
        &asked.order(&scenario, &variant, asked.kernel),
        |record| {
            let encoded = match (record, hostname) {
                (Record::Facts(facts), Some(name)) => {
                    let facts = HostFacts { hostname: Name::from(name), ..(**facts).clone() };
                    encoder.record(&Record::Facts(Box::new(facts)))
                }
                _ => encoder.record(record),
            };
            encoded.map_err(|error| SimError::Sink(error.to_string()))
        },
        |at| {
            control.tell((at.now.0 / 1_000_000).min(total), total);
            !control.is_stopped()
        },
    )?;
    control.check()?;
    let bytes = encoder.finish().map_err(Failure::bug)?;
    let name = format!("{} {variant}", file.name);
    Ok((floodline_view::run::json(&[outcome.report])?, bytes, name))
}

/// Runs a scenario on the model for every combination of settings, on all cores.
///
/// ``grid`` maps keys to the values to try: settings, keys of the scenario, or ``kernel``, ``variant``, ``instances``,
/// ``for``, ``seed``. The last key varies fastest. A combination that cannot run is a row with its reason. ``jobs`` is the
/// number of concurrent runs. ``progress`` is called with runs done and in all. The other arguments are those of
/// ``simulate``.
#[pyfunction]
#[pyo3(signature = (scenario, grid, /, *, set=None, variant=None, kernel=None, seconds=None, every=None, instances=None, seed=None, jobs=None, progress=None))]
#[allow(clippy::too_many_arguments, reason = "they have names in Python")]
pub(crate) fn sweep(
    py: Python<'_>,
    scenario: Bound<'_, PyAny>,
    grid: Bound<'_, PyAny>,
    set: Option<Bound<'_, PyAny>>,
    variant: Option<String>,
    kernel: Option<&str>,
    seconds: Option<f64>,
    every: Option<Bound<'_, PyAny>>,
    instances: Option<u32>,
    seed: Option<u64>,
    jobs: Option<NonZeroUsize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Sweep> {
    let axes = axes(&grid)?;
    let asked = asked(variant, set.as_ref(), kernel, every.as_ref(), seconds, instances, seed)?;
    let is_fixed = |key: &str| asked.settings.iter().any(|(set, _)| set == key);
    if let Some((key, _)) = axes.iter().find(|(key, _)| is_fixed(key)) {
        return Err(Failure::new(format!("{key} has both a grid and a fixed value"))
            .hint("give all its values to grid")
            .into());
    }
    let grid = Grid::new(axes).map_err(Failure::from)?;
    let file = file(&scenario)?;
    let jobs = jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let (json, columns) = watched(py, progress, |control| {
        let cells = grid.combinations();
        let rows = on_threads(jobs, &cells, control, 0, |at| cell(&asked, &file, &grid, at, control));
        control.check()?;
        let rows: Vec<Row> = cells.into_iter().zip(rows).map(|(at, result)| Row { at, result }).collect();
        let best = best(&rows.iter().map(|row| row.result.as_ref().ok()).collect::<Vec<_>>());
        let axes = grid.keys().map(str::to_owned).collect();
        let sweep = view::Sweep { scenario: file.name.clone(), axes, rows, best };
        let table = view::flat(&sweep).map_err(Failure::bug)?;
        Ok((view::json(&sweep)?, Columns::of_flat(&table)?))
    })?;
    Ok(Sweep { json, table: Py::new(py, Table::new("sweep", columns))? })
}

type Axis = (String, Vec<String>);

fn axes(grid: &Bound<'_, PyAny>) -> PyResult<Vec<Axis>> {
    let wrong = || PyTypeError::new_err("a grid maps keys to lists, such as {\"vm.dirty_bytes\": [\"64M\", \"1G\"]}");
    let grid = grid.cast::<PyMapping>().map_err(|_| wrong())?;
    let mut axes = Vec::new();
    for item in grid.items()?.iter() {
        let (key, values): (String, Bound<'_, PyAny>) = item.extract()?;
        if values.is_instance_of::<PyString>() {
            return Err(wrong());
        }
        let values =
            values.try_iter().map_err(|_| wrong())?.map(|value| value_text(&value?)).collect::<PyResult<Vec<_>>>()?;
        if values.is_empty() {
            return Err(Failure::new(format!("the grid has no value for {}", Name::from(key.as_str()))).into());
        }
        axes.push((key.trim().to_owned(), values));
    }
    if axes.is_empty() {
        return Err(Failure::new("the grid is empty").hint("e.g. {\"vm.dirty_bytes\": [\"64M\", \"1G\"]}").into());
    }
    Ok(axes)
}

/// One combination: its run, or why nothing ran.
fn cell(
    asked: &Asked,
    file: &ScenarioFile,
    grid: &Grid,
    at: &[String],
    control: &Control,
) -> Result<floodline_analysis::run::RunReport, String> {
    let run = || -> Result<_, Failure> {
        control.check()?;
        let (variant, scenario) =
            grid.scenario(file, at, asked.variant.as_deref(), |scenario| asked.changed(scenario))?;
        let kernel = grid.value(at, "kernel").map_or(Ok(asked.kernel), kernel)?;
        let outcome = model::run(&asked.order(&scenario, &variant, kernel), |_| Ok(()), |_| !control.is_stopped())?;
        Ok(outcome.report)
    };
    run().map_err(|failure| failure.text().to_owned())
}
