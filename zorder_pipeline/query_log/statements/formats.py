"""Moments written in a format: years, months, days and times of day as digits."""

from __future__ import annotations

import datetime as dt
import re

from sqlglot import exp

__all__ = ["DATE_FORMAT", "FORMAT", "python_form", "read"]

_DIRECTIVE = re.compile(r"%([A-Za-z%])(?:strict)?")
FORMAT = re.compile(r"(%[YmdHMS]|[-_/:. T])+")
"""Formats that a moment is told by, as Python writes them."""
DATE_FORMAT = re.compile(r"(%[Ymd]|[-_/.])+")
"""The same of a day alone."""


def python_form(node: exp.Expr) -> str:
    """A format as Python writes it."""
    return _DIRECTIVE.sub(r"%\1", node.this)


def read(text: str, form: exp.Expr, known: re.Pattern[str] = FORMAT) -> dt.datetime | None:
    """A moment written in a format of year, month, day and what is ``known`` besides; None where that is not told.

    Raises:
        ValueError: the text has another form.
    """
    wanted = python_form(form)
    if not known.fullmatch(wanted) or not all(part in wanted for part in ("%Y", "%m", "%d")):
        return None
    found = dt.datetime.strptime(text, wanted)
    return found if found.strftime(wanted) == text else None
