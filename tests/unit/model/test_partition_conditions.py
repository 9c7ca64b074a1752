"""What conditions say of the partitions that there are, once it is known of which they are true."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.model.partition_conditions import PartitionValues, partition_conditions, untold
from zorder_pipeline.model.predicate import And, Comparison, Literal, Opaque, Or, Predicate
from zorder_pipeline.model.ranges import Boxes, Interval, to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.workload import LoggedQuery, boxes_of
from zorder_pipeline.model.zone_map import ColumnZones, ZoneMap

YEAR, MONTH = Column("y", "int", partition=True), Column("m", "string", partition=True)
SCHEMA = TableSchema((YEAR, MONTH, Column("x", "int")))
Values = list[tuple[int | None, str | None]]


def of(values: Values) -> PartitionValues:
    columns = []
    for place, kind in ((0, np.int64), (1, object)):
        null = np.array([value[place] is None for value in values])
        each = np.array([value[place] if value[place] is not None else ("", 0)[kind is np.int64] for value in values],
                        dtype=kind)  # fmt: skip
        columns.append((each, null))
    return PartitionValues.of([YEAR, MONTH], columns)


def read(values: Values, boxes: Boxes) -> list[bool]:
    """Which files of one partition each Delta reads."""
    rows = np.full(len(values), 10)
    columns = {}
    for place, (name, kind) in enumerate((("y", np.int64), ("m", object))):
        known = np.array([value[place] is not None for value in values])
        low = np.array([value[place] if value[place] is not None else ("", 0)[place == 0] for value in values], kind)
        columns[name] = ColumnZones(low, low, known, np.where(known, 0, rows), exact=True)
    return [bool(hit) for hit in ZoneMap(rows, rows, columns, all_or_none=True).matching(boxes)]


COMBINATIONS = list(product((None, 2023, 2024, 2025), (None, "01", "02", "11", "12")))


@given(st.lists(st.sampled_from(COMBINATIONS), min_size=1, unique=True), st.data())
def test_ranges_hold_in_the_chosen_partitions_alone(values: Values, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    boxes = of(values).boxes_where(np.array(chosen))
    assert boxes is not None
    assert read(values, boxes) == chosen


def test_neighbours_are_one_interval_and_alike_years_one_box() -> None:
    values: Values = [(year, f"{month:02}") for year in range(2000, 2030) for month in range(1, 13)]
    since = of(values).boxes_where(np.array([year * 100 + int(month or 0) >= 2024_03 for year, month in values]))
    assert since is not None
    assert [[(i.low, i.high) for item in box for i in item.intervals] for box in since] == [
        [(2024, 2024), ("03", "12")],
        [(2025, 2029)],
    ]
    summer = of(values).boxes_where(np.array([month == "07" for _, month in values]))
    assert summer is not None
    assert [len(box) for box in summer] == [2]
    assert of(values).boxes_where(np.ones(len(values), dtype=bool)) == ((),)
    none = of(values).boxes_where(np.zeros(len(values), dtype=bool))
    assert none is not None
    assert not any(read(values, none))


def test_what_takes_too_many_ranges_is_not_told() -> None:
    values: Values = [(year, f"{n:04}") for year in range(80) for n in range(80)]
    assert of(values).boxes_where(np.array([int(n or 0) % 80 == year for year, n in values])) is None
    many = PartitionValues.of([YEAR], [(np.arange(4000), np.zeros(4000, dtype=bool))])
    assert many.boxes_where(np.arange(4000) % 2 == 0) is None


def function(text: str, *columns: str) -> Opaque:
    return Opaque("function", columns, text)


def says(column: str, op: str, kind: str, *texts: str) -> Comparison:
    return Comparison(column, op, tuple(Literal(kind, text) for text in texts))


MARCH, X = function("MONTH(y) = 3", "y"), Comparison("x", "=", (Literal("number", "17"),))
FORMATTED, ACROSS = function("", "m"), function("y = x", "y", "x")


def test_what_is_told_stands_in_the_place_of_a_condition_and_counts_as_one_of_partitions() -> None:
    (box,) = to_boxes(Comparison("y", "=", (Literal("number", "3"),)), SCHEMA)
    told = {(MARCH, "UTC"): (box,)}
    asked = LoggedQuery("t", And((MARCH, X)))
    assert [item.column for item in boxes_of([asked], SCHEMA, told=told)[0][0]] == ["y", "x"]
    assert [item.column for item in boxes_of([asked], SCHEMA, told=told, solved=True)[0][0]] == ["y", "x"]
    assert to_boxes(Or((MARCH, X)), SCHEMA, told=told) == ((),)  # Delta reads all partitions
    assert to_boxes(MARCH, SCHEMA, "Europe/Berlin", told=told) == ((),)
    assert to_boxes(And((MARCH, X)), SCHEMA, told={(MARCH, "UTC"): ()}) == ()


def test_what_holds_in_no_partition_leaves_what_stands_beside_it_to_delta() -> None:
    """Delta asks partitions and other columns apart: `x = 17` is no less asked for, as it does not see the first."""
    none, empty = (of([(year, None)]).boxes_where(np.array([False])) for year in (2024, None))
    assert none == empty
    assert none is not None
    nowhere = {(MARCH, "UTC"): none}
    other = Comparison("x", "=", (Literal("number", "99"),))
    assert to_boxes(Or((And((MARCH, X)), other)), SCHEMA, told=nowhere) == to_boxes(Or((X, other)), SCHEMA)
    assert to_boxes(Or((And((MARCH, X)), other)), SCHEMA, told=nowhere, solved=True) == to_boxes(other, SCHEMA)
    (year,) = to_boxes(Comparison("y", "=", (Literal("number", "2024"),)), SCHEMA)
    both = Or((And((MARCH, X)), And((Comparison("y", "=", (Literal("number", "2024"),)), other))))
    assert [[item.column for item in box] for box in to_boxes(both, SCHEMA, told=nowhere)] == [["y", "x"]] * 2
    assert all(box[0] == year[0] for box in to_boxes(both, SCHEMA, told=nowhere))
    assert to_boxes(MARCH, SCHEMA, told=nowhere) == to_boxes(And((MARCH, X)), SCHEMA, told=nowhere) == ()


def test_what_delta_tests_bound_by_bound_is_no_condition_that_holds_nowhere() -> None:
    schema = TableSchema((Column("s", "string"),))
    (box,) = to_boxes(And((says("s", "<", "string", "b"), says("s", ">", "string", "b"))), schema)
    assert box[0].intervals == (Interval("b", "b", True, True),)


@pytest.mark.parametrize(
    ("predicate", "left"),
    [
        (And((MARCH, X)), 0),
        (And((FORMATTED, X)), 1),
        (And((FORMATTED, MARCH, FORMATTED)), 1),
        (Or((FORMATTED, X)), 0),  # chooses no partition
        (Or((FORMATTED, Comparison("y", "is_null"))), 1),
        (Or((MARCH, And((ACROSS, X)))), 0),
        (ACROSS, 0),
        (X, 0),
        (function("MONTH(y) = 4", "y"), 1),
    ],
)
def test_queries_count_that_choose_partitions_by_what_is_not_told(predicate: Predicate, left: int) -> None:
    assert untold([LoggedQuery("t", predicate)], SCHEMA, {(MARCH, "UTC"): ()}) == left
    assert untold([LoggedQuery("t", predicate, zone="Asia/Tokyo")], SCHEMA, {}) >= left


@pytest.mark.parametrize(
    ("condition", "sql"),
    [
        (says("m", "=", "number", "7"), "`m` = 7"),
        (says("M", "in", "number", "7", "-8.5e1"), "`m` IN (7, -8.5e1)"),
        (
            says("m", "between", "date", "2024-01-01", "2024-02-01"),
            "`m` BETWEEN DATE '2024-01-01' AND DATE '2024-02-01'",
        ),
        (says("y", "=", "string", "5.5"), "`y` = decode(X'352e35', 'UTF-8')"),
        (says("m", "=", "number", "7 OR reflect('x', 'y') = 1"), ""),
        (says("m", "<", "date", "2024-01-01' OR '"), ""),
        (replace(says("m", "=", "number", "7"), solved=True), ""),
        (says("m", "in", "number", *map(str, range(1001))), ""),
        (says("m", "=", "string", "07"), None),  # a range
        (says("x", "=", "string", "5.5"), None),
    ],
)
def test_comparisons_that_are_no_ranges_are_evaluated_with_nothing_but_constants(
    condition: Comparison, sql: str | None
) -> None:
    found = [each.sql for each in partition_conditions(condition, SCHEMA, "UTC")]
    assert found == ([] if sql is None else [sql])
    assert untold([LoggedQuery("t", And((condition, X)))] * 2, SCHEMA, {}) == 2 * len(found)
