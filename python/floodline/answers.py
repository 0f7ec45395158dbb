# SPDX-License-Identifier: MIT OR Apache-2.0
"""Types of the answers, for editors and type checkers. They are the JSON of the program: fields are added, never renamed.

Parts that are rarely read are plain dictionaries. A field may be ``None`` where the type says so: the value is not known.
"""

from __future__ import annotations

from typing import Any, TypedDict

Json = dict[str, Any]


class Finding(TypedDict, total=False):
    """A rule that found something. ``severity`` is ``critical``, ``warning`` or ``info``."""

    rule: str
    severity: str
    summary: str
    confirmed: str | None
    evidence: list[Json]
    cause: str
    plan: list[Json]
    trade_off: str
    devices: list[str]
    brief: Json


class Diagnosis(TypedDict, total=False):
    """``Recording.diagnose``, schema ``floodline.doctor/1``. ``plan`` is there when a change helps."""

    schema: str
    host: Json
    window_s: float
    findings: list[Finding]
    ruled_out: list[Json]
    not_checked: list[Json]
    gaps: list[Json]
    plan: Json
    symptom: Json
    observation: Json


class BudgetRow(TypedDict, total=False):
    """One cgroup, or the machine where ``cgroup`` is ``None``. Amounts are bytes."""

    cgroup: str | None
    container: str | None
    device: str | None
    dirty_bytes: int | None
    writeback_bytes: int | None
    bg_thresh_bytes: int | None
    thresh_bytes: int | None
    freerun_bytes: int | None
    share: float | None
    over_ratio: float | None
    binding: str | None
    exact: bool
    bg_thresh_bytes_min: int | None
    bg_thresh_bytes_max: int | None
    thresh_bytes_min: int | None
    thresh_bytes_max: int | None
    freerun_bytes_min: int | None
    freerun_bytes_max: int | None
    available_bytes_min: int | None
    available_bytes_max: int | None
    wb_dirty_bytes: int | None
    wb_writeback_bytes: int | None
    wb_thresh_bytes_min: int | None
    wb_thresh_bytes_max: int | None
    may_hold_bytes: int | None
    flags: list[str]
    missing: list[Any]


class Budget(TypedDict, total=False):
    """``Recording.budget``, schema ``floodline.budget/1``."""

    schema: str
    hostname: str
    kernel: str
    scope: str
    wb_stat_error_bytes: int | None
    rows: list[BudgetRow]
    hidden: int
    notes: list[str]
    disagreements: list[Any]
    gaps: list[Json]


class Predicted(TypedDict, total=False):
    """One figure now and after the change, with a 90 % interval, in ``unit``. ``better`` is ``less`` or ``more``."""

    figure: str
    label: str
    unit: str
    better: str
    now: float | None
    is_measured: bool
    then: float | None
    low: float | None
    high: float | None
    off_share: float | None
    least: float
    doubt: str | None


class Prediction(TypedDict, total=False):
    """``Recording.predict``, schema ``floodline.predict/1``."""

    schema: str
    settings: list[Json]
    kernel: str
    kernel_then: str
    headline: str
    back_test_error: float | None
    missed: list[str]
    rows: list[Predicted]
    vanish: list[Json]
    appear: list[Json]
    stay: list[Json]
    not_reproduced: list[Json]
    runs: int
    is_cut: bool
    notes: list[str]


class Twin(TypedDict, total=False):
    """``Recording.twin``, schema ``floodline.twin/1``. ``toml`` is the scenario file."""

    schema: str
    kernel: str
    seconds: float
    sample_interval_seconds: float
    twins: list[Json]
    programs: Json
    provenance: list[Json]
    ceilings: list[Json]
    unknown: list[str]
    toml: str


class Simulated(TypedDict, total=False):
    """``Run.result``, schema ``floodline.run/1``. ``figures`` maps names to value and unit."""

    schema: str
    executor: str
    scenario: str
    variant: str
    kernel: str
    kernel_version: str
    samples: int
    seconds: float
    first_sample_seconds: float | None
    beside_seconds: float | None
    figures: dict[str, Json]
    findings: list[Finding]
    not_as_expected: list[str]
    recording: str | None


class Group(TypedDict, total=False):
    """Hosts with one verdict for one cause; the worst host speaks for them."""

    verdict: str
    cause: str
    title: str
    hosts: int
    accepted: int
    severity_max: float
    severity_median: float
    margin_min: float | None
    stall_then_max_seconds: float | None
    examples: list[str]
    finding: str
    hint: str


class Fleet(TypedDict, total=False):
    """``Preflight.result``, schema ``floodline.preflight/1``. ``rows`` has one row per file."""

    schema: str
    change: str
    files: int
    superseded: int
    hosts: int
    suffers: int
    tight: int
    fine: int
    not_known: int
    accepted: int
    sick_already: int
    simulated: int
    controls: int
    controls_suffer: int
    is_interrupted: bool
    groups: list[Group]
    headline: str
    rows: list[Json]
