"""Values of partitions: as rows to ask Spark of, and those that a rewrite would change, which are instants without a
zone and texts that Spark makes null."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zorder_pipeline.errors import UnsupportedTableError
from zorder_pipeline.model.partition_key import NULL
from zorder_pipeline.model.spark_sql import cast_name, column_sql
from zorder_pipeline.model.zones import offset_of, zone_of
from zorder_pipeline.state.session_conf import ZONE, session_zone, set_for_a_while

from .file_list import ZONED
from .snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["is_ambiguous", "refuse_empty", "refuse_unreadable", "refuse_zoneless", "typed_partitions", "writing_zone"]

NULLS = ("", NULL)
"""Texts that Spark writes as null."""
TEXTS = ("string", "binary")
"""Families of types of which each text is a value."""
ELSEWHERE = ("+11:11", "-11:11")
"""Offsets of no place; the second is for sessions that have the first."""

Chosen = npt.NDArray[np.int64]


def typed_partitions(snapshot: TableSnapshot, values: Sequence[tuple[str | None, ...]], place: str) -> DataFrame:
    """Partitions as rows of the partition columns, with their place among ``values`` as the column ``place``.

    Args:
        values: texts as in `zorder_pipeline.relayout.file_list.FileList.partitions`; what is no value is null.
        place: a name that none of them has, nor begins with.
    """
    from pyspark.sql import functions as F

    columns: dict[str, Any] = {place: pa.array(range(len(values)), pa.int32())}
    types = snapshot.partition_types
    columns |= {f"{place}{i}": pa.array([each[i] for each in values], pa.string()) for i in range(len(types))}
    texts = snapshot.spark.createDataFrame(pa.table(columns))
    typed = (F.col(f"{place}{i}").try_cast(cast_name(kind)) for i, kind in enumerate(types.values()))
    return texts.select(place, *(column.alias(name) for column, name in zip(typed, types, strict=True)))


def writing_zone(snapshot: TableSnapshot, chosen: Chosen) -> dict[str, str]:
    """The setting in which new files of the chosen ones' partitions are written: the session's zone where that will do.

    Delta reads the values back from the names of folders, and an hour that comes twice has one name.
    """
    zone, files = session_zone(snapshot.spark), snapshot.files()
    texts = {files.partitions[i][place] for place in _places(snapshot, "timestamp") for i in chosen}
    return {ZONE: "UTC"} if any(is_ambiguous(text, zone) for text in texts if text) else {}


def is_ambiguous(text: str, zone: str) -> bool:
    """Whether an instant's local time in a zone is also another's; also where that cannot be told.

    >>> is_ambiguous("2025-11-02T06:30:00Z", "America/New_York"), is_ambiguous("2025-11-02T09:30:00Z", "Asia/Tokyo")
    (True, False)
    """
    if offset_of(zone) is not None:  # in which no hour comes twice
        return False
    try:
        local = datetime.fromisoformat(text).astimezone(zone_of(zone))
    except (ValueError, OSError, OverflowError, KeyError):
        return True
    return local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()


def refuse_zoneless(snapshot: TableSnapshot, chosen: Chosen) -> None:
    """Refuse partitions by TIMESTAMP whose values name no zone: each reader takes its own, so a rewrite shifts them.

    Raises:
        UnsupportedTableError: among those of the chosen files there is one; by public API, in the whole table.
    """
    for place in _places(snapshot, "timestamp"):
        if (found := _zoneless(snapshot, chosen, place)) is not None:
            name = snapshot.partition_columns[place]
            raise UnsupportedTableError(
                f"{snapshot.location} cannot be rewritten: values of its partition column {name} name no time zone "
                f"(e.g. {found}), so every reader takes them in its own, and new files would fix one; overwrite the "
                f"table by Delta 3.3 or newer in a session with {ZONE} of its writers first, which names it"
            )


def refuse_empty(snapshot: TableSnapshot, chosen: Chosen) -> None:
    """Refuse partitions by the empty string, which other engines write: Spark reads it, but writes null instead.

    Raises:
        UnsupportedTableError: a chosen file lies in one.
    """
    files = snapshot.files()
    for place in _places(snapshot, *TEXTS):  # of every other type the empty text is null
        if (found := next((text for i in chosen if (text := files.partitions[i][place]) in NULLS), None)) is not None:
            name = snapshot.partition_columns[place]
            raise UnsupportedTableError(
                f"{snapshot.location} cannot be rewritten: its partition column {name} has the value {found!r}, in "
                f"whose place Spark writes null; leave that partition out by --where, e.g. "
                f"\"{name} IS NULL OR {name} <> '{found}'\""
            )


def refuse_unreadable(snapshot: TableSnapshot, chosen: Chosen) -> None:
    """Refuse partitions by texts that are no values of their type: Spark reads null, and would write it for good.

    Other engines write such texts (``2024-02-30`` for a date). As null they could not be put right any more.

    Raises:
        UnsupportedTableError: a chosen file lies in one; by public API, as far as the names of folders tell.
    """
    if (found := _unreadable(snapshot, chosen)) is not None:
        place, text = found
        leaf, name = snapshot.partition_leaves[place], snapshot.partition_columns[place]
        leave = f'leave such partitions out by --where "{name} IS NOT NULL"'
        if snapshot.whole_partitions:  # Spark cannot read a condition on them
            leave += " and committer: transaction in a classic session"
        raise UnsupportedTableError(
            f"{snapshot.location} cannot be rewritten: its partition column {name} has the value {text!r}, which is no "
            f"{leaf.column.type}, so Spark would write null or another value in its place; have it put right by the "
            f"engine that wrote it, or {leave}"
        )


def _unreadable(snapshot: TableSnapshot, chosen: Chosen) -> tuple[int, str] | None:
    """A text that is no value of its type, after the place of its column among the partition columns."""
    from pyspark.sql import functions as F

    files, texts = snapshot.files(), _places(snapshot, *TEXTS)
    typed = [(i, leaf.column.type) for i, leaf in enumerate(snapshot.partition_leaves) if i not in texts]
    if snapshot.whole_partitions:  # no public API tells the text, but most writers name the folder by it
        nulls = [(place, files.path[i]) for place, _ in typed for i in chosen if files.partitions[i][place] is None]
        named = ((place, _in_path(path, snapshot.partition_columns, place)) for place, path in nulls)
        return next((one for one in named if one[1] not in NULLS), None)
    distinct = {files.partitions[i] for i in chosen}
    found = sorted({(i, text) for i, _ in typed for values in distinct if (text := values[i]) and text != NULL})
    if not found:
        return None
    columns = {"place": pa.array([place for place, _ in found], pa.int32()), "text": [text for _, text in found]}
    place = F.col("place")
    fits = [(place == i) & F.col("text").try_cast(cast_name(of)).isNotNull() for i, of in typed]
    wrong = snapshot.spark.createDataFrame(pa.table(columns)).where(~F.greatest(F.lit(False), *fits)).first()
    return None if wrong is None else (wrong["place"], wrong["text"])


def _in_path(path: str, columns: tuple[str, ...], place: int) -> str:
    """The text of a partition column that a file's folder is named by; "" where it is named otherwise.

    >>> _in_path("file:/t/n=1/at=2024-02-30%252012/part-0.parquet", ("n", "at"), 1)
    '2024-02-30 12'
    """
    folders = path.split("/")[:-1][-len(columns) :]
    name, _, text = unquote(unquote(folders[place] if len(folders) == len(columns) else "")).partition("=")
    return text if name == columns[place] else ""


def _places(snapshot: TableSnapshot, *families: str) -> list[int]:
    """Which partition columns are of some families of types, by their places."""
    leaves = snapshot.partition_leaves
    return [place for place, leaf in enumerate(leaves) if leaf.column.value_type.family in families]


def _zoneless(snapshot: TableSnapshot, chosen: Chosen, place: int) -> str | None:
    """A value without a zone."""
    from pyspark.sql import functions as F

    files = snapshot.files()
    if not snapshot.whole_partitions:
        texts = {files.partitions[i][place] for i in chosen}
        return next((text for text in sorted(filter(None, texts)) if not ZONED.search(text)), None)
    # no public API tells the text, but an instant is the same in every session
    known = {values[place] for values in files.partitions}
    zone = ELSEWHERE[session_zone(snapshot.spark) == ELSEWHERE[0]]
    with set_for_a_while(snapshot.spark, {ZONE: zone}):
        rows = snapshot.read()
        origin = rows.metadataColumn("_metadata").getField("file_path")  # so that nothing comes from Spark's cache
        column = F.unix_micros(F.col(column_sql((snapshot.partition_columns[place],)))).alias("micros")
        there = set(rows.where(origin.isNotNull()).select(column).distinct().toArrow()["micros"].to_pylist())
    moved = {text for text in known if text is not None and _micros(text) not in there}
    return f"{min(moved)} as read here" if moved else None


def _micros(text: str) -> int:
    return int(np.datetime64(text.removesuffix("Z"), "us").astype(np.int64))
