# SPDX-License-Identifier: MIT OR Apache-2.0
"""Engines for real: Ray and Dask with two workers, of which one dies during the run, and an S3-compatible server.

`make python` runs these tests. With PYTHON_FAST=1 this file is left out.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import floodline
import floodline.fleet
import pytest
import ray

CHANGE = {"cgroup": "v2", "kernel": "6.12", "vm.dirty_ratio": 10}
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 hosts of two kinds, and two files that are something else."""
    folder = tmp_path_factory.mktemp("engines")
    kinds = [
        floodline.simulate("starved-budget", kernel="5.10", seconds=12).recording.bytes(),
        floodline.simulate("healthy-idle", seconds=8).recording.bytes(),
    ]
    for host in range(60):
        below = folder / f"host=h{host:02}"
        below.mkdir()
        (below / "1.flr").write_bytes(kinds[host % 2])
    (folder / "empty.flr").write_bytes(b"")
    (folder / "foreign.flr").write_bytes(b"PK\x03\x04 an archive")
    return folder


def rows(answer: floodline.Preflight) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answer.result["rows"]
    return found


@pytest.fixture(scope="module")
def expected(fleet: Path) -> list[dict[str, Any]]:
    return rows(floodline.preflight(fleet, CHANGE, tier=1))


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def store(fleet: Path) -> Iterator[dict[str, Any]]:
    """An S3-compatible server with the fleet in a bucket."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = {"key": "k", "secret": "s", "endpoint_url": f"http://{host}:{port}"}
    import fsspec

    s3 = fsspec.filesystem("s3", **options)
    s3.mkdir("bucket")
    s3.put(str(fleet), "bucket/fleet", recursive=True)
    yield options
    server.stop()


def small(engine: Callable[..., Any], spoil: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """The engine with batches of three, so that there are many, and with a function that spoils some of them."""

    def go(fn: Any, batches: Any) -> Any:
        made = list(batches)
        if all(len(names) == 1 for _, names in made):
            # The sample: let one file seem to take a third of a batch.
            for number, found, _, version in engine(fn, made):
                yield number, found, floodline.fleet.SECONDS / 3, version
            return
        yield from engine(spoil(fn) if spoil else fn, made)

    return go


def killing(marker: Path) -> Callable[..., Any]:
    """The first worker that gets a batch dies without a word, with the batch in its hands."""

    def spoil(fn: Any) -> Any:
        def call(batch: Any) -> Any:
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return fn(batch)
            os.kill(os.getpid(), signal.SIGKILL)

        return call

    return spoil


def test_ray_gives_the_same_rows(fleet: Path, expected: list[dict[str, Any]], cluster: None) -> None:
    assert rows(floodline.fleet.run(fleet, CHANGE, tier=1, engine="ray")) == expected


def test_ray_simulates_as_this_machine_does(fleet: Path, cluster: None) -> None:
    few = [str(fleet / f"host=h0{host}" / "1.flr") for host in range(4)]
    change = {"vm.dirty_bytes": "64M"}
    here = rows(floodline.preflight(few, change))
    assert any(row["tier"] == 2 for row in here)
    assert rows(floodline.fleet.run(few, change, engine="ray")) == here


def test_ray_gives_the_same_rows_when_a_worker_dies(
    fleet: Path, expected: list[dict[str, Any]], cluster: None, tmp_path: Path
) -> None:
    engine = small(floodline.fleet.ask_ray, killing(tmp_path / "died"))
    assert rows(floodline.fleet.run(fleet, CHANGE, tier=1, engine=engine)) == expected
    assert (tmp_path / "died").exists()


def test_ray_gives_the_same_rows_when_a_node_dies(
    fleet: Path, expected: list[dict[str, Any]], cluster: None, tmp_path: Path
) -> None:
    from ray.cluster_utils import Cluster

    ray.shutdown()
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        second = made.add_node(num_cpus=1)
        ray.init(address=made.address, log_to_driver=False, configure_logging=False)
        made.wait_for_nodes()
        marker, lost = tmp_path / "took", second.node_id

        def spoil(fn: Any) -> Any:
            def call(batch: Any) -> Any:
                if ray.get_runtime_context().get_node_id() == lost:
                    # The node dies with this batch in its hands.
                    marker.touch()
                    time.sleep(600)
                return fn(batch)

            return call

        def remove() -> None:
            while not marker.exists():
                time.sleep(0.05)
            made.remove_node(second, allow_graceful=False)

        remover = threading.Thread(target=remove, daemon=True)
        remover.start()
        engine = small(floodline.fleet.ask_ray, spoil)
        assert rows(floodline.fleet.run(fleet, CHANGE, tier=1, engine=engine)) == expected
        remover.join(60)
        assert marker.exists() and not remover.is_alive()
        assert second not in made.list_all_nodes()
    finally:
        ray.shutdown()
        made.shutdown()
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)


def test_ray_reads_a_fleet_from_s3(expected: list[dict[str, Any]], store: dict[str, Any], cluster: None) -> None:
    found = rows(floodline.fleet.run("s3://bucket/fleet", CHANGE, tier=1, engine="ray", storage_options=store))
    assert {row["file"].split("/fleet/")[1]: row["finding"] for row in found} == {
        "/".join(Path(row["file"]).parts[-2:]) if "host=" in row["file"] else Path(row["file"]).name: row["finding"]
        for row in expected
    }
    gone = floodline.fleet.run(["s3://bucket/fleet/gone.flr"], CHANGE, tier=1, engine="ray", storage_options=store)
    assert rows(gone)[0]["cause"] == "file-unreadable"
    other = floodline.fleet.run("s3://other/fleet", CHANGE, tier=1, storage_options=store)
    assert [row["cause"] for row in rows(other)] == ["file-unreadable"]


def test_ray_says_that_a_worker_has_no_package(fleet: Path, cluster: None, tmp_path: Path) -> None:
    # Workers that find another `floodline` first, which fails as a missing one does.
    (tmp_path / "floodline.py").write_text("raise ModuleNotFoundError(\"No module named 'floodline'\")\n")
    ray.shutdown()
    try:
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            configure_logging=False,
            runtime_env={"env_vars": {"PYTHONPATH": str(tmp_path)}},
        )
        with pytest.raises(floodline.Error, match="cannot import floodline") as error:
            floodline.fleet.run(fleet, CHANGE, tier=1, engine="ray")
        assert error.value.hint is not None and "pip install floodline==" in error.value.hint
    finally:
        ray.shutdown()
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)


def test_dask_gives_the_same_rows_when_a_worker_dies(
    fleet: Path, expected: list[dict[str, Any]], tmp_path: Path
) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as made,
        distributed.Client(made),
    ):
        assert rows(floodline.fleet.run(fleet, CHANGE, tier=1, engine="dask")) == expected
        engine = small(floodline.fleet.ask_dask, killing(tmp_path / "died"))
        assert rows(floodline.fleet.run(fleet, CHANGE, tier=1, engine=engine)) == expected
    assert (tmp_path / "died").exists()


def test_the_script_of_the_kubernetes_job_runs(
    expected: list[dict[str, Any]], store: dict[str, Any], cluster: None, tmp_path: Path
) -> None:
    import json
    import subprocess
    import sys

    import yaml

    manifest = Path(__file__).parents[2] / "packaging" / "kubernetes" / "ray-preflight.yaml"
    config, job = yaml.safe_load_all(manifest.read_text())
    script = tmp_path / "preflight.py"
    script.write_text(config["data"]["preflight.py"])
    runtime = yaml.safe_load(job["spec"]["runtimeEnvYAML"])
    assert f"floodline=={floodline.__version__}" in runtime["pip"]
    assert job["spec"]["rayClusterSpec"]["rayVersion"] == ray.__version__
    given = {
        "FLEET": "s3://bucket/fleet",
        "RESULT": f"file://{tmp_path}/result.json",
        "CHANGE": json.dumps(CHANGE),
        "STORAGE_OPTIONS": json.dumps(store),
        "TIER": "1",
        "RAY_ADDRESS": ray.get_runtime_context().gcs_address,
    }
    # The result is a local file here, which takes no options of a store.
    script.write_text(script.read_text().replace('"w", **options', '"w"'))
    assert set(runtime["env_vars"]) | {"RAY_ADDRESS"} == set(given)
    ended = subprocess.run([sys.executable, script], env={**os.environ, **given}, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    assert sorted(row["cause"] for row in result["rows"]) == sorted(row["cause"] for row in expected)
    assert f"{len(expected)} of {len(expected)} files" in ended.stdout
