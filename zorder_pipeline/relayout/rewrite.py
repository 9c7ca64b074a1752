"""The relayout: read the chosen files, route every row to its file in one shuffle, sort inside, commit once."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zorder_pipeline.errors import LostRaceError
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.spark_sql import column_sql

from .commit import Transaction, actions_summary
from .key_column import FILE, KEY, RANGE, number_of_starts, with_key
from .select import Selection, select_files
from .snapshot import TableSnapshot
from .verify import check_counts, check_hashes, content_hash

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Cutter", "RelayoutResult", "apply_layout"]

ATTEMPTS = 3
_STARTS, _OFFSETS, _PIECES, _ROW = "__zorder_starts", "__zorder_offsets", "__zorder_pieces", "__zorder_row"
_ARRAYS = (_STARTS, _OFFSETS, _PIECES)
Progress = Callable[[str], None]


class _Cuts(Protocol):
    """Where files begin; see `zorder_pipeline.layout.cells.Cuts`."""

    @property
    def starts(self) -> npt.NDArray[np.int64]: ...
    @property
    def pieces(self) -> npt.NDArray[np.int64]: ...


Cutter = Callable[[npt.NDArray[np.int64], npt.NDArray[np.int64]], _Cuts]
"""From the keys that occur in a partition and their rows to its files."""


@dataclass(frozen=True)
class RelayoutResult:
    """What a relayout did (or, in a dry run, would do).

    Attributes:
        version: table version afterwards.
        files_removed, files_added: files replaced and written.
        bytes_rewritten, bytes_added: bytes of the replaced and of the written files.
        rows: rows rewritten.
        skipped_files: live files left as they were.
        committed: whether a new version was made.
        seconds: time taken.
    """

    version: int
    files_removed: int
    files_added: int
    bytes_rewritten: int
    bytes_added: int
    rows: int
    skipped_files: int
    committed: bool
    seconds: float


def _silent(text: str) -> None:
    """Progress that nobody wants to see."""


def apply_layout(
    spark: SparkSession,
    snapshot: TableSnapshot,
    spec: KeySpec,
    *,
    cutter: Cutter,
    target_rows: int,
    hilbert_table: npt.NDArray[np.int64] | None = None,
    where: str | None = None,
    full: bool = False,
    dry_run: bool = False,
    verify: str = "counts",
    row_group_bytes: int | None = None,
    progress: Progress | None = None,
) -> RelayoutResult:
    """Rewrite the files that do not lie by ``spec``, in one transaction.

    Args:
        cutter: makes files out of a histogram of keys.
        hilbert_table: see `with_key`.
        where: condition on partition columns.
        full: rewrite files that lie by ``spec`` already, too.
        verify: ``counts`` compares rows read and written; ``hash`` also a hash of their content, read back.
        row_group_bytes: size of row groups; None leaves it to the session and the table.

    Raises:
        LostRaceError: other writers changed the files in each of three attempts.
        VerificationError: the written rows differ.
    """
    say = progress or _silent
    started = time.monotonic()
    for attempt in range(1, ATTEMPTS + 1):
        selection = select_files(snapshot, spec.layout_id, target_rows, where=where, full=full)
        if dry_run or not len(selection.rewrite):
            return _unchanged(snapshot, selection, target_rows, time.monotonic() - started)
        try:
            return _attempt(snapshot, selection, spec, cutter, hilbert_table, verify, row_group_bytes, say, started)
        except LostRaceError:
            if attempt == ATTEMPTS:
                raise
            say("another writer was faster: trying again on the files that are left")
            from .snapshot import open_table

            snapshot = open_table(spark, snapshot.location)
    raise AssertionError("unreachable")


def _unchanged(snapshot: TableSnapshot, selection: Selection, target_rows: int, seconds: float) -> RelayoutResult:
    files = snapshot.files()
    chosen = selection.rewrite
    rows = int(files.rows[chosen].sum())
    partitions: dict[tuple[str | None, ...], int] = {}
    for i in chosen:
        partitions[files.partitions[i]] = partitions.get(files.partitions[i], 0) + int(files.rows[i])
    added = sum(max(1, round(count / target_rows)) for count in partitions.values() if count)
    size = int(files.bytes[chosen].sum())
    skipped = len(files) - len(chosen)
    return RelayoutResult(snapshot.version, len(chosen), added, size, size, rows, skipped, False, seconds)


def _attempt(
    snapshot: TableSnapshot,
    selection: Selection,
    spec: KeySpec,
    cutter: Cutter,
    hilbert_table: npt.NDArray[np.int64] | None,
    verify: str,
    row_group_bytes: int | None,
    say: Progress,
    started: float,
) -> RelayoutResult:
    files = snapshot.files()
    chosen = selection.rewrite
    transaction = Transaction(snapshot, files.path[chosen].tolist())
    _refuse_changed_inputs(transaction, snapshot, chosen)
    expected, size = int(files.rows[chosen].sum()), int(files.bytes[chosen].sum())
    say(f"rewriting {len(chosen)} files, {size:,} bytes, {expected:,} rows")
    rows = transaction.input_rows()
    keyed = with_key(rows, spec, snapshot.paths, hilbert_table)
    histogram = _histogram(keyed, snapshot.partition_columns)
    routed, number = _routed(keyed, histogram, snapshot.partition_columns, cutter)
    say(f"counted {len(histogram[0])} key cells, writing {number} files")
    by = [column_sql((name,)) for name in (*snapshot.partition_columns, KEY)]
    by += [column_sql(snapshot.paths[name]) for name in spec.tie_break]
    from pyspark.sql import functions as F

    ordered = routed.repartitionById(number, F.col(FILE).cast("int")).sortWithinPartitions(
        *(F.expr(item) for item in by)
    )
    conf = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS", "spark.sql.files.maxRecordsPerFile": "0"}
    if row_group_bytes is not None:
        conf["parquet.block.size"] = str(row_group_bytes)
    visible = [column_sql((name,)) for name in snapshot.struct.names]
    before = content_hash(rows.select(*visible)) if verify == "hash" else None
    try:
        added = transaction.write(ordered.select(*(F.col(column_sql((name,))) for name in rows.columns)), conf)
        count, written, bytes_added = actions_summary(added)
        check_counts(expected, written)
        if before is not None:
            check_hashes(before, content_hash(transaction.written_rows().select(*visible)))
        metrics = {
            "numAddedFiles": count,
            "numRemovedFiles": len(chosen),
            "numAddedBytes": bytes_added,
            "numRemovedBytes": size,
            "numOutputRows": written,
        }
        version = transaction.commit(spec.layout_id, transaction.read_version + 1, metrics, spec.columns)
    except BaseException:
        transaction.discard()
        raise
    say(f"committed version {version}")
    seconds = time.monotonic() - started
    return RelayoutResult(
        version, len(chosen), count, size, bytes_added, written, len(files) - len(chosen), True, seconds
    )


def _refuse_changed_inputs(transaction: Transaction, snapshot: TableSnapshot, chosen: npt.NDArray[np.int64]) -> None:
    """The transaction may start at a newer version than was planned for: every input must still be as it was."""
    if transaction.read_version == snapshot.version:
        return
    planned, now = snapshot.files(), transaction.current.files()
    live = {path: int(deleted) for path, deleted in zip(now.path, now.deleted, strict=True)}
    changed = [i for i in chosen if live.get(planned.path[i]) != int(planned.deleted[i])]
    if changed:
        raise LostRaceError(
            f"{len(changed)} of the {len(chosen)} files to rewrite in {snapshot.location} were changed meanwhile; "
            "nothing was committed, run it again"
        )


Histogram = tuple[list[tuple[Any, ...]], npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Partition values, key and rows, one entry per partition and key that occurs."""


