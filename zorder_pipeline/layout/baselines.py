"""The layouts that a person or another system would pick, each a first-class candidate: one that is better wins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import optuna

from zorder_pipeline.model.ranges import Boxes, columns_asked

from .deadline import NEVER, Deadline
from .draft import AnyDraft, Draft, SampledTable, useful
from .encoding import FINE_BITS
from .grow import grow_by_predicates
from .interleave import round_robin, shared_bits
from .piecewise import piecewise_curve
from .search import SearchSettings, key_bits
from .skipping import Estimator

__all__ = ["BASELINES", "Z_ORDER", "Baseline", "Training", "ranged", "warm_starts"]

DELTA_RANGE_BITS = 10
"""OPTIMIZE ZORDER and liquid clustering number about 1000 value ranges per column (seed 003)."""
Z_ORDER = "interleave"
"""The curve of systems that know no other: only learned layouts follow the Gray code."""
SEED_BITS = 60
"""Seed 000 has 64; our keys are signed and fine codes have 16 bits per column."""


@dataclass(frozen=True)
class Training:
    """What a baseline may look at: the sample, and the training queries.

    Attributes:
        table: features are ordered by frequency.
        estimator: tells what the training queries read of the sample under a layout.
        queries: boxes per training query.
        weights: weight of each, shape (queries,).
        settings: trials of those that search.
        deadline: when these give up, whatever they have found: what they make then is of no use.
    """

    table: SampledTable
    estimator: Estimator
    queries: Sequence[Boxes]
    weights: npt.NDArray[np.float64]
    settings: SearchSettings
    deadline: Deadline = NEVER

    @property
    def filtered(self) -> npt.NDArray[np.float64]:
        """Filtered columns per query, shape (queries,)."""
        return np.array([len(columns_asked([boxes])) for boxes in self.queries], dtype=float)

    def cost(self, draft: AnyDraft) -> float:
        """Mean share of rows the training queries read."""
        return float(np.average(self.table.rows_read(draft, self.estimator), weights=self.weights))


@dataclass(frozen=True)
class Baseline:
    """A named layout; ``make`` gives None when the table has too few useful columns.

    Attributes:
        searched: making it takes as long as our own search, instead of no time.
    """

    name: str
    make: Callable[[Training], AnyDraft | None]
    searched: bool = False


def best_sort(training: Training) -> Draft | None:
    """Sorted by a single column: the one that is best for the training queries."""
    columns = range(len(training.table.encodings))
    drafts = [Draft((column,) * FINE_BITS, Z_ORDER, aligned=False) for column in columns]
    return min(drafts, key=training.cost, default=None)


def lexicographic(count: int) -> Callable[[Training], Draft | None]:
    """Sorted by the ``count`` most frequent columns, one after the other (seed 001's SORT BY LEXICAL)."""

    def build(training: Training) -> Draft | None:
        if count > len(training.table.encodings):
            return None
        return Draft(_one_by_one(count), Z_ORDER, aligned=False)

    return build


def _one_by_one(count: int) -> tuple[int, ...]:
    """All bits of the first column, then all of the second, and so on."""
    return tuple(i for i in range(count) for _ in range(FINE_BITS))


def equal_bits(count: int) -> Callable[[Training], Draft | None]:
    """Z-order of the ``count`` most frequent columns with as many bits each, of rank codes."""

    def build(training: Training) -> Draft | None:
        if count > len(training.table.encodings):
            return None
        return Draft(round_robin([SEED_BITS // count if count > 3 else FINE_BITS] * count), Z_ORDER, aligned=False)

    return build


def ranged(table: SampledTable, columns: Sequence[int], curve: str) -> Draft:
    """Some columns as Delta interleaves them: ZORDER BY, or liquid's Hilbert curve.

    Delta numbers about 1000 value ranges per column (seed 003) and interleaves the numbers as they are, so a column of
    few values has no bits in the high places: of 7 ship modes and 1000 dates the dates come first alone.

    Args:
        columns: indexes of features.
        curve: `Z_ORDER` or ``hilbert``.
    """
    places = reversed(range(DELTA_RANGE_BITS))
    if curve == "hilbert":
        return Draft(tuple(columns) * DELTA_RANGE_BITS, curve, aligned=False, numbered=True)
    numbers = {i: table.encodings[i].distinct + table.encodings[i].nulls for i in columns}
    bits = {i: min(DELTA_RANGE_BITS, (count - 1).bit_length()) for i, count in numbers.items()}
    return Draft(tuple(i for place in places for i in columns if bits[i] > place), Z_ORDER, aligned=False)


def range_ids(count: int, curve: str) -> Callable[[Training], Draft | None]:
    """The ``count`` most frequent columns as Delta interleaves them, see `ranged`."""

    def build(training: Training) -> Draft | None:
        return None if count > len(training.table.encodings) else ranged(training.table, range(count), curve)

    return build


def seed_method(training: Training) -> Draft:
    """Seed 000 as published: shares of a 64-bit Z-value by Bayesian optimisation, rows x filtered columns as cost."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=training.settings.seed))
    table, factors = training.table, training.weights * training.filtered
    names = [encoding.column for encoding in table.encodings]
    best: tuple[float, Draft] | None = None
    for _ in range(training.settings.trials):
        trial = study.ask()
        weights = [trial.suggest_float(name, 0.0, 1.0) for name in names]
        if sum(weights) <= 0:
            study.tell(trial, float("inf"))
            continue
        draft = Draft(round_robin(shared_bits(weights, SEED_BITS)), Z_ORDER, aligned=False)
        cost = float(np.mean(table.rows_read(draft, training.estimator) * factors))
        study.tell(trial, cost)
        if best is None or cost < best[0]:
            best = (cost, draft)
        if training.deadline.over:
            break
    assert best is not None
    return best[1]


def qd_tree(training: Training) -> AnyDraft:
    """A greedy tree of the queries' own predicates, see `grow_by_predicates`."""
    return grow_by_predicates(training.table, training.estimator, training.weights, training.queries, training.deadline)


def piecewise(training: Training) -> AnyDraft:
    """A BMTree-style curve that interleaves differently in every region, see `piecewise_curve`."""
    table = training.table
    return piecewise_curve(table.fine, training.estimator, training.weights, table.rows_per_file, training.deadline)


BASELINES: tuple[Baseline, ...] = (
    Baseline("sort", best_sort),
    *(Baseline(f"lexicographic-{k}", lexicographic(k)) for k in (2, 3)),
    *(Baseline(f"equal-{k}", equal_bits(k)) for k in (2, 3, 4)),
    *(Baseline(f"zorder-{k}", range_ids(k, "interleave")) for k in (2, 3, 4)),
    *(Baseline(f"liquid-{k}", range_ids(k, "hilbert")) for k in (2, 3, 4)),
    Baseline("seed", seed_method, searched=True),
    Baseline("qd-tree", qd_tree, searched=True),
    Baseline("piecewise", piecewise, searched=True),
)
"""What ours is compared with, besides the table as stored."""


def warm_starts(table: SampledTable) -> list[Draft]:
    """The baselines in the form the search works with: its own number of bits, files ending at cells."""
    bits = key_bits(table.files)
    orders = [(i,) * min(bits, FINE_BITS) for i in range(len(table.encodings))]
    counts = [count for count in (2, 3, 4) if count <= len(table.encodings)]
    orders.extend(tuple(i % count for i in range(bits)) for count in counts)
    limits = [encoding.useful_bits for encoding in table.encodings]  # few of a column of few values, then come others
    orders.extend(useful(_one_by_one(count), limits)[:bits] for count in counts if count < 4)
    return [Draft(order) for order in dict.fromkeys(orders)]
