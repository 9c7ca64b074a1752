"""Time zones by names that logs write, of which many are none."""

from zoneinfo import ZoneInfoNotFoundError

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


def test_no_day_begins_in_a_zone_that_is_none() -> None:
    assert not any(divides(Literal("date", "2024-01-01"), zone) for zone in ("America", "PST"))
