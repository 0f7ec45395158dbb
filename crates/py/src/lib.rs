// SPDX-License-Identifier: MIT OR Apache-2.0
//! The compiled part of the Python package `floodline`: recordings, their tables as Arrow, diagnosis, prediction, the model.
//! Wiring only: every answer is the JSON that the program prints for the same question. Long calls release the GIL, stop on
//! Ctrl-C and turn a panic into `floodline.Error`. Everything that Python says better is in `python/floodline`.

mod arrow;
mod change;
mod failure;
mod fleet;
mod model;
mod recording;
mod report;
mod source;
mod table;
mod trials;
mod watch;

use pyo3::prelude::*;

/// The compiled part of floodline. Import `floodline` instead.
#[pymodule(name = "_floodline", gil_used = false)]
mod floodline_python {
    #[pymodule_export]
    use super::fleet::{_Rows, _change, _conclude, _judge, _unpack, Preflight};
    #[pymodule_export]
    use super::model::{Run, Sweep, scenarios, simulate, sweep};
    #[pymodule_export]
    use super::recording::Recording;
    #[pymodule_export]
    use super::report::Report;
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::watch::_panic;

    /// Version of the package and of the program it agrees with.
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
