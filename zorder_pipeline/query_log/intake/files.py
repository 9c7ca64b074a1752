"""Log files wherever they lie: local or any filesystem pyarrow knows, plain or compressed as Spark and others do it."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
from pyarrow import fs

from zorder_pipeline.errors import LogError
from zorder_pipeline.model.places import filesystem_of

from .codecs import opened
from .delta_table import DeltaFile, Version, files_at
from .texts import as_utf8

__all__ = ["CODECS", "LogFile", "delta_log", "delta_logs", "is_delta", "list_logs", "open_anywhere", "open_log"]
__all__ += ["rolled_number", "unread"]

KINDS = {".jsonl": "json", ".json": "json", ".ndjson": "json", ".csv": "csv", ".parquet": "parquet", ".sql": "sql"}
KINDS |= {".log": "json", ".txt": "sql"}
CODECS = frozenset({".gz", ".gzip", ".zst", ".zstd", ".lz4", ".snappy", ".lzf", ".bz2"})
ROLLING = re.compile(r"eventlog_v2_.+")
ROLLED = re.compile(r"events_(\d+)_.+")
ROTATED = re.compile(r"[.-]\d[\d-]*$")
COMPACT = ".compact"
"""Ends the name of a file that stands for all rolled files up to its number."""
EXPECTED = ".jsonl, .csv, .parquet or .sql files (also compressed), Spark event logs, or a Delta table"


@dataclass(frozen=True)
class LogFile:
    """A log: one file, or the parts of a rolling event log.

    Attributes:
        source: URI or path that names it in messages and in the state.
        kind: json, csv, parquet, delta, sql or events.
        parts: paths to read one after the other, in the filesystem of ``source``.
        size: bytes of all parts.
        modified: when a log of one part was changed last, microseconds since 1970 UTC, where the filesystem tells it.
        delta: how the rows of a Delta table's data file are to be read.
    """

    source: str
    kind: str
    parts: tuple[str, ...]
    size: int
    modified: int | None = None
    delta: DeltaFile | None = None


def _filesystem(path: str) -> tuple[fs.FileSystem, str]:
    try:
        return filesystem_of(path)
    except OSError as error:
        raise LogError(f"query log {path} cannot be reached: {str(error).splitlines()[0]}") from error


def list_logs(path: str, log_format: str = "auto", elsewhere: Callable[[str], bool] | None = None) -> list[LogFile]:
    """The logs at ``path``: a file, a folder of them (History Server folders included), or a Delta table.

    Args:
        elsewhere: tells of a place in a folder that it is, or lies in, a log of its own.

    Raises:
        LogError: there is nothing there, or nothing that is a log, or a Delta table among other logs.
    """
    filesystem, place = _filesystem(path)
    place = place.rstrip("/") or "/"
    prefix = path.rstrip("/").removesuffix(place) if "://" in path else ""
    info = _info(filesystem, place, path)
    if info.type == fs.FileType.Unknown or (path == "-" and info.type == fs.FileType.NotFound):
        what = "a pipe" if path == "-" or Path(place).is_fifo() else "a device or a socket"
        raise LogError(
            f"query log {path} is {what}, and a log is read more than once; write it to a file, and give that"
        )
    if info.type == fs.FileType.NotFound:
        raise LogError(f"query log {path} does not exist; give a file or a folder of {EXPECTED}")
    if info.type == fs.FileType.File:
        kind = "events" if log_format == "spark-events" else _kind(place) or _sniffed(filesystem, place) or "sql"
        return [_file(prefix, info, kind)]
    if is_delta(path):
        return delta_logs(path)[1]
    left: list[str] = []

    def skipped(within: str) -> bool:
        if elsewhere is not None and elsewhere(within):
            left.append(within)
        return within in left

    found = list(_Walk(filesystem, prefix, log_format, skipped).of(place))
    if not found and not left:
        raise LogError(f"folder {path} holds no query log; expected {EXPECTED}")
    return found


def is_delta(path: str) -> bool:
    """Whether ``path`` is a Delta table's folder."""
    filesystem, place = _filesystem(path)
    return bool(_info(filesystem, f"{place.rstrip('/')}/_delta_log", path).type == fs.FileType.Directory)


