"""Logs that prove little hold what their kind says."""

from __future__ import annotations

from pathlib import Path

import pytest

from zorder_pipeline.benchmarks.cases import cases_named
from zorder_pipeline.benchmarks.guard import CASES, QUERIES, _random
from zorder_pipeline.benchmarks.workloads import LITERAL


def _form(statement: str) -> frozenset[str]:
    """The conditions without their literals, in whatever order."""
    where = LITERAL.sub("?", statement.partition(" WHERE ")[2])
    for literal, plain in (("-?", "?"), ("TIMESTAMP ?", "?"), ("? AND ?", "?")):
        where = where.replace(literal, plain)
    return frozenset(where.split(" AND "))


@pytest.mark.parametrize("name", ["skewed", "flights"])
def test_no_template_comes_twice_in_logs_without_one(name: str, tmp_path: Path) -> None:
    (case,) = cases_named([name], CASES)
    rows = case.rows(tmp_path, 0.05)
    train, unseen = _random(case, rows, 0).logs(rows, QUERIES, QUERIES, 0, 0.05)
    assert (len(train), len(unseen)) == (QUERIES, QUERIES)
    assert len({_form(record["statement"]) for record in [*train, *unseen]}) == 2 * QUERIES
