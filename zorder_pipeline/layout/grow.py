"""Growing a tree of cuts greedily: a qd-tree (Yang et al. 2020) that cuts at quantiles, judged by real zone maps.

At every node each column's cuts are tried, and the one after which the queries that still read the node read least is
made. Cuts lie at quantiles of the node's own rows, so correlated columns are not cut twice for the same thing, or also
where the queries' ranges begin and end. A node stands for a number of files, and cuts keep both sides at whole files,
so that the tree's leaves are the files; below them further cuts order the rows inside a file.

The partitions of a table have one tree, and each makes files of its own out of its leaves. So what is read is counted
partition by partition, and so are files: a cut that divides all of twelve partitions makes twelve files more, one by a
column that follows the partitions (a time within months) only one.

Or files may differ in size: then the leaf is cut whose cut saves most, until there are as many as files. Where queries
look often, or tell rows apart well, files become small, and those that few ask for large. Real tables, whose rows lie
unevenly, are read up to a third less so; of even ones nothing is gained.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.cut_tree import LEAF
from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.model.ranges import Boxes
from zorder_pipeline.model.values import Value

from .deadline import NEVER, Deadline
from .draft import SampledTable
from .encoding import Encoding
from .grow_kernel import CUT, FEATURE, FILES_CUT, HIGH, HURRIED, LOW, RANK, STOP, Growth, grown
from .rows_asked import RowsAsked, asked_of
from .skipping import Estimator
from .tree import INNER_BITS, TreeDraft

__all__ = ["SIZES", "GrowSettings", "Grower", "grow_by_predicates", "grow_tree", "range_ends", "uneven"]

TOLERANCE = 0.25
"""A file's sample rows may differ from the target by this share: less than what a cut of the whole table allows
(`zorder_pipeline.layout.cells.TOLERANCE`), so that the files found here are those cut there."""
SIZES = (0.25, 3.0)
"""Rows of the smallest and of the largest file where files differ in size, in units of the target: what a wider span
saves is next to nothing."""
UNEVEN_PRIOR = 10.0
MOST_CUTS = 24
"""Cuts above a file of such a tree: more only take literals off a range one by one, and each row walks them all."""

MOST_PARTITIONS = 32
"""Partitions of a table that a tree is grown for at most, those from which most is read."""
LEAST_FILES = 1.5
"""Files' worth of rows below which a partition is one file, where no cut saves anything."""
TOLD = 2.0
"""Seconds after which a tree that grows tells how far it is."""

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class GrowSettings:
    """How to grow.

    Attributes:
        quantiles: cuts tried per column and node, evenly spaced.
        prior: with so many queries left at a node their gains count half, and the gains of the node above the other
            half: what few queries say of a small region is mostly noise.
        inner: levels of cuts inside a file, for row groups; at most `INNER_BITS`.
        sizes: rows of the smallest and of the largest file, in units of the target, where files differ in size; None
            for files of about equal size.
        literals: further cuts tried, by feature, see `range_ends`; () for none.
    """

    quantiles: int = 7
    prior: float = 20.0
    inner: int = 3
    sizes: tuple[float, float] | None = None
    literals: tuple[Codes, ...] = ()


def uneven(queries: Sequence[Boxes], encodings: Sequence[Encoding]) -> GrowSettings:
    """How to grow a tree whose files differ in size; ``queries`` are those that it is grown for."""
    return GrowSettings(prior=UNEVEN_PRIOR, sizes=SIZES, literals=tuple(range_ends(queries, encodings)))


@dataclass(frozen=True, eq=False)
class Grower:
    """Grows one kind of tree, as deep inside its files as it is asked to.

    Attributes:
        table: the estimator's sample.
        estimator: of the queries that it is grown for.
        weights: weight of each query, shape (queries,).
    """

    table: SampledTable
    estimator: Estimator
    weights: npt.NDArray[np.float64]
    settings: GrowSettings

    def tree(self, inner: int | None = None, deadline: Deadline = NEVER, say: Progress = silent) -> TreeDraft:
        """The tree, with so many levels of cuts inside a file instead of the settings'.

        Args:
            deadline: when to stop, see `grow_tree`.
            say: told now and then how many files were cut.
        """
        settings = self.settings if inner is None else replace(self.settings, inner=inner)
        table, estimator, weights = self.table, self.estimator, self.weights
        two = table.partition is not None
        until = deadline.part(0.5) if two else deadline
        whole = grow_tree(table.fine, estimator, weights, table.rows_per_file, settings, None, until, say)
        if not two:
            return whole
        # the other one is told nothing of partitions that were left out
        own = grow_tree(table.fine, estimator, weights, table.rows_per_file, settings, table.partition, deadline, say)
        return min((own, whole), key=lambda tree: float(weights @ table.rows_read(tree, estimator)))


