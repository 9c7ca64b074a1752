"""Functions that numba compiles: with or without a place to keep what it compiled."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

__all__ = ["kernel"]

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile a function of arrays and numbers when it is first called; it lets other threads work meanwhile.

    What was compiled is kept for the next process: beside the module, else in the user's cache, or where
    ``NUMBA_CACHE_DIR`` says. Where none of them can be written, as in a container whose file system is read-only, each
    process compiles its own, which takes half a minute for the trees of cuts. It is compiled anew where its module has
    changed, or what that module imports by name for it: other kernels, named tuples, constants.

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
        compiled = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # "cannot cache function …: no locator available"
        return cast("Function", numba.njit(nogil=True)(function))
    _stamp(compiled, function.__globals__)
    return cast("Function", compiled)


def _stamp(compiled: Any, names: dict[str, Any]) -> None:
    """Have numba ask for all that the kernel is made of; by itself it looks at the source of its module alone.

    Compiled code has the kernels that it calls, and constants, in itself.
    """
    if (kept := _kept(compiled)) is not None:
        told = [(name, made_of) for name, value in sorted(names.items()) if (made_of := _made_of(name, value))]
        kept._source_stamp = hashlib.sha256(repr((kept._source_stamp, told)).encode()).hexdigest()


def _made_of(name: str, value: Any) -> str:
    """What compiled code has of a name of its module; "" for nothing."""
    if (kept := _kept(value)) is not None:
        return str(kept._source_stamp)
    if isinstance(value, type) and issubclass(value, tuple):
        return repr(getattr(value, "_fields", ""))
    several = value if isinstance(value, tuple) else (value,)
    plain = all(isinstance(each, (bool, int, float, str)) for each in several) and not name.startswith("__")
    return repr(value) if plain else ""


def _kept(value: Any) -> Any:
    """The file in which numba keeps a kernel; None of anything else. It has no public name."""
    file = getattr(getattr(value, "_cache", None), "_cache_file", None)
    return file if hasattr(file, "_source_stamp") else None
