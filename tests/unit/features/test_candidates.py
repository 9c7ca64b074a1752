"""Candidates, subsumption and selection on workloads small enough to count by hand."""

import json
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.features import implication
from zorder_pipeline.features.candidates import Candidate, column_candidates, query_weights
from zorder_pipeline.features.implication import implies
from zorder_pipeline.features.predicates import predicate_candidates
from zorder_pipeline.features.profile import profile
from zorder_pipeline.features.sample import Sample, SampleColumn
from zorder_pipeline.features.select import Analysis, analyse
from zorder_pipeline.model.predicate import And, Comparison, Literal, Opaque, Or, Predicate
from zorder_pipeline.model.ranges import Box, Interval, Range
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.values import ValueType
from zorder_pipeline.model.workload import LoggedQuery

SCHEMA = TableSchema(
    (
        Column("day", "int"),
        Column("shipped", "int"),
        Column("price", "double"),
        Column("status", "string"),
        Column("fixed", "int"),
        Column("region", "string", partition=True),
        Column("flag", "boolean", delta_stats=False),
        Column("late", "int", delta_stats=False),
        Column("tags", "array<int>", delta_stats=False),
        Column("sparse", "int"),
    )
)
N = 400


def is_(name: str, value: object, op: str = "=") -> Comparison:
    return Comparison(name, op, (Literal("string" if isinstance(value, str) else "number", str(value)),))


