"""A layout that also serves scans through ``reading/``: by predicates, expressions and SOP partitions (seed 004, 4.1).

Three forms are tried, and held-out queries decide between them and the layout by columns alone: every predicate as a
column of one bit, whose place in the key the search finds; the seed's, an SOP partition index as one column beside at
most four others; and that with the expressions that queries compare as further columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline.features.never_failing import never_failing
from zorder_pipeline.features.sop import Sop, Vectors, chosen_bits, vectors_of
from zorder_pipeline.gate.benefit import ReadVolumes, promise
from zorder_pipeline.layout.blocks import LogBlocks
from zorder_pipeline.layout.choosing import MIN_GAIN, surely
from zorder_pipeline.layout.draft import SampledTable
from zorder_pipeline.layout.evidence import KnownTable, WeighedLog
from zorder_pipeline.layout.learn import Learned, learn_layout
from zorder_pipeline.layout.placement import files_under
from zorder_pipeline.layout.promise import whole_table_shares
from zorder_pipeline.layout.search import SearchSettings
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.model.key_spec import PARTITION_INDEX, KeySpec
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.ranges import Boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.pipeline.records import LearnSettings, TableAnalysis

from .confirming import confirmed
from .sizes import query_bytes
from .useful_statistics import reading_boxes, reading_schema, sampled_features, useful_statistics

__all__ = ["for_reading"]

COLUMNS, BITS, INDEX, MIXED = "columns", "predicates", PARTITION_INDEX, f"{PARTITION_INDEX}, expressions"
"""The candidates: by columns alone, with predicates as columns of one bit, with an SOP partition index, and with that
and expressions."""
MOST_BITS = 16
"""Predicates that the search places at most, those by which the most can be skipped."""
BESIDE = 4
"""Columns beside a partition index (seed 004: more make each of them skip too little)."""
MOST_LOST = 0.02
"""Share more of the rows that ordinary readers may read than under the layout by columns alone, on the queries that
choose: on others it may be 5%."""
LONG = 3600.0
SHARES = (1.0, 0.5, 0.25)
"""Parts of the expected share of scans that are tried as weight, until ordinary readers lose little enough."""

Columns = Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Sampled:
    """The sample with expressions, predicates and the partition index (`index` by name, "" without one) as columns, and
    the queries of both readers."""

    columns: Columns
    schema: TableSchema
    plain: tuple[Boxes, ...]
    reading: tuple[Boxes, ...]
    expressions: Mapping[str, str]
    rows_per_file: float
    partition: npt.NDArray[np.int32] | None
    stands_for: float
    index: str = ""

    def read(self, spec: KeySpec | None, stored: npt.NDArray[np.int32], boxes: Sequence[Boxes]) -> Floats:
        """Share of the rows that each query reads under a layout, shape (queries,)."""
        rows = len(stored)
        estimator = Estimator.build(self.columns, self.schema, boxes, rows)
        return whole_table_shares(estimator, *self.blocks(spec, stored), self.stands_for)

    def blocks(self, spec: KeySpec | None, stored: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int32], int]:
        """File of each row under a layout, and how many files."""
        if spec is None:
            return stored, int(stored.max()) + 1
        file = files_under(spec, self.columns, self.rows_per_file, self.partition).astype(np.int32)
        return file, int(file.max()) + 1


def for_reading(
    analysis: TableAnalysis,
    settings: LearnSettings,
    plan: Plan,
    weights: Floats,
    blocks: LogBlocks,
    partition: npt.NDArray[np.int32] | None,
    kept: npt.NDArray[np.int32] | None = None,
) -> tuple[Plan | None, Columns]:
    """``plan``, or one whose layout is better for the expected mix of readers, with what was measured of both.

    With it come those columns of its key that the analysed sample lacks: an SOP partition index.

    A candidate must make ordinary readers read at most `MOST_LOST` more than the layout by columns alone: on the select
    queries by the sample, then on all that may choose by the zone maps that the whole table would have. A sample has
    too few of the stray rows by which a file widens.

    Args:
        plan: by columns alone.
        weights, blocks, partition: as it was learned from.
        kept: file of each sampled row once what is new is laid out by the table's present layout, which is one for
            scans through ``reading/``; None without one.

    Returns:
        None for a plan when none is surely better than ``kept`` on the select queries.
    """
    if not blocks.apart or not analysis.columns:
        return plan, {}
    sampled = _sampled(analysis, plan.target_file_rows, partition)
    stored = analysis.sample.file
    candidates: dict[str, KeySpec | None] = {COLUMNS: plan.spec}
    bits = [name for name in sampled.expressions if name != sampled.index]
    computed = [name for feature, name in analysis.columns.items() if feature.kind == "expression" and name in bits]
    ranked = [name for name in analysis.features.ranked if name in sampled.columns][: settings.max_features]
    share = settings.enriched_share
    select, known = blocks.select, blocks.known
    on_select = {"plain": select.each(sampled.plain), "reading": select.each(sampled.reading)}
    weighs = select.sums(weights)
    measured: dict[str, tuple[float, float]] = {}

    def measure(name: str) -> tuple[float, float]:
        plain, reading = (
            float(np.average(sampled.read(candidates[name], stored, boxes), weights=weighs))
            for boxes in on_select.values()
        )
        measured[name] = plain, reading
        return measured[name]

    def mixed(spec: KeySpec | None, lies: npt.NDArray[np.int32]) -> Floats:
        plain, reading = (sampled.read(spec, lies, boxes) for boxes in on_select.values())
        return (1 - share) * plain + share * reading

    allowed = measure(COLUMNS)[0] * (1 + MOST_LOST)
    ordinary = _Ordinary(analysis, plan, known.statements, known.sums(weights), settings.confirm)
    forms = {BITS: [*ranked, *bits]}
    if sampled.index:
        forms[INDEX] = [sampled.index, *ranked[:BESIDE]]
        if computed:
            forms[MIXED] = [*forms[INDEX], *computed]
    for name, features in forms.items():
        for part in SHARES if features else ():
            found = _learned(settings, sampled, features, share * part, weights, blocks, stored)
            compiled = (
                _compiled(found.spec, sampled.expressions, analysis.sample.total_rows) if found.spec else plan.spec
            )
            candidates[name] = compiled
            if measure(name)[0] <= allowed and ordinary.lose_little(candidates[name]):
                break
        else:
            measured.pop(name, None)
    cost = {name: (1 - share) * plain + share * reading for name, (plain, reading) in measured.items()}
    winner = min(cost, key=cost.__getitem__)
    if kept is not None:
        gained = mixed(None, kept) * (1 - MIN_GAIN) - mixed(candidates[winner], stored)
        if not surely(select.observed(gained, weights[select.queries]), np.random.default_rng(settings.seed)):
            return None, {}
    file, _ = sampled.blocks(candidates[winner], stored)
    useful = useful_statistics(analysis, file, weights, blocks, candidates[winner])
    if idle := len(plan.statistics) - len(useful):
        note = f"{idle} of {len(plan.statistics)} statistics that queries ask for would skip next to nothing"
        plan = replace(plan, notes=(*plan.notes, f"{note} by this layout, so they are not gathered"), statistics=useful)
    spec = candidates[winner]
    own = {name: sampled.columns[name] for name in (spec.columns if spec is not None else ()) if name == sampled.index}
    return _promised(analysis, settings, plan, spec, winner, measured, sampled, blocks), own


class _Ordinary:
    """What ordinary readers lose by a layout, on all rows of the table; see `confirmed`."""

    def __init__(
        self, analysis: TableAnalysis, plan: Plan, chosen: npt.NDArray[np.int64], weights: Floats, confirm: bool
    ) -> None:
        self.analysis, self.plan, self.confirm = analysis, plan, confirm
        self.queries, self.weights = [analysis.boxes[i] for i in chosen], weights

    def lose_little(self, spec: KeySpec | None) -> bool:
        """Whether that is within `MOST_LOST`, or cannot be told so."""
        if spec == self.plan.spec:
            return True
        told, least = self._read(spec), self._least
        return told is None or least is None or told <= least * (1 + MOST_LOST)

    @cached_property
    def _least(self) -> float | None:
        return self._read(self.plan.spec)

    def _read(self, spec: KeySpec | None) -> float | None:
        if not self.confirm:
            return None
        told = confirmed(self.analysis.snapshot, spec, self.plan.target_file_rows, self.queries)
        return None if told is None else float(np.average(told[1], weights=self.weights))


def _sampled(analysis: TableAnalysis, target_rows: int, partition: npt.NDArray[np.int32] | None) -> _Sampled:
    snapshot, sample = analysis.snapshot, analysis.sample
    schema, names = reading_schema(analysis), sampled_features(analysis)
    reading = reading_boxes(analysis, schema, names)
    columns = dict(sample.arrays)
    rows_per_file = sample.rows / max(1.0, sample.total_rows / target_rows)
    safe = {f: sql for f in names if f.kind != "column" and (sql := never_failing(f.sql, snapshot.schema)) is not None}
    predicates = [feature for feature in safe if feature.kind == "predicate"]
    truth = [columns[names[f]][0].astype(np.bool_) & columns[names[f]][1] for f in predicates]
    chosen = chosen_bits(predicates, truth, MOST_BITS)
    expressions = {names[predicates[j]]: safe[predicates[j]] for j in chosen}
    expressions |= {names[f]: sql for f, sql in safe.items() if f.kind == "expression"}
    index = ""
    if chosen:
        features = [replace(predicates[j], sql=safe[predicates[j]]) for j in chosen]
        codes = vectors_of([truth[j] for j in chosen])
        distinct, counts = np.unique(codes, return_counts=True)
        sop = Sop.learn(features, Vectors.of_codes(distinct, counts.astype(np.int64), len(chosen)), rows_per_file)
        sql = sop.sql()  # a layout that the table lies by may have an index of its own
        index = f"{INDEX} {blake2b(sql.encode(), digest_size=4).hexdigest()}"
        columns[index] = sop.index_of(codes), np.ones(len(codes), dtype=np.bool_)
        expressions[index] = sql
        schema = TableSchema((*schema.columns, Column(index, "int")))
    return _Sampled(
        columns,
        schema,
        analysis.boxes,
        reading,
        expressions,
        rows_per_file,
        partition,
        analysis.sample.stands_for,
        index,
    )


def _learned(
    settings: LearnSettings,
    sampled: _Sampled,
    features: Sequence[str],
    share: float,
    weights: Floats,
    blocks: LogBlocks,
    stored: npt.NDArray[np.int32],
) -> Learned:
    """The best layout by ``features``, each query being asked by both kinds of readers in their proportion."""
    types = {column.name: column.type for column in sampled.schema.columns}
    files = max(1, round(len(stored) / sampled.rows_per_file))
    coded = SampledTable.build(sampled.columns, types, features, stored, files, sampled.partition)
    table = KnownTable(coded, sampled.columns, sampled.schema, sampled.stands_for)
    both = np.concatenate([weights * max(1 - share, 1e-6), weights * share])
    trials = max(1, settings.trials // 2)
    # a time limit, however long, leaves out baselines that search for themselves
    search = SearchSettings(trials, settings.seed, settings.seconds or LONG, settings.sampler, settings.workers)
    return learn_layout(table, WeighedLog([*sampled.plain, *sampled.reading], both, blocks.twice()), search)


def _compiled(spec: KeySpec, expressions: Mapping[str, str], rows: int) -> KeySpec:
    """The key with how Spark computes what is no column of the table, which has so many rows."""
    features = (replace(f, expression=expressions[f.column]) if f.column in expressions else f for f in spec.features)
    return replace(spec, features=tuple(features), rows=rows)


def _promised(
    analysis: TableAnalysis,
    settings: LearnSettings,
    plan: Plan,
    spec: KeySpec | None,
    winner: str,
    measured: Mapping[str, tuple[float, float]],
    sampled: _Sampled,
    blocks: LogBlocks,
) -> Plan:
    """The plan with the winning layout, and what queries that chose nothing read of it through either reader."""
    stored = analysis.sample.file
    unseen = blocks.promise
    held_out = unseen.each(sampled.plain)
    exact = confirmed(analysis.snapshot, spec, plan.target_file_rows, held_out) if settings.confirm else None
    before, after = exact or (sampled.read(None, stored, held_out), sampled.read(spec, stored, held_out))
    there = {feature: name for feature, name in sampled_features(analysis).items() if feature in plan.statistics}
    asked = reading_boxes(analysis, reading_schema(analysis), there)
    reading = np.minimum(after, sampled.read(spec, stored, unseen.each(asked)))
    size = query_bytes(analysis.snapshot, unseen.each(analysis.queries))
    nothing = np.zeros(len(after))
    volumes = ReadVolumes(before * size, after * size, nothing, nothing, before, after, reading * size, nothing)
    rate = (plan.promise.queries_per_day, plan.promise.rate_source)
    told_now = promise(before, after, size, rate, settings.seed, volumes, unseen)
    if winner == COLUMNS:  # what is known of its own promise may be exact
        told_now = replace(plan.promise, enriched_bytes_per_query=told_now.enriched_bytes_per_query)
    mean = [float(np.average(each, weights=unseen.times)) for each in (after, reading)]
    figures = {"plain_after": mean[0], "reading_after": mean[1]}
    for name, (plain, read) in measured.items():
        figures |= {f"select {name}: plain": plain, f"select {name}: reading": read}
    told = {
        COLUMNS: "columns alone are best for the expected mix of readers; statistics of predicates still help them",
        BITS: "predicates as bits of the key won on the select queries",
        INDEX: "a partition index by predicates (SOP) beside columns won on the select queries",
        MIXED: "a partition index by predicates (SOP) beside columns and expressions won on the select queries",
    }[winner]
    note = f"{told}: scans through zorder_pipeline.scan read {mean[1]:.1%} of the rows, others {mean[0]:.1%}"
    return replace(
        plan,
        spec=spec,
        promise=told_now,
        reading=figures,
        notes=(*plan.notes, note),
    )