def grow_tree(
    fine: npt.NDArray[np.int32],
    estimator: Estimator,
    weights: npt.NDArray[np.float64],
    rows_per_file: float,
    settings: GrowSettings | None = None,
    partition: npt.NDArray[np.int32] | None = None,
    deadline: Deadline = NEVER,
    say: Progress = silent,
) -> TreeDraft:
    """The greedy tree for the estimator's queries.

    When the deadline comes no more cuts are looked for: the nodes that are left are cut in the middle, by the columns
    that helped most above, until leaves are files (`TreeDraft.hurried`). That takes about as long as a few sorts of the
    sample.

    Args:
        fine: fine codes of the estimator's sample, shape (features, rows).
        weights: weight of each query, shape (queries,).
        rows_per_file: sample rows that make a file.
        partition: table partition of each row, shape (rows,); None for a single one.
        say: told every `TOLD` seconds how many files were cut.
    """
    chosen = settings or GrowSettings()
    ground = _ground(fine, estimator, weights, rows_per_file, partition)
    least = max(1, int(chosen.sizes[0] * ground.rows_per_file)) if chosen.sizes else 0
    return _grown(ground, weights, chosen, least, chosen.sizes[1] if chosen.sizes else 0.0, deadline, say)


def grow_by_predicates(
    table: SampledTable,
    estimator: Estimator,
    weights: npt.NDArray[np.float64],
    queries: Sequence[Boxes],
    deadline: Deadline = NEVER,
) -> TreeDraft:
    """The qd-tree as published: cuts only where the training queries' predicates begin and end, every leaf a file.

    A leaf has at least b rows; b is the smallest for which there are no more files than other layouts have in all
    partitions: of fewer files more would be read than need be. Cuts learn the training queries by heart, so unseen ones
    read more than under `grow_tree`.

    Args:
        estimator: of the table's sample and the queries.
        weights: weight of each query, shape (queries,).
        queries: the estimator's queries as boxes.
        deadline: when to stop; what is returned then is of no use.
    """
    settings = GrowSettings(quantiles=0, prior=0.0, inner=0, literals=tuple(range_ends(queries, table.encodings)))
    ground = _ground(table.fine, estimator, weights, table.rows_per_file, table.partition)
    rows = np.array([table.rows]) if table.partition is None else np.unique(table.partition, return_counts=True)[1]
    files = int(np.maximum(1, np.round(rows / table.rows_per_file)).sum())
    low, high = max(1, int(table.rows_per_file / 4)), max(2, int(table.rows_per_file))
    best, made = None, 0
    while best is None or (high - low > 1 and made < files):
        least = high if best is None else (low + high) // 2
        tree = replace(_grown(ground, weights, settings, least, deadline=deadline), leaves_are_files=True)
        if deadline.over:
            return tree
        blocks = table.blocks(tree)[1]
        if len(tree.feature) == 1 or blocks <= files:
            best, made, high = tree, blocks, least
        elif best is None:
            high *= 2
        else:
            low = least
    return best


@dataclass(frozen=True, eq=False)
class _Ground:
    """Rows that a tree is grown on, table partition after table partition.

    Attributes:
        partition: table partition of each row, ascending.
        rows_per_file: sample rows that make a file.
    """

    fine: npt.NDArray[np.int32]
    partition: npt.NDArray[np.int32]
    estimator: Estimator
    rows_per_file: float


def _ground(
    fine: npt.NDArray[np.int32],
    estimator: Estimator,
    weights: npt.NDArray[np.float64],
    rows_per_file: float,
    partition: npt.NDArray[np.int32] | None,
) -> _Ground:
    """Of a partitioned table the partitions of several files from which most is read; of another one all of it."""
    if partition is None:
        return _Ground(fine, np.zeros(fine.shape[1], dtype=np.int32), estimator, rows_per_file)
    members = np.argsort(partition, kind="stable")
    starts = np.flatnonzero(np.diff(partition[members], prepend=-1, append=-1))
    rows = np.diff(starts)
    read = asked_of(members, starts, _asked(estimator, weights, partition)) * rows
    several = np.flatnonzero(rows >= LEAST_FILES * rows_per_file)
    candidates = several if len(several) else np.arange(len(rows))
    most = np.sort(candidates[np.argsort(-read[candidates], kind="stable")[:MOST_PARTITIONS]])
    kept = np.concatenate([members[starts[p] : starts[p + 1]] for p in most])
    return _Ground(np.ascontiguousarray(fine[:, kept]), partition[kept], estimator.of_rows(kept), rows_per_file)


