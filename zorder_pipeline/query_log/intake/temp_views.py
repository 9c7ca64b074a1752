"""Temporary views that a log's own statements create, such as those of dbt and of notebooks.

A view is read by whoever names it later in the session, until it is dropped, so a scan of the table behind it stands in
a statement that does not name the table: ``MERGE INTO daily USING daily__dbt_tmp``. A log does not tell sessions apart;
of several views of one name that one counts which the same user, as far as the log tells, created last before the
statement ran, less than a day ago.
"""

from __future__ import annotations

import bisect
import re
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from zorder_pipeline.query_log.statements.parsing import BROKEN
from zorder_pipeline.query_log.statements.quotes import has_quoted_names
from zorder_pipeline.query_log.statements.sql import Unusable, trees_of
from zorder_pipeline.query_log.statements.view_names import Change, changes_of
from zorder_pipeline.query_log.statements.views import GLOBAL, MAX_VIEWS, View, ViewName, name_of, query_of, tables_of

from .records import LogLine

__all__ = ["Created", "Known", "Moment", "TemporaryViews", "Versions"]

LONGEST = 86_400_000_000
"""Microseconds after which a session is taken to have ended, and its views with it."""
MAX_TEXT = 64 << 20
"""Characters of statements that are kept; nothing is known of views that are created after that."""
MAX_PARSED = 1 << 20
"""Characters of the statements whose views are kept as trees, each some hundred bytes."""
OWN_SIZE = 200
MAX_OLDER = 100
_WORDS = (re.compile(r"\w+"), re.compile(r"`([^`]+)`"), re.compile(r'"([^"]+)"'))
Known = dict[ViewName, tuple[tuple[int, int], View]]
"""By name a view, and the line and statement that created it."""


@dataclass(frozen=True)
class Moment:
    """When something happened in a log.

    Attributes:
        timestamp: microseconds since 1970 UTC, None where the log has none.
        position: of its line, in the order of time.
        place: of the statement in its line, -1 before all of them.
    """

    timestamp: int | None
    position: int
    place: int = -1
    user: str | None = None


@dataclass(frozen=True)
class Created(Moment):
    """A statement that creates a view, or drops it.

    Attributes:
        line: number of its line among those that do.
        is_there: whether the view is there afterwards.
        if_new: only where there was none of that name.
        if_there: only where there was one.
        statement: its whole line's.
    """

    line: int = 0
    is_there: bool = True
    if_new: bool = False
    if_there: bool = False
    statement: str = ""
    parameters: Mapping[str, Any] | tuple[Any, ...] | None = None


class Versions:
    """What was created and dropped under one name; for a moment's user, as far as lines tell, it finds the last one.

    >>> versions = Versions()
    >>> versions.append(Created(1_000, 0, user="ann"))
    >>> [versions.last_before(Moment(2_000, 1, user=user)) is None for user in ("ann", "bob", None)]
    [False, True, False]
    """

    def __init__(self) -> None:
        self._by_user: dict[str | None, tuple[list[Created], ...]] = defaultdict(lambda: ([], [], []))
        self._sorted = True

    def append(self, created: Created) -> None:
        """One more."""
        timed, untimed, every = self._by_user[created.user]
        every.append(created)
        (untimed if created.timestamp is None else timed).append(created)
        self._sorted = False

    def last_before(self, moment: Moment) -> Created | None:
        """The last one by time, else by its place in the log, that was made before ``moment``."""
        if not self._sorted:
            for timed, untimed, every in self._by_user.values():
                timed.sort(key=_when)
                untimed.sort(key=_where)
                every.sort(key=_where)
            self._sorted = True
        users = {moment.user, None} & self._by_user.keys() if moment.user else self._by_user.keys()
        by_time: list[Created] = []
        by_place: list[Created] = []
        for timed, untimed, every in (self._by_user[user] for user in users):
            if moment.timestamp is None:
                by_place += _before(every, moment, _where)
            else:
                by_time += _before(timed, moment, _when)
                by_place += _before(untimed, moment, _where)
        last = max(by_time, key=_when, default=None)
        if last is not None and _when(moment)[0] <= _when(last)[0] + LONGEST:
            by_place.append(last)
        return max(by_place, key=_where, default=None)


def _before(ordered: list[Created], moment: Moment, key: Callable[[Moment], Any]) -> list[Created]:
    number = bisect.bisect_left(ordered, key(moment), key=key)
    return ordered[number - 1 : number]


def _when(moment: Moment) -> tuple[int, int, int]:
    return moment.timestamp or 0, moment.position, moment.place


def _where(moment: Moment) -> tuple[int, int]:
    return moment.position, moment.place


