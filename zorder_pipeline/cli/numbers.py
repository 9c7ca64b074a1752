"""Numbers that come from the command line, and those that go out as JSON: neither knows NaN or infinity."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import click

__all__ = ["FiniteRange", "json_line"]


class FiniteRange(click.FloatRange):
    """A range of floats without ``nan`` and ``inf``, which click would let pass.

    >>> FiniteRange(0).convert("inf", None, None)
    Traceback (most recent call last):
    ...
    click.exceptions.BadParameter: inf is no finite number.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number.

        Raises:
            click.BadParameter: it is none, not finite, or outside the range.
        """
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number.", param, ctx)
        return number


def json_line(payload: Mapping[str, Any]) -> str:
    """One JSON object on one line; a figure that is no finite number is null, as JSON (RFC 8259) has no other word.

    >>> json_line({"net": float("nan"), "days": [1.5, float("inf")]})
    '{"net": null, "days": [1.5, null]}'
    """
    return json.dumps(_plain(payload), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float):
        return value
    return _plain(value.item()) if hasattr(value, "item") else str(value)
