"""What queries read before the commits of a relayout, and after them."""

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
from zorder_pipeline.relayout.history import commits_after, spans, versions_of
from zorder_pipeline.relayout.snapshot import TableSnapshot
from zorder_pipeline.state.entry import Entry

__all__ = ["compared", "latest_of", "spans_of"]

ENOUGH = 5
"""Different queries, by what they filter, without which nothing is said about a promise."""
MOST_SPANS = 8
"""Pairs of versions that are compared of one relayout. Of one of more bins, between which others went on committing,
what these changed counts, too."""

Floats = npt.NDArray[np.float64]


def spans_of(now: TableSnapshot, entry: Entry) -> list[tuple[int, int]]:
    """Versions before and after the commits of a relayout: what others committed while it was at work is between them.

    Where the table's history does not tell them, the version that it began with and the newest that it made. At most
    `MOST_SPANS`, or the version before the first and the newest.
    """
    first, last = entry.replaced_version, entry.version
    if last == first + 1:
        return [(first, last)]
    between = [row for row in commits_after(now, first) if int(row["version"]) <= last]
    own = versions_of(between, entry.run, last) if len(between) == last - first else []
    found = spans(own) or [(first, last)]
    return found if len(found) <= MOST_SPANS else [(found[0][0], last)]


def compared(
    now: TableSnapshot,
    versions: Sequence[tuple[int, int]],
    queries: Sequence[LoggedQuery],
    pages: bool,
    spanned: tuple[int, int] | None = None,
) -> dict[str, float | int | None] | None:
    """What the state notes of a relayout; None where too few queries tell, or Delta's log no longer holds a version.

    Args:
        now: the table.
        versions: before and after its commits, the oldest first; see `spans_of`.
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
        found = [(_at(now, old, statements, pages), _at(now, new, statements, pages)) for old, new in versions]
    except TableError:
        return None
    return _difference(*_as_one(found), queries, asked.times, spanned)


def latest_of(queries: Sequence[LoggedQuery]) -> int | None:
    """When the newest of some queries was asked, microseconds since 1970 UTC; None where no time is known."""
    return max((query.timestamp for query in queries if query.timestamp is not None), default=None)


def _at(now: TableSnapshot, version: int, queries: Sequence[LoggedQuery], pages: bool) -> FileVolumes:
    snapshot = now.at(version)
    called = as_called_then(queries, now.leaves, snapshot.leaves)
    boxes = boxes_on(snapshot, called)
    found = present_volumes(snapshot, called, boxes, pages)
    return replace(found, rows=found.rows / max(1, int(snapshot.files().rows.sum())))


def _as_one(found: Sequence[tuple[FileVolumes, FileVolumes]]) -> tuple[FileVolumes, FileVolumes]:
    """What is read before the first of some commits, and after all of them if nothing else came between."""
    (before, after), *others = found
    for old, new in others:
        pages = None
        if after.pages is not None and old.pages is not None and new.pages is not None:
            pages = after.pages - (old.pages - new.pages)
        after = FileVolumes(
            bytes=after.bytes - (old.bytes - new.bytes),
            files=after.files - (old.files - new.files),
            rows=after.rows - (old.rows - new.rows),
            groups=after.groups - (old.groups - new.groups),
            pages=pages,
            weighed=after.weighed and old.weighed and new.weighed,
        )
    return before, after


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
