"""The state's table ``file_stats``: a row per file and feature, kept in step with the files that exist."""

from __future__ import annotations

import datetime as dt
import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zorder_pipeline.errors import ZorderError
from zorder_pipeline.model.file_stats import BLOOM_BITS, Feature, FeatureStats
from zorder_pipeline.model.values import ValueType
from zorder_pipeline.model.zone_map import ColumnZones

from .gather import STATS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["FileStats", "Gathered", "aligned", "same_files"]

SCHEMA_VERSION = 2
APP = "zorder-file-stats"
FRESH = 300.0
"""Seconds after which rows held in memory are read again; statistics of a file never change, there may be more."""
KEY = ("table_id", "path", "vector", "session", "feature", "kind", "sql")


@dataclass(frozen=True)
class Gathered:
    """Rows of ``file_stats`` of one table.

    Attributes:
        rows: one per file and feature, with ``path``, ``vector`` and ``session``.
    """

    rows: pa.Table

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def under(self, stored_as: Mapping[str, str]) -> Gathered:
        """Those of features whose columns are still the ones that were looked at, of the same type.

        Args:
            stored_as: where the files keep each column, and as what type, by its name, now.
        """
        texts = self.rows["columns"].unique().to_pylist()
        same = [text for text in texts if all(stored_as.get(k) == v for k, v in json.loads(text).items())]
        if len(same) == len(texts):
            return self
        return Gathered(self.rows.filter(pc.is_in(self.rows["columns"], pa.array(same, pa.string()))))

    def features(self) -> tuple[Feature, ...]:
        """What there are statistics of."""
        seen = self.rows.group_by(["feature", "kind", "type", "sql"]).aggregate([("places", "count")]).to_pylist()
        return tuple(
            Feature(row["feature"], row["kind"], row["type"], row["sql"] or "", (), row["places_count"] > 0)
            for row in seen
            if row["sql"] or row["kind"] == "column"
        )


_loaded: dict[tuple[str, str], tuple[float, Gathered]] = {}
_loading = threading.Lock()


