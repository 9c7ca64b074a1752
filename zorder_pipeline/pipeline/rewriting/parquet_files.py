"""Which Parquet files a folder holds, what their paths say of their rows, and the columns they have together."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from zorder_pipeline.errors import TableError
from zorder_pipeline.model.partition_key import NULL

__all__ = ["ParquetFile", "as_spark_reads", "columns_together", "parquet_files", "path_columns"]

TABLES = {"_delta_log": "Delta", ".hoodie": "Hudi", "metadata/*.metadata.json": "Iceberg"}
"""What lies in the folder of a table that keeps a list of its files: not every file in it is one of its."""

MAGIC = b"PAR1"
SIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}
"""What Spark reads numbers without a sign as; Delta has no such types."""
NUMBER, DATE = r"-?\d+", r"\d{4}-\d\d-\d\d"
KINDS = (
    (pa.int32(), NUMBER),
    (pa.int64(), NUMBER),
    (pa.float64(), r"-?(\d{1,9}|\d*\.\d+)"),
    (pa.date32(), DATE),
    (pa.timestamp("us"), rf"{DATE}( \d\d:\d\d:\d\d(\.\d)?)?"),
)
"""What the values of paths may be, in the order in which Spark tries it; what is none of it is text."""


@dataclass(frozen=True)
class ParquetFile:
    """A file and what its path says of all its rows.

    Attributes:
        keys: values by column, the outermost folder first, as the path has them; None for Hive's null.
    """

    path: Path
    keys: Mapping[str, str | None]


def parquet_files(sources: Iterable[Path]) -> list[ParquetFile]:
    """The Parquet files of files and folders, those of a folder in the order of their paths.

    Links to folders are followed, as Spark does: a folder that two of them lead to is read twice.
    Names that begin with ``_`` or ``.`` are passed over, as Spark does: they are what jobs that failed or still run
    have left. Columns come from folders named ``column=value``, also where the source is one or lies in one.

    Raises:
        TableError: a folder belongs to a table that keeps a list of its files, files of which not all have the same
            columns in their paths, or a folder cannot be read.
    """
    found: list[ParquetFile] = []
    known = set[Path]()
    for source in sources:
        base = source if source.is_dir() else source.parent
        for folder in (base.absolute(), *base.absolute().parents):
            _refuse_tables(folder)
        paths = sorted(_below(source)) if source.is_dir() else [source]
        paths = [path for path in paths if path.resolve() not in known]  # a file that is named twice counts once
        known.update(path.resolve() for path in paths)
        found += [ParquetFile(path, _keys(path.absolute(), base.absolute())) for path in paths]
    for file in found:
        if list(file.keys) != list(found[0].keys):
            raise TableError(
                f"{found[0].path} and {file.path} have different columns in their paths ({_listed(found[0].keys)}; "
                f"{_listed(file.keys)}); name folders of one table only"
            )
    return found


def path_columns(files: Sequence[ParquetFile]) -> dict[str, pa.Array]:
    """The columns that the paths have, a value for each file, of the types that Spark would read them as.

    Instants are taken as UTC, as by a session of ours.
    """
    names = files[0].keys if files else {}
    return {name: _typed([file.keys[name] for file in files]) for name in names}


def columns_together(files: Sequence[tuple[Path, pa.Schema]], besides: Iterable[str] = ()) -> pa.Schema:
    """The columns of all files in one schema, each of a type that holds all its values.

    Args:
        files: their paths and schemas.
        besides: columns that are not asked of the files, as their paths have them.

    Raises:
        TableError: a column has types that do not go together, or two names differ in case only.
    """
    types: dict[str, dict[pa.DataType, Path]] = {}
    spelled: dict[str, tuple[str, Path]] = {}
    passed = {name.lower() for name in besides}
    for path, schema in files:
        for field in schema:
            if field.name.lower() in passed:
                continue
            name, first = spelled.setdefault(field.name.lower(), (field.name, path))
            if name != field.name or schema.names.count(name) > 1:
                raise TableError(
                    f"columns {name} in {first} and {field.name} in {path} are one to Spark and Delta, which do not "
                    f"tell small from capital letters; rename one"
                )
            plain = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
            types.setdefault(name, {}).setdefault(plain, path)
    return pa.schema([pa.field(name, _signed(_together(name, seen))) for name, seen in types.items()])


def as_spark_reads(fragment: Any) -> pa.Schema:
    """The schema of a file as Spark has it: times as INT96, as which it writes TIMESTAMP, are instants, and all may be
    null (delta-rs names a feature that what may not be null takes only in tables without others).

    Args:
        fragment: of a pyarrow dataset.
    """
    schema, leaves = fragment.physical_schema, fragment.metadata.schema
    kinds = iter([leaves.column(place).physical_type for place in range(len(leaves))])
    return pa.schema([_nullable(field, kinds) for field in schema])


def _nullable(field: pa.Field, physical: Iterator[str]) -> pa.Field:
    return field.with_type(_instants(field.type, physical)).with_nullable(True)


def _instants(kind: pa.DataType, physical: Iterator[str]) -> pa.DataType:
    """The type with instants where its leaves, which are in the order of the file's columns, are INT96."""
    if pa.types.is_struct(kind):
        return pa.struct([_nullable(field, physical) for field in kind])
    if pa.types.is_map(kind):
        key = _instants(kind.key_type, physical)
        return pa.map_(key, _instants(kind.item_type, physical))
    if pa.types.is_large_list(kind):
        return pa.large_list(_nullable(kind.value_field, physical))
    if pa.types.is_list(kind):
        return pa.list_(_nullable(kind.value_field, physical))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_nullable(kind.value_field, physical), kind.list_size)
    return pa.timestamp("us", "UTC") if next(physical, "") == "INT96" else kind


