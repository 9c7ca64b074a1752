"""The kinds of values in ``tables.yaml``, each with the sentence that refuses a wrong one."""

from __future__ import annotations

import difflib
import re
import zoneinfo
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

__all__ = [
    "Amount",
    "Clock",
    "Cron",
    "Given",
    "Model",
    "Positive",
    "Share",
    "TableName",
    "Tags",
    "TimeZone",
    "Weekday",
    "study_problem",
]
__all__ += ["TABLE_NAME", "time_zone_problem"]

TABLE_NAME = re.compile(r"[A-Za-z0-9_]{1,100}")
TAKEN = "query_log"
"""No table's name: the asset that all share keeps its value where a table of that name had a folder."""
MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
CRON_FIELDS = ((0, 59, ()), (0, 23, ()), (1, 31, ()), (1, 12, MONTHS), (0, 7, WEEKDAYS))
"""Of each field the smallest and the largest value, and the names of values from the smallest on."""
LONGEST_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
TAG = r"[A-Za-z0-9_.-]{1,63}"
"""What Dagster takes for a tag's value, and for a part of its name."""
DATABASES = ("sqlite", "postgresql", "mysql")


def time_zone_problem(value: str) -> str | None:
    """What a time zone has to be, where ``value`` is none.

    >>> time_zone_problem("Europe/Berlin"), time_zone_problem("Europe/Berlln")
    (None, 'a time zone name such as Europe/Berlin')
    """
    if value in zoneinfo.available_timezones():
        return None
    near = difflib.get_close_matches(value, zoneinfo.available_timezones(), 1)
    return f"a time zone name such as {near[0] if near else 'Europe/Berlin'}"


def _time_zone(value: str) -> str:
    if problem := time_zone_problem(value):
        raise ValueError(problem)
    return value


def _given(value: str) -> str:
    if not value.strip():  # from ${NAME} that is set and empty, say
        raise ValueError("a name or a place, not an empty text")
    return value


def _cron(value: str) -> str:
    texts = value.split()
    fields = [_cron_field(*each) for each in zip(texts, CRON_FIELDS, strict=False)]
    if len(texts) != 5 or not all(fields):
        raise ValueError("five cron fields (minute hour day month weekday) such as '0 2 * * *'")
    if min(fields[2]) > max(LONGEST_MONTHS[month - 1] for month in fields[3]):  # which no weekday makes up for
        raise ValueError("a day that one of its months has")
    return value


def _cron_field(text: str, limits: tuple[int, int, Sequence[str]]) -> set[int]:
    """The values that a field is for; none where it is no field."""
    least, most, names = limits
    numbers = {name: str(number) for number, name in enumerate(names, least)}
    values = set[int]()
    for part in text.split(","):
        match = re.fullmatch(r"(?:\*|(\w+)(?:-(\w+))?)(?:/([1-9]\d*))?", part)
        if match is None:
            return set()
        ends = [numbers.get(end.upper(), end) for end in match.groups()[:2] if end is not None]
        if not all(end.isdecimal() and least <= int(end) <= most for end in ends):
            return set()
        first, last = (int(ends[0]), int(ends[-1])) if ends else (least, most)
        if match[3] is not None and len(ends) == 1:  # from there on
            last = most
        values |= set(range(first, last + 1, int(match[3] or 1)) if first <= last else range(least, most + 1))
    return values


def _clock(value: str) -> str:
    if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", value):
        raise ValueError("a time of day in quotes such as '22:30'")
    return value


def _weekday(value: str) -> str:
    if value.upper() not in WEEKDAYS:
        raise ValueError("a weekday: mon, tue, wed, thu, fri, sat or sun")
    return value.lower()


def study_problem(storage: str) -> str | None:
    """What a study's storage has to be, where it is no such thing; of a URL only the scheme, as it may hold a password.

    >>> study_problem("studies/flights.log"), study_problem("postgresql+psycopg://me:secret@host/studies")
    (None, None)
    >>> study_problem("s3a://bucket/studies")
    'a local path or a database URL (sqlite:///, postgresql://, mysql://), not s3a://'
    """
    scheme, colon, _ = storage.partition("://")
    if storage.strip() and (not colon or scheme.partition("+")[0] in DATABASES):
        return None
    known = ", ".join(f"{name}:///" if name == "sqlite" else f"{name}://" for name in DATABASES)
    return f"a local path or a database URL ({known}), not {f'{scheme}://' if colon else 'empty'}"


def _table_name(value: str) -> str:
    if not TABLE_NAME.fullmatch(value):
        raise ValueError("a name of letters, digits and underscores (Dagster shows it as the group)")
    if value.lower() == TAKEN:
        raise ValueError(
            f"another name than {TAKEN}, which is that of an asset of ours; statements may call it so by aliases"
        )
    return value


def _tag_key(value: str) -> str:
    if not re.fullmatch(f"({TAG}/|dagster/kind/)?{TAG}", value):
        raise ValueError(
            "a tag's name: at most 63 letters, digits, _, - and ., or two such names with a / between them"
        )
    return value


def _tag_value(value: str) -> str:
    if value and not re.fullmatch(TAG, value):
        raise ValueError("a tag's value: at most 63 letters, digits, _, - and .")
    return value


Clock = Annotated[str, AfterValidator(_clock)]
Weekday = Annotated[str, AfterValidator(_weekday)]
Cron = Annotated[str, AfterValidator(_cron)]
TableName = Annotated[str, AfterValidator(_table_name)]
Tags = dict[Annotated[str, AfterValidator(_tag_key)], Annotated[str, AfterValidator(_tag_value)]]
TimeZone = Annotated[str, AfterValidator(_time_zone)]
Given = Annotated[str, AfterValidator(_given)]
"""A place or a name."""
Positive = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Amount = Annotated[float, Field(ge=0)]


class Model(BaseModel):
    """Base of every part of the configuration: unknown keys are refused, nothing is changed once it is read."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )
