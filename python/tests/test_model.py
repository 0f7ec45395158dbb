# SPDX-License-Identifier: MIT OR Apache-2.0
"""The model: runs, sweeps, twins, predictions and advice."""

import json
import subprocess
from pathlib import Path

import floodline
import polars
import pytest


def test_a_run_is_that_of_the_program(program: str) -> None:
    line = [program, "simulate", "dirty-cliff", "--for", "5s", "--seed", "3", "--set", "vm.dirty_bytes=64M", "--format", "json"]
    theirs = json.loads(subprocess.run(line, check=False, capture_output=True).stdout)
    run = floodline.simulate("dirty-cliff", seconds=5, seed=3, set={"vm.dirty_bytes": "64M"})
    assert run.result == theirs
    again = floodline.simulate("dirty-cliff", seconds=5, seed=3, set={"vm.dirty_bytes": 64 << 20})
    assert again.recording.bytes() == run.recording.bytes()


def test_a_scenario_is_a_name_a_path_or_text(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "scenarios" / "dirty-cliff.toml").read_text()
    path = tmp_path / "mine.toml"
    path.write_text(text)
    results = [floodline.simulate(one, seconds=2).result for one in ["dirty-cliff", path, str(path), text]]
    assert results[1:] == results[:1] * 3


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ({"scenario": "dirty-clif"}, "dirty-cliff"),
        ({"scenario": "dirty-cliff", "variant": "remidy"}, "its variants"),
        ({"scenario": "dirty-cliff", "set": {"vm.dirty_bites": 1}}, None),
        ({"scenario": "dirty-cliff", "kernel": "five"}, None),
        ({"scenario": "dirty-cliff", "kernel": "6.99"}, "floodline kernels"),
        ({"scenario": "dirty-cliff", "seconds": -1}, None),
        ({"scenario": "dirty-cliff", "every": "1 fortnight"}, None),
        ({"scenario": "x = [\n"}, None),
    ],
)
def test_a_slip_is_refused(arguments: dict[str, object], hint: str | None) -> None:
    arguments = dict(arguments)
    with pytest.raises(floodline.Error) as error:
        floodline.simulate(arguments.pop("scenario"), **arguments)  # type: ignore[arg-type]
    assert "internal error" not in error.value.message
    if hint is not None:
        assert error.value.hint is not None and hint in error.value.hint


def test_a_sweep_is_that_of_the_program(program: str) -> None:
    line = [program, "sweep", "dirty-cliff", "--for", "3s", "--format", "json"]
    line += ["--grid", "vm.dirty_bytes=64M,nonsense", "--grid", "kernel=6.1,6.12"]
    theirs = json.loads(subprocess.run(line, check=False, capture_output=True).stdout)
    grid = {"vm.dirty_bytes": ["64M", "nonsense"], "kernel": ["6.1", "6.12"]}
    sweep = floodline.sweep("dirty-cliff", grid, seconds=3)
    assert sweep.result == theirs
    frame = polars.DataFrame(sweep.table)
    assert frame.columns[:4] == ["vm.dirty_bytes", "kernel", "error", "findings"]
    assert frame["error"].is_null().to_list() == [True, True, False, False]
    assert frame["host.dirtied_bytes"][0] > 0


def test_a_grid_that_means_nothing_is_refused() -> None:
    for grid in [{}, {"seed": []}, {"seed": range(400), "instances": range(400)}]:
        with pytest.raises(floodline.Error):
            floodline.sweep("dirty-cliff", grid)
    for wrong in [{"seed": "1"}, {"seed": 1}, {"seed": [None]}, 7]:
        with pytest.raises(TypeError):
            floodline.sweep("dirty-cliff", wrong)  # type: ignore[arg-type]
    with pytest.raises(floodline.Error, match="both"):
        floodline.sweep("dirty-cliff", {"seed": [1]}, seed=2)


def test_a_twin_runs(recording: floodline.Recording) -> None:
    twin = recording.twin()
    run = floodline.simulate(twin["toml"], kernel=twin["kernel"], seconds=2)
    assert run.result["scenario"] == "twin" or run.recording.samples > 0


def test_a_prediction_is_that_of_the_program(file: Path, recording: floodline.Recording, program: str) -> None:
    line = [program, "predict", str(file), "--set", "vm.dirty_ratio=40", "--format", "json"]
    theirs = json.loads(subprocess.check_output(line))
    told: list[tuple[int, int]] = []
    ours = recording.predict({"vm.dirty_ratio": 40}, progress=lambda done, total: told.append((done, total)))
    assert ours == theirs
    assert told[-1][0] == told[-1][1] > 0


def test_a_finding_is_a_change(recording: floodline.Recording) -> None:
    assert recording.predict(findings=["starved-dirty-budget"])["settings"]
    with pytest.raises(floodline.Error, match="is not found in this recording") as error:
        recording.predict(findings=["inode-switch-storm"])
    assert error.value.hint is not None and "starved-dirty-budget" in error.value.hint
    with pytest.raises(floodline.Error, match="no change"):
        recording.predict()
    with pytest.raises(floodline.Error) as error:
        recording.predict({"vm.dirty_ratoi": 40})
    assert error.value.hint
    with pytest.raises(TypeError):
        recording.predict({"vm.dirty_ratio": [40]})  # type: ignore[dict-item]


def test_advice_is_a_plan() -> None:
    recording = floodline.simulate("slow-disk-journal", seconds=10).recording
    advice = recording.advise(settings=4, max_at_risk="256M", max_pause=0.5)
    assert advice["schema"].startswith("floodline.advice/")
    with pytest.raises(floodline.Error, match="goal"):
        recording.advise(goal="speed")
    with pytest.raises(floodline.Error):
        recording.advise(settings=1)
