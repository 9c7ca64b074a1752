"""A version of a table with everything that is known of its files, kept in memory from scan to scan."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from zorder_pipeline.errors import ZorderError
from zorder_pipeline.java import reason_of
from zorder_pipeline.model.file_stats import Feature, FeatureStats, widened
from zorder_pipeline.model.predicate import Predicate
from zorder_pipeline.model.ranges import NOTHING_TOLD, Boxes, Told, to_boxes
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.model.zone_map import Mask, ZoneMap
from zorder_pipeline.pipeline.partition_conditions import told_on
from zorder_pipeline.reading.aligned import aligned
from zorder_pipeline.reading.file_stats import FileStats
from zorder_pipeline.reading.gathered import Gathered
from zorder_pipeline.reading.generated import is_partitioned_by_generated
from zorder_pipeline.reading.meanings import Meanings
from zorder_pipeline.reading.prune import FileTests, without_hulls
from zorder_pipeline.reading.session import session_of, unshadowed
from zorder_pipeline.reading.unprepared import SKIPPING, unprepared
from zorder_pipeline.relayout.chosen_files import ChosenFiles
from zorder_pipeline.relayout.session_conf import reads_otherwise
from zorder_pipeline.relayout.snapshot import TableSnapshot
from zorder_pipeline.state.session_conf import active, session_zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["STATE_CONF", "KnownFiles", "comparable", "current", "known_files", "state_of"]

STATE_CONF = "spark.zorder.state"
"""Session setting that names the state's folder."""
KEPT = 16
"""Table versions kept in memory, those used last."""


@dataclass(frozen=True)
class KnownFiles:
    """The files of one version of a table, ready to be selected from.

    Attributes:
        snapshot: the version.
        schema: its columns, and one for each expression and predicate that statistics are kept of.
        meanings: what the features that statistics are kept of mean to the session.
        names: the column in ``schema``, and its type, at each path.
        tests: all statistics.
        chosen: reads some of the files.
        zone: the session's time zone.
        gathered: what ``tests`` was made of, to see when there is more.
    """

    snapshot: TableSnapshot
    schema: TableSchema
    meanings: Meanings
    names: dict[tuple[str, ...], tuple[str, str]]
    tests: FileTests
    chosen: ChosenFiles
    zone: str
    gathered: Gathered | None

    @property
    def generated(self) -> bool:
        """Whether conditions on other columns may say something of those that the table is partitioned by."""
        return is_partitioned_by_generated(self.snapshot.struct, self.snapshot.partition_columns)

    def told(self, predicates: Iterable[Predicate]) -> Told:
        """What the predicates' conditions on partition columns say, see `told_on`; takes Spark a moment."""
        return told_on(self.snapshot, [LoggedQuery(self.snapshot.location, one, zone=self.zone) for one in predicates])

    def boxes(self, predicate: Predicate, told: Told = NOTHING_TOLD) -> Boxes:
        """What the predicate asks of columns, expressions and predicates."""
        return without_hulls(to_boxes(predicate, self.schema, self.zone, solved=True, told=told))

    def delta_boxes(self, predicate: Predicate, told: Told = NOTHING_TOLD) -> Boxes:
        """What Delta's own file selection would see of the predicate."""
        return to_boxes(predicate, self.snapshot.schema, self.zone, told=told)

    def in_partitions(self, predicate: Predicate, told: Told) -> Mask:
        """Files in the partitions that Delta chooses when a scan runs, whichever files it is given."""
        return self._partitions().matching(self.delta_boxes(predicate, told))

    def _partitions(self) -> ZoneMap:
        zones = self.snapshot.files().zone_map()
        return replace(zones, columns={name: one for name, one in zones.columns.items() if one.exact})

    def selected(self, predicate: Predicate) -> tuple[Mask, Mask]:
        """Files that may hold a row that satisfies the predicate, and files that Delta's own selection would read."""
        zones = self.snapshot.files().zone_map()
        if str(self.snapshot.spark.conf.get(SKIPPING, "true")).lower() == "false":
            zones = self._partitions()
        delta = zones.matching(self.delta_boxes(predicate))
        return self.tests.matching(self.boxes(predicate), delta=delta), delta


