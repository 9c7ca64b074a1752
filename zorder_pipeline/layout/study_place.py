"""Whether a study can be kept at a place: looked at before the work that it is for, and before anything is written."""

from __future__ import annotations

from pathlib import Path

from zorder_pipeline.errors import ConfigError

__all__ = ["place_problem", "refuse_place", "shown"]

ENTRY = b'{"op_code":'
"""How each line of an Optuna journal begins."""


def refuse_place(storage: str) -> None:
    """Refuse a place where no study can be kept.

    Raises:
        ConfigError: see `place_problem`.
    """
    if (problem := place_problem(storage)) is not None:
        raise ConfigError(f"the study storage {shown(storage)} {problem}")


def place_problem(storage: str) -> str | None:
    """Why no study can be kept at a place, and the way out; None where nothing speaks against it. Nothing is written.

    Args:
        storage: path of a journal file, or an RDB URL.

    >>> place_problem("/dev/null")
    'is no regular file; name a new file, or one that holds a study'
    """
    return None if "://" in storage else _file_problem(Path(storage))


def _file_problem(path: Path) -> str | None:
    if path.is_dir():
        return "is a folder; name a file in it"
    if not path.exists():
        return None
    advice = "name a new file, or one that holds a study"
    if not path.is_file():
        return f"is no regular file; {advice}"
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                # a writer killed in mid-write leaves the beginning of a line
                if not line.startswith(ENTRY) and (line.endswith(b"\n") or not ENTRY.startswith(line)):
                    return f"is no Optuna journal: its line {number} is no entry of one; {advice}"
    except OSError as error:
        return f"cannot be read ({(error.strerror or str(error)).lower()}); {advice}"
    return None


def shown(storage: str) -> str:
    """The storage without its password."""
    import sqlalchemy as sa

    try:
        return sa.make_url(storage).render_as_string(hide_password=True) if "://" in storage else storage
    except sa.exc.ArgumentError:
        return storage.partition("://")[0] + "://…"
