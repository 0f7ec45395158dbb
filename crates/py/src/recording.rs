// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording in Python.

use crate::arrow::{Counter, Gatherer};
use crate::change::{duration, kernel, loads, rules, settings, size};
use crate::failure::Failure;
use crate::report::{self, Report};
use crate::source::Source;
use crate::table::Table;
use crate::trials;
use crate::watch::{Control, guarded, watched};
use floodline_analysis::advice::Goal;
use floodline_analysis::budget::{AsIf, Choice, NotAsIf, Sort, as_if, budgets, rows};
use floodline_analysis::ledger::ledger;
use floodline_analysis::prediction::Setting;
use floodline_record::facts::HostFacts;
use floodline_record::name::Name;
use floodline_record::nearest::nearest;
use floodline_record::record::Record;
use floodline_record::window::Window;
use floodline_twin::advise::{FOLIOS, Wanted};
use floodline_view::export::{Flattener, TABLES};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::{Mutex, PoisonError};

/// A recording of one host, made by ``floodline record``, by the model, or in the lab.
///
/// ``source`` is a path, or the bytes of a recording. A file stays open: each question reads it anew from its start.
///
/// >>> import floodline
/// >>> recording = floodline.simulate("dirty-cliff", seconds=5).recording
/// >>> again = floodline.Recording(recording.bytes())
/// >>> again.samples == recording.samples
/// True
/// >>> floodline.Recording(b"something else")
/// Traceback (most recent call last):
///     ...
/// floodline.Error: 14 bytes: not a recording (.flr)
/// hint: make a recording with: floodline record --for 1m -o FILE.flr
#[pyclass(frozen, module = "floodline")]
pub(crate) struct Recording {
    pub(crate) source: Source,
    facts: Option<HostFacts>,
    /// What one reading of the whole recording showed.
    summary: Mutex<Option<Summary>>,
}

#[derive(Clone, Debug)]
struct Summary {
    samples: u64,
    seconds: f64,
    tables: Vec<(String, u64)>,
    damage: Vec<String>,
}

impl Recording {
    /// Opens a recording and reads its facts. Fails if the bytes are not a recording.
    pub(crate) fn of(source: Source) -> Result<Recording, Failure> {
        let facts = source.decoder()?.flatten().take(1).find_map(|record| match record {
            Record::Facts(facts) => Some(*facts),
            _ => None,
        });
        Ok(Recording { source, facts, summary: Mutex::new(None) })
    }

    /// Reads the whole recording once.
    fn summary(&self, py: Python<'_>) -> PyResult<Summary> {
        if let Some(summary) = self.summary.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Ok(summary);
        }
        let summary = watched(py, None, |control| {
            let (mut flattener, mut counter) = (Flattener::default(), Counter::default());
            let (mut samples, mut first, mut last) = (0, None, None);
            let damage = self.source.each(control, |record| {
                if let Record::Sample(sample) = &record {
                    samples += 1;
                    first.get_or_insert(sample.time.monotonic);
                    last = Some(sample.time.monotonic);
                }
                flattener.record(&record, None, &mut counter).map_err(Failure::bug)?;
                Ok(true)
            })?;
            let seconds = match (first, last) {
                (Some(first), Some(last)) => last.0.saturating_sub(first.0) as f64 / 1e9,
                _ => 0.0,
            };
            let rows = |name: &&str| ((*name).to_owned(), counter.0.get(*name).copied().unwrap_or(0));
            Ok(Summary { samples, seconds, tables: TABLES.iter().map(rows).collect(), damage })
        })?;
        *self.summary.lock().unwrap_or_else(PoisonError::into_inner) = Some(summary.clone());
        Ok(summary)
    }

    fn window(&self, control: &Control) -> Result<Window, Failure> {
        self.source.folded(control, Window::default(), |window| window.samples)
    }
}

#[pymethods]
impl Recording {
    #[new]
    #[pyo3(signature = (source, /))]
    fn new(source: &Bound<'_, PyAny>) -> PyResult<Recording> {
        let py = source.py();
        let source = Source::of(source)?;
        guarded(py, || Recording::of(source))
    }

    /// Name of the host, escaped; ``None`` when the recording does not tell.
    #[getter]
    fn hostname(&self) -> Option<String> {
        self.facts.as_ref().map(|facts| facts.hostname.to_string())
    }

    /// Kernel release of the host as ``uname -r`` prints it; ``None`` when the recording does not tell.
    #[getter]
    fn kernel(&self) -> Option<String> {
        self.facts.as_ref().map(|facts| facts.kernel_release.to_string())
    }

