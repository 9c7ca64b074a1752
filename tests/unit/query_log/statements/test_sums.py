"""Sums and products of a column: which rows they hold of, though no reader skips by that."""

from __future__ import annotations

import pytest

from zorder_pipeline.model.predicate import And, Opaque
from zorder_pipeline.model.ranges import to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.query_log.statements.sql import Unusable, parse_statement
from zorder_pipeline.query_log.statements.sums import sums_in

TYPES = {"x": "int", "n": "bigint", "p": "decimal(10,2)", "q": "decimal(38,10)", "v": "double"}
SCHEMA = TableSchema(tuple(Column(name, kind) for name, kind in TYPES.items()))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x + 1 < 0", "x < -1"),
        ("5 < x + 1", "x > 4"),
        ("-x < 0", "x > 0"),
        ("10 - x < 4", "x > 6"),
        ("x * 1000 < 5000", "x < 5"),
        ("x * 2 >= 7", "x > 3"),
        ("x * 3 = 7", "FALSE"),
        ("2 * (x - 1) + 4 <= 10", "x <= 4"),
        ("p * 2 < 5", "p < 2.5"),
        ("x + 1 IN (5, 7)", "x = 4 OR x = 6"),
        ("x + 1 BETWEEN 5 AND 7", "x >= 4 AND x <= 6"),
        ("NOT x + 1 < 5", "x >= 4"),
        ("x + 1 < '5'", "x < 4"),
        # Spark rounds, or compares as doubles or texts
        ("q * 1.123456 < 5", None),
        ("p * 2 < '5'", None),
        ("x + 1 < '5.5'", None),
        ("n * 2 < 5e0", None),
        ("v + 1 < 5", None),
        # no number is the bound
        ("x * 2 <> 5", None),
        ("p * 3 < 1", None),
        # no sum of one column
        ("x + n < 5", None),
        ("x % 2 = 0", None),
        ("x + 1 < 1e999999999", None),
    ],
)
def test_a_sum_tells_which_rows_match_and_no_reader_skips_by_it(condition: str, expected: str | None) -> None:
    found = parse_statement(f"SELECT * FROM t WHERE {condition}", aliases={"t": "t"}, schemas={"t": SCHEMA})
    assert not isinstance(found, Unusable)
    predicate = found[0].predicate
    assert isinstance(predicate, Opaque)
    assert to_boxes(predicate, SCHEMA, solved=True) == ((),)
    assert [(leaf, told.to_sql()) for leaf, told in sums_in(And((predicate,)), SCHEMA)] == (
        [] if expected is None else [(predicate, expected)]
    )
