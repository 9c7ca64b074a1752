"""Which partition brings how much of a saving, and how long that lasts where queries follow the newest data."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from zorder_pipeline.features.date_parts import date_parts
from zorder_pipeline.features.following import Following, following
from zorder_pipeline.gate.confirmed import confirmed, hands_of
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.layout.virtual_files import times_asked
from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.candidate import Candidate
from zorder_pipeline.model.lasting import Lasting
from zorder_pipeline.model.partition_key import partition_key
from zorder_pipeline.model.ranges import Boxes, columns_asked
from zorder_pipeline.model.values import DAY, Value
from zorder_pipeline.pipeline.records import TableAnalysis

from .keeping import sample_keys, sampled_files
from .paging import as_stored, page_estimator, pages_of

__all__ = ["Apportioning"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Blocks = npt.NDArray[np.int32]

AHEAD = (*range(15), 17, 21, 26, 33, 45, 64)
"""Days from now on which it is told what is left of a saving."""
LARGEST = 8
"""Values of a column that are looked at for the newest."""
EDGE = 1e-3
"""Of a day."""


@dataclass(frozen=True, eq=False)
class Apportioning:
    """What the unseen queries save, by partition and by day.

    Attributes:
        unseen: the queries.
        boxes: of each of their statements.
        indexed: columns that have a page index in the present files; None where that is not known.
    """

    analysis: TableAnalysis
    unseen: Asked
    boxes: Sequence[Boxes]
    indexed: frozenset[str] | None = None

    def shared_out(self, candidate: Candidate, block: Blocks) -> Candidate:
        """The candidate with the share of its saving by partition and by day, told by files and by Parquet's pages.

        What opens fewer files without reading fewer rows, as merging them does, saves where rows are read now. By pages
        nothing is noted where it is as by files; nothing by partition of a table without; by day where no query moves
        on.

        Args:
            block: file of each sampled row afterwards.
        """
        if not self.analysis.snapshot.partition_columns and not self._asking.days:
            return candidate
        spec, whole = candidate.spec, self._by_files.told(block, candidate.spec is None)
        if spec is None or any(name not in self.analysis.sample.columns for name in spec.columns):
            return replace(candidate, partitions=whole[0], lasting=whole[1])
        then = pages_of(self.analysis, block.astype(np.int64), sample_keys(self.analysis, spec))
        paged = self._by_pages.told(then, False)
        return replace(
            candidate,
            partitions=whole[0],
            lasting=whole[1],
            page_partitions={} if paged[0] == whole[0] else paged[0],
            page_lasting={} if paged[1] == whole[1] else paged[1],
        )

    @cached_property
    def _by_files(self) -> _Saving:
        sample, schema = self.analysis.sample, self.analysis.snapshot.schema
        estimator = Estimator.build(sample.arrays, schema, self._asking.boxes, sample.rows)
        return _Saving(*self._members, self._asking, estimator, estimator, sample.file)

    @cached_property
    def _by_pages(self) -> _Saving:
        boxes, now = self._asking.boxes, pages_of(self.analysis, *as_stored(self.analysis))
        stored, written = (page_estimator(self.analysis, boxes, indexed) for indexed in (self.indexed, None))
        return _Saving(*self._members, self._asking, stored, written, now)

    @cached_property
    def _members(self) -> tuple[list[str], Ints]:
        """Keys of the partitions, and the partition of each sampled row by its number among them."""
        snapshot = self.analysis.snapshot
        columns, values = snapshot.partition_columns, snapshot.files().partitions
        if not columns:
            return [""], np.zeros(self.analysis.sample.rows, dtype=np.int64)
        keys = [partition_key(columns, values[i]) if i >= 0 else "" for i in sampled_files(self.analysis)]
        names, number = np.unique(np.array(keys), return_inverse=True)
        return names.tolist(), number.ravel()[self.analysis.sample.file]

    @cached_property
    def _asking(self) -> _Asking:
        """What is asked as it was logged, and where queries move on as it would be on the days of `AHEAD`."""
        moving, unseen = self._following, self.unseen
        hand = hands_of(unseen.observations)[unseen.seen]
        hands = np.zeros((int(hand.max(initial=0)) + 1, len(self.boxes)))
        np.add.at(hands, (hand, unseen.which), 1.0)
        logged = _Asking(tuple(self.boxes), unseen.times[None, :], hands)
        if not moving.moving:
            return logged
        # the table's newest data tell how far queries have moved on since the log ends, but for those of the future
        since = max(0.0, min(moving.data, time.time() * 1e6 / DAY) - moving.newest)
        days = sorted({0, *(math.floor(since) + ahead for ahead in AHEAD)})
        asked = Counter(self._logged)
        now_asked = [boxes for boxes, _, _ in asked]
        each = (
            (boxes,) * len(days) if day is None else moving.boxes(boxes, template, day, days)
            for boxes, template, day in asked
        )
        later = [list(then) for then in zip(*each, strict=True)]
        if all(then == now_asked for then in later):
            return logged
        places = {one: i for i, one in enumerate(dict.fromkeys(one for then in (now_asked, *later) for one in then))}
        times = np.zeros((1 + len(days), len(places)))
        for row, then in zip(times, (now_asked, *later), strict=True):
            np.add.at(row, [places[one] for one in then], list(asked.values()))
        return _Asking(tuple(places), times, np.zeros((0, len(places))), tuple(days), moving.newest % 1, since)

    @property
    def _logged(self) -> list[tuple[Boxes, str, int | None]]:
        """What each unseen query asks for, its template, and the day on which it was asked, where that is known."""
        queries, found = self.analysis.queries, []
        for query, statement in zip(self.unseen.queries.tolist(), self.unseen.which.tolist(), strict=True):
            one = queries[query]
            day = None if one.timestamp is None else one.timestamp // DAY
            found.append((self.boxes[statement], one.template, day))
        return found

    @cached_property
    def _following(self) -> Following:
        analysis, schema = self.analysis, self.analysis.snapshot.schema
        parts = date_parts(schema, analysis.snapshot.files().partitions)
        return following(analysis.queries, analysis.boxes, schema, self._largest, parts)

    @property
    def _largest(self) -> dict[str, list[Value]]:
        """The largest values of each column that is asked for, the largest first, as far as they are known."""
        zones, asked = self.analysis.snapshot.files().zone_map().columns, columns_asked(self.analysis.boxes)
        highs = {name: set(zones[name].high[zones[name].known].tolist()) for name in asked & zones.keys()}
        return {name: sorted(values, reverse=True)[:LARGEST] for name, values in highs.items()}


@dataclass(frozen=True, eq=False)
class _Asking:
    """What is asked, as logged and on later days.

    Attributes:
        boxes: each thing that is asked for, once.
        times: how often it is, as logged and on each of the days, shape (1 + days, boxes).
        hands: how often it is by each hand of the logged queries, shape (hands, boxes), see
            `zorder_pipeline.gate.confirmed`; of none where queries move on.
        days: after that of the newest query, ascending from 0; empty where no query moves on.
        hour: part of its day that had passed when the newest query was asked, 0 to 1.
        since: days that have passed since then.
    """

    boxes: Sequence[Boxes]
    times: Floats
    hands: Floats
    days: tuple[int, ...] = ()
    hour: float = 0.0
    since: float = 0.0

    def lasting(self, shares: Floats) -> Lasting:
        """What is told of each of the days, by the time since the newest query: it changes at midnight.

        Args:
            shares: of the days, shape (days,).
        """
        moments, told = list[float](), list[float]()
        for day, tomorrow, share in zip(self.days, (*self.days[1:], None), shares.tolist(), strict=True):
            whole = [0.0, 1.0 - EDGE] if tomorrow == day + 1 else [0.5]  # where days are left out, around noon
            moments += [day + part - self.hour for part in whole]
            told += [share] * len(whole)
        days = [0.0, *(moment for moment in moments if moment > 0)]
        return Lasting(tuple(days), tuple(np.interp(days, moments, told).round(6).tolist()), self.since)


@dataclass(frozen=True, eq=False)
class _Saving:
    """What is saved by partition, told by files or pages of the sample.

    Attributes:
        names: keys of the partitions.
        member: partition of each sampled row, by its number among them.
        asking: what is asked.
        stored, written: estimators of its boxes, by what present files tell of their rows, and those of ours.
        now: file or page of each sampled row now.
    """

    names: Sequence[str]
    member: Ints
    asking: _Asking
    stored: Estimator
    written: Estimator
    now: Blocks

    def told(self, then: Blocks, merged: bool) -> tuple[dict[str, float], dict[str, Lasting]]:
        """Share of the saving by partition, and what becomes of it day by day.

        Args:
            then: file or page of each sampled row afterwards.
            merged: it is saved where rows are read now.

        Returns:
            An empty mapping where all is one partition, or nothing is saved; and one where no query moves on.
        """
        read, apart = self._read_now, len(self.asking.times)
        saved = read if merged else np.maximum(0.0, read - self._read(self.written, then))
        if not saved[0].any():
            saved = read
        total = float(saved[0].sum())
        if not total:
            return {}, {}
        shares = saved[0] / total
        if not self.asking.days:  # those that move on ask for each day's partition in turn: all of them tell its part
            counts = confirmed(saved[apart:], np.bincount(self.member, minlength=len(self.names)).astype(np.float64))
            shares = counts / counts.sum()
        whole = {} if list(self.names) == [""] else dict(zip(self.names, shares.tolist(), strict=True))
        if not self.asking.days:
            return whole, {}
        lasting = {
            name: self.asking.lasting(part / total)
            for name, part in zip(self.names, saved[1:apart].T, strict=True)
            if part.any()
        }
        return whole, lasting or {"": Lasting((0.0,), (0.0,))}

    @cached_property
    def _read_now(self) -> Floats:
        return self._read(self.stored, self.now)

    def _read(self, estimator: Estimator, block: Blocks) -> Floats:
        """Sampled rows that queries read together, as logged, on each day, and by each hand of them, by partition."""
        places, number = np.unique(block, return_inverse=True)
        times = np.vstack([self.asking.times, self.asking.hands])
        asked = times_asked(estimator, number.ravel().astype(np.int32), len(places), times)
        pairs, rows = np.unique(number.ravel() * len(self.names) + self.member, return_counts=True)
        file, member = np.divmod(pairs, len(self.names))
        return np.stack([np.bincount(member, day[file] * rows, len(self.names)) for day in asked])
