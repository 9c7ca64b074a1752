"""Parquet footers wherever a table lies: of object stores under Hadoop's names, and of those that cannot be reached."""

from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from zorder_pipeline.reading import footers
from zorder_pipeline.reading.footers import Footers, file_column_bytes, page_indexed, read_footers, row_groups
from zorder_pipeline.reading.page_zones import page_zones

PATHS = ["a%20b.parquet", "gone.parquet"]


def store(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    """A bucket, which is a folder here; the URIs that were asked for."""
    pq.write_table(pa.table({"x": range(50)}), folder / "a b.parquet", write_page_index=True)
    asked: list[str] = []

    def reached(uri: str) -> tuple[fs.FileSystem, str]:
        asked.append(uri)
        if not uri.startswith("s3://bucket/"):
            raise pa.ArrowInvalid(f"Unrecognized filesystem type in URI: {uri}")
        return fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem()), uri.partition("://bucket/")[2]

    monkeypatch.setattr(footers, "_OUT_OF_REACH", {})
    monkeypatch.setattr(fs, "FileSystem", SimpleNamespace(from_uri=reached))
    return asked


def test_hadoops_names_of_object_stores_reach_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = store(monkeypatch, tmp_path)
    found = read_footers("s3a://bucket/", PATHS)
    assert [item is not None for item in found.metadata] == [True, False]
    assert read_footers("s3a://bucket/", PATHS[::-1]).metadata[1] is not None, "one that is gone says nothing of others"
    columns = {"x": (("x",), "bigint"), "later": (("later",), "int")}
    zones, file = page_zones("s3a://bucket/", PATHS[:1], columns, page_rows=20) or (None, [])
    assert zones is not None
    assert (zones.rows.tolist(), list(file)) == ([20, 20, 10], [0, 0, 0])
    assert (zones.columns["x"].low.tolist(), zones.columns["x"].high.tolist()) == ([0, 20, 40], [19, 39, 49])
    assert not zones.columns["later"].known.any()
    assert page_zones("s3a://bucket/", PATHS, columns) is None
    assert set(asked) == {"s3://bucket/"}


def test_files_out_of_reach_are_asked_for_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = store(monkeypatch, tmp_path)
    for place in ("dbfs:/t", "s3a://other/t"):
        assert read_footers(place, PATHS * 20).metadata == (None,) * 40
        assert page_zones(place, PATHS, {"x": (("x",), "bigint")}) is None
        assert read_footers(place, PATHS).metadata == (None,) * 2
    assert asked == ["dbfs:/t", "s3://other/t"], "neither footers nor pages are tried again"
    assert read_footers("s3a://other/t", []).metadata == ()


@pytest.mark.parametrize(
    ("day", "moment"),
    [(-719_529, -62_135_600_000_000_000), (6_673_000, 253_402_318_799_000_000)],
    ids=["before the year 1", "after the year 9999"],
)
def test_bounds_that_python_has_no_date_for_are_unknown(tmp_path: Path, day: int, moment: int) -> None:
    """0000-01-01 and 20240-01-01, and what ends the year 9999 in New York or begins the year 1 in Berlin."""
    columns = {
        "day": pa.array([day, 0, None], pa.date32()),
        "at": pa.array([moment, 0, None], pa.timestamp("us", "UTC")),
        "local": pa.array([moment, 0, None], pa.timestamp("us")),
        "x": pa.array([1, 2, 3]),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    types = {"day": "date", "at": "timestamp", "local": "timestamp_ntz", "x": "bigint"}
    found = read_footers(str(tmp_path), ["a.parquet"])
    zones, _ = row_groups(found, {name: ((name,), kind) for name, kind in types.items()})
    assert {name: zone.known.tolist() for name, zone in zones.columns.items()} == {
        "day": [False], "at": [False], "local": [False], "x": [True],
    }  # fmt: skip
    assert {name: zone.null_count.tolist() for name, zone in zones.columns.items()} == {
        "day": [1], "at": [1], "local": [1], "x": [0],
    }  # fmt: skip


def test_columns_have_a_page_index_where_a_file_has_one(tmp_path: Path) -> None:
    """Spark writes instants as INT96 where nobody asks for another form, and these have none."""
    moments = pa.array([1_700_000_000_000_000, None], pa.timestamp("us", "UTC"))
    table, later = pa.table({"at": moments, "x": [1, 2]}), pa.table({"x": [3]})
    pq.write_table(table, tmp_path / "int96.parquet", write_page_index=True, use_deprecated_int96_timestamps=True)
    pq.write_table(table, tmp_path / "none.parquet")
    pq.write_table(later, tmp_path / "later.parquet", write_page_index=True)
    columns = {"at": (("at",), "timestamp"), "x": (("x",), "bigint"), "gone": (("gone",), "int")}

    def told(*names: str) -> frozenset[str] | None:
        return page_indexed(read_footers(str(tmp_path), [f"{name}.parquet" for name in names]), columns)

    assert [told("int96"), told("none"), told("none", "later")] == [{"x"}, frozenset(), {"x"}]
    pq.write_table(table, tmp_path / "ours.parquet", write_page_index=True)
    assert told("none", "int96", "missing", "ours") == {"at", "x"}
    assert told("missing") is page_indexed(Footers(()), columns) is None


def test_a_column_with_a_dot_in_its_name_is_no_field(tmp_path: Path) -> None:
    inner = {"m": pa.map_(pa.string(), pa.int64()), "l": pa.list_(pa.struct({"e": pa.int64()}))}
    struct = pa.struct({"b": pa.int64(), **inner, "c.d": pa.int64()})
    values = [{"b": i, "m": [("k", i)], "l": [{"e": i}], "c.d": -i} for i in range(100)]
    columns = {"a": pa.array(values, struct), "a.b": pa.array(range(1000, 1100)), "z": pa.array(range(100))}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet", write_page_index=True)
    found = read_footers(str(tmp_path), ["x.parquet"])
    asked = {"field": (("a", "b"), "bigint"), "dotted": (("a.b",), "bigint"), "both": (("a", "c.d"), "bigint")}
    expected = {"field": (0, 99), "dotted": (1000, 1099), "both": (-99, 0)}
    pages = page_zones(str(tmp_path), ["x.parquet"], asked)
    assert pages is not None
    for zones in (row_groups(found, asked)[0], pages[0]):
        assert {name: (zone.low[0], zone.high[0]) for name, zone in zones.columns.items()} == expected
    sizes = {name: size.tolist() for name, size in file_column_bytes(found, {"a.b": "dotted"}).items()}
    assert found.metadata[0] is not None
    group = found.metadata[0].row_group(0)
    every = [group.column(i).total_compressed_size for i in range(group.num_columns)]
    assert sizes == {"a": [sum(every[:-2])], "dotted": [every[-2]], "z": [every[-1]]}
