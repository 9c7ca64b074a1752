"""What the sections of a report are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from zorder_pipeline import pipeline
from zorder_pipeline.errors import TableError
from zorder_pipeline.layout.learn import Learned
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.ranges import Boxes
from zorder_pipeline.model.wording import counted
from zorder_pipeline.model.workload import LoggedQuery, QueryLog
from zorder_pipeline.pipeline import LearnSettings, TableAnalysis
from zorder_pipeline.pipeline.partition_conditions import boxes_on
from zorder_pipeline.pipeline.renames import as_called_then, queries_of
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table
from zorder_pipeline.state.entry import Entry
from zorder_pipeline.state.ledger import Ledger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zorder_pipeline.gate.cost import CostModel

__all__ = ["Facts", "gather"]


@dataclass(frozen=True)
class Facts:
    """A table, its queries, its relayouts, and what a search finds now.

    Attributes:
        now, before: the table, and as it was before `laid_out`, where its log still has that.
        applied: the plan that it lies by, with the entry of the relayout.
        entries: all its relayouts, oldest first.
        books: what they promised, cost and saved.
        analysis, plan, learned: what tonight's search would find; None when there is no usable query.
    """

    now: TableSnapshot
    before: TableSnapshot | None
    queries: tuple[LoggedQuery, ...]
    boxes: tuple[Boxes, ...]
    applied: Plan | None
    entries: tuple[Entry, ...]
    analysis: TableAnalysis | None
    plan: Plan | None
    learned: Learned | None
    books: pipeline.Savings | None = None
    why_not: str = ""

    @property
    def laid_out(self) -> Entry | None:
        """The newest relayout by a layout, as what came after it merged files and left the order as it is; or of those
        that merged files the newest."""
        return _laid_out(self.entries)

    def read_now(self) -> npt.NDArray[np.float64]:
        """Share of the rows that each query reads, shape (queries,)."""
        return self.now.files().zone_map().shares_read(self.boxes)

    def read_before(self) -> npt.NDArray[np.float64] | None:
        """The same before the last relayout, by the names that columns had; None where the log has that no more."""
        if self.before is None:
            return None
        called = as_called_then(self.queries, self.now.leaves, self.before.leaves)
        return self.before.files().zone_map().shares_read(boxes_on(self.before, called))


def gather(
    spark: SparkSession,
    snapshot: TableSnapshot,
    log: QueryLog,
    names: Sequence[str],
    state: str | None,
    settings: LearnSettings,
    say: pipeline.Progress,
    assumed: CostModel | None = None,
) -> Facts:
    """Look at a table and search for a layout anew.

    Args:
        names: what the log calls the table.
        state: folder of the state; None when there is none.
        assumed: see `zorder_pipeline.pipeline.savings`.
    """
    queries = queries_of(log, names, snapshot)
    boxes = boxes_on(snapshot, queries)
    ledger = Ledger(spark, state) if state is not None else None
    entries = tuple(ledger.entries(snapshot.table_id)) if ledger is not None else ()
    applied, before = None, None
    if ledger is not None and (last := _laid_out(entries)) is not None:
        if last.layout_id in set(snapshot.files().layout):  # else it was taken back since, or rewritten by others
            applied = ledger.latest(snapshot.table_id, last.layout_id)
        try:
            before = open_table(spark, snapshot.location, last.replaced_version)
        except TableError:
            say("the version before the last relayout is no longer in the table's log")
    applied = applied.as_called(snapshot.asked_schema) if applied is not None else None
    books = pipeline.savings(spark, state, table=snapshot.location, assumed=assumed) if state is not None else None
    found = Facts(snapshot, before, queries, boxes, applied, entries, None, None, None, books)
    try:
        analysis = pipeline.analyse(spark, snapshot, log, names, settings, read_only=True)
        say(f"searching, {counted(settings.trials, 'trial')}")
        plan, learned = pipeline.learn_layout_for(analysis, settings)
    except TableError as error:
        return replace(found, why_not=str(error))
    return replace(found, analysis=analysis, plan=plan, learned=learned)


def _laid_out(entries: Sequence[Entry]) -> Entry | None:
    return max(entries, key=lambda entry: (bool(entry.layout_id), entry.version), default=None)
