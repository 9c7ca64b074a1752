"""Constants as Spark computes them: what a cast names counts, and what only Spark can tell is no constant."""

from __future__ import annotations

import pytest
import sqlglot

from zorder_pipeline.query_log.statements.clock import Clock
from zorder_pipeline.query_log.statements.constants import fold
from zorder_pipeline.query_log.statements.dialects import dialect_of

SUMMER = 1_710_000_000_000_000  # 2024-03-09 16:00 UTC, the day before New York's clocks go forward


def _folded(text: str, clock: Clock | None = None) -> str | None:
    clock = clock or Clock()
    found = fold(sqlglot.parse_one(text, read=dialect_of(clock.dialect)), clock)
    return None if found is None else found.to_sql()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.7F", "0.699999988079071e0"),
        ("-0.5F", "-0.5e0"),
        ("CAST('1e-5' AS FLOAT)", "9.999999747378752e-06"),
        ("CAST(1e300 AS FLOAT)", None),
        ("0.7D", "0.7e0"),
        ("CAST('1_000' AS DOUBLE)", None),
        ("CAST(0.15 AS DECIMAL(10, 1))", None),
        ("CAST(0.50 AS DECIMAL(10, 1))", "0.50"),
        ("CAST('12.5' AS DECIMAL)", None),
        ("CAST('12.0' AS DECIMAL)", "12.0"),
        ("CAST(1234 AS DECIMAL(4, 1))", None),
        ("0.15BD", "0.15"),
        ("CAST(300 AS TINYINT)", None),
        ("CAST(-128 AS TINYINT)", "-128"),
        ("CAST(-129 AS TINYINT)", None),
        ("CAST(1 + 1.5 AS INT)", None),
        ("CAST('-128' AS TINYINT)", "-128"),
        ("CAST(5.5 AS INT)", None),
        ("3 + 4 * 0.5", "5.0"),
        ("2147483647 + 1", None),
        ("2147483647L + 1", "2147483648"),
        ("9223372036854775807 + 1", None),
        ("100Y + 100Y", None),
        ("0.1D + 0.2D", None),
        ("least(3, 1 + 1, 5L)", "2"),
        ("greatest(1, 2.5)", "2.5"),
        ("least(1, 2.50)", "1.00"),
        ("least(1, 2.5E0)", None),
        ("least(1, NULL)", None),
        ("greatest(DATE '2024-06-01', DATE '2024-06-12' - 30)", "DATE '2024-06-01'"),
        ("least(DATE '2024-06-01', date_sub(DATE '2024-06-12', 30))", "DATE '2024-05-13'"),
        ("least('2024-06-01', '2024-06-12')", None),
        ("'a' || concat('b', 'c')", "'abc'"),
        ("concat_ws('-', '2024', '01', '02')", "'2024-01-02'"),
        ("concat_ws('-', 'a')", "'a'"),
        ("concat_ws('-', 'a', NULL)", None),
        ("concat_ws(NULL, 'a', 'b')", None),
        ("concat_ws('-', array('a', 'b'))", None),
        ("to_date('2024-05-01', 'yyyy-dd-MM')", "DATE '2024-01-05'"),
        ("to_date('2024-05-01')", "DATE '2024-05-01'"),
        ("DATE '2024-5-1 10:00'", "DATE '2024-5-1'"),
        ("CAST('2024-01-01x' AS DATE)", None),
        ("TIMESTAMP_NTZ '2024-01-01 00:00:00+02:00'", None),
        ("TIMESTAMP '2024-01-01 00:00:00+02:00'", "TIMESTAMP '2024-01-01 00:00:00+02:00'"),
        ("'2024-01-01' - INTERVAL 1 DAY", "DATE '2023-12-31'"),
        ("'2024-01-01' - INTERVAL 12 HOURS", None),
        ("date_add(TIMESTAMP '2024-01-01 10:00:00', 5)", "DATE '2024-01-06'"),
        ("to_timestamp('2024-06-01 10:05', 'yyyy-MM-dd HH:mm')", "TIMESTAMP_NTZ '2024-06-01 10:05:00'"),
        ("to_timestamp('20240601', 'yyyyMMdd')", "TIMESTAMP_NTZ '2024-06-01 00:00:00'"),
        ("to_timestamp('2024-6-1', 'yyyy-MM-dd')", None),
        ("to_timestamp('01:05', 'HH:mm')", None),
        ("try_to_timestamp('2024-06-01 10:05:00')", "TIMESTAMP_NTZ '2024-06-01 10:05:00'"),
        ("to_timestamp_ntz('2024-06-01 10:05:00')", "TIMESTAMP_NTZ '2024-06-01 10:05:00'"),
        ("make_timestamp(2024, 6, 1, 10, 5, 0)", "TIMESTAMP_NTZ '2024-06-01 10:05:00'"),
        ("make_timestamp(2024, 6, 1, 10, 5, 0.5)", None),
        ("from_unixtime(1717200000)", "'2024-06-01 00:00:00'"),
        ("from_unixtime(1717200000, 'yyyy-MM-dd')", "'2024-06-01'"),
        ("from_unixtime(1e99)", None),
        ("CAST(1717200000 AS TIMESTAMP)", "TIMESTAMP '2024-06-01 00:00:00Z'"),
        ("CAST(17172000001717200000 AS TIMESTAMP)", None),
        ("CAST(1717200000 AS TIMESTAMP_NTZ)", None),
        ("next_day(DATE '2024-06-12', 'MO')", "DATE '2024-06-17'"),
        ("next_day(DATE '2024-06-12', 'Wednesday')", "DATE '2024-06-19'"),
        ("next_day(DATE '2024-06-12', 'x')", None),
        ("date_sub(DATE '2024-06-12', weekday(DATE '2024-06-12'))", "DATE '2024-06-10'"),
        ("date_add(DATE '2024-06-12', 1 - dayofweek(DATE '2024-06-12'))", "DATE '2024-06-09'"),
        ("date_sub(DATE '2024-06-16', dayofweek(DATE '2024-06-16') - 1)", "DATE '2024-06-16'"),
    ],
)
def test_a_constant_is_what_spark_makes_of_it(text: str, expected: str | None) -> None:
    assert _folded(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TIMESTAMP '2024-03-09 00:00:00' + INTERVAL 5 HOURS", "TIMESTAMP_NTZ '2024-03-09 05:00:00'"),
        ("TIMESTAMP '2024-03-10 00:00:00' + INTERVAL 5 HOURS", None),
        ("TIMESTAMP '2024-03-09 00:00:00' + INTERVAL 2 DAYS", "TIMESTAMP_NTZ '2024-03-11 00:00:00'"),
        ("TIMESTAMP '2024-03-09 02:30:00' + INTERVAL 1 DAY", None),
        ("TIMESTAMP '2024-11-04 01:30:00' - INTERVAL 1 DAY", None),
        ("DATE '2024-03-10' + INTERVAL 5 HOURS", None),
        ("current_timestamp() + INTERVAL 5 HOURS", "TIMESTAMP_NTZ '2024-03-09 16:00:00'"),
        ("current_timestamp() + INTERVAL 20 HOURS", None),
    ],
)
def test_hours_are_added_to_the_instant_and_days_to_the_local_time(text: str, expected: str | None) -> None:
    assert _folded(text, Clock(SUMMER, "America/New_York")) == expected
    assert _folded(text, Clock(SUMMER, "Nowhere")) is None
    assert _folded(text, Clock(SUMMER)) is not None


