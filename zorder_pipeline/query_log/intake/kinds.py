"""What kind of log a file is: by its name, whatever rotation and compression made of that, else by its first bytes."""

from __future__ import annotations

import re

import pyarrow as pa
from pyarrow import fs

from .codecs import opened
from .texts import as_utf8

__all__ = ["ARCHIVES", "CODECS", "COMPACT", "ROLLED", "ROLLING"]
__all__ += ["can_be_told", "kind_alone", "kind_named", "kind_of", "rolled_number", "suffixes_of"]

KINDS = {".jsonl": "json", ".json": "json", ".ndjson": "json", ".csv": "csv", ".parquet": "parquet", ".sql": "sql"}
KINDS |= {".log": "json", ".txt": "sql"}
VAGUE = (".log", ".txt")
"""Suffixes of texts of any kind."""
CODECS = frozenset({".gz", ".gzip", ".zst", ".zstd", ".lz4", ".snappy", ".lzf", ".bz2"})
ARCHIVES = frozenset({".zip", ".xz", ".7z", ".rar", ".tar", ".tgz"})
"""What files are put into that is not read here."""
ROLLING = re.compile(r"eventlog_v2_.+")
ROLLED = re.compile(r"events_(\d+)_.+")
ROTATED = re.compile(r"[.-]\d[\dtz_:-]*$|^\.(old|bak)$|~$")
"""What rotation adds to a name: a number, a day and a time, or a word."""
COMPACT = ".compact"
"""Ends the name of a file that stands for all rolled files up to its number."""
HEAD = 4096


def kind_of(filesystem: fs.FileSystem, place: str, log_format: str) -> str | None:
    """The kind of the log at a place; None where it is none.

    One that may not be read is taken for an event log, so that it is told of when it is to be read.

    Args:
        log_format: ``auto``; ``spark-events``, and everything is one; ``query-history``, and nothing is; ``sql``: files
            without a telling name, ``.log`` and ``.txt`` are scripts unless they are JSON, and nothing is an event log.
    """
    if log_format == "spark-events":
        return "events"
    named, suffix = _named(place)
    if named is not None and not (log_format == "sql" and suffix in VAGUE):
        return named
    try:
        head = _head(filesystem, place)
    except OSError:
        return named or "events"
    except (EOFError, pa.ArrowException):
        return named
    if head.startswith(b"{"):
        events = b'"Event"' in head and b"Listener" in head
        return "json" if not events else "events" if log_format == "auto" else None
    is_script = log_format == "sql" and head and not head.startswith(b"[") and b"\0" not in head
    return "sql" if is_script and not ARCHIVES & set(suffixes_of(place)) else named


def kind_named(place: str) -> str | None:
    """The kind that a name tells."""
    return _named(place)[0]


def kind_alone(filesystem: fs.FileSystem, place: str) -> str:
    """The kind of a file that is named alone and tells none: JSON by its first bytes, else a script."""
    try:
        return "json" if _head(filesystem, place).startswith((b"{", b"[")) else "sql"
    except (OSError, EOFError, pa.ArrowException):
        return "sql"


def can_be_told(filesystem: fs.FileSystem, place: str) -> bool:
    """Whether a file can be opened, so that its first bytes tell what it is."""
    try:
        _head(filesystem, place)
    except OSError:
        return False
    except (EOFError, pa.ArrowException):
        pass
    return True


def _head(filesystem: fs.FileSystem, place: str) -> bytes:
    with opened(filesystem.open_input_stream(place, compression=None)) as stream:
        return as_utf8(stream).read(HEAD).lstrip(b"\0\xef\xbb\xbf \t\r\n")


def suffixes_of(path: str) -> list[str]:
    """The suffixes of a name in lower case, without those of an event log's own.

    >>> suffixes_of("/logs/Q.SQL.1.gz"), suffixes_of("/h/app-1.zstd.inprogress")
    (['.sql', '.1', '.gz'], ['.zstd'])
    """
    name = path.rsplit("/", 1)[-1].lower().removesuffix(".inprogress").removesuffix(COMPACT)
    return ["." + part for part in name.split(".")[1:]]


def _named(path: str) -> tuple[str | None, str]:
    """The kind that a name tells, and the suffix that does.

    >>> _named("q.csv.2026-11-30T10.gz"), _named("q.jsonl.gz.1"), _named("q.sql-20261130"), _named("q.sql.old")
    (('csv', '.csv'), ('json', '.jsonl'), ('sql', '.sql'), ('sql', '.sql'))
    """
    suffixes, packed = suffixes_of(path), False
    while suffixes:
        last = suffixes.pop()
        if (rotated := ROTATED.search(last)) is not None:
            suffixes += [last[: rotated.start()]] if rotated.start() else []
        elif last in CODECS and not packed:
            packed = True
        else:
            return KINDS.get(last), last
    return None, ""


def rolled_number(part: str) -> int:
    """Which file of a rolling event log a part is, 0 for others; a compacted one has the number of its last.

    >>> rolled_number("/h/eventlog_v2_app/events_3_app.zstd"), rolled_number("/h/app-1")
    (3, 0)
    """
    *_, folder, name = f"/{part}".split("/")
    rolled = ROLLED.fullmatch(name) if ROLLING.fullmatch(folder) else None
    return int(rolled[1]) if rolled else 0
