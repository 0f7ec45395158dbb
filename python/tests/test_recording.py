# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recordings: what opens, what they answer, and that the program answers the same."""

import json
import pickle
import random
import subprocess
from pathlib import Path
from typing import Any

import floodline
import pytest

QUESTIONS = ["diagnose", "budget", "twin", "report"]


def test_a_path_a_string_and_bytes_are_the_same_recording(file: Path, recording: floodline.Recording) -> None:
    sources = [file, str(file), file.read_bytes(), bytearray(file.read_bytes())]
    for again in map(floodline.Recording, sources):
        assert again.bytes() == recording.bytes()
        assert (again.samples, again.tables) == (recording.samples, recording.tables)
        assert again.hostname == "simulated" and again.kernel is not None and again.kernel.startswith("6.1.0")
        assert again.damage == []


@pytest.mark.parametrize(
    ("method", "command"),
    [("diagnose", ["doctor", "--fail-on", "never"]), ("budget", ["budget", "--all"]), ("twin", ["twin"])],
)
def test_an_answer_is_that_of_the_program(
    method: str, command: list[str], file: Path, recording: floodline.Recording, program: str
) -> None:
    line = [program, command[0], str(file), *command[1:], "--format", "json"]
    theirs = json.loads(subprocess.check_output(line))
    ours: dict[str, Any] = getattr(recording, method)()
    ours.pop("toml", None)
    assert ours == theirs


def test_budgets_under_other_conditions(recording: floodline.Recording) -> None:
    answer = recording.budget(as_if="vm.dirty_ratio=1")
    assert "dirty_ratio" in json.dumps(answer)
    with pytest.raises(floodline.Error) as error:
        recording.budget(as_if="vm.dirty_ratoi=1")
    assert error.value.hint
    with pytest.raises(floodline.Error) as error:
        recording.budget(as_if="x")
    assert error.value.hint is not None and error.value.hint.startswith('e.g. as_if="cgroup=v2'), error.value.hint


def test_a_ledger_needs_a_trace(recording: floodline.Recording) -> None:
    with pytest.raises(floodline.Error, match="without the tracer") as error:
        recording.ledger()
    assert error.value.hint is not None and "--trace on" in error.value.hint


def test_rules_limit_a_diagnosis(recording: floodline.Recording) -> None:
    assert [finding["rule"] for finding in recording.diagnose(rules=["dirty-cliff"])["findings"]] in ([], ["dirty-cliff"])
    with pytest.raises(floodline.Error) as error:
        recording.diagnose(rules=["dirty-clif"])
    assert error.value.hint == "did you mean dirty-cliff?"


def test_a_report_shows_itself_in_a_frame(recording: floodline.Recording) -> None:
    page = recording.report()
    assert page.html.startswith("<!doctype html>") and "<script>" in page.html
    shown = page._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and shown.count('"') < 20
    both = recording.report(recording)
    assert both.html.startswith("<!doctype html>") and both.html != page.html


def test_what_is_not_a_recording_is_refused_with_what_to_type(tmp_path: Path) -> None:
    empty = tmp_path / "empty.flr"
    empty.write_bytes(b"")
    for source in [b"", b"x" * 100, empty, tmp_path / "missing.flr", tmp_path]:
        with pytest.raises(floodline.Error) as error:
            floodline.Recording(source)
        assert error.value.hint, source
    with pytest.raises(TypeError):
        floodline.Recording(7)  # type: ignore[arg-type]


def test_an_error_can_be_pickled() -> None:
    again = pickle.loads(pickle.dumps(floodline.Error("a", "b")))
    assert (type(again), again.message, again.hint, str(again)) == (floodline.Error, "a", "b", "a\nhint: b")
    assert str(floodline.Error("a")) == "a"


def ask_everything(content: bytes) -> None:
    """Raises nothing but the one error."""
    try:
        recording = floodline.Recording(content)
        for table in recording.tables:
            recording.table(table)
    except floodline.Error:
        return
    for question in QUESTIONS:
        try:
            getattr(recording, question)()
        except floodline.Error as error:
            assert "internal error" not in error.message, error


def test_a_damaged_recording_is_an_error_or_a_part(recording: floodline.Recording) -> None:
    whole = recording.bytes()
    chance = random.Random(7)
    for length in [0, 1, 7, 8, 40, len(whole) // 3, len(whole) // 2, len(whole) - 1]:
        ask_everything(whole[:length])
    for _ in range(12):
        hurt = bytearray(whole)
        for _ in range(chance.choice([1, 1, 4, 64])):
            hurt[chance.randrange(len(hurt))] = chance.randrange(256)
        ask_everything(bytes(hurt))
    cut = floodline.Recording(whole[: len(whole) // 2])
    assert cut.samples < recording.samples and cut.damage
    twice = floodline.Recording(whole + whole)
    assert "after the end" in twice.damage[0]


def test_every_recording_of_the_tests_in_rust_opens() -> None:
    folder = Path(__file__).parents[2] / "crates"
    files = sorted(folder.rglob("*.flr"))
    assert files, "the fixtures are elsewhere now"
    for file in files:
        ask_everything(file.read_bytes())
