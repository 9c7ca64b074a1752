"""A layout that also serves scans through ``reading/``: by predicates, expressions and SOP partitions (seed 004, 4.1).

Three forms are tried, and held-out queries decide between them and the layout by columns alone: every predicate as a
column of one bit, whose place in the key the search finds; the seed's, an SOP partition index as one column beside at
most four others; and that with the expressions that queries compare as further columns.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from zorder_pipeline.gate.benefit import ReadVolumes, promise
from zorder_pipeline.layout.choosing import MIN_GAIN, surely
from zorder_pipeline.layout.draft import SampledTable
from zorder_pipeline.layout.evidence import KnownTable, WeighedLog
from zorder_pipeline.layout.learn import Learned, learn_layout
from zorder_pipeline.layout.search import SearchSettings
from zorder_pipeline.model.key_spec import PARTITION_INDEX, KeySpec
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.model.ranges import Boxes
from zorder_pipeline.pipeline.records import TableAnalysis

from .confirming import confirmed
from .reading_sample import Columns, ReadingSample, reading_sample
from .situation import Situation
from .sizes import query_bytes
from .useful_statistics import reading_boxes, reading_schema, sampled_features, useful_statistics

__all__ = ["for_reading"]

COLUMNS, BITS, INDEX, MIXED = "columns", "predicates", PARTITION_INDEX, f"{PARTITION_INDEX}, expressions"
"""The candidates: by columns alone, with predicates as columns of one bit, with an SOP partition index, and with that
and expressions."""
BESIDE = 4
"""Columns beside a partition index (seed 004: more make each of them skip too little)."""
MOST_LOST = 0.02
"""Share more of the rows that ordinary readers may read than under the layout by columns alone, on the queries that
choose: on others it may be 5%."""
SHARES = (1.0, 0.5, 0.25)
"""Parts of the expected share of scans that are tried as weight, until ordinary readers lose little enough."""


Floats = npt.NDArray[np.float64]
T = TypeVar("T", float, Floats)


def for_reading(
    situation: Situation, plan: Plan, weights: Floats, say: Progress = silent
) -> tuple[Plan | None, Columns]:
    """``plan``, or one whose layout is better for the expected mix of readers, with what was measured of both.

    With it come those columns of its key that the analysed sample lacks: an SOP partition index.

    A candidate must make ordinary readers read at most `MOST_LOST` more than the layout by columns alone: on the select
    queries by the sample, then on all that may choose by the zone maps that the whole table would have. A sample has
    too few of the stray rows by which a file widens.

    Args:
        plan: by columns alone.
        weights: of all queries, as it was learned with, shape (queries,).
        say: told which candidate is sought.

    Returns:
        None for a plan when the table lies by a layout for scans through ``reading/``, and none is surely better on the
        select queries than laying out what is new by that.
    """
    if not situation.blocks.apart or not situation.analysis.columns:
        return plan, {}
    sampled = reading_sample(situation.analysis, plan.target_file_rows, situation.partition)
    contest = _Contest(situation, sampled, weights, say)
    columns = contest.measured(plan.spec)
    measured = {COLUMNS: columns, **_by_predicates(contest, plan, columns.plain * (1 + MOST_LOST))}
    if contest.short:
        budget = f"within the time budget of {situation.settings.seconds or 0:g} s of the layouts for such scans"
        plan = replace(plan, notes=(*plan.notes, f"{budget}: {'; '.join(dict.fromkeys(contest.short))}"))
    winner = min(measured, key=lambda name: contest.mixed(*measured[name].means))
    spec = measured[winner].spec
    present = situation.laid_out
    if present is not None and present.spec is not None and present.spec.computed and situation.kept is not None:
        select = situation.blocks.select
        stays, goes = (contest.mixed(*read) for read in (contest.read(None, situation.kept), contest.read(spec)))
        rng = np.random.default_rng(situation.settings.seed)
        if not surely(select.observed(stays * (1 - MIN_GAIN) - goes, weights[select.queries]), rng):
            return None, {}
    useful = useful_statistics(situation.analysis, sampled.blocks(spec)[0], weights, situation.blocks, spec)
    if idle := len(plan.statistics) - len(useful):
        note = f"{idle} of {len(plan.statistics)} statistics that queries ask for would skip next to nothing"
        plan = replace(plan, notes=(*plan.notes, f"{note} by this layout, so they are not gathered"), statistics=useful)
    own = {name: sampled.columns[name] for name in (spec.columns if spec is not None else ()) if name == sampled.index}
    return _promised(contest, replace(plan, spec=spec), winner, measured), own


@dataclass(frozen=True)
class _Measured:
    """A layout, and the mean share of the rows that ordinary and other readers read of it on the select queries."""

    spec: KeySpec | None
    plain: float
    reading: float

    @property
    def means(self) -> tuple[float, float]:
        """Of ordinary readers, and of the others."""
        return self.plain, self.reading


@dataclass(frozen=True, eq=False)
class _Contest:
    """What layouts for the mix of readers are learned from and compared by.

    Attributes:
        say: told which candidate is sought.
        short: what the time budget of all of them together cut short, as it comes.
    """

    situation: Situation
    sampled: ReadingSample
    weights: Floats
    say: Progress
    short: list[str] = field(default_factory=list)

    @cached_property
    def _select(self) -> tuple[list[Boxes], list[Boxes]]:
        """The select queries as ordinary and other readers ask them."""
        select = self.situation.blocks.select
        return select.each(self.sampled.plain), select.each(self.sampled.reading)

    def read(self, spec: KeySpec | None, lies: npt.NDArray[np.int32] | None = None) -> tuple[Floats, Floats]:
        """Share of the rows that each select query reads by either reader; see `ReadingSample.read`."""
        plain, reading = (self.sampled.read(spec, boxes, lies) for boxes in self._select)
        return plain, reading

    def measured(self, spec: KeySpec | None) -> _Measured:
        """The same on average."""
        weighs = self.situation.blocks.select.sums(self.weights)
        plain, reading = (float(np.average(shares, weights=weighs)) for shares in self.read(spec))
        return _Measured(spec, plain, reading)

    def mixed(self, plain: T, reading: T) -> T:
        """What the expected mix of readers reads, from what ordinary and other ones do."""
        share = self.situation.settings.enriched_share
        return (1 - share) * plain + share * reading


def _by_predicates(contest: _Contest, plan: Plan, allowed: float) -> dict[str, _Measured]:
    """The layout of each form that has one by which ordinary readers lose little.

    Args:
        allowed: mean share of the rows that they may read of the select queries.
    """
    situation, sampled = contest.situation, contest.sampled
    known = situation.blocks.known
    ordinary = _Ordinary(
        situation.analysis, plan, known.statements, known.sums(contest.weights), situation.settings.confirm
    )
    found: dict[str, _Measured] = {}
    forms = {name: features for name, features in _forms(situation, sampled).items() if features}
    left = situation.settings.seconds  # of searching alone: what is confirmed on all rows of the table is none of it
    for place, (name, features) in enumerate(forms.items()):
        own = None if left is None else left / (len(forms) - place)
        for number, part in enumerate(SHARES, 1):
            if own == 0:
                contest.short.append(f"{name} was not {'sought' if number == 1 else 'sought again with less weight'}")
                break
            contest.say(f"searching for a layout by {name}, attempt {number} of at most {len(SHARES)}")
            begun = time.monotonic()
            learned = _learned(contest, features, situation.settings.enriched_share * part, own)
            if own is not None and left is not None:
                took = time.monotonic() - begun
                own, left = max(0.0, own - took), max(0.0, left - took)
            contest.short.extend(f"{name}: {what}" for what in learned.shortened)
            spec = learned.spec
            compiled = _compiled(spec, sampled.expressions, situation.analysis.sample.total_rows) if spec else plan.spec
            measured = contest.measured(compiled)
            if measured.plain <= allowed and ordinary.lose_little(compiled):
                found[name] = measured
                break
    return found


def _forms(situation: Situation, sampled: ReadingSample) -> dict[str, list[str]]:
    """The columns that the search may use in each form."""
    analysis = situation.analysis
    bits = [name for name in sampled.expressions if name != sampled.index]
    computed = [name for feature, name in analysis.columns.items() if feature.kind == "expression" and name in bits]
    ranked = [name for name in analysis.features.ranked if name in sampled.columns][: situation.settings.max_features]
    forms = {BITS: [*ranked, *bits]}
    if sampled.index:
        forms[INDEX] = [sampled.index, *ranked[:BESIDE]]
        if computed:
            forms[MIXED] = [*forms[INDEX], *computed]
    return forms


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


def _learned(contest: _Contest, features: Sequence[str], share: float, seconds: float | None) -> Learned:
    """The best layout by ``features``, each query being asked by both kinds of readers in their proportion."""
    settings, sampled = contest.situation.settings, contest.sampled
    types = {column.name: column.type for column in sampled.schema.columns}
    files = max(1, round(len(sampled.stored) / sampled.rows_per_file))
    coded = SampledTable.build(sampled.columns, types, features, sampled.stored, files, sampled.partition)
    table = KnownTable(coded, sampled.columns, sampled.schema, sampled.stands_for)
    both = np.concatenate([contest.weights * max(1 - share, 1e-6), contest.weights * share])
    log = WeighedLog([*sampled.plain, *sampled.reading], both, contest.situation.blocks.twice())
    trials = max(1, settings.trials // 2)
    search = SearchSettings(trials, settings.seed, seconds, settings.sampler, settings.workers)
    return learn_layout(table, log, search, say=contest.say, safeguards=False)


def _compiled(spec: KeySpec, expressions: Mapping[str, str], rows: int) -> KeySpec:
    """The key with how Spark computes what is no column of the table, which has so many rows."""
    features = (replace(f, expression=expressions[f.column]) if f.column in expressions else f for f in spec.features)
    return replace(spec, features=tuple(features), rows=rows)


def _promised(contest: _Contest, plan: Plan, winner: str, measured: Mapping[str, _Measured]) -> Plan:
    """What queries that chose nothing read of a plan's layout, the winner, through either reader."""
    analysis, settings, sampled = contest.situation.analysis, contest.situation.settings, contest.sampled
    spec, unseen = plan.spec, contest.situation.unseen
    held_out = unseen.each(sampled.plain)
    exact = confirmed(analysis.snapshot, spec, plan.target_file_rows, held_out) if settings.confirm else None
    before, after = exact or (sampled.read(None, held_out), sampled.read(spec, held_out))
    there = {feature: name for feature, name in sampled_features(analysis).items() if feature in plan.statistics}
    asked = reading_boxes(analysis, reading_schema(analysis), there)
    reading = np.minimum(after, sampled.read(spec, unseen.each(asked)))
    size = query_bytes(analysis.snapshot, unseen.each(analysis.queries))
    nothing = np.zeros(len(after))
    volumes = ReadVolumes(before * size, after * size, nothing, nothing, before, after, reading * size, nothing)
    rate = (plan.promise.queries_per_day, plan.promise.rate_source)
    told_now = promise(before, after, size, rate, settings.seed, volumes, unseen)
    if winner == COLUMNS:  # what is known of its own promise may be exact
        told_now = replace(plan.promise, enriched_bytes_per_query=told_now.enriched_bytes_per_query)
    mean = [float(np.average(each, weights=unseen.times)) for each in (after, reading)]
    figures = {"plain_after": mean[0], "reading_after": mean[1]}
    for name, one in measured.items():
        figures |= {f"select {name}: plain": one.plain, f"select {name}: reading": one.reading}
    told = {
        COLUMNS: "columns alone are best for the expected mix of readers; statistics of predicates still help them",
        BITS: "predicates as bits of the key won on the select queries",
        INDEX: "a partition index by predicates (SOP) beside columns won on the select queries",
        MIXED: "a partition index by predicates (SOP) beside columns and expressions won on the select queries",
    }[winner]
    note = f"{told}: scans through zorder_pipeline.scan read {mean[1]:.1%} of the rows, others {mean[0]:.1%}"
    return replace(
        plan,
        promise=told_now,
        reading=figures,
        notes=(*plan.notes, note),
    )
