"""Queries like those that were asked: a log shows some of what will be asked, and most of the rest lies beside it.

A tree of as many leaves as a table has files is grown from a few hundred queries, so only a few tell how a region is to
be cut, and by their own literals. So each query is asked again several times where other rows lie: a smoothed bootstrap
of the log (Silverman and Young 1987, "The bootstrap: to smooth or not to smooth?"). Queries of one shape, that is with
conditions of the same kinds on the same columns, may ask for any row alike; then they move to any row. Or they keep to
some region; then they move to a row that lies about as near as the next query of the shape does, and half of them still
to any: tomorrow's queries ask for regions that none asks for today, such as new days, and a tree that kept those in few
large files read twice as much of them as an order of bits does. Widths stay, as shares of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.kernel import kernel

from .skipping import UNBOUNDED, Estimator

__all__ = ["with_similar"]

SEED = 0
"""Of what is drawn: equal queries get equal copies."""
COPIES = 32
"""Times that a query is asked again at most."""
MOST_QUERIES = 3000
"""Queries in all, or alternatives of theirs, about, beyond which they are asked again less often."""
NEAREST = 100
"""A query of a shape that keeps to some region moves to the nearest of so many random rows at most."""
ANYWHERE = 2
"""But every so manieth copy of it moves to any row."""
FEW = 4
"""Fewer queries of a shape than this do not tell whether they keep to some region, and are taken to."""
COMPARED, DRAWS = 200, 20
"""Queries of a shape that are compared at most, and times that as many random rows are drawn to compare them with."""
CHANCE = 2.0
"""Standard errors by which distances may differ from those of random rows."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def with_similar(estimator: Estimator, weights: Floats, times: Floats | None = None) -> tuple[Estimator, Floats]:
    """The estimator's queries and those like them, and the weight of each.

    What a query weighs for the first time that it was asked is shared out evenly; its repeats tell how often just this
    one is asked again, and weigh where it is.

    Args:
        weights: weight of each query, shape (queries,), of all times that it was asked.
        times: how often it was asked, shape (queries,), at least once; once without it.
    """
    queries = len(weights)
    copies = min(COPIES, MOST_QUERIES // max(1, queries, len(estimator.box_query)) - 1)
    if copies < 1 or len(estimator.low) < FEW or not len(estimator.column):
        return estimator, weights
    rng = np.random.default_rng(SEED)
    asked = _Asked.of(estimator)
    ranges = (estimator.column, estimator.first, estimator.last)
    anchors = _anchors(
        estimator.low, estimator.high, asked.boxes, asked.ends, *ranges,
        rng.permutation(len(estimator.low)), rng.integers(len(estimator.low), size=queries), copies,
    )  # fmt: skip
    spans = _spans(asked.sorted, asked.starts, *ranges)
    middles = _middles(asked.starts, asked.boxes, asked.ends, estimator.column, *spans)
    first, last = _moved(
        asked.place, asked.sorted, asked.starts, asked.moving, asked.boxes, asked.ends, *ranges, *spans,
        anchors, middles, _among(asked, _places(asked.place, anchors[:, 0], middles), rng), rng,
    )  # fmt: skip
    copy = np.arange(copies + 1)[:, None]
    boxes = len(estimator.box_query)
    more = replace(
        estimator,
        owner=(estimator.owner + boxes * copy).ravel(),
        column=np.tile(estimator.column, copies + 1),
        first=np.concatenate([estimator.first, first.ravel()]),
        last=np.concatenate([estimator.last, last.ravel()]),
        box_query=(estimator.box_query + queries * copy).ravel(),
        queries=queries * (copies + 1),
    )
    shared = weights if times is None else weights / times
    own = weights - shared * copies / (copies + 1)
    return more, np.concatenate([own, np.tile(shared / (copies + 1), copies)])


@dataclass(frozen=True, eq=False)
class _Asked:
    """Where the rows and the intervals of an estimator lie among all rows.

    Attributes:
        sorted, starts: ascending positions of the rows that are not null, of all columns, and where each column begins.
        place: place of each row in its column's order as a share of it, NaN for null, shape (rows, columns).
        boxes, ends: where each query's boxes begin, and each box's intervals; one more than there are.
        moving: columns by which each query can move: those it restricts that have values enough, (queries, columns).
        shapes: queries by the kinds of their conditions.
    """

    sorted: npt.NDArray[np.int32]
    starts: Ints
    place: npt.NDArray[np.float32]
    boxes: Ints
    ends: Ints
    moving: npt.NDArray[np.bool_]
    shapes: tuple[Ints, ...]

    @staticmethod
    def of(estimator: Estimator) -> _Asked:
        rows, columns = estimator.low.shape
        place = np.full((rows, columns), np.nan, dtype=np.float32)
        found: list[npt.NDArray[np.int32]] = []
        for column in range(columns):
            known = estimator.high[:, column] >= 0
            values = estimator.low[known, column]
            found.append(np.sort(values))
            middle = np.searchsorted(found[-1], values) + np.searchsorted(found[-1], values, side="right")
            place[known, column] = middle / (2 * max(1, len(values)))
        boxes = np.searchsorted(estimator.box_query, np.arange(estimator.queries + 1)).astype(np.int64)
        ends = estimator.box_starts
        # two values, or whether it is null: there is nowhere to move to
        wide = np.array([len(values) > 0 and values[-1] > 1 for values in found], dtype=np.bool_)
        bounded = (estimator.first > 0) | (estimator.last < UNBOUNDED)
        moving = np.zeros((estimator.queries, columns), dtype=np.bool_)
        moving[estimator.box_query[estimator.owner[bounded]], estimator.column[bounded]] = True
        kind = (estimator.first > 0) + 2 * (estimator.last < UNBOUNDED) + (estimator.last <= estimator.first)
        shapes: dict[tuple[Any, ...], list[int]] = {}
        for query in range(estimator.queries):
            its = slice(ends[boxes[query]], ends[min(boxes[query] + 1, boxes[query + 1])])
            conditions = sorted(zip(estimator.column[its].tolist(), kind[its].tolist(), strict=True))
            shapes.setdefault((*conditions, boxes[query + 1] - boxes[query] > 1), []).append(query)
        return _Asked(
            sorted=np.concatenate(found),
            starts=np.concatenate([[0], np.cumsum([len(values) for values in found])]).astype(np.int64),
            place=place,
            boxes=boxes,
            ends=ends,
            moving=moving & wide,
            shapes=tuple(np.array(members) for members in shapes.values()),
        )


def _places(place: npt.NDArray[np.float32], anchors: Ints, middles: npt.NDArray[np.float32]) -> Any:
    """Where each query lies by each column, shape (queries, columns): as a row of its own, else as its range does."""
    own = np.where(anchors[:, None] >= 0, place[anchors], np.nan)
    return np.where(np.isnan(own), middles, own)


def _among(asked: _Asked, places: npt.NDArray[np.float32], rng: np.random.Generator) -> Ints:
    """Of how many random rows each query moves to the nearest, shape (queries,): 1 where its shape asks for any row.

    Args:
        places: where each query lies by each column, shape (queries, columns).
    """
    result = np.full(len(places), NEAREST, dtype=np.int64)
    for members in asked.shapes:
        columns = np.flatnonzero(asked.moving[members[0]])
        if len(members) < FEW or not len(columns):
            continue
        there = asked.place[rng.permutation(len(asked.place))[: 100 * COMPARED]][:, columns]
        there = there[~np.isnan(there).any(axis=1)]
        points = places[rng.permutation(members)[:COMPARED]][:, columns]
        points = points[~np.isnan(points).any(axis=1)]
        if not FEW <= len(points) <= len(there):
            continue
        apart = _to_next(points)
        drawn = [float(_to_next(rng.permutation(there)[: len(points)]).mean()) for _ in range(DRAWS)]
        if abs(float(apart.mean()) - np.mean(drawn)) <= CHANCE * np.std(drawn):
            result[members] = 1
            continue
        near = np.abs(there[:, None, :] - points[None, : FEW * 10]).max(axis=2) <= np.median(apart)
        result[members] = int(np.clip(1 / max(float(near.mean()), 1e-9), 2, NEAREST))
    return result


def _to_next(points: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Distance of each point to the next one, the largest over the columns, shape (points,)."""
    apart = np.abs(points[:, None, :] - points[None, :, :]).max(axis=2)
    np.fill_diagonal(apart, np.inf)
    return np.asarray(apart.min(axis=1))


@kernel
def _anchors(
    low: Any, high: Any, boxes: Any, ends: Any, column: Any, first: Any, last: Any, order: Any, start: Any, copies: int
) -> Any:  # pragma: no cover - compiled
    """Rows that the first box of each query matches, shape (queries, copies); -1 for none.

    The first in ``order``, each query from a ``start`` of its own: from one for all, queries that overlap would have
    the same row, and seem to lie together.
    """
    found = np.full((len(boxes) - 1, copies), -1, dtype=np.int64)
    for query in range(len(boxes) - 1):
        count = 0
        if boxes[query] == boxes[query + 1]:
            continue
        for place in range(len(order)):
            row = order[(start[query] + place) % len(order)]
            hit = True
            for i in range(ends[boxes[query]], ends[boxes[query] + 1]):
                if high[row, column[i]] < first[i] or low[row, column[i]] > last[i]:
                    hit = False
                    break
            if hit:
                found[query, count] = row
                count += 1
                if count == copies:
                    break
        for k in range(count, copies if count > 0 else 0):
            found[query, k] = found[query, k - count]
    return found


def _spans(values: npt.NDArray[np.int32], starts: Ints, column: Ints, first: Any, last: Any) -> tuple[Ints, Ints]:
    """Rows below each interval, and those up to its end, shape (intervals,) each; nulls do not count."""
    below, upto = np.zeros(len(column), dtype=np.int64), np.zeros(len(column), dtype=np.int64)
    for c in np.unique(column):
        its, own = column == c, values[starts[c] : starts[c + 1]]
        below[its], upto[its] = np.searchsorted(own, first[its]), np.searchsorted(own, last[its], side="right")
    return below, upto


@kernel
def _middles(
    starts: Any, boxes: Any, ends: Any, column: Any, below: Any, upto: Any
) -> Any:  # pragma: no cover - compiled
    """Middle of each query's first interval by each column, as a share of the rows; NaN without, (queries, columns)."""
    found = np.full((len(boxes) - 1, len(starts) - 1), np.nan, dtype=np.float32)
    for query in range(len(boxes) - 1):
        for i in range(ends[boxes[query]], ends[boxes[query + 1]]):
            c = column[i]
            rows = starts[c + 1] - starts[c]
            if rows > 0 and np.isnan(found[query, c]):
                found[query, c] = (below[i] + upto[i]) / (2 * rows)
    return found


@kernel
def _moved(
    place: Any, values: Any, starts: Any, moving: Any, boxes: Any, ends: Any, column: Any, first: Any, last: Any,
    below: Any, upto: Any, anchors: Any, middles: Any, among: Any, rng: Any,
) -> Any:  # pragma: no cover - compiled  # fmt: skip
    """Ends of all intervals in each copy, shape (copies, intervals) each."""
    rows, columns = place.shape
    copies = anchors.shape[1]
    firsts = np.empty((copies, len(column)), dtype=np.int32)
    lasts = np.empty((copies, len(column)), dtype=np.int32)
    for k in range(copies):
        firsts[k], lasts[k] = first, last
    by, here = np.zeros(columns), np.zeros(columns)
    for query in range(len(boxes) - 1):
        if not moving[query].any():
            continue
        for k in range(copies):
            anchor, best, nearest = anchors[query, k], np.inf, -1
            for c in range(columns):
                own_place = place[anchor, c] if anchor >= 0 else np.nan
                here[c] = middles[query, c] if np.isnan(own_place) else own_place
            for _ in range(1 if (k + query) % ANYWHERE == ANYWHERE - 1 else among[query]):
                row = min(rows - 1, int(rng.random() * rows))
                apart = 0.0
                for c in range(columns):
                    if moving[query, c]:
                        apart = np.inf if np.isnan(place[row, c]) else max(apart, abs(place[row, c] - here[c]))
                if apart < best:
                    best, nearest = apart, row
            if nearest < 0:
                continue
            for c in range(columns):
                by[c] = place[nearest, c] - here[c] if moving[query, c] else 0.0
            for i in range(ends[boxes[query]], ends[boxes[query + 1]]):
                c = column[i]
                if not moving[query, c]:
                    continue
                own = values[starts[c] : starts[c + 1]]
                n = len(own)
                shift, middle = by[c] * n, (below[i] + upto[i]) / 2
                if not 0 <= middle + shift < n:  # another alternative's: it comes in again at the other end
                    shift += -n if middle + shift >= n else n
                if last[i] <= first[i]:
                    firsts[k, i] = lasts[k, i] = own[min(max(int(middle + shift), 0), n - 1)]
                    continue
                if first[i] > 0 and last[i] < UNBOUNDED:  # as wide as it was
                    shift = min(max(shift, -below[i]), n - upto[i])
                if first[i] > 0:
                    firsts[k, i] = own[min(max(int(below[i] + shift), 0), n - 1)]
                if last[i] < UNBOUNDED:
                    lasts[k, i] = own[min(max(int(upto[i] + shift - 1), 0), n - 1)]
                lasts[k, i] = max(lasts[k, i], firsts[k, i])
    return firsts, lasts
