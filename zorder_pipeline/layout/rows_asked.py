"""Which boxes the rows of a file match, and what the queries of these weigh.

Compiled with numba, for `zorder_pipeline.layout.grow`; zone maps are pairs of lowest and highest code per column.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zorder_pipeline.model.kernel import kernel

__all__ = ["RowsAsked", "asked_of", "by_partition", "hit", "hits_of", "weight", "widened"]


class RowsAsked(NamedTuple):
    """Rows, and what is asked of them, as the compiled part takes it.

    Attributes:
        low, high: lowest and highest zone code of each row, shape (rows, columns).
        ends: where the ranges of each box begin, shape (boxes + 1,).
        column, first, last: of each range, the column and the codes that it asks for.
        box_query: query of each box, ascending.
        weights: of each query, shape (queries,).
        partition: table partition of each row, ascending, shape (rows,).
    """

    low: Any
    high: Any
    ends: Any
    column: Any
    first: Any
    last: Any
    box_query: Any
    weights: Any
    partition: Any


@kernel
def _hits(lows: Any, highs: Any, boxes: Any, asked: Any, found: Any) -> int:  # pragma: no cover - compiled
    """Writes to ``found`` which of ``boxes`` a zone map matches; returns how many."""
    ends, column, first, last = asked.ends, asked.column, asked.first, asked.last
    count = 0
    for j in range(len(boxes)):
        if hit(lows, highs, boxes[j], ends, column, first, last):
            found[count] = boxes[j]
            count += 1
    return count


@kernel
def hit(
    lows: Any, highs: Any, box: int, ends: Any, column: Any, first: Any, last: Any
) -> bool:  # pragma: no cover - compiled
    """Whether a zone map matches a box."""
    i = ends[box]
    while i < ends[box + 1] and highs[column[i]] >= first[i] and lows[column[i]] <= last[i]:
        i += 1
    return bool(i == ends[box + 1])


@kernel
def hits_of(rows: Any, boxes: Any, asked: Any, found: Any) -> int:  # pragma: no cover - compiled
    """Writes to ``found`` which of ``boxes`` a file of ``rows`` matches; returns how many."""
    low, high = asked.low, asked.high
    some_low = np.full(low.shape[1], 2147483647, dtype=np.int32)
    some_high = np.full(low.shape[1], -1, dtype=np.int32)
    for i in rows:
        some_low, some_high = widened(some_low, some_high, low[i], high[i])
    return _hits(some_low, some_high, boxes, asked, found)


@kernel
def weight(boxes: Any, count: int, asked: Any) -> float:  # pragma: no cover - compiled
    """Weight of the queries of ``boxes[:count]``, each counted once."""
    box_query, weights = asked.box_query, asked.weights
    total, previous = 0.0, -1
    for j in range(count):
        query = box_query[boxes[j]]
        if query != previous:
            total += weights[query]
            previous = query
    return total


@kernel
def widened(lows: Any, highs: Any, low: Any, high: Any) -> Any:  # pragma: no cover - compiled
    """A zone map that takes in another one; the first one itself, changed."""
    for c in range(len(lows)):
        lows[c] = min(lows[c], low[c])
        highs[c] = max(highs[c], high[c])
    return lows, highs


@kernel
def by_partition(rows: Any, matched: Any, asked: Any) -> Any:  # pragma: no cover - compiled
    """The table partition of each row, numbered from 0 among ``rows``, and which of the boxes its rows match."""
    partition = asked.partition
    group = np.zeros(len(rows), dtype=np.int64)
    boxes = [matched]
    if partition[rows[0]] == partition[rows[-1]]:  # all of one, which match these already
        return group, boxes
    boxes.clear()
    scratch = np.empty(len(matched), dtype=np.int64)
    begin = 0
    for end in range(1, len(rows) + 1):
        if end < len(rows) and partition[rows[end]] == partition[rows[begin]]:
            continue
        group[begin:end] = len(boxes)
        found = hits_of(rows[begin:end], matched, asked, scratch)
        boxes.append(scratch[:found].copy())
        begin = end
    return group, boxes


@kernel
def asked_of(members: Any, starts: Any, asked: Any) -> Any:  # pragma: no cover - compiled
    """Weight of the queries that match each table partition.

    Args:
        members, starts: rows by partition, and where each partition begins; one more than there are.
        asked: `RowsAsked`.
    """
    found = np.zeros(len(starts) - 1)
    every, scratch = np.arange(len(asked.box_query)), np.empty(len(asked.box_query), dtype=np.int64)
    for p in range(len(starts) - 1):
        rows = members[starts[p] : starts[p + 1]]
        found[p] = weight(scratch, hits_of(rows, every, asked, scratch), asked)
    return found
