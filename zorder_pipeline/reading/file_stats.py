"""The state's table ``file_stats``: a row per file and feature, kept in step with the files that exist."""

from __future__ import annotations

import datetime as dt
import logging
import operator
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from zorder_pipeline.java import has_jvm, scala_object
from zorder_pipeline.model.spark_sql import value_sql
from zorder_pipeline.model.values import ValueType
from zorder_pipeline.model.wording import counted
from zorder_pipeline.state.conflicts import insist
from zorder_pipeline.state.delta_tables import is_delta_table, made_changeable
from zorder_pipeline.state.erasing import WHOLE_FILES, delete_where, set_properties
from zorder_pipeline.state.session_conf import apart
from zorder_pipeline.state.state_table import newer_version

from .believed import believed
from .gather import STATS
from .gathered import FILE, KEY, STORED, Gathered, keys, sought, zoned
from .session import without_rules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["FileStats"]

_log = logging.getLogger(__name__)
SCHEMA_VERSION = 2
PROPERTIES = {**WHOLE_FILES, "delta.dataSkippingNumIndexedCols": "0"}
"""Its own files are found by their partitions; the least and greatest texts would be constants of queries."""
FRESH = 300.0
"""Seconds after which the state is asked whether there is more; statistics of a file never change."""


@dataclass(frozen=True)
class _Held:
    """What is held in memory of a table: when it was read, and the state's version then, where that can be told."""

    read: float
    version: tuple[str, int] | None
    gathered: Gathered


KEPT = 16
"""Tables whose statistics are held in memory."""

_loaded: OrderedDict[tuple[str, str], _Held] = OrderedDict()
_loading = threading.Lock()


