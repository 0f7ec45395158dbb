# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables: other libraries read them, without copying, as the program exports them."""

import subprocess
from pathlib import Path

import duckdb
import floodline
import pandas
import polars
import pyarrow
import pyarrow.compute
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


def kept(frame: polars.DataFrame, name: str) -> pyarrow.Array:
    """A column as polars holds it."""
    column = frame[name].to_arrow(compat_level=polars.CompatLevel.newest())
    assert isinstance(column, pyarrow.Array)
    return column


def addresses(column: pyarrow.Array) -> list[int | None]:
    return [buffer.address if buffer else None for buffer in column.buffers()]


def test_nothing_is_copied(recording: floodline.Recording) -> None:
    for name in recording.tables:
        table = recording.table(name)
        if len(table) == 0:
            continue
        # Every reader gets the same memory.
        first, again = pyarrow.table(table), pyarrow.table(table)
        frames = [polars.DataFrame(table) for _ in range(2)]
        assert frames[0].equals(polars.DataFrame(again))
        for column in table.columns:
            [strings] = first.column(column).chunks
            one, other = (kept(frame, column) for frame in frames)
            assert addresses(again.column(column).chunk(0)) == addresses(strings)
            assert addresses(one)[1] == addresses(other)[1]
            if strings.type != pyarrow.string():
                assert addresses(one)[1] == addresses(strings)[1], (name, column)
                continue
            # What polars keeps are views. They point into the texts that the others read.
            assert one.type == pyarrow.string_view()
            assert addresses(one)[2:] == [addresses(strings)[2]], (name, column)


def test_a_long_table_is_whole_in_one_piece_and_in_parts(long_table: floodline.Table) -> None:
    parts = pyarrow.table(long_table)
    assert parts["time"].num_chunks == len(long_table) // 2**18 + 1 > 1
    frame = polars.DataFrame(long_table)
    assert frame.n_chunks() == 1 and frame.equals(polars.DataFrame(parts))
    copied = duckdb.sql("select count(*), count(comm), max(monotonic_ns) from parts").fetchall()
    assert duckdb.sql("select count(*), count(comm), max(monotonic_ns) from long_table").fetchall() == copied
    assert pandas.DataFrame.from_arrow(long_table).equals(parts.to_pandas())


def test_pyarrow_computes_with_texts(recording: floodline.Recording) -> None:
    # It has few functions for views.
    rows = pyarrow.table(recording.table("process")).sort_by("comm")
    known = rows["comm"][0].as_py()
    assert 0 < rows.filter(pyarrow.compute.equal(rows["comm"], known)).num_rows < rows.num_rows


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
