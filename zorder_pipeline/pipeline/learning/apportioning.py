"""Which partition brings how much of a saving, and how long that lasts where queries follow the newest data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from zorder_pipeline.features.following import Following, following
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.layout.virtual_files import files_read
from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.lasting import Lasting
from zorder_pipeline.model.partition_key import partition_key
from zorder_pipeline.model.plan import Candidate
from zorder_pipeline.model.ranges import Boxes
from zorder_pipeline.model.values import DAY, Value
from zorder_pipeline.pipeline.records import TableAnalysis

from .keeping import sample_keys, sampled_files
from .paging import as_stored, page_estimator, pages_of

__all__ = ["Apportioning"]

Floats = npt.NDArray[np.float64]
Blocks = npt.NDArray[np.int32]

AHEAD = (0, 1, 2, 3, 5, 8, 12, 17, 24, 33, 64)
"""Days after that of the newest query on which it is told what is left of a saving."""


@dataclass(frozen=True, eq=False)
class Apportioning:
    """What the unseen queries save, by partition and by day.

    Attributes:
        unseen: the queries.
        boxes: of each of their statements.
    """

    analysis: TableAnalysis
    unseen: Asked
    boxes: Sequence[Boxes]

    def shared_out(self, candidate: Candidate, block: Blocks) -> Candidate:
        """The candidate with the share of its saving by partition and by day, told by files and by Parquet's pages.

        What opens fewer files without reading fewer rows, as merging them does, saves where rows are read now. By pages
        nothing is noted where it is as by files; nothing by partition of a table without; by day where no query moves
        on.

        Args:
            block: file of each sampled row afterwards.
        """
        if not self.analysis.snapshot.partition_columns and len(self._asked) == 1:
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
        asking = [Estimator.build(sample.arrays, schema, boxes, sample.rows) for boxes in self._asked]
        return _Saving(*self._members, self.unseen.times, asking, self._following.newest % 1, sample.file)

    @cached_property
    def _by_pages(self) -> _Saving:
        asking = [page_estimator(self.analysis, boxes) for boxes in self._asked]
        now = pages_of(self.analysis, *as_stored(self.analysis))
        return _Saving(*self._members, self.unseen.times, asking, self._following.newest % 1, now)

    @cached_property
    def _members(self) -> tuple[list[str], npt.NDArray[np.int64]]:
        """Keys of the partitions, and the partition of each sampled row by its number among them."""
        snapshot = self.analysis.snapshot
        columns, values = snapshot.partition_columns, snapshot.files().partitions
        if not columns:
            return [""], np.zeros(self.analysis.sample.rows, dtype=np.int64)
        keys = [partition_key(columns, values[i]) if i >= 0 else "" for i in sampled_files(self.analysis)]
        names, number = np.unique(np.array(keys), return_inverse=True)
        return names.tolist(), number.ravel()[self.analysis.sample.file]

    @cached_property
    def _asked(self) -> list[Sequence[Boxes]]:
        """The boxes as they were asked for, and where queries move on as they would be on each day of `AHEAD`."""
        queries, moving = self.analysis.queries, self._following
        if not moving.moving:
            return [self.boxes]
        times = [query.timestamp for query in queries]
        asked: list[int | None] = [None] * len(self.boxes)
        for query, statement in zip(self.unseen.queries.tolist(), self.unseen.which.tolist(), strict=True):
            asked[statement] = times[query]
        templates = [query.template for query in self.unseen.each(queries)]

        def after(ahead: int) -> list[Boxes]:
            return [
                boxes if moment is None else moving.boxes(boxes, template, moment // DAY, ahead)
                for boxes, template, moment in zip(self.boxes, templates, asked, strict=True)
            ]

        later = [after(ahead) for ahead in AHEAD]
        return [self.boxes, *later] if any(boxes != list(self.boxes) for boxes in later) else [self.boxes]

    @cached_property
    def _following(self) -> Following:
        analysis = self.analysis
        return following(analysis.queries, analysis.boxes, analysis.snapshot.schema, self._newest)

    @property
    def _newest(self) -> dict[str, Value]:
        """The largest value of each column, where that is known."""
        columns = self.analysis.snapshot.files().zone_map().columns
        return {
            name: np.max(zones.high[zones.known]).item() if zones.high.dtype != object else max(zones.high[zones.known])
            for name, zones in columns.items()
            if zones.known.any()
        }


@dataclass(frozen=True, eq=False)
class _Saving:
    """What is saved by partition, told by files or pages of the sample.

    Attributes:
        names: keys of the partitions.
        member: partition of each sampled row, by its number among them.
        times: how often each statement was asked.
        asking: the statements as they were asked, and as they would be on each day of `AHEAD` where they move on.
        hour: part of its day that had passed when the newest query was asked, 0 to 1.
        now: file or page of each sampled row now.
    """

    names: Sequence[str]
    member: npt.NDArray[np.int64]
    times: Floats
    asking: Sequence[Estimator]
    hour: float
    now: Blocks

    def told(self, then: Blocks, merged: bool) -> tuple[dict[str, float], dict[str, Lasting]]:
        """Share of the saving by partition, and what becomes of it day by day.

        Args:
            then: file or page of each sampled row afterwards.
            merged: it is saved where rows are read now.

        Returns:
            An empty mapping where all is one partition, or nothing is saved; and one where no query moves on.
        """
        before, *earlier = self._read_now
        saved = before if merged else np.maximum(0.0, before - self._read(self.asking[0], then))
        if not saved.any():
            saved, merged = before, True
        total = float(saved.sum())
        if not total:
            return {}, {}
        whole = {} if list(self.names) == [""] else dict(zip(self.names, (saved / total).tolist(), strict=True))
        if not earlier:
            return whole, {}
        later = np.array([
            first if merged else np.maximum(0.0, first - self._read(asking, then))
            for first, asking in zip(earlier, self.asking[1:], strict=True)
        ])  # fmt: skip
        # what is asked on a day is asked around its noon
        noons = np.array(AHEAD) + 0.5 - self.hour
        days = np.array([0.0, *noons[noons > 0]])
        lasting = {
            name: Lasting(tuple(days.tolist()), tuple(np.interp(days, noons, part / total).tolist()))
            for name, part in zip(self.names, later.T, strict=True)
            if part.any()
        }
        return whole, lasting or {"": Lasting((0.0,), (0.0,))}

    @cached_property
    def _read_now(self) -> list[Floats]:
        return [self._read(asking, self.now) for asking in self.asking]

    def _read(self, asking: Estimator, block: Blocks) -> Floats:
        """Sampled rows that all queries read together, by partition."""
        places, number = np.unique(block, return_inverse=True)
        asked = self.times @ files_read(asking, number.ravel().astype(np.int32), len(places))
        return np.bincount(self.member, weights=asked[number.ravel()], minlength=len(self.names)).astype(np.float64)