def sample() -> Sample:
    rng = np.random.default_rng(1)
    day = np.arange(N)
    data = {
        "day": day,
        "shipped": day + rng.integers(0, 5, N),
        "price": rng.random(N),
        "status": np.array(["open", "done"], dtype=object)[(rng.random(N) < 0.9).astype(int)],
        "fixed": np.ones(N, dtype=np.int64),
        "region": np.array(["eu"] * N, dtype=object),
        "flag": day % 2,
        "late": day[::-1].copy(),
        "sparse": day,
    }
    valid = {name: np.ones(N, dtype=bool) for name in data}
    valid["sparse"] = rng.random(N) < 0.2
    columns = {name: SampleColumn(values, valid[name]) for name, values in data.items()}
    return Sample(columns, (day // 100).astype(np.int32), N, N)


def run(predicates: list[Predicate], max_features: int = 16) -> Analysis:
    queries = [LoggedQuery("t", predicate) for predicate in predicates]
    return analyse(queries, SCHEMA, sample(), max_features=max_features)


WORKLOAD: list[Predicate] = [
    *[And((is_("day", i), is_("day", i + 1, "<="), is_("status", "open"))) for i in range(10)],
    *[And((is_("SHIPPED", i, ">"), is_("region", "eu"))) for i in range(6)],
    *[Or((is_("price", i), is_("fixed", i))) for i in range(5)],
    *[And((is_("flag", "true"), is_("late", i), Comparison("tags", "is_not_null"))) for i in range(4)],
    *[And((is_("sparse", i), Opaque("like", ("status",)))) for i in range(3)],
    And(()),
]


def by_name(analysis: Analysis) -> dict[str, Candidate]:
    return {candidate.column: candidate for candidate in analysis.candidates}


def test_candidates_are_counted_once_per_query_and_say_why() -> None:
    found = by_name(run(WORKLOAD))
    day = found["day"]
    assert (day.queries, day.frequency, day.comparison_points, day.distinct) == (10, 10.0, 11, N)
    assert day.share == pytest.approx(10 / len(WORKLOAD))
    assert day.overlap_depth == 1.0
    assert found["price"].overlap_depth > 3
    assert found["status"].top_share == pytest.approx(0.9, abs=0.05)
    expected = {
        "day": "10 of 29 queries compare day with 11 distinct values",
        "shipped": "shipped follows day (ascending,",
        "status": "only 1 distinct value, fewer than 2",
        "fixed": "constant",
        "region": "partition column",
        "flag": "(boolean) has no Delta statistics",
        "late": "(int) has no Delta statistics",
        "tags": "array<int>",
        "sparse": "of its rows are null",
    }
    for name, text in expected.items():
        assert text in found[name].reason, found[name].reason
    assert {name: found[name].level for name in ("day", "late", "tags")} == {
        "day": "delta",
        "late": "row_group",
        "tags": "enriched",
    }
    assert {name for name, candidate in found.items() if candidate.chosen} == {"day", "price", "sparse"}


def test_ranked_holds_correlated_and_rare_columns_after_the_primary_ones() -> None:
    found = run(WORKLOAD)
    assert found.primary == ("day", "price", "sparse")
    assert found.correlated == ("shipped",)
    assert found.ranked == ("day", "price", "sparse", "status", "shipped")
    assert [(a, b, kind) for a, b, _, kind in found.edges] == [("day", "shipped", "ascending")]


def test_limit_of_features_and_thresholds() -> None:
    limited = run(WORKLOAD, max_features=1)
    assert limited.primary == limited.ranked == ("day",)
    assert limited.followers == ("shipped",), "price comes after day, which does not stand for it"
    assert limited.correlated == ("shipped", "price", "sparse")
    assert by_name(limited)["price"].reason == "1 features come before price"
    queries = [LoggedQuery("t", predicate) for predicate in WORKLOAD]
    few = column_candidates(queries, [1.0] * len(queries), SCHEMA, sample(), theta=1, gamma=0.2)
    found = {candidate.column: candidate for candidate in few}
    assert "less than 20.0%" in found["price"].reason
    assert found["status"].chosen


def test_predicate_candidates() -> None:
    found = {c.predicate.to_sql(): c.queries for c in run(WORKLOAD).predicate_candidates}
    assert found["status = 'open'"] == 10
    assert found["<like over status>"] == 3
    assert found["tags IS NOT NULL"] == 4
    assert not any("day" in text or "region" in text or "shipped" in text.lower() for text in found)
    queries = [LoggedQuery("t", predicate) for predicate in WORKLOAD]
    often = predicate_candidates(queries, [1.0] * len(queries), SCHEMA, run(WORKLOAD).candidates, gamma=0.5)
    assert "status = 'open'" not in {candidate.predicate.to_sql() for candidate in often}


def test_json_is_json_and_hides_literals() -> None:
    analysis = run(WORKLOAD)
    assert json.loads(json.dumps(analysis.to_json()))["primary"] == ["day", "price", "sparse"]
    assert "open" in json.dumps(analysis.to_json())
    assert "open" not in json.dumps(analysis.to_json(redact=True))


def test_old_queries_weigh_less() -> None:
    day = 86_400_000_000
    queries = [LoggedQuery("t", is_("day", i), timestamp=i * day) for i in (0, 10)] + [LoggedQuery("t", And(()))]
    assert query_weights(queries, 10) == [0.5, 1.0, 1.0]
    assert query_weights(queries) == [1.0] * 3
    assert query_weights(queries, 10, [0.5, 1.0, 0.1]) == [0.25, 1.0, 0.1]
    found = analyse(queries, SCHEMA, sample(), half_life_days=10).candidates[0]
    assert (found.frequency, found.queries, found.share) == (1.5, 2, 0.6)


def test_no_query_and_no_row() -> None:
    empty = Sample(
        {"day": SampleColumn(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool))}, np.zeros(0, np.int32), 0, 0
    )
    assert analyse([], SCHEMA, empty).ranked == ()
    assert analyse([LoggedQuery("t", is_("day", 1))], SCHEMA, empty).ranked == ()


bound = st.one_of(st.none(), st.integers(0, 4))
interval = st.builds(Interval, bound, bound, st.booleans(), st.booleans())
ranges = st.builds(
    Range,
    st.sampled_from("xy"),
    st.just("double"),
    st.lists(interval, max_size=2).map(tuple),
    st.booleans(),
    st.booleans(),
)
boxes = st.lists(ranges, max_size=3).map(tuple)


def matches(box: Box, row: dict[str, float | None]) -> bool:
    def one(item: Range) -> bool:
        value = row[item.column]
        if value is None:
            return item.nulls
        return any(
            (i.low is None or value > i.low or (value == i.low and not i.low_open))  # type: ignore[operator]
            and (i.high is None or value < i.high or (value == i.high and not i.high_open))  # type: ignore[operator]
            for i in item.intervals
        )

    return all(one(item) for item in box)


@given(boxes, boxes)
def test_implies_is_never_wrong(a: Box, b: Box) -> None:
    domain = [None, *(i / 2 for i in range(-1, 10))]
    if implies(a, b):
        assert all(matches(b, {"x": x, "y": y}) for x, y in product(domain, domain) if matches(a, {"x": x, "y": y}))


def inside(inner: Interval, outer: Interval) -> bool:
    """Whether every value of ``inner`` lies in ``outer``, tried with all halves between the bounds that occur."""
    values = [i / 2 for i in range(-1, 10)]
    one, other = ((Range("x", "double", (each,)),) for each in (inner, outer))
    return all(matches(other, {"x": value}) for value in values if matches(one, {"x": value}))


point = st.integers(0, 4).map(lambda value: Interval(value, value))
several = st.lists(st.one_of(interval, point), max_size=6) | st.lists(point, max_size=6)


@given(several, several)
def test_a_list_is_within_another_if_each_interval_is_in_one_of_the_other(a: list[Interval], b: list[Interval]) -> None:
    expected = all(any(inside(inner, outer) for outer in b) or inside(inner, Interval(1, 0)) for inner in a)
    assert implies((Range("x", "double", tuple(a)),), (Range("x", "double", tuple(b)),)) == expected


def test_lists_are_held_against_each_other_by_what_is_made_ready_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0

    def counted(value: Any) -> tuple[Any, ...]:
        nonlocal made
        made += 1
        return sort_key(value)

    sort_key = implication.sort_key
    monkeypatch.setattr(implication, "sort_key", counted)
    lists = [[Literal("number", str(7 * i + j)) for j in range(50)] for i in range(20)]
    either = [Or((Comparison("shipped", "in", tuple(each)), Comparison("day", "in", tuple(each)))) for each in lists]
    either.append(Or(tuple(Comparison(name, "in", tuple(lists[3][5:25])) for name in ("shipped", "day"))))
    queries = [LoggedQuery("t", each) for each in either]
    found = predicate_candidates(queries, [1.0] * len(queries), SCHEMA, [], gamma=0.0)
    assert {each.predicate: each.queries for each in found}[either[3]] == 2
    assert made <= 21 * 2 * 50 * 2, "a sort key for each bound of each list, not for each pair of lists"


@given(boxes)
def test_implies_is_reflexive_and_true_is_implied(box: Box) -> None:
    assert implies(box, box)
    assert implies(box, ())


def test_implies_by_nulls_nan_and_missing_columns() -> None:
    nan = float("nan")
    some, null = Range("x", "double", (Interval(1.0, 2.0),)), Range("x", "double", (), nulls=True)
    present = Range("x", "double", (Interval(),))
    assert implies((some,), (present,))
    assert not implies((null,), (present,))
    assert not implies((), (present,))
    assert implies((Range("x", "double", (Interval(nan, nan),)),), (Range("x", "double", (Interval(1.0, None),)),))
    assert not implies((Range("x", "double", (Interval(1.0, nan),)),), (some,))


def test_a_small_range_is_said_unless_the_values_are_few_anyway() -> None:
    rows = 5_000
    rng = np.random.default_rng(0)
    values = {
        "narrow": rng.integers(1_000, 1_200, rows),
        "few": rng.integers(0, 5, rows),
        "wide": rng.integers(0, 10**6, rows),
    }
    columns = {name: SampleColumn(column, np.ones(rows, dtype=bool)) for name, column in values.items()}
    schema = TableSchema(tuple(Column(name, "int") for name in values))
    asked = [LoggedQuery("t", And(tuple(is_(name, i) for name in values)), timestamp=i) for i in range(20)]
    found = by_name(analyse(asked, schema, Sample(columns, np.zeros(rows, dtype=np.int32), rows, rows)))
    assert "its values span only 199 units" in found["narrow"].reason
    assert "it has only 5 values" in found["few"].reason
    assert "span" not in found["few"].reason + found["wide"].reason


@pytest.mark.parametrize(
    ("kind", "units"),
    [
        ("int", True),
        ("bigint", True),
        ("date", False),
        ("timestamp", False),
        ("decimal(6,2)", False),
        ("boolean", False),
    ],
)
def test_only_whole_numbers_are_told_in_units(kind: str, units: bool) -> None:
    """Days, microseconds and hundredths are kept as such numbers, too, and 199 of them are no units of anything."""
    rows = 2_000
    values = np.random.default_rng(0).integers(1_000, 1_200, rows) if kind != "boolean" else np.arange(rows) % 2
    found = profile(SampleColumn(values, np.ones(rows, dtype=bool)), np.zeros(rows, np.int32), ValueType.parse(kind))
    assert found.span == (199 if units else None)


def test_what_is_solved_out_of_an_expression_counts_for_readers_who_skip_by_it() -> None:
    solved = [
        Comparison("day", op, (Literal("number", str(day + after)),), derived=True, solved=True)
        for day in (3, 30, 300)
        for op, after in ((">=", 0), ("<", 9))
    ]
    queries = [LoggedQuery("t", And((since, until))) for since, until in zip(solved[::2], solved[1::2], strict=True)]
    queries += [LoggedQuery("t", is_("status", text)) for text in ("open", "done")]
    plain, reading = (analyse(queries, SCHEMA, sample(), solved=each) for each in (False, True))
    told = {candidate.column: candidate for candidate in plain.candidates}
    assert (told["day"].chosen, told["day"].queries, plain.primary) == (False, 0, ("status",))
    assert "no query compares day in a way" in told["day"].reason
    assert (reading.candidates[0].column, reading.candidates[0].queries, reading.primary[0]) == ("day", 3, "day")


@pytest.mark.parametrize(
    "inexact",
    [
        Comparison("status", "not_in", (Literal("string", "a"), Literal("string", "b"))),
        is_("status", 5, ">"),
        Or((is_("sparse", 1), Comparison("status", "not_in", (Literal("string", "a"), Literal("string", "b"))))),
        Comparison("sparse", "between", (Literal("number", "1"), Literal("string", "x"))),
    ],
)
def test_what_ranges_do_not_tell_is_implied_by_nothing(inexact: Predicate) -> None:
    queries = [LoggedQuery("t", inexact), *(LoggedQuery("t", is_("sparse", i)) for i in range(9))]
    found = predicate_candidates(queries, [1.0] * 10, SCHEMA, [])
    assert [each.queries for each in found if each.predicate == inexact] == [1]


def test_conditions_on_partition_columns_alone_are_no_features() -> None:
    asked = [Opaque("function", ("region",), f"LOWER(region) = '{text}'") for text in "abc"]
    both = [Opaque("function", ("region", "status"), f"CONCAT(region, status) = '{text}'") for text in "abc"]
    found = analyse([LoggedQuery("t", each) for each in (*asked, *both)], SCHEMA, sample())
    assert [each.columns for each in found.expression_candidates] == [("region", "status")]
    assert {each.predicate for each in found.predicate_candidates} == set(both)
