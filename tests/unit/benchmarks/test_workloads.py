from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import duckdb
import numpy as np
import pytest
import sqlglot
from sqlglot import exp

from zorder_pipeline.benchmarks.compare import same_rows
from zorder_pipeline.benchmarks.selective import SELECTIVE_TEMPLATES
from zorder_pipeline.benchmarks.templates import LINEITEM_TEMPLATES, Draw, Template
from zorder_pipeline.benchmarks.workloads import (
    fingerprint,
    read_log,
    tpch_logs,
    tpch_statements,
    two_logs,
    write_log,
)
from zorder_pipeline.errors import ZorderError

from .conftest import SCALE

ALL_TEMPLATES = tuple({template.name: template for template in LINEITEM_TEMPLATES + SELECTIVE_TEMPLATES}.values())


def _examples(template: Template, n: int) -> list[str]:
    rng = np.random.default_rng(3)
    return [template.make(Draw(rng, SCALE)) for _ in range(n)]


def test_equal_seeds_give_equal_logs_and_others_do_not() -> None:
    assert tpch_statements(40, 1) == tpch_statements(40, 1)
    assert tpch_statements(40, 1) != tpch_statements(40, 2)


@pytest.mark.parametrize(("size", "seed"), [(500, 0), (500, 1), (3000, 2)])
def test_train_and_unseen_share_no_statement(size: int, seed: int) -> None:
    train, unseen = ({fingerprint(r["statement"]) for r in log} for log in tpch_logs(size, size, seed))
    assert not train & unseen
    assert min(len(train), len(unseen)) > 0.95 * size


def test_unseen_statements_come_later() -> None:
    train, unseen = tpch_logs(100, 100, 5)
    times = [datetime.fromisoformat(record["timestamp"]) for record in train + unseen]
    assert times == sorted(times)
    assert all(record["duration_ms"] > 0 and record["user"] for record in train)


def test_a_template_without_further_literals_says_so() -> None:
    only = [Template("only", 1, lambda d: "SELECT 1 FROM lineitem WHERE l_quantity = 1")]
    with pytest.raises(ZorderError, match="template only has no statement left"):
        two_logs(3, 3, 0, only)


def test_statements_follow_the_weights() -> None:
    log = tpch_statements(4000, 9)
    orders = sum(bool(re.search(r"WHERE l_orderkey = \d+$", record["statement"])) for record in log)
    share = next(t.weight for t in LINEITEM_TEMPLATES if t.name == "order") / sum(t.weight for t in LINEITEM_TEMPLATES)
    assert orders / 4000 == pytest.approx(share, rel=0.2)


@pytest.mark.parametrize("template", ALL_TEMPLATES, ids=lambda t: t.name)
def test_a_template_runs_alike_on_any_row_order(template: Template, lineitem: duckdb.DuckDBPyConnection) -> None:
    for statement in _examples(template, 3):
        rows = lineitem.execute(statement).fetchall()
        other = lineitem.execute(statement.replace("FROM lineitem", "FROM shuffled")).fetchall()
        assert same_rows(rows, other), statement


@pytest.mark.parametrize("template", ALL_TEMPLATES, ids=lambda t: t.name)
def test_a_template_reads_lineitem_alone_and_filters(template: Template) -> None:
    tree = sqlglot.parse_one(_examples(template, 1)[0], read="spark")
    aliases = {cte.alias for cte in tree.find_all(exp.CTE)}
    assert {table.name for table in tree.find_all(exp.Table)} - aliases == {"lineitem"}
    assert tree.find(exp.Where)


def _shares(db: duckdb.DuckDBPyConnection, templates: Sequence[Template]) -> np.ndarray:
    """Share of the rows that each statement's scan of lineitem keeps."""
    total = db.execute("SELECT count(*) FROM lineitem").fetchall()[0][0]
    shares = []
    for record in tpch_statements(200, 4, scale=SCALE, templates=templates):
        scans = [
            select
            for select in sqlglot.parse_one(record["statement"], read="spark").find_all(exp.Select)
            if isinstance(select.args["from_"].this, exp.Table) and select.args["from_"].this.name == "lineitem"
        ]
        where = scans[-1].args["where"].sql(dialect="duckdb")
        shares.append(db.execute(f"SELECT count(*) FROM lineitem {where}").fetchall()[0][0] / total)
    return np.array(shares)


def test_most_statements_want_few_rows(lineitem: duckdb.DuckDBPyConnection) -> None:
    shares = _shares(lineitem, LINEITEM_TEMPLATES)
    assert np.mean(shares <= 0.01) > 0.75
    assert np.mean(shares) < 0.05
    assert max(shares) > 0.5  # the pricing summary


def test_drill_downs_keep_at_most_about_a_hundredth(lineitem: duckdb.DuckDBPyConnection) -> None:
    shares = _shares(lineitem, SELECTIVE_TEMPLATES)
    assert np.mean(shares <= 0.01) > 0.95
    assert max(shares) < 0.03


def test_keys_grow_with_the_scale() -> None:
    for scale in (0.01, 1.0):
        keys = [
            int(key)
            for record in tpch_statements(2000, 6, scale=scale)
            for key in re.findall(r"l_partkey = (\d+)", record["statement"])
        ]
        assert 0.9 * 200_000 * scale < max(keys) <= 200_000 * scale


def test_order_look_ups_find_their_order(lineitem: duckdb.DuckDBPyConnection) -> None:
    order = next(t for t in LINEITEM_TEMPLATES if t.name == "order")
    assert all(lineitem.execute(statement).fetchall() for statement in _examples(order, 20))


def test_a_log_survives_its_file(tmp_path: Path) -> None:
    records = tpch_statements(5, 0)
    path = write_log(records, tmp_path / "new" / "log.jsonl")
    assert read_log(path) == records
    assert set(json.loads(path.read_text().splitlines()[0])) == {"statement", "timestamp", "duration_ms", "user"}
