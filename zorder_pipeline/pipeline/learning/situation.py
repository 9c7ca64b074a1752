"""What is known of a table before a layout is sought for it tonight, and whether one is to be sought at all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from zorder_pipeline.gate.benefit import observed_rate
from zorder_pipeline.gate.cost import CostModel
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.layout.blocks import LogBlocks, blocks_of
from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.ranges import Boxes
from zorder_pipeline.pipeline.records import LearnSettings, TableAnalysis

from .drifting import fits, noticed, still_fitting
from .keeping import kept_files
from .memory import Memory
from .proving import MayPay
from .sizes import partitions_of
from .volumes import FileVolumes, present_volumes, with_sampled_pages
from .worth import may_pay, why_not_search

__all__ = ["Situation", "situation_of"]

Blocks = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Situation:
    """A table, its log and its past, as a night finds them.

    Attributes:
        blocks: which of the queries learn, choose and promise.
        present: the plan that the table lies by; None without one that still fits.
        memory: what is remembered of layouts that still fit.
        changes: sentences about what changed of the schema since the last night.
        rate: queries per day, and how that is known.
        partition: table partition of each sampled row, shape (rows,); None when the table has none.
        kept: file of each sampled row once what is new is laid out by ``present``, shape (rows,); None when nothing is
            new.
        now: what the unseen statements read of the table as it lies; None when no blocks are apart.
        gate: what the gate will assume and demand; None where nobody asks it.
        unsought: why no layout is to be sought, in words; "" when one is.
    """

    analysis: TableAnalysis
    settings: LearnSettings
    blocks: LogBlocks
    present: Plan | None
    memory: Memory
    changes: tuple[str, ...]
    rate: tuple[float, str]
    partition: Blocks | None
    kept: Blocks | None
    now: FileVolumes | None
    gate: GateSettings | None
    unsought: str = ""

    @cached_property
    def unseen(self) -> Asked:
        """The queries that choose nothing, and promise."""
        return self.blocks.promise

    @cached_property
    def unseen_boxes(self) -> list[Boxes]:
        """Boxes of each of their statements."""
        return self.unseen.each(self.analysis.boxes)

    @property
    def standing(self) -> Blocks:
        """File of each sampled row as the table lies, or as it will once what is new is laid out, shape (rows,)."""
        return self.kept if self.kept is not None else self.analysis.sample.file

    @property
    def laid_out(self) -> Plan | None:
        """The plan that the table lies by, if that has a layout."""
        return self.present if self.present is not None and self.present.spec is not None else None

    @property
    def costs(self) -> CostModel:
        """What scans and relayouts cost."""
        return self.gate.costs if self.gate is not None else CostModel()

    @property
    def scans(self) -> float:
        """Queries within the gate's horizon; 0 where nobody asks it."""
        if self.gate is None:
            return 0.0
        per_day = self.gate.queries_per_day if self.gate.queries_per_day is not None else self.rate[0]
        return per_day * self.gate.horizon_days

    @property
    def may_pay(self) -> MayPay | None:
        """Whether the gate may approve a plan; None where that cannot be told."""
        if self.gate is None or self.now is None:
            return None
        return partial(may_pay, self.analysis, now=self.now, scans=self.scans, gate=self.gate)


def situation_of(
    analysis: TableAnalysis, settings: LearnSettings, present: Plan | None, memory: Memory, gate: GateSettings | None
) -> Situation:
    """What is known of the analysed table tonight.

    Args:
        present: the plan that the table was last laid out by, which may fit it no more.
        memory: what is remembered of it, of layouts too that fit it no more.
        gate: where no layout can meet what it demands, none is to be sought (`why_not_search`); None seeks always.
    """
    fitting = present if present is not None and fits(analysis, present) else None
    partition = partitions_of(analysis.sample, analysis.snapshot.schema.partition_columns)
    blocks = blocks_of(analysis.queries)
    found = Situation(
        analysis=analysis,
        settings=settings,
        blocks=blocks,
        present=fitting,
        memory=still_fitting(analysis, memory),
        changes=noticed(analysis, memory, present),
        rate=_rate(analysis, settings),
        partition=partition,
        kept=kept_files(analysis, fitting, partition) if fitting is not None else None,
        now=_read_now(analysis, blocks.promise) if blocks.apart else None,
        gate=gate,
    )
    if gate is None:
        return found
    why = why_not_search(analysis, settings, found.memory, found.present, found.standing, found.now, found.scans, gate)
    return replace(found, unsought=why)


def _rate(analysis: TableAnalysis, settings: LearnSettings) -> tuple[float, str]:
    """Queries per day, and how that is known."""
    if settings.queries_per_day is not None:
        return settings.queries_per_day, "configured"
    times = [query.timestamp for query in analysis.queries]
    return observed_rate(times, len(times), until=analysis.until)


def _read_now(analysis: TableAnalysis, unseen: Asked) -> FileVolumes:
    """What the unseen statements read of the table as it lies."""
    queries, boxes = unseen.each(analysis.queries), unseen.each(analysis.boxes)
    volumes = replace(present_volumes(analysis.snapshot, queries, boxes), times=unseen.times)
    return with_sampled_pages(analysis, volumes, boxes)
