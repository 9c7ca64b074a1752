"""Log files wherever they lie: local or any filesystem pyarrow knows, plain or compressed as Spark and others do it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs

from zorder_pipeline.errors import LogError
from zorder_pipeline.model.places import filesystem_of, local_path, named_below, shown_place
from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.model.wording import counted

from .delta_table import DeltaFile, Version, files_at
from .kinds import ARCHIVES, COMPACT, ROLLED, ROLLING, kind_alone, kind_of, suffixes_of

__all__ = ["LogFile", "delta_log", "delta_logs", "is_delta", "list_logs", "siblings_of"]

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
        root: by which its filesystem is reached, where that is not ``source``.
    """

    source: str
    kind: str
    parts: tuple[str, ...]
    size: int
    modified: int | None = None
    delta: DeltaFile | None = None
    root: str = ""

    @property
    def filesystem(self) -> fs.FileSystem:
        """That which has its parts.

        Raises:
            LogError: it cannot be reached.
        """
        return _filesystem(self.root or self.source)[0]


def _filesystem(path: str) -> tuple[fs.FileSystem, str]:
    try:
        return filesystem_of(path)
    except OSError as error:
        raise LogError(f"query log {shown_place(path)} cannot be reached: {str(error).splitlines()[0]}") from error


def list_logs(
    path: str,
    log_format: str = "auto",
    elsewhere: Callable[[str], bool] | None = None,
    progress: Progress = silent,
) -> list[LogFile]:
    """The logs at ``path``: a file, a folder of them (History Server folders included), or a Delta table.

    Args:
        log_format: see `zorder_pipeline.query_log.intake.kinds.kind_of`.
        elsewhere: tells of a place in a folder that it is, or lies in, a log of its own.
        progress: told of files in a folder that are no logs.

    Raises:
        LogError: there is nothing there, or nothing that is a log, or a Delta table among other logs.
    """
    filesystem, place = _filesystem(path)
    place = place.rstrip("/") or "/"
    info = _info(filesystem, place, path)
    if info.type == fs.FileType.Unknown or (path == "-" and info.type == fs.FileType.NotFound):
        what = "a pipe" if path == "-" or Path(place).is_fifo() else "a device or a socket"
        raise LogError(
            f"query log {shown_place(path)} is {what}, and a log is read more than once; write it to a file, and give "
            "that"
        )
    if info.type == fs.FileType.NotFound:
        raise LogError(f"query log {shown_place(path)} does not exist; give a file or a folder of {EXPECTED}")
    walk = _Walk(filesystem, path, place, log_format, elsewhere or (lambda _: False))
    if info.type == fs.FileType.File:
        if (kind := kind_of(filesystem, place, log_format)) is None and ARCHIVES & set(suffixes_of(place)[-1:]):
            raise LogError(
                f"query log {shown_place(path)} is an archive of a kind that is not read here; unpack it, or use gzip"
            )
        return [walk.file(info, kind or kind_alone(filesystem, place))]
    if is_delta(path):
        return delta_logs(path)[1]
    found = list(walk.logs())
    for sentence in walk.left_out():
        progress(sentence)
    if not found and not walk.left:
        only = log_format in ("sql", "query-history")
        why = f" of the format {log_format}, which looks for no event logs; leave the format out" if only else ""
        raise LogError(f"folder {shown_place(path)} holds no query log{why or f'; expected {EXPECTED}'}")
    return found


def is_delta(path: str) -> bool:
    """Whether ``path`` is a Delta table's folder."""
    filesystem, place = _filesystem(path)
    return bool(_info(filesystem, f"{place.rstrip('/')}/_delta_log", path).type == fs.FileType.Directory)


def _info(filesystem: fs.FileSystem, place: str, path: str) -> fs.FileInfo:
    try:
        return filesystem.get_file_info(place)
    except UnicodeEncodeError as error:
        named = shown_place(path).encode(errors="backslashreplace").decode()
        raise LogError(f"query log {named} has a name that is no UTF-8; rename what is called so") from error
    except OSError as error:
        raise LogError(f"query log {shown_place(path)} cannot be read: {error}") from error


