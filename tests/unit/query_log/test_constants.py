"""Constants as Spark computes them: what a cast names counts, and what only Spark can tell is no constant."""

from __future__ import annotations

import pytest
import sqlglot

from zorder_pipeline.query_log.constants import Clock, fold
from zorder_pipeline.query_log.dialects import dialect_of

SUMMER = 1_710_000_000_000_000  # 2024-03-09 16:00 UTC, the day before New York's clocks go forward


def _folded(text: str, clock: Clock | None = None) -> str | None:
    found = fold(sqlglot.parse_one(text, read=dialect_of("spark")), clock or Clock())
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
        ("CAST(-128 AS TINYINT)", None),  # a sign is an expression
        ("CAST('-128' AS TINYINT)", "-128"),
        ("CAST(5.5 AS INT)", None),
        ("3 + 4 * 0.5", "5.0"),
        ("2147483647 + 1", None),
        ("2147483647L + 1", "2147483648"),
        ("9223372036854775807 + 1", None),
        ("100Y + 100Y", None),
        ("0.1D + 0.2D", None),
        ("'a' || concat('b', 'c')", "'abc'"),
        ("to_date('2024-05-01', 'yyyy-dd-MM')", None),
        ("to_date('2024-05-01')", "DATE '2024-05-01'"),
        ("DATE '2024-5-1 10:00'", "DATE '2024-5-1'"),
        ("CAST('2024-01-01x' AS DATE)", None),
        ("TIMESTAMP_NTZ '2024-01-01 00:00:00+02:00'", None),
        ("TIMESTAMP '2024-01-01 00:00:00+02:00'", "TIMESTAMP '2024-01-01 00:00:00+02:00'"),
        ("'2024-01-01' - INTERVAL 1 DAY", "DATE '2023-12-31'"),
        ("'2024-01-01' - INTERVAL 12 HOURS", None),
        ("date_add(TIMESTAMP '2024-01-01 10:00:00', 5)", None),
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
