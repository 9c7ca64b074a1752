"""The engine of every rewrite: read the chosen files, route rows in one shuffle, sort inside, commit bin by bin."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from zorder_pipeline.errors import LostRaceError, TableError, ZorderError
from zorder_pipeline.model.spark_sql import column_sql
from zorder_pipeline.model.wording import counted
from zorder_pipeline.state.session_conf import set_for_a_while

from .commit import Transaction
from .committer import Committer, Replacement
from .failures import replaced_by_another, told_plainly
from .filters import bloom_filters
from .job import Job, RelayoutResult, Safety
from .partition_values import refuse_empty, refuse_unreadable, refuse_zoneless, writing_zone
from .public_commit import PublicCommitter
from .public_snapshot import PublicSnapshot
from .routing import to_files
from .select import bins_of
from .session_conf import ALL_ROWS, ANY_AGE, COMPILED, exactly, quick_reads
from .snapshot import TableSnapshot

__all__ = ["rewrite"]

ATTEMPTS = 3


def rewrite(
    snapshot: TableSnapshot, job: Job, *, where: str | None = None, dry_run: bool = False, safety: Safety | None = None
) -> RelayoutResult:
    """Rewrite the files that ``job`` selects.

    Every bin of partitions is one transaction, all or nothing. A run that is stopped keeps the bins that it has
    committed, and the next one goes on with the rest; a table without partitions is a single bin.

    Raises:
        UnsupportedTableError: a selected file lies in a partition whose value a rewrite would change.
        PlanError: others dropped a column of the layout meanwhile, or gave it another type.
        LostRaceError: other writers changed the files of a bin in each of three attempts.
        VerificationError: the written rows differ.
    """
    safety = safety or Safety()
    started, label = time.monotonic(), f"{job.label} {uuid.uuid4().hex[:12]}"
    selected = job.select(snapshot, where)
    _refuse_values(snapshot, selected)  # before the first bin: what is refused is not left half done
    if dry_run or not len(selected):
        return _unchanged(snapshot, selected, job, time.monotonic() - started)
    files = snapshot.files()
    bins = bins_of(files, selected, safety.bin_bytes)
    total, done, held = float(files.bytes[selected].sum()), 0.0, ""
    results: list[RelayoutResult] = []
    safety.begun(label)
    for number, chosen in enumerate(bins, 1):
        try:
            with told_plainly(snapshot.location):
                if safety.hold is not None and (why := safety.hold()):
                    held = f"stopped after {number - 1} of {len(bins)} bins: {why}"
                    safety.progress(held)
                    break
                if len(bins) > 1:
                    spent = time.monotonic() - started
                    left = f", about {spent / done * (total - done):,.0f} s left" if done else ""
                    safety.progress(f"bin {number} of {len(bins)}: {done / total:.0%} of the bytes done{left}")
                results.append(_bin(snapshot, chosen, job, label, safety))
            if number < len(bins) and results[-1].committed:
                safety.kept(_together(snapshot, results, label, time.monotonic() - started))
        except BaseException as error:
            committed = sum(result.committed for result in results)
            if not committed or not isinstance(error, ZorderError):
                raise
            why = str(error).replace("; nothing was committed", "; nothing of this bin was committed")
            before = f"{committed} of {len(bins)} bins were committed before, a new run goes on with the rest"
            raise type(error)(f"{why}; {before}") from error
        done += float(files.bytes[chosen].sum())
    return _together(snapshot, results, label, time.monotonic() - started, held)


def _together(
    snapshot: TableSnapshot, results: Sequence[RelayoutResult], label: str, seconds: float, held: str = ""
) -> RelayoutResult:
    """What became of a table, from what became of its bins."""
    removed = sum(result.files_removed for result in results)
    merged = Counter[int]()
    for result in results:
        merged.update(result.merged)
    return RelayoutResult(
        version=max((result.version for result in results if result.committed), default=snapshot.version),
        files_removed=removed,
        files_added=sum(result.files_added for result in results),
        bytes_rewritten=sum(result.bytes_rewritten for result in results),
        bytes_added=sum(result.bytes_added for result in results),
        rows=sum(result.rows for result in results),
        skipped_files=len(snapshot.files()) - removed,
        committed=any(result.committed for result in results),
        seconds=seconds,
        run=label,
        held=held,
        merged=dict(merged),
    )


def _bin(
    snapshot: TableSnapshot, chosen: npt.NDArray[np.int64], job: Job, label: str, safety: Safety
) -> RelayoutResult:
    """One transaction, tried again on what is left when another writer was faster."""
    partitions = {snapshot.files().partitions[i] for i in chosen}
    instants = "timestamp" in snapshot.struct.simpleString()
    settings = COMPILED | ANY_AGE | exactly(snapshot.spark, instants=instants) | quick_reads(snapshot.location)
    for attempt in range(1, ATTEMPTS + 1):
        if not snapshot.files().rows[chosen].any():
            break
        try:
            with set_for_a_while(snapshot.spark, settings):
                return _attempt(snapshot, chosen, job, label, safety)
        except LostRaceError:
            if attempt == ATTEMPTS:
                raise
            safety.progress("another writer was faster: trying again on the files that are left")
            before, snapshot = snapshot, snapshot.newest()
            if snapshot.table_id != before.table_id:
                raise TableError(replaced_by_another(snapshot.location)) from None
            job.refuse_unless_fits(snapshot.schema, changed=snapshot.schema.fingerprint != before.schema.fingerprint)
            again = job.select(snapshot, None)
            here = [snapshot.files().partitions[i] in partitions for i in again]
            chosen = again[np.array(here, dtype=np.bool_)]
            _refuse_values(snapshot, chosen)
    return _unchanged(snapshot, chosen[:0], job, 0.0)


def _refuse_values(snapshot: TableSnapshot, chosen: npt.NDArray[np.int64]) -> None:
    """Refuse partitions whose values a rewrite would change.

    Raises:
        UnsupportedTableError: a chosen file lies in one.
    """
    if not len(chosen):  # by public API the values are looked for in every row
        return
    with told_plainly(snapshot.location), set_for_a_while(snapshot.spark, ALL_ROWS):
        refuse_zoneless(snapshot, chosen)
        refuse_empty(snapshot, chosen)
        refuse_unreadable(snapshot, chosen)


def _unchanged(snapshot: TableSnapshot, chosen: npt.NDArray[np.int64], job: Job, seconds: float) -> RelayoutResult:
    files = snapshot.files()
    rows, size = int(files.rows[chosen].sum()), int(files.bytes[chosen].sum())
    added, kept = job.expected_files(snapshot, chosen), len(files) - len(chosen)
    return RelayoutResult(snapshot.version, len(chosen), added, size, size, rows, kept, False, seconds)


def _attempt(
    snapshot: TableSnapshot, chosen: npt.NDArray[np.int64], job: Job, label: str, safety: Safety
) -> RelayoutResult:
    from pyspark.sql import functions as F

    started = time.monotonic()
    files, committer = snapshot.files(), _committer(snapshot, chosen)
    _refuse_changed_inputs(committer, snapshot, chosen)
    expected, size = int(files.rows[chosen].sum()), int(files.bytes[chosen].sum())
    safety.progress(f"rewriting {counted(len(chosen), 'file')}, {size:,} bytes, {counted(expected, 'row')}")
    rows = committer.input_rows()
    arranged = job.arrange(committer, files, chosen, rows)
    safety.progress(f"writing {counted(arranged.files, 'file')}")
    ordered = to_files(arranged.rows, arranged.files).sortWithinPartitions(*(F.expr(item) for item in arranged.by))
    conf = {"spark.sql.files.maxRecordsPerFile": "0"}
    if safety.row_group_bytes is not None:
        conf["parquet.block.size"] = str(safety.row_group_bytes)
    conf |= bloom_filters(snapshot.leaves, safety.bloom_filters)
    conf |= writing_zone(snapshot, chosen)
    done = committer.replace(
        ordered.select(*(F.col(column_sql((name,))) for name in rows.columns)),
        Replacement(arranged.tags, job.columns, label, safety.verify, conf),
    )
    if done.note:
        safety.progress(done.note)
    safety.progress(
        f"committed version {done.version}; the {done.bytes_removed:,} bytes it replaced stay on disk until VACUUM "
        "removes them"
    )
    return RelayoutResult(
        version=done.version,
        files_removed=done.files_removed,
        files_added=done.files_added,
        bytes_rewritten=done.bytes_removed,
        bytes_added=done.bytes_added,
        rows=done.rows,
        skipped_files=len(files) - done.files_removed,
        committed=True,
        seconds=time.monotonic() - started,
        merged=files.generations(job.layout_id, chosen),
    )


def _committer(snapshot: TableSnapshot, chosen: npt.NDArray[np.int64]) -> Committer:
    """What replaces the chosen files."""
    files = snapshot.files()
    if isinstance(snapshot, PublicSnapshot):
        return PublicCommitter(snapshot, {files.partitions[i] for i in chosen})
    replaced = int(files.rows[chosen].sum()), int(files.bytes[chosen].sum())
    return Transaction(snapshot, files.path[chosen].tolist(), replaced)


def _refuse_changed_inputs(committer: Committer, snapshot: TableSnapshot, chosen: npt.NDArray[np.int64]) -> None:
    """A transaction may start at a newer version than was planned for: every input must still be as it was."""
    if committer.read_version == snapshot.version:
        return
    planned, now = snapshot.files(), committer.current.files()
    live = {path: int(deleted) for path, deleted in zip(now.path, now.deleted, strict=True)}
    changed = [i for i in chosen if live.get(planned.path[i]) != int(planned.deleted[i])]
    if changed:
        raise LostRaceError(
            f"{len(changed)} of the {len(chosen)} files to rewrite in {snapshot.location} were changed meanwhile; "
            "nothing was committed, run it again"
        )