class _Walk:
    """A walk over a folder, which comes to each file once, whatever symbolic links lead to it or in a circle.

    Args:
        path: of the folder, as it was named.
        place: the same in the filesystem.
        elsewhere: tells of a place that it is none of the folder's.
    """

    def __init__(
        self, filesystem: fs.FileSystem, path: str, place: str, log_format: str, elsewhere: Callable[[str], bool]
    ) -> None:
        self.filesystem, self.path, self.place = filesystem, path, place
        self.shown = shown_place(path)
        self.log_format, self.elsewhere = log_format, elsewhere
        self.is_local = isinstance(filesystem, fs.LocalFileSystem)
        self.left = 0
        self._unknown: list[str] = []
        self._unnamed = 0
        self._links: deque[fs.FileInfo] = deque()
        self._seen: set[str] = set()

    def logs(self) -> Iterator[LogFile]:
        """The logs below it: first what lies there itself, so that it keeps its own name, then behind links."""
        yield from self._folder(self.place, os.path.realpath(self.place) if self.is_local else self.place)
        while self._links:
            info = self._links.popleft()
            yield from self._one(info, os.path.realpath(info.path))

    def left_out(self) -> Iterator[str]:
        """What files were no logs, in words."""
        if self._unknown:
            files = counted(len(self._unknown), "file")
            yield f"{files} in {self.shown} left out as no query log of a known form, such as {self._unknown[0]}"
        if self._unnamed:
            yield f"{counted(self._unnamed, 'name')} in {self.shown} left out as no UTF-8; rename what is called so"

    def file(self, info: fs.FileInfo, kind: str) -> LogFile:
        """The log that is one file."""
        modified = None if info.mtime_ns is None else info.mtime_ns // 1000
        source = named_below(self.path, self.place, info.path)
        return LogFile(source, kind, (info.path,), info.size or 0, modified, root=_root(self.path))

    def _named(self, place: str) -> str:
        return named_below(self.path, self.place, place)

    def _listed(self, place: str) -> list[fs.FileInfo]:
        try:
            selector = fs.FileSelector(place, allow_not_found=bool(self._seen))
            listed = [info for info in self.filesystem.get_file_info(selector) if self._has_name(info)]
            return sorted(listed, key=lambda info: str(info.path))
        except OSError as error:
            raise LogError(
                f"query log folder {self._named(place)} cannot be listed ({str(error).splitlines()[0]}); let this user "
                "read it, or name the files that are wanted"
            ) from error

    def _has_name(self, info: fs.FileInfo) -> bool:
        try:
            return bool(info.path)
        except UnicodeDecodeError:
            self._unnamed += 1
            return False

    def _is_elsewhere(self, place: str) -> bool:
        found = self.elsewhere(self._named(place))
        self.left += found
        return found

    def _folder(self, place: str, real: str) -> Iterator[LogFile]:
        listing = [info for info in self._listed(place) if not self._is_elsewhere(info.path)]
        if any(info.base_name == "_delta_log" and info.type == fs.FileType.Directory for info in listing):
            raise LogError(
                f"{self._named(place)} is a Delta table among other query logs, and its files alone would tell rows "
                "twice that were rewritten or compacted; name it as a log of its own"
            )
        self._seen.add(real)
        rolled = sorted((int(m.group(1)), i) for i, f in enumerate(listing) if (m := ROLLED.fullmatch(f.base_name)))
        if rolled and ROLLING.fullmatch(place.rsplit("/", 1)[-1]):
            compacted = max((n for n, i in rolled if listing[i].base_name.endswith(COMPACT)), default=-1)
            kept = [(n, i) for n, i in rolled if n > compacted or listing[i].base_name.endswith(COMPACT)]
            parts = [listing[i] for n, i in kept if n >= compacted]
            size = sum(part.size or 0 for part in parts)
            yield LogFile(self._named(place), "events", tuple(p.path for p in parts), size, root=_root(self.path))
            return
        for info in listing:
            if info.base_name.startswith((".", "_")):
                continue
            if self.is_local and os.path.islink(info.path):
                self._links.append(info)
            else:
                yield from self._one(info, f"{real.rstrip('/')}/{info.base_name}")

    def _one(self, info: fs.FileInfo, real: str) -> Iterator[LogFile]:
        """The logs at a place that are the folder's and were not yet come to; ``real`` is where it lies."""
        if real in self._seen or (self.is_local and real != info.path and self._is_elsewhere(real)):
            return
        if info.type == fs.FileType.Directory:
            yield from self._folder(info.path, real)
        elif info.type == fs.FileType.File:
            self._seen.add(real)
            if (kind := kind_of(self.filesystem, info.path, self.log_format)) is not None:
                yield self.file(info, kind)
            elif info.size:
                self._unknown.append(info.base_name)


def siblings_of(path: str, log: LogFile) -> Iterator[LogFile]:
    """Files beside a log that is named alone which begin with its name up to the first dot, as rotated ones do.

    None where their folder may not be listed.
    """
    folder, _, name = log.parts[0].rpartition("/")
    stem = name.partition(".")[0]
    walk = _Walk(log.filesystem, path, log.parts[0], "auto", lambda _: False)
    try:
        listed = walk._listed(folder or ("/" if log.parts[0].startswith("/") else "."))
    except LogError:
        return
    for info in listed:
        if info.type == fs.FileType.File and info.base_name != name and info.base_name.startswith(stem):
            yield walk.file(info, log.kind)


def _root(path: str) -> str:
    """What a log keeps of the name of its folder to be reached by: a URI may have its options behind its path."""
    return path if local_path(path) is None else ""


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
    source = named_below(path, place, file.path)
    return LogFile(source, "delta", (file.path,), file.size, delta=file, root=_root(path))
