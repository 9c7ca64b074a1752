"""What queries read of files in their row groups: against each row group looked at, and against all rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.pipeline.learning.stored_tables import box, stored_table
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.model.ranges import Boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.model.zone_map import ColumnZones, ZoneMap
from zorder_pipeline.pipeline.learning import row_groups, volumes
from zorder_pipeline.pipeline.learning.row_groups import GROUP_SAMPLE, StoredFiles, sampled_groups
from zorder_pipeline.pipeline.learning.volumes import FileVolumes, present_volumes

Floats = npt.NDArray[np.float64]
NOTHING = np.zeros(0, dtype=np.int64)


def of_groups(groups: ZoneMap, file: npt.NDArray[np.int64], boxes: Sequence[Boxes], files: int) -> StoredFiles:
    """Files of which all row groups are known, and nothing else."""
    rows = np.zeros(files, dtype=np.int64)
    return StoredFiles(boxes, ZoneMap(rows, rows, {}), groups, file, np.ones(files, dtype=bool), np.ones(len(boxes)))


@pytest.mark.parametrize("seed", range(5))
def test_shares_read_are_those_of_the_row_groups(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, 30)
    counts[[0, 7, 29]] = 0  # files without row groups, the first and the last one among them
    file = np.repeat(np.arange(30), counts)
    low = rng.integers(0, 100, len(file))
    zones = ColumnZones(
        low, low + rng.integers(0, 20, len(file)), rng.random(len(file)) < 0.9, np.zeros(len(file), int)
    )
    rows = rng.integers(0, 50, len(file))
    groups = ZoneMap(rows, rows, {"a": zones})
    boxes = [(), ((),), *(box("a", at, at + 15) for at in range(0, 100, 9))]
    hits = rng.random((len(boxes), 30)) < 0.8

    member = np.zeros((len(file), 30))
    for group, number in enumerate(file):
        member[group, number] = rows[group] / max(1, rows[file == number].sum())
    read = np.array([groups.matching(query) for query in boxes]) & hits[:, file]
    found = of_groups(groups, file, boxes, 30)
    assert found.shares(slice(None), hits) == pytest.approx(read @ member)
    assert found.shares(slice(3, 5), hits[3:5]) == pytest.approx((read @ member)[3:5])


def test_no_row_group_and_no_query() -> None:
    none = ZoneMap(NOTHING, NOTHING, {})
    assert of_groups(none, NOTHING, [((),)], 2).shares(slice(None), np.ones((1, 2), dtype=bool)).tolist() == [[0, 0]]
    assert of_groups(none, NOTHING, [], 2).shares(slice(None), np.ones((0, 2), dtype=bool)).shape == (0, 2)


FILES, ROWS, MOST = 100, 6_400, 1_000_000
"""Of a table whose rows lie by ``k``, in files and inside them; the other columns have nothing to do with that."""
OTHERS = ("u", "v", "w", "x")
DRAWN = np.random.default_rng(1)
TABLE = {name: DRAWN.integers(0, MOST, FILES * ROWS) for name in ("k", *OTHERS)}
TABLE["k"].sort()
FILE = np.repeat(np.arange(FILES), ROWS)
RARE = [box(name, MOST - MOST // 20, MOST) for name in OTHERS]
LEADING = [box("k", at, at + 100) for at in DRAWN.integers(0, MOST, 100).tolist()]
SCHEMA = TableSchema(tuple(Column(name, "bigint") for name in TABLE))


def estimator_of(rows: npt.NDArray[np.int64], boxes: Sequence[Boxes]) -> Estimator:
    known = np.ones(len(rows), dtype=np.bool_)
    return Estimator.build({name: (values[rows], known) for name, values in TABLE.items()}, SCHEMA, boxes, len(rows))


def truth(groups: int, boxes: Sequence[Boxes], files: int = FILES) -> Floats:
    """Share of the rows of opened files that lie in row groups which queries read, by all rows of the first files."""
    return np.array([_read(groups, query, files) / _read(1, query, files) for query in boxes])


def _read(groups: int, query: Boxes, files: int) -> float:
    """Share of the rows in parts of files that a query for one range reads."""
    asked = query[0][0]
    values, interval = TABLE[asked.column][: files * ROWS].reshape(files * groups, -1), asked.intervals[0]
    return float(np.mean((values.min(axis=1) <= interval.high) & (values.max(axis=1) >= interval.low)))


def told(each: int, groups: int, boxes: Sequence[Boxes], files: int = FILES) -> Floats:
    """The same by so many rows of each file."""
    rng = np.random.default_rng(each)
    rows = np.concatenate([np.sort(rng.choice(ROWS, each, replace=False)) + f * ROWS for f in range(files)])
    estimator, of = estimator_of(rows, boxes), np.full(files, float(groups))
    return sampled_groups(estimator, FILE[rows], TABLE["k"][rows], of, ROWS / each)


@pytest.mark.parametrize("each", [200, 50, 25])
@pytest.mark.parametrize("groups", [1, 8, 64])
def test_what_the_order_has_nothing_to_do_with_is_not_skipped_for_want_of_sampled_rows(each: int, groups: int) -> None:
    """By 25 rows of a row group a query for the largest values seemed to skip most: a relayout that changes nothing
    promised them as a saving."""
    assert truth(groups, RARE).min() > 0.98
    assert told(each, groups, RARE).mean() > 0.95


@pytest.mark.parametrize("each", [200, 50, 25])
@pytest.mark.parametrize("groups", [8, 64])
def test_what_is_skipped_by_the_order_is_told_as_far_as_the_sample_shows_it(each: int, groups: int) -> None:
    exact, found = truth(groups, LEADING).mean(), told(each, groups, LEADING).mean()
    assert 1 / groups < exact < 1 / groups + 0.03
    assert exact < found < exact + 2 * GROUP_SAMPLE / each
    assert truth(1, LEADING).tolist() == told(each, 1, LEADING).tolist() == [1.0] * len(LEADING)


def test_where_all_rows_are_sampled_row_groups_are_what_they_are() -> None:
    """Those of few rows are skipped also where the order has nothing to do with the query."""
    rare = [box(name, MOST - MOST // 50, MOST) for name in OTHERS]
    exact, found = truth(64, rare, 5), told(ROWS, 64, rare, 5)
    assert 0.8 < exact.mean() < 0.95
    assert found == pytest.approx(exact, abs=1e-9)


def test_files_of_other_sizes_have_their_own_row_groups() -> None:
    """A single large one is told by its rows, among small ones that are a row group each."""
    rows = np.arange(len(FILE))[:: ROWS // 200]
    file = np.maximum(0, FILE[rows] - FILES // 2)  # half of the table in the first one
    estimator = estimator_of(rows, LEADING)
    groups = np.where(np.arange(FILES // 2) == 0, 50.0, 1.0)
    found = sampled_groups(estimator, file, TABLE["k"][rows], groups, ROWS / 200)
    low = np.array([query[0][0].intervals[0].low for query in LEADING])
    assert found[low < 0.49 * MOST].max() < 0.1
    assert found[low > 0.51 * MOST].min() == 1.0


def alike(folder: Path, files: int, each: int = 400) -> Any:
    """Files of all values in their order, in four row groups each."""
    tables = [pa.table({"a": np.sort(np.random.default_rng(i).integers(0, 1_000, each))}) for i in range(files)]
    return stored_table(folder, tables, each // 4)


QUERIES = [LoggedQuery("t", None, ("a",)) for _ in range(40)]  # type: ignore[arg-type]
ASKED = [box("a", at, at + 30) for at in range(0, 1_000, 25)]


def by_hand(folder: Path, files: int) -> Floats:
    """Share of the table's rows in the row groups that each query reads."""
    found = [pq.ParquetFile(folder / f"{i}.parquet").read_row_group(g)["a"] for i in range(files) for g in range(4)]
    zones = np.array([(values[0].as_py(), values[-1].as_py()) for values in found])
    low, high = (np.array([getattr(query[0][0].intervals[0], end) for query in ASKED]) for end in ("low", "high"))
    return np.mean((zones[:, 0] <= high[:, None]) & (zones[:, 1] >= low[:, None]), axis=1)


