"""Files selected by all statistics against the rows they hold, brute force."""

from __future__ import annotations

from dataclasses import replace
from decimal import Context, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.features.statistics import enriched
from zorder_pipeline.model.file_stats import BloomFilters, Feature, FeatureStats, bloom_place, widened
from zorder_pipeline.model.predicate import And, Comparison, Literal, Opaque, Or, Predicate, as_solved, begins_as
from zorder_pipeline.model.ranges import Interval, Range, to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.values import ValueType
from zorder_pipeline.model.zone_map import ColumnZones, ZoneMap
from zorder_pipeline.reading.prune import MOST_LOOKED_UP, FileTests, without_hulls
from zorder_pipeline.reading.told_bounds import loosened

SCHEMA = TableSchema((Column("a", "int"), Column("b", "int", delta_stats=False)))
ODD = Feature("a % 2 = 1", "predicate", "boolean", "", ("a",))
SUM = Feature("a + b", "expression", "int", "", ("a", "b"), True)
B = Feature("b", "column", "int", "`b`", ("b",), True)
WIDE, NAMES = widened(SCHEMA, (ODD, SUM, B))
Row = tuple[int | None, int | None]
Files = list[list[Row]]


def _value(feature: Feature, row: Row) -> int | None:
    a, b = row
    if feature is ODD:
        return None if a is None else int(a % 2 == 1)
    if feature is SUM:
        return None if a is None or b is None else a + b
    return b


def _zones(values: list[list[int | None]], known: list[bool]) -> ColumnZones:
    present = [[v for v in file if v is not None] for file in values]
    return ColumnZones(
        np.array([min(p, default=0) for p in present], dtype=np.int64),
        np.array([max(p, default=0) for p in present], dtype=np.int64),
        np.array([bool(p) and k for p, k in zip(present, known, strict=True)], dtype=np.bool_),
        np.array([len(f) - len(p) if k else -1 for f, p, k in zip(values, present, known, strict=True)]),
    )


def _tests(files: Files, known: list[bool]) -> FileTests:
    rows = np.array([len(file) for file in files], dtype=np.int64)
    delta = ZoneMap(rows, rows, {"a": _zones([[a for a, _ in file] for file in files], [True] * len(files))})
    stats = {}
    for feature in (ODD, SUM, B):
        values = [[_value(feature, row) for row in file] for file in files]
        bits = [(bloom_place(item), i) for i, items in enumerate(values) for item in items if item is not None]
        bloom = BloomFilters.of(*np.array(bits, dtype=np.int64).reshape(-1, 2).T)
        counted = np.where(known, rows, 0)
        filters = (bloom, np.array(known)) if feature.equality else (None, None)
        stats[NAMES[feature]] = FeatureStats(feature, _zones(values, known), counted, *filters)
    return FileTests(delta, stats)


def _literals(*values: int) -> tuple[Literal, ...]:
    return tuple(Literal("number", str(value)) for value in values)


small = st.integers(-3, 6)
atoms = st.one_of(
    st.builds(lambda op, v: Comparison("a", op, _literals(v)), st.sampled_from(["=", "<", ">=", "<>"]), small),
    st.builds(lambda v, w: Comparison("b", "in", _literals(v, w)), small, small),
    st.builds(lambda op: Comparison("b", op), st.sampled_from(["is_null", "is_not_null"])),
    st.sampled_from([Opaque("mod", ("a",), "a % 2 = 1"), Opaque("not", ("a",), "NOT (a % 2 = 1)")]),
    st.builds(lambda v: Opaque("function", ("a", "b"), f"a + b = {v}"), small),
    st.builds(lambda v: Opaque("function", ("a", "b"), f"a + b > {v}"), small),
    st.just(Opaque("function", ("a",), "")),
)


