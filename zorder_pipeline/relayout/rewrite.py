"""The relayout: read the chosen files, route every row to its file in one shuffle, sort inside, commit bin by bin."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline.errors import LostRaceError, TableError
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.spark_sql import column_sql
from zorder_pipeline.model.values import canonical_array, order_key

from .commit import Transaction, actions_summary, told_plainly
from .key_column import KEY, with_key
from .routing import Cutter, histogram_of, routed, to_files
from .select import bins_of, select_files
from .snapshot import FileList, TableSnapshot, open_table
from .verify import check_counts, check_hashes, content_hash

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BIN_BYTES", "Cutter", "Extender", "RelayoutResult", "apply_layout"]

ATTEMPTS = 3
BIN_BYTES = 100 << 30
"""Bytes of input that are committed at a time, as far as whole partitions allow."""
EXTENSION_ROWS = 20_000
"""Rows looked at to extend a layout for values beyond its range."""

Progress = Callable[[str], None]
Columns = Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]]
Extender = Callable[[KeySpec, Columns], KeySpec]
"""From a key and a sample of rows to the key that also divides values beyond its range."""


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
        held: why it was stopped before its last bin, "" when it was not.
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
    held: str = ""


def _silent(text: str) -> None:
    """Progress that nobody wants to see."""


@dataclass(frozen=True)
class _Work:
    """How files are rewritten; see `apply_layout`."""

    spec: KeySpec
    cutter: Cutter
    extend: Extender | None
    hilbert_table: npt.NDArray[np.int64] | None
    verify: str
    row_group_bytes: int | None
    say: Progress


def apply_layout(
    spark: SparkSession,
    snapshot: TableSnapshot,
    spec: KeySpec,
    *,
    cutter: Cutter,
    target_rows: int,
    extend: Extender | None = None,
    hilbert_table: npt.NDArray[np.int64] | None = None,
    where: str | None = None,
    full: bool = False,
    dry_run: bool = False,
    verify: str = "counts",
    row_group_bytes: int | None = None,
    bin_bytes: int = BIN_BYTES,
    hold: Callable[[], str | None] | None = None,
    progress: Progress | None = None,
) -> RelayoutResult:
    """Rewrite the files that do not lie by ``spec``.

    Every bin of partitions is one transaction, all or nothing. A run that is stopped keeps the bins that it has
    committed, and the next one goes on with the rest; a table without partitions is a single bin.

    Args:
        cutter: makes files out of a histogram of keys.
        extend: gives values beyond the key's range codes of their own; without it they share the last one.
        hilbert_table: see `with_key`.
        where: condition on partition columns.
        full: rewrite files that lie by ``spec`` already, too.
        verify: ``counts`` compares rows read and written; ``hash`` also a hash of their content, read back.
        row_group_bytes: size of row groups; None leaves it to the session and the table.
        bin_bytes: see `bins_of`.
        hold: asked before each bin; a sentence stops the run there, and what was committed stays.

    Raises:
        LostRaceError: other writers changed the files of a bin in each of three attempts.
        VerificationError: the written rows differ.
    """
    work = _Work(spec, cutter, extend, hilbert_table, verify, row_group_bytes, progress or _silent)
    started = time.monotonic()
    selection = select_files(snapshot, spec.layout_id, target_rows, where=where, full=full)
    if dry_run or not len(selection.rewrite):
        return _unchanged(snapshot, selection.rewrite, target_rows, time.monotonic() - started)
    files = snapshot.files()
    bins = bins_of(files, selection.rewrite, bin_bytes)
    total, done = float(files.bytes[selection.rewrite].sum()), 0.0
    results: list[RelayoutResult] = []
    held = ""
    for number, chosen in enumerate(bins, 1):
        if hold is not None and (why := hold()):
            held = f"stopped after {number - 1} of {len(bins)} bins: {why}"
            work.say(held)
            break
        if len(bins) > 1:
            spent = time.monotonic() - started
            left = f", about {spent / done * (total - done):,.0f} s left" if done else ""
            work.say(f"bin {number} of {len(bins)}: {done / total:.0%} of the bytes done{left}")
        try:
            results.append(_bin(spark, snapshot, chosen, work, target_rows, full))
        except LostRaceError as error:
            if not results:
                raise
            raise LostRaceError(
                f"{error}; {len(results)} of {len(bins)} bins were committed before, a new run goes on with the rest"
            ) from error
        done += float(files.bytes[chosen].sum())
    return RelayoutResult(
        version=results[-1].version if results else snapshot.version,
        files_removed=sum(result.files_removed for result in results),
        files_added=sum(result.files_added for result in results),
        bytes_rewritten=sum(result.bytes_rewritten for result in results),
        bytes_added=sum(result.bytes_added for result in results),
        rows=sum(result.rows for result in results),
        skipped_files=len(files) - sum(result.files_removed for result in results),
        committed=any(result.committed for result in results),
        seconds=time.monotonic() - started,
        held=held,
    )


def _bin(
    spark: SparkSession,
    snapshot: TableSnapshot,
    chosen: npt.NDArray[np.int64],
    work: _Work,
    target_rows: int,
    full: bool,
) -> RelayoutResult:
    """One transaction, tried again on what is left when another writer was faster."""
    partitions = {snapshot.files().partitions[i] for i in chosen}
    for attempt in range(1, ATTEMPTS + 1):
        if not len(chosen):
            break
        try:
            with told_plainly(snapshot.location):
                return _attempt(snapshot, chosen, work)
        except LostRaceError:
            if attempt == ATTEMPTS:
                raise
            work.say("another writer was faster: trying again on the files that are left")
            snapshot = open_table(spark, snapshot.location)
            if gone := [column for column in work.spec.table_columns if column not in snapshot.paths]:
                raise TableError(
                    f"column {gone[0]} of the layout was dropped or renamed in {snapshot.location} during the "
                    "relayout; nothing was committed, learn a new plan"
                ) from None
            again = select_files(snapshot, work.spec.layout_id, target_rows, full=full).rewrite
            here = [snapshot.files().partitions[i] in partitions for i in again]
            chosen = again[np.array(here, dtype=np.bool_)]
    return _unchanged(snapshot, chosen, target_rows, 0.0)


def _unchanged(
    snapshot: TableSnapshot, chosen: npt.NDArray[np.int64], target_rows: int, seconds: float
) -> RelayoutResult:
    files = snapshot.files()
    rows = int(files.rows[chosen].sum())
    partitions: dict[tuple[str | None, ...], int] = {}
    for i in chosen:
        partitions[files.partitions[i]] = partitions.get(files.partitions[i], 0) + int(files.rows[i])
    added = sum(max(1, round(count / target_rows)) for count in partitions.values() if count)
    size = int(files.bytes[chosen].sum())
    skipped = len(files) - len(chosen)
    return RelayoutResult(snapshot.version, len(chosen), added, size, size, rows, skipped, False, seconds)


def _attempt(snapshot: TableSnapshot, chosen: npt.NDArray[np.int64], work: _Work) -> RelayoutResult:
    started = time.monotonic()
    files = snapshot.files()
    transaction = Transaction(snapshot, files.path[chosen].tolist())
    _refuse_changed_inputs(transaction, snapshot, chosen)
    expected, size = int(files.rows[chosen].sum()), int(files.bytes[chosen].sum())
    work.say(f"rewriting {len(chosen)} files, {size:,} bytes, {expected:,} rows")
    rows = transaction.input_rows()
    spec = work.spec
    if work.extend is not None and (beyond := _beyond(spec, files, chosen)):
        spec = work.extend(spec, _sampled(rows, snapshot, beyond, expected))
    keyed = with_key(rows, spec, snapshot.paths, work.hilbert_table)
    histogram = histogram_of(keyed, snapshot.partition_columns)
    targeted, number = routed(keyed, histogram, snapshot.partition_columns, work.cutter)
    work.say(f"counted {len(histogram[0])} key cells, writing {number} files")
    by = [column_sql((name,)) for name in (*snapshot.partition_columns, KEY)]
    by += [column_sql(snapshot.paths[name]) for name in spec.tie_break]
    from pyspark.sql import functions as F

    ordered = to_files(targeted, number).sortWithinPartitions(*(F.expr(item) for item in by))
    conf = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS", "spark.sql.files.maxRecordsPerFile": "0"}
    if work.row_group_bytes is not None:
        conf["parquet.block.size"] = str(work.row_group_bytes)
    visible = [column_sql((name,)) for name in snapshot.struct.names]
    before = content_hash(rows.select(*visible)) if work.verify == "hash" else None
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
        version = transaction.commit(spec.layout_id, transaction.read_version + 1, metrics, spec.table_columns)
    except BaseException:
        transaction.discard()
        raise
    work.say(f"committed version {version}; the {size:,} bytes it replaced stay on disk until VACUUM removes them")
    seconds = time.monotonic() - started
    kept = len(files) - len(chosen)
    return RelayoutResult(version, len(chosen), count, size, bytes_added, written, kept, True, seconds)


def _beyond(spec: KeySpec, files: FileList, chosen: npt.NDArray[np.int64]) -> list[str]:
    """Columns of the key with values beyond the range that it was learned from, by the files' statistics."""
    found = []
    for feature in spec.features:
        zones = files.zones.get(feature.column)
        if feature.high is None or zones is None:
            continue
        highs = zones.high[chosen][zones.known[chosen]].tolist()
        if highs and order_key(max(highs, key=order_key)) > order_key(feature.high):
            found.append(feature.column)
    return found


def _sampled(rows: DataFrame, snapshot: TableSnapshot, names: Sequence[str], expected: int) -> Columns:
    """Canonical values and validity of some rows' columns, the same ones each time."""
    from pyspark.sql import functions as F

    asked = [F.col(column_sql(snapshot.paths[name])).alias(f"c{i}") for i, name in enumerate(names)]
    some = rows.select(*asked)
    if expected > EXTENSION_ROWS:
        some = some.sample(fraction=EXTENSION_ROWS / expected, seed=0)
    table = some.toArrow()
    types = {leaf.column.name: leaf.column.value_type for leaf in snapshot.leaves}
    return {name: canonical_array(table[f"c{i}"], types[name]) for i, name in enumerate(names)}


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
