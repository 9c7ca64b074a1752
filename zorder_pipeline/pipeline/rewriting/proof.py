"""Proof after a relayout, from the table's own versions, that it changed nothing but where the rows lie."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from zorder_pipeline.relayout.history import commits_after, is_ours, spans
from zorder_pipeline.relayout.session_conf import ALL_ROWS
from zorder_pipeline.relayout.snapshot import TableSnapshot
from zorder_pipeline.relayout.verify import content_hash, row_counts
from zorder_pipeline.state.session_conf import set_for_a_while

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Proof", "prove", "unproven"]

NOTHING = "nothing, as the table's history has no commit of ours since the relayout began"
NOT_KNOWN = ("", "not known")


@dataclass(frozen=True)
class Proof:
    """The table before and after the commits of a relayout; what others committed in between does not count.

    Attributes:
        rows: rows before and after.
        schemas: Spark schemas as JSON, of the versions before the commits and of those after them.
        properties: table properties as JSON; equal when others committed meanwhile, who may have changed them.
        contents: what was compared of the content, as text.
        compared: how: ``hash of every row``, ``nulls per column``, ``rows only``, or ``nothing`` and why.
        file_rows: rows of the new files of partitions that got more than one, as if all were meant to be of equal size,
            shape (files,).
    """

    rows: tuple[int, int]
    schemas: tuple[str, str]
    properties: tuple[str, str]
    contents: tuple[str, str]
    compared: str
    file_rows: tuple[float, ...] = ()

    @property
    def nothing(self) -> bool:
        """Whether nothing could be compared."""
        return self.contents == NOT_KNOWN


def unproven(why: str) -> Proof:
    """Of a relayout after which the table could not be looked at."""
    return Proof((0, 0), ("", ""), ("", ""), NOT_KNOWN, f"nothing, as that failed: {why}")


def prove(before: TableSnapshot, after: TableSnapshot, hashed: bool = False, uneven: bool = False) -> Proof:
    """Compare every commit of ours between two snapshots with the version before it.

    Args:
        before: the table when the relayout began.
        after: the table after it.
        hashed: compare the content of every row, which reads the table twice for each run of commits; without it the
            null counts of the files' statistics are compared.
        uneven: whether the layout means its files to differ in size: how large those are is not looked at then that do
            not tell how large they should be, as those of the public committer.
    """
    with after.reading(), set_for_a_while(after.spark, ALL_ROWS):
        return _proof(before, after, hashed, uneven)


def _proof(before: TableSnapshot, after: TableSnapshot, hashed: bool, uneven: bool) -> Proof:
    spark, location = after.spark, after.location

    def at(version: int) -> DataFrame:
        return spark.read.format("delta").option("versionAsOf", version).load(location)

    between = commits_after(after, before.version)
    ours = [int(row["version"]) for row in between if is_ours(row)]
    alone = len(ours) == len(between) and after.version == max(ours, default=after.version)
    pairs = [(at(old), at(new)) for old, new in spans(ours)]
    sums = [(content_hash(old), content_hash(new)) for old, new in pairs] if hashed else []
    counts = [(old[0], new[0]) for old, new in sums] if hashed else [row_counts(old, new) for old, new in pairs]
    rows = counts[0][0] if counts else at(before.version).count()
    gained = sum(new - old for old, new in counts)
    if not pairs:
        contents, compared = NOT_KNOWN, NOTHING
    elif hashed:
        contents = (str([old for old, _ in sums]), str([new for _, new in sums]))
        compared = "hash of every row"
    elif alone:
        contents, compared = _nulls(before, after), "nulls per column"
    else:
        contents, compared = ("", ""), "rows only"
    return Proof(
        rows=(rows, rows + gained),
        schemas=(str([old.schema.json() for old, _ in pairs]), str([new.schema.json() for _, new in pairs])),
        properties=(_sorted(before.properties), _sorted(after.properties)) if alone else ("", ""),
        contents=contents,
        compared=compared,
        file_rows=_new_file_rows(before, after, uneven),
    )


def _nulls(before: TableSnapshot, after: TableSnapshot) -> tuple[str, str]:
    """Nulls of each column of which both versions tell how many live rows have."""
    old, new = _live_nulls(before), _live_nulls(after)
    both = old.keys() & new.keys()  # a rewrite may be the first to count a column's, if properties ask for it now
    return _sorted({name: old[name] for name in both}), _sorted({name: new[name] for name in both})


def _live_nulls(snapshot: TableSnapshot) -> dict[str, int]:
    """Nulls by column; of those alone whose files all count them, and none of the rows that deletion vectors hide."""
    files = snapshot.files()
    counts = {name: zone.null_count for name, zone in files.zones.items()}
    whole = files.deleted == 0
    found = {name: int(told.sum()) for name, told in counts.items() if np.all((told == 0) | ((told > 0) & whole))}
    for i, name in enumerate(snapshot.partition_columns):
        null = np.fromiter((not values[i] for values in files.partitions), np.bool_, len(files.rows))
        found[name] = int(files.rows[null].sum())
    return found


def _new_file_rows(before: TableSnapshot, after: TableSnapshot, uneven: bool) -> tuple[float, ...]:
    files, known = after.files(), set(before.files().path.tolist())
    new = [i for i, path in enumerate(files.path.tolist()) if path not in known and files.layout[i]]
    even_rows = files.even_rows(untold=math.nan if uneven else 1.0)
    members: dict[tuple[str | None, ...], list[float]] = {}
    for i in new:
        members.setdefault(files.partitions[i], []).append(float(even_rows[i]))
    return tuple(rows for found in members.values() if len(found) > 1 for rows in found if not math.isnan(rows))


def _sorted(values: dict[str, Any]) -> str:
    return json.dumps(values, sort_keys=True)