def _asked(estimator: Estimator, weights: npt.NDArray[np.float64], partition: npt.NDArray[np.int32]) -> RowsAsked:
    """What the compiled part takes for the queries and where the rows lie."""
    return RowsAsked(
        low=estimator.low,
        high=estimator.high,
        ends=estimator.box_starts,
        column=estimator.column,
        first=estimator.first,
        last=estimator.last,
        box_query=estimator.box_query,
        weights=np.asarray(weights, dtype=np.float64),
        partition=partition,
    )


def _grown(
    ground: _Ground,
    weights: npt.NDArray[np.float64],
    settings: GrowSettings,
    least: int,
    largest: float = 0.0,
    deadline: Deadline = NEVER,
    say: Progress = silent,
) -> TreeDraft:
    nothing = np.zeros(0, dtype=np.int64)
    literals = settings.literals or (nothing,) * len(ground.fine)
    starts = np.concatenate([[0], np.cumsum([len(codes) for codes in literals])]).astype(np.int64)
    how = Growth(
        rows_per_file=float(ground.rows_per_file),
        tolerance=TOLERANCE,
        quantiles=settings.quantiles,
        prior=settings.prior,
        inner=min(settings.inner, INNER_BITS),
        literals=np.concatenate([nothing, *literals]),
        starts=starts,
        least=least,
        largest=largest * ground.rows_per_file,
        most_cuts=MOST_CUTS,
    )
    # not in the main thread: numba runs Python to hand its arrays over, and a signal that comes meanwhile is handled
    # there, and ends as a SystemError or as nothing at all
    watch = np.zeros(3, dtype=np.int64)
    with ThreadPoolExecutor(1) as apart:
        asked = _asked(ground.estimator, weights, ground.partition)
        growing = apart.submit(grown, ground.fine, asked, how, watch)
        try:
            while not wait([growing], min(TOLD, deadline.left) if not watch[STOP] else TOLD).done:
                watch[STOP] = deadline.over
                say(f"{watch[FILES_CUT]:,} of about {ground.fine.shape[1] / ground.rows_per_file:,.0f} files cut")
        finally:
            watch[STOP] = 1  # also of one that nobody waits for any more
        nodes, inside, rows = growing.result()
    feature, cut, low, high, rank = (nodes[row] for row in (FEATURE, CUT, LOW, HIGH, RANK))
    draft = TreeDraft(feature, cut, low, high, rank, inside, hurried=bool(watch[HURRIED]))
    return replace(draft, size=_file_sizes(draft, rows / ground.rows_per_file, largest)) if largest else draft


def _file_sizes(draft: TreeDraft, size: npt.NDArray[np.float64], largest: float) -> npt.NDArray[np.float64]:
    """Rows of the file that each leaf lies in, in units of the target, from those of each node; 1 at inner nodes."""
    size = np.round(size / np.ceil(size / largest), 3)
    if draft.feature[0] == LEAF or (draft.inside[draft.low[0]] and size[0] < LEAST_FILES):
        size[0] = 1.0  # partitions of one file each: what they lack to a whole one is no size of files
    for node in np.flatnonzero(draft.feature != LEAF):  # parents come first
        for child in (draft.low[node], draft.high[node]):
            if draft.inside[child]:
                size[child] = size[node]
    return np.where(draft.feature == LEAF, size, 1.0)


def range_ends(queries: Sequence[Boxes], encodings: Sequence[Encoding]) -> list[Codes]:
    """Codes at which the queries' ranges begin, and those after their ends, by feature: the cuts of a qd-tree."""
    found: list[Codes] = []
    for encoding in encodings:
        sides: dict[Any, set[Value]] = {"left": set(), "right": set()}
        for item in (item for boxes in queries for box in boxes for item in box if item.column == encoding.column):
            for interval in item.tested:
                if interval.low is not None:
                    sides["right" if interval.low_open else "left"].add(interval.low)
                if interval.high is not None:
                    sides["left" if interval.high_open else "right"].add(interval.high)
        inside = np.unique(np.concatenate([_places(encoding, values, side) for side, values in sides.items()]))
        found.append(encoding.codes[inside[(inside > 0) & (inside < len(encoding.codes))]])
    return found


def _places(encoding: Encoding, values: set[Value], side: Any) -> npt.NDArray[np.int64]:
    points = np.empty(len(values), dtype=encoding.starts.dtype)
    whole = points.dtype == np.int64  # a literal may lie outside 64 bits
    points[:] = [min(max(v, -(1 << 63)), (1 << 63) - 1) if whole and isinstance(v, int) else v for v in values]
    return np.searchsorted(encoding.starts, points, side).astype(np.int64)
