"""What Delta's file selection does and does not do with a condition; tests/spark/test_skipping.py asks Delta itself."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from zorder_pipeline.model.literals import TypedLiteral, type_literal
from zorder_pipeline.model.predicate import And, Comparison, Literal, Or, Predicate
from zorder_pipeline.model.ranges import MAX_BOXES, Interval, Range, to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.values import ValueType
from zorder_pipeline.model.zone_map import ColumnZones, ZoneMap

SCHEMA = TableSchema(
    (
        Column("i", "int"),
        Column("d", "double"),
        Column("day", "date"),
        Column("flag", "boolean", delta_stats=False),
        Column("p", "string", partition=True),
        Column("q", "date", partition=True),
    )
)


def says(column: str, op: str, *values: object, kind: str = "number") -> Comparison:
    return Comparison(column, op, tuple(Literal("null") if v is None else Literal(kind, str(v)) for v in values))


def only_range(predicate: Predicate) -> Range:
    ((found,),) = to_boxes(predicate, SCHEMA)
    return found


@pytest.mark.parametrize(
    ("literal", "type_name", "expected"),
    [
        (("number", "5e0"), "int", TypedLiteral(5)),
        (("number", "5e0"), "bigint", None),  # CAST(column AS DOUBLE) = 5.0
        (("number", "9.1e0"), "decimal(12,2)", None),
        (("string", "9.1"), "decimal(12,2)", None),
        (("string", "5"), "bigint", TypedLiteral(5)),
        (("number", "99999999999"), "decimal(12,2)", None),  # CAST(column AS DECIMAL(13,2))
        (("number", "3000000000"), "int", TypedLiteral(3_000_000_000, exact=False)),
        (("number", "9223372036854775808"), "bigint", None),  # NULL < 9223372036854775808 is true in Spark
        (("number", "0.1"), "double", TypedLiteral(0.1)),
        (("number", "0.1"), "float", TypedLiteral(0.1, exact=False)),
        (("number", "0.5"), "float", TypedLiteral(0.5)),
        (("number", "1e300"), "float", TypedLiteral(1e300, exact=False)),
    ],
)
def test_a_literal_for_which_spark_casts_the_column_has_no_place_in_its_order(
    literal: tuple[str, str], type_name: str, expected: TypedLiteral | None
) -> None:
    assert type_literal(Literal(*literal), ValueType(type_name)) == expected


def test_nan_is_the_largest_value_wherever_it_stands() -> None:
    for values in (("nan", "1"), ("1", "nan")):
        (hull,) = only_range(says("d", "in", *values)).tested
        assert hull.low == 1.0
        assert isinstance(hull.high, float)
        assert math.isnan(hull.high)
    above, below = says("d", ">=", "nan"), says("d", "<=", "5")
    for both in (And((above, below)), And((below, above))):
        (interval,) = only_range(both).intervals
        assert (math.isnan(float(interval.low or 0)), interval.high) == (True, 5.0)


def test_not_in_says_something_only_of_one_value() -> None:
    assert to_boxes(says("i", "not_in", 1, 2), SCHEMA) == ((),)
    assert only_range(says("i", "not_in", 1, 1)).intervals == (
        Interval(None, 1, high_open=True),
        Interval(1, None, low_open=True),
    )
    assert only_range(says("i", "not_in", "1.5")).intervals == (Interval(),)
    assert to_boxes(says("i", "not_in", 1, None), SCHEMA) == ()
    assert to_boxes(says("d", "not_in", "0.0", "-0.0"), SCHEMA) == ((),)  # two to Spark, which leaves them a list


def test_partition_columns_are_tested_value_by_value() -> None:
    inside = only_range(says("p", "in", "a", "z", kind="string"))
    assert inside.tested == (Interval("a", "a"), Interval("z", "z"))
    outside = only_range(says("p", "not_in", "z", "a", kind="string"))
    assert [(i.low, i.high) for i in outside.tested] == [(None, "a"), ("a", "z"), ("z", None)]


def test_a_between_with_one_usable_bound_is_that_bound() -> None:
    schema = TableSchema((Column("dec", "decimal(5,1)"),))
    low, high = Literal("string", "1"), Literal("number", "2.5")
    assert to_boxes(Comparison("dec", "between", (low, high)), schema)[0][0].intervals == (Interval(None, 25),)
    assert to_boxes(Comparison("dec", "between", (high, low)), schema)[0][0].intervals == (Interval(25, None),)


def test_dates_in_a_list_with_timestamps_are_compared_as_timestamps() -> None:
    moments = (Literal("date", "2024-01-01"), Literal("timestamp_ntz", "2024-01-02 00:00:00"))
    assert to_boxes(Comparison("day", "in", moments), SCHEMA) == ((),)
    assert to_boxes(Comparison("day", "in", moments[1:]), SCHEMA) != ((),)
    assert len(only_range(Comparison("q", "in", moments)).tested) == 2


def test_a_disjunction_is_parted_into_partition_columns_and_others() -> None:
    a, b = says("p", "=", "a", kind="string"), says("p", "=", "b", kind="string")
    one, two = says("i", "=", 1), says("i", "=", 2)
    assert to_boxes(Or((a, one)), SCHEMA) == ((),)
    boxes = to_boxes(Or((And((a, one)), And((b, two)))), SCHEMA)
    assert len(boxes) == 4  # p in (a, b) and i in (1, 2)
    assert {tuple(item.column for item in box) for box in boxes} == {("p", "i")}
    rows, values = np.full(6, 10), (["a", "b", "c", "a", "b", "a"], [1, 1, 1, 2, 2, 3])
    columns = {"p": zones(values[0], values[0], [0] * 6, exact=True), "i": zones(values[1], values[1], [0] * 6)}
    read = ZoneMap(rows, rows, columns, all_or_none=True).matching(boxes)
    assert read.tolist() == [True, True, False, True, True, False]
    assert to_boxes(Or((And((a, one)), b)), SCHEMA) == to_boxes(Or((a, b)), SCHEMA)
    many = Or(tuple(And((says("p", "=", n, kind="string"), says("i", "=", n))) for n in range(20)))
    boxes = to_boxes(many, SCHEMA)
    assert len(boxes) <= MAX_BOXES
    assert {item.column for box in boxes for item in box} == {"p"}


def test_only_scans_of_ours_use_solved_comparisons_and_leave_a_disjunction_whole() -> None:
    """Of ``year(day) = 2024 AND i = 1`` Delta is asked for i alone, and of a disjunction for what both columns say."""
    solved = Comparison("day", ">=", (Literal("date", "2024-01-01"),), derived=True, solved=True)
    one, part = says("i", "=", 1), says("p", "=", "a", kind="string")
    assert to_boxes(solved, SCHEMA) == to_boxes(Or((And((solved,)), one)), SCHEMA) == ((),)
    assert to_boxes(And((solved, one)), SCHEMA) == to_boxes(one, SCHEMA)
    assert [item.column for item in to_boxes(And((solved, one)), SCHEMA, solved=True)[0]] == ["day", "i"]
    either = Or((And((solved, part)), one))
    assert to_boxes(either, SCHEMA) == ((),)
    assert [[item.column for item in box] for box in to_boxes(either, SCHEMA, solved=True)] == [["day", "p"], ["i"]]


def test_delta_uses_solved_comparisons_of_partition_columns() -> None:
    """``year(q) = 2024 AND i = 1`` reads one year's partitions, and ``year(q) = 2024 OR i = 1`` all of them."""
    solved, one = replace(says("q", ">=", "2024-01-01", kind="date"), derived=True, solved=True), says("i", "=", 1)
    assert to_boxes(solved, SCHEMA) == to_boxes(replace(solved, solved=False), SCHEMA) != ((),)
    assert [item.column for item in to_boxes(And((solved, one)), SCHEMA)[0]] == ["q", "i"]
    assert to_boxes(Or((solved, one)), SCHEMA) == ((),)
    apart = Or((And((solved, one)), And((replace(solved, op="<"), says("i", "=", 2)))))
    assert len(to_boxes(apart, SCHEMA)) == 4  # what it says of q, and what of i


