"""Typing of literals and boxes: against Python evaluation of the same predicate on rows."""

import math
import operator
import random
from datetime import date
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.model.literals import TypedLiteral, type_literal
from zorder_pipeline.model.predicate import (
    And,
    Comparison,
    Literal,
    Opaque,
    Or,
    Predicate,
    conjuncts,
    predicate_from_json,
    predicate_to_json,
)
from zorder_pipeline.model.ranges import MAX_BOXES, Interval, Range, to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.values import ValueType
from zorder_pipeline.model.workload import LoggedQuery, boxes_of
from zorder_pipeline.model.zone_map import ColumnZones, ZoneMap

SCHEMA = TableSchema((Column("i", "int"), Column("s", "string"), Column("d", "double"), Column("dec", "decimal(10,2)")))


@pytest.mark.parametrize(
    ("literal", "type_name", "expected"),
    [
        (("number", "5"), "int", TypedLiteral(5)),
        (("number", "-5.5"), "bigint", TypedLiteral(-6, exact=False)),
        (("string", "5.5"), "int", None),
        (("string", "5.0"), "int", TypedLiteral(5)),
        (("number", "4.99999999999999999999e0"), "int", TypedLiteral(5)),
        (("string", "7"), "smallint", TypedLiteral(7)),
        (("string", "seven"), "int", None),
        (("number", "1e999"), "int", None),
        (("number", "1.005"), "decimal(10,2)", TypedLiteral(100, exact=False)),
        (("number", "12.34"), "decimal(10,2)", TypedLiteral(1234)),
        (("number", "1"), "string", None),
        (("string", " x "), "string", TypedLiteral(" x ")),
        (("string", "1998-09-02"), "date", TypedLiteral(10471)),
        (("string", "1998-09-02 10:00:00"), "date", TypedLiteral(10471)),
        (("timestamp_ntz", "1998-09-02 10:00:00"), "date", TypedLiteral(10471, exact=False)),
        (("string", "1998"), "date", TypedLiteral(10227)),
        (("date", "1970-01-02"), "timestamp", TypedLiteral(86_400_000_000)),
        (("timestamp", "1970-01-01T01:00:00+01:00"), "timestamp", TypedLiteral(0)),
        (("string", "1970-01-01 00:00:00.123456Z"), "timestamp", TypedLiteral(123_456)),
        (("timestamp", "1970-01-01 05:30:00+05:30"), "timestamp", TypedLiteral(0)),
        (("string", "1970-01-01 00:00:01 Europe/Berlin"), "timestamp", TypedLiteral(-3_599_000_000)),
        (("timestamp_ntz", "1970-01-01 00:00:01"), "timestamp_ntz", TypedLiteral(1_000_000)),
        (("string", "not a date"), "date", None),
        (("string", "2024-02-30"), "date", None),
        (("number", "20240101"), "date", None),
        (("boolean", "true"), "boolean", TypedLiteral(1)),
        (("binary", "ff00"), "binary", TypedLiteral(b"\xff\x00")),
    ],
)
def test_literals_are_typed_as_spark_casts_them(literal: tuple, type_name: str, expected: object) -> None:
    assert type_literal(Literal(*literal), ValueType.parse(type_name)) == expected


def test_a_timestamp_without_zone_is_read_in_the_sessions_zone() -> None:
    found = type_literal(Literal("string", "1970-01-01 00:00:00"), ValueType("timestamp"), "America/New_York")
    assert found == TypedLiteral(5 * 3_600_000_000)


