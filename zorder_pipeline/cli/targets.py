"""Files that commands are asked to write."""

from __future__ import annotations

import os
from pathlib import Path

import click

from zorder_pipeline.errors import ZorderError
from zorder_pipeline.model.whole_file import is_replaced

__all__ = ["out_option", "replaceable", "study_storage", "writable", "write_file"]


def writable(_context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """The value of ``--out`` and the like, checked before minutes of work are spent on what it is for.

    Raises:
        ZorderError: no file can be written there.
    """
    if value is None:
        return None
    name, folder = option.opts[0], os.path.dirname(os.path.abspath(value))
    if os.path.isdir(value) or not os.path.isdir(folder):
        wrong = value if os.path.isdir(value) else folder
        what = "is a folder; name a file in it" if wrong == value else "does not exist; make that folder first"
        raise ZorderError(f"{name} {value} cannot be written: {wrong} {what}")
    if not os.access(value if os.path.exists(value) else folder, os.W_OK):
        raise ZorderError(f"{name} {value} cannot be written: permission denied; choose another place")
    return value


def replaceable(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """As `writable`, for what is replaced as a whole (`write_whole`): the folder has to be writable, too.

    Raises:
        ZorderError: no file can be put there.
    """
    if writable(context, option, value) is not None and value is not None and is_replaced(value):
        folder = os.path.dirname(os.path.realpath(value))
        if not os.access(folder, os.W_OK | os.X_OK):
            raise ZorderError(
                f"{option.opts[0]} {value} cannot be written: {folder} takes no new file; choose another place"
            )
    return value


def study_storage(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """The value of an option that names where a study is to be kept, checked before Spark starts.

    Raises:
        ZorderError: it is neither a database URL nor the path of a file that can be written, or it holds no
            study, or the database cannot be reached from here.
    """
    from zorder_pipeline.config.fields import study_problem
    from zorder_pipeline.layout.study_place import place_problem, shown

    if value is None:
        return None
    name = option.opts[0]
    if problem := study_problem(value):
        raise ZorderError(f"{name} must be {problem}")
    if "://" not in value:
        writable(context, option, value)
    if problem := place_problem(value, connect=True):
        raise ZorderError(f"{name} {shown(value)} {problem}")
    return value


def write_file(target: str, content: bytes, option: str = "--out") -> None:
    """Write what a command was asked to write.

    Raises:
        ZorderError: it cannot be written there.
    """
    try:
        Path(target).write_bytes(content)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ZorderError(f"{option} {target} cannot be written: {why}; choose another place") from error


out_option = click.option(
    "--out", "target", required=True, type=click.Path(), callback=replaceable, help="Where to write plan.json."
)