@pytest.mark.parametrize(
    ("dialect", "text", "expected"),
    [
        ("spark", "CAST('abcdef' AS VARCHAR(3))", "'abcdef'"),
        ("spark", "CAST('ab' AS CHAR(3))", "'ab'"),
        ("trino", "CAST('abc' AS VARCHAR(3))", "'abc'"),
        ("trino", "CAST('ab' AS VARCHAR)", "'ab'"),
        ("trino", "CAST('abcdef' AS VARCHAR(3))", None),
        ("trino", "CAST('ab' AS CHAR(3))", None),
        ("snowflake", "'abcdef'::VARCHAR(3)", None),
    ],
)
def test_a_text_that_a_cast_cuts_or_fills_up_is_not_known(dialect: str, text: str, expected: str | None) -> None:
    assert _folded(text, Clock(dialect=dialect)) == expected


WEDNESDAY = 1_718_206_200_000_000  # 2024-06-12 15:30 UTC


@pytest.mark.parametrize(
    ("dialect", "text", "expected"),
    [
        # what Spark 4.2 gives, seen there with literals in the place of now
        ("spark", "date_trunc('week', now())", "TIMESTAMP_NTZ '2024-06-10 00:00:00'"),
        ("spark", "date_trunc('MONTH', current_date())", "TIMESTAMP_NTZ '2024-06-01 00:00:00'"),
        ("spark", "date_trunc('hour', now()) - INTERVAL 2 HOURS", "TIMESTAMP_NTZ '2024-06-12 13:00:00'"),
        ("spark", "date_trunc('minute', now())", "TIMESTAMP_NTZ '2024-06-12 15:30:00'"),
        ("spark", "date_trunc('quarter', add_months(current_date(), -3))", "TIMESTAMP_NTZ '2024-01-01 00:00:00'"),
        ("spark", "trunc(current_date(), 'MM')", "DATE '2024-06-01'"),
        ("spark", "trunc(now(), 'week')", "DATE '2024-06-10'"),
        ("spark", "trunc(now(), 'day of the moon')", None),
        ("spark", "last_day(now())", "DATE '2024-06-30'"),
        ("spark", "dateadd(DAY, -7, current_date())", "TIMESTAMP_NTZ '2024-06-05 00:00:00'"),
        ("spark", "timestampadd(HOUR, -2, now())", "TIMESTAMP_NTZ '2024-06-12 13:30:00'"),
        ("spark", "date_add(MONTH, -1, current_date())", "TIMESTAMP_NTZ '2024-05-12 00:00:00'"),
        ("spark", "date_sub(now(), 1)", "DATE '2024-06-11'"),
        ("spark", "add_months(now(), -1)", "DATE '2024-05-12'"),
        ("spark", "now() - INTERVAL 1 DAY 2 HOURS", "TIMESTAMP_NTZ '2024-06-11 13:30:00'"),
        ("spark", "now() - INTERVAL '1 day 2 hours'", "TIMESTAMP_NTZ '2024-06-11 13:30:00'"),
        ("spark", "current_date() - INTERVAL '1 day 2 hours'", "TIMESTAMP_NTZ '2024-06-10 22:00:00'"),
        ("spark", "now() - make_interval(0, 1, 0, 7)", "TIMESTAMP_NTZ '2024-05-05 15:30:00'"),
        ("spark", "localtimestamp()", "TIMESTAMP_NTZ '2024-06-12 15:30:00'"),
        ("spark", "to_date(now())", "DATE '2024-06-12'"),
        ("spark", "cast(current_date() as timestamp)", "TIMESTAMP_NTZ '2024-06-12 00:00:00'"),
        ("spark", "date_format(current_date(), 'yyyyMMdd')", "'20240612'"),
        ("spark", "date_format(now(), 'yyyy-MM-dd HH:mm:ss')", "'2024-06-12 15:30:00'"),
        ("spark", "date_format(now(), 'EEEE')", None),
        ("spark", "cast(date_sub(current_date(), 1) as string)", "'2024-06-11'"),
        ("spark", "year(current_date()) - 1", "2023"),
        ("spark", "unix_timestamp() - 86400", "1718119800"),
        ("spark", "unix_timestamp() * 1000", "1718206200000"),
        ("spark", "to_date('20240101', 'yyyyMMdd')", "DATE '2024-01-01'"),
        ("spark", "to_date('2024-1-1', 'yyyy-MM-dd')", None),
        ("spark", "make_date(2024, 2, 29)", "DATE '2024-02-29'"),
        ("spark", "make_date(2024, 13, 1)", None),
        ("spark", "timestamp_seconds(5)", "TIMESTAMP '1970-01-01 00:00:05Z'"),
        ("spark", "upper('eu')", "'EU'"),
        ("redshift", "dateadd('day', -7, getdate())", "TIMESTAMP_NTZ '2024-06-05 15:30:00'"),
        ("trino", "date_add('day', -7, now())", "TIMESTAMP_NTZ '2024-06-05 15:30:00'"),
        ("trino", "localtimestamp - interval '1' month", "TIMESTAMP_NTZ '2024-05-12 15:30:00'"),
        ("snowflake", "date_trunc('month', current_date())", "DATE '2024-06-01'"),
        ("snowflake", "add_months(current_timestamp(), -1)", "TIMESTAMP_NTZ '2024-05-12 15:30:00'"),
        ("snowflake", "add_months(last_day(current_date()), 1)", None),
        ("snowflake", "to_char(current_date(), 'YYYYMM')", "'202406'"),
        ("bigquery", "CURRENT_DATE('Pacific/Kiritimati')", "DATE '2024-06-13'"),
        ("bigquery", "TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL 24 HOUR)", "TIMESTAMP_NTZ '2024-06-11 15:30:00'"),
        ("bigquery", "DATE_TRUNC(CURRENT_DATE(), WEEK)", None),  # begins on a Sunday
        ("bigquery", "DATE_TRUNC(CURRENT_DATE(), ISOWEEK)", "DATE '2024-06-10'"),
        ("bigquery", "DATE_TRUNC(CURRENT_DATE(), WEEK(MONDAY))", "DATE '2024-06-10'"),
        ("bigquery", "EXTRACT(YEAR FROM CURRENT_DATE())", "2024"),
    ],
)
def test_relative_time_in_the_functions_of_many_tools(dialect: str, text: str, expected: str | None) -> None:
    node = sqlglot.parse_one(f"SELECT 1 = {text}", read=dialect_of(dialect)).expressions[0].expression
    found = fold(node, Clock(WEDNESDAY))
    assert (found.to_sql() if found is not None else None) == expected
    if "2024-06" in str(expected):
        unknown = Clock()
        assert fold(node, unknown) is None
        assert unknown.missed


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        # as Spark 4.2 computes them
        ("unix_timestamp('2024-06-10 00:00:00')", "UTC", "1717977600"),
        ("unix_timestamp('2024-06-10', 'yyyy-MM-dd') * 1000", "UTC", "1717977600000"),
        ("unix_timestamp(TIMESTAMP '2024-06-10 00:00:00')", "Europe/Berlin", "1717970400"),
        ("unix_seconds(TIMESTAMP '2024-06-10 00:00:00Z')", "Europe/Berlin", "1717977600"),
        ("unix_millis(TIMESTAMP '2024-06-10 00:00:00.5')", "-03:00", "1717988400500"),
        ("unix_micros(TIMESTAMP '1969-12-31 23:59:59.5')", "UTC", "-500000"),
        ("unix_seconds(TIMESTAMP '1969-12-31 23:59:59.5')", "UTC", "-1"),
        ("unix_timestamp(DATE '2024-06-10')", "UTC", "1717977600"),
        ("CAST(TIMESTAMP '2024-06-10' AS BIGINT) + 60", "UTC", "1717977660"),
        ("to_unix_timestamp('2024-06-10 00:00:00')", "UTC", "1717977600"),
        ("bigint(5) + 1", "UTC", "6"),
        ("unix_timestamp('2024-10-27 02:30:00')", "Europe/Berlin", None),
        ("unix_timestamp('2024-6-10 00:00:00')", "UTC", None),
        ("unix_seconds(TIMESTAMP_NTZ '2024-06-10 00:00:00')", "UTC", None),
        ("CAST(DATE '2024-06-10' AS BIGINT)", "UTC", None),
        ("int(unix_timestamp()) - 3600", "UTC", "1718202600"),
        ("CAST(unix_timestamp() AS INT)", "UTC", "1718206200"),
        ("bigint(unix_timestamp())", "UTC", "1718206200"),
        ("smallint(unix_timestamp())", "UTC", None),
        ("CAST(now() AS INT)", "America/New_York", "1718206200"),
        ("CAST(TIMESTAMP '2099-12-31 00:00:00' AS INT)", "UTC", None),
        ("to_unix_timestamp('2024-06-10', 'yyyy-MM-dd')", "UTC", "1717977600"),
        # a fraction before 1970 is dropped by one, and the others take the whole second before
        ("unix_timestamp(TIMESTAMP '1969-12-31 18:59:58.5')", "America/New_York", "-1"),
        ("to_unix_timestamp(TIMESTAMP '1969-12-31 18:59:58.5')", "America/New_York", "-1"),
        ("unix_timestamp(TIMESTAMP '1969-12-31 18:59:59.5')", "America/New_York", "0"),
        ("CAST(TIMESTAMP '1969-12-31 18:59:58.5' AS BIGINT)", "America/New_York", "-2"),
        ("unix_millis(TIMESTAMP '1969-12-31 18:59:58.500500')", "America/New_York", "-1500"),
        # local times, which Spark counts as if the zone were UTC
        ("unix_timestamp(localtimestamp())", "America/New_York", None),
        ("unix_timestamp(to_timestamp_ntz('2024-01-01 00:00:00'))", "America/New_York", None),
        ("unix_timestamp(TIMESTAMP_NTZ '2024-01-01 00:00:00' + INTERVAL 1 DAY)", "America/New_York", None),
        ("unix_timestamp(CAST(current_date() AS TIMESTAMP_NTZ))", "America/New_York", None),
    ],
)
def test_counts_since_1970_are_numbers(text: str, zone: str, expected: str | None) -> None:
    node = sqlglot.parse_one(f"SELECT 1 = {text}", read=dialect_of("spark")).expressions[0].expression
    found = fold(node, Clock(WEDNESDAY, zone))
    assert (found.to_sql() if found is not None else None) == expected


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [("spark", "1718206200"), ("databricks", "1718206200"), *((name, None) for name in ("mysql", "tsql", "snowflake"))],
)
def test_seconds_are_what_a_cast_of_now_counts_in_spark_alone(dialect: str, expected: str | None) -> None:
    assert _folded("CAST(CURRENT_TIMESTAMP AS BIGINT)", Clock(WEDNESDAY, dialect=dialect)) == expected


