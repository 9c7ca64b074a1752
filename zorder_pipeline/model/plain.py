"""Plain data read back into dataclasses: what a file holds may be anything."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

__all__ = ["MALFORMED", "checked", "what_is_wrong"]

Record = TypeVar("Record")

MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What making a dataclass of data that is no such record may raise."""


def what_is_wrong(error: BaseException) -> str:
    """What one of `MALFORMED` says of the data, for a sentence.

    >>> what_is_wrong(KeyError("spec"))
    "it lacks 'spec'"
    """
    return f"it lacks {error}" if isinstance(error, KeyError) else str(error)


def checked(record: Record) -> Record:
    """The dataclass itself, once each of its fields is found to be of the type that it is annotated with.

    Raises:
        TypeError: one is not.

    >>> from zorder_pipeline.model.schema import Column
    >>> checked(Column("a", "int", partition=1))
    Traceback (most recent call last):
    TypeError: partition is 1
    """
    for name, kind in get_type_hints(type(record)).items():
        if not _is(value := getattr(record, name), kind):
            raise TypeError(f"{name} is {value!r:.60}")
    return record


def _is(value: Any, kind: Any) -> bool:
    """Whether a value is of a type; truth values are no numbers, whole numbers are numbers."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_is(value, each) for each in args)
    if origin is Literal:
        return value in args
    if origin is tuple:
        return type(value) is tuple and all(_is(item, args[0]) for item in value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(_is(k, args[0]) and _is(v, args[1]) for k, v in value.items())
    if kind is float:
        return type(value) in (int, float)
    return type(value) is kind
