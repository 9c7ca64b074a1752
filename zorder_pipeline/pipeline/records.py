"""What the chain is given and what its steps hand on, as frozen dataclasses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline.features.sample import Sample, SampleColumn
from zorder_pipeline.features.select import Analysis
from zorder_pipeline.model.choices import SAMPLE_ROWS, TRIALS, Cost, Sampler
from zorder_pipeline.model.file_stats import Feature
from zorder_pipeline.model.ranges import Boxes, Told
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.relayout.snapshot import TableSnapshot

__all__ = ["LearnSettings", "LogSource", "PartitionPreview", "Preview", "TableAnalysis"]


@dataclass(frozen=True)
class LogSource:
    """A query log to read.

    Attributes:
        path: file or folder.
        log_format: ``auto``, ``sql``, ``query-history`` or ``spark-events``.
        dialect: sqlglot dialect of the statements.
        zone: time zone of the session that ran the statements.
    """

    path: str
    log_format: str = "auto"
    dialect: str = "spark"
    zone: str = "UTC"


@dataclass(frozen=True)
class LearnSettings:
    """How to learn.

    Attributes:
        trials, seed, seconds, sampler, workers: see `zorder_pipeline.layout.search.SearchSettings`.
        study: where the Optuna study is kept, a local path or a database URL; None for memory only.
        confirm: whether a new layout's promise is proved on all rows, which scans the filtered columns once
            (`zorder_pipeline.pipeline.learning.confirming`); otherwise it is the sample's.
        always_search: whether nights search, too, when no layout can pay (`zorder_pipeline.pipeline.learning.worth`).
        cost, half_life_days: what a layout costs, see `zorder_pipeline.pipeline.learning.weights.layout_weights`.
        sample_rows: rows sampled, raised if need be so that a file is not represented by too few.
        target_file_rows, target_file_bytes: size to aim for; at most one of them. Without either the table keeps about
            its present file size, unless the gate finds that other files pay more.
        smaller_files: whether files may become smaller than they are where they are large and no size is asked for
            (`zorder_pipeline.pipeline.learning.sizes.sought_rows`).
        max_features: columns the search may use, the most useful ones.
        queries_per_day: expected rate; None takes the rate observed in the log.
        row_group_bytes: size of the row groups that are to be written; None leaves it to Spark and the table.
        bloom_filters: columns that new files get Parquet's Bloom filters of; None for those by which queries look up
            values that no order leads to (`zorder_pipeline.pipeline.learning.looked_up`).
        enriched_share: share of the scans that go through ``reading/``, 0 to 1. Above 0 a layout by predicates and
            expressions is sought, too, which only those scans skip by.
        redact_key: with it names of expressions and predicates tell no literal, see
            `zorder_pipeline.pipeline.logs.redact_key`.
    """

    trials: int = TRIALS
    seed: int = 0
    seconds: float | None = None
    sampler: Sampler = "moves"
    workers: int = 1
    study: str | None = None
    cost: Cost = "rows"
    half_life_days: float | None = None
    confirm: bool = True
    always_search: bool = False
    sample_rows: int = SAMPLE_ROWS
    target_file_rows: int | None = None
    target_file_bytes: int | None = None
    smaller_files: bool = True
    max_features: int = 16
    queries_per_day: float | None = None
    row_group_bytes: int | None = None
    bloom_filters: tuple[str, ...] | None = None
    enriched_share: float = 0.0
    redact_key: str | None = None


@dataclass(frozen=True)
class TableAnalysis:
    """A table's queries and sample, and what the workload analysis found in them.

    Attributes:
        snapshot: the table as it was sampled.
        queries: its queries, unusable ones included.
        sample: rows of the columns that the queries filter by.
        features: candidates, correlations, and the columns that the search may use.
        boxes: the ranges that each query asks for, in the order of ``queries``.
        columns: sampled column of each expression and predicate that statistics should be kept of, and of the columns
            among them their own names; empty unless scans through ``reading/`` are expected.
        until: how far the log goes, see `QueryLog.until`.
        train_weights: weight of each feature among ``columns`` that a layout may be learned from, told by the queries
            of `LogBlocks.train` alone, which also say what these features are: what is asked later is none of them.
        known_weights: the same by `LogBlocks.known`, for the layout that was chosen.
        told: what conditions on partition columns say of the partitions, as ``boxes`` know it
            (`zorder_pipeline.pipeline.partition_conditions.told_on`).
    """

    snapshot: TableSnapshot
    queries: tuple[LoggedQuery, ...]
    sample: Sample
    features: Analysis
    boxes: tuple[Boxes, ...] = field(default=(), repr=False)
    columns: Mapping[Feature, str] = field(default_factory=dict, repr=False)
    until: int | None = None
    train_weights: Mapping[Feature, float] = field(default_factory=dict, repr=False)
    known_weights: Mapping[Feature, float] = field(default_factory=dict, repr=False)
    told: Told = field(default_factory=dict, repr=False)

    def with_computed(self, columns: Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]]) -> TableAnalysis:
        """The same with further columns of the sample: values and validity by name."""
        more = {name: SampleColumn(*column) for name, column in columns.items()}
        return replace(self, sample=replace(self.sample, columns={**self.sample.columns, **more}))


@dataclass(frozen=True)
class PartitionPreview:
    """What a relayout would do to one partition: files that it would replace and write, and the bytes it replaces."""

    files_removed: int
    files_added: int
    bytes: int


@dataclass(frozen=True)
class Preview:
    """What a relayout would do.

    Attributes:
        version: table version that was looked at.
        files_removed, files_added: files it would replace and write.
        bytes_rewritten: bytes of the replaced files.
        rows: rows it would rewrite.
        skipped_files: files it would leave as they are.
        bytes_unrestricted: the same as ``bytes_rewritten`` without a condition on partitions.
        partitions: what it would do by partition values; to a table without partitions under ``()``.
    """

    version: int
    files_removed: int = 0
    files_added: int = 0
    bytes_rewritten: int = 0
    rows: int = 0
    skipped_files: int = 0
    bytes_unrestricted: int = 0
    partitions: Mapping[tuple[str | None, ...], PartitionPreview] = field(default_factory=dict)