class FileStats:
    """Statistics of the files of all tables.

    Args:
        state: folder of the state, on any Hadoop filesystem.
    """

    def __init__(self, spark: SparkSession, state: str) -> None:
        self.spark, self.path = spark, f"{state.rstrip('/')}/file_stats"

    def load(self, table_id: str, fresh: bool = False) -> Gathered:
        """What is known of a table's files, from memory where it was read within the last minutes.

        Args:
            fresh: read it anew.

        Raises:
            ZorderError: a newer version of this code wrote the state.
        """
        key = (self.path, table_id)
        with _loading:
            held = _loaded.get(key)
        if held is not None and not fresh and time.monotonic() - held[0] < FRESH:
            return held[1]
        found = self._read(table_id)
        with _loading:
            _loaded[key] = (time.monotonic(), found)
        return found

    def add(
        self,
        table_id: str,
        version: int,
        session: str,
        stats: pa.Table,
        vectors: Mapping[str, str],
        stored_as: Mapping[str, str],
    ) -> int:
        """Keep statistics; those known already are left as they are. Returns how many rows were added.

        Args:
            version: table version that the files were read from.
            session: see `zorder_pipeline.reading.session.session_of`.
            stats: rows as `STATS`, ``file`` being the path of the AddFile action.
            vectors: id of the deletion vector that each file had.
            stored_as: see `Gathered.under`.
        """
        from delta.tables import DeltaTable
        from pyspark.sql import functions as F

        known = self.load(table_id).under(stored_as).rows
        seen = set(zip(*(known[name].to_pylist() for name in KEY[1:]), strict=True))
        paths = stats["file"].to_pylist()
        columns = [paths, [vectors[path] for path in paths], _sessions(stats, session)]
        keys = zip(*columns, *(stats[name].to_pylist() for name in KEY[4:]), strict=True)
        new = np.array([key not in seen for key in keys], dtype=np.bool_)
        if not new.any():
            return 0
        table = stats.rename_columns(["path", *STATS.names[1:]])
        table = table.append_column("vector", pa.array(columns[1], pa.string()))
        table = table.append_column("session", pa.array(columns[2], pa.string())).filter(pa.array(new))
        frame = self.spark.createDataFrame(table).select(
            F.lit(SCHEMA_VERSION).alias("schema_version"),
            F.lit(dt.datetime.now(dt.UTC).date()).alias("stats_date"),
            F.lit(table_id).alias("table_id"),
            F.lit(version).cast("bigint").alias("version"),
            "*",
        )
        writer = frame.coalesce(1).write.format("delta").mode("append").partitionBy("stats_date", "table_id")
        if not DeltaTable.isDeltaTable(self.spark, self.path):  # its own files are found by their partitions
            writer = writer.option("delta.dataSkippingNumIndexedCols", "0")
        writer.option("mergeSchema", "true").save(self.path)
        self._forget(table_id)
        return int(new.sum())

    def keep_only(self, table_id: str, live: Sequence[str]) -> int:
        """Delete what is known of files that are gone; returns how many files those were."""
        from delta.tables import DeltaTable
        from pyspark.sql import functions as F

        known = self.load(table_id).rows
        gone = sorted(set(known["path"].to_pylist()) - set(live))
        if gone:
            source = self.spark.createDataFrame(pa.table({"path": pa.array(gone, pa.string())}))
            target = DeltaTable.forPath(self.spark, self.path).alias("s")
            same = (F.col("s.table_id") == table_id) & (F.col("s.path") == F.col("g.path"))
            target.merge(source.alias("g"), same).whenMatchedDelete().execute()
            self._forget(table_id)
        return len(gone)

    def purge(self) -> int:
        """Delete what is known of expressions and predicates, which name constants of queries; returns how many rows.

        Statistics of columns stay: they tell of the tables alone.
        """
        from delta.tables import DeltaTable
        from pyspark.sql import functions as F

        if not DeltaTable.isDeltaTable(self.spark, self.path):
            return 0
        table = DeltaTable.forPath(self.spark, self.path)
        named = F.col("kind") != "column"
        rows = table.toDF().where(named).count()
        table.delete(named)
        with _loading:
            for key in [key for key in _loaded if key[0] == self.path]:
                del _loaded[key]
        return rows

    def _forget(self, table_id: str) -> None:
        with _loading:
            _loaded.pop((self.path, table_id), None)

    def _read(self, table_id: str) -> Gathered:
        from delta.tables import DeltaTable
        from pyspark.sql import functions as F

        wanted = ["path", "vector", "session", *STATS.names[1:], "schema_version"]
        if not DeltaTable.isDeltaTable(self.spark, self.path):
            types = {field.name: field.type for field in STATS} | {"schema_version": pa.int32()}
            return Gathered(pa.table({name: pa.array([], types.get(name, pa.string())) for name in wanted}))
        frame: DataFrame = self.spark.read.format("delta").load(self.path).where(F.col("table_id") == table_id)
        if "sql" not in frame.columns:  # of schema 1, whose expressions and predicates do not count any more
            frame = frame.withColumn("sql", F.lit(None).cast("string"))
        rows = frame.select(*wanted).toArrow()
        if len(rows) and (newest := pc.max(rows["schema_version"]).as_py()) > SCHEMA_VERSION:
            raise ZorderError(
                f"{self.path} was written by a newer version of zorder (schema {newest}, this one knows "
                f"{SCHEMA_VERSION}); upgrade zorder, or use another state folder"
            )
        return Gathered(rows)


def _sessions(stats: pa.Table, session: str) -> list[str]:
    """The value of a column does not depend on the session; that of an expression does."""
    return ["" if kind == "column" else session for kind in stats["kind"].to_pylist()]


