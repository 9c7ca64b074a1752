"""Queries that follow the newest data, told from those that ask for the same days again and again."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.features.dated import dated
from zorder_pipeline.features.following import Following, following
from zorder_pipeline.model.predicate import And
from zorder_pipeline.model.ranges import Boxes, Interval, Range, starting_with
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.values import DAY, Value, ValueType
from zorder_pipeline.model.workload import LoggedQuery

TODAY = 20_780
EPOCH = dt.date(1970, 1, 1)
SCHEMA = TableSchema((Column("d", "date", partition=True), Column("ts", "timestamp"), Column("k", "int")))
Bounds = Callable[[int, np.random.Generator], tuple[int | None, int | None]]


def query(moment: float, template: str = "a") -> LoggedQuery:
    return LoggedQuery("t", And(()), template=template, timestamp=int(moment * DAY))


def day(low: int | None, high: int | None) -> Boxes:
    return ((Range("d", "date", (Interval(low, high),)), Range("k", "int", (Interval(1, 1),))),)


def found(bounds: Bounds, days: int = 7, newest: Value | None = TODAY, template: str = "a") -> set[tuple[str, bool]]:
    """Which bounds move on: 100 queries in so many days, each of which asks for ``bounds`` of its day."""
    rng = np.random.default_rng(0)
    moments = np.sort(rng.uniform(TODAY - days, TODAY + 1, 100))
    asked = [day(*bounds(int(moment), rng)) for moment in moments]
    values = {} if newest is None else {"d": [newest], "k": [9]}
    told = following([query(moment, template) for moment in moments], asked, SCHEMA, values)
    assert told.newest == pytest.approx(moments.max(), abs=1e-6)
    return {(bound.column, bound.upper) for bound in told.moving}


LOW, HIGH = ("d", False), ("d", True)


def at(told: Following, boxes: Boxes, template: str, asked: int, ahead: int) -> Boxes:
    """What a query would ask for so many days after the newest one."""
    (then,) = told.boxes(boxes, template, asked, [ahead])
    return then


def some(most: int, since: Callable[[int], int]) -> Bounds:
    """A day among the last ``most`` before another."""

    def asked(today: int, rng: np.random.Generator) -> tuple[int, int]:
        one = since(today) - int(rng.integers(0, most))
        return one, one

    return asked


def test_a_bound_moves_on_if_it_lies_closer_to_the_day_of_its_query_than_to_the_others() -> None:
    assert found(lambda today, _: (today - 7, None)) == {LOW}
    assert found(lambda today, _: (today - 300, None)) == {LOW}, "however far behind"
    assert found(lambda today, _: (TODAY - 300, today)) == {HIGH}, "the year so far"
    assert found(lambda today, _: (TODAY - 20, TODAY - 10)) == set(), "the same days by all"
    assert found(some(6, lambda today: today)) == {LOW, HIGH}
    assert found(some(6, lambda _: TODAY)) == set(), "a week that stays"
    assert found(some(700, lambda _: TODAY)) == set(), "any of many days"
    assert found(some(60, lambda _: TODAY), days=30) == set()


def test_of_a_single_day_what_is_recent_counts_as_moving_on() -> None:
    assert found(lambda today, _: (today - 1, today - 1), days=0) == {LOW, HIGH}
    assert found(lambda today, _: (today - 200, today - 200), days=0) == set()


def test_nobody_follows_data_that_nothing_is_added_to() -> None:
    for newest in (None, TODAY - 60):
        assert found(lambda today, _: (today - 3, None), newest=newest) == set()


def test_templates_that_are_asked_once_tell_together() -> None:
    rng = np.random.default_rng(1)
    moments = np.sort(rng.uniform(TODAY - 9, TODAY, 60))

    def moving(bound: Callable[[int], int]) -> int:
        queries = [query(moment, f"t{i}") for i, moment in enumerate(moments)]
        boxes = [day(bound(int(moment)), None) for moment in moments]
        return len(following(queries, boxes, SCHEMA, {"d": [TODAY]}).moving)

    assert moving(lambda today: today - 2) == 60
    assert moving(lambda _: TODAY - 12) == 0


def test_a_template_keeps_what_it_says_of_itself_beside_others() -> None:
    moments = [TODAY - 7 + i / 10 for i in range(70)]
    queries = [query(moment, template) for moment in moments for template in "ab"]
    boxes = [day(low, None) for moment in moments for low in (int(moment) - 1, TODAY - 8)]
    told = following(queries, boxes, SCHEMA, {"d": [TODAY]})
    assert {(bound.template, bound.column, bound.upper) for bound in told.moving} == {("a", "d", False)}
    assert at(told, day(TODAY - 8, None), "a", TODAY - 7, 3) == day(TODAY + 2 - 8 + 7, None), "noon of the sixth"
    assert at(told, day(TODAY - 8, None), "b", TODAY - 7, 3) == day(TODAY - 8, None)


def test_without_times_nothing_is_known() -> None:
    untimed = LoggedQuery("t", And(()))
    assert following([untimed], [day(1, 2)], SCHEMA, {"d": [TODAY]}) == Following()
    assert at(Following(), day(1, 2), "a", TODAY, 5) == day(1, 2)


def test_only_what_is_bounded_in_all_of_a_query_tells() -> None:
    """NOT IN is open on both sides, and a prefix of a text ends in what is no day."""
    apart = Range("d", "date", (Interval(None, TODAY - 3), Interval(TODAY - 1, None)))
    assert following([query(TODAY)], [((apart,),)], SCHEMA, {"d": [TODAY]}).moving == frozenset()
    text = TableSchema((Column("d", "string"),))
    prefix = Interval("2026-11-2", "2026-11-3", high_open=True)
    boxes = [((Range("d", "string", (prefix,)),),)]
    assert following([query(TODAY)], boxes, text, {"d": ["2026-11-22"]}).moving == frozenset()
    ends = Interval("2026-11-20", "2026-11-21x\U0010ffff")
    told = following([query(TODAY)], [((Range("d", "string", (ends,)),),)], text, {"d": ["2026-11-22"]})
    assert {bound.upper for bound in told.moving} == {False, True}
    half = ((Range("d", "string", (Interval("2026-11-20", "b"),)),),)
    assert at(told, half, "a", TODAY, 3) == half, "of which one end is no day stays"


def one_off(boxes: list[Boxes], days: int = 10) -> Following:
    """Templates that are asked once each, in as many days."""
    queries = [query(TODAY - days + (i + 0.5) * days / len(boxes), f"t{i}") for i in range(len(boxes))]
    return following(queries, boxes, SCHEMA, {"d": [TODAY]})


def test_conditions_of_one_form_tell_together_and_an_interval_never_turns_inside_out() -> None:
    fixed = [day(TODAY - 300, TODAY - 300)] * 20
    rolling = [day(TODAY - 10 + i // 3 - 3, None) for i in range(30)]
    mixed = [box for pair in zip(fixed, rolling, strict=False) for box in pair] + rolling[20:]
    told = one_off(mixed)
    moved = [at(told, box, f"t{i}", TODAY - 5, 5) for i, box in enumerate(mixed)]
    for before, after in zip(mixed, moved, strict=True):
        if before == fixed[0]:
            assert after == before
        else:
            assert after != before
    ends = [((Range("d", "date", (Interval(d, d), Interval(2_932_896, 2_932_896))),),) for d in range(TODAY - 9, TODAY)]
    assert at(one_off(ends), ends[0], "t0", TODAY - 9, 9) == ends[0], "IN (today, 9999-12-31)"


def test_of_one_day_each_bound_is_judged_by_itself() -> None:
    lags = {"yesterday": 1, "long": 900, "longer": 2700, "current": -2_912_000}
    names = [*["yesterday"] * 20, "long", "longer", *["current"] * 80]
    queries = [query(TODAY + i / 200, name) for i, name in enumerate(names)]
    boxes = [day(TODAY - lags[name], TODAY - lags[name]) for name in names]
    told = following(queries, boxes, SCHEMA, {"d": [2_932_896, TODAY]})
    assert {bound.template for bound in told.moving} == {"yesterday"}


@pytest.mark.parametrize(("days", "window"), [(2, 3), (2, 14), (3, 14), (3, 30), (5, 60)])
def test_many_queries_tell_a_window_that_stays_from_one_that_moves_on_within_days(days: int, window: int) -> None:
    rng = np.random.default_rng(2)
    moments = TODAY - days + np.arange(1000) * days / 1000

    def moving(last: Callable[[int], int]) -> bool:
        wanted = [last(int(moment)) - int(rng.integers(0, window)) for moment in moments]
        boxes = [
            ((Range("d", "date", (Interval(low, low),)), Range("k", "int", (Interval(i, i),))),)
            for i, low in enumerate(wanted)
        ]
        return bool(following([query(moment) for moment in moments], boxes, SCHEMA, {"d": [TODAY]}).moving)

    assert moving(lambda today: today)
    assert not moving(lambda _: TODAY - days)


def test_a_condition_moves_whole_also_where_its_end_is_no_day_of_the_calendar() -> None:
    for kind, condition, newest, moved in (
        ("string", starting_with("2026-11-29")[0], "2026-11-30", starting_with("2026-12-04")[0]),
        ("string", starting_with("2026-11-30")[0], "2026-11-30", starting_with("2026-12-05")[0]),
        ("int", Interval(20_261_101, 20_261_200), 20_261_130, Interval(20_261_106, 20_261_205)),
        ("int", Interval(20_261_131, None), 20_261_130, Interval(20_261_206, None)),
    ):
        schema = TableSchema((Column("d", kind),))
        now = (dt.date(2026, 11, 30) - EPOCH).days
        box: Boxes = ((Range("d", kind, (condition,)),),)
        told = following([query(now + 0.5)], [box], schema, {"d": ["zz" if kind == "string" else 10**8, newest]})
        assert at(told, box, "a", now, 5) == ((Range("d", kind, (moved,)),),), condition


@given(st.dates(dt.date(2000, 1, 1), dt.date(2100, 1, 1)), st.integers(-400, 400))
def test_a_day_is_told_and_moved_however_it_is_written(now: dt.date, days: int) -> None:
    since, later = (now - EPOCH).days, now + dt.timedelta(days=days)

    def month(of: dt.date) -> dt.date:
        return of.replace(day=1)

    ways: list[tuple[str, Callable[[dt.date], Value], Callable[[dt.date], dt.date]]] = [
        ("date", lambda d: (d - EPOCH).days, lambda d: d),
        ("timestamp", lambda d: (d - EPOCH).days * DAY, lambda d: d),
        ("string", lambda d: f"{d}", lambda d: d),
        ("string", lambda d: f"{d}T05:00", lambda d: d),
        ("string", lambda d: f"{d:%Y%m%d}", lambda d: d),
        ("string", lambda d: f"{d:%Y%m%d}05", lambda d: d),
        ("string", lambda d: f"{d:%Y-%m}", month),
        ("string", lambda d: f"{d:%Y%m}", month),
        ("int", lambda d: int(f"{d:%Y%m%d}"), lambda d: d),
        ("int", lambda d: int(f"{d:%Y%m}"), month),
        ("bigint", lambda d: int(f"{d:%Y%m%d}23"), lambda d: d),
        ("bigint", lambda d: (d - EPOCH).days * 86_400, lambda d: d),
        ("bigint", lambda d: (d - EPOCH).days * 86_400_000, lambda d: d),
        ("bigint", lambda d: (d - EPOCH).days * 86_400_000_000, lambda d: d),
    ]
    for kind, written, shown in ways:
        way = dated(ValueType.parse(kind), [written(now)], float(since))
        assert way is not None, (kind, written(now))
        assert way.day(written(now)) == (shown(now) - EPOCH).days
        assert way.moved(written(now), since, since + days) == written(later)


@pytest.mark.parametrize(
    ("kind", "newest"),
    [("string", "Berlin"), ("string", "2026-13-01"), ("string", "12345678901"), ("int", 999_999), ("int", 20_261_301),
     ("bigint", 1 << 40), ("double", 2e4), ("date", TODAY - 50), ("string", "2025-01-01"), ("boolean", 1)],
)  # fmt: skip
def test_what_is_no_day_or_long_ago_is_none(kind: str, newest: Value) -> None:
    assert dated(ValueType.parse(kind), [newest], float(TODAY)) is None


def test_days_beyond_the_calendar_stay() -> None:
    way = dated(ValueType("string"), ["9999-12-31"], float(TODAY))
    assert way is not None
    assert way.moved("9999-12-31", TODAY, TODAY + 1) == "9999-12-31"
