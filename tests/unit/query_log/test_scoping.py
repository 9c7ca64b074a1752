"""Which conditions restrict which scan, where sqlglot's scopes and Spark's rules part."""

from __future__ import annotations

import pytest

from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.query_log.sql import Unusable, parse_statement

FLIGHTS = TableSchema(
    (Column("id", "int"), Column("x", "int"), Column("c", "string"), Column("amount", "int"), Column("day", "date"))
)
KNOWN = {"t": "F", "flights": "F"}


def _scans(statement: str) -> list[str]:
    found = parse_statement(statement, aliases=KNOWN, schemas={"F": FLIGHTS})
    return [] if isinstance(found, Unusable) else [scan.predicate.to_sql() for scan in found]


CASES = [
    # names of common table expressions in any case
    ("WITH Flights AS (SELECT * FROM t WHERE x = 1) SELECT * FROM flights WHERE c = 'x'", ["x = 1 AND c = 'x'"]),
    ("WITH flights AS (SELECT * FROM Flights WHERE x = 1) SELECT * FROM FLIGHTS WHERE c = 'x'", ["x = 1 AND c = 'x'"]),
    # the right side of SEMI and ANTI joins is not seen by WHERE, nor by later joins
    ("SELECT * FROM v LEFT ANTI JOIN flights f ON v.id = f.id WHERE c = 'x'", ["TRUE"]),
    ("SELECT * FROM v SEMI JOIN flights f ON v.id = f.id AND f.x = 3 WHERE c = 'x'", ["x = 3"]),
    ("SELECT * FROM v LEFT ANTI JOIN flights f USING (id) WHERE id = 5 AND c = 'x'", ["TRUE"]),
    ("SELECT * FROM flights f LEFT SEMI JOIN v USING (id) WHERE id = 5 AND c = 'x'", ["id = 5 AND c = 'x'"]),
    ("SELECT * FROM v LEFT SEMI JOIN flights f ON v.id = f.id JOIN w ON c = 'x'", ["TRUE"]),
    (
        "SELECT * FROM t LEFT SEMI JOIN flights f ON t.id = f.id AND f.x = 3 WHERE t.id = 5 AND c = 'a'",
        ["id = 5 AND c = 'a'", "x = 3 AND id = 5"],
    ),
    (
        "SELECT * FROM w f WHERE EXISTS (SELECT 1 FROM v SEMI JOIN flights f ON v.id = f.id WHERE f.c = 'x')",
        ["TRUE"],
    ),
    # joins in parentheses
    ("SELECT * FROM a LEFT JOIN (flights f JOIN b USING (id)) ON a.x = f.x WHERE ifnull(f.c, 'n') = 'n'", ["TRUE"]),
    ("SELECT * FROM a LEFT JOIN (flights f JOIN b ON f.id = b.id) ON a.id = f.id WHERE f.c = 'n'", ["c = 'n'"]),
    ("SELECT * FROM (a LEFT JOIN flights f ON a.id = f.id) WHERE ifnull(f.c, 'n') = 'n'", ["TRUE"]),
    ("SELECT * FROM ((a LEFT JOIN flights f ON a.id = f.id)) JOIN b ON true WHERE f.c IS NULL", ["TRUE"]),
    # what is reshaped or sampled after it was read
    ("SELECT * FROM (SELECT * FROM t) UNPIVOT (amount FOR kind IN (amount, x)) WHERE amount > 100", ["TRUE"]),
    ("SELECT * FROM (SELECT * FROM t) PIVOT (sum(x) AS x FOR c IN ('a' AS amount)) AS p WHERE amount > 1", ["TRUE"]),
    ("WITH s AS (SELECT * FROM t) SELECT * FROM s PIVOT (sum(x) FOR c IN ('a' AS amount)) WHERE amount > 1", ["TRUE"]),
    ("SELECT * FROM (SELECT * FROM t WHERE x = 1) TABLESAMPLE (5 ROWS) WHERE amount > 100", ["x = 1"]),
    # a name of a group key and of another output
    ("SELECT x AS day, count(*) FROM t GROUP BY x, day HAVING day > DATE '2024-01-01'", ["TRUE"]),
    ("SELECT day AS d, count(*) FROM t GROUP BY day HAVING d > DATE '2024-01-01'", ["day > DATE '2024-01-01'"]),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "expected"), CASES)
def test_a_condition_restricts_what_it_does_in_spark(statement: str, expected: list[str]) -> None:
    assert _scans(statement) == expected


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT * FROM dim JOIN flights USING (id) WHERE id = 5", "id = 5"),
        ("SELECT * FROM flights JOIN dim USING (id) WHERE id = 5", "id = 5"),
        ("SELECT * FROM dim NATURAL JOIN flights WHERE x = 5", "x = 5"),
        ("SELECT * FROM dim JOIN flights ON dim.k = flights.id WHERE x = 5", "x = 5"),
        ("SELECT * FROM (SELECT id FROM flights UNION ALL SELECT k FROM dim) WHERE id = 5", "id = 5"),
        ("SELECT id FROM flights WHERE x = 5 INTERSECT SELECT k FROM dim", "x = 5"),
    ],
)
def test_of_a_table_without_schema_the_likely_is_presumed(statement: str, expected: str) -> None:
    assert _scans(statement) == [expected]