_log = logging.getLogger(__name__)
_known: OrderedDict[tuple[str, ...], KnownFiles] = OrderedDict()
_lock = threading.Lock()


def state_of(spark: SparkSession, state: str | None) -> str | None:
    """The state's folder: as given, or as the session's setting `STATE_CONF` says."""
    return state if state is not None else spark.conf.get(STATE_CONF, None)


def known_files(spark: SparkSession, snapshot: TableSnapshot, state: str | None) -> KnownFiles:
    """What is known of the files of ``snapshot``; from memory for a version that the session asked for before."""
    session = session_of(spark)
    gathered = _loaded(spark, state, snapshot.table_id) if state is not None else None
    place = (snapshot.location, snapshot.table_id, str(snapshot.version), str(snapshot.written))
    key = (str(id(spark)), *place, str(state), session)
    with _lock:
        held = _known.get(key)
        if held is not None:
            _known.move_to_end(key)
    if held is not None and held.snapshot.spark is not spark:  # an id is given anew once its session is gone
        held = None
    if held is not None and held.gathered is gathered:
        return held
    found = _build(spark, held.snapshot if held is not None else snapshot, gathered, session)
    with _lock:
        _known[key] = found
        while len(_known) > KEPT:
            _known.popitem(last=False)
    return found


def _loaded(spark: SparkSession, state: str, table_id: str) -> Gathered | None:
    """What was gathered of a table; None where the state cannot be read: then Delta's own statistics have to do."""
    if reads_otherwise(spark):  # than those who gathered
        return None
    try:
        return FileStats(spark, state).load(table_id)
    except ZorderError:
        raise
    except Exception as error:
        _log.warning("%s cannot be read, so Delta's own statistics have to do: %s", state, reason_of(error))
        return None


def _build(spark: SparkSession, snapshot: TableSnapshot, gathered: Gathered | None, session: str) -> KnownFiles:
    files = snapshot.files()
    stats: tuple[FeatureStats, ...] = ()
    if gathered is not None and len(gathered):
        paths = [str(path) for path in files.path]
        present = gathered.under(snapshot.stored_as)
        usual = unshadowed(spark, current(present.features(), snapshot))
        stats = aligned(present, usual, paths, files.vector, session)
    schema, columns = widened(comparable(snapshot), [item.feature for item in stats])
    own = {columns[item.feature]: item for item in stats}
    tests = FileTests(files.zone_map(), own, foreign=~files.ours)  # Spark wrote those that lie by a layout
    rows = snapshot.read()
    with active(spark, unprepared(spark)):  # rules ask the thread's session, Delta's own the optimizer's
        meanings = Meanings(rows, columns)
    names = {
        leaf.path: (column.name, column.type) for leaf, column in zip(snapshot.leaves, schema.columns, strict=False)
    }
    return KnownFiles(snapshot, schema, meanings, names, tests, ChosenFiles(snapshot), session_zone(spark), gathered)


def comparable(snapshot: TableSnapshot) -> TableSchema:
    """The table's columns, those of type CHAR without an order: Spark pads what they are compared with."""
    columns = zip(snapshot.schema.columns, snapshot.leaves, strict=True)
    return TableSchema(tuple(replace(c, type="char") if leaf.padded else c for c, leaf in columns))


def current(features: tuple[Feature, ...], snapshot: TableSnapshot) -> tuple[Feature, ...]:
    """Features without those of a column that is gone, or that has another type now."""
    types = {column.name: column.type for column in snapshot.schema.columns}
    return tuple(f for f in features if f.kind != "column" or types.get(f.name) == f.type)
