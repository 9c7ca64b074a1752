"""``--state`` of the commands: a folder that there is, one that can be written, or one that is told from others."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from zorder_pipeline.errors import ZorderError
from zorder_pipeline.model.places import lies_in, local_path

__all__ = ["TABLES", "apart", "existing", "existing_state_option", "no_state", "writable_state", "written"]

TABLES = (
    *("query_log", "quarantine", "log_files", "recorded", "file_stats"),
    *("relayouts", "begun", "approvals", "drift", "studies", "calibrations", "assets"),
)
"""What a state may hold, by the names of its folders."""


def existing(state: str, *, named: bool = True) -> str:
    """The folder of a state that has to be there already; one on another filesystem is taken as given.

    Args:
        named: whether ``--state`` named it, and not the configuration at hand.

    Raises:
        ZorderError: it is not there.
    """
    local = local_path(state)
    if local is not None and not os.path.isdir(local):
        way_out = "name the folder that `state` in tables.yaml names"
        if not named:
            way_out = "no run has written it yet, or it lies elsewhere: name it with --state"
        raise ZorderError(f"the state {state} does not exist; {way_out}")
    return state


def existing_state_option(
    says: str = "", *, required: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``--state`` of a command that makes none: the folder has to be there (`existing`), checked before Spark starts.

    Args:
        says: what it is for, after "Folder of the pipeline's state".
    """

    def checked(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
        return value if value is None else existing(value)

    return click.option("--state", required=required, callback=checked, help=f"Folder of the pipeline's state{says}.")


def written(state: str, *, named: bool = True) -> str:
    """The folder of a state that can be written, or made; one on another filesystem is taken as given.

    Args:
        named: see `existing`.

    Raises:
        ZorderError: nothing can be written there.
    """
    local = local_path(state)
    if local is None:
        return state
    path = Path(local).absolute()
    nearest = next(place for place in (path, *path.parents) if os.path.lexists(place))
    try:
        with tempfile.TemporaryDirectory(prefix=".zorder-", dir=nearest):  # permissions alone do not tell, as of root
            return state
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ZorderError(
            f"{'--state' if named else 'the state'} {state} cannot be written: {nearest} takes no new folder ({why}); "
            "choose another place"
        ) from error


def writable_state(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """The value of ``--state`` of a command that adds to it (`written`), checked before Spark starts."""
    return value if value is None else written(value)


def apart(state: str, table: str) -> str:
    """A state that is no part of the table; of a table that is named by its catalog's name nothing is known.

    Raises:
        ZorderError: it lies in the table's folder.
    """
    if ("/" in table or os.path.isdir(table)) and lies_in(state, table):
        raise ZorderError(
            f"the state {state} lies in the folder of {table}, where Delta takes it for a part of the table; choose "
            "another"
        )
    return state


def no_state(state: str) -> bool:
    """Whether a folder of this machine holds nothing that a state would."""
    local = local_path(state)
    return local is not None and not any(Path(local, name).is_dir() for name in TABLES)
