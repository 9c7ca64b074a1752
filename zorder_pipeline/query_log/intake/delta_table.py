"""A Delta table that is a query log: which of its rows are new since a version, and what they are beside their files.

Delta's rows have no identity, so what DELETE, UPDATE, MERGE and overwriting write are old rows among new ones, as an
export is that is written over. What OPTIMIZE writes (``dataChange`` false) holds nothing new.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

import numpy as np
import pyarrow as pa
from pyarrow import fs

from zorder_pipeline.errors import LogError
from zorder_pipeline.model.places import filesystem_of, is_uri, said_of, shown_place, without_query

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["DeltaFile", "Grown", "Names", "Version", "files_at", "files_since", "storage_options"]

Names = Mapping[str, tuple[str, "Names"]]
"""Of a table with column mapping, by the names of columns and fields in its files: their own, and those of fields."""
PHYSICAL = "delta.columnMapping.physicalName"


@dataclass(frozen=True)
class DeltaFile:
    """A data file, and what it takes to read its rows as the table has them.

    Attributes:
        path: in the table's filesystem.
        size: bytes.
        partition: the table's own columns of it, by name.
        names: of the columns in the file, where they are not the table's.
        deleted: one bit per row, set where a deletion vector hides it; rows beyond are there.
    """

    path: str
    size: int
    partition: tuple[tuple[str, str | None], ...] = ()
    names: Names = field(default_factory=dict, hash=False)
    deleted: bytes = b""


@dataclass(frozen=True)
class Version:
    """A version of a table, and which table that is: one that was dropped and made anew has another id."""

    table_id: str
    number: int


@dataclass(frozen=True)
class Grown:
    """What a table has got since a version.

    Attributes:
        version: the newest one.
        new: files all of whose rows are new, in commit order.
        rewritten: files whose rows may have been there before.
        gap: commits since then are gone from its log, so ``rewritten`` are all of its files.
        vacuumed: files that were added since then are gone, so their rows are in what they were merged into.
    """

    version: Version
    new: tuple[DeltaFile, ...] = ()
    rewritten: tuple[DeltaFile, ...] = ()
    gap: bool = False
    vacuumed: bool = False


def files_at(path: str) -> tuple[Version, list[DeltaFile]]:
    """A table's newest version, and its files.

    Raises:
        LogError: it cannot be read.
    """
    table = _Table(path)
    return table.version, table.files()


def files_since(path: str, since: Version) -> Grown:
    """What a table has got since a version.

    While rows were only added, these are the files that were, even if OPTIMIZE has merged them since. Where rows were
    changed or deleted, or VACUUM has removed what was merged, it is what lies in files that were not there before; of
    another table in its place, or where Delta has removed commits since then from the log, all.

    Args:
        since: with no id where that is not known.

    Raises:
        LogError: it cannot be read.
    """
    table = _Table(path)
    if table.version.number < since.number or since.table_id not in ("", table.version.table_id):
        return Grown(table.version, rewritten=tuple(table.files()))
    try:
        return _told_by_commits(table, since.number)
    except FileNotFoundError:
        return Grown(table.version, rewritten=tuple(table.files()), gap=True)


def _told_by_commits(table: _Table, since: int) -> Grown:
    """What the commits after version ``since`` have brought.

    Raises:
        FileNotFoundError: one is gone.
        LogError: one cannot be read.
    """
    born: dict[str, dict[str, Any]] = {}
    new: set[str] = set()
    dropped: set[str] = set()
    changed = False
    for actions in table.commits(since):
        removed = {one["path"]: one for one in _of("remove", actions)}
        restored = any(one.get("operation") == "RESTORE" for one in _of("commitInfo", actions))  # may remove nothing
        changes = restored or any(one.get("dataChange", True) for one in removed.values())
        changed |= changes
        dropped |= removed.keys()
        for add in _of("add", actions):
            dropped.discard(add["path"])
            if add["path"] in removed or add["path"] in born:
                continue  # it has another deletion vector, statistics or tags now
            born[add["path"]] = add
            if add.get("dataChange", True) and not changes:
                new.add(add["path"])
    vacuumed = not changed and table.lacks(new & dropped)
    wanted = [name for name in born if changed or vacuumed or name in new]
    if (changed or vacuumed) and wanted:
        there = {_key(add["path"]) for add in table.adds()}
        wanted = [name for name in wanted if _key(name) in there]
    files = {name: table.file(born[name], table.names) for name in wanted}
    rewritten = tuple(file for name, file in files.items() if name not in new)
    added = tuple(file for name, file in files.items() if name in new)
    return Grown(table.version, added, rewritten, vacuumed=vacuumed)


class _Table:
    """A table's newest version, as delta-rs has it."""

    def __init__(self, path: str) -> None:
        from deltalake import DeltaTable

        self.path, self.shown = path, shown_place(path)
        with self._told():
            self.filesystem, place = filesystem_of(path)
            self.place = place.rstrip("/")
            called = without_query(path).rstrip("/") if "://" in path else self.place
            self.table: DeltaTable = DeltaTable(called, storage_options=storage_options(path) or None)
            self.names = _names(json.loads(self.table.schema().to_json()))
        self.version = Version(str(self.table.metadata().id), self.table.version())

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """What delta-rs cannot read as `LogError`."""
        from deltalake.exceptions import DeltaError

        try:
            yield
        except (DeltaError, OSError) as error:
            raise LogError(
                f"query log {self.shown} is a Delta table that cannot be read here: {said_of(self.path, error)}; "
                "export it as Parquet or JSON Lines"
            ) from error

    @cached_property
    def deleted(self) -> dict[str, bytes]:
        """The rows that deletion vectors hide, by file (`_key`)."""
        if "deletionVectors" not in (self.table.protocol().reader_features or ()):
            return {}
        with self._told():
            told = pa.table(self.table.deletion_vectors())
        return {
            _key(file.as_py(), self.table.table_uri): np.packbits(~np.asarray(kept.values, dtype=np.bool_)).tobytes()
            for file, kept in zip(told["filepath"], told["selection_vector"], strict=True)
        }

    def files(self) -> list[DeltaFile]:
        """Its files, in the order of their names."""
        return [self.file(add, {}) for add in sorted(self.adds(), key=lambda add: str(add["path"]))]

    def adds(self) -> list[dict[str, Any]]:
        """Its files, by the names that their actions in the log have."""
        with self._told():
            told = pa.table(self.table.get_add_actions())
        wanted = told.select([name for name in ("path", "size_bytes", "partition") if name in told.column_names])
        return [
            {"path": row["path"], "size": row["size_bytes"], "partitionValues": row.get("partition") or {}}
            for row in wanted.to_pylist()
        ]

    def file(self, add: Mapping[str, Any], names: Names) -> DeltaFile:
        """What an action adds, as it is in this version; ``names`` are those that its partition's columns go by."""
        values = {names.get(name, (name, {}))[0]: value for name, value in add["partitionValues"].items()}
        partition = tuple((name, None if value is None else str(value)) for name, value in values.items())
        deleted = self.deleted.get(_key(add["path"]), b"")
        return DeltaFile(self._place(add["path"]), add["size"], partition, self.names, deleted)

    def lacks(self, paths: Collection[str]) -> bool:
        """Whether any file is gone from the filesystem, by the names that actions have for them.

        Raises:
            LogError: the filesystem does not tell.
        """
        try:
            found = self.filesystem.get_file_info([self._place(path) for path in paths]) if paths else []
        except OSError as error:
            raise LogError(f"query log {self.shown} cannot be read: {str(error).splitlines()[0]}") from error
        return any(info.type == fs.FileType.NotFound for info in found)

    def _place(self, path: str) -> str:
        """Where a file lies, by the name that its action has for it."""
        key = _key(path)
        return filesystem_of(key)[1] if key.startswith("/") or is_uri(key) else f"{self.place}/{key}"

    def commits(self, since: int) -> Iterator[list[dict[str, Any]]]:
        """The actions of each commit after version ``since``.

        Raises:
            FileNotFoundError: one is gone.
            LogError: one cannot be read.
        """
        for version in range(since + 1, self.version.number + 1):
            try:
                with self.filesystem.open_input_stream(f"{self.place}/_delta_log/{version:020d}.json") as stream:
                    yield [json.loads(line) for line in stream.read().splitlines() if line.strip()]
            except FileNotFoundError:
                raise
            except OSError as error:
                raise LogError(f"query log {self.shown} cannot be read: {str(error).splitlines()[0]}") from error