@pytest.mark.parametrize(
    ("kind", "text", "known"),
    [
        ("timestamp_ntz", "2024-03-10 03:05:00", False),
        ("timestamp", "2024-11-03 01:30:00-05:00", False),
        ("timestamp", "2024-11-05 01:30:00-05:00", True),
        ("string", "2024-03-10 03:05:00", True),
        ("date", "2024-03-10", True),
        ("timestamp_ntz", "9999-12-31 23:59:59", True),
        ("timestamp_ntz", "0001-01-01 00:00:00", True),
    ],
)
def test_near_a_change_of_the_clocks_local_times_do_not_lie_as_instants_do(kind: str, text: str, known: bool) -> None:
    for zone, expected in (("America/New_York", known), ("UTC", True), ("-05:00", True)):
        found = type_literal(Literal(kind, text), ValueType("timestamp_ntz"), zone)
        assert (found is not None) == expected
    on_day = type_literal(Literal("timestamp", "2024-03-10 12:00:00Z"), ValueType("date"), "America/New_York")
    assert on_day is None


def holds(predicate: Predicate, row: dict) -> bool | None:
    """SQL's three-valued evaluation over integers, the oracle."""
    match predicate:
        case And(children):
            results = [holds(child, row) for child in children]
            return False if False in results else None if None in results else True
        case Or(children):
            results = [holds(child, row) for child in children]
            return True if True in results else None if None in results else False
        case Opaque():
            return True
    value = row[predicate.column]
    if predicate.op == "is_null":
        return value is None
    if predicate.op == "is_not_null":
        return value is not None
    bounds = [None if lit.kind == "null" else float(lit.text) for lit in predicate.literals]
    if predicate.op == "<=>":
        return value == bounds[0]
    if predicate.op in ("in", "not_in"):
        if value is None:
            return None
        known = [b for b in bounds if b is not None]
        inside = True if value in known else None if len(known) < len(bounds) else False
        return inside if predicate.op == "in" else None if inside is None else not inside
    if value is None or None in bounds:
        return None
    a = bounds[0]
    return {
        "=": value == a, "<>": value != a, "<": value < a, "<=": value <= a, ">": value > a, ">=": value >= a,
        "between": a <= value <= bounds[-1],
    }[predicate.op]  # fmt: skip


def inside(interval: Interval, value: object) -> bool:
    low = interval.low is None or (value > interval.low if interval.low_open else value >= interval.low)
    return low and (interval.high is None or (value < interval.high if interval.high_open else value <= interval.high))


def in_range(item: Range, value: object) -> bool:
    return item.nulls if value is None else any(inside(interval, value) for interval in item.intervals)


LITERALS = st.sampled_from([Literal("number", t) for t in ("-2", "0", "1.5", "3")] + [Literal("null")])


@st.composite
def predicates(draw: st.DrawFn, depth: int = 3) -> Predicate:
    if depth and draw(st.booleans()):
        children = tuple(draw(st.lists(predicates(depth - 1), max_size=4)))
        return And(children) if draw(st.booleans()) else Or(children)
    op = draw(
        st.sampled_from(["=", "<=>", "<>", "<", "<=", ">", ">=", "between", "in", "not_in", "is_null", "is_not_null"])
    )
    count = {"between": 2, "in": 3, "not_in": 2, "is_null": 0, "is_not_null": 0}.get(op, 1)
    return Comparison(draw(st.sampled_from("id")), op, tuple(draw(LITERALS) for _ in range(count)))


@given(
    predicates(), st.sampled_from([None, -3, -2, 0, 1, 2, 3, 9]), st.sampled_from([None, -2.0, 1.5, 1.6, 3.0, math.inf])
)
def test_boxes_never_exclude_a_row_that_the_predicate_keeps(
    predicate: Predicate, i: int | None, d: float | None
) -> None:
    row = {"i": i, "d": d}
    boxes = to_boxes(predicate, SCHEMA)
    if holds(predicate, row):
        assert any(all(in_range(item, row[item.column]) for item in box) for box in boxes)


@given(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "between", "is_null"]), LITERALS, LITERALS)
def test_a_single_comparison_is_exact(op: str, a: Literal, b: Literal) -> None:
    comparison = Comparison("i", op, () if op == "is_null" else (a, b) if op == "between" else (a,))
    boxes = to_boxes(comparison, SCHEMA)
    for value in (None, -3, -2, -1, 0, 1, 2, 3, 4):
        got = any(all(in_range(item, value) for item in box) for box in boxes)
        assert got == bool(holds(comparison, {"i": value}))


