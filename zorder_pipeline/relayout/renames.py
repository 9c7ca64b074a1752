"""Names that a table's columns had before they were renamed, by which queries and layouts of that time call them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from zorder_pipeline.model.schema import TableSchema

from .history import commits_after, operation_of, restored
from .leaves import Leaf
from .snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import Row

__all__ = ["former_names", "with_former_names"]

Path = tuple[str, ...]

MAPPING = "delta.columnMapping.mode"
RENAME, ADD = "RENAME COLUMN", "ADD COLUMNS"
REPLACED = re.compile(r"(CREATE OR )?REPLACE TABLE|CLONE")
GIVEN = re.compile(r"col-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Physical name of a column that the table got under column mapping; one that was there before keeps its first name."""
_told: dict[tuple[str, str], tuple[int, list[Row]]] = {}
"""Per table and place, up to which version this process has read the history, and the commits that tell of names."""


def with_former_names(snapshot: TableSnapshot) -> TableSchema:
    """The schema of a table with the names that its columns had before, as far as its history is kept.

    Without column mapping no column can be renamed, and those that have their first names were not: nothing is looked
    up then.
    """
    if snapshot.properties.get(MAPPING, "none") == "none" or all(x.physical == x.path for x in snapshot.leaves):
        return snapshot.schema
    return TableSchema(snapshot.schema.columns, former_names(snapshot.leaves, _commits_about_names(snapshot)))


def _commits_about_names(snapshot: TableSnapshot) -> list[Row]:
    """Commits of a table's history that tell of names, newest first; each is read once, of a stream there are many."""
    key = snapshot.table_id, snapshot.location
    until, known = _told.get(key, (-1, []))
    if until < snapshot.version:
        known = [row for row in commits_after(snapshot, until) if _is_about_names(row)] + known
        _told[key] = snapshot.version, known
    return [row for row in known if int(row["version"]) <= snapshot.version]


def _is_about_names(row: Row) -> bool:
    return operation_of(row) in (RENAME, ADD, "RESTORE") or REPLACED.match(operation_of(row)) is not None


def former_names(leaves: Sequence[Leaf], commits: Sequence[Row]) -> tuple[tuple[str, str], ...]:
    """Each former name of a leaf column, with its name of today; names that another column has today are left out.

    Args:
        leaves: leaf columns of the newest version.
        commits: the table's history, newest first.
    """
    present = {leaf.path: leaf.column.name for leaf in leaves}
    found: dict[str, str] = {}
    called, passed_over = dict(present), None
    for row in commits:
        if passed_over is not None and int(row["version"]) > passed_over:
            continue  # a RESTORE took it back
        passed_over = restored(row, commits) if row["operation"] == "RESTORE" else None
        asked = row["operationParameters"] or {}
        if row["operation"] == RENAME:
            before, after = _path(asked.get("oldColumnPath", "")), _path(asked.get("newColumnPath", ""))
            called = {_renamed(path, after, before): name for path, name in _without([before], called).items()}
            found = {".".join(path): name for path, name in called.items() if path not in present} | found
        elif row["operation"] == ADD:
            called = _without(_added(asked), called)
        elif REPLACED.match(operation_of(row)):
            break
    for leaf in leaves:
        if leaf.physical != leaf.path and not any(GIVEN.fullmatch(part) for part in leaf.physical):
            found.setdefault(".".join(leaf.physical), leaf.column.name)
    taken = {name.lower() for name in present.values()}
    return tuple((old, name) for old, name in found.items() if old.lower() not in taken)


def _renamed(path: Path, after: Path, before: Path) -> Path:
    return (*before, *path[len(after) :]) if after and path[: len(after)] == after else path


def _without(paths: Sequence[Path], called: Mapping[Path, str]) -> dict[Path, str]:
    """Without the columns that came later than others at these paths."""
    return {path: name for path, name in called.items() if not any(p and path[: len(p)] == p for p in paths)}


def _path(text: str) -> Path:
    """The parts of a column's path as Delta's history writes it, where odd ones stand in backquotes.

    >>> _path("s.`a.b`"), _path("cust")
    (('s', 'a.b'), ('cust',))
    """
    return tuple(
        part[1:-1].replace("``", "`") if part.startswith("`") else part
        for part in re.findall(r"`(?:[^`]|``)*`|[^.`]+", text)
    )


def _added(asked: Mapping[str, Any]) -> list[Path]:
    try:
        return [_path(each["column"]["name"]) for each in json.loads(asked["columns"])]
    except (KeyError, TypeError, ValueError):
        return []