    /// Number of complete samples.
    #[getter]
    fn samples(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.summary(py)?.samples)
    }

    /// Seconds from the first sample to the last.
    #[getter]
    fn seconds(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(self.summary(py)?.seconds)
    }

    /// What was damaged, cut or written by a newer version, one sentence each. Every answer is about the rest.
    #[getter]
    fn damage(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.summary(py)?.damage)
    }

    /// Names of the tables, with the number of rows of each.
    #[getter]
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tables = PyDict::new(py);
        for (name, rows) in self.summary(py)?.tables {
            tables.set_item(name, rows)?;
        }
        Ok(tables)
    }

    /// One table: ``host``, ``zone``, ``disk``, ``bdi``, ``wb``, ``cgroup``, ``cgroup_limits``, ``cgroup_io`` or
    /// ``process``. One row per sample and entity: the table that ``floodline export --format parquet`` writes.
    #[pyo3(signature = (name, /))]
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        let columns = watched(py, None, |control| {
            let mut gatherer = Gatherer::new(name).ok_or_else(|| {
                let failure = Failure::new(format!("no table named \"{}\"", Name::from(name)));
                match nearest(name, TABLES.iter().copied()) {
                    Some(near) => failure.hint(format!("did you mean {near}?")),
                    None => failure.hint(format!("the tables are {}", TABLES.join(", "))),
                }
            })?;
            let mut flattener = Flattener::default();
            self.source.each(control, |record| {
                flattener.record(&record, Some(name), &mut gatherer).map_err(Failure::bug)?;
                Ok(true)
            })?;
            gatherer.finish()
        })?;
        Ok(Table::new(name, columns))
    }

    /// The recording as it is stored: what ``Recording`` takes, and what a file should contain.
    fn bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = guarded(py, || self.source.bytes())?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Names what makes writes stall: findings with evidence, and the plan that helps. ``rules`` limits it to some rules.
    ///
    /// The same as ``floodline doctor FILE --format json``: schema ``floodline.doctor/1``.
    ///
    /// >>> import floodline
    /// >>> report = floodline.simulate("starved-budget", kernel="6.1").recording.diagnose()
    /// >>> report["findings"][0]["rule"]
    /// 'starved-dirty-budget'
    #[pyo3(signature = (*, rules=None))]
    fn diagnose<'py>(&self, py: Python<'py>, rules: Option<Vec<String>>) -> PyResult<Bound<'py, PyDict>> {
        let rules = self::rules(rules)?;
        let json = watched(py, None, |control| trials::diagnose(&self.source, rules, control))?;
        loads(py, &json)
    }

    /// Dirty limit of each cgroup at the end of the recording, its dirty pages, and the setting behind the limit. Amounts
    /// are bytes. ``all`` includes cgroups without dirty pages and every device.
    ///
    /// ``as_if`` shows the limits under other conditions beside those of now: ``"cgroup=v2,vm.dirty_ratio=10,kernel=6.12"``.
    ///
    /// The same as ``floodline budget FILE --format json``: schema ``floodline.budget/1``.
    #[pyo3(signature = (*, all=true, as_if=None))]
    fn budget<'py>(&self, py: Python<'py>, all: bool, as_if: Option<&str>) -> PyResult<Bound<'py, PyDict>> {
        let json = watched(py, None, |control| {
            let window = self.window(control)?;
            let Some(conditions) = as_if else {
                let report = rows(&window, &budgets(&window), Choice { all, sort: Sort::Over });
                return Ok(floodline_view::budget::json(&report)?);
            };
            // The hint names the option of the program.
            let hint = |hint: &str| match hint.split_once("--as-if ") {
                Some((before, conditions)) => format!("{before}as_if=\"{conditions}\""),
                None => hint.to_owned(),
            };
            let refused = |error: NotAsIf| Failure::new(&error).hint(hint(&error.hint));
            let conditions: AsIf = conditions.parse().map_err(refused)?;
            let report = self::as_if(&window, &conditions, all).map_err(refused)?;
            Ok(floodline_view::as_if::json(&report)?)
        })?;
        loads(py, &json)
    }

    /// Which process wrote which bytes, where the bytes went, and which tasks waited. Needs a traced recording
    /// (``floodline record --trace on``).
    ///
    /// The same as ``floodline ledger FILE --format json``: schema ``floodline.ledger/1``.
    fn ledger<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let json = watched(py, None, |control| {
            let window = self.window(control)?;
            let ledger = ledger(&window).ok_or_else(|| {
                Failure::new(format!(
                    "{} was recorded without the tracer; the ledger needs traced events",
                    self.source.name
                ))
                .hint("make a traced recording with: floodline record --for 1m --trace on -o FILE.flr")
            })?;
            Ok(floodline_view::ledger::json(&ledger)?)
        })?;
        loads(py, &json)
    }

    /// The host as a scenario, and how well it repeats its recording. ``kernel`` models another kernel.
    ///
    /// The same as ``floodline twin FILE --format json``, and ``"toml"``: the scenario file, which ``simulate`` takes.
    #[pyo3(signature = (*, kernel=None))]
    fn twin<'py>(&self, py: Python<'py>, kernel: Option<&str>) -> PyResult<Bound<'py, PyDict>> {
        let kernel = kernel.map(self::kernel).transpose()?;
        let (json, toml) = watched(py, None, |control| trials::twin(&self.source, kernel, control))?;
        let value = loads(py, &json)?;
        value.set_item("toml", toml)?;
        Ok(value)
    }

    /// What a change will do on this host. Keys are settings (``vm.dirty_bytes``), ``kernel``, ``cgroup``,
    /// ``machine.memory``, ``cgroup/PATH/memory.max`` and others: ``floodline predict --help`` has all. ``findings``
    /// makes the changes that ``diagnose`` prints for these rules. ``progress`` is called with runs done and in all.
    ///
    /// The same as ``floodline predict FILE --set … --format json``: schema ``floodline.predict/2``.
    #[pyo3(signature = (change=None, /, *, findings=None, progress=None))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        change: Option<Bound<'py, PyAny>>,
        findings: Option<Vec<String>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let settings = settings(change.as_ref())?;
        let settings: Vec<Setting> =
            settings.iter().map(|(key, value)| Setting::new(key.trim(), value.trim())).collect();
        let findings = rules(findings)?;
        let json = watched(py, progress, |control| trials::predict(&self.source, settings, &findings, control))?;
        loads(py, &json)
    }

    /// The settings that serve this host best. ``goal`` is ``latency``, ``throughput`` or ``safety``. ``max_at_risk`` is
    /// the most data that a power cut may lose (bytes, or ``"256M"``), ``max_pause`` the longest pause of a write call
    /// (seconds, or ``"200ms"``), ``settings`` the number of settings to try. ``progress`` is called with trials done and
    /// in all of this round.
    ///
    /// The same as ``floodline advise FILE --format json``: schema ``floodline.advice/1``.
    #[pyo3(signature = (*, goal="latency", max_at_risk=None, max_pause=None, min_folios=FOLIOS, settings=200, progress=None))]
    #[allow(clippy::too_many_arguments, reason = "they have names in Python")]
    fn advise<'py>(
        &self,
        py: Python<'py>,
        goal: &str,
        max_at_risk: Option<Bound<'py, PyAny>>,
        max_pause: Option<Bound<'py, PyAny>>,
        min_folios: u64,
        settings: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let goals = [Goal::Latency, Goal::Throughput, Goal::Safety];
        let named = goals.into_iter().find(|known| known.name() == goal).ok_or_else(|| {
            Failure::new(format!("unknown goal \"{}\"", Name::from(goal))).hint("one of latency, throughput, safety")
        })?;
        if !(2..=5000).contains(&settings) {
            return Err(Failure::new("settings is the number of settings to try: 2 to 5000").into());
        }
        let wanted = Wanted {
            goal: named,
            at_risk_bytes: max_at_risk.as_ref().map(size).transpose()?,
            folios: min_folios,
            pause_seconds: max_pause.as_ref().map(duration).transpose()?.map(|pause| pause.0 as f64 / 1e9),
            most: settings,
        };
        let json = watched(py, progress, |control| trials::advise(&self.source, wanted, control))?;
        loads(py, &json)
    }

    /// The recording as one HTML page with plots, which a notebook shows. With ``after`` the page compares two recordings.
    ///
    /// The same page as ``floodline report FILE -o PAGE.html``.
    #[pyo3(signature = (after=None, /))]
    fn report(&self, py: Python<'_>, after: Option<&Bound<'_, Recording>>) -> PyResult<Report> {
        let after = after.map(|after| after.get().source.clone());
        watched(py, None, |control| report::of(&self.source, after.as_ref(), control))
    }

    fn __repr__(&self) -> String {
        let host = self.hostname().map(|name| format!(" of {name}")).unwrap_or_default();
        format!("<floodline.Recording {}{host}>", self.source.name)
    }
}