def same_files(uris: Sequence[str], location: str, paths: Sequence[str]) -> list[str | None]:
    """The AddFile path of each file that Spark names by its URI; None where that is not told for sure.

    Args:
        location: URI of the table's folder, as Hadoop writes it: nothing in it is URL-encoded.
        paths: as in AddFile actions: URL-encoded, relative to the folder or absolute.
    """
    found: dict[str, str | None] = {}
    folder = quote(location.rstrip("/"), safe=":/")
    for path in paths:
        whole = path if "://" in path or path.startswith("file:") else f"{folder}/{path}"
        place = _plain(whole)
        found[place] = None if place in found else path
    return [found.get(_plain(uri)) for uri in uris]


def _plain(uri: str) -> str:
    scheme, colon, rest = unquote(uri).partition(":")
    return f"{scheme}:/{rest.lstrip('/')}" if colon else uri


def aligned(
    gathered: Gathered, features: Sequence[Feature], paths: Sequence[str], vectors: Sequence[str], session: str
) -> tuple[FeatureStats, ...]:
    """What is known of each feature in the files of a snapshot, features without any statistic left out.

    Statistics hold for a file with the deletion vector under which they were gathered. Those gathered without one hold
    under every vector: rows only become fewer, so that bounds stay bounds.
    """
    rows = gathered.rows
    place = {path: i for i, path in enumerate(paths)}
    file = np.array([place.get(path, -1) for path in rows["path"].to_pylist()], dtype=np.int64)
    vector = np.array(rows["vector"].to_pylist(), dtype=object)
    now = np.array([*vectors, ""], dtype=object)[file] if len(file) else vector
    usable = (file >= 0) & ((vector == "") | (vector == now))
    sessions = np.array(rows["session"].to_pylist(), dtype=object)
    usable &= (sessions == "") | (sessions == session)
    names, kinds, types, texts = (
        np.array(rows[name].to_pylist(), dtype=object) for name in ("feature", "kind", "type", "sql")
    )
    found = []
    for feature in features:
        mine = usable & (names == feature.name) & (kinds == feature.kind) & (types == feature.type)
        if feature.kind != "column":
            mine &= texts == feature.sql
        if mine.any():
            chosen = np.flatnonzero(mine)
            chosen = chosen[np.argsort(vector[chosen] != "", kind="stable")]  # an exact vector's statistics come last
            found.append(_of_files(feature, rows.take(pa.array(chosen)), file[chosen], len(paths)))
    return tuple(found)


def _of_files(feature: Feature, rows: pa.Table, file: npt.NDArray[np.int64], count: int) -> FeatureStats:
    family = ValueType.parse(feature.type).family
    slot = {"string": "text", "float": "real"}.get(family, "whole")
    blank: Any = {"text": "", "real": 0.0, "whole": 0}[slot]
    dtype = {"text": object, "real": np.float64, "whole": np.int64}[slot]
    low, high = (np.full(count, blank, dtype=dtype) for _ in range(2))
    known = np.zeros(count, dtype=np.bool_)
    nulls, total = np.full(count, -1, dtype=np.int64), np.zeros(count, dtype=np.int64)
    valid = np.asarray(rows[f"low_{slot}"].is_valid())
    for side, array in (("low", low), ("high", high)):
        filled = pc.fill_null(rows[f"{side}_{slot}"], blank)
        array[file] = filled.to_numpy()
    known[file] = valid
    nulls[file] = rows["nulls"].to_numpy()
    total[file] = rows["rows"].to_numpy()
    places = rows["places"].to_pylist() if feature.equality else []
    zones = ColumnZones(low, high, known, nulls)
    if not any(item is not None for item in places):
        return FeatureStats(feature, zones, total)
    bloom = np.zeros((count, BLOOM_BITS // 8), dtype=np.uint8)
    filtered = np.zeros(count, dtype=np.bool_)
    for index, packed in zip(file, places, strict=True):
        if packed is not None:
            bits = np.frombuffer(packed, dtype="<u2")
            row = np.zeros(BLOOM_BITS, dtype=np.uint8)
            row[bits] = 1
            bloom[index] = np.packbits(row, bitorder="little")
            filtered[index] = True
        else:
            filtered[index] = False
    return FeatureStats(feature, zones, total, bloom, filtered)
