# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recordings that the tests share. The model makes them: nothing is read from the machine."""

import os
from pathlib import Path

import floodline
import pytest


@pytest.fixture(scope="session")
def run() -> floodline.Run:
    """A starved container on an old kernel: it has findings and a plan."""
    return floodline.simulate("starved-budget", kernel="6.1", seconds=15)


@pytest.fixture(scope="session")
def recording(run: floodline.Run) -> floodline.Recording:
    return run.recording


@pytest.fixture(scope="session")
def file(recording: floodline.Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recordings") / "starved.flr"
    path.write_bytes(recording.bytes())
    return path


@pytest.fixture(scope="session")
def long_table() -> floodline.Table:
    """Rows for more than one batch of a stream."""
    return floodline.simulate("healthy-containers", seconds=12, every="1ms").recording.table("process")


@pytest.fixture(scope="session")
def program() -> str:
    """The program that the package must agree with: `make python` builds it."""
    return os.environ["FLOODLINE_PROGRAM"]
