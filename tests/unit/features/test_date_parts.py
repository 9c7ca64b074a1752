"""Days that several partition columns tell together, against the days of a calendar taken one by one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.features.date_parts import DateParts, date_parts
from zorder_pipeline.features.following import following
from zorder_pipeline.model.predicate import And, Comparison, Literal, Or, Predicate
from zorder_pipeline.model.ranges import Boxes, Interval, to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.values import DAY, Value
from zorder_pipeline.model.workload import LoggedQuery

EPOCH = dt.date(1970, 1, 1)
NEWEST = dt.date(2026, 12, 2)
NAMES = ("year", "month", "day")
CALENDAR = [dt.date(2025, 11, 20) + dt.timedelta(days=i) for i in range(500)]
Written = Callable[[int], Value]


def table(kind: str, digits: int = 2, names: tuple[str, ...] = NAMES) -> tuple[TableSchema, DateParts]:
    schema = TableSchema((Column("k", "int"), *(Column(name, kind, partition=True) for name in names)))
    days = [day for day in CALENDAR if day <= NEWEST]
    partitions = [tuple(f"{part:0{digits}}" for part in (day.year, day.month, day.day)[: len(names)]) for day in days]
    parts = date_parts(schema, partitions)
    assert parts is not None
    return schema, parts


INT, TEXT, BARE = table("int", 1), table("string"), table("string", 1)


def compared(column: str, op: str, *numbers: int, digits: int | None = None) -> Predicate:
    texts = [str(number) if digits is None else f"{number:0{digits}}" for number in numbers]
    return Comparison(column, op, tuple(Literal("number" if digits is None else "string", text) for text in texts))


def asked(schema: TableSchema, boxes: Boxes, digits: int | None = None) -> set[dt.date]:
    """The days of the calendar that some box holds."""

    def value(day: dt.date, name: str) -> Value:
        number = getattr(day, name)
        return number if digits is None else f"{number:0{digits}}"

    def within(interval: Interval, one: Value) -> bool:
        low, high = interval.low, interval.high
        above = low is None or one > low or (one == low and not interval.low_open)  # type: ignore[operator]
        return above and (high is None or one < high or (one == high and not interval.high_open))  # type: ignore[operator]

    return {
        day
        for day in CALENDAR
        if any(
            all(any(within(i, value(day, item.column)) for i in item.intervals) for item in box if item.column != "k")
            for box in boxes
        )
    }


def number(day: dt.date) -> int:
    return (day - EPOCH).days


ONE = st.integers(1, 12)
A_DAY = st.integers(1, 31)


@st.composite
def conditions(draw: st.DrawFn, digits: int | None) -> Predicate:
    """What people ask of years, months and days, joined by OR now and then."""

    def one() -> Predicate:
        month = draw(st.sampled_from(["=", "in", ">=", "<=", "between", ""]))
        of_month = [draw(ONE) for _ in range(2 if month in ("in", "between") else 1)]
        day = draw(st.sampled_from(["=", "in", ">=", ">", "<=", "between", ""]))
        of_day = [draw(A_DAY) for _ in range(3 if day == "in" else 2 if day == "between" else 1)]
        wanted = [compared("year", "=", draw(st.integers(2025, 2027)), digits=digits)]
        wanted += [compared("month", month, *sorted(of_month), digits=digits)] if month else []
        wanted += [compared("day", day, *sorted(of_day), digits=digits)] if day else []
        return And((*wanted, compared("k", "=", 1)))

    return Or(tuple(one() for _ in range(draw(st.integers(1, 2)))))


@pytest.mark.parametrize(
    ("made", "digits"), [(INT, None), (TEXT, 2), (BARE, 1)], ids=["numbers", "texts", "bare texts"]
)
@given(data=st.data())
def test_together_and_apart_again_ask_for_the_same_days(
    made: tuple[TableSchema, DateParts], digits: int | None, data: st.DataObject
) -> None:
    schema, parts = made
    boxes = to_boxes(data.draw(conditions(digits)), schema)
    later = parts.together(boxes, number(dt.date(2030, 1, 1)))  # no month lasts till then
    assert asked(schema, parts.apart(later), digits) == asked(schema, boxes, digits)
    assert all(any(item.column == "k" for item in box) for box in parts.apart(later)), "and of the same other things"


def test_since_some_day_of_the_month_of_the_query_is_since_then() -> None:
    schema, parts = INT
    november = And((compared("year", "=", 2026), compared("month", "=", 11), compared("day", ">=", 22)))
    since = dt.date(2026, 11, 22)
    for now, last in ((dt.date(2026, 11, 25), CALENDAR[-1]), (NEWEST, dt.date(2026, 11, 30))):
        boxes = parts.apart(parts.together(to_boxes(november, schema), number(now)))
        assert asked(schema, boxes) == {day for day in CALENDAR if since <= day <= last}


def moving(made: tuple[TableSchema, DateParts], digits: int | None, of: Callable[[dt.date], Predicate]) -> None:
    """Queries of nine days up to the newest ask for what they would five days later, too, as if asked for it then."""
    schema, parts = made
    days = [NEWEST - dt.timedelta(days=8 - i) for i in range(9)]
    boxes = [to_boxes(of(day), schema) for day in days]
    queries = [LoggedQuery("t", And(()), template="a", timestamp=number(day) * DAY + DAY // 2) for day in days]
    told = following(queries, boxes, schema, {}, parts)
    for day, box in zip(days, boxes, strict=True):
        then = asked(schema, told.boxes(box, "a", number(day), [5])[0], digits)
        assert then == asked(schema, to_boxes(of(NEWEST + dt.timedelta(days=5)), schema), digits), day


@pytest.mark.parametrize(
    ("made", "digits"), [(INT, None), (TEXT, 2), (BARE, 1)], ids=["numbers", "texts", "bare texts"]
)
def test_what_is_asked_of_years_months_and_days_moves_on_across_months(
    made: tuple[TableSchema, DateParts], digits: int | None
) -> None:
    def of(day: dt.date) -> Predicate:
        return And(tuple(compared(name, "=", getattr(day, name), digits=digits) for name in NAMES))

    def last_two(day: dt.date) -> Predicate:
        return Or((of(day - dt.timedelta(days=1)), of(day)))

    moving(made, digits, of)
    moving(made, digits, lambda day: of(day - dt.timedelta(days=100)))
    moving(made, digits, last_two)


def test_what_asks_for_the_same_days_or_months_stays() -> None:
    schema, parts = TEXT
    fixed = And(tuple(compared(name, "=", part, digits=2) for name, part in zip(NAMES, (2026, 11, 11), strict=True)))
    box = to_boxes(fixed, schema)
    queries = [LoggedQuery("t", And(()), template="a", timestamp=(number(NEWEST) - i) * DAY) for i in range(9)]
    told = following(queries, [box] * 9, schema, {}, parts)
    assert told.boxes(box, "a", number(NEWEST), [20])[0] is box


def test_months_move_on_as_months() -> None:
    for names in (NAMES, NAMES[:2]):
        made = table("int", 1, names)

        def month(day: dt.date) -> Predicate:
            return And((compared("year", "=", day.year), compared("month", "=", day.month)))

        schema, parts = made
        days = [NEWEST - dt.timedelta(days=40 - i) for i in range(41)]
        boxes = [to_boxes(month(day), schema) for day in days]
        queries = [LoggedQuery("t", And(()), template="a", timestamp=number(day) * DAY) for day in days]
        told = following(queries, boxes, schema, {}, parts)
        january = asked(schema, told.boxes(boxes[0], "a", number(days[0]), [35])[0])
        assert january == {day for day in CALENDAR if (day.year, day.month) == (2027, 1)}


@pytest.mark.parametrize(
    ("names", "kind", "partitions"),
    [(("year", "day"), "int", [("2026", "11")]), (("year", "month"), "string", [("2026", "2026-11")]),
     (NAMES, "int", [("2026", "13", "1")]), (NAMES, "int", [("2026", "2", "30")]),
     (NAMES, "double", [("2026", "1", "1")]),
     (("year", "month", "mm"), "int", [("2026", "11", "1")]), (NAMES, "int", []), (NAMES, "int", [(None, None, None)]),
     (NAMES, "string", [("2026", "11", "29"), ("2026", "11", "unknown")]),
     (("year", "month", "bucket"), "int", [("2026", "11", str(bucket)) for bucket in range(32)])],
)  # fmt: skip
def test_what_tells_no_days_is_none(
    names: tuple[str, ...], kind: str, partitions: list[tuple[str | None, ...]]
) -> None:
    schema = TableSchema(tuple(Column(name, kind, partition=True) for name in names))
    assert date_parts(schema, partitions) is None


@pytest.mark.parametrize(
    ("names", "found"),
    [(("event_day", "REGION", "EVENT_YEAR", "event-month"), ["EVENT_YEAR", "event-month", "event_day"]),
     (("eventDay", "region", "eventYear", "eventMonth"), ["eventYear", "eventMonth", "eventDay"]),
     (("num", "region", "y", "mo"), ["y", "mo", "num"])],
)  # fmt: skip
def test_names_have_prefixes_and_any_order_and_some_partitions_tell_nothing(
    names: tuple[str, ...], found: list[str]
) -> None:
    schema = TableSchema(tuple(Column(name, "string", partition=True) for name in names))
    rest = [(None, "eu", None, None), ("31", "eu", "9999", "12"), ("0", "eu", "0", "0")]
    rest += [("31", "eu", "2026", "11")] if "num" not in names else []  # of a column by that name it is a mistake
    parts = date_parts(schema, [(f"{day:02}", "eu", "2026", "11") for day in range(1, 30)] + rest)
    assert parts is not None
    assert parts.newest == dt.date(2026, 11, 29)
    assert [part.column.name for part in parts.parts] == found
    assert [part.digits for part in parts.parts] == [4, 2, 2]


def test_a_day_that_tells_its_year_and_month_itself_is_no_part() -> None:
    schema = TableSchema(tuple(Column(name, "string", partition=True) for name in NAMES))
    parts = date_parts(schema, [("2026", "11", "2026-11-29"), ("2026", "12", "2026-12-01")])
    assert parts is not None
    assert [column.name for column in parts.columns] == ["year, month"]
    other = TableSchema(tuple(Column(name, "int", partition=True) for name in ("year", "month", "hour")))
    parts = date_parts(other, [("2026", "11", str(hour)) for hour in range(24)])
    assert parts is not None
    assert [column.name for column in parts.columns] == ["year, month"], "nor is an hour"


def test_what_begins_and_ends_in_a_month_moves_on_into_the_next() -> None:
    def since(day: dt.date) -> Predicate:
        first = And((compared("year", "=", day.year), compared("month", "=", day.month), compared("day", ">=", 1)))
        week = day - dt.timedelta(days=6)
        last = And((compared("year", "=", week.year), compared("month", "=", week.month),
                    compared("day", ">=", week.day)))  # fmt: skip
        return last if week.month == day.month else Or((last, first))

    schema, parts = INT
    days = [NEWEST - dt.timedelta(days=20 - i) for i in range(9)]
    boxes = [to_boxes(since(day), schema) for day in days]
    queries = [LoggedQuery("t", And(()), template="a", timestamp=number(day) * DAY) for day in days]
    told = following(queries, boxes, schema, {}, parts)
    later = days[-1] + dt.timedelta(days=9)
    (then,) = told.boxes(boxes[0], "a", number(days[0]), [9])
    assert asked(schema, then) >= {later - dt.timedelta(days=i) for i in range(7)}
    assert min(asked(schema, then)) == later - dt.timedelta(days=6)
