"""Settings of a session for a while."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from .sessions import session_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.conf import RuntimeConfig

__all__ = ["ANY_AGE", "AS_STORED", "COMPILED", "set_for_a_while"]

ANY_AGE = {"spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false"}
"""Read versions older than `delta.deletedFileRetentionDuration`: the files of the one that we replaced are there."""

AS_STORED = {"spark.sql.readSideCharPadding": "false"}
"""Read CHAR columns as they are in the files: other engines would see the blanks that Spark adds."""
COMPILED = {"spark.sql.codegen.hugeMethodLimit": "8000"}
"""HotSpot interprets methods of more bytecode for ever, and Spark makes them of keys and statistics by expressions: its
own code in several methods is slower than such a one, and several times faster than an interpreted one."""

_held: dict[tuple[str, str], tuple[int, str | None]] = {}
"""Of a session and a setting: who uses it, and what it was before."""
_holding = threading.Lock()


@contextlib.contextmanager
def set_for_a_while(spark: SparkSession, conf: Mapping[str, str | None]) -> Iterator[None]:
    """Settings of the session while the block runs; the last of several relayouts at once puts them back.

    Args:
        conf: values by name; None unsets.
    """
    settings, session = spark.conf, session_id(spark)
    entered: list[str] = []
    try:
        with _holding:
            for key, value in conf.items():
                users, before = _held.get((session, key)) or (0, settings.get(key, None))
                _put(settings, key, value)
                _held[session, key] = (users + 1, before)
                entered.append(key)
        yield
    finally:
        with _holding:
            for key in entered:
                users, before = _held.pop((session, key))
                if users > 1:
                    _held[session, key] = (users - 1, before)
                    continue
                with contextlib.suppress(Exception):  # the session is dead: what the block did matters more
                    _put(settings, key, before)


def _put(settings: RuntimeConfig, key: str, value: str | None) -> None:
    if value is None:
        settings.unset(key)
    else:
        settings.set(key, value)
