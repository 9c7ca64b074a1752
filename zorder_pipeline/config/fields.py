"""The kinds of values in ``tables.yaml``, each with the sentence that refuses a wrong one."""

from __future__ import annotations

import difflib
import re
import zoneinfo
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
    "TimeZone",
    "Weekday",
    "study_problem",
]
__all__ += ["TABLE_NAME", "time_zone_problem"]

TABLE_NAME = re.compile(r"[A-Za-z0-9_]{1,100}")
CRON_LIMITS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
MONTHS = "JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC"
WEEKDAYS = "SUN|MON|TUE|WED|THU|FRI|SAT"
DATABASES = ("sqlite", "postgresql", "mysql")
CRON_NAMES = dict.fromkeys(f"{MONTHS}|{WEEKDAYS}".split("|"), "1")


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
    fields = value.split()
    if len(fields) != 5 or not all(map(_cron_field, fields, CRON_LIMITS)):
        raise ValueError("five cron fields (minute hour day month weekday) such as '0 2 * * *'")
    return value


def _cron_field(text: str, limits: tuple[int, int]) -> bool:
    for part in text.split(","):
        match = re.fullmatch(r"(?:\*|(\w+)(?:-(\w+))?)(?:/([1-9]\d*))?", part)
        if match is None:
            return False
        ends = [CRON_NAMES.get(end.upper(), end) for end in match.groups()[:2] if end is not None]
        if not all(end.isdecimal() and limits[0] <= int(end) <= limits[1] for end in ends):
            return False
    return True


def _clock(value: str) -> str:
    if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", value):
        raise ValueError("a time of day in quotes such as '22:30'")
    return value


def _weekday(value: str) -> str:
    if value.upper() not in WEEKDAYS.split("|"):
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
    return value


Clock = Annotated[str, AfterValidator(_clock)]
Weekday = Annotated[str, AfterValidator(_weekday)]
Cron = Annotated[str, AfterValidator(_cron)]
TableName = Annotated[str, AfterValidator(_table_name)]
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