def test_a_solved_instant_is_used_only_where_the_clocks_keep_days_in_order() -> None:
    """At St. John's, until 2011, clocks went back at one minute past midnight: to the day before."""
    schema = TableSchema((Column("at", "timestamp"),))
    for day, zone, used in (
        ("2010-11-07", "America/St_Johns", False), ("2010-11-08", "America/St_Johns", True),
        ("2010-11-07", "America/New_York", True), ("2010-11-07", "-03:30", True),
    ):  # fmt: skip
        since = Comparison("at", ">=", (Literal("date", day),), solved=True)
        assert (to_boxes(since, schema, zone, solved=True) != ((),)) == used
        assert to_boxes(replace(since, solved=False), schema, zone) != ((),)


def zones(low: list[Any], high: list[Any], nulls: list[int], exact: bool = False) -> ColumnZones:
    known = np.array([value is not None for value in low])
    filled = [np.array([value or 0 for value in values]) for values in (low, high)]
    return ColumnZones(filled[0], filled[1], known, np.array(nulls), exact)


def selected(predicate: Predicate, all_or_none: bool = True) -> list[int]:
    """Files: 0 has i in 0..9, 1 has it in 20..29 and no statistics of d, 2 has none of i, 3 is all null in flag."""
    rows = np.full(4, 10)
    columns = {
        "i": zones([0, 20, None, 0], [9, 29, None, 9], [0, 0, -1, 0]),
        "d": zones([0.5, None, 0.5, 0.5], [1.5, None, 1.5, 1.5], [0, -1, 0, 0]),
        "flag": zones([None] * 4, [None] * 4, [0, 3, 0, 10]),
        "q": zones([1, 1, 2, 2], [1, 1, 2, 2], [0] * 4, exact=True),
    }
    zone_map = ZoneMap(rows, rows, columns, all_or_none=all_or_none)
    return np.flatnonzero(zone_map.matching(to_boxes(predicate, SCHEMA))).tolist()


