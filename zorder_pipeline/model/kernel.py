"""Functions that numba compiles: with or without a place to keep what it compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

__all__ = ["kernel"]

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile a function of arrays and numbers when it is first called; it lets other threads work meanwhile.

    What was compiled is kept for the next process: beside the module, else in the user's cache, or where
    ``NUMBA_CACHE_DIR`` says. Where none of them can be written, as in a container whose file system is read-only, each
    process compiles its own, which takes half a minute for the trees of cuts.

    >>> @kernel
    ... def total(values):
    ...     found = 0
    ...     for value in values:
    ...         found += value
    ...     return found
    >>> total((1, 2, 3))
    6
    """
    try:
        return cast("Function", numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # "cannot cache function …: no locator available"
        return cast("Function", numba.njit(nogil=True)(function))
