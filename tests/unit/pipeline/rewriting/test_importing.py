"""Parquet files as a new Delta table: all of them, in their order, with every value."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from zorder_pipeline.errors import TableError
from zorder_pipeline.pipeline.rewriting.importing import BATCH, table_from_parquet


def rows(table: Path) -> pa.Table:
    return DeltaTable(table).to_pyarrow_table()


def test_rows_stay_about_where_they_were(tmp_path: Path) -> None:
    """Each core takes some: of batches of the scanner's usual size rows of hundreds of thousands changed places."""
    (tmp_path / "files").mkdir()
    for i in range(4):
        pq.write_table(pa.table({"i": np.arange(i * 300_000, (i + 1) * 300_000)}), tmp_path / "files" / f"{i}.parquet")
    table_from_parquet([tmp_path / "files"], tmp_path / "t")
    found = np.concatenate([pq.read_table(file)["i"].to_numpy() for file in DeltaTable(tmp_path / "t").file_uris()])
    assert np.abs(found - np.arange(len(found))).max() <= 20 * BATCH


def test_files_are_parquet_by_what_is_in_them(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    for name in ("a.parquet", "b.parq", "c.PARQUET", "part-0001"):
        pq.write_table(pa.table({"name": [name] * 2}), tmp_path / "files" / name)
    (tmp_path / "files" / "notes.txt").write_text("PA")
    pq.write_table(pa.table({"name": ["hidden"]}), tmp_path / "files" / "_temporary")
    (tmp_path / "files" / "LATEST").symlink_to("gone")
    os.mkfifo(tmp_path / "files" / "pipe")
    assert table_from_parquet([tmp_path / "files"], tmp_path / "t").rows == 8
    assert set(rows(tmp_path / "t")["name"].to_pylist()) == {"a.parquet", "b.parq", "c.PARQUET", "part-0001"}


def test_folders_behind_links_are_read_and_circles_end(tmp_path: Path) -> None:
    """Their rows were left out, and nothing said so."""
    for place, count in (("files/ds=2026-01-01", 10), ("disk/old", 20)):
        (tmp_path / place).mkdir(parents=True)
        pq.write_table(pa.table({"k": range(count)}), tmp_path / place / "a.parquet")
    for day in ("2026-01-02", "2026-01-03"):  # Spark reads what two of them lead to twice
        (tmp_path / "files" / f"ds={day}").symlink_to(tmp_path / "disk" / "old")
    for name, goal in (("up", ".."), ("itself", "itself")):
        (tmp_path / "disk" / "old" / name).symlink_to(goal)
        (tmp_path / "files" / "ds=2026-01-01" / name).symlink_to(goal)
    assert table_from_parquet([tmp_path / "files"], tmp_path / "t").rows == 50
    assert Counter(map(str, rows(tmp_path / "t")["ds"].to_pylist())) == {
        "2026-01-01": 10,
        "2026-01-02": 20,
        "2026-01-03": 20,
    }


def test_numbers_without_a_sign_are_of_the_types_that_spark_reads(tmp_path: Path) -> None:
    """Those above half of what they hold were refused, and small ones became narrower than Spark has them."""
    most = {
        "a": (pa.uint8(), 200),
        "b": (pa.uint16(), 60_000),
        "c": (pa.uint32(), 4 * 10**9),
        "d": (pa.uint64(), 2**63),
    }
    columns = {name: pa.array([value, 1], kind) for name, (kind, value) in most.items()}
    pq.write_table(pa.table(columns), tmp_path / "f.parquet")
    table_from_parquet([tmp_path / "f.parquet"], tmp_path / "t")
    found = rows(tmp_path / "t")
    assert [str(kind) for kind in found.schema.types] == ["int16", "int32", "int64", "decimal128(20, 0)"]
    assert [int(found[name].to_pylist()[0]) for name in most] == [value for _, value in most.values()]
    (tmp_path / "two").mkdir()
    for i, column in enumerate((pa.array([4 * 10**9], pa.uint32()), pa.array([0.5]))):
        nested = pa.StructArray.from_arrays([pa.array([200], pa.uint8())], ["small"])
        pq.write_table(pa.table({"c": column, "s": nested}), tmp_path / "two" / f"{i}.parquet")
    table_from_parquet([tmp_path / "two"], tmp_path / "u")
    assert [str(kind) for kind in rows(tmp_path / "u").schema.types] == ["double", "struct<small: int16>"]


def test_an_empty_text_that_a_table_is_partitioned_by_is_null(tmp_path: Path) -> None:
    """A relayout refused the table that was made so: nobody can tell an empty text from null in a path."""
    pq.write_table(pa.table({"p": ["", "a", None], "i": [1, 2, 3]}), tmp_path / "f.parquet")
    table_from_parquet([tmp_path / "f.parquet"], tmp_path / "t", ["p"])
    found = dict(zip(*(rows(tmp_path / "t")[name].to_pylist() for name in ("i", "p")), strict=True))
    assert found == {1: None, 2: "a", 3: None}
    pq.write_table(pa.table({"p": ["__HIVE_DEFAULT_PARTITION__"], "i": [1]}), tmp_path / "f.parquet")
    with pytest.raises(TableError, match="column p has the text __HIVE_DEFAULT_PARTITION__, which is null in a path"):
        table_from_parquet([tmp_path / "f.parquet"], tmp_path / "u", ["p"])
    assert not (tmp_path / "u").exists()
    assert table_from_parquet([tmp_path / "f.parquet"], tmp_path / "u").rows == 1