def test_a_file_without_one_of_the_statistics_asked_for_is_read_whatever_the_others_say() -> None:
    small, unknown = says("i", "=", 5), says("d", ">", 1)
    assert selected(small) == [0, 2, 3]
    assert selected(And((small, unknown))) == [0, 1, 2, 3]
    assert selected(And((small, unknown)), all_or_none=False) == [0, 2, 3]  # row groups know each column alone
    assert selected(And((small, says("d", "is_null")))) == [1, 2]
    assert selected(Or((says("i", ">", 50), says("d", ">", 9)))) == [1, 2]


def test_a_file_whose_rows_are_not_told_is_read_but_for_its_partition() -> None:
    """Delta asks for their number with any other statistic."""
    rows, uncounted = np.full(3, 10), np.array([False, True, True])
    columns = {"i": zones([0, 0, 0], [9, 9, 9], [0, 0, 0]), "q": zones([1, 1, 2], [1, 1, 2], [0] * 3, exact=True)}
    zone_map = ZoneMap(rows, rows, columns, all_or_none=True, uncounted=uncounted)
    first, large = says("q", "<=", "1970-01-02", kind="string"), says("i", ">", 50)
    assert zone_map.matching(to_boxes(large, SCHEMA)).tolist() == [False, True, True]
    assert zone_map.matching(to_boxes(And((first, large)), SCHEMA)).tolist() == [False, True, False]
    sure = replace(zone_map, all_or_none=False)
    assert not sure.matching(to_boxes(large, SCHEMA)).any()


def test_partitions_are_left_out_even_of_files_without_statistics() -> None:
    first = says("q", "<=", "1970-01-02", kind="string")
    assert selected(And((first, says("i", "=", 5)))) == [0]
    assert selected(And((first, says("d", ">", 9)))) == [1]


def test_columns_without_minimum_and_maximum_answer_for_nulls_alone() -> None:
    true = says("flag", "=", "true", kind="boolean")
    assert selected(true) == [0, 1, 2, 3]
    assert selected(true, all_or_none=False) == [0, 1, 2]
    assert selected(says("flag", "is_null")) == [1, 3]
    assert selected(says("flag", "is_not_null")) == [0, 1, 2]
