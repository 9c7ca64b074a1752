"""What is promised on all rows is told of the key that the rewrite will use."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from zorder_pipeline.layout.encoding import rank_encoding
from zorder_pipeline.layout.interleave import keys
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.predicate import Comparison, Literal
from zorder_pipeline.model.ranges import Boxes, Interval, Range, to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.zone_map import ColumnZones, ZoneMap
from zorder_pipeline.pipeline.learning import confirming
from zorder_pipeline.relayout import clustering
from zorder_pipeline.relayout.cell_zones import CellZones
from zorder_pipeline.relayout.file_list import FileList

DAY = np.arange(200).repeat(10)
LEARNED = 100
"""Days that the layout was learned from; as many came since."""
SCHEMA = TableSchema((Column("day", "int"),))
EVERYWHERE = np.ones(len(DAY), dtype=np.bool_)
COLUMNS = {"day": (DAY, EVERYWHERE)}


def remembered(bits: int = 4) -> KeySpec:
    """A layout of an earlier night."""
    known = DAY < LEARNED
    feature = rank_encoding("day", "int", DAY[known], EVERYWHERE[known]).feature(bits)
    return KeySpec((feature,), (0,) * bits, rows=int(known.sum()), clock="day")


def table() -> Any:
    """Two files, of which both have all days."""
    number, each = np.arange(2), np.full(2, len(DAY) // 2)
    zones = ColumnZones(np.zeros(2, np.int64), np.full(2, DAY[-1]), np.ones(2, np.bool_), np.zeros(2, np.int64))
    files = FileList(
        path=np.array(["a", "b"], dtype=object), bytes=each * 10, rows=each, deleted=each * 0, layout=("", ""),
        generation=each * 0 - 1, key_low=number, key_high=number, modified=number, partitions=((), ()),
        load_zones=lambda columns: {"day": zones},
    )  # fmt: skip
    rows = SimpleNamespace(columns=COLUMNS)
    return SimpleNamespace(
        files=lambda: files, schema=SCHEMA, whole_partitions=False, read_files=lambda _: rows, reading=nullcontext
    )


def asked(day: int) -> Boxes:
    return to_boxes(Comparison("day", "=", (Literal("number", str(day)),)), SCHEMA)


def in_memory(_: Any, spec: KeySpec, *__: Any) -> CellZones:
    """What `zones_by_cell` tells of the rows."""
    found, cell, rows = np.unique(keys(spec, COLUMNS), return_inverse=True, return_counts=True)
    members = [DAY[cell == i] for i in range(len(found))]
    low, high = (np.array([how(days) for days in members]) for how in (np.min, np.max))
    bounds = {"day": (low, high, np.ones(len(found), dtype=np.bool_))}
    return CellZones(found * 0, found, rows, bounds, {"day": found * 0})


@pytest.fixture(autouse=True)
def _no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirming, "zones_by_cell", in_memory)
    monkeypatch.setattr(clustering, "_values", lambda rows, _, names, __: {name: rows.columns[name] for name in names})


def test_values_that_came_since_are_divided_as_the_rewrite_divides_them() -> None:
    """All of them had the last code, so that an earlier night's layout seemed to read half of the table for a new day.

    With it the proof took back what the sample, which is told of the extended key, had promised.
    """
    told = confirming.confirmed(table(), remembered(), len(DAY) // 20, [asked(50), asked(150)])
    assert told is not None
    assert told[0].tolist() == [1.0, 1.0]
    assert told[1].max() < 0.1


def test_a_key_that_grows_beyond_what_the_driver_takes_is_left_to_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    spec, queries = remembered(), [asked(150)]
    monkeypatch.setattr(confirming, "MOST_CELL_BITS", spec.bits)
    assert confirming.confirmed(table(), spec, 100, queries) is None
    within = replace(spec, features=(replace(spec.features[0], high=int(DAY[-1])),))
    assert confirming.confirmed(table(), within, 100, queries) is not None


@pytest.mark.parametrize("partition", [False, True])
def test_a_text_column_that_is_null_in_all_rows_has_no_bounds(partition: bool) -> None:
    """Numbers that stood in their place ended the night: they have no length, and are compared with no text."""
    spec = remembered()
    cells = in_memory(None, spec)
    nothing = np.full(len(cells.keys), "", dtype=object)
    texts = {"note": (nothing, nothing, np.zeros(len(nothing), np.bool_))}
    both = replace(cells, bounds=cells.bounds | texts, nulls=cells.nulls | {"note": cells.rows})
    schema = TableSchema((*SCHEMA.columns, Column("note", "string", partition=partition)))
    zones = confirming.file_zones(both, spec, len(DAY) // 20, schema)
    equal = to_boxes(Comparison("note", "=", (Literal("string", "x"),)), schema)
    assert not zones.columns["note"].known.any()
    assert not zones.matching(equal).any()


def test_merged_files_are_told_by_the_statistics_of_all_that_they_are_made_of() -> None:
    """Four files of five rows: d has an outlier in one, n is all null in some, u lacks statistics in one."""
    d = np.array([[1, 5], [11, 900], [21, 25], [31, 35]])
    known, none = np.ones(4, dtype=np.bool_), np.zeros(4, dtype=np.int64)
    nulls = np.array([5, 0, 5, 5])
    zones = {
        "d": ColumnZones(d[:, 0], d[:, 1], known, none),
        "n": ColumnZones(none, none + 7, nulls == 0, nulls),
        "u": ColumnZones(none, none + 7, np.array([True, True, False, True]), none),
    }
    map_of = ZoneMap(none + 5, none, zones, all_or_none=True)
    snapshot: Any = SimpleNamespace(files=lambda: SimpleNamespace(zone_map=lambda: map_of))

    def told(column: str, low: int, became: list[int]) -> tuple[float, float]:
        boxes: Boxes = ((Range(column, "int", (Interval(low, None),)),),)
        now, then = confirming.merged_shares(snapshot, np.array(became), [boxes])
        return float(now[0]), float(then[0])

    assert told("d", 100, [0, 0, 2, 2]) == (0.25, 0.5)
    assert told("d", 100, [0, 1, 0, 3]) == (0.25, 0.25)
    assert told("d", 30, [0, 1, 0, 3]) == (0.5, 0.5)
    assert told("d", 1000, [0, 0, 0, 0]) == (0.0, 0.0)
    assert told("n", 3, [0, 0, 2, 2]) == (0.25, 0.5)
    assert told("u", 100, [0, 0, 2, 2]) == (0.25, 0.5), "what lacks statistics is read"