def _several(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    parts = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.builds(And, parts) | st.builds(Or, parts)


predicates = st.recursive(atoms, _several, max_leaves=6)


def _holds(predicate: Predicate, row: Row) -> bool:
    """Whether a row may satisfy the predicate; a condition of unknown meaning always may."""
    a, b = row
    match predicate:
        case And(children):
            return all(_holds(child, row) for child in children)
        case Or(children):
            return any(_holds(child, row) for child in children)
        case Opaque(expression=text):
            return not text or bool(
                eval(_python(text), {"a": a, "b": b, "null": a is None or ("b" in text and b is None)})
            )
    value, items = (a if predicate.column == "a" else b), [int(item.text) for item in predicate.literals]
    if predicate.op in ("is_null", "is_not_null"):
        return (value is None) == (predicate.op == "is_null")
    if value is None:
        return False
    return {
        "=": value == items[:1][0], "<": value < items[0], ">=": value >= items[0], "<>": value != items[0],
        "in": value in items,
    }[predicate.op]  # fmt: skip


def _python(text: str) -> str:
    return "not null and " + text.replace("NOT (", "not (").replace(" = ", " == ")


@given(
    files=st.lists(
        st.lists(st.tuples(st.none() | small, st.none() | small), min_size=1, max_size=4), min_size=1, max_size=6
    ),
    predicate=predicates,
    data=st.data(),
)
def test_no_file_with_a_matching_row_is_left_out(files: Files, predicate: Predicate, data: st.DataObject) -> None:
    known = data.draw(st.lists(st.booleans(), min_size=len(files), max_size=len(files)))
    tests = _tests(files, known)
    boxes = without_hulls(to_boxes(enriched(predicate, NAMES), WIDE, solved=True))
    read = tests.matching(boxes)
    needed = np.array([any(_holds(predicate, row) for row in file) for file in files])
    assert not (needed & ~read).any()
    excluded = tests.excluded(boxes)
    assert sum(item.files for item in excluded) == int((~read).sum())
    assert all(item.files > 0 for item in excluded)
    assert not (read & ~tests.matching(boxes, own=False)).any()


@given(
    files=st.lists(
        st.lists(st.tuples(st.none() | small, st.none() | small), min_size=1, max_size=4), min_size=1, max_size=6
    ),
    asked=st.lists(predicates, min_size=1, max_size=3),
)
def test_of_several_scans_a_file_is_excluded_that_none_of_them_needs(files: Files, asked: list[Predicate]) -> None:
    tests = _tests(files, [True] * len(files))
    boxes = [without_hulls(to_boxes(enriched(each, NAMES), WIDE, solved=True)) for each in asked]
    read = np.logical_or.reduce([tests.matching(each) for each in boxes])
    excluded = tests.excluded_from_all([(each, None) for each in boxes])
    assert sum(item.files for item in excluded) == int((~read).sum())
    assert all(item.files > 0 for item in excluded)


def test_statistics_come_first_then_filters_then_the_truth_of_predicates() -> None:
    files: Files = [[(1, 10)], [(3, 30)], [(5, 20)], [(7, 19), (5, 23)], [(4, 22)]]
    asked = And(
        (
            Opaque("mod", ("a",), "a % 2 = 1"),
            Comparison("a", ">", _literals(1)),
            Opaque("function", ("a", "b"), "a + b < 30"),
            Comparison("b", "in", _literals(20, 22)),
        )
    )
    boxes = without_hulls(to_boxes(enriched(asked, NAMES), WIDE, solved=True))
    found = [(item.kind, item.name, item.files) for item in _tests(files, [True] * 5).excluded(boxes)]
    assert found == [
        ("delta", "a", 1),
        ("column", "b", 1),
        ("bloom", "b", 1),
        ("predicate", "a % 2 = 1", 1),
    ]


def test_predicates_that_differ_by_case_alone_do_not_answer_for_each_other() -> None:
    lower, upper = (Feature(f"c LIKE '%{x}%'", "predicate", "boolean", "", ("c",)) for x in "xX")
    _, names = widened(TableSchema((Column("c", "string"),)), (lower, upper))
    assert len({name.lower() for name in names.values()}) == 2
    told = enriched(Opaque("like", ("c",), "c LIKE '%X%'"), names)
    assert isinstance(told, And)
    assert told.children[1] == Comparison(names[upper], "=", (Literal("boolean", "true"),))


def test_a_recorded_plan_and_a_statement_spell_the_same_predicate() -> None:
    feature = Feature("CONTAINS(c, 'x')", "predicate", "boolean", "", ("c",))
    assert isinstance(enriched(Opaque("like", ("c",), "c LIKE '%x%'"), {feature: "f"}), And)


def test_alternatives_with_null_among_them_are_not_looked_up_as_single_values() -> None:
    """So many are one range of single values and null: no filter holds null, and a file of it is needed."""
    files: Files = [[(0, 5), (0, None)], [(0, 200), (0, 201)], [(0, 500)], [(0, None)]]
    asked = Or((*(Comparison("b", "=", _literals(value)) for value in range(100, 199)), Comparison("b", "is_null")))
    boxes = without_hulls(to_boxes(enriched(asked, NAMES), WIDE, solved=True))
    assert len(boxes) == 1
    tests = _tests(files, [True] * 4)
    assert tests.matching(boxes).tolist() == [True, False, False, True]
    without_null = without_hulls(to_boxes(enriched(Or(asked.children[:-1]), NAMES), WIDE, solved=True))
    assert not tests.matching(without_null).any()


def _interval(rng: np.random.Generator) -> Interval:
    """One value, from one to another (which may be none), or without a lower or an upper bound."""
    low, kind = int(rng.integers(-4, 8)), rng.integers(5)
    high = low if kind < 2 else low + int(rng.integers(-1, 4))
    return Interval(None if kind == 3 else low, None if kind == 4 else high, *(rng.random(2) < 0.2).tolist())


def _inside(value: int | None, item: Range) -> bool:
    if value is None:
        return item.nulls
    return any(
        (each.low is None or (value > each.low if each.low_open else value >= each.low))
        and (each.high is None or (value < each.high if each.high_open else value <= each.high))
        for each in item.intervals
    )


@pytest.mark.parametrize("seed", range(6))
def test_what_is_looked_up_is_found_whatever_a_range_asks_for(seed: int) -> None:
    """Single values, longer intervals and null, in any mixture, of files with and without statistics and filters."""
    rng = np.random.default_rng(seed)
    for _ in range(40):
        sizes = rng.integers(1, 4, 5).tolist()
        files: Files = [
            [(0, None if rng.random() < 0.2 else int(rng.integers(-4, 8))) for _ in range(n)] for n in sizes
        ]
        known = (rng.random(5) < 0.8).tolist()
        item = Range("b", "int", tuple(_interval(rng) for _ in range(rng.integers(0, 4))), bool(rng.random() < 0.3))
        read = _tests(files, known).matching(((item,),))
        needed = np.array([any(_inside(b, item) for _, b in file) for file in files])
        assert not (needed & ~read).any()
        assert read[~np.array(known)].all() or not (item.intervals or item.nulls)
        if not item.nulls and all(each.low == each.high is not None for each in item.intervals):
            exact = replace(item, intervals=tuple(Interval(each.low, each.low) for each in item.intervals))
            found = _tests(files, [True] * 5).matching(((exact,),))
            assert found.tolist() == [any(_inside(b, exact) for _, b in file) for file in files], "by its filter alone"


def test_values_of_a_list_are_asked_for_one_by_one_and_each_column_alone() -> None:
    """Neither as the range from the smallest to the largest, nor only of files that have all statistics, as Delta."""
    zones = ColumnZones(np.array([3, 1]), np.array([4, 1]), np.array([True, True]), np.array([0, 0]))
    unknown = replace(zones, known=np.array([False, False]), null_count=np.array([-1, -1]))
    delta = ZoneMap(np.array([9, 9]), np.array([9, 9]), {"a": zones, "b": unknown}, all_or_none=True)
    asked = And((Comparison("a", "in", _literals(1, 9)), Comparison("b", "=", _literals(1))))
    boxes = to_boxes(asked, TableSchema((Column("a", "int"), Column("b", "int"))))
    assert delta.matching(boxes).tolist() == [True, True]
    assert FileTests(delta, {}).matching(without_hulls(boxes)).tolist() == [False, True]


def test_without_statistics_of_ours_those_of_delta_alone_are_asked() -> None:
    files: Files = [[(1, 7)], [(1, 8)], [(2, 7)]]
    boxes = to_boxes(And((Comparison("a", "=", _literals(1)), Comparison("b", "=", _literals(7)))), WIDE)
    tests = _tests(files, [True] * 3)
    assert tests.matching(boxes).tolist() == [True, False, False]
    assert tests.matching(boxes, own=False).tolist() == [True, True, False]


def _texts(bounds: list[tuple[str, str]], exact: bool = False) -> FileTests:
    low, high = (np.array(side, dtype=object) for side in zip(*bounds, strict=True))
    known, count = np.ones(len(bounds), dtype=np.bool_), np.ones(len(bounds), dtype=np.int64)
    return FileTests(ZoneMap(count, count, {"c": ColumnZones(low, high, known, count * 0, exact)}), {})


def test_bounds_of_texts_that_the_log_cannot_hold_exclude_nothing() -> None:
    """Bytes that are no UTF-8 are U+FFFD in the log, be it in the smallest or in the largest text of a file."""
    schema = TableSchema((Column("c", "string"),))
    boxes = to_boxes(Comparison("c", "=", (Literal("string", "z"),)), schema)
    bounds = [("a", "b"), ("a\ufffd", "b"), ("a", "b\ufffd"), ("x", "zz")]
    tests = _texts(bounds)
    assert tests.matching(boxes).tolist() == [False, True, True, True]
    assert [(item.kind, item.name, item.files) for item in tests.excluded(boxes)] == [("delta", "c", 1)]
    zones = replace(tests.delta.columns["c"], known=np.array([False, True, False, True]))
    some = FileTests(replace(tests.delta, columns={"c": zones}), {})
    assert some.matching(boxes).tolist() == [True] * 4, "what is not known does not become known"


def test_wide_decimals_have_bounds_that_are_no_texts() -> None:
    schema = TableSchema((Column("w", "decimal(38,0)"),))
    boxes = to_boxes(Comparison("w", ">", (Literal("number", str(10**30)),)), schema)
    side = np.array([10**25, 10**35], dtype=object)
    known, count = np.ones(2, dtype=np.bool_), np.ones(2, dtype=np.int64)
    tests = FileTests(ZoneMap(count, count, {"w": ColumnZones(side, side, known, count * 0)}), {})
    assert tests.matching(boxes).tolist() == [False, True]


def test_decimals_that_others_told_as_doubles_are_not_left_out_by_them() -> None:
    """Delta reads all of the IN's hull; bounds of 16 digits, as delta-rs tells them, are rounded beyond the value."""
    schema = TableSchema((Column("m", "decimal(18,2)"),))
    points = tuple(Literal("number", text) for text in ("1234567890123456.78", "9999999999999999.99"))
    boxes = without_hulls(to_boxes(Comparison("m", "in", points), schema))
    side = np.array([123456789012345680, 123456789012345680, 123456789012345700, -123456789012345680])
    known, count = np.ones(4, dtype=np.bool_), np.ones(4, dtype=np.int64)
    told = ZoneMap(count, count, {"m": ColumnZones(side, side, known, count * 0)})
    tests = FileTests(told, {}, np.array([True, False, False, True]))
    assert tests.matching(boxes).tolist() == [True, False, False, False], "Spark tells all digits"
    assert tests.matching(boxes, delta=~known).tolist() == [False] * 4, "what Delta leaves out no plain read returns"
    assert FileTests(told, {}, known).matching(boxes).tolist() == [True, True, True, False]
    assert FileTests(told, {}).matching(boxes).tolist() == [False] * 4


@pytest.mark.parametrize("digits", ["decimal(15,0)", "decimal(18,4)", "decimal(38,0)", "decimal(38,10)"])
@given(data=st.data())
def test_loosened_bounds_hold_what_a_double_stands_for(digits: str, data: st.DataObject) -> None:
    kind = ValueType(digits)
    assert kind.bounds is not None
    value = data.draw(st.integers(*kind.bounds))
    double = Decimal(repr(float(Decimal(value).scaleb(-kind.scale, Context(prec=60)))))
    told = int(double.scaleb(kind.scale, Context(prec=60)).to_integral_value(context=Context(prec=60)))
    side = np.array([told], dtype=kind.numpy_dtype)
    yes, none = np.ones(1, dtype=np.bool_), np.zeros(1, dtype=np.int64)
    found = loosened(ColumnZones(side, side, yes, none), digits, yes)
    assert found.low[0] <= value <= found.high[0]


def test_instants_of_before_there_was_standard_time_may_lack_seconds_of_their_offset() -> None:
    """Delta 3 told them so; Delta reads what lies in the hull of an IN, and the last lies beyond all doubt."""
    schema = TableSchema((Column("ts", "timestamp"),))
    points = tuple(Literal("timestamp", f"{text}Z") for text in ("1900-01-01 00:00:30", "2020-01-01 00:00:30"))
    boxes = without_hulls(to_boxes(Comparison("ts", "in", points), schema))
    first, last = -2_208_988_800_000_000, 1_577_836_800_000_000
    low = np.array([first, first + 60_000_000, first, last, last + 60_000_000, first - 90_000_000])
    high = low + 0
    high[2] = last
    known, count = np.ones(6, dtype=np.bool_), np.ones(6, dtype=np.int64)
    tests = FileTests(ZoneMap(count, count, {"ts": ColumnZones(low, high, known, count * 0)}), {})
    assert tests.matching(boxes).tolist() == [True, True, True, False, False, False]
    assert tests.matching(boxes, delta=~known).tolist() == [False, False, True, False, False, False]


def _floats(values: list[tuple[float, float]], without_nan: list[bool]) -> FileTests:
    low, high = (np.array(side) for side in zip(*values, strict=True))
    known, count = np.ones(len(values), dtype=np.bool_), np.ones(len(values), dtype=np.int64)
    zones = {"f": ColumnZones(low, high, known, count * 0)}
    return FileTests(ZoneMap(count, count, zones), {}, np.array(without_nan))


@pytest.mark.parametrize(
    ("op", "literals", "read"),
    [
        (">", ("5",), [True, False, True]),
        (">=", ("NaN",), [True, False, True]),
        ("<>", ("1",), [True, True, True]),
        ("=", ("NaN",), [True, False, True]),
        ("=", ("5",), [False, False, True]),
        ("in", ("5", "7"), [False, False, True]),
        ("between", ("5", "NaN"), [True, False, True]),
        ("<", ("NaN",), [True, True, True]),
        ("<", ("0",), [False, False, False]),
    ],
)
def test_bounds_of_floats_may_be_without_nan(op: str, literals: tuple[str, ...], read: list[bool]) -> None:
    """Of a writer that leaves it out, of Spark where there is none, and of Spark where there is."""
    tests = _floats([(0.0, 1.0), (0.0, 1.0), (0.0, float("nan"))], [True, False, False])
    schema = TableSchema((Column("f", "double"),))
    boxes = without_hulls(to_boxes(Comparison("f", op, tuple(Literal("number", x) for x in literals)), schema))
    assert tests.matching(boxes).tolist() == read
    nobody = np.zeros(3, dtype=np.bool_)
    left = tests.matching(boxes, delta=nobody)
    assert left.tolist() == FileTests(tests.delta, {}).matching(boxes).tolist(), "where Delta reads none, bounds count"
    assert sum(item.files for item in tests.excluded(boxes, nobody)) == int((~left).sum())


def test_bounds_without_nan_leave_a_file_out_where_delta_does_so_too() -> None:
    """Delta reads the first, whose NaN would be missed; the last may hold what is asked for, whatever Delta does."""
    tests = _floats([(0.0, 1.0), (0.0, 1.0), (0.0, 9.0)], [True, True, True])
    schema = TableSchema((Column("f", "double"),))
    boxes = to_boxes(Comparison("f", ">", (Literal("number", "5"),)), schema)
    assert tests.matching(boxes, delta=np.array([True, False, False])).tolist() == [True, False, True]


def test_the_value_of_a_partition_is_what_it_is_and_is_asked_first() -> None:
    schema = TableSchema((Column("c", "string", partition=True),))
    boxes = to_boxes(Comparison("c", "=", (Literal("string", "z"),)), schema)
    tests = _texts([("a\ufffd", "a\ufffd"), ("z", "z")], exact=True)
    assert tests.matching(boxes, own=False).tolist() == [False, True]
    assert [(item.kind, item.name, item.files) for item in tests.excluded(boxes)] == [("partition", "c", 1)]


def test_more_values_than_are_worth_it_are_not_looked_up() -> None:
    files: Files = [[(0, -1), (0, 5_000)]]
    for count, read in ((MOST_LOOKED_UP, False), (MOST_LOOKED_UP + 1, True)):
        values = _literals(*range(count))
        boxes = without_hulls(to_boxes(enriched(Comparison("b", "in", values), NAMES), WIDE, solved=True))
        assert _tests(files, [True]).matching(boxes).tolist() == [read]


@pytest.mark.parametrize("text", ["ab", "abc", "a"])
def test_what_only_scans_see_says_nothing_to_delta_also_where_it_says_no(text: str) -> None:
    """``left(c, 2) = 'abc'`` is never true, of which Delta knows nothing: it reads a file of NaN beside it."""
    schema = TableSchema((Column("c", "string"), Column("f", "double")))
    asked = begins_as("c", text, 2, derived=False)
    for told in (asked, as_solved(asked), as_solved(Or(()))):
        either = Or((told, Comparison("f", ">", (Literal("number", "5"),))))
        zone = ColumnZones(np.array([0.0]), np.array([0.5]), np.array([True]), np.array([0]))
        words = ColumnZones(np.array(["x"], object), np.array(["y"], object), np.array([True]), np.array([0]))
        delta = ZoneMap(np.array([2]), np.array([9]), {"f": zone, "c": words}, all_or_none=True)
        read = delta.matching(to_boxes(either, schema))
        tests = FileTests(delta, {}, foreign=np.array([True]))
        assert read.tolist() == [True]
        assert tests.matching(to_boxes(either, schema, solved=True), delta=read).tolist() == [True]
