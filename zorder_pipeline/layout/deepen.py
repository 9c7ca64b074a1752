"""Spare bits: further bits of a learned key, for rows inside a file now and for files that the table does not have yet.

A search looks for the bits that tell today's files apart; of a table of six files that may be three. Ten times the rows
under such a key would be dealt out over files that all span the same. So the winner is gone on with, bit by bit, as if
the files were ever smaller. Where the files of today end does not depend on it, but for ties.

The last bits that a search finds are arbitrary where today's files do not end at them, so these are found anew: with 26
files of TPC-H lineitem unseen queries then read up to a sixth fewer rows of pages a twenty-third of a file.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from .deadline import NEVER, Deadline
from .draft import AnyDraft, Draft, SampledTable
from .encoding import FINE_BITS
from .grow import Grower
from .search import MAX_BITS, key_bits
from .skipping import Estimator
from .tree import INNER_BITS, TreeDraft

__all__ = ["deepened"]

CELL_ROWS = 25
"""Sample rows that a cell of a tree should have for the queries to say by what to divide it."""
SPARE_CELL_ROWS = 6
"""And one of an order of bits, where all cells of the table have the same say: these go down to Parquet's pages."""
MOST_CUTS = 15
"""Cuts between a tree's root and its cells, about, beyond which it gets no more of them."""
MOST_FEATURES = 6
"""Columns that spare bits may be of, the winner's own first: each one is read and coded in every rewrite."""
LEAST_GAIN = 0.002
"""Share of the rows read that a spare bit must save."""
TIED = 1 + 1e-9
"""So many times as much may be read of them without the last bits that a search found."""
WORSE = 1.002
"""So many times as much may be read of today's files: more than that is no tie."""


def deepened(
    draft: AnyDraft,
    table: SampledTable,
    estimator: Estimator,
    weights: npt.NDArray[np.float64],
    grower: Grower | None = None,
    deadline: Deadline = NEVER,
) -> tuple[AnyDraft, int]:
    """The layout with spare bits, and how many; as it was where there is nothing to say by what to go on.

    An order of bits loses the last ones that save nothing today, then gets the bit that helps most were every cell a
    file, and so on, while its cells have rows enough in the sample; a tree gets further cuts inside its files. A
    Hilbert curve stays as it is.

    Args:
        estimator: of the training queries.
        weights: weight of each query, shape (queries,), positive.
        grower: of a tree; None for another one, which gets no further cuts.
        deadline: when to stop: bits found until then are kept, a tree stays as it was.
    """
    before = float(weights @ table.rows_read(draft, estimator))
    deeper, telling = draft, 0
    if isinstance(draft, TreeDraft):
        deeper = _cut_further(draft, table, grower, deadline) if grower is not None else draft
    elif draft.curve != "hilbert":
        deeper, telling = _gone_on(draft, table, estimator, weights, before, deadline)
    if deeper is draft or float(weights @ table.rows_read(deeper, estimator)) > WORSE * before:
        return draft, 0
    return deeper, len(deeper.order) - telling if isinstance(deeper, Draft) else 0


def _gone_on(
    draft: Draft,
    table: SampledTable,
    estimator: Estimator,
    weights: npt.NDArray[np.float64],
    before: float,
    deadline: Deadline,
) -> tuple[Draft, int]:
    """The order with other last bits, and how many of its bits tell files apart."""

    def cost(of: SampledTable, order: tuple[int, ...]) -> float:
        return float(weights @ of.rows_read(Draft(order), estimator))

    prefixes = (draft.order[:bits] for bits in range(1, len(draft.order)))
    telling = next((order for order in prefixes if cost(table, order) <= TIED * before), draft.order)
    most = min(MAX_BITS, int(math.log2(max(1, table.rows / SPARE_CELL_ROWS))))
    own = list(dict.fromkeys(draft.order))
    others = [i for i in range(len(table.encodings)) if i not in own]
    features = [*own, *others[: max(0, MOST_FEATURES - len(own))]]
    limits = {i: min(table.encodings[i].useful_bits, FINE_BITS) for i in features}
    order, files = telling, table.files
    while len(order) < most and not deadline.over:
        while files < 1 << (len(order) + 1):
            files *= 2
        finer = replace(table, rows_per_file=table.rows / files)
        options = [(*order, i) for i in features if order.count(i) < limits[i]]
        costs = {option: cost(finer, option) for option in options if cost(table, option) <= WORSE * before}
        if not costs or min(costs.values()) > (1 - LEAST_GAIN) * cost(finer, order):
            break
        order = min(costs, key=lambda option: costs[option])
    return (replace(draft, order=order), len(telling)) if len(order) >= len(draft.order) else (draft, 0)


def _cut_further(draft: TreeDraft, table: SampledTable, grower: Grower, deadline: Deadline) -> TreeDraft:
    inner = min(
        INNER_BITS, MOST_CUTS - key_bits(table.files), int(math.log2(max(1.0, table.rows_per_file / CELL_ROWS)))
    )
    if not draft.inside.any() or inner <= grower.settings.inner or draft.hurried or deadline.over:
        return draft
    deeper = grower.tree(inner, deadline)
    return draft if deeper.hurried else deeper