@given(predicates())
def test_predicates_survive_json(predicate: Predicate) -> None:
    assert predicate_from_json(predicate_to_json(predicate)) == predicate


def test_of_between_the_bound_that_is_known_counts() -> None:
    schema, known, unknown = (
        TableSchema((Column("d", "date"),)),
        Literal("date", "1970-01-02"),
        Literal("string", "now"),
    )
    for literals, interval in (((unknown, known), Interval(None, 1)), ((known, unknown), Interval(1, None))):
        ((found,),) = to_boxes(Comparison("d", "between", literals), schema)
        assert found.intervals == (interval,)


def test_days_among_times_are_compared_as_times() -> None:
    schema, both = (
        TableSchema((Column("d", "date"),)),
        [("date", "1970-01-02"), ("timestamp_ntz", "1970-01-04 00:00:00")],
    )
    assert to_boxes(Comparison("d", "in", tuple(Literal(*one) for one in both)), schema) == ((),)
    ((found,),) = to_boxes(Comparison("d", "in", (Literal(*both[1]),)), schema)
    assert found.intervals == (Interval(3, 3),)


def test_in_is_tested_as_one_range_and_ranges_of_a_column_are_intersected() -> None:
    for texts in (("9", "1", "4"), ("9", "1")):
        (box,) = to_boxes(Comparison("i", "in", tuple(Literal("number", t) for t in texts)), SCHEMA)
        assert box[0].tested == (Interval(1, 9),)
    both = And((Comparison("i", ">=", (Literal("number", "2"),)), Comparison("I", "<", (Literal("number", "7"),))))
    assert to_boxes(both, SCHEMA) == ((Range("i", "int", (Interval(2, 6),)),),)


@pytest.mark.parametrize("prefix", ["ab", "a\U0010ffff", "\U0010ffff", "\ud7ff"])
def test_a_prefix_is_the_range_of_strings_that_start_with_it(prefix: str) -> None:
    ((item,),) = to_boxes(Comparison("s", "starts_with", (Literal("string", prefix),)), SCHEMA)
    for suffix in ("", "\x00", "z", "\U0010ffff" * 3):
        assert in_range(item, prefix + suffix)
    assert not in_range(item, "aa" if prefix != "aa" else "b")


def test_unknown_columns_and_too_many_boxes_weaken_to_true() -> None:
    assert to_boxes(Comparison("gone", "=", (Literal("number", "1"),)), SCHEMA) == ((),)
    equal = [Comparison("i", "=", (Literal("number", str(n)),)) for n in range(MAX_BOXES + 1)]
    texts = [Comparison("s", "=", (Literal("string", str(n)),)) for n in range(MAX_BOXES + 1)]
    pairs = Or(tuple(And((one, other)) for one, other in zip(equal, texts, strict=True)))
    assert to_boxes(Or((pairs, Comparison("gone", "=", (Literal("number", "1"),)))), SCHEMA) == ((),)


def test_many_alternatives_are_told_by_what_they_have_in_common() -> None:
    equal = [Comparison("i", "=", (Literal("number", str(n)),)) for n in range(MAX_BOXES + 1)]
    texts = [Comparison("s", "=", (Literal("string", str(n)),)) for n in range(MAX_BOXES + 1)]
    ((joined,),) = to_boxes(Or(tuple(equal)), SCHEMA)
    assert joined.tested == (Interval(0, MAX_BOXES),)
    above = Comparison("i", ">", (Literal("number", "900"),))
    ((open_,),) = to_boxes(Or((*equal, above)), SCHEMA)
    assert open_.tested == (Interval(0, None),)
    pairs = Or(tuple(And((one, other)) for one, other in zip(equal, texts, strict=True)))
    ((number, text),) = to_boxes(pairs, SCHEMA)
    assert (number.tested, text.tested) == ((Interval(0, MAX_BOXES),), (Interval("0", "9"),))
    some, few = Or(tuple(equal[:9])), Or(tuple(texts[:9]))
    boxes = to_boxes(And((some, few)), SCHEMA)
    assert len(boxes) == 9
    assert {len(box) for box in boxes} == {2}, "neither side is given up"


