# SPDX-License-Identifier: MIT OR Apache-2.0
"""Pre-flight of a fleet: the program's answer, bad files as rows, engines, and stores that do not answer."""

import json
import pickle
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import floodline
import floodline.fleet
import polars
import pytest

CHANGE = {"cgroup": "v2", "kernel": "6.12", "vm.dirty_ratio": 10}
LINE = ["--set", "cgroup=v2", "--set", "kernel=6.12", "--set", "vm.dirty_ratio=10"]


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 hosts of three kinds, and files that are something else."""
    folder = tmp_path_factory.mktemp("fleet")
    kinds = [
        floodline.simulate("starved-budget", kernel="5.10", seconds=12).recording.bytes(),
        floodline.simulate("dirty-cliff", seconds=8).recording.bytes(),
        floodline.simulate("healthy-idle", seconds=8).recording.bytes(),
    ]
    for host in range(24):
        below = folder / f"host=h{host:02}"
        below.mkdir()
        (below / "1.flr").write_bytes(kinds[host % 3])
    (folder / "empty.flr").write_bytes(b"")
    (folder / "foreign.flr").write_bytes(b"PK\x03\x04 an archive")
    (folder / "cut.flr").write_bytes(kinds[0][:500])
    (folder / "notes.txt").write_text("no recording")
    return folder


def rows(answer: floodline.Preflight) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answer.result["rows"]
    return found


@pytest.fixture(scope="session")
def expected(fleet: Path) -> list[dict[str, Any]]:
    return rows(floodline.preflight(fleet, CHANGE, tier=1))


def test_the_answer_is_that_of_the_program(fleet: Path, program: str) -> None:
    line = [program, "preflight", str(fleet), *LINE, "--format", "json", "--tier", "1", "--accept", "file-empty"]
    theirs = json.loads(subprocess.run(line, check=True, capture_output=True).stdout)
    told: list[tuple[int, int]] = []
    answer = floodline.preflight(fleet, CHANGE, tier=1, accept=["file-empty"], progress=lambda *now: told.append(now))
    assert len(answer) == 27
    ours = answer.result
    # Folders are walked in another order.
    for one in (ours, theirs):
        one["rows"].sort(key=lambda row: row["file"])
        for group in one["groups"]:
            group["examples"].sort()
    assert ours == theirs
    assert answer.headline == theirs["headline"] in str(answer) and told[-1] == (27, 27)
    frame = polars.DataFrame(answer.table)
    assert frame.height == 27 and frame["file"].str.ends_with("empty.flr").sum() == 1


def test_a_simulated_answer_is_that_of_the_program(fleet: Path, program: str) -> None:
    files = [str(fleet / "host=h00" / "1.flr"), str(fleet / "host=h02" / "1.flr")]
    line = [program, "preflight", *files, "--set", "vm.dirty_bytes=64M", "--format", "json"]
    theirs = json.loads(subprocess.run(line, check=True, capture_output=True).stdout)
    answer = floodline.preflight(files, {"vm.dirty_bytes": "64M"})
    assert answer.result == theirs and any(row["tier"] == 2 for row in theirs["rows"])


def test_a_bad_file_is_a_row_with_what_to_type(expected: list[dict[str, Any]]) -> None:
    causes = {Path(row["file"]).name: row["cause"] for row in expected if row["verdict"] == "not_known"}
    assert causes["empty.flr"] == "file-empty" and causes["foreign.flr"] == "not-a-recording" and "cut.flr" in causes
    assert all(row["hint"] for row in expected if row["verdict"] == "not_known")


def test_missing_and_unreadable_files_are_rows(tmp_path: Path) -> None:
    found = rows(floodline.preflight([tmp_path / "missing.flr", "/dev/zero"], CHANGE))
    assert [row["cause"] for row in found] == ["file-unreadable", "not-a-file"]


def one_by_one(fn: Callable[[Any], Any], batches: Iterable[Any]) -> list[Any]:
    """An engine that sends everything through pickle, last batch first."""
    fn = pickle.loads(pickle.dumps(fn))
    return [pickle.loads(pickle.dumps(fn(pickle.loads(pickle.dumps(batch))))) for batch in reversed(list(batches))]


def test_any_function_is_an_engine(fleet: Path, expected: list[dict[str, Any]]) -> None:
    told: list[tuple[int, int]] = []
    answer = floodline.fleet.run(fleet, CHANGE, tier=1, engine=one_by_one, progress=lambda *now: told.append(now))
    assert rows(answer) == expected and told[-1] == (27, 27)


def test_batches_cover_every_file_once() -> None:
    for count in [1, 2, 7, 8, 9, 100, 1001]:
        for size in [1, 3, 5000]:
            seen: list[str] = []

            def engine(fn: Any, batches: Any, size: int = size, seen: list[str] = seen) -> Any:
                for number, names in batches:
                    seen.extend(names)
                    items: list[tuple[str, object]] = [(name, OSError("made up")) for name in names]
                    made = floodline._floodline._judge(items, CHANGE, 1, 0.0, 1)
                    yield number, made, len(names) * floodline.fleet.SECONDS / size, floodline.__version__

            names = [f"{number:04}.flr" for number in range(count)]
            answer = floodline.fleet.run(names, CHANGE, tier=1, engine=engine)
            assert sorted(seen) == names
            assert [row["file"] for row in rows(answer)] == names


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        (lambda fn, batches: [], "returned no result"),
        (lambda fn, batches: [(-1, *fn(batch)[1:]) for batch in batches], "belongs to no batch"),
        (lambda fn, batches: [(*fn(batch)[:3], "0.0.1") for batch in batches], "a worker has floodline 0.0.1"),
        ("spark", "unknown engine"),
    ],
)
def test_an_engine_that_does_not_do_its_work_is_an_error(engine: Any, message: str, fleet: Path) -> None:
    with pytest.raises(floodline.Error, match=message) as error:
        floodline.fleet.run(fleet, CHANGE, engine=engine, tier=1)
    assert error.value.hint


def test_a_slip_is_refused_before_any_file_is_read(fleet: Path, tmp_path: Path) -> None:
    for change in [{}, {"vm.dirty_ratoi": 1}, {"cgroup": "v3"}, {"kernel": "new"}]:
        with pytest.raises(floodline.Error) as error:
            floodline.preflight(fleet, change)  # type: ignore[arg-type]
        assert error.value.hint and "--" not in error.value.hint, error.value
    for wrong in [{"accept": ["file-emtpy"]}, {"tier": 3}, {"control": 7}]:
        with pytest.raises(floodline.Error) as error:
            floodline.preflight(fleet, CHANGE, **wrong)  # type: ignore[arg-type]
        assert error.value.hint or "tier" in error.value.message
    for paths in [tmp_path, str(tmp_path / "*.flr"), []]:
        with pytest.raises(floodline.Error) as error:
            floodline.preflight(paths, CHANGE)  # type: ignore[arg-type]
        assert error.value.hint


def test_names_are_found_in_order_and_once(fleet: Path) -> None:
    names = floodline.fleet.files([fleet, fleet / "cut.flr", str(fleet / "host=h0[01]" / "*.flr")])
    assert len(names) == 27 == len(set(names)) and not any(name.endswith(".txt") for name in names)
    assert floodline.fleet.files(fleet / "notes.txt") == [str(fleet / "notes.txt")]


def test_recordings_in_a_store_are_read(fleet: Path, expected: list[dict[str, Any]]) -> None:
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    store.put(str(fleet), "/fleet", recursive=True)
    answer = floodline.fleet.run("memory://fleet", CHANGE, tier=1)
    assert sorted(row["cause"] for row in rows(answer)) == sorted(row["cause"] for row in expected)
    pattern = floodline.fleet.run("memory://fleet/host=h0*/1.flr", CHANGE, tier=1)
    assert len(pattern) == 10
    gone = floodline.fleet.run(["memory://fleet/gone.flr", "memory://fleet/empty.flr"], CHANGE)
    assert [row["cause"] for row in rows(gone)] == ["file-unreadable", "file-empty"]


def test_a_store_that_does_not_answer_is_a_clear_error() -> None:
    pytest.importorskip("s3fs")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        options = {"key": "k", "secret": "s", "endpoint_url": url}
        with pytest.raises(floodline.Error, match="did not answer within 1 s") as error:
            floodline.fleet.run("s3://bucket/fleet", CHANGE, storage_options=options, timeout=1)
        assert error.value.hint is not None and "timeout" in error.value.hint


def test_files_that_come_late_or_never_are_rows_and_the_others_are_judged(
    fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = (fleet / "host=h00" / "1.flr").read_bytes()
    ended = threading.Event()

    def fetch(url: str, options: object) -> bytes:
        ended.wait(30 if "never" in url else 0.05)
        return content

    monkeypatch.setattr(floodline.fleet, "_fetch", fetch)
    # One file in eight never comes: as many in all as are fetched at once.
    names = [f"memory://late/{'never' if at % 8 == 0 else 'late'}{at}.flr" for at in range(72)]
    begun = time.perf_counter()
    found = dict(floodline.fleet._contents(names, {}, 0.5))
    assert time.perf_counter() - begun < 20
    assert list(found) == names
    for name in names:
        assert isinstance(found[name], TimeoutError if "never" in name else bytes), name
    # A store that answers nothing is asked once.
    begun = time.perf_counter()
    silent = floodline.fleet._contents([f"memory://silent/never{at}.flr" for at in range(800)], {}, 0.5)
    assert len(silent) == 800 and time.perf_counter() - begun < 20
    ended.set()


def test_a_scheme_that_nobody_knows_is_a_clear_error() -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(floodline.Error) as error:
        floodline.fleet.run("carrier-pigeon://loft/fleet", CHANGE)
    assert error.value.hint
