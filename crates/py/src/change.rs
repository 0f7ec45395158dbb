// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values that Python gives as the program reads them: settings, kernels, durations, sizes, and answers back as JSON.

use crate::failure::Failure;
use floodline_analysis::diagnose::rules::RULES;
use floodline_kernel::{NotARelease, Release};
use floodline_record::name::Name;
use floodline_record::nearest::nearest;
use floodline_record::units::Nanos;
use floodline_record::version::KernelVersion;
use floodline_scenario::{ByteSize, Time};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyMapping, PyString};

/// Keys and values of a mapping as text, in its order.
pub(crate) fn settings(of: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<(String, String)>> {
    let Some(of) = of.filter(|of| !of.is_none()) else { return Ok(Vec::new()) };
    let mapping = of
        .cast::<PyMapping>()
        .map_err(|_| PyTypeError::new_err("a change is a mapping such as {\"vm.dirty_bytes\": \"64M\"}"))?;
    mapping
        .items()?
        .iter()
        .map(|item| {
            let (key, value): (String, Bound<'_, PyAny>) = item.extract()?;
            Ok((key, value_text(&value)?))
        })
        .collect()
}

/// One value as text: a string, a number, or a truth value as 1 and 0.
pub(crate) fn value_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(if flag.is_true() { "1" } else { "0" }.to_owned());
    }
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        return Ok(value.str()?.to_string());
    }
    let kind = value.get_type().name()?.to_string();
    Err(PyTypeError::new_err(format!("a value is a text or a number, not {kind}")))
}

/// Reads a kernel to model. A release that never existed is refused.
pub(crate) fn kernel(text: &str) -> Result<KernelVersion, Failure> {
    let shown = Name::from(text);
    let version = text.parse().map_err(|_| {
        Failure::new(format!("invalid kernel version \"{shown}\": expected a version such as 6.12 or 5.10.223"))
    })?;
    match Release::parse(text) {
        Err(error @ NotARelease::NeverReleased(..)) => {
            Err(Failure::new(error).hint("floodline kernels lists the known releases"))
        }
        _ => Ok(version),
    }
}

/// A length of time: seconds as a number, or a text such as `500ms`.
pub(crate) fn duration(value: &Bound<'_, PyAny>) -> PyResult<Nanos> {
    let wrong = |shown: &str| {
        Failure::new(format!("invalid duration {shown}: expected seconds, or a text such as 500ms or 2m"))
    };
    if let Ok(text) = value.cast::<PyString>() {
        let text = text.to_string();
        let time: Time = text.parse().map_err(|_| wrong(&Name::from(text.as_str()).to_string()))?;
        return Ok(Nanos(time.nanos()));
    }
    let seconds: f64 = value.extract()?;
    if !(seconds.is_finite() && (0.0..9e9).contains(&seconds)) {
        return Err(wrong(&seconds.to_string()).into());
    }
    Ok(Nanos((seconds * 1e9) as u64))
}

/// A size: bytes as a number, or a text such as `64M`.
pub(crate) fn size(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let Ok(text) = value.cast::<PyString>() else { return value.extract() };
    let text = text.to_string();
    let short = [('K', "KiB"), ('M', "MiB"), ('G', "GiB"), ('T', "TiB")];
    let long = short.iter().find_map(|(letter, unit)| Some(format!("{} {unit}", text.strip_suffix(*letter)?)));
    let size: ByteSize = long.as_deref().unwrap_or(&text).parse().map_err(|_| {
        Failure::new(format!("invalid size {}: expected bytes, or a text such as 256M", Name::from(text.as_str())))
    })?;
    Ok(size.bytes())
}

/// The rule of a name.
pub(crate) fn rule(name: &str) -> Result<&'static str, Failure> {
    let names = || RULES.iter().map(|rule| rule.name);
    names().find(|known| *known == name).ok_or_else(|| {
        let part = names().find(|known| name.len() >= 4 && known.contains(name));
        let failure = Failure::new(format!("unknown rule \"{}\"", Name::from(name)));
        match part.or_else(|| nearest(name, names())) {
            Some(meant) => failure.hint(format!("did you mean {meant}?")),
            None => failure.hint("floodline explain lists the rules"),
        }
    })
}

/// Rules by name; none stands for all.
pub(crate) fn rules(names: Option<Vec<String>>) -> Result<Vec<&'static str>, Failure> {
    names.unwrap_or_default().iter().map(|name| rule(name)).collect()
}

/// JSON of the program as Python's values.
pub(crate) fn loads<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyDict>> {
    let value = py.import("json")?.call_method1("loads", (json,))?;
    Ok(value.cast_into()?)
}
