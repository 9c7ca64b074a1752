"""A search: the sample as a table of files of the size that is sought for, and the layout that was found for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from zorder_pipeline.layout.blocks import LogBlocks
from zorder_pipeline.layout.draft import Draft, SampledTable
from zorder_pipeline.layout.evidence import KnownTable, WeighedLog
from zorder_pipeline.layout.learn import Learned, learn_layout
from zorder_pipeline.layout.search import MAX_BITS, SearchSettings
from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.pipeline.records import LearnSettings, TableAnalysis

from .sizes import sought_rows
from .weights import layout_weights

__all__ = ["Sought", "sought", "study_name"]

THIN = 0.5
"""Where a present file has fewer rows in the sample than this share of what a new one has, zone maps from the sample
would flatter the table as it lies: many small files. There the files' own statistics tell what it reads."""


@dataclass(frozen=True)
class Sought:
    """What a search came to.

    Attributes:
        target: rows per file that it was for.
        learned: what was found.
        weights: weight of each query in it, shape (queries,).
        rows_per_file: sample rows that stood for a file.
    """

    target: int
    learned: Learned
    weights: npt.NDArray[np.float64]
    rows_per_file: float


def sought(
    analysis: TableAnalysis,
    settings: LearnSettings,
    blocks: LogBlocks,
    *,
    kept: npt.NDArray[np.int32] | None = None,
    partition: npt.NDArray[np.int32] | None = None,
    warm: Sequence[Sequence[str]] = (),
    progress: Callable[[int, int, float], None] | None = None,
    say: Progress = silent,
    searching: bool = True,
) -> Sought:
    """Search for a layout in files of `zorder_pipeline.pipeline.learning.sizes.sought_rows`.

    Args:
        blocks: which queries learn, choose and promise.
        partition: table partition of each sampled row.
        kept: see `zorder_pipeline.layout.evidence.KnownTable`.
        searching: see `zorder_pipeline.layout.learn.learn_layout`.
        warm, progress, say: see `zorder_pipeline.pipeline.learning.learn.learn_layout_for`.
    """
    snapshot, sample = analysis.snapshot, analysis.sample
    target = sought_rows(snapshot, settings)
    types = {column.name: column.type for column in snapshot.schema.columns}
    files = max(1, round(sample.total_rows / target))
    features = [name for name in analysis.features.ranked if name in sample.columns]
    coded = SampledTable.build(sample.arrays, types, features, sample.file, files, partition)
    weights = layout_weights(snapshot, analysis.queries, analysis.boxes, settings, files)
    search = SearchSettings(
        settings.trials, settings.seed, settings.seconds, settings.sampler, settings.workers, settings.study,
        study_name(snapshot.location, snapshot.table_id),
    )  # fmt: skip
    present = snapshot.files()
    thin = sample.rows < THIN * coded.rows_per_file * len(present)
    lies = present.zone_map().shares_read(analysis.boxes) if thin else None
    table = KnownTable(coded, sample.arrays, snapshot.schema, sample.stands_for, kept, lies)
    logged = WeighedLog(analysis.boxes, weights, blocks)
    learned = learn_layout(
        table, logged, search, warm=_drafts(warm, coded), progress=progress, say=say, searching=searching
    )
    if learned.spec is not None:
        learned = replace(learned, spec=replace(learned.spec, rows=sample.total_rows))
    return Sought(target, learned, weights, coded.rows_per_file)


def study_name(location: str, table_id: str) -> str:
    """Name of a table's study: the same every night, so that a study goes on where it stopped.

    >>> study_name("file:/data/flights", "5f1c2d3e-0000-4000-8000-000000000000")
    'flights-5f1c2d3e'
    """
    return f"{location.rstrip('/').rpartition('/')[2]}-{table_id[:8]}"


def _drafts(orders: Sequence[Sequence[str]], table: SampledTable) -> list[Draft]:
    """Layouts by the columns of their bits, those that the sample has all columns of."""
    place = {encoding.column: i for i, encoding in enumerate(table.encodings)}
    usable = [order for order in orders if order and set(order) <= place.keys()]
    return [Draft(tuple(place[name] for name in order[:MAX_BITS])) for order in usable]
