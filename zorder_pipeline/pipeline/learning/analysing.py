"""Workload analysis: what the queries filter by, sampled, with the candidates and correlations found in it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeAlias

from zorder_pipeline.errors import NothingToLearnError, UnsupportedTableError
from zorder_pipeline.features.sample import take_sample
from zorder_pipeline.features.select import analyse as analyse_features
from zorder_pipeline.features.statistics import MAX_FEATURES
from zorder_pipeline.layout.blocks import blocks_of
from zorder_pipeline.layout.study_place import refuse_place
from zorder_pipeline.model.file_stats import Feature, Kind, widened
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.ranges import columns_asked
from zorder_pipeline.model.wording import counted
from zorder_pipeline.model.workload import LoggedQuery, QueryLog
from zorder_pipeline.pipeline.partition_conditions import boxes_on, told_on
from zorder_pipeline.pipeline.reading.statistics import statistics_features
from zorder_pipeline.pipeline.records import LearnSettings, TableAnalysis
from zorder_pipeline.pipeline.renames import queries_of
from zorder_pipeline.reading.gather import evaluable
from zorder_pipeline.relayout.snapshot import TableSnapshot

from .nothing_asked import why_nothing, why_unfiltered
from .sizes import sampled_for_size, sought_rows
from .weights import scanned_shares

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["MIN_ROWS_SAMPLED_PER_FILE", "analyse"]

MIN_ROWS_SAMPLED_PER_FILE, MOST_ROWS_SAMPLED = 200, 1_000_000
"""Rows sampled per file, but not more of a table unless the settings say so: all of them come to the driver."""
READING_ROWS_PER_FILE, READING_ROWS = 1000, 500_000
"""Rows sampled per file, and at most, for a layout by predicates: of a rare one a small sample shows too few rows."""


def analyse(
    spark: SparkSession,  # noqa: ARG001 - every public step of the chain is asked with the session first
    snapshot: TableSnapshot,
    log: QueryLog,
    names: Sequence[str],
    settings: LearnSettings | None = None,
    read_only: bool = False,
    layouts: Collection[KeySpec] = (),
) -> TableAnalysis:
    """Sample the table and find candidates and correlations among what its queries filter by.

    Args:
        names: what the log calls the table.
        read_only: the table will not be rewritten, so it may have any feature.
        layouts: those that tonight's will be compared with, such as the present one (`layouts_in_use`): their columns
            and expressions are sampled, too, whether the log still filters by them or not.

    Raises:
        NothingToLearnError: the log holds no usable query of this table, or the table is empty.
        UnsupportedTableError: the table has a feature under which it may not be rewritten.
        ConfigError: no study can be kept where the settings want it.
    """
    settings = settings or LearnSettings()
    if settings.study is not None:  # sampled in vain otherwise
        refuse_place(settings.study)
    if not read_only and (reason := snapshot.unsupported()) is not None:
        raise UnsupportedTableError(reason)
    queries = queries_of(log, names, snapshot)
    reading = settings.enriched_share > 0
    statistics, by_train, by_known = _told(snapshot, queries) if reading else ((), {}, {})
    usable = [query for query in queries if query.usable]
    if not statistics and not usable:
        raise NothingToLearnError(
            f"no usable query of {snapshot.location} among {counted(log.lines, 'statement')}: "
            f"{why_nothing(log, queries)}"
        )
    rows = int(snapshot.files().rows.sum())
    if not rows:
        raise NothingToLearnError(f"table {snapshot.location} is empty; there is nothing to lay out")
    told = told_on(snapshot, queries)
    boxes = boxes_on(snapshot, queries, told=told)
    filtered, solved = columns_asked(boxes), columns_asked(boxes_on(snapshot, queries, solved=True, told=told))
    if reading:
        filtered |= solved
    if not filtered and not statistics:
        raise NothingToLearnError(why_unfiltered(snapshot.location, usable, snapshot.schema, solved))
    files = math.ceil(rows / sought_rows(snapshot, settings))
    least = min(MOST_ROWS_SAMPLED, MIN_ROWS_SAMPLED_PER_FILE * files)
    if statistics:
        least = max(least, min(READING_ROWS, READING_ROWS_PER_FILE * files))
    wanted = min(rows, max(settings.sample_rows, least))
    wanted_columns = filtered.union([] if read_only else sampled_for_size(snapshot, usable, wanted))
    wanted_columns |= {name for layout in layouts for name in layout.table_columns}
    columns = [column.name for column in snapshot.schema.columns if column.name in wanted_columns or column.partition]
    kept_of = evaluable(snapshot.read(), statistics) if statistics else ()
    named = widened(snapshot.schema, kept_of, settings.redact_key)[1]
    more = {name: (feature.sql, feature.type) for feature, name in named.items() if feature.kind != "column"}
    # a layout's own form fails on no row; the log's might, and its column would be missing
    more |= {codes.column: (codes.expression, codes.type) for layout in layouts for codes in layout.computed}
    sample = take_sample(snapshot, columns, rows=wanted, seed=settings.seed, total_rows=rows, expressions=more)
    features = analyse_features(
        queries,
        snapshot.schema,
        sample,
        max_features=settings.max_features,
        half_life_days=settings.half_life_days,
        scanned=scanned_shares(snapshot, boxes),
        solved=reading,
    )
    train, known = _of(named, by_train), _of(named, by_known)
    return TableAnalysis(snapshot, queries, sample, features, boxes, named, log.until, train, known, told)


_Weights: TypeAlias = dict[tuple[Kind, str], float]
"""Weight of each feature, by its kind and name: Spark tells its type later."""


def _told(snapshot: TableSnapshot, queries: Sequence[LoggedQuery]) -> tuple[tuple[Feature, ...], _Weights, _Weights]:
    """What statistics may be kept of, and the weights of what a layout may use: see `TableAnalysis`.

    Of many constants in a condition some are tried, and which ones is a choice as any other: so what a layout may use
    is told from its queries alone, and not picked from what is told from all.
    """
    blocks, every = blocks_of(queries), statistics_features(snapshot, queries)
    train, known = every, every
    if blocks.apart:
        parts = ([queries[i] for i in block.queries] for block in (blocks.train, blocks.known))
        train, known = (statistics_features(snapshot, part) for part in parts)
    features: dict[tuple[Kind, str], Feature] = {}
    for feature in (one for rank in zip_longest(train, known, every) for one in rank if one is not None):
        if len(features) < MAX_FEATURES:  # the heaviest of each
            features.setdefault((feature.kind, feature.name), feature)
    by_train, by_known = ({(f.kind, f.name): f.weight for f in some} for some in (train, known))
    return tuple(features.values()), by_train, by_known


def _of(features: Iterable[Feature], weights: _Weights) -> dict[Feature, float]:
    """The weights of those of the features that have one."""
    return {f: weights[f.kind, f.name] for f in features if (f.kind, f.name) in weights}
