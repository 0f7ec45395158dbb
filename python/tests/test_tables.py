# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables: other libraries read them, without copying, as the program exports them."""

import subprocess
from pathlib import Path

import duckdb
import floodline
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest


def test_every_library_reads_the_same(recording: floodline.Recording) -> None:
    cgroups = recording.table("cgroup")
    rows = recording.tables["cgroup"]
    assert len(cgroups) == rows > 100
    frame = polars.DataFrame(cgroups)
    assert frame.shape == (rows, len(cgroups.columns)) and frame.columns == cgroups.columns
    total = frame["file_dirty_bytes"].sum()
    assert total > 0
    assert pandas.DataFrame.from_arrow(cgroups)["file_dirty_bytes"].sum() == total
    assert pyarrow.table(cgroups)["file_dirty_bytes"].combine_chunks().drop_null().to_numpy().sum() == total
    assert duckdb.sql("select sum(file_dirty_bytes) from cgroups").fetchall() == [(total,)]


def test_a_table_is_what_the_program_exports(
    file: Path, recording: floodline.Recording, program: str, tmp_path: Path
) -> None:
    subprocess.run([program, "export", file, "--format", "parquet", "-o", tmp_path], check=True, capture_output=True)
    names = sorted(name for name, rows in recording.tables.items() if rows > 0)
    assert sorted(path.stem for path in tmp_path.glob("*.parquet")) == names
    for name in names:
        ours = pyarrow.table(recording.table(name))
        theirs = pyarrow.parquet.read_table(tmp_path / f"{name}.parquet")
        assert ours.schema.equals(theirs.schema, check_metadata=False)
        assert ours.equals(theirs), name


def test_nothing_is_copied(recording: floodline.Recording) -> None:
    table = recording.table("process")
    position = table.columns.index("monotonic_ns")
    # Every reader gets the same memory.
    first, again = (pyarrow.table(table).column(position).chunk(0).buffers()[1].address for _ in range(2))
    assert first == again
    assert polars.DataFrame(table)["monotonic_ns"].to_arrow().buffers()[1].address == first


def test_a_table_outlives_its_recording() -> None:
    table = floodline.simulate("dirty-cliff", seconds=3).recording.table("disk")
    frame = polars.DataFrame(table)
    del table
    assert frame["name"].unique().to_list() == ["vda"]


def test_a_table_without_rows_has_its_columns(recording: floodline.Recording) -> None:
    empty = [name for name, rows in recording.tables.items() if rows == 0]
    assert empty
    frame = polars.DataFrame(recording.table(empty[0]))
    assert frame.height == 0 and frame.width > 3


def test_columns_are_described(recording: floodline.Recording) -> None:
    for name in recording.tables:
        table = recording.table(name)
        assert table.name == name and all(table.describe(column).endswith(".") for column in table.columns)
    with pytest.raises(KeyError):
        recording.table("disk").describe("colour")


def test_an_unknown_table_is_refused_by_name(recording: floodline.Recording) -> None:
    with pytest.raises(floodline.Error) as error:
        recording.table("disks")
    assert error.value.hint == "did you mean disk?"