def same(left: FileVolumes, right: FileVolumes) -> bool:
    names = ("bytes", "files", "rows", "groups", "pages")
    pairs = [(getattr(left, name), getattr(right, name)) for name in names]
    return all((a is None and b is None) or a == pytest.approx(b, rel=1e-12) for a, b in pairs)


@pytest.mark.parametrize("pages", [True, False])
def test_some_statements_after_the_other_read_what_all_read_together(
    pages: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million of ten thousand files took ten gigabytes."""
    snapshot, largest = alike(tmp_path, 6), list[int]()
    together = present_volumes(snapshot, QUERIES, ASKED, pages)
    assert together.groups == pytest.approx(by_hand(tmp_path, 6))
    shares = StoredFiles.shares

    def counting(self: StoredFiles, some: slice, hits: Any) -> Floats:
        largest.append(hits.size)
        return shares(self, some, hits)

    monkeypatch.setattr(StoredFiles, "shares", counting)
    monkeypatch.setattr(row_groups, "AT_ONCE", 20)
    assert same(present_volumes(snapshot, QUERIES, ASKED, pages), together)
    assert max(largest) <= 20
    assert (together.pages is not None) == pages


@pytest.mark.parametrize("missing", [False, True])
def test_row_groups_of_many_files_are_told_by_those_whose_footers_are_read(
    missing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more files than that none were known, so that what a layout skips by them seemed to be saved by it."""
    snapshot = alike(tmp_path, 12)
    exact = present_volumes(snapshot, QUERIES, ASKED)
    if missing:  # VACUUM took them
        for i in range(0, 12, 3):
            (tmp_path / f"{i}.parquet").unlink()
    else:
        monkeypatch.setattr(volumes, "MOST_FOOTERS", 11)
        monkeypatch.setattr(volumes, "SAMPLED_FOOTERS", 4)
    found = present_volumes(snapshot, QUERIES, ASKED)
    assert found.groups == pytest.approx(exact.groups, abs=0.15)
    assert found.groups.mean() == pytest.approx(exact.groups.mean(), rel=0.05)
    assert found.bytes / snapshot.files().bytes.sum() == pytest.approx(found.groups, abs=0.02), "all columns are read"
    monkeypatch.setattr(row_groups, "AT_ONCE", 20)
    assert same(present_volumes(snapshot, QUERIES, ASKED), found)


def test_who_opens_none_of_the_files_that_are_known_reads_what_is_usual(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = [pa.table({"a": np.arange(400) + (0 if i % 3 == 0 else 400)}) for i in range(9)]
    snapshot = stored_table(tmp_path, tables, 100)
    monkeypatch.setattr(volumes, "MOST_FOOTERS", 8)
    monkeypatch.setattr(volumes, "SAMPLED_FOOTERS", 4)
    monkeypatch.setattr(volumes, "read_footers", _only(volumes.read_footers, {"0.parquet", "3.parquet"}))
    boxes = [box("a", 10, 20), box("a", 390, 399), box("a", 500, 510), box("a", 90, 110)]
    found = present_volumes(snapshot, QUERIES[:4], boxes)
    assert found.groups == pytest.approx(np.array([3 / 4, 3 / 4, 6 * (1 + 1 + 2) / 12, 2 * 3 / 4]) / 9)


def _only(read: Any, known: set[str]) -> Any:
    """What reads the footers of some files, and of no other."""
    return lambda location, paths: read(location, [path if path in known else "gone" for path in paths])
