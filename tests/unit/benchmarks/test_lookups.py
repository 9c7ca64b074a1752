from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zorder_pipeline.benchmarks import tables
from zorder_pipeline.benchmarks.data import orders_lineitem
from zorder_pipeline.benchmarks.lookups import SHAPES, Filter, Shape, table_logs
from zorder_pipeline.benchmarks.workloads import fingerprint
from zorder_pipeline.errors import ZorderError

ROWS = 30_000


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    joined = pq.read_table(orders_lineitem(tmp_path_factory.mktemp("join"), 0.005))
    return {name: getattr(tables, name)(ROWS, 1) for name in SHAPES if name != "orders_lineitem"} | {
        "orders_lineitem": joined
    }


@pytest.mark.parametrize("name", SHAPES)
def test_logs_are_seeded_and_disjoint(name: str, made: dict[str, pa.Table]) -> None:
    train, unseen = table_logs(made[name], name, 150, 150, 1)
    assert (train, unseen) == table_logs(made[name], name, 150, 150, 1)
    assert not {fingerprint(r["statement"]) for r in train} & {fingerprint(r["statement"]) for r in unseen}


@pytest.mark.parametrize("name", SHAPES)
def test_most_queries_keep_at_most_a_hundredth(name: str, made: dict[str, pa.Table]) -> None:
    _, unseen = table_logs(made[name], name, 1, 200, 2)
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        rows = made[name]
        db.register("made", rows)
        db.execute(f"CREATE TABLE {name} AS SELECT * FROM made")
        counts = np.array([db.execute(record["statement"]).fetchall()[0][0] for record in unseen])
    assert np.mean(counts <= 0.01 * rows.num_rows) >= 0.75
    assert np.mean(counts) < 0.01 * rows.num_rows
    assert np.mean(counts == 0) < 0.25


def test_every_kind_of_filter_keeps_what_it_says() -> None:
    rows = pa.table({"a": pa.array(range(10_000)), "s": [f"k{i % 50:03d}" if i % 9 else None for i in range(10_000)]})
    kinds = (Filter("a", "range", 0.05), Filter("a", "above", 0.05), Filter("a", "in"), Filter("a", "point"))
    expected = {"range": (100, 900), "above": (80, 920), "in": (1, 3), "point": (1, 1)}
    with duckdb.connect() as db:
        db.register("t", rows)
        for kind in kinds:
            log, _ = table_logs(rows, "t", 30, 0, 0, [Shape("one", 1, (kind,))])
            counts = [db.execute(record["statement"]).fetchall()[0][0] for record in log]
            assert expected[kind.op][0] <= min(counts) <= max(counts) <= expected[kind.op][1]
        for share in (0.5, 0.7, 0.95):  # what people filter by out of habit
            log, _ = table_logs(rows, "t", 200, 0, 0, [Shape("one", 1, (Filter("a", "above", share),))])
            kept = [db.execute(record["statement"]).fetchall()[0][0] / 10_000 for record in log]
            assert np.mean(kept) == pytest.approx(share, abs=0.05)
            assert min(kept) > 2 * share - 1 - 0.01
        text = [Shape("null", 1, (Filter("s", "null"),)), Shape("prefix", 1, (Filter("s", "prefix"),))]
        log, _ = table_logs(rows, "t", 10, 0, 0, text)
        assert {" LIKE 'k" in record["statement"] or " IS NULL" in record["statement"] for record in log} == {True}


def test_what_is_unknown_is_named() -> None:
    with pytest.raises(ZorderError, match="no query shapes are known for table nosuch"):
        table_logs(pa.table({"a": [1]}), "nosuch", 1, 1, 0)
    with pytest.raises(ValueError, match="unknown op 'about'"):
        Filter("a", "about")
