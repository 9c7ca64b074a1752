"""Which statistics let files be skipped once the table lies by a layout; the others would be gathered for nothing.

The sample, cut into files as the layout does it, gets the statistics that the real files would get. A file of sample
rows holds fewer values than a real one, so a statistic excludes more of them than of real ones. So do Delta's own
bounds, which a rare value widens in every real file and in hardly any of the sample's: they count only where the layout
divides the column, or they would seem to skip what a statistic is needed for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zorder_pipeline.features.statistics import enriched, worth_keeping
from zorder_pipeline.layout.blocks import LogBlocks
from zorder_pipeline.layout.skipping import stored_bounds
from zorder_pipeline.model.file_stats import BLOOM_BITS, Feature, FeatureStats, bloom_place
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.ranges import Boxes, to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.values import ValueType
from zorder_pipeline.model.zone_map import ColumnZones, ZoneMap
from zorder_pipeline.reading.prune import FileTests, without_hulls

from .records import TableAnalysis

__all__ = ["reading_boxes", "reading_schema", "sampled_features", "useful_statistics"]

LITTLE = 0.002
"""Share more of the rows that queries may read without a statistic that is not worth gathering."""

Floats: TypeAlias = npt.NDArray[np.float64]
_Values: TypeAlias = tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]


def sampled_features(analysis: TableAnalysis) -> dict[Feature, str]:
    """The column of each feature that failed on no row of the sample."""
    columns = analysis.sample.arrays
    return {f: name for f, name in analysis.columns.items() if f.kind == "column" or name in columns}


def reading_schema(analysis: TableAnalysis) -> TableSchema:
    """The table's columns, and one for each expression and predicate."""
    added = [Column(name, feature.type) for feature, name in analysis.columns.items() if feature.kind != "column"]
    return TableSchema((*analysis.snapshot.schema.columns, *added))


def reading_boxes(analysis: TableAnalysis, schema: TableSchema, names: Mapping[Feature, str]) -> tuple[Boxes, ...]:
    """What each query asks for when it is asked through ``reading/``.

    Args:
        names: the features that there are statistics of, and their columns in ``schema``.
    """
    return tuple(
        without_hulls(to_boxes(enriched(query.predicate, names), schema, query.zone, solved=True))
        for query in analysis.queries
    )


def useful_statistics(
    analysis: TableAnalysis,
    file: npt.NDArray[np.int32],
    weights: Floats,
    blocks: LogBlocks | None,
    spec: KeySpec | None,
    kept: Sequence[Feature] = (),
) -> tuple[Feature, ...]:
    """The features worth gathering: without all of the others together, queries read at most `LITTLE` more.

    Args:
        file: file of each sample row under the layout, shape (rows,).
        spec: the layout's key, None of the table as it lies: of the columns by which it tells files apart, the bounds
            in a file of the sample are those of a real one.
        weights: of all queries, shape (queries,).
        blocks: parts of the log, of which the last does not decide; without them all queries do.
        kept: features that are gathered already and stay, if they are still asked for.
    """
    wanted = worth_keeping(tuple(analysis.columns))
    if not len(file):
        return wanted
    names = sampled_features(analysis)
    schema = reading_schema(analysis)
    boxes = reading_boxes(analysis, schema, names)
    divided = {spec.features[i].column for i in spec.telling} if spec is not None else set()
    tests = _virtual(analysis, {f: names[f] for f in wanted if f in names}, file, divided)
    deciding = np.concatenate([blocks.train, blocks.select]).tolist() if blocks else range(len(boxes))
    asked = {i: {item.column for box in boxes[i] for item in box} for i in deciding}
    read = {i: _rows(tests, boxes[i]) for i in asked}
    allowed = LITTLE * sum(weights[i] * read[i] for i in asked)
    gathered = {(feature.name, feature.kind, feature.sql) for feature in kept}
    dropped: set[Feature] = set()
    for feature in sorted(wanted, key=lambda feature: feature.weight):
        name = names.get(feature)
        if name not in tests.enriched or (feature.name, feature.kind, feature.sql) in gathered:
            continue
        rest = FileTests(tests.delta, {key: stats for key, stats in tests.enriched.items() if key != name})
        without = {i: _rows(rest, boxes[i]) for i, columns in asked.items() if name in columns}
        lost = sum(weights[i] * (rows - read[i]) for i, rows in without.items())
        if lost <= allowed:
            dropped.add(feature)
            tests = rest
            read |= without
            allowed -= lost
    return tuple(feature for feature in wanted if feature not in dropped)


def _rows(tests: FileTests, boxes: Boxes) -> float:
    return float(tests.delta.rows[tests.matching(boxes)].sum())


def _virtual(
    analysis: TableAnalysis, names: Mapping[Feature, str], file: npt.NDArray[np.int32], divided: Collection[str]
) -> FileTests:
    """The statistics of the files that the sample's rows are cut into, with Delta's of the divided columns alone."""
    columns = analysis.sample.arrays
    files = int(file.max()) + 1
    rows = np.bincount(file, minlength=files)
    enriched_stats = {}
    for feature, name in names.items():
        if name in columns:
            domain, places = _coded(columns[name], file)
            zones = _zones(domain, domain, places, rows)
            bloom = _bloom(domain, places, files) if feature.equality else None
            filtered = np.ones(files, dtype=np.bool_) if feature.equality else None
            enriched_stats[name] = FeatureStats(feature, zones, rows, bloom, filtered)
    own = {}
    for column in analysis.snapshot.schema.columns:
        known = column.partition or (column.delta_stats and column.name in divided)
        if known and column.name in columns and column.value_type.orderable:
            domain, places = _coded(columns[column.name], file)
            low, high = stored_bounds(domain, ValueType.parse(column.type))
            own[column.name] = _zones(low, high, places, rows)
    return FileTests(ZoneMap(rows, rows, own), enriched_stats)


def _coded(
    values: _Values, file: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[Any], tuple[npt.NDArray[np.int32], npt.NDArray[np.intp]]]:
    """A column's distinct values in ascending order, and (file, place among them) of each row that is not null."""
    present, valid = values
    domain, code = np.unique(present[valid], return_inverse=True)
    return domain, (file[valid], code)


def _zones(
    low: npt.NDArray[Any],
    high: npt.NDArray[Any],
    places: tuple[npt.NDArray[np.int32], npt.NDArray[np.intp]],
    rows: npt.NDArray[np.int64],
) -> ColumnZones:
    file, code = places
    files = len(rows)
    first, last = np.full(files, len(low), dtype=np.int64), np.full(files, -1, dtype=np.int64)
    np.minimum.at(first, file, code)
    np.maximum.at(last, file, code)
    known = last >= 0
    nulls = rows - np.bincount(file, minlength=files)
    if not len(low):
        blank = np.zeros(files, dtype=low.dtype)
        return ColumnZones(blank, blank, known, nulls)
    return ColumnZones(low[np.where(known, first, 0)], high[np.where(known, last, 0)], known, nulls)


def _bloom(
    domain: npt.NDArray[Any], places: tuple[npt.NDArray[np.int32], npt.NDArray[np.intp]], files: int
) -> npt.NDArray[np.uint8]:
    file, code = places
    bit = np.array([bloom_place(value) for value in domain.tolist()], dtype=np.int64)[code]
    bloom = np.zeros((files, BLOOM_BITS // 8), dtype=np.uint8)
    np.bitwise_or.at(bloom, (file, bit >> 3), (1 << (bit & 7)).astype(np.uint8))
    return bloom