class TemporaryViews:
    """The temporary views of one log.

    Args:
        lines: of the log, at least those that match `view_names.OF_VIEWS`.
    """

    def __init__(self, lines: Iterable[LogLine], dialect: str) -> None:
        self.dialect = dialect
        self._created: dict[ViewName, Versions] = defaultdict(Versions)
        self._named: dict[str, set[ViewName]] = defaultdict(set)
        self._lost: set[ViewName] = set()
        self._kept: OrderedDict[int, tuple[int, list[View]]] = OrderedDict()
        self._size = 0
        found: list[tuple[ViewName, Created]] = []
        kept = falls = 0
        before: int | None = None
        for number, line in enumerate(lines):
            if line.reason is not None or line.failed or line.execution is not None:
                continue
            changes = _changes(line.statement, dialect)
            if not changes:
                continue
            if line.timestamp is not None:
                falls += 0 if before is None else (line.timestamp < before) - (line.timestamp > before)
                before = line.timestamp
            kept += len(line.statement)
            for change in changes:
                self._named[change.name[-1]].add(change.name)
                kept += OWN_SIZE
                if kept > MAX_TEXT:
                    self._lost.add(change.name)
                    continue
                user = None if change.name[0] == GLOBAL else _user(line)
                made = (number, change.is_there, change.if_new, change.if_there, line.statement, line.parameters)
                found.append((change.name, Created(line.timestamp, line.position, change.place, user, *made)))
        self._order = -1 if falls > 0 else 1  # histories are often exported newest first
        for name, created in found:
            self._created[name].append(replace(created, position=self._order * created.position))

    def known_to(self, line: LogLine) -> Known:
        """The views that ``line`` may name, directly or through others: those that were there before it.

        Raises:
            ValueError: there are more than `MAX_VIEWS`, or their statements are longer than `MAX_PARSED`.
        """
        known: Known = {}
        lines, size = set[int](), 0
        if not self._named:
            return known
        words = {word for pattern in _WORDS for word in pattern.findall(line.statement.lower())}
        waiting = {name for word in words & self._named.keys() for name in self._named[word]}
        waiting = {name for name in waiting if name[0] != GLOBAL or GLOBAL in words}
        moment, seen = Moment(line.timestamp, self._order * line.position, user=_user(line)), set[ViewName]()
        while waiting:
            there = {name: self._last(name, moment) for name in waiting - self._lost}
            known |= {name: ((-1, -1), View(None)) for name in waiting & self._lost}
            seen |= waiting
            waiting = set()
            if len(known) + sum(last is not None and last.is_there for last in there.values()) > MAX_VIEWS:
                raise ValueError(f"a statement that reads more than {MAX_VIEWS} views")
            for name, last in there.items():
                if last is not None and last.is_there:
                    size += 0 if last.line in lines else len(last.statement)
                    lines.add(last.line)
                    if size > MAX_PARSED:
                        raise ValueError("a statement that reads views of more text than is kept parsed")
                    view = self._view(last)
                    known[name] = ((last.line, last.place), view)
                    waiting |= view.temporary - seen
        return known

    def _last(self, name: ViewName, moment: Moment) -> Created | None:
        versions = self._created.get(name)
        last = versions.last_before(moment) if versions is not None else None
        for _ in range(MAX_OLDER):
            if versions is None or last is None or not (last.is_there and (last.if_new or last.if_there)):
                break
            before = versions.last_before(last)
            if (before is not None and before.is_there) == last.if_there:
                break
            last = before
        return last

    def _view(self, created: Created) -> View:
        """The view that a statement creates."""
        if created.line not in self._kept:
            queries = _queries(created, self.dialect)
            views = [self._as_of(query, replace(created, place=place)) for place, query in enumerate(queries)]
            self._kept[created.line] = (len(created.statement), views)
            self._size += len(created.statement)
            while len(self._kept) > 1 and self._size > MAX_PARSED:
                self._size -= self._kept.popitem(last=False)[1][0]
        self._kept.move_to_end(created.line)
        views = self._kept[created.line][1]
        return views[created.place] if created.place < len(views) else View(None)

    def _as_of(self, query: exp.Query | None, moment: Moment) -> View:
        """A view's query, of which those names mean temporary views that did so when it was created."""
        if query is None:
            return View(None)
        names = {name_of(table) for table in tables_of(query)}
        there = ((name, self._last(name, moment)) for name in names)
        return View(query, frozenset(n for n, last in there if n in self._lost or (last is not None and last.is_there)))


def _changes(statement: str, dialect: str) -> list[Change]:
    """What a line creates and drops; nothing where that is not known, as it is no other line's fault."""
    try:
        return changes_of(statement, dialect)[0]
    except BROKEN:
        return []


def _user(line: LogLine) -> str | None:
    return line.user.lower() if line.user else None


def _queries(created: Created, dialect: str) -> list[exp.Query | None]:
    """The queries of the views that a line's statements create, one by one; none of a line that cannot be parsed."""
    trees = trees_of(created.statement, dialect, created.parameters)
    if isinstance(trees, Unusable) or has_quoted_names(created.statement, dialect):
        return []
    return [query_of(tree) for tree in trees] if len(trees) == changes_of(created.statement, dialect)[1] else []
