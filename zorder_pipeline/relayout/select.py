"""Which files a relayout rewrites."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from zorder_pipeline.errors import NoPartitionError, TableError
from zorder_pipeline.model.spark_sql import bracketed

from .file_list import FileList
from .partition_values import typed_partitions
from .snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame

__all__ = ["SMALL_SHARE", "Selection", "bins_of", "in_partitions", "much_deleted", "select_files"]

DELETED_SHARE = 0.1
"""A file of ours with more of its rows hidden by a deletion vector is rewritten."""
SMALL_SHARE = 0.5
"""A file of ours below this share of the target is merged, when the partition has another one or something new."""
MERGE_RATIO = 1.0
"""An older generation is merged with newer rows when it has at most so many times as many."""
REFUSED = {
    "INVALID_NON_DETERMINISTIC_EXPRESSIONS": "it would pick other partitions each time",
    "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY": "it has a subquery",
    "UNSUPPORTED_FEATURE.LAMBDA_FUNCTION_WITH_PYTHON_UDF": "it calls a function written in Python",
}
"""What a condition may not have that Spark itself would take, by the beginning of Spark's error."""


@dataclass(frozen=True)
class Selection:
    """Indices into a `FileList`: files to rewrite, and those in the chosen partitions that stay."""

    rewrite: npt.NDArray[np.int64]
    keep: npt.NDArray[np.int64]


def select_files(
    snapshot: TableSnapshot,
    layout_id: str,
    target_rows: int,
    *,
    where: str | None = None,
    full: bool = False,
    done: int | None = None,
    smallest: float = 1.0,
) -> Selection:
    """Files to rewrite: all of them when ``full``, but for what a run before has done, else those that do not lie by
    ``layout_id`` or no longer do well.

    A file of ours is rewritten when too many of its rows are deleted, or when it is small and its partition has other
    files to rewrite or at least one more small one. And where something is rewritten, the generations before it are
    merged with it as long as each has at most `MERGE_RATIO` times the rows gathered so far, newest first: like the
    digits of a counter, n nightly appends so leave about log2(n) generations that overlap, and each row is rewritten
    as often. A second run finds nothing. Where only whole partitions can be replaced, one file chosen means all.

    Args:
        where: condition on partition columns.
        done: version after which files that lie by the layout were written by what is done in full; None for none.
        smallest: rows of the layout's smallest files in units of ``target_rows``, for those that do not tell theirs.

    Raises:
        TableError: ``where`` is malformed or names other columns.
    """
    files = snapshot.files()
    chosen = in_partitions(snapshot, files, where)
    ours = files.lies_by(layout_id)
    deleted = much_deleted(files)
    needed = chosen & (~ours | deleted)
    if full:
        needed = chosen if done is None else needed | (chosen & (files.generation <= done))
    even_rows = np.where(ours, files.even_rows(smallest), files.rows)
    small = chosen & ours & ~deleted & (even_rows < SMALL_SHARE * target_rows)
    part = files.partition_codes
    size = int(part.max(initial=-1)) + 1
    busy = np.bincount(part[needed], minlength=size) > 0
    lone = np.bincount(part[small], minlength=size) > 1
    mergeable = (busy | lone)[part]
    rewrite = needed | (small & mergeable & _worth_merging(files, even_rows, small, needed, target_rows))
    rewrite |= _older_generations(files, chosen & ours & ~deleted, needed)
    if snapshot.whole_partitions:
        rewrite = (np.bincount(part[rewrite], minlength=size) > 0)[part]
    return Selection(np.flatnonzero(rewrite), np.flatnonzero(chosen & ~rewrite))