def _info(filesystem: fs.FileSystem, place: str, path: str) -> fs.FileInfo:
    try:
        return filesystem.get_file_info(place)
    except OSError as error:
        raise LogError(f"query log {path} cannot be read: {error}") from error


def _listed(filesystem: fs.FileSystem, prefix: str, place: str, may_be_gone: bool) -> list[fs.FileInfo]:
    try:
        selector = fs.FileSelector(place, allow_not_found=may_be_gone)
        return sorted(filesystem.get_file_info(selector), key=lambda info: str(info.path))
    except OSError as error:
        raise LogError(
            f"query log folder {prefix + place} cannot be listed ({str(error).splitlines()[0]}); let this user read "
            "it, or name the files that are wanted"
        ) from error


class _Walk:
    """A walk over a folder, which comes to each file once, whatever symbolic links lead to it or in a circle.

    Args:
        skipped: tells of a place that it is none of the folder's.
    """

    def __init__(self, filesystem: fs.FileSystem, prefix: str, log_format: str, skipped: Callable[[str], bool]) -> None:
        self.filesystem, self.prefix, self.log_format, self.skipped = filesystem, prefix, log_format, skipped
        self.is_local = isinstance(filesystem, fs.LocalFileSystem)
        self._links: deque[fs.FileInfo] = deque()
        self._seen: set[str] = set()

    def of(self, place: str) -> Iterator[LogFile]:
        """The logs below a folder: first what lies there itself, so that it keeps its own name, then behind links."""
        yield from self._folder(place, os.path.realpath(place) if self.is_local else place)
        while self._links:
            info = self._links.popleft()
            yield from self._one(info, os.path.realpath(info.path))

    def _folder(self, place: str, real: str) -> Iterator[LogFile]:
        prefix = self.prefix
        listed = _listed(self.filesystem, prefix, place, may_be_gone=bool(self._seen))
        listing = [info for info in listed if not self.skipped(prefix + info.path)]
        if any(info.base_name == "_delta_log" and info.type == fs.FileType.Directory for info in listing):
            raise LogError(
                f"{prefix + place} is a Delta table among other query logs, and its files alone would tell rows twice "
                "that were rewritten or compacted; name it as a log of its own"
            )
        self._seen.add(real)
        rolled = sorted((int(m.group(1)), i) for i, f in enumerate(listing) if (m := ROLLED.fullmatch(f.base_name)))
        if rolled and ROLLING.fullmatch(place.rsplit("/", 1)[-1]):
            compacted = max((n for n, i in rolled if listing[i].base_name.endswith(COMPACT)), default=-1)
            kept = [(n, i) for n, i in rolled if n > compacted or listing[i].base_name.endswith(COMPACT)]
            parts = [listing[i] for n, i in kept if n >= compacted]
            size = sum(part.size or 0 for part in parts)
            yield LogFile(prefix + place, "events", tuple(p.path for p in parts), size)
            return
        for info in listing:
            if info.base_name.startswith((".", "_")):
                continue
            if self.is_local and os.path.islink(info.path):
                self._links.append(info)
            else:
                yield from self._one(info, f"{real.rstrip('/')}/{info.base_name}")

    def _one(self, info: fs.FileInfo, real: str) -> Iterator[LogFile]:
        """The logs at a place, unless they were come to already; ``real`` is where it lies."""
        if real in self._seen:
            return
        if info.type == fs.FileType.Directory:
            yield from self._folder(info.path, real)
        elif info.type == fs.FileType.File:
            self._seen.add(real)
            kind = "events" if self.log_format == "spark-events" else _kind(info.path)
            if (kind := kind or _sniffed(self.filesystem, info.path)) is not None:
                yield _file(self.prefix, info, kind)


def _file(prefix: str, info: fs.FileInfo, kind: str) -> LogFile:
    modified = None if info.mtime_ns is None else info.mtime_ns // 1000
    return LogFile(prefix + info.path, kind, (info.path,), info.size or 0, modified)


