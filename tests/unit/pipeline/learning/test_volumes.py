"""What queries read of the files of a layout, in bytes, row groups and pages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.unit.pipeline.learning.stored_tables import box
from zorder_pipeline.features.sample import Sample, SampleColumn
from zorder_pipeline.gate.benefit import ReadVolumes
from zorder_pipeline.model.predicate import And, Comparison, Literal
from zorder_pipeline.model.ranges import to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.learning.paging import sampled_pages
from zorder_pipeline.pipeline.learning.volumes import _bytes, _virtual


class _Compared(frozenset[str]):
    """A set of columns that counts how often it is compared."""

    times = 0

    def __eq__(self, other: object) -> bool:
        _Compared.times += 1
        return super().__eq__(other)

    __hash__ = frozenset.__hash__


def test_each_statement_reads_its_own_columns_and_no_pair_of_them_is_compared() -> None:
    """Each statement was, with each different set of columns."""
    rng = np.random.default_rng(0)
    names = [f"c{i}" for i in range(12)]
    sizes = {name: rng.integers(1, 100, 7).astype(np.float64) for name in names[:-1]}
    read = [_Compared(rng.choice(names, rng.integers(0, 6), replace=False)) for _ in range(1_500)]
    weighed = rng.random((len(read), 7))
    _Compared.times = 0
    found = _bytes(weighed, sizes, read)
    assert _Compared.times < 5 * len(read)
    zero = np.zeros(7)
    expected = [
        row @ sum((sizes[n] for n in sorted(one) if n in sizes), zero) for row, one in zip(weighed, read, strict=True)
    ]
    assert found == pytest.approx(expected)
    assert _bytes(weighed[:0], sizes, []).tolist() == []


def _promised(shares: tuple[float, float], lies: float, opened: float = 3.0) -> ReadVolumes:
    """What two queries read of a table of 15 days, of which ten are sampled: of such a one, and another."""
    schema = TableSchema((Column("ds", "int", partition=True), Column("x", "int")))
    rows, day = 10_000, np.arange(10_000) % 10
    values, known = np.random.default_rng(0).integers(0, 1000, rows), np.ones(rows, dtype=np.bool_)
    columns = {"ds": SampleColumn(day, known), "x": SampleColumn(values, known)}
    sample = Sample(columns, day.astype(np.int32), rows, 1_500_000, 0, 0, 10)
    leaves = [SimpleNamespace(path=(column.name,), column=column) for column in schema.columns]
    files = SimpleNamespace(bytes=np.full(15, 10**8))
    snapshot = SimpleNamespace(schema=schema, leaves=leaves, partition_columns=("ds",), files=lambda: files)
    analysis: Any = SimpleNamespace(snapshot=snapshot, sample=sample)
    asked = [And((_is("ds", number), _is("x", 5))) for number in (3, 12)]
    queries = [LoggedQuery("t", each, columns=("ds", "x")) for each in asked]
    boxes = [to_boxes(each, schema) for each in asked]
    unordered = np.zeros(rows, dtype=np.int64)
    told, now = (np.array(shares), np.full(2, lies)), np.full(2, opened)
    return _virtual(analysis, queries, boxes, day.astype(np.int64), unordered, told, now, None, "snappy")


def _is(column: str, number: int) -> Comparison:
    return Comparison(column, "=", (Literal("number", str(number)),))


def test_what_the_sample_lacks_is_not_saved_whole() -> None:
    sampled, lacking = _promised((1 / 15, 1 / 15), 1 / 15).bytes_after.tolist()
    assert lacking == pytest.approx(sampled, rel=0.5)
    told = _promised((1 / 15, 0.0), 1 / 15)
    assert told.bytes_after[1] == pytest.approx(lacking)
    assert told.files_after[1] == 3.0
    assert _promised((1 / 15, 0.0), 1 / 15, 40.0).files_after[1] == 10.0, "there are no more then"
    assert _promised((1 / 15, 0.0), 0.5, 1.0).files_after[1] == 5.0, "smaller ones, of half of the rows"
    assert _promised((1 / 15, 1 / 1500), 1 / 15, 1.0).files_after[1] == 1.0
    assert _promised((1 / 15, 1 / 30), 1 / 15, 4.0).files_after[1] == pytest.approx(2.0)
    assert told.groups_after[1] == pytest.approx(1 / 15)
    assert _promised((1 / 15, 1 / 150), 1 / 15).bytes_after[1] == pytest.approx(lacking / 10), "where it is known"
    assert _promised((1 / 15, 0.0), 0.0).bytes_after[1] == 0.0


FILES, GIGABYTE = 200, 1 << 30
RARE, LEADING = ("u", "v", "w", "x"), "k"
"""Columns that have nothing to do with the order of the rows, and the one that they lie by."""


def _large(each: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Files of a gigabyte and 4.8 million rows, of which so many are sampled: the file and the key of each of these."""
    rng, rows = np.random.default_rng(each), FILES * each
    key = np.sort(rng.integers(0, 1_000_000, rows))
    values = {LEADING: key, **{name: rng.integers(0, 1_000_000, rows) for name in RARE}}
    columns = {name: SampleColumn(of, np.ones(rows, dtype=np.bool_)) for name, of in values.items()}
    file = np.repeat(np.arange(FILES), each)
    sample = Sample(columns, file.astype(np.int32), rows, FILES * 4_800_000, 0, 0, FILES)
    schema = TableSchema(tuple(Column(name, "bigint") for name in values))
    leaves = [SimpleNamespace(path=(column.name,), column=column) for column in schema.columns]
    files = SimpleNamespace(bytes=np.full(FILES, GIGABYTE))
    snapshot = SimpleNamespace(schema=schema, leaves=leaves, partition_columns=(), files=lambda: files)
    return SimpleNamespace(snapshot=snapshot, sample=sample), file, key