def _signed(kind: pa.DataType) -> pa.DataType:
    """The type with `SIGNED` numbers, also in what is nested."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_signed(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_signed(kind.key_type), _signed(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        made = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return made(kind.value_field.with_type(_signed(kind.value_type)))
    return SIGNED.get(kind, kind)


def _refuse_tables(folder: Path) -> None:
    for mark, kind in TABLES.items():
        if not any(folder.glob(mark)):
            continue
        wrong = f"{folder} is a table of {kind}, whose folder also holds files of rows that it no longer has"
        if kind == "Delta":
            raise TableError(f"{wrong}; use the table itself, with --table {folder} instead of --parquet")
        raise TableError(f"{wrong}; let Spark write its rows as a Delta table, and name that with --table")


def _below(folder: Path, above: frozenset[str] = frozenset()) -> Iterator[Path]:
    """The files of a folder and of those in it, through links, too, but for one that leads back to what it lies in.

    Args:
        above: the real paths of the folders on the way to this one.
    """
    real = os.path.realpath(folder)
    if real in above:
        return
    _refuse_tables(folder)
    with os.scandir(folder) as entries:
        found = [(folder / each.name, _is_folder(each)) for each in entries if not _passed_over(each.name)]
    for path, is_folder in found:
        if is_folder:
            yield from _below(path, above | {real})
        elif _is_parquet(path):
            yield path


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _is_parquet(path: Path) -> bool:
    """Whether a file is Parquet, however it is called: Hive and Impala write names without an ending."""
    if path.suffix == ".parquet":
        return True
    try:
        if not path.is_file():  # a pipe, or a link to nowhere
            return False
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:  # not to be read: what is called otherwise may be anything
        return False


def _passed_over(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _keys(path: Path, base: Path) -> dict[str, str | None]:
    """The columns in the path: the folders ``column=value`` next to each other, as Spark looks for them."""
    found: list[tuple[str, str | None]] = []
    for folder in path.parents:
        name, equals, value = folder.name.partition("=")
        if name and equals:
            found.append((unquote(name), None if value in ("", NULL) else unquote(value)))
        elif found or not folder.is_relative_to(base) or folder == base:
            break
    return dict(reversed(found))


def _typed(values: Sequence[str | None]) -> pa.Array:
    texts = pa.array(values, pa.string())
    given = [value for value in values if value is not None]
    for kind, form in KINDS if given else ():
        if not all(re.fullmatch(form, value, re.ASCII) for value in given):
            continue
        try:
            typed = texts.cast(kind)
        except pa.ArrowInvalid:  # a number that is too large, a day that no month has
            continue
        return typed.cast(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(kind) else typed
    return texts


def _together(name: str, seen: Mapping[pa.DataType, Path]) -> pa.DataType:
    """The type that holds the values of all these types; the files they are of are named where there is none."""
    result, *_ = seen
    for kind, path in seen.items():
        try:
            both = [pa.schema([pa.field(name, each)]) for each in (result, kind)]
            wider = pa.unify_schemas(both, promote_options="permissive").field(0).type
        except (pa.ArrowTypeError, pa.ArrowInvalid):
            wider = None
        if wider is None or _rounds(result, wider) or _rounds(kind, wider):
            first, other = next(iter(seen.items()))
            raise TableError(
                f"column {name} is {first} in {other} and {kind} in {path}, and no type holds both; "
                f"write the files with one type"
            )
        result = wider
    return result


def _rounds(kind: pa.DataType, wider: pa.DataType) -> bool:
    """Whether numbers become fractions of binary digits that cannot hold each of them."""
    if pa.types.is_floating(wider) and not pa.types.is_floating(kind):
        return not (pa.types.is_integer(kind) and kind.bit_width < wider.bit_width)
    inner, outer = _parts(kind), _parts(wider)
    return any(_rounds(inner[name], outer[name]) for name in inner.keys() & outer.keys())


def _parts(kind: pa.DataType) -> dict[str, Any]:
    if pa.types.is_struct(kind):
        return {field.name: field.type for field in kind}
    if pa.types.is_map(kind):
        return {"key": kind.key_type, "value": kind.item_type}
    return {"element": kind.value_type} if pa.types.is_nested(kind) and hasattr(kind, "value_type") else {}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
