"""Which statistics let files be skipped once the table lies by a layout; the others would be gathered for nothing.

The sample, cut into files as the layout does it, gets the statistics that the real files would get. A file of sample
rows holds fewer values than a real one, so what excludes a file of the sample need not exclude the real one, and must
not hide that another statistic is needed. Delta's own bounds, which a rare value widens in every real file, count as
far as the layout's cuts bound a column; a predicate that hardly any row of the sample decides does not count beside
others; and a file of too many values for a Bloom filter has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zorder_pipeline.features.statistics import enriched, worth_keeping
from zorder_pipeline.layout.blocks import LogBlocks
from zorder_pipeline.layout.skipping import stored_bounds
from zorder_pipeline.layout.virtual_files import whole_distinct
from zorder_pipeline.model.file_stats import BloomFilters, Feature, FeatureStats, bloom_place
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.ranges import Boxes, columns_asked, to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.values import Value, ValueType
from zorder_pipeline.model.zone_map import ColumnZones, ZoneMap
from zorder_pipeline.pipeline.records import TableAnalysis
from zorder_pipeline.reading.gather import MOST_PLACES
from zorder_pipeline.reading.prune import FileTests, without_hulls

__all__ = ["reading_boxes", "reading_schema", "sampled_features", "useful_statistics"]

LITTLE = 0.005
"""Share more of the rows that queries may read without a statistic that is not worth gathering."""
HIGHEST_TEXT = "\U0010ffff" * 33
SEEN = 10
"""Rows of the sample on which a predicate must be true, and on which not, to be taken for so in every file."""

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
        without_hulls(to_boxes(enriched(query.predicate, names), schema, query.zone, solved=True, told=analysis.told))
        for query in analysis.queries
    )


def useful_statistics(
    analysis: TableAnalysis,
    file: npt.NDArray[np.int32],
    weights: Floats,
    blocks: LogBlocks,
    spec: KeySpec | None,
    kept: Sequence[Feature] = (),
) -> tuple[Feature, ...]:
    """The features worth gathering: without all of the others together, queries read at most `LITTLE` more.

    Args:
        file: file of each sample row under the layout, shape (rows,).
        spec: the layout's key, None of the table as it lies: where it cuts, real files are bounded, too.
        weights: of all queries, shape (queries,).
        blocks: parts of the log, of which the last does not decide.
        kept: features that are gathered already and stay, if they are still asked for.
    """
    wanted = worth_keeping(tuple(analysis.columns))
    if not len(file):
        return wanted
    names = sampled_features(analysis)
    schema = reading_schema(analysis)
    boxes = reading_boxes(analysis, schema, names)
    asked_for = {f: names[f] for f in wanted if f in names}
    cuts = _cuts(spec) if spec is not None else {}
    tests = _virtual(analysis, asked_for, file, cuts)
    at_best = FileTests(_delta(analysis, file, None), tests.enriched)
    careful = _careful(analysis, asked_for, file, cuts, tests.enriched)
    known = blocks.known
    weight = dict(zip(known.statements.tolist(), known.sums(weights).tolist(), strict=True))
    asked = {i: columns_asked([boxes[i]]) for i in weight}
    allowed = LITTLE * sum(weight[i] * _rows(at_best, boxes[i]) for i in asked)
    gathered = {(feature.name, feature.kind, feature.sql) for feature in kept}
    dropped: set[Feature] = set()
    stays = dict(tests.enriched)
    for feature in sorted(wanted, key=lambda feature: feature.weight):
        name = names.get(feature)
        if name not in stays or (feature.name, feature.kind, feature.sql) in gathered:
            continue
        concerned = [i for i, columns in asked.items() if name in columns]
        sure = {key: careful[key] for key in stays if key in careful} | {name: stays[name]}
        lost = max(
            sum(weight[i] * (_rows(without, boxes[i]) - _rows(beside, boxes[i])) for i in concerned)
            for beside, without in (_with_and_without(tests.delta, some, name) for some in (stays, sure))
        )
        if lost <= allowed:
            dropped.add(feature)
            del stays[name]
            allowed -= lost
    return tuple(feature for feature in wanted if feature not in dropped)


def _rows(tests: FileTests, boxes: Boxes) -> float:
    return float(tests.delta.rows[tests.matching(boxes)].sum())


def _with_and_without(
    delta: ZoneMap, enriched_stats: Mapping[str, FeatureStats], name: str
) -> tuple[FileTests, FileTests]:
    rest = {key: stats for key, stats in enriched_stats.items() if key != name}
    return FileTests(delta, enriched_stats), FileTests(delta, rest)


def _careful(
    analysis: TableAnalysis,
    names: Mapping[Feature, str],
    file: npt.NDArray[np.int32],
    cuts: Mapping[str, list[Value]],
    found: Mapping[str, FeatureStats],
) -> dict[str, FeatureStats]:
    """What excludes a file of the sample and surely also the real one: bounds by the layout's cuts, filters, and
    predicates of which the sample has seen both."""
    kept = {}
    for feature, name in names.items():
        if name not in found:
            continue
        stats = found[name]
        if feature.kind == "predicate":
            values, valid = analysis.sample.arrays[name]
            true = int(np.count_nonzero(values[valid]))
            if min(true, len(valid) - true) >= SEEN:
                kept[name] = stats
            continue
        zones = replace(stats.zones, known=np.zeros_like(stats.zones.known))
        if name in cuts:
            domain, places = _coded(analysis.sample.arrays[name], file)
            zones = _zones(*_between(domain, cuts[name]), places, stats.rows)
        kept[name] = replace(stats, zones=zones)
    return kept


def _cuts(spec: KeySpec) -> dict[str, list[Value]]:
    """The values at which a layout divides its columns between files."""
    found: dict[str, list[Value]] = {}
    for i in dict.fromkeys(spec.telling):
        feature = spec.features[i]
        spare = 0 if spec.tree is not None else feature.bits - spec.telling.count(i)
        coarse = [code >> spare for code in feature.codes]
        found[feature.column] = [
            point for point, (low, high) in zip(feature.breakpoints, pairwise(coarse), strict=True) if low != high
        ]
    return found


def _virtual(
    analysis: TableAnalysis, names: Mapping[Feature, str], file: npt.NDArray[np.int32], cuts: Mapping[str, list[Value]]
) -> FileTests:
    """The statistics of the files that the sample's rows are cut into, with Delta's as far as ``cuts`` bound them."""
    columns = analysis.sample.arrays
    files = int(file.max()) + 1
    rows = np.bincount(file, minlength=files)
    whole = np.asarray(rows * (analysis.sample.total_rows / max(1, len(file))), dtype=np.float64)
    enriched_stats = {}
    for feature, name in names.items():
        if name in columns:
            domain, places = _coded(columns[name], file)
            zones = _zones(domain, domain, places, rows)
            bloom = _bloom(domain, places) if feature.equality else None
            distinct = np.bincount(np.unique(np.stack(places), axis=1)[0], minlength=files).astype(np.float64)
            filtered = whole_distinct(distinct, rows.astype(np.float64), whole) <= MOST_PLACES
            enriched_stats[name] = FeatureStats(feature, zones, rows, bloom, filtered if feature.equality else None)
    return FileTests(_delta(analysis, file, cuts), enriched_stats)


def _delta(analysis: TableAnalysis, file: npt.NDArray[np.int32], cuts: Mapping[str, list[Value]] | None) -> ZoneMap:
    """Delta's own bounds: those that ``cuts`` imply, or those of the sample's rows."""
    columns = analysis.sample.arrays
    rows = np.bincount(file)
    own = {}
    for column in analysis.snapshot.schema.columns:
        known = column.partition or (column.delta_stats and (cuts is None or column.name in cuts))
        if known and column.name in columns and column.value_type.orderable:
            domain, places = _coded(columns[column.name], file)
            low, high = stored_bounds(domain, ValueType.parse(column.type))
            if cuts is not None and not column.partition:
                low, high = _between(domain, cuts[column.name])
            own[column.name] = _zones(low, high, places, rows)
    return ZoneMap(rows, rows, own)


def _between(domain: npt.NDArray[Any], cuts: Sequence[Value]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The lowest and highest values between the cuts around each value; beyond the outermost there may be any."""
    if not len(domain):
        return domain, domain
    lowest: Any
    highest: Any
    if domain.dtype.kind == "f":
        lowest, highest = -np.inf, np.inf
    elif domain.dtype != object:
        lowest, highest = np.iinfo(domain.dtype).min, np.iinfo(domain.dtype).max
    elif any(isinstance(value, str) for value in domain[:1]):
        lowest, highest = "", HIGHEST_TEXT
    elif any(isinstance(value, bytes) for value in domain[:1]):
        lowest, highest = b"", b"\xff" * len(HIGHEST_TEXT)
    else:
        lowest, highest = -(10**40), 10**40
    low, high = np.empty((2, len(cuts) + 1), dtype=domain.dtype)
    below = [_before(cut) for cut in cuts]
    if isinstance(lowest, int):  # only nulls lie below a cut at the lowest number that there is
        below = [max(lowest, value) for value in below]
    low[:], high[:] = [lowest, *cuts], [*below, highest]
    place = np.searchsorted(low[1:], domain, side="right")
    return low[place], high[place]


def _before(value: Value) -> Value:
    """The largest value below, of strings up to Delta's length of a bound; of bytes the value itself."""
    if isinstance(value, float):
        return float(np.nextafter(value, -np.inf))
    if isinstance(value, int):
        return value - 1
    if isinstance(value, bytes):
        return value
    last = ord(value[-1:] or "\0")
    if last == 0:
        return value[:-1]
    return value[:-1] + chr(0xD7FF if last == 0xE000 else last - 1) + HIGHEST_TEXT  # no surrogates, which sort nowhere


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


def _bloom(domain: npt.NDArray[Any], places: tuple[npt.NDArray[np.int32], npt.NDArray[np.intp]]) -> BloomFilters:
    file, code = np.unique(np.stack(places), axis=1)
    return BloomFilters.of(np.array([bloom_place(value) for value in domain.tolist()], dtype=np.int64)[code], file)
