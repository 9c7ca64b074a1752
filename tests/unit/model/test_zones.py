"""Time zones by names that logs write, of which many are none, and in which of them days follow each other."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest

from zorder_pipeline.model.literals import divides
from zorder_pipeline.model.predicate import Literal
from zorder_pipeline.model.ranges import to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.workload import LoggedQuery, boxes_of
from zorder_pipeline.model.zones import zone_of
from zorder_pipeline.query_log.statements.catalog import Catalog
from zorder_pipeline.query_log.statements.sql import Unusable, parse_statement
from zorder_pipeline.query_log.statements.templates import Parser

NONE = ("America/Argentina", "America", "No/Where", "", "..", "/etc/passwd", "zone.tab", "a\0b", "x" * 5_000, "\ud800")
SCHEMA = TableSchema((Column("a", "int"), Column("d", "date"), Column("ts", "timestamp"), Column("n", "timestamp_ntz")))
NOON = 1_705_312_800_000_000


@pytest.mark.parametrize("name", NONE)
def test_what_is_no_zone_is_one_error_whatever_python_makes_of_it(name: str) -> None:
    for _ in range(2):
        with pytest.raises(ZoneInfoNotFoundError):
            zone_of(name)


def test_a_folder_of_zones_in_a_literal_costs_its_condition_alone() -> None:
    schemas = {"t": SCHEMA}
    for column in ("ts", "n", "d"):
        text = f"SELECT a FROM t WHERE {column} >= TIMESTAMP '2024-06-01 00:00:00 America/Argentina' AND a = 1"
        scans = Parser(Catalog(schemas=schemas)).scans(text)
        assert not isinstance(scans, Unusable)
        boxes = boxes_of([LoggedQuery("t", scan.predicate) for scan in scans], SCHEMA)
        assert boxes == boxes_of(
            [LoggedQuery("t", parse_statement("SELECT a FROM t WHERE a = 1")[0].predicate)], SCHEMA
        )


@pytest.mark.parametrize("dialect", ["spark", "bigquery", "snowflake", "trino", "duckdb"])
@pytest.mark.parametrize("session", ["UTC", "America", "PST", "GMT+1"])
def test_a_folder_of_zones_in_a_call_or_of_a_session_costs_its_condition_alone(dialect: str, session: str) -> None:
    conditions = (
        *("d = CURRENT_DATE('America')", "ts > CURRENT_TIMESTAMP()", "d > DATE '2024-01-01'", "year(ts) = 2024"),
        *("ts < TIMESTAMP '2024-01-01 00:00:00'", "n < TIMESTAMP '2024-01-01 00:00:00'", "ts > '2024-01-01'"),
    )
    for condition in conditions:
        text = f"SELECT a FROM t WHERE {condition} AND a = 1"
        scans = parse_statement(text, dialect=dialect, schemas={"t": SCHEMA}, timestamp=NOON, zone=session)
        assert not isinstance(scans, Unusable), text
        assert "a = 1" in scans[0].predicate.to_sql()
        for solved in (False, True):
            to_boxes(scans[0].predicate, SCHEMA, session, solved=solved)


@pytest.mark.parametrize(
    ("zone", "same"),
    [
        *[(name, "+02:00") for name in ("GMT+2", "UTC+02:00", "UT+02", "+2", "+0200", "GMT+02:00:00")],
        *[(name, "-05:30") for name in ("UTC-05:30", "GMT-0530", "-05:30:00")],
        *[(name, "UTC") for name in ("Z", "UT", "GMT", "UTC+0", "GMT-00:00")],
    ],
)
def test_offsets_as_java_takes_them_are_those_zones(zone: str, same: str) -> None:
    conditions = ("ts > '2024-01-01'", "d >= current_date() - 1", "n > timestamp '2024-06-01 00:00:00'")
    conditions += ("cast(ts AS date) = '2024-06-01'", "ts >= now() - interval 5 hours", "year(ts) = 2024")
    told = []
    for name in (zone, same):
        texts = [f"SELECT a FROM t WHERE {condition}" for condition in conditions]
        scans = [parse_statement(text, schemas={"t": SCHEMA}, timestamp=NOON, zone=name) for text in texts]
        assert not any(isinstance(found, Unusable) for found in scans)
        told.append([to_boxes(found[0].predicate, SCHEMA, name, solved=True) for found in scans])  # type: ignore[index]
    assert told[0] == told[1]
    assert all(box for boxes in told[0] for box in boxes), told[0]


@pytest.mark.parametrize("name", ["GMT+19", "UTC+1:60", "UTC+", "GMT+123", "PST+2", "+18:01", "utc+2"])
def test_an_offset_that_java_refuses_is_no_zone(name: str) -> None:
    with pytest.raises(ZoneInfoNotFoundError):
        zone_of(name)


def test_no_day_begins_in_a_zone_that_is_none() -> None:
    assert not any(divides(Literal("date", "2024-01-01"), zone) for zone in ("America", "PST"))


FALLS_BACK = {
    "America/St_Johns": 2009,  # at one minute past midnight, to the day before
    "America/Asuncion": 2012,  # at midnight, to the day before
    "America/Havana": 2012,  # at one, to midnight of the same day
    "Atlantic/Azores": 2012,
    "Asia/Beirut": 2012,
    "Antarctica/Casey": 2010,  # by three hours, at two in the morning
    "Pacific/Apia": 2011,  # without one day
    "Europe/Berlin": 2012,
}


@pytest.mark.parametrize("zone", FALLS_BACK)
def test_a_day_divides_instants_where_those_after_its_beginning_and_no_others_belong_to_it_or_later(zone: str) -> None:
    """Against a look at the wall every seven minutes, around each change of the clocks; not while these are put."""
    own, year = ZoneInfo(zone), FALLS_BACK[zone]
    days = [date(year, 1, 1) + timedelta(days=i) for i in range(3 * 365)]
    offsets = [datetime.combine(day, time(12), own).utcoffset() for day in days]
    changes = [i for i in range(1, len(days)) if offsets[i] != offsets[i - 1]]
    assert changes
    found = []
    for day in (days[i + near] for i in changes for near in (-2, -1, 0, 1) if i + near < len(days)):
        begin = datetime.combine(day, time(), own).astimezone(UTC)

        def wall(minutes: int, begin: datetime = begin) -> datetime:
            return (begin + timedelta(minutes=minutes)).astimezone(own)

        later = all(wall(step).date() >= day for step in range(1, 36 * 60, 7))
        earlier = all(wall(-step).date() < day for step in range(1, 36 * 60, 7))
        expected = later and earlier and wall(15).utcoffset() == wall(-15).utcoffset()
        assert divides(Literal("date", day.isoformat()), zone) == expected, day
        found.append(expected)
    assert any(found)
    assert all(found) == (zone == "Europe/Berlin")
