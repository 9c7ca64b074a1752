"""Whether a study can be kept at a place: looked at before the work that it is for, and before anything is written."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from zorder_pipeline.errors import ConfigError

if TYPE_CHECKING:
    import sqlalchemy as sa

__all__ = ["database_url", "place_problem", "refuse_place", "shown"]

ENTRY = b'{"op_code":'
"""How each line of an Optuna journal begins."""
DRIVERS = {"postgresql": "zorder-pipeline[postgres]", "mysql": "mysqlclient"}
"""What to install for a database whose driver is missing."""


def refuse_place(storage: str) -> None:
    """Refuse a place where no study can be kept.

    Raises:
        ConfigError: see `place_problem`.
    """
    if (problem := place_problem(storage)) is not None:
        raise ConfigError(f"the study storage {shown(storage)} {problem}")


def place_problem(storage: str, *, connect: bool = False) -> str | None:
    """Why no study can be kept at a place, and the way out; None where nothing speaks against it. Nothing is written.

    Args:
        storage: path of a journal file, or an RDB URL.
        connect: whether a database's server is asked, too, whose time limit may be long.

    >>> place_problem("/dev/null")
    'is no regular file; name a new file, or one that holds a study'
    """
    return _database_problem(storage, connect) if "://" in storage else _file_problem(Path(storage))


def database_url(storage: str) -> sa.URL:
    """The URL with a driver that is there: SQLAlchemy's own for PostgreSQL may be another than the one that we bring.

    Raises:
        sqlalchemy.exc.ArgumentError: it is no URL.

    >>> database_url("postgresql+asyncpg://host/studies").drivername
    'postgresql+asyncpg'
    """
    import sqlalchemy as sa

    url = sa.make_url(storage)
    if url.drivername == "postgresql" and find_spec("psycopg") is None and find_spec("psycopg2") is not None:
        return url.set(drivername="postgresql+psycopg2")
    return url


def _database_problem(storage: str, connect: bool) -> str | None:
    import sqlalchemy as sa

    try:
        url = database_url(storage)
        url.get_dialect().import_dbapi()
    except ImportError as error:
        kind, _, driver = url.drivername.partition("+")
        missing = f"needs the driver {driver or error.name}, which is not installed"
        if driver:
            return f"{missing}; install it, or leave +{driver} out of the URL"
        return f"{missing}; pip install {DRIVERS.get(kind, error.name)}"
    except (sa.exc.ArgumentError, ValueError):  # their words may hold the password
        return "is no URL of a database; write postgresql://user:password@host/name, or sqlite:///studies.db"
    if url.get_backend_name() == "sqlite":
        return _sqlite_problem(url.database or "")
    return _server_problem(url) if connect else None


def _server_problem(url: sa.URL) -> str | None:
    import sqlalchemy as sa

    engine = sa.create_engine(url)
    try:
        engine.connect().close()
    except (sa.exc.SQLAlchemyError, ValueError) as error:
        reason = str(error.__cause__ or error).strip().partition("\n")[0].rstrip(".")
        return f"cannot be reached ({reason}); see that the database is there and lets this user in"
    finally:
        engine.dispose()
    return None


def _sqlite_problem(database: str) -> str | None:
    if database in ("", ":memory:") or database.startswith("file:"):
        return None
    path = Path(database)
    if path.is_dir():
        return "is a folder; name a file in it"
    if not path.parent.is_dir():
        return f"cannot be written: {path.parent} does not exist; make that folder first"
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        return "cannot be written: permission denied; choose another place"
    return None


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
    """The storage without its password, and without the parameters of a URL, among which there may be another.

    >>> shown("postgresql://me:hidden@host/studies?sslpassword=hidden"), shown("studies.log")
    ('postgresql://me:***@host/studies', 'studies.log')
    """
    import sqlalchemy as sa

    if "://" not in storage:
        return storage
    try:
        return sa.make_url(storage).set(query={}).render_as_string(hide_password=True)
    except (sa.exc.ArgumentError, ValueError):
        return storage.partition("://")[0] + "://…"
