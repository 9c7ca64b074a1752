"""Spare bits: further bits of a learned key, for rows inside a file now and for files that the table does not have yet.

A search looks for the bits that tell today's files apart; of a table of six files that may be three. Ten times the rows
under such a key would be dealt out over files that all span the same. So the winner is gone on with, bit by bit, as if
the files were ever smaller. Where the files of today end does not depend on it, but for ties.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from .draft import AnyDraft, Draft, SampledTable
from .encoding import FINE_BITS
from .grow import GrowSettings, grow_tree
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
WORSE = 1.002
"""So many times as much may be read of today's files: more than that is no tie."""


def deepened(
    draft: AnyDraft, table: SampledTable, estimator: Estimator, weights: npt.NDArray[np.float64]
) -> tuple[AnyDraft, int]:
    """The layout with spare bits, and how many; as it was where there is nothing to say by what to go on.

    An order of bits gets the bit that helps most were every cell a file, and so on, while its cells have rows enough in
    the sample; a tree gets further cuts inside its files. A Hilbert curve stays as it is.

    Args:
        estimator: of the training queries.
        weights: weight of each query, shape (queries,), positive.
    """
    deeper = _cut_further(draft, table, estimator, weights) if isinstance(draft, TreeDraft) else draft
    if isinstance(draft, Draft) and draft.curve != "hilbert":
        deeper = _gone_on(draft, table, estimator, weights)
    before, after = (float(weights @ table.rows_read(one, estimator)) for one in (draft, deeper))
    if deeper is draft or after > WORSE * before:
        return draft, 0
    return deeper, len(deeper.order) - len(draft.order) if isinstance(deeper, Draft) and isinstance(draft, Draft) else 0


def _gone_on(draft: Draft, table: SampledTable, estimator: Estimator, weights: npt.NDArray[np.float64]) -> Draft:
    most = min(MAX_BITS, int(math.log2(max(1, table.rows / SPARE_CELL_ROWS))))
    own = list(dict.fromkeys(draft.order))
    others = [i for i in range(len(table.encodings)) if i not in own]
    features = [*own, *others[: max(0, MOST_FEATURES - len(own))]]
    limits = {i: min(table.encodings[i].useful_bits, FINE_BITS) for i in features}
    order, files = draft.order, table.files
    while len(order) < most:
        while files < 1 << (len(order) + 1):
            files *= 2
        finer = replace(table, rows_per_file=table.rows / files)
        options = [Draft((*order, i)) for i in features if order.count(i) < limits[i]]
        costs = [float(weights @ finer.rows_read(option, estimator)) for option in options]
        if not costs or min(costs) > (1 - LEAST_GAIN) * float(weights @ finer.rows_read(Draft(order), estimator)):
            break
        order = options[int(np.argmin(costs))].order
    return replace(draft, order=order) if len(order) > len(draft.order) else draft


def _cut_further(
    draft: TreeDraft, table: SampledTable, estimator: Estimator, weights: npt.NDArray[np.float64]
) -> TreeDraft:
    inner = min(
        INNER_BITS, MOST_CUTS - key_bits(table.files), int(math.log2(max(1.0, table.rows_per_file / CELL_ROWS)))
    )
    if not draft.inside.any() or inner <= GrowSettings().inner:  # a baseline's tree has no cuts inside files
        return draft
    return grow_tree(table.fine, estimator, weights, table.rows_per_file, GrowSettings(inner=inner))
