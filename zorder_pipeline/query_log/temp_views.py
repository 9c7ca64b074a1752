"""Temporary views that a log's own statements create, such as those of dbt and of notebooks.

A view is read by whoever names it later in the session, until it is dropped, so a scan of the table behind it stands in
a statement that does not name the table: ``MERGE INTO daily USING daily__dbt_tmp``. A log does not tell sessions apart;
of several views of one name that one counts which the same user, as far as the log tells, created last before the
statement ran, less than a day ago.
"""

from __future__ import annotations

import bisect
import graphlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlglot import exp

from .catalog import GLOBAL, name_of, temporary_view
from .quotes import has_quoted_names
from .records import LogLine
from .sql import Unusable, trees_of

__all__ = ["OF_VIEWS", "TemporaryViews"]

OF_VIEWS = re.compile(rb"(temp(orary)?|drop)(\s|\\[nrt])+view(\s|\\[nrt])", re.IGNORECASE)
"""What a line of a log has that creates or drops such a view, also as JSON text."""
LONGEST = 86_400_000_000
"""Microseconds after which a session is taken to have ended, and its views with it."""
MAX_TEXT = 64 << 20
"""Characters of statements that are kept; what is created after that is not known."""
_NAMED = re.compile(
    r"\b(?:temp(?:orary)?\s+view\s+(?:if\s+not\s+exists\s+)?|(drop)\s+view\s+(?:if\s+exists\s+)?)(`[^`]+`|\w+)",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Created:
    """A statement that creates a view, or drops it.

    Attributes:
        number: of those of the log.
        statement: None of one that drops it.
    """

    number: int
    statement: str | None
    timestamp: int | None
    position: int
    user: str | None


class Versions:
    """What was created and dropped under one name; of a line's user, as far as lines tell, it finds the last one.

    >>> versions = Versions()
    >>> versions.append(Created(0, "CREATE TEMP VIEW v AS SELECT 1", 1_000, 0, "ann"))
    >>> [versions.last_before(LogLine("log", 1, timestamp=2_000, user=user)) is None for user in ("ann", "bob", None)]
    [False, True, False]
    """

    def __init__(self) -> None:
        self._by_user: dict[str | None, tuple[list[Created], ...]] = defaultdict(lambda: ([], [], []))

    def append(self, created: Created) -> None:
        """One more, which stands after the others in the log."""
        timed, untimed, every = self._by_user[created.user or None]
        every.append(created)
        if created.timestamp is None:
            untimed.append(created)
        else:
            bisect.insort(timed, created, key=_when)

    def last_before(self, line: LogLine) -> Created | None:
        """The last one by time, else by its place in the log, that was made before ``line`` ran."""
        users = {line.user, None} & self._by_user.keys() if line.user else self._by_user.keys()
        found: list[Created | None] = []
        for timed, untimed, every in (self._by_user[user] for user in users):
            if line.timestamp is None:
                found.append(_before(every, line.position, _where))
            else:
                earlier = _before(timed, (line.timestamp, line.position), _when)
                is_known = earlier is not None and line.timestamp <= _when(earlier)[0] + LONGEST
                found += [earlier if is_known else None, _before(untimed, line.position, _where)]
        return max((created for created in found if created is not None), key=_when, default=None)


def _before(ordered: list[Created], place: Any, key: Callable[[Created], Any]) -> Created | None:
    number = bisect.bisect_left(ordered, place, key=key)
    return ordered[number - 1] if number else None


def _when(created: Created) -> tuple[int, int]:
    return created.timestamp or 0, created.position


def _where(created: Created) -> int:
    return created.position


class TemporaryViews:
    """The temporary views of one log.

    Args:
        lines: of the log, at least those that match `OF_VIEWS`.
    """

    def __init__(self, lines: Iterable[LogLine], dialect: str) -> None:
        self._created: dict[str, Versions] = defaultdict(Versions)
        self.dialect = dialect
        kept = 0
        for number, line in enumerate(lines):
            if line.reason is not None or line.failed or line.execution is not None or kept > MAX_TEXT:
                continue
            for name, is_created in _named_by(line.statement).items():
                statement = line.statement if is_created else None
                created = Created(number, statement, line.timestamp, line.position, line.user)
                self._created[name].append(created)
                kept += len(line.statement)

    def known_to(self, line: LogLine) -> dict[str, tuple[int, exp.Query]]:
        """Number and query of each view that ``line`` may name, directly or through another one, by its name.

        None where views name each other in a circle, as they do after one of them was created anew.
        """
        if not self._created:
            return {}
        found: dict[str, tuple[int, exp.Query]] = {}
        named: dict[str, set[str]] = {}
        waiting = set(_WORD.findall(line.statement.lower())) & self._created.keys()
        waiting -= _named_by(line.statement).keys()
        while waiting:
            name = waiting.pop()
            last = self._created[name].last_before(line)
            if last is None or last.statement is None:
                continue
            for own, query in _queries(last.statement, self.dialect).items():
                if own.split(".")[-1] != name:
                    continue
                found[own] = (last.number, query)
                tables = {name_of(table) for table in query.find_all(exp.Table)}
                named[own] = {other for other in tables if other.removeprefix(f"{GLOBAL}.") in self._created}
                waiting |= {other.split(".")[-1] for other in named[own] - found.keys()}
        try:
            graphlib.TopologicalSorter(named).prepare()
        except graphlib.CycleError:
            return {}
        return found


def _named_by(statement: str) -> dict[str, bool]:
    """Whether each temporary view that a line creates or drops is there afterwards."""
    return {found[2].strip("`").lower(): found[1] is None for found in _NAMED.finditer(statement)}


@lru_cache(maxsize=256)
def _queries(statement: str, dialect: str) -> dict[str, exp.Query]:
    """Queries of the temporary views that a line creates, by name; what cannot be parsed creates none."""
    trees = trees_of(statement, dialect)
    if isinstance(trees, Unusable) or has_quoted_names(statement, dialect):
        return {}
    return dict(view for tree in trees if (view := temporary_view(tree)) is not None)
