"""The layout benchmark's own tables and logs: seeded, unseen apart, selective, and exact."""

import numpy as np
import pyarrow as pa
import pytest

from zorder_pipeline.benchmarks import tables
from zorder_pipeline.benchmarks.cases import CASES, Case, drill_downs, load
from zorder_pipeline.benchmarks.layout import learn
from zorder_pipeline.benchmarks.onward import moving_on
from zorder_pipeline.model.key_spec import KeySpec

SKEWED: Case = next(case for case in CASES if case.name == "skewed")


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return tables.skewed(20_000, 7)


def test_drill_downs_follow_from_the_seed_and_ask_for_ten_columns_at_most(rows: pa.Table) -> None:
    assert drill_downs(rows, 3) == drill_downs(rows, 3) != drill_downs(rows, 4)
    for seed in range(20):
        asked = {item.column for shape in drill_downs(rows, seed) for item in shape.filters}
        assert 2 <= len(asked) <= 10


def test_unseen_queries_are_unseen_and_selective(rows: pa.Table) -> None:
    loaded = load(SKEWED, rows, 150, 150, 1)
    assert not {q.fingerprint for q in loaded.train} & {q.fingerprint for q in loaded.unseen}
    every = loaded.estimator(loaded.unseen_boxes).rows_read(np.arange(loaded.rows, dtype=np.int32), loaded.rows)
    assert 0 < every.mean() / loaded.rows < 0.05


def test_queries_move_on_to_where_none_was_logged(rows: pa.Table) -> None:
    loaded = load(SKEWED, rows, 150, 150, 1)
    onward = moving_on(loaded)
    count = len(onward.train) + len(onward.unseen)
    assert 75 < count <= 300
    assert len(onward.train) == int(0.75 * count)
    assert [query.timestamp for query in (*onward.train, *onward.unseen)] == sorted(
        {query.timestamp for query in (*onward.train, *onward.unseen)}
    )
    asked = onward.estimator([*onward.train_boxes, *onward.unseen_boxes])
    most = np.bincount(asked.column).argmax()
    of, there = asked.box_query[asked.owner], asked.column == most
    begins = [
        int(np.where(asked.first > 0, asked.first, asked.last)[there & (of == query)].min()) for query in range(count)
    ]
    assert begins == sorted(begins)
    every = [*loaded.train_boxes, *loaded.unseen_boxes]
    assert all(boxes in every for boxes in onward.train_boxes)


def test_whole_and_sample_lay_rows_alike(rows: pa.Table) -> None:
    loaded = load(SKEWED, rows, 150, 150, 1)
    learned, sampled, chosen = learn(loaded, 20, 0)
    assert learned.spec is not None
    assert isinstance(learned.spec, KeySpec)
    assert len(chosen) == loaded.rows  # fewer rows than the sample may have: it is the table
    whole = loaded.whole(sampled, 20)
    assert (whole.fine == sampled.fine).all()
    assert whole.stored.max() == 19
