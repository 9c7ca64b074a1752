"""ZORDER and liquid clustering at their best: by the columns that read fewest rows for the training queries.

Nobody who picks columns by hand tries them all; systems that choose clustering columns by themselves might. So these
two stand beside the baselines that take the most frequent columns, of which some only are asked out of habit.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations

from zorder_pipeline.layout.baselines import BASELINES, Z_ORDER, Baseline, Training, ranged
from zorder_pipeline.layout.draft import Draft

__all__ = ["CHOSEN", "CONTENDERS"]

MOST_COLUMNS = 10
"""So many of the most frequent columns are tried in all combinations of two to four."""


def _best_columns(curve: str, training: Training) -> Draft | None:
    columns = range(min(MOST_COLUMNS, len(training.table.encodings)))
    drafts = (ranged(training.table, chosen, curve) for count in (2, 3, 4) for chosen in combinations(columns, count))
    return min(drafts, key=training.cost, default=None)


CHOSEN: tuple[Baseline, ...] = tuple(
    Baseline(f"{name}-chosen", partial(_best_columns, curve), searched=True)
    for name, curve in (("zorder", Z_ORDER), ("liquid", "hilbert"))
)
CONTENDERS: tuple[Baseline, ...] = (*BASELINES, *CHOSEN)
"""Whom ours is simulated beside."""
