"""Files that others read while they are written anew."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from pathlib import Path

__all__ = ["is_replaced", "write_whole"]

_STREAMS = ("/dev/std", "/dev/fd/", "/proc/")


def is_replaced(target: str | Path) -> bool:
    """Whether `write_whole` puts a new file in the place of ``target``, for which its folder has to be writable.

    >>> is_replaced("plan.json"), is_replaced("/dev/null"), is_replaced("/dev/stdout")
    (True, False, False)
    """
    place = os.path.abspath(target)
    return not place.startswith(_STREAMS) and (os.path.isfile(place) or not os.path.exists(place))


def write_whole(target: str | Path, text: str) -> None:
    """Write a file, whole or not at all: who reads it meanwhile finds what it was before, or all of the new one.

    Where ``target`` is a link, what it leads to is replaced; a file that is there keeps its permissions. What is no
    plain file, such as a pipe or ``/dev/null``, is written into.

    Raises:
        OSError: it cannot be written; nothing is left behind then.
    """
    if not is_replaced(target):
        Path(target).write_text(text, encoding="utf-8")
        return
    path = Path(os.path.realpath(target))
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".zorder-{secrets.token_hex(8)}")  # of two who write at once each has one
    try:
        scratch.write_text(text, encoding="utf-8")
        with contextlib.suppress(OSError):  # there is none yet, or its file system has no permissions
            shutil.copymode(path, scratch)
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)
