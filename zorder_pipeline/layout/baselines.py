"""The layouts a person would pick, each a first-class candidate: they start the search, and one that is better wins."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import optuna

from .draft import Draft, SampledTable
from .encoding import FINE_BITS
from .interleave import round_robin, shared_bits
from .search import SearchSettings, key_bits
from .skipping import Estimator

__all__ = ["BASELINES", "seed_method", "warm_starts"]

DELTA_RANGE_BITS = 10
"""OPTIMIZE ZORDER and liquid clustering number about 1000 value ranges per column (seed 003)."""


def sort_by(column: int) -> Callable[[SampledTable], Draft | None]:
    """Sorted by the ``column``-th most frequent column alone."""

    def build(table: SampledTable) -> Draft | None:
        return Draft((column,) * FINE_BITS, aligned=False) if column < len(table.encodings) else None

    return build


def lexicographic(count: int) -> Callable[[SampledTable], Draft | None]:
    """Sorted by the ``count`` most frequent columns, one after the other (seed 001's SORT BY LEXICAL)."""

    def build(table: SampledTable) -> Draft | None:
        if count > len(table.encodings):
            return None
        return Draft(tuple(i for i in range(count) for _ in range(FINE_BITS)), aligned=False)

    return build


def range_ids(count: int, curve: str) -> Callable[[SampledTable], Draft | None]:
    """The ``count`` most frequent columns as Delta interleaves them: ZORDER BY, or liquid's Hilbert curve.

    Delta numbers about 1000 value ranges per column (seed 003) and interleaves the numbers as they are, so a column of
    few values has no bits in the high places: of 7 ship modes and 1000 dates the dates come first alone.
    """

    def build(table: SampledTable) -> Draft | None:
        if count > len(table.encodings):
            return None
        if curve == "hilbert":
            return Draft(round_robin([DELTA_RANGE_BITS] * count), curve, aligned=False)
        bits = [min(DELTA_RANGE_BITS, (e.distinct - 1).bit_length()) for e in table.encodings[:count]]
        places = reversed(range(DELTA_RANGE_BITS))
        return Draft(tuple(i for place in places for i in range(count) if bits[i] > place), aligned=False)

    return build


BASELINES: tuple[tuple[str, Callable[[SampledTable], Draft | None]], ...] = (
    *((f"sort-{i + 1}", sort_by(i)) for i in range(4)),
    ("lexicographic-2", lexicographic(2)),
    ("lexicographic-3", lexicographic(3)),
    *((f"zorder-{k}", range_ids(k, "interleave")) for k in (2, 3, 4)),
    *((f"liquid-{k}", range_ids(k, "hilbert")) for k in (2, 3, 4)),
)
"""Name and maker; a maker gives None when the table has too few useful columns. Features are ordered by frequency."""


def warm_starts(table: SampledTable) -> list[Draft]:
    """The baselines in the form the search works with: its own number of bits, files ending at cells."""
    bits = key_bits(table.files)
    orders = [(i,) * min(bits, FINE_BITS) for i in range(len(table.encodings))]
    counts = [count for count in (2, 3, 4) if count <= len(table.encodings)]
    orders.extend(tuple(i % count for i in range(bits)) for count in counts)
    return [Draft(order) for order in dict.fromkeys(orders)]


def seed_method(
    table: SampledTable,
    estimator: Estimator,
    filtered_columns: npt.NDArray[np.float64],
    settings: SearchSettings,
    bits: int = 60,
) -> Draft:
    """Seed 000 as published: shares of a 64-bit Z-value by Bayesian optimisation, rows x filtered columns as cost.

    Args:
        filtered_columns: number of filtered columns per query, shape (queries,).
        bits: bits of the Z-value; 60 here, as our keys are signed and fine codes have 16 bits per column.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=settings.seed))
    names = [encoding.column for encoding in table.encodings]
    best: tuple[float, Draft] | None = None
    for _ in range(settings.trials):
        trial = study.ask()
        weights = [trial.suggest_float(name, 0.0, 1.0) for name in names]
        if sum(weights) <= 0:
            study.tell(trial, float("inf"))
            continue
        draft = Draft(round_robin(shared_bits(weights, bits)), aligned=False)
        cost = float(np.mean(table.rows_read(draft, estimator) * filtered_columns))
        study.tell(trial, cost)
        if best is None or cost < best[0]:
            best = (cost, draft)
    assert best is not None
    return best[1]
