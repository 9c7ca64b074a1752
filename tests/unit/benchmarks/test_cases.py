"""The layout benchmark's own tables and logs: seeded, unseen apart, selective, and exact."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from zorder_pipeline.benchmarks import tables
from zorder_pipeline.benchmarks.cases import CASES, Case, Loaded, drill_downs, load
from zorder_pipeline.benchmarks.layout import learn
from zorder_pipeline.benchmarks.onward import moving_on
from zorder_pipeline.errors import ZorderError
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.ranges import Boxes, Interval, Range
from zorder_pipeline.model.schema import Column, TableSchema

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
    """On one column every unseen query begins beyond the end of each logged one."""
    loaded = load(SKEWED, rows, 150, 150, 1)
    onward = moving_on(loaded)
    assert len(onward.train) > 20
    assert len(onward.unseen) > 5
    times = [query.timestamp for query in (*onward.train, *onward.unseen)]
    assert times == sorted(set(times))
    asked = onward.estimator([*onward.train_boxes, *onward.unseen_boxes])
    of, logged = asked.box_query[asked.owner], len(onward.train)
    found = []
    for column in np.unique(asked.column):
        there = asked.column == column
        first, last = asked.first[there], asked.last[there]
        late = of[there] >= logged
        every = len(np.unique(of[there])) == logged + len(onward.unseen)
        found.append(every and first[late].min() > last[~late].max())
    assert sum(found) == 1
    every_query = [*loaded.train_boxes, *loaded.unseen_boxes]
    assert all(boxes in every_query for boxes in (*onward.train_boxes, *onward.unseen_boxes))


def test_a_query_without_an_end_moves_on_nowhere(rows: pa.Table) -> None:
    """All ask for ends that lie before the others' beginnings, but one asks for all that comes."""
    schema = TableSchema((Column("a", "int"),))
    values = (np.arange(1_000), np.ones(1_000, dtype=bool))
    boxes: list[Boxes] = [((Range("a", "int", (Interval(i * 10, i * 10 + 5),)),),) for i in range(40)]
    boxes.append(((Range("a", "int", (Interval(3),)),),))
    queries = tuple(replace(load(SKEWED, rows, 2, 2, 1).train[0], timestamp=0) for _ in boxes)
    every = Loaded(schema, {"a": values}, 1_000, queries, (), tuple(boxes), ())
    onward = moving_on(every)
    assert (onward.train_boxes, onward.unseen_boxes) == (tuple(boxes[:30]), tuple(boxes[30:40]))
    wide: list[Boxes] = [((Range("a", "int", (Interval(i, 999),)),),) for i in range(40)]
    with pytest.raises(ZorderError, match="no query begins beyond three quarters of the others"):
        moving_on(replace(every, train=queries[:40], train_boxes=tuple(wide)))


def test_whole_and_sample_lay_rows_alike(rows: pa.Table) -> None:
    loaded = load(SKEWED, rows, 150, 150, 1)
    learned, sampled, chosen = learn(loaded, 20, 0)
    assert learned.spec is not None
    assert isinstance(learned.spec, KeySpec)
    assert len(chosen) == loaded.rows  # fewer rows than the sample may have: it is the table
    whole = loaded.whole(sampled, 20)
    assert (whole.fine == sampled.fine).all()
    assert whole.stored.max() == 19
