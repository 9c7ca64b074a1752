"""The committer by public API: whole partitions are overwritten where they lie, and what came of it is verified."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NoReturn

from zorder_pipeline.errors import LostRaceError, TableError, UnsupportedTableError, VerificationError, ZorderError
from zorder_pipeline.java import first_line
from zorder_pipeline.model.partition_key import partitions_condition
from zorder_pipeline.model.spark_sql import column_sql
from zorder_pipeline.state.conflicts import lost_races
from zorder_pipeline.state.session_conf import OWN_COMMITS, set_for_a_while

from .committer import Replacement, Written
from .failures import answered, of_constraints
from .history import METRICS, commits_after, history_of, made_as, operation_of, told_with
from .public_snapshot import PublicSnapshot
from .restoring import COMMITS_SEARCHED, restore, restore_sql
from .verify import content_hash, row_counts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

__all__ = ["PublicCommitter"]

COSTS = "which also removes whatever was committed after it"
"""What a RESTORE by hand does besides."""
AS_GIVEN: dict[str, str | None] = {
    **METRICS,
    "spark.databricks.delta.autoCompact.enabled": "false",
    # the rows were read by the same condition; checking it again would evaluate it for each row
    "spark.databricks.delta.replaceWhere.constraintCheck.enabled": "false",
    # without it what is read is not held to the version that is overwritten
    "spark.databricks.delta.stats.skipping": "true",
    **OWN_COMMITS,
}
"""What would undo the files as they are given, mix versions, cost much, or leave open what was done."""
RESHAPING = ("COLUMN", "SCHEMA", "REPLACE", "RESTORE", "CLONE")
"""Words in the operations that may swap columns of one name and type, which no comparison of schemas shows."""
OPTIONS = {"dataChange": "false", "optimizeWrite": "false", "mergeSchema": "false", "overwriteSchema": "false"}


class PublicCommitter:
    """The `zorder_pipeline.relayout.committer.Committer` that replaces whole partitions.

    Rows are read by the statement that overwrites them. Delta plans that inside the transaction of the overwrite, so
    what is read and what is removed are the same files, and under snapshot isolation, as no data changes.

    Args:
        snapshot: the table as it was planned for; what came since is rewritten with it.
        partitions: values of the partitions to replace, as in `zorder_pipeline.relayout.file_list.FileList`.

    Raises:
        LostRaceError: the table has another schema now.
        UnsupportedTableError: it may not be rewritten any more.
    """

    def __init__(self, snapshot: PublicSnapshot, partitions: Collection[tuple[str | None, ...]]) -> None:
        self.spark, self.current = snapshot.spark, snapshot
        self.where = partitions_condition(partitions, snapshot.partition_types)
        newest = snapshot.newest()
        newest.refuse_unless_as(snapshot)
        self.known = newest.version

    @property
    def read_version(self) -> int:
        """The version that was planned for; the overwrite itself reads the newest one."""
        return self.current.version

    def input_rows(self) -> DataFrame:
        """Live rows of the partitions, of whatever version is the newest when they are read; never of Spark's cache."""
        from pyspark.sql import functions as F

        rows = self.spark.read.format("delta").load(self.current.location)
        # what somebody cached of the table may be old: a condition that no cached plan has, and that costs nothing
        path = rows.metadataColumn("_metadata").getField("file_path")
        return rows.where(path.isNotNull() & F.lit(uuid.uuid4().hex).isNotNull()).where(self.where)

    def replace(self, rows: DataFrame, how: Replacement) -> Written:
        """Overwrite, then verify; a commit that changed something is taken back when nobody has committed since."""
        location = self.current.location
        label = f"{how.label} {uuid.uuid4().hex[:12]}"
        told = told_with(self.spark, label)
        writer = rows.write.format("delta").mode("overwrite").options(**OPTIONS, userMetadata=told)
        failure: BaseException | None = None
        with set_for_a_while(self.spark, {**how.conf, **AS_GIVEN}):
            try:
                writer.option("replaceWhere", self.where).save(location)
            except BaseException as error:  # a connection may break after the commit, a hook after it may fail
                failure = error
            commit = self._outcome(label, failure, how.conf)
            version = int(commit["version"])
            left = f"version {version} of {location} was committed and not verified"
            way_out = f"look at it, or run {restore_sql(location, version - 1)}, {COSTS}"
            if failure is not None and not isinstance(failure, Exception):
                failure.add_note(f"{left}: {way_out}")
                raise failure
            try:
                self._verify(version, how.verify)
            except (LostRaceError, VerificationError):
                raise
            except Exception as error:
                raise VerificationError(f"{left} ({first_line(str(error))}): {way_out}") from error
            except BaseException as error:
                error.add_note(f"{left}: {way_out}")
                raise
        figures = commit["operationMetrics"] or {}
        removed, added, removed_bytes, added_bytes, count = (
            int(figures.get(name, 0))
            for name in ("numRemovedFiles", "numFiles", "numRemovedBytes", "numOutputBytes", "numOutputRows")
        )
        return Written(version, removed, added, removed_bytes, added_bytes, count)

    def _outcome(self, label: str, failure: BaseException | None, conf: Mapping[str, str]) -> Row:
        """The history's row of the commit of this label, or the error that says why there is none.

        Args:
            failure: what the overwrite ended with.
            conf: the settings that it had.
        """
        location = self.current.location
        unknown = (
            f"whether {location} was rewritten is not known, nor verified: DESCRIBE HISTORY shows {label!r} in the "
            "userMetadata of the commit if it was, also later"
        )
        try:
            found = [row for row in history_of(self.current, COMMITS_SEARCHED) if made_as(row, label)]
            # others may have committed more than that since
            found = found or [row for row in history_of(self.current) if made_as(row, label)]
        except BaseException as error:
            first = error if failure is None else failure
            if not isinstance(first, Exception):
                first.add_note(unknown)
                raise first from error
            raise VerificationError(f"{unknown} ({first_line(str(first))})") from error
        if found:
            return found[0]
        if failure is None:
            raise LostRaceError(f"the rows to rewrite in {location} were deleted meanwhile; nothing was committed")
        if not isinstance(failure, Exception):
            failure.add_note(unknown)
            raise failure
        with lost_races(location):
            if not answered(failure):
                raise VerificationError(f"{unknown} ({first_line(str(failure))})") from failure
            raise self._told(failure, conf) from failure

    def _told(self, error: Exception, conf: Mapping[str, str]) -> Exception:
        """A failure of the overwrite in words that help."""
        location = self.current.location
        if "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT" in str(error):
            return UnsupportedTableError(
                f"{location} has an identity column (GENERATED ALWAYS), whose values cannot be written by public API; "
                "use a classic Spark session and committer: transaction"
            )
        if "DELTA_REPLACE_WHERE_MISMATCH" not in str(error):
            return error
        why = of_constraints(conf, None)
        return TableError(
            f"{location} could not be written: its rows violate a constraint of it ({why}); nothing was committed"
        )

    def _verify(self, version: int, mode: str) -> None:
        """Compare the commit with the version before it, which holds what others committed meanwhile, too.

        Raises:
            LostRaceError: the schema was changed while the rows were on their way; the commit was taken back.
            VerificationError: the rows differ.
        """
        before, after = self.current.at(version - 1), self.current.at(version)
        between = commits_after(before, self.known)
        reshaped = any(word in operation_of(row) for row in between for word in RESHAPING)
        if reshaped or before.schema.fingerprint != self.current.schema.fingerprint:
            self._take_back(version, f"{self.current.location} got another schema during the relayout", LostRaceError)
        counts = row_counts(before.read(), after.read())
        if counts[0] != counts[1]:
            self._take_back(version, f"{counts[1]} rows were there after the relayout of {counts[0]} before")
        if mode != "hash":
            return
        visible = [column_sql((name,)) for name in self.current.struct.names]
        hashes = [content_hash(item.read().where(self.where).select(*visible)) for item in (before, after)]
        if hashes[0] != hashes[1]:
            self._take_back(version, "the written rows differ from those read (content hash)")

    def _take_back(self, version: int, why: str, kind: type[ZorderError] = VerificationError) -> NoReturn:
        """Restore the version before ours unless others have committed since; raise what came of it."""
        left = raced = ""
        try:
            newest = int(history_of(self.current, 1)[0]["version"])
            if newest != version:
                left = f"others have committed up to version {newest} since"
            else:
                raced = restore(self.current, version - 1, version)
        except VerificationError as error:
            raise VerificationError(f"{why}; {error}") from error
        except Exception as error:
            left = f"it could not be taken back ({first_line(str(error))})"
        if left:
            statement = restore_sql(self.current.location, version - 1)
            raise VerificationError(
                f"{why}; version {version} was left as it is, as {left}: bring back what is missing from version "
                f"{version - 1}, or run {statement}, {COSTS}"
            )
        if raced:
            raise VerificationError(
                f"{why}; while version {version} was taken back, {raced}; what was before is in version {version - 1}"
            )
        raise kind(f"{why}; version {version} was taken back, the table lies again as at version {version - 1}")
