"""What queries read of files in their row groups, against every row group's share written out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from zorder_pipeline.features.sample import Sample, SampleColumn
from zorder_pipeline.gate.benefit import ReadVolumes
from zorder_pipeline.model.predicate import And, Comparison, Literal
from zorder_pipeline.model.ranges import Boxes, Interval, Range, to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.model.zone_map import ColumnZones, ZoneMap
from zorder_pipeline.pipeline.learning.volumes import _bytes, _shares_read, _virtual


def _box(low: int, high: int) -> Boxes:
    return ((Range("a", "bigint", (Interval(low, high),)),),)


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
    boxes = [(), ((),), *(_box(at, at + 15) for at in range(0, 100, 9))]
    hits = rng.random((len(boxes), 30)) < 0.8

    member = np.zeros((len(file), 30))
    for group, number in enumerate(file):
        member[group, number] = rows[group] / max(1, rows[file == number].sum())
    read = np.array([groups.matching(query) for query in boxes]) & hits[:, file]
    assert _shares_read(groups, file, boxes, hits) == pytest.approx(read @ member)


def test_no_row_group_and_no_query() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    none = ZoneMap(nothing, nothing, {})
    assert _shares_read(none, nothing, [((),)], np.ones((1, 2), dtype=bool)).tolist() == [[0.0, 0.0]]
    assert _shares_read(none, nothing, [], np.ones((0, 2), dtype=bool)).shape == (0, 2)


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
