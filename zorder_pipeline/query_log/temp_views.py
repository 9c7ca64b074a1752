"""Temporary views that a log's own statements create, such as those of dbt and of notebooks.

A view is read by whoever names it later in the session, until it is dropped, so a scan of the table behind it stands in
a statement that does not name the table: ``MERGE INTO daily USING daily__dbt_tmp``. A log does not tell sessions apart;
of several views of one name that one counts which the same user, as far as the log tells, created last before the
statement ran, less than a day ago.
"""

from __future__ import annotations

import graphlib
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

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

    def is_known_to(self, line: LogLine) -> bool:
        """Whether it ran before ``line`` did, and not for another user."""
        if self.user and line.user and self.user != line.user:
            return False
        if self.timestamp is not None and line.timestamp is not None and self.timestamp != line.timestamp:
            return self.timestamp < line.timestamp <= self.timestamp + LONGEST
        return self.position < line.position


class TemporaryViews:
    """The temporary views of one log.

    Args:
        lines: of the log, at least those that match `OF_VIEWS`.
    """

    def __init__(self, lines: Iterable[LogLine], dialect: str) -> None:
        self._created: dict[str, list[Created]] = defaultdict(list)
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
            earlier = [created for created in self._created[name] if created.is_known_to(line)]
            if not earlier:
                continue
            last = max(earlier, key=lambda created: (created.timestamp or 0, created.position))
            for own, query in _queries(last.statement, self.dialect).items() if last.statement is not None else ():
                if own.split(".")[-1] != name:
                    continue
                found[own] = (last.number, query)
                tables = {name_of(table) for table in query.find_all(exp.Table)}
                named[own] = tables & {own, *self._created, *(f"{GLOBAL}.{other}" for other in self._created)}
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
