"""What the whole table would cost a query is its weight when layouts are compared."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from zorder_pipeline.layout.blocks import split_log
from zorder_pipeline.model.predicate import And, Comparison, Literal
from zorder_pipeline.model.ranges import to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.learning import weights
from zorder_pipeline.pipeline.records import LearnSettings

SCHEMA = TableSchema((Column("a", "int"), Column("b", "int")))
DAY = 86_400_000_000
BYTES = {("a",): 1e9, ("a", "b"): 3e9}


def query(columns: Sequence[str], age_days: float = 0.0) -> LoggedQuery:
    parts = tuple(Comparison(name, "=", (Literal("number", "1"),)) for name in columns)
    return LoggedQuery("t", And(parts), tuple(columns), timestamp=int((100 - age_days) * DAY))


def weigh(queries: list[LoggedQuery], files: int = 10, **settings: object) -> np.ndarray:
    boxes = [to_boxes(q.predicate, SCHEMA) for q in queries]
    return weights.layout_weights(None, queries, boxes, LearnSettings(**settings), files)


@pytest.fixture(autouse=True)
def _sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "query_bytes", lambda _, queries: np.array([BYTES[q.columns] for q in queries]))


def test_rows_weigh_all_queries_alike() -> None:
    assert weigh([query("a"), query("ab")]).tolist() == [1.0, 1.0]


def test_seed_000_counts_the_filtered_columns() -> None:
    assert weigh([query("a"), query("ab")], cost="filtered") == pytest.approx([2 / 3, 4 / 3])


def test_bytes_count_the_read_columns_and_the_opened_files() -> None:
    small = weigh([query("a"), query("ab")], files=1, cost="bytes")
    assert small[1] / small[0] == pytest.approx((3e9 + weights.OPENING_BYTES) / (1e9 + weights.OPENING_BYTES))
    many = weigh([query("a"), query("ab")], files=1_000_000, cost="bytes")
    assert many == pytest.approx([1.0, 1.0], rel=0.01), "where opening is all that costs, columns do not matter"


def test_older_queries_count_less() -> None:
    assert weigh([query("a", 10), query("a")], half_life_days=10.0) == pytest.approx([2 / 3, 4 / 3])


def test_without_filters_or_queries_nothing_breaks() -> None:
    nothing = LoggedQuery("t", And(()), ("a",))
    assert weigh([nothing], cost="filtered").tolist() == [1.0]
    assert weigh([]).tolist() == []


@pytest.mark.parametrize("block", ["train", "select", "promise"])
@pytest.mark.parametrize("case", ["unfiltered", "old"])
def test_a_block_of_queries_that_weigh_nothing_is_averaged_all_the_same(block: str, case: str) -> None:
    """Each of a quarter of the distinct queries filters by nothing, or is older than any float can halve."""
    distinct = [replace(query("a"), template=str(i)) for i in range(40)]
    blocks = split_log([one.fingerprint for one in distinct], [one.timestamp for one in distinct])
    chosen = getattr(blocks, block).queries
    for i in chosen:
        distinct[i] = replace(distinct[i], **({"predicate": And(())} if case == "unfiltered" else {"timestamp": 0}))
    found = weigh(distinct, cost="filtered", half_life_days=1e-3)
    assert (found > 0).all()
    assert found.mean() == pytest.approx(1)
    assert found[chosen].sum() < 1e-3
    shares = np.linspace(0, 1, len(chosen))
    assert np.average(shares, weights=found[chosen]) == pytest.approx(0.5)