def storage_options(path: str) -> dict[str, str]:
    """The options behind the path of a URI, by the names that delta-rs has for them.

    >>> storage_options("s3://lake/t?region=eu-west-1&endpoint_override=host:9000&scheme=http")
    {'region': 'eu-west-1', 'endpoint': 'http://host:9000', 'allow_http': 'true'}
    """
    options = dict(parse_qsl(path.removeprefix(without_query(path)).removeprefix("?")))
    endpoint, scheme = options.pop("endpoint_override", None), options.pop("scheme", "https")
    if endpoint is not None:
        options["endpoint"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    return options | ({"allow_http": "true"} if options.get("endpoint", "").startswith("http:") else {})


def _of(kind: str, actions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [action[kind] for action in actions if kind in action]


def _key(path: str, root: str = "") -> str:
    """What tells a file of a table from its others: its name below ``root``, or an absolute one, as clones have.

    >>> _key("d=1%202/a.parquet"), _key("file:///t/d=1%202/a.parquet", "file:///t/"), _key("file:/u/a.parquet")
    ('d=1 2/a.parquet', 'd=1 2/a.parquet', '/u/a.parquet')
    """
    return re.sub(r"^file:/+", "/", unquote(path.removeprefix(root)))


def _names(kind: Any) -> Names:
    """Names in the files by a type of Delta's schema, also of fields in lists and maps; none without column mapping."""
    if not isinstance(kind, Mapping):
        return {}
    found: dict[str, tuple[str, Names]] = {}
    for one in kind.get("fields", ()):
        inside = _names(one["type"])
        if (stored := one.get("metadata", {}).get(PHYSICAL, one["name"])) != one["name"] or inside:
            found[stored] = (one["name"], inside)
    for part in ("elementType", "keyType", "valueType"):
        found |= _names(kind.get(part))
    return found