def _histogram(keyed: DataFrame, partitions: tuple[str, ...]) -> Histogram:
    """Rows per partition and key: a scan of the key's columns alone."""
    from pyspark.sql import functions as F

    names = [column_sql((name,)) for name in partitions]
    aliased = [F.expr(name).alias(f"p{i}") for i, name in enumerate(names)]
    table = keyed.select(*aliased, KEY).groupBy(*(f"p{i}" for i in range(len(names))), KEY).count().toArrow()
    values = list(zip(*(table[f"p{i}"].to_pylist() for i in range(len(names))), strict=True)) if names else []
    keys = table[KEY].to_numpy().astype(np.int64)
    return values or [()] * len(keys), keys, table["count"].to_numpy().astype(np.int64)


def _routed(
    keyed: DataFrame, histogram: Histogram, partitions: tuple[str, ...], cutter: Cutter
) -> tuple[DataFrame, int]:
    """``keyed`` with the column `FILE`, and the number of files."""
    from pyspark.sql import functions as F

    values, keys, counts = histogram
    members: dict[tuple[Any, ...], list[int]] = {}
    for i, value in enumerate(values):
        same = tuple(math.nan if item != item else item for item in value)  # one NaN for all: it is not equal to itself
        members.setdefault(same, []).append(i)
    plans: list[tuple[tuple[Any, ...], list[int], list[int], list[int]]] = []
    number = 0
    for value, index in members.items():
        place = np.array(index)[np.argsort(keys[index])]
        cuts = cutter(keys[place], counts[place])
        offsets = number + np.concatenate([[0], np.cumsum(cuts.pieces)[:-1]])
        plans.append((value, cuts.starts.tolist(), offsets.tolist(), cuts.pieces.tolist()))
        number += int(cuts.pieces.sum())
    longest = max((len(starts) for _, starts, _, _ in plans), default=0)
    if partitions:
        keyed = _joined(keyed, plans, partitions)
    else:
        arrays = dict(zip(_ARRAYS, plans[0][1:], strict=True))
        literals = {name: F.from_json(F.lit(json.dumps(items)), "array<bigint>") for name, items in arrays.items()}
        keyed = keyed.withColumns(literals)
    dealt = any(count > 1 for _, _, _, pieces in plans for count in pieces)
    if dealt:  # deterministic: a retried task must send its rows where the first try did
        keyed = keyed.withColumn(_ROW, F.monotonically_increasing_id())
    ranged = number_of_starts(keyed, F.col(KEY), F.col(_STARTS), longest, RANGE)
    target = F.get(F.col(_OFFSETS), F.col(RANGE))
    if dealt:
        target = target + F.pmod(F.col(_ROW), F.get(F.col(_PIECES), F.col(RANGE)))
    return ranged.withColumn(FILE, target), number


def _joined(keyed: DataFrame, plans: list[tuple[Any, ...]], partitions: tuple[str, ...]) -> DataFrame:
    """Each row with its partition's arrays, by a broadcast join."""
    from pyspark.sql import functions as F

    # as an Arrow table, which the JVM reads itself: executors need no Python
    columns: dict[str, Any] = {f"__zorder_p{i}": [plan[0][i] for plan in plans] for i in range(len(partitions))}
    columns |= {name: pa.array([plan[1 + i] for plan in plans], pa.list_(pa.int64())) for i, name in enumerate(_ARRAYS)}
    small = keyed.sparkSession.createDataFrame(pa.table(columns))
    for i, name in enumerate(partitions):
        small = small.withColumn(f"__zorder_p{i}", F.col(f"__zorder_p{i}").cast(keyed.schema[name].dataType))
    condition = F.lit(True)
    for i, name in enumerate(partitions):
        condition = condition & F.expr(column_sql((name,))).eqNullSafe(F.col(f"__zorder_p{i}"))
    return keyed.join(F.broadcast(small), condition, "left").drop(*(f"__zorder_p{i}" for i in range(len(partitions))))