@pytest.mark.parametrize("each", [200, 50, 25])
@pytest.mark.parametrize("groups", [1, 8, 64])
def test_a_relayout_that_changes_nothing_saves_nothing_whatever_the_sample_lacks(each: int, groups: int) -> None:
    """The present files' row groups are known exactly: a query for the largest percent reads them all."""
    analysis, file, key = _large(each)
    boxes = [box(name, 990_000, 1_000_000) for name in RARE]
    queries, every = [LoggedQuery("t", And(()), columns=RARE)] * len(boxes), np.ones(len(boxes))
    opened, shares = every * FILES, (every, every)

    def told(groups: int) -> ReadVolumes:
        return _virtual(analysis, queries, boxes, file, key, shares, opened, GIGABYTE // groups, "snappy")

    before, after = told(1), told(groups)
    assert after.groups_after.mean() == pytest.approx(1.0, abs=0.05)
    assert after.bytes_after.mean() == pytest.approx(before.bytes_after.mean(), rel=0.05)
    now, then = (sampled_pages(analysis, boxes, file, key, in_groups) for in_groups in (every, after.groups_after))
    pages = np.minimum(after.bytes_after * then, after.bytes_after)
    assert pages.mean() == pytest.approx((before.bytes_after * now).mean(), rel=0.05)


@pytest.mark.parametrize(("each", "groups", "most"), [(200, 8, 0.2), (200, 64, 0.12), (50, 8, 0.35), (25, 8, 0.6)])
def test_what_the_leading_column_skips_inside_files_is_told(each: int, groups: int, most: float) -> None:
    """Of a file that it opens such a query reads a row group; the fewer are sampled the less is sure of that."""
    analysis, file, key = _large(each)
    starts = np.random.default_rng(1).integers(0, 999_900, 100).tolist()
    boxes = [box(LEADING, at, at + 100) for at in starts]
    queries, one = [LoggedQuery("t", And(()), columns=(LEADING,))] * len(boxes), np.ones(len(boxes))
    found = _virtual(analysis, queries, boxes, file, key, (one / FILES, one / FILES), one, GIGABYTE // groups, "snappy")
    inside = found.groups_after * FILES
    assert 1 / groups <= inside.min()
    assert inside.mean() < most
