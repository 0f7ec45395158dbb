# SPDX-License-Identifier: MIT OR Apache-2.0
"""Types of the answers, for editors and type checkers. They are the JSON of the program: fields are added, never renamed.

Parts that are rarely read are plain dictionaries. A field may be ``None`` where the type says so: the value is not known.
"""

from __future__ import annotations

from typing import Any, TypedDict

Json = dict[str, Any]


class Finding(TypedDict, total=False):
    """A rule that found something. ``severity`` is ``critical``, ``warning`` or ``info``. ``plan`` has the steps of the diagnosis'
    plan that are for it. ``left_out`` is there when that plan leaves out a step that the rule asks for, and says why.
    """

    rule: str
    severity: str
    summary: str
    confirmed: str | None
    evidence: list[Json]
    cause: str
    plan: list[Json]
    left_out: list[Json]
    trade_off: str
    devices: list[str]
    brief: Json


class Diagnosis(TypedDict, total=False):
    """``Recording.diagnose``, schema ``floodline.doctor/1``. ``plan`` is ``None`` where no change helps, ``unexplained`` is
    there when a trace shows long waits in fsync and no rule found their cause. ``unseen`` lists what the recording is too short to
    show: only where it is empty, a diagnosis without findings clears the host.
    """

    schema: str
    host: Json
    window_s: float
    findings: list[Finding]
    ruled_out: list[Json]
    not_checked: list[Json]
    gaps: list[Json]
    plan: Json | None
    symptom: Json
    unexplained: Json
    unseen: list[Json]
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
    strictlimit: bool
    wb_bg_thresh_bytes_min: int | None
    wb_bg_thresh_bytes_max: int | None
    wb_freerun_bytes_min: int | None
    wb_freerun_bytes_max: int | None
    wb_over_ratio: float | None


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
    roughly: list[float] | None
    least: float
    doubt: str | None


class Doubtful(TypedDict, total=False):
    """A finding of which it is not certain whether it is there after the change. ``is_there`` is the more likely answer; of ``answers``
    such answers ``right`` were right. ``reason`` is ``unchecked``, ``runs``, ``unshown``, ``only_twin``, ``severity``, ``hidden``,
    ``new``, ``waits``, ``assumed``, ``speed`` or ``missed``."""

    rule: str
    severity: str
    is_there: bool
    reason: str
    answers: int
    right: int
    is_likely: bool


class NoOther(TypedDict, total=False):
    """The answer that no finding comes that a prediction does not name. Of ``answers`` such answers ``right`` were right."""

    answers: int
    right: int
    is_likely: bool


class Prediction(TypedDict, total=False):
    """``Recording.predict``, schema ``floodline.predict/2``. ``between``, ``sparse_s`` and ``horizon`` are there only when they say
    something."""

    schema: str
    settings: list[Json]
    kernel: str
    kernel_then: str
    headline: str
    verdict: str
    no_verdict: str | None
    unknown: list[str]
    back_test_error: float | None
    missed: list[str]
    rows: list[Predicted]
    limits: Json
    risk_room_bytes: float | None
    recorded: list[Json]
    vanish: list[Json]
    appear: list[Json]
    stay: list[Json]
    not_reproduced: list[Json]
    lasting: list[Json]
    between: list[Json]
    doubtful: list[Doubtful]
    no_other: NoOther | None
    unjudged: list[str]
    sparse_s: float
    horizon: Json
    runs: int
    is_cut: bool
    only_up_to: list[Json]
    notes: list[str]
    simplified: list[str]


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
    simplified: list[str]
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
    plan: Json | None
    not_as_expected: list[str]
    simplified: list[str]
    recording: str | None


class LedgerTotals(TypedDict, total=False):
    """Bytes of the whole machine. ``queued`` has ``data_bytes``, ``metadata_bytes``, ``journal_bytes``, and others."""

    application_bytes: int
    dirtied_bytes: int
    redirtied_bytes: int
    cancelled_bytes: int
    queued: dict[str, int]
    credited_bytes: int
    unattributed_bytes: int
    diskstats_bytes: int | None


class LedgerProcess(TypedDict, total=False):
    """One process. ``device_bytes`` are credited to it, ``amplification`` is their part of ``application_bytes``."""

    pid: int
    comm: str
    cgroup: str
    application_bytes: int | None
    dirtied_bytes: int
    redirtied_bytes: int
    device_bytes: int
    amplification: float | None


class LedgerCgroup(TypedDict, total=False):
    """One cgroup. ``charged_bytes`` is what the kernel charged to it."""

    cgroup: str
    dirtied_bytes: int
    redirtied_bytes: int
    device_bytes: int
    charged_bytes: int


class Ledger(TypedDict, total=False):
    """``Recording.ledger``, schema ``floodline.ledger/1``. Lists have most bytes, or the longest time, first."""

    schema: str
    window_s: float
    totals: LedgerTotals
    disks: list[Json]
    processes: list[LedgerProcess]
    cgroups: list[LedgerCgroup]
    files: list[Json]
    waits: list[Json]
    synced: list[Json]
    throttled: list[Json]
    mismatches: list[Json]
    gaps: list[str]


class Tried(TypedDict, total=False):
    """One candidate and its figures on the model. ``breaks`` names the constraint that it does not keep."""

    settings: list[Json]
    label: str
    at_risk_bytes: float
    stall_seconds: float
    longest_wait_seconds: float | None
    pause_seconds: float
    written_bytes: float
    throughput: float
    smallest_budget_bytes: float | None
    regret_seconds: float
    breaks: str | None
    on_curve: bool
    is_extrapolated: bool


class Advice(TypedDict, total=False):
    """``Recording.advise``, schema ``floodline.advice/1``. ``chosen`` is an index of ``tried``; ``None``: change nothing."""

    schema: str
    goal: str
    headline: str
    constraints: Json
    tried: list[Tried]
    chosen: int | None
    gain_share: float | None
    error_share: float
    back_test_error: float | None
    missed: list[str]
    no_verdict: str | None
    prediction: Prediction | None
    plan: Json | None
    undo: list[str]
    commands: list[str]
    undo_commands: list[str]
    notes: list[str]
    simplified: list[str]


class SweptRow(TypedDict, total=False):
    """One combination. It has ``run``, or ``error``: why nothing ran."""

    at: dict[str, str]
    run: Simulated
    error: str


class Swept(TypedDict, total=False):
    """``Sweep.result``, schema ``floodline.sweep/1``. ``best`` is an index of ``rows``, where one stands out."""

    schema: str
    scenario: str
    axes: list[str]
    rows: list[SweptRow]
    best: int | None
    simplified: list[str]


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
    unread: int
    cut: int
    damaged: int
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
