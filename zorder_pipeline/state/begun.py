"""Relayouts that were begun, a file of each in the state: who is killed after a commit has no time to record it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from zorder_pipeline.errors import PlanError
from zorder_pipeline.java import has_jvm, java_class
from zorder_pipeline.model.plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Beginnings", "Begun"]

FOLDER = "begun"


@dataclass(frozen=True)
class Begun:
    """A relayout as it was about to begin.

    Attributes:
        run: the word in the table's history that its commits have in common.
        version: of the table before it.
        begun_at: seconds since 1970 UTC.
        plan: by which it is done.
        bytes: that it is to rewrite.
        gate: the gate's figures.
        work: what the ledger is told of its cost, see `zorder_pipeline.state.ledger.Ledger.record`, and ``credited``,
            the share of the plan's promise that all of these bytes bring.
    """

    run: str
    version: int
    begun_at: float
    plan: Plan
    bytes: int
    gate: Mapping[str, Any]
    work: Mapping[str, Any]


class Beginnings:
    """The files ``<state>/begun/TABLE_ID.RUN.json``; each goes when its relayout has ended and is recorded.

    By Hadoop's filesystems: a session of Spark Connect, which has none, notes nothing and finds nothing.

    Args:
        state: folder of the state, on any Hadoop filesystem.
    """

    def __init__(self, spark: SparkSession, state: str) -> None:
        self.spark, self.folder = spark, f"{state.rstrip('/')}/{FOLDER}"

    def note(self, begun: Begun) -> bool:
        """Make the file of a relayout; whether it is there."""
        if not has_jvm(self.spark):
            return False
        stream = self._files.create(self._path(self._file(begun)), True)
        try:
            stream.write(bytearray(json.dumps(vars(begun) | {"plan": begun.plan.to_json()}).encode()))
        finally:
            stream.close()
        return True

    def forget(self, begun: Begun) -> None:
        """Remove the file of a relayout, if there is one."""
        if has_jvm(self.spark):
            self._files.delete(self._path(self._file(begun)), False)

    def purge(self, seconds: float) -> int:
        """Remove the files that were made longer ago, of whatever table; returns how many are gone."""
        if not has_jvm(self.spark):
            return 0
        folder, before = self._path(self.folder), (time.time() - seconds) * 1000
        found = self._files.listStatus(folder) if self._files.exists(folder) else ()
        old = [status.getPath() for status in found if status.getModificationTime() < before]
        return sum(bool(self._files.delete(place, False)) for place in old)

    def of_table(self, table_id: str) -> Iterator[Begun]:
        """Relayouts of a table that were begun: they are at work, were cut off, or ended without their record."""
        if not has_jvm(self.spark):
            return
        folder = self._path(self.folder)
        for status in self._files.listStatus(folder) if self._files.exists(folder) else ():
            place = status.getPath()
            if not re.fullmatch(rf"{re.escape(table_id)}\..*\.json", place.getName()):
                continue
            try:
                found = json.loads(self._text(place))
                yield Begun(**found | {"plan": Plan.from_json(found["plan"])})
            except (ValueError, TypeError, KeyError, PlanError, Py4JError):
                continue  # gone meanwhile, half of it, or by another version: as if none were

    def _text(self, place: Any) -> bytes:
        stream = self._files.open(place)
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def _file(self, begun: Begun) -> str:
        return f"{self.folder}/{begun.plan.table_id}.{begun.run.rpartition(' ')[2]}.json"

    def _path(self, place: str) -> Any:
        return java_class(self.spark, "org.apache.hadoop.fs.Path")(place)

    @cached_property
    def _files(self) -> Any:
        return self._path(self.folder).getFileSystem(self.spark._jsc.hadoopConfiguration())