class FileStats:
    """Statistics of the files of all tables.

    Args:
        state: folder of the state, on any Hadoop filesystem.
    """

    def __init__(self, spark: SparkSession, state: str) -> None:
        self.spark, self.path = spark, f"{state.rstrip('/')}/file_stats"

    def load(self, table_id: str, fresh: bool = False) -> Gathered:
        """What is known of a table's files: the same object as long as nobody wrote to the state.

        Args:
            fresh: ask whether somebody did, which is otherwise done once in `FRESH` seconds.

        Raises:
            ZorderError: a newer version of this code wrote the state.
        """
        key = (self.path, table_id)
        with _loading:
            if (held := _loaded.get(key)) is not None:
                _loaded.move_to_end(key)
        if held is not None and not fresh and time.monotonic() - held.read < FRESH:
            return held.gathered
        now, version = time.monotonic(), self._version()
        unchanged = held is not None and version is not None and version == held.version
        found = held.gathered if held is not None and unchanged else self._read(table_id)
        with _loading:
            _hold(key, _Held(now, version, found))
        return found

    def expect(self) -> None:
        """Have Delta look up the state's files, which `update` has to where files are gone: a job, best run beside."""
        if has_jvm(self.spark) and self._exists():
            self._snapshot().allFiles().count()

    def update(
        self,
        table_id: str,
        version: int,
        session: str,
        stats: pa.Table,
        vectors: Mapping[str, str],
        stored_as: Mapping[str, str],
    ) -> tuple[int, int]:
        """Keep statistics and forget those of files that are gone, in one commit; what is known already stays.

        Forgotten is also what holds under a deletion vector that a file had before. Of what was gathered of a later
        version meanwhile nothing is.

        Args:
            version: table version that the files were read from.
            session: see `zorder_pipeline.reading.session.session_of`.
            stats: rows as `STATS`, ``file`` being the path of the AddFile action.
            vectors: id of the deletion vector of each file that there is.
            stored_as: see `Gathered.under`.

        Returns:
            How many rows were added, and how many files forgotten.
        """

        def change() -> tuple[int, int]:
            known = self.load(table_id, fresh=True)  # what others deleted must not come back, what they added must stay
            added = _rows(stats, version, session, vectors, known.since())
            same = known.of(added["path"].unique().to_pylist()).under(stored_as).rows
            seen = dict(zip(keys(same), sought(same).to_pylist(), strict=True))
            asked = list(zip(keys(added), sought(added).to_pylist(), strict=True))
            new = [key not in seen or (values and not seen[key]) for key, values in asked]
            added = added.filter(pa.array(new, pa.bool_()))
            replaced = {key for (key, _), more in zip(asked, new, strict=True) if more and key in seen}
            outdated, kept = known.outdated(vectors, version), known.rows
            for left_out, names in ((outdated, FILE), (replaced, KEY)):
                if left_out:
                    kept = kept.filter(pa.array([key not in left_out for key in keys(kept, names)], pa.bool_()))
            if len(added) or outdated:
                self._write(table_id, added, outdated, replaced)
                self._wrote(table_id, pa.concat_tables([kept, added]))
            return len(added), len({path for path, _ in outdated if path not in vectors})

        return insist(self.path, lambda: made_changeable(self.spark, self.path, change))

    def purge(self) -> int:
        """Delete what is known of expressions and predicates, which name constants of queries; returns how many rows.

        Statistics of columns stay: they tell of the tables alone.
        """
        from pyspark.sql import functions as F

        if not self._exists():
            return 0
        set_properties(self.spark, self.path, PROPERTIES)
        rows = delete_where(self.spark, self.path, F.col("kind") != "column")
        with _loading:
            for key in [key for key in _loaded if key[0] == self.path]:
                del _loaded[key]
        return rows

    def _exists(self) -> bool:
        return is_delta_table(self.spark, self.path)

    def _version(self) -> tuple[str, int] | None:
        """Id and version of the state's table; None where there is none, or only a job could tell."""
        if not has_jvm(self.spark) or not self._exists():
            return None
        snapshot = self._snapshot()
        return str(snapshot.metadata().id()), int(snapshot.version())

    def _snapshot(self) -> Any:
        log = scala_object(self.spark, "org.apache.spark.sql.delta.DeltaLog")
        return log.forTableWithSnapshot(self.spark._jsparkSession, self.path)._2()

    def _write(
        self, table_id: str, rows: pa.Table, outdated: Set[tuple[str, ...]], replaced: Set[tuple[str, ...]]
    ) -> None:
        """Append rows of a table, or, where some are forgotten or replaced, write them and all others anew.

        These are read in the transaction that writes them, or what another purged meanwhile would come back, and are
        told by the files that they are of, or what another gathered meanwhile would get lost.
        """
        from pyspark.sql import functions as F

        frame, mine = self.spark.createDataFrame(rows).withColumn("table_id", F.lit(table_id)), F.col("table_id")
        if anew := bool(outdated or replaced):
            kept = self.spark.read.format("delta").load(self.path).where(mine == table_id)
            for keys, names in ((outdated, FILE), (replaced, KEY)):
                if not keys:
                    continue
                told = pa.table([pa.array(values, pa.string()) for values in zip(*keys, strict=True)], names)
                left_out = F.broadcast(self.spark.createDataFrame(told).alias("left_out"))
                same = reduce(operator.and_, (kept[name].eqNullSafe(F.col(f"left_out.{name}")) for name in names))
                kept = kept.join(left_out, same, "left_anti")
            frame = kept.unionByName(frame, allowMissingColumns=True)
        with apart(frame.coalesce(1), new=(new := not self._exists())) as written:
            writer = written.write.format("delta").partitionBy("stats_date", "table_id")
            if new:
                writer = writer.options(**PROPERTIES)
            if anew:
                writer = writer.option("replaceWhere", f"table_id = {value_sql(table_id, ValueType('string'))}")
            writer.mode("overwrite" if anew else "append").option("mergeSchema", "true").save(self.path)

    def _wrote(self, table_id: str, rows: pa.Table) -> None:
        """Hold what is there after a write of ours, unless others may have written meanwhile."""
        key, now = (self.path, table_id), self._version()
        with _loading:
            held = _loaded.pop(key, None)
            before = held.version if held is not None else None
            if now is not None and before is not None and now == (before[0], before[1] + 1):
                _hold(key, _Held(time.monotonic(), now, Gathered(rows)))

    def _read(self, table_id: str) -> Gathered:
        from pyspark.sql import functions as F

        if not self._exists():
            return Gathered(STORED.empty_table())
        frame: DataFrame = self.spark.read.format("delta").load(self.path).where(F.col("table_id") == table_id)
        # of schema 1 without "sql", whose expressions and predicates do not count any more; of 0.3 without "kept_since"
        for name, kind in (("sql", "string"), ("sought", "boolean"), ("kept_since", "date")):
            if name not in frame.columns:
                frame = frame.withColumn(name, F.lit(None).cast(kind))
        rows = frame.select(*STORED.names).toArrow().cast(STORED)
        if (newest := pc.max(rows["schema_version"]).as_py() or 0) > SCHEMA_VERSION:
            raise newer_version(self.path, newest, SCHEMA_VERSION)
        kept = believed(rows)
        if left := len(rows) - len(kept):
            _log.warning(
                "%s of %s cannot be what zorder wrote and count for nothing; delete that folder, and zorder stats "
                "gathers them anew",
                *(counted(left, "row"), self.path),
            )
        return Gathered(kept)


def _hold(key: tuple[str, str], held: _Held) -> None:
    """Hold what was read of a table, instead of what nobody has asked for the longest."""
    _loaded[key] = held
    _loaded.move_to_end(key)
    while len(_loaded) > KEPT:
        _loaded.popitem(last=False)


def _rows(stats: pa.Table, version: int, session: str, vectors: Mapping[str, str], since: dt.date | None) -> pa.Table:
    """Rows of `STORED`. The value of a column does not depend on the session; that of an expression does."""
    paths, count, today = stats["file"].to_pylist(), len(stats), dt.datetime.now(dt.UTC).date()
    given = {name: stats[name] for name in STATS.names[1:]} | {
        "path": pa.array(paths, pa.string()),
        "vector": pa.array([vectors[path] for path in paths], pa.string()),
        "session": pc.if_else(
            pc.equal(stats["kind"], "column"), "", pc.if_else(zoned(stats), session, without_rules(session))
        ),
        "schema_version": pa.repeat(pa.scalar(SCHEMA_VERSION, pa.int32()), count),
        "stats_date": pa.repeat(pa.scalar(today, pa.date32()), count),
        "version": pa.repeat(pa.scalar(version, pa.int64()), count),
        "kept_since": pa.repeat(pa.scalar(since or today, pa.date32()), count),
    }
    return pa.table([given[name] for name in STORED.names], STORED)
