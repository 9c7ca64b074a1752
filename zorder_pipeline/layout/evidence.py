"""What a layout is learned from: a table, as far as it is known, and the weighed queries of its log."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.ranges import Boxes
from zorder_pipeline.model.schema import TableSchema

from .blocks import LogBlocks
from .draft import SampledTable
from .promise import unsampled
from .skipping import Estimator

__all__ = ["BlockQueries", "KnownTable", "WeighedLog"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class KnownTable:
    """A table as its sample, its files' statistics and its present layout tell it.

    Attributes:
        sample: in fine codes, its features the most useful columns first.
        columns: canonical values and validity of every column that queries filter by.
        stands_for: rows of the table that a sampled row stands for.
        kept: file of each sampled row once the table's new files follow its present layout, shape (rows,). Another
            layout must beat that, not the table as it lies; None where nothing would change.
        lies: share of the rows that each query of the log reads of the table as it lies, shape (queries,), where that
            is known; else the sample tells it, as it does of every layout: too little if a present file has few rows
            in it.
    """

    sample: SampledTable
    columns: Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]]
    schema: TableSchema
    stands_for: float = math.inf
    kept: npt.NDArray[np.int32] | None = None
    lies: Floats | None = None

    @property
    def standing(self) -> tuple[npt.NDArray[np.int32], int]:
        """File of each sampled row under the layout that another must beat, shape (rows,), and their number."""
        return self.sample.blocks(None) if self.kept is None else (self.kept, int(self.kept.max()) + 1)

    def told(self, shares: Floats, asked: BlockQueries) -> Floats:
        """What each statement reads under a layout, from what the sample tells of it, shape (statements,) each.

        Where `lies` is known, what asks beyond all that the sample holds stays as it lies.
        """
        if self.lies is None or not self.sample.rows:
            return shares
        return np.where(asked.unsampled, self.lies[asked.asked.statements], shares)


@dataclass(frozen=True, eq=False)
class WeighedLog:
    """The queries of a log.

    Attributes:
        queries: boxes per query.
        weights: weight per query, positive, shape (queries,).
        blocks: which of them learn, choose and promise.
    """

    queries: Sequence[Boxes]
    weights: Floats
    blocks: LogBlocks

    def of(self, asked: Asked, table: KnownTable) -> BlockQueries:
        """The queries of a block, such as ``blocks.train``, ready to be asked of layouts of ``table``."""
        boxes = asked.each(self.queries)
        estimator = Estimator.build(table.columns, table.schema, boxes, table.sample.rows)
        weights, each = asked.sums(self.weights), self.weights[asked.queries]
        return BlockQueries(boxes, estimator, weights, asked, each, table.sample.partition)


@dataclass(frozen=True, eq=False)
class BlockQueries:
    """The queries of a block, each statement once.

    Attributes:
        boxes: of each statement.
        estimator: how statements skip.
        weights: of each statement, all its queries together, shape (statements,).
        asked: which queries these are.
        each: weight of each query, shape (queries of the block,).
        partition: table partition of each sampled row; None for a table without partitions.
    """

    boxes: Sequence[Boxes]
    estimator: Estimator
    weights: Floats
    asked: Asked
    each: Floats
    partition: npt.NDArray[np.int32] | None = None

    @cached_property
    def unsampled(self) -> npt.NDArray[np.bool_]:
        """Which statements ask beyond all that the sample holds, shape (statements,)."""
        return unsampled(self.estimator, self.partition)

    def mean(self, shares: Floats) -> float:
        """Weighed mean of what is told of each statement, shape (statements,); 1.0 without any."""
        return float(np.average(shares, weights=self.weights)) if len(self.weights) else 1.0

    def observed(self, shares: Floats) -> Floats:
        """What each observation comes to of what is told of each statement, shape (observations,)."""
        return self.asked.observed(shares, self.each)