@pytest.mark.parametrize(
    ("dialect", "text", "expected"),
    [
        ("bigquery", "TIMESTAMP('2024-01-01')", "TIMESTAMP_NTZ '2024-01-01 00:00:00'"),
        ("trino", "from_iso8601_timestamp('2024-06-01T10:00:00Z')", "TIMESTAMP '2024-06-01T10:00:00Z'"),
        ("trino", "from_iso8601_date('2024-06-01')", "DATE '2024-06-01'"),
        ("trino", "date_parse('2024-06-01', '%Y-%m-%d')", "TIMESTAMP_NTZ '2024-06-01 00:00:00'"),
        ("trino", "from_unixtime(1717200000)", "TIMESTAMP '2024-06-01 00:00:00Z'"),
        ("bigquery", "PARSE_DATE('%Y-%m-%d', '2024-06-01')", "DATE '2024-06-01'"),
        ("duckdb", "current_date - weekday(current_date)", None),  # whose weeks begin on Sunday
        ("snowflake", "CAST(1717200000000 AS TIMESTAMP)", None),  # of which milliseconds are told by their size
    ],
)
def test_moments_of_other_dialects(dialect: str, text: str, expected: str | None) -> None:
    assert _folded(text, Clock(SUMMER, dialect=dialect)) == expected
