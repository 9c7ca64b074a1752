"""Layouts for a mix of ordinary readers and scans through ``reading/``, form by form: sought, measured, compared.

A candidate must make ordinary readers read at most `MOST_LOST` more than the layout by columns alone: on the select
queries by the sample, then on all that may choose by the zone maps that the whole table would have. A sample has too
few of the stray rows by which a file widens.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from zorder_pipeline.layout.draft import SampledTable
from zorder_pipeline.layout.evidence import KnownTable, WeighedLog
from zorder_pipeline.layout.learn import Learned, learn_layout
from zorder_pipeline.layout.search import SearchSettings
from zorder_pipeline.model.key_spec import PARTITION_INDEX, KeySpec
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.progress import Progress
from zorder_pipeline.model.ranges import Boxes

from .confirming import confirmed
from .reading_sample import ReadingSample
from .situation import Situation

__all__ = ["BITS", "COLUMNS", "INDEX", "MIXED", "Contest", "Measured", "Ordinary", "forms_of", "sought"]

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


@dataclass(frozen=True)
class Measured:
    """A layout, and the mean share of the rows that ordinary and other readers read of it on the select queries.

    Of None they are those of the table as it stays: what is new is laid out by its present layout, if it has one.
    """

    spec: KeySpec | None
    plain: float
    reading: float

    @property
    def means(self) -> tuple[float, float]:
        """Of ordinary readers, and of the others."""
        return self.plain, self.reading


@dataclass(frozen=True, eq=False)
class Contest:
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

    def read(self, spec: KeySpec | None) -> tuple[Floats, Floats]:
        """Share of the rows that each select query reads by either reader, shape (queries,) each.

        Args:
            spec: None of files as they are, or as they will be once what is new is laid out by the present layout.
        """
        plain, reading = (self.sampled.read(spec, boxes, self.situation.kept) for boxes in self._select)
        return plain, reading

    def measured(self, spec: KeySpec | None) -> Measured:
        """The same on average."""
        weighs = self.situation.blocks.select.sums(self.weights)
        plain, reading = (float(np.average(shares, weights=weighs)) for shares in self.read(spec))
        return Measured(spec, plain, reading)

    def mixed(self, plain: T, reading: T) -> T:
        """What the expected mix of readers reads, from what ordinary and other ones do."""
        share = self.situation.settings.enriched_share
        return (1 - share) * plain + share * reading


def forms_of(situation: Situation, sampled: ReadingSample) -> dict[str, list[str]]:
    """The columns that the search may use in each form."""
    analysis = situation.analysis
    bits = [name for name in sampled.expressions if name != sampled.index]
    computed = [name for feature, name in analysis.columns.items() if feature.kind == "expression" and name in bits]
    ranked = [name for name in analysis.features.ranked if name in sampled.columns]
    forms = {BITS: [*ranked, *bits]} if ranked or bits else {}
    if sampled.index:
        forms[INDEX] = [sampled.index, *ranked[:BESIDE]]
        if computed:
            forms[MIXED] = [*forms[INDEX], *computed]
    return forms


class Ordinary:
    """What ordinary readers lose by a layout, on all rows of the table; see `confirmed`.

    Args:
        plan: by columns alone.
        weights: of all queries, shape (queries,).
    """

    def __init__(self, situation: Situation, plan: Plan, weights: Floats) -> None:
        known = situation.blocks.known
        self.analysis, self.plan, self.confirm = situation.analysis, plan, situation.settings.confirm
        self.queries, self.weights = known.each(situation.analysis.boxes), known.sums(weights)

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


def sought(
    contest: Contest, name: str, features: Sequence[str], ordinary: Ordinary, allowed: float, seconds: float | None
) -> tuple[Measured | None, float]:
    """The layout of a form, if there is one by which ordinary readers lose little, and the seconds it was sought for.

    What is confirmed on all rows of the table is none of these.

    Args:
        name: what the form is called.
        features: the columns that the search may use.
        allowed: mean share of the rows that ordinary readers may read of the select queries.
        seconds: time budget; None for none.
    """
    situation, sampled, spent = contest.situation, contest.sampled, 0.0
    for number, part in enumerate(SHARES, 1):
        if seconds is not None and spent >= seconds:
            contest.short.append(f"{name} was not {'sought' if number == 1 else 'sought again with less weight'}")
            break
        contest.say(f"searching for a layout by {name}, attempt {number} of at most {len(SHARES)}")
        begun = time.monotonic()
        left = None if seconds is None else seconds - spent
        learned = _learned(contest, features, situation.settings.enriched_share * part, left)
        spent += time.monotonic() - begun
        contest.short.extend(f"{name}: {what}" for what in learned.shortened)
        spec = learned.spec
        rows = situation.analysis.sample.total_rows
        compiled = ordinary.plan.spec if spec is None else _compiled(spec, sampled.expressions, rows)
        measured = contest.measured(compiled)
        if measured.plain <= allowed and ordinary.lose_little(compiled):
            return measured, spent
    return None, spent


def _learned(contest: Contest, features: Sequence[str], share: float, seconds: float | None) -> Learned:
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
