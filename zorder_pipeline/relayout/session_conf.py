"""Settings of a session for a while."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ANY_AGE", "AS_STORED", "COMPILED", "set_for_a_while"]

ANY_AGE = {"spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false"}
"""Read versions older than `delta.deletedFileRetentionDuration`: the files of the one that we replaced are there."""

AS_STORED = {"spark.sql.readSideCharPadding": "false"}
"""Read CHAR columns as they are in the files: other engines would see the blanks that Spark adds."""
COMPILED = {"spark.sql.codegen.hugeMethodLimit": "8000"}
"""HotSpot interprets methods of more bytecode for ever, and Spark makes them of keys and statistics by expressions: its
own code in several methods is slower than such a one, and several times faster than an interpreted one."""

_held: dict[str, tuple[int, str | None]] = {}
_holding = threading.Lock()


@contextlib.contextmanager
def set_for_a_while(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Settings of the session while the block runs; the last of several relayouts at once puts them back."""
    settings = spark.conf
    with _holding:
        for key, value in conf.items():
            users, before = _held.get(key, (0, settings.get(key, None)))
            _held[key] = (users + 1, before)
            settings.set(key, value)
    try:
        yield
    finally:
        with _holding:
            for key in conf:
                users, before = _held.pop(key)
                if users > 1:
                    _held[key] = (users - 1, before)
                elif before is None:
                    settings.unset(key)
                else:
                    settings.set(key, before)
