"""What queries read at the version that a relayout replaced, and at the one that it made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from zorder_pipeline.errors import TableError
from zorder_pipeline.gate.benefit import observed_rate
from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.learning.volumes import FileVolumes, present_volumes
from zorder_pipeline.pipeline.partition_conditions import boxes_on
from zorder_pipeline.pipeline.renames import as_called_now, as_called_then
from zorder_pipeline.relayout.snapshot import TableSnapshot

__all__ = ["compared", "latest_of"]

ENOUGH = 5
"""Different queries, by what they filter, without which nothing is said about a promise."""

Floats = npt.NDArray[np.float64]


def compared(
    now: TableSnapshot,
    versions: tuple[int, int],
    queries: Sequence[LoggedQuery],
    pages: bool,
    spanned: tuple[int, int] | None = None,
) -> dict[str, float | int | None] | None:
    """What the state notes of a relayout; None where too few queries tell, or Delta's log no longer holds a version.

    Args:
        now: the table.
        versions: the one that was replaced, and the one that was made.
        pages: tell by Parquet's pages, too, for which files are read.
        spanned: the queries are all that came between these moments, microseconds since 1970 UTC; None where they are
            others, such as those of the promise, and tell no rate.
    """
    conditions = [query.condition for query in queries]
    asked = Asked.alike([(query.condition, query.columns) for query in queries], conditions)
    if asked.conditions < ENOUGH:
        return None
    statements = as_called_now(asked.each(queries), now.asked_schema)
    try:
        before, after = (_at(now, version, statements, pages) for version in versions)
    except TableError:
        return None
    return _difference(before, after, queries, asked.times, spanned)


def latest_of(queries: Sequence[LoggedQuery]) -> int | None:
    """When the newest of some queries was asked, microseconds since 1970 UTC; None where no time is known."""
    return max((query.timestamp for query in queries if query.timestamp is not None), default=None)


def _at(now: TableSnapshot, version: int, queries: Sequence[LoggedQuery], pages: bool) -> FileVolumes:
    snapshot = now.at(version)
    called = as_called_then(queries, now.leaves, snapshot.leaves)
    boxes = boxes_on(snapshot, called)
    found = present_volumes(snapshot, called, boxes, pages)
    return replace(found, rows=found.rows / max(1, int(snapshot.files().rows.sum())))


def _difference(
    before: FileVolumes,
    after: FileVolumes,
    queries: Sequence[LoggedQuery],
    times: Floats,
    spanned: tuple[int, int] | None,
) -> dict[str, float | int | None]:
    """What is noted of a relayout.

    Args:
        before, after: what each statement reads.
        times: how often each of them was asked.
        spanned: see `compared`.
    """

    def mean(values: Floats) -> float:
        return float(np.average(values, weights=times))

    values: dict[str, float | int | None] = {
        "bytes_saved": None,  # of other queries than those: what was measured before says nothing
        "page_bytes_saved": None,
        "queries": len(queries),
        "since": min((query.timestamp for query in queries if query.timestamp is not None), default=None),
        "until": latest_of(queries),
        "before": mean(before.rows),
        "after": mean(after.rows),
        "files_saved": mean(before.files - after.files),
    }
    if before.weighed and after.weighed:  # else VACUUM has removed the files that were replaced
        values["bytes_saved"] = mean(before.bytes - after.bytes)
        if before.pages is not None and after.pages is not None:
            values["page_bytes_saved"] = mean(before.pages - after.pages)
    if spanned is None:
        return values
    rate, source = observed_rate([query.timestamp for query in queries], len(queries), *spanned)
    return values | ({"per_day": rate} if source == "observed" else {})
