"""What travels between a table's assets beyond the model's own values: plain data that can be stored and loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from zorder_pipeline.layout.blocks import blocks_of
from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.file_stats import Feature
from zorder_pipeline.model.ranges import Boxes, Told
from zorder_pipeline.model.results import ApplyResult
from zorder_pipeline.model.workload import LoggedQuery

if TYPE_CHECKING:
    from zorder_pipeline.features.sample import Sample
    from zorder_pipeline.features.select import Analysis
    from zorder_pipeline.pipeline import Judgement, TableAnalysis
    from zorder_pipeline.pipeline.rewriting.proof import Proof
    from zorder_pipeline.relayout.snapshot import TableSnapshot

__all__ = ["AnalysedTable", "Judged", "Night", "Relayout", "SelectedFeatures"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class AnalysedTable:
    """A `TableAnalysis` without its snapshot, which belongs to one Spark session.

    Attributes:
        version: Delta version that was sampled.
    """

    version: int
    queries: tuple[LoggedQuery, ...]
    sample: Sample
    features: Analysis
    boxes: tuple[Boxes, ...]
    columns: Mapping[Feature, str] = field(default_factory=dict)
    until: int | None = None
    train_weights: Mapping[Feature, float] | None = None
    known_weights: Mapping[Feature, float] | None = None
    told: Told | None = None

    @staticmethod
    def of(analysis: TableAnalysis) -> AnalysedTable:
        """What is worth keeping of ``analysis``."""
        a = analysis
        kept = a.queries, a.sample, a.features, a.boxes, a.columns, a.until, a.train_weights, a.known_weights, a.told
        return AnalysedTable(a.snapshot.version, *kept)

    def analysis(self, snapshot: TableSnapshot) -> TableAnalysis:
        """The analysis again, for the table as ``snapshot`` shows it."""
        from zorder_pipeline.pipeline import TableAnalysis

        a = self
        kept = a.queries, a.sample, a.features, a.boxes, a.columns, a.until
        # an earlier version stored none
        return TableAnalysis(snapshot, *kept, a.train_weights or {}, a.known_weights or {}, a.told or {})

    @property
    def unseen(self) -> Asked:
        """What the promise was made by; all that was asked where the log was too small to keep some apart."""
        blocks = blocks_of(self.queries)
        return blocks.promise if blocks.apart else blocks.known


@dataclass(frozen=True)
class SelectedFeatures:
    """What ``correlation_graph`` hands to the search (a class of its own, as loading `Analysis` takes a second).

    Attributes:
        analysis: candidates, correlations, and the columns that the search may use.
    """

    analysis: Analysis


@dataclass(frozen=True)
class Judged:
    """What ``cost_benefit`` hands on (a class of its own, as loading `Judgement` takes a second).

    Attributes:
        judgement: what is to become of the table.
    """

    judgement: Judgement


@dataclass(frozen=True)
class Night:
    """What ``nightly_budget`` decided.

    Attributes:
        judgements: by table, after the budget was shared out.
    """

    judgements: Mapping[str, Judgement]


@dataclass(frozen=True)
class Relayout:
    """A relayout that was done, with what its checks look at.

    Attributes:
        result: what was done.
        proof: the table before and after.
        read_before, read_after: share of rows that each query of the promise read and reads, by the files' own
            statistics, shape (queries,).
        promised: share of rows that the plan promised to save per query, or None when nothing was promised.
        promised_low: lower end of its 95% interval.
        target_file_rows: rows per file that the plan aimed for.
        unread: why it is not known what the queries read; "" where it is.
    """

    result: ApplyResult
    proof: Proof
    read_before: Floats
    read_after: Floats
    promised: float | None
    promised_low: float = 0.0
    target_file_rows: int = 0
    unread: str = ""

    @property
    def measured(self) -> float:
        """Share of rows really saved per query."""
        return self.shares[0] - self.shares[1]

    @property
    def shares(self) -> tuple[float, float]:
        """Share of rows that a query read on average, and reads."""
        if not len(self.read_after):
            return 0.0, 0.0
        return float(self.read_before.mean()), float(self.read_after.mean())