def _suffixes(path: str) -> list[str]:
    name = path.rsplit("/", 1)[-1].lower().removesuffix(".inprogress").removesuffix(COMPACT)
    return ["." + part for part in name.split(".")[1:]]


def _kind(path: str) -> str | None:
    suffixes = _suffixes(path)
    if suffixes and suffixes[-1] in CODECS:
        suffixes.pop()
    while suffixes and (rotated := ROTATED.search(suffixes[-1])):  # queries.sql.1, queries.csv-20261127
        suffixes[-1:] = [suffixes[-1][: rotated.start()]] if rotated.start() else []
    return KINDS.get(suffixes[-1]) if suffixes else None


def rolled_number(part: str) -> int:
    """Which file of a rolling event log a part is, 0 for others; a compacted one has the number of its last.

    >>> rolled_number("/h/eventlog_v2_app/events_3_app.zstd"), rolled_number("/h/app-1")
    (3, 0)
    """
    *_, folder, name = f"/{part}".split("/")
    rolled = ROLLED.fullmatch(name) if ROLLING.fullmatch(folder) else None
    return int(rolled[1]) if rolled else 0


def _sniffed(filesystem: fs.FileSystem, place: str) -> str | None:
    """Kind by the first bytes, for files whose name says nothing: event logs have no suffix."""
    try:
        with opened(filesystem.open_input_stream(place, compression=None)) as stream:
            head = as_utf8(stream).read(4096).lstrip(b"\0\xef\xbb\xbf \t\r\n")
    except (OSError, EOFError, pa.ArrowException):
        return None
    if head.startswith(b"{"):
        return "events" if b'"Event"' in head and b"Listener" in head else "json"
    return None


def delta_logs(path: str) -> tuple[Version, list[LogFile]]:
    """A Delta table's newest version, and its data files.

    Raises:
        LogError: it cannot be read.
    """
    version, found = files_at(path)
    return version, [delta_log(path, file) for file in found]


def delta_log(path: str, file: DeltaFile) -> LogFile:
    """A data file of the Delta table at ``path``."""
    _, place = _filesystem(path)
    prefix = path.rstrip("/").removesuffix(place.rstrip("/")) if "://" in path else ""
    return LogFile(prefix + file.path, "delta", (file.path,), file.size, delta=file)


def open_anywhere(log: LogFile, part: str) -> pa.NativeFile:
    """One part of a log, to be read at any place of it.

    Raises:
        LogError: its filesystem cannot be reached.
        OSError: it cannot be opened.
    """
    return _filesystem(log.source)[0].open_input_file(part)


def open_log(log: LogFile, part: str) -> BinaryIO:
    """One part of a log as uncompressed bytes.

    Of one that grows, those that were there when it was listed: it is read in shares, or by a task that is tried again,
    and what came in between would be new to the one and missing in the other.

    Raises:
        LogError: it cannot be opened; reading raises it, too, where the filesystem fails.
    """
    filesystem, _ = _filesystem(log.source)
    most = log.size if len(log.parts) == 1 and log.size > 0 else None
    try:
        return opened(_Stored(filesystem.open_input_stream(part, compression=None), part, most))
    except (OSError, pa.ArrowException) as error:
        raise unread(part, error) from error


def unread(part: str, error: Exception) -> LogError:
    """That a part of a log cannot be opened, or its filesystem fails, and not that it is damaged."""
    return LogError(f"query log {part} cannot be read: {(str(error).splitlines() or [type(error).__name__])[0]}")


class _Stored:
    """The bytes of a file, at most so many; a filesystem that fails is no end of it."""

    def __init__(self, stream: pa.NativeFile, part: str, most: int | None) -> None:
        self.stream, self.part, self.left = stream, part, most

    def read(self, size: int = -1) -> bytes:
        wanted = size if self.left is None else self.left if size < 0 else min(size, self.left)
        try:
            found = bytes(self.stream.read(None if wanted < 0 else wanted)) if wanted else b""
        except OSError as error:
            raise unread(self.part, error) from error
        if self.left is not None:
            self.left -= len(found)
        return found

    def close(self) -> None:
        self.stream.close()
