# SPDX-License-Identifier: MIT OR Apache-2.0
"""Long calls: progress, signals, other threads, panics. And the examples of the documentation."""

import doctest
import inspect
import os
import signal
import subprocess
import sys
import threading
import types
from pathlib import Path

import floodline
import pytest


def documented() -> list[tuple[str, str]]:
    """Names and documentation of everything that people see."""
    found = [("floodline", floodline.__doc__ or ""), ("floodline.fleet", floodline.fleet.__doc__ or "")]
    found += [(name, inspect.getdoc(getattr(floodline.fleet, name)) or "") for name in floodline.fleet.__all__]
    for name in floodline.__all__:
        thing = getattr(floodline, name)
        if isinstance(thing, types.ModuleType) or not callable(thing):
            continue
        found.append((name, inspect.getdoc(thing) or ""))
        if isinstance(thing, type) and not issubclass(thing, Exception):
            members = [(below, member) for below, member in vars(thing).items() if not below.startswith("_")]
            found += [(f"{name}.{below}", inspect.getdoc(member) or "") for below, member in members]
    return found


def test_everything_is_documented() -> None:
    assert [name for name, text in documented() if len(text) < 20] == []


@pytest.mark.parametrize(("name", "text"), [one for one in documented() if ">>>" in one[1]])
def test_the_examples_hold(name: str, text: str) -> None:
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    said: list[str] = []
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)


def test_the_guide_holds() -> None:
    guide = Path(__file__).parents[2] / "docs" / "python.md"
    results = doctest.testfile(str(guide), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert results.failed == 0 < results.attempted


def test_progress_counts_to_the_end() -> None:
    told: list[tuple[int, int]] = []
    grid = {"vm.dirty_bytes": ["64M", "128M"]}
    floodline.sweep("dirty-cliff", grid, seconds=2, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (2, 2) and told == sorted(told)


class Stop(Exception):
    pass


def endless(**given: object) -> None:
    floodline.simulate("dirty-cliff", seconds=10_000_000, **given)  # type: ignore[arg-type]


def test_an_exception_of_the_progress_callback_ends_the_call() -> None:
    def stop(done: int, total: int) -> None:
        raise Stop

    with pytest.raises(Stop):
        endless(progress=stop)


def test_a_signal_ends_the_call() -> None:
    def stop(number: int, frame: object) -> None:
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(Stop):
            endless()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_ctrl_c_ends_the_call() -> None:
    # The child asks for the signal itself once it simulates: nothing depends on how long it takes to start.
    code = (
        "import floodline, os, signal, threading\n"
        "told = threading.Event()\n"
        "threading.Thread(target=lambda: (told.wait(), os.kill(os.getpid(), signal.SIGINT)), daemon=True).start()\n"
        "floodline.simulate('dirty-cliff', seconds=10_000_000, progress=lambda done, total: told.set())\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.stderr.rstrip().endswith("KeyboardInterrupt")


def test_other_threads_run_meanwhile() -> None:
    ran = threading.Event()

    def stop(done: int, total: int) -> None:
        if ran.is_set():
            raise Stop

    threading.Thread(target=lambda: [sum(range(1000)) for _ in range(100)] and ran.set()).start()
    with pytest.raises(Stop):
        endless(progress=stop)


def test_questions_from_many_threads(recording: floodline.Recording) -> None:
    answers: list[str] = []

    def ask() -> None:
        answers.append(recording.diagnose()["findings"][0]["rule"])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["starved-dirty-budget"] * 4


def test_a_panic_is_an_error() -> None:
    with pytest.raises(floodline.Error, match="on purpose") as error:
        floodline._floodline._panic()
    assert error.value.hint is not None and "report" in error.value.hint


def test_nothing_else_is_imported() -> None:
    code = "import sys; before = set(sys.modules); import floodline; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.check_output([sys.executable, "-I", "-c", code], text=True, env={**os.environ}).split()
    allowed = {"floodline", "floodline._error", "floodline._floodline", "floodline.fleet", "__future__"}
    assert set(loaded) <= allowed, loaded
