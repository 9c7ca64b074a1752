"""Logs as bytes: a part of one at any place, or uncompressed from its beginning; and what is said if that fails."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from zorder_pipeline.errors import LogError

from .codecs import opened

if TYPE_CHECKING:
    from .files import LogFile

__all__ = ["Watched", "open_anywhere", "open_log", "unexpected", "unread"]


def open_anywhere(log: LogFile, part: str) -> pa.NativeFile:
    """One part of a log, to be read at any place of it.

    Raises:
        LogError: its filesystem cannot be reached.
        OSError: it cannot be opened.
    """
    return log.filesystem.open_input_file(part)


def open_log(log: LogFile, part: str) -> BinaryIO:
    """One part of a log as uncompressed bytes.

    Of one that grows, those that were there when it was listed: it is read in shares, or by a task that is tried again,
    and what came in between would be new to the one and missing in the other.

    Raises:
        LogError: it cannot be opened; reading raises it, too, where the filesystem fails.
    """
    filesystem = log.filesystem
    most = log.size if len(log.parts) == 1 and log.size > 0 else None
    try:
        return opened(_Stored(filesystem.open_input_stream(part, compression=None), part, most))
    except (OSError, pa.ArrowException) as error:
        raise unread(part, error) from error


def unread(part: str, error: Exception) -> LogError:
    """That a part of a log cannot be opened, or its filesystem fails, and not that it is damaged."""
    return LogError(f"query log {part} cannot be read: {(str(error).splitlines() or [type(error).__name__])[0]}")


def unexpected(source: str, error: Exception) -> LogError:
    """That reading a log failed in a way that nobody thought of."""
    why = (str(error).splitlines() or [""])[0]
    return LogError(f"query log {source} cannot be read: unexpected {type(error).__name__}: {why}")


class Watched:
    """A part of a log for a decoder that reads at any place, and takes a filesystem that fails for damage.

    Attributes:
        failure: of the filesystem, whatever the decoder has made of it.

    Raises:
        LogError: it cannot be opened.
    """

    def __init__(self, log: LogFile, part: str) -> None:
        try:
            self.stream = open_anywhere(log, part)
            self.size: int = self.stream.size()
        except (OSError, pa.ArrowException) as error:
            raise unread(part, error) from error
        self.part, self.place = part, 0
        self.failure: LogError | None = None

    @property
    def closed(self) -> bool:
        """Whether it can be read no more."""
        return bool(self.stream.closed)

    def close(self) -> None:
        """Give it back."""
        self.stream.close()

    def tell(self) -> int:
        """Where the next bytes come from."""
        return self.place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place; one that a damaged file names may lie outside."""
        place = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self.place, os.SEEK_END: self.size}[whence]
        if place < 0:
            raise ValueError(f"there is no byte {place}")
        self.place = place
        return place

    def read(self, size: int = -1) -> bytes:
        """The next bytes; none beyond its end."""
        left = max(0, self.size - self.place)
        try:
            found = bytes(self.stream.read_at(left if size < 0 else min(size, left), self.place)) if left else b""
        except OSError as error:
            self.failure = unread(self.part, error)
            self.failure.__cause__ = error
            raise
        self.place += len(found)
        return found


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