def _older_generations(
    files: FileList, ours: npt.NDArray[np.bool_], needed: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Which of ``ours`` are merged with what is ``needed`` in their partition, a whole generation at a time."""
    part = files.partition_codes
    gathered = np.bincount(part[needed], weights=files.rows[needed], minlength=int(part.max(initial=-1)) + 1)
    candidates = np.flatnonzero(ours & (gathered[part] > 0))
    runs, run_of = np.unique(
        np.stack([part[candidates], -files.generation[candidates]], axis=1), axis=0, return_inverse=True
    )
    rows = np.bincount(run_of, weights=files.rows[candidates], minlength=len(runs))
    merged = np.zeros(len(runs), dtype=np.bool_)
    closed = -1
    for run, (partition, _) in enumerate(runs.tolist()):  # the newest generation of a partition first
        if partition == closed:
            continue
        if rows[run] > MERGE_RATIO * gathered[partition]:
            closed = partition
        else:
            gathered[partition] += rows[run]
            merged[run] = True
    result = np.zeros(len(files), dtype=np.bool_)
    result[candidates] = merged[run_of]
    return result


def bins_of(files: FileList, rewrite: npt.NDArray[np.int64], most_bytes: int) -> list[npt.NDArray[np.int64]]:
    """``rewrite`` in bins of whole partitions, each of about ``most_bytes`` at most: what is committed at a time.

    A partition larger than that is a bin of its own.
    """
    codes = files.partition_codes[rewrite]
    order = np.argsort(codes, kind="stable")
    edges = np.flatnonzero(np.diff(codes[order])) + 1
    members = {files.partitions[run[0]]: run.tolist() for run in np.split(rewrite[order], edges) if len(run)}
    bins: list[list[int]] = []
    size = 0
    for partition in sorted(members, key=lambda values: tuple((value is not None, value or "") for value in values)):
        more = int(files.bytes[members[partition]].sum())
        if not bins or size + more > most_bytes:
            bins.append([])
            size = 0
        bins[-1] += members[partition]
        size += more
    return [np.sort(np.array(item, dtype=np.int64)) for item in bins]


def _worth_merging(
    files: FileList,
    even_rows: npt.NDArray[np.float64],
    small: npt.NDArray[np.bool_],
    needed: npt.NDArray[np.bool_],
    target_rows: int,
) -> npt.NDArray[np.bool_]:
    """Per file, whether its partition comes out in fewer files when the small ones are laid out with what is needed.

    They would come out as they went in otherwise. What is needed is rewritten in any case: what it makes alone counts.
    """
    part = files.partition_codes
    size = int(part.max(initial=-1)) + 1

    def made(some: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        rows = np.bincount(part[some], weights=even_rows[some], minlength=size)
        return np.asarray(np.where(rows > 0, np.maximum(1, np.round(rows / target_rows)), 0.0))

    fewer = made(small | needed) < made(needed) + np.bincount(part[small], minlength=size)
    return np.asarray(fewer[part], dtype=np.bool_)


def much_deleted(files: FileList) -> npt.NDArray[np.bool_]:
    """Which files have more than `DELETED_SHARE` of their rows hidden by a deletion vector."""
    return np.asarray(files.deleted > DELETED_SHARE * np.maximum(1, files.rows + files.deleted), dtype=np.bool_)


def in_partitions(snapshot: TableSnapshot, files: FileList, where: str | None) -> npt.NDArray[np.bool_]:
    """Which files lie in the partitions that a condition on partition columns picks; all without one.

    Raises:
        TableError: ``where`` is malformed, or names other columns.
        NoPartitionError: it matches no partition.
    """
    if where is None:
        return np.ones(len(files), dtype=np.bool_)
    if not snapshot.partition_columns:
        raise TableError(f"--where needs a partitioned table, and {snapshot.location} has no partition columns")
    return _matching_partitions(snapshot, files, where)


def _matching_partitions(snapshot: TableSnapshot, files: FileList, where: str) -> npt.NDArray[np.bool_]:
    from pyspark.errors import PySparkException

    names, place = snapshot.partition_columns, f"__place_{uuid.uuid4().hex}"  # a name that no condition can have
    distinct = list(set(files.partitions))
    typed = typed_partitions(snapshot, distinct, place)
    try:
        picked = typed.where(where).select(place)
        _ = picked.schema  # Spark Connect looks at a condition only when asked for something
        _refuse_more_than_columns(typed, where)
        if not _names_one(where, names):
            raise TableError(_unusable(where, "it names no partition column", names))
        kept = {row[place] for row in picked.collect()}
    except PySparkException as error:
        raise TableError(_unusable(where, _problem_of(error), names)) from error
    if not kept:
        raise NoPartitionError(
            f"--where {where!r} matches no partition of {snapshot.location}; it has {len(distinct)} partitions"
        )
    chosen = {distinct[i] for i in kept}
    return np.array([values in chosen for values in files.partitions], dtype=np.bool_)


def _refuse_more_than_columns(typed: DataFrame, where: str) -> None:
    """Have Spark refuse a condition of the rows ``typed`` that it would take but that asks for more than their columns.

    No public API tells what an expression is made of, but where Spark takes which is the same in every session: a join
    takes none that is not deterministic, the body of a lambda function no subquery and no function of Python.

    Raises:
        PySparkException: it is refused; `REFUSED` says what for.
    """
    from pyspark.sql import functions as F

    one = typed.select(F.lit(1).alias(f"__one_{uuid.uuid4().hex}"))
    _ = typed.join(one, F.exists(F.array(F.lit(True)), lambda _: F.expr(where))).schema


def _names_one(where: str, names: Sequence[str]) -> bool:
    """Whether a condition that Spark takes names one of some columns; also where that cannot be told.

    >>> [_names_one(text, ["ds"]) for text in ("`DS` = 1", "'ds' = 'ds'", "length(ds) > 3", "current_date() > '2026'")]
    [True, False, True, False]
    >>> _names_one("load = '2026-01-01'", ["load"])
    True
    """
    import sqlglot
    from sqlglot import exp

    try:
        # in brackets, as a text that begins with some words is a command
        found = sqlglot.parse_one(bracketed(where), dialect="spark").find_all(exp.Column)
        return not {name.lower() for name in names}.isdisjoint(column.name.lower() for column in found)
    except sqlglot.errors.SqlglotError:
        return True


def _unusable(where: str, problem: str, names: Sequence[str]) -> str:
    return (
        f"--where {where!r} cannot be used: {problem}; it has to be a condition on the partition columns "
        f"{', '.join(names)}"
    )


def _problem_of(error: PySparkException) -> str:
    """What is wrong with a condition; Spark's own words where we have none."""
    condition = error.getCondition() or ""
    if condition.startswith("UNRESOLVED_COLUMN"):
        return f"{(error.getMessageParameters() or {})['objectName']} is no partition column"
    if (known := next((words for name, words in REFUSED.items() if condition.startswith(name)), None)) is not None:
        return known
    return re.sub(r"\s+", " ", str(error).strip().splitlines()[0]).rstrip(";. ")
