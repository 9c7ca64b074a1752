"""How many rows of a relayout lie by it still, told by the generations of a version's files."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence

from zorder_pipeline.state.entry import Entry

__all__ = ["standing"]


def standing(entry: Entry, entries: Sequence[Entry]) -> Callable[[Mapping[int, int]], float]:
    """What tells of a version how many rows of a relayout lie by its layout there, as it or a later one laid them out.

    Files of a relayout are known by their generation, whatever else lies by the same layout. Later relayouts by it
    merge some of them with what is new; of what these wrote, the share counts that came from there. A later generation
    of which the ledger does not tell what was merged, as of a relayout without a state, counts in whole.

    Args:
        entries: relayouts of the table, all after ``entry`` among them.

    Returns:
        From the rows of each generation of the layout (`zorder_pipeline.relayout.file_list.FileList.generations`) to
        the rows that count.
    """
    made, parts = [entry], [1.0]

    def share(generation: int) -> float:
        if generation <= entry.replaced_version:
            return 0.0
        first = bisect_left(made, generation, key=lambda one: one.version)
        makers = (i for i in range(first, len(made)) if made[i].replaced_version < generation)
        return next((parts[i] for i in makers), 1.0)

    def rows_of(generations: Mapping[int, int]) -> float:
        return sum(rows * share(generation) for generation, rows in generations.items())

    later = (one for one in entries if one.version > entry.version and one.layout_id == entry.layout_id)
    for one in sorted(later, key=lambda one: one.version):
        if one.merged is not None:  # what it merged came before it, so the shares of that are known
            parts.append(min(1.0, rows_of(one.merged) / max(1, one.rows)))
            made.append(one)
    return rows_of
