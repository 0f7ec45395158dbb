# SPDX-License-Identifier: MIT OR Apache-2.0
"""The types of answers agree with what answers are: every field is declared, every value is of its type."""

import types
import typing
from typing import Any

import floodline
import pytest
from floodline import answers


def misfits(value: Any, kind: Any, where: str) -> list[str]:
    """Where a value is not of its type."""
    if kind is Any:
        return []
    if typing.is_typeddict(kind) and isinstance(value, dict):
        hints = typing.get_type_hints(kind)
        wrong = [f"{where}.{key} is not declared" for key in value if key not in hints]
        return wrong + [one for key in value if key in hints for one in misfits(value[key], hints[key], f"{where}.{key}")]
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return [] if any(not misfits(value, one, where) for one in inner) else [f"{where}: {value!r} is not {kind}"]
    if origin is list and isinstance(value, list):
        return [one for item in value for one in misfits(item, inner[0], f"{where}[]")]
    if origin is dict and isinstance(value, dict):
        return [one for item in value.values() for one in misfits(item, inner[1], f"{where}{{}}")]
    is_plain = origin is None and not typing.is_typeddict(kind)
    fits = is_plain and isinstance(value, (int, float) if kind is float else kind)
    return [] if fits else [f"{where}: {value!r} is not {kind}"]


@pytest.mark.parametrize(
    ("kind", "ask"),
    [
        (answers.Diagnosis, lambda run: run.recording.diagnose()),
        (answers.Budget, lambda run: run.recording.budget()),
        (answers.Prediction, lambda run: run.recording.predict({"vm.dirty_ratio": 40})),
        (answers.Twin, lambda run: run.recording.twin()),
        (answers.Simulated, lambda run: run.result),
        (answers.Simulated, lambda run: floodline.simulate("healthy-idle", seconds=2).result),
        (answers.Advice, lambda run: run.recording.advise(settings=2)),
        (answers.Swept, lambda run: floodline.sweep("healthy-idle", {"seed": [1, 2], "kernel": ["6.1", "no"]}, seconds=2).result),
        (answers.Fleet, lambda run: floodline.preflight("/dev/null", {"vm.dirty_ratio": 40}).result),
    ],
)
def test_an_answer_has_the_fields_that_its_type_declares(kind: Any, ask: Any, run: floodline.Run) -> None:
    answer = ask(run)
    assert misfits(answer, kind, kind.__name__) == []
    # What a type declares and no answer has would be a promise that nothing keeps.
    missing = set(typing.get_type_hints(kind)) - set(answer)
    # Some fields are there only when they say something, as the docstrings of their types tell.
    assert missing <= {answers.Diagnosis: {"unexplained"}, answers.Prediction: {"between", "sparse_s", "horizon"}}.get(kind, set())
