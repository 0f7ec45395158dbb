# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures the package: a million rows to polars, and a fleet on threads and on Ray with as many workers.

    python measure.py [--hosts N] [--tier 1|2] [--ray]

Needs polars, and Ray with --ray. Recordings are made by the model. Figures count for a release build on a quiet machine.
"""

import argparse
import pathlib
import tempfile
import time

import floodline
import floodline.fleet


def timed(work):
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def rows() -> None:
    import polars

    run, made = timed(lambda: floodline.simulate("healthy-containers", seconds=300, every="5ms"))
    recording = run.recording
    name = max(recording.tables, key=lambda table: recording.tables[table])
    table, decoded = timed(lambda: recording.table(name))
    frame, handed = min((timed(lambda: polars.DataFrame(table)) for _ in range(5)), key=lambda pair: pair[1])
    print(
        f"{name}: {len(table)} rows of {frame.width} columns; simulated in {made:.1f} s, decoded in {decoded:.1f} s, "
        f"to polars in {handed * 1e3:.1f} ms ({handed * 1e9 / len(table):.0f} ms for a million rows)"
    )


def fleet(hosts: int, tier: int, with_ray: bool) -> None:
    folder = pathlib.Path(tempfile.mkdtemp())
    kinds = [
        floodline.simulate(scenario, kernel="6.1", seconds=60, every="1s").recording.bytes()
        for scenario in ["starved-budget", "healthy-idle", "slow-disk-journal", "dirty-cliff"]
    ]
    for host in range(hosts):
        below = folder / f"host=h{host:05}"
        below.mkdir()
        (below / "1.flr").write_bytes(kinds[host % len(kinds)])
    change = {"cgroup": "v2", "kernel": "6.12", "vm.dirty_ratio": 10}
    answer, threads = timed(lambda: floodline.fleet.run(folder, change, tier=tier))
    print(f"threads: {hosts} hosts in {threads:.2f} s; {answer.headline}")
    if not with_ray:
        return
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    floodline.fleet.run(next(folder.iterdir()), change, engine="ray", tier=tier)
    again, on_ray = timed(lambda: floodline.fleet.run(folder, change, engine="ray", tier=tier))
    same = again.result["rows"] == answer.result["rows"]
    print(f"Ray: {hosts} hosts in {on_ray:.2f} s, {on_ray / threads:.2f} × threads; the same rows: {same}")
    ray.shutdown()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", type=int, default=2000)
    parser.add_argument("--tier", type=int, default=1)
    parser.add_argument("--ray", action="store_true")
    asked = parser.parse_args()
    if asked.tier == 1:
        rows()
    fleet(asked.hosts, asked.tier, asked.ray)