def test_equal_conditions_are_typed_once_and_those_of_other_zones_apart() -> None:
    schema = TableSchema((Column("ts", "timestamp"),))
    noon = Comparison("ts", ">", (Literal("string", "2024-01-01 12:00:00"),))
    queries = [LoggedQuery("t", noon, zone=zone) for zone in ("UTC", "Asia/Tokyo", "UTC")]
    found = boxes_of(queries, schema)
    assert found == tuple(to_boxes(noon, schema, query.zone) for query in queries)
    assert found[0] is found[2]
    assert found[0] != found[1]


def test_a_hull_around_a_range_without_an_end_has_none() -> None:
    ranges = Range("i", "int", (Interval(3, 5), Interval(None, 1), Interval(7, 8)), hull=True)
    assert ranges.tested == (Interval(None, 8),)


def test_conjuncts_are_those_of_all_levels_and_a_disjunction_is_one() -> None:
    one, two, three = (Comparison(name, "is_null") for name in "isd")
    either = Or((one, And((two, three))))
    assert list(conjuncts(And((one, And((either, And(()))), two)))) == [one, either, two]
    assert list(conjuncts(either)) == [either]
    assert list(conjuncts(And(()))) == []


# Files of typed rows: what may be skipped of them, against the evaluation of each row.

WIDE = TableSchema(
    (
        *(Column("i", "int"), Column("dec", "decimal(6,2)"), Column("s", "string"), Column("day", "date")),
        *(Column("p", "string", partition=True), Column("n", "int", partition=True)),
    )
)
TEXTS: dict[str, tuple[str, ...]] = {
    "i": ("-2", "0", "1", "1.5", "3"),
    "dec": ("-1", "0.5", "1.005", "2.25", "3"),
    "s": ("", "a", "ab", "b"),
    "day": ("2024-01-01", "2024-01-02", "2024-01-04"),
    "p": ("", "a", "ab", "b"),
    "n": ("0", "1", "1.5", "3"),
}
VALUES: dict[str, list[Any]] = {
    "i": [-2, 0, 1, 2, 3],
    "dec": [Decimal(text) for text in ("-1.00", "0.50", "1.00", "1.01", "2.25", "3.00")],
    "s": ["", "a", "ab", "abc", "b", "c"],
    "day": [date(2024, 1, day) for day in (1, 2, 3, 4)],
    "p": ["a", "ab", "b", "c"],
    "n": [0, 1, 2, 3],
}
LEAST = ("=", "<=>", "<>", "<", "<=", ">", ">=", "between", "is_null", "is_not_null")


def literal(column: str, text: str) -> Literal:
    return Literal({"s": "string", "p": "string", "day": "date"}.get(column, "number"), text)


def told(column: str, text: str) -> Any:
    return text if column in "sp" else date.fromisoformat(text) if column == "day" else Decimal(text)


def random_predicate(rng: random.Random, depth: int) -> Predicate:
    if depth and rng.random() < 0.6:
        children = tuple(random_predicate(rng, depth - 1) for _ in range(rng.choice((0, 1, 2, 2, 3, 9))))
        return (And if rng.random() < 0.5 else Or)(children)
    column = rng.choice(list(VALUES))
    op = rng.choice([*LEAST, "in", "not_in", *(["starts_with"] if column in "sp" else [])])
    count = {"between": 2, "in": rng.choice((1, 2, 3, 20)), "not_in": rng.choice((1, 2)), "is_null": 0}.get(op, 1)
    texts = [rng.choice(TEXTS[column]) for _ in range(0 if op == "is_not_null" else count)]
    literals = (Literal("null") if rng.random() < 0.05 else literal(column, text) for text in texts)
    return Comparison(column, op, tuple(literals))


def kept(predicate: Predicate, row: dict[str, Any]) -> bool | None:
    """SQL's three-valued evaluation of a row with values of any type."""
    if isinstance(predicate, And | Or):
        decisive = isinstance(predicate, Or)
        results = [kept(child, row) for child in predicate.children]
        return decisive if decisive in results else None if None in results else not decisive
    assert isinstance(predicate, Comparison)
    value, column, op = row[predicate.column], predicate.column, predicate.op
    bounds = [None if each.kind == "null" else told(column, each.text) for each in predicate.literals]
    if op in ("is_null", "is_not_null"):
        return (value is None) == (op == "is_null")
    if op == "<=>":
        return value == bounds[0]
    if op in ("in", "not_in"):
        equal = [None if value is None or bound is None else value == bound for bound in bounds]
        found = True if True in equal else None if None in equal else False
        return found if op == "in" or found is None else not found
    if op == "between":
        sides = (
            kept(Comparison(column, sign, (each,)), row)
            for sign, each in zip((">=", "<="), predicate.literals, strict=True)
        )
        both = list(sides)
        return False if False in both else None if None in both else True
    if value is None or None in bounds:
        return None
    if op == "starts_with":
        return bool(value.startswith(bounds[0]))
    compare = {"=": "eq", "<>": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}[op]
    return bool(getattr(operator, compare)(value, bounds[0]))


def canonical(value: Any) -> Any:
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).days
    return int(value.scaleb(2)) if isinstance(value, Decimal) else value


def zone_map(files: list[list[dict[str, Any]]], all_or_none: bool) -> ZoneMap:
    columns = {}
    for column in WIDE.columns:
        of_files = [[canonical(row[column.name]) for row in file] for file in files]
        present = [[value for value in values if value is not None] for values in of_files]
        dtype, blank = column.value_type.numpy_dtype, "" if column.type == "string" else 0
        low, high = (np.array([pick(some, default=blank) for some in present], dtype) for pick in (min, max))
        nulls = np.array([values.count(None) for values in of_files])
        known = np.array([bool(some) for some in present])
        columns[column.name] = ColumnZones(low, high, known, nulls, exact=column.partition)
    rows = np.array([len(file) for file in files])
    return ZoneMap(rows, rows, columns, all_or_none=all_or_none)


def random_files(rng: random.Random, rows: int) -> list[list[dict[str, Any]]]:
    def drawn(name: str) -> Any:
        return None if rng.random() < 0.15 else rng.choice(VALUES[name])

    partitions = [{name: drawn(name) for name in "pn"} for _ in range(12)]
    return [[{name: drawn(name) for name in VALUES} | each for _ in range(rng.randint(1, rows))] for each in partitions]


@pytest.mark.parametrize("seed", range(6))
def test_no_file_with_a_row_that_a_predicate_keeps_is_skipped(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(50):
        files, predicate = random_files(rng, 3), random_predicate(rng, 4)
        needed = np.array([any(kept(predicate, row) for row in file) for file in files])
        for solved, all_or_none in product((True, False), repeat=2):
            read = zone_map(files, all_or_none).matching(to_boxes(predicate, WIDE, solved=solved))
            assert not (needed & ~read).any(), predicate.to_sql()


@pytest.mark.parametrize("seed", range(5))
def test_of_files_of_one_row_a_comparison_reads_those_that_it_keeps(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        files, comparison = random_files(rng, 1), random_predicate(rng, 0)
        assert isinstance(comparison, Comparison)
        partition = comparison.column in "pn"
        if comparison.op in ("in", "not_in") and not partition:
            continue
        needed = [bool(kept(comparison, file[0])) for file in files]
        assert zone_map(files, True).matching(to_boxes(comparison, WIDE)).tolist() == needed, comparison.to_sql()
