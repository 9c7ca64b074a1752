"""Spark event logs, of Spark 2 to 4: every SQL execution with the scans of its plan.

Only the lines of SQL events are parsed; a log is read in one pass, and holds no more in memory than the executions
that have begun but not ended.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from zorder_pipeline.model.json_text import json_of
from zorder_pipeline.model.moments import asked_at
from zorder_pipeline.model.plain import MALFORMED

from .plan_scans import CHOSEN_FILES, PlanScan, TypesOf, counters_of, no_types, scans_of

__all__ = ["Execution", "executions"]

START, UPDATE, END = b"SparkListenerSQLExecutionStart", b"SparkListenerSQLAdaptiveExecutionUpdate", b"SQLExecutionEnd"
ENVIRONMENT = b'"SparkListenerEnvironmentUpdate"'
DRIVER, STAGE = b"SparkListenerDriverAccumUpdates", b'"SparkListenerStageCompleted"'
USER = b'"SparkListenerApplicationStart"'
WANTED = (START, UPDATE, END, ENVIRONMENT, USER, DRIVER, STAGE)
EVENT = b'"Event"'
HEAD = 160
"""The event's name stands at the beginning of its line."""
ZONE = "spark.sql.session.timeZone"
MAX_OPEN = 10_000
_COUNT = re.compile(r"[0-9]{1,18}")
UPKEEP = re.compile(
    r"""(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*(?i:VACUUM)\b   # a statement, as Thrift servers hand it on
    |(?:[\w.+-]*:?/.*<br/>)?Optimizing\ \d+\ files              # behind the table's folder
    |Delta:\ (?:.*:\ )?                                         # behind what the command was described as
     (?:MERGE\ operation\ -\ )?(?:Rewriting|Writing)\ [^:]*\Z
    |(?:Delta:\ (?:.*:\ )?)?Compute\ snapshot\ for\ version:\ \d+\Z
    |zorder[:\ ]""",
    re.VERBOSE | re.DOTALL,
)
"""Whole descriptions of jobs that rearrange a table, which nobody asked for as a query. Of a query it is the statement
itself, which may hold any of these words.
"""


@dataclass(frozen=True)
class Execution:
    """One SQL execution.

    Attributes:
        position: line of the event that ended it.
        kind: why it has no scan of data: ``no_scan``, ``delta_log`` for Delta's own bookkeeping, ``maintenance`` for
            OPTIMIZE, rewrites and streams.
        timestamp: start, microseconds since 1970 UTC.
        failed: it ended with an error.
        damage: why there is no execution here: the log is damaged, or ends before the execution did.
        zone: session time zone, when the log says.
        rows_read, bytes_read: what its scans read, when the log says.
    """

    position: int
    kind: str = "no_scan"
    description: str = ""
    timestamp: int | None = None
    duration_ms: float | None = None
    user: str | None = None
    failed: bool = False
    damage: str | None = None
    zone: str | None = None
    rows_read: int | None = None
    bytes_read: int | None = None
    scans: tuple[PlanScan, ...] = ()


@dataclass
class _Open:
    number: int
    start: Mapping[str, Any]
    plans: list[Mapping[str, Any]] = field(default_factory=list)
    counters: set[int] = field(default_factory=set)


def executions(lines: Iterable[bytes | Exception], types_of: TypesOf = no_types) -> Iterator[Execution]:
    """The executions of an event log's lines, in the order in which they ended; unfinished ones last.

    Args:
        lines: an error stands where a file of the log is damaged, and what was begun before it may end behind it.
        types_of: see `scans_of`.
    """
    reader = _Reader(types_of)
    for number, raw in enumerate(lines, 1):
        if isinstance(raw, Exception):
            yield Execution(number, damage="damaged_file", description=str(raw))
        else:
            yield from reader.line(number, raw)
    yield from reader.rest()


class _Reader:
    def __init__(self, types_of: TypesOf) -> None:
        self.types_of = types_of
        self.open: dict[int, _Open] = {}
        self.zone: str | None = None
        self.user: str | None = None
        self.counts: dict[int, int] = {}
        self.expected = Counter[int]()

    def line(self, number: int, raw: bytes) -> Iterator[Execution]:
        head = raw[:HEAD]
        if not any(name in head for name in WANTED):
            if not raw.strip():
                return
            if not raw.lstrip().startswith(b"{"):
                yield self._damaged(number, "malformed_json", raw)
            elif EVENT not in head and EVENT not in raw:
                yield self._damaged(number, "no_event", raw)
            return
        try:
            event = json_of(raw)
        except (ValueError, RecursionError):
            yield self._damaged(number, "malformed_json" if raw.endswith(b"\n") else "truncated", raw)
            return
        if not isinstance(event, Mapping):
            return
        try:
            found = list(self._event(number, str(event.get("Event", "")).rsplit(".", 1)[-1], event))
        except MALFORMED:  # JSON, and yet no event of a form that is known
            found = [self._damaged(number, "malformed_json", raw)]
        yield from found

    def _damaged(self, number: int, reason: str, raw: bytes) -> Execution:
        return Execution(number, damage=reason, description=raw[:HEAD].decode("utf-8", "replace"), user=self.user)

    def _unfinished(self, item: _Open) -> Execution:
        """Under the line of its beginning: it comes under that of its end when the log goes on."""
        description = str(item.start.get("description") or "")
        return Execution(item.number, damage="unfinished", description=description, user=self.user)

    def _event(self, number: int, name: str, event: Mapping[str, Any]) -> Iterator[Execution]:
        if name == "SparkListenerEnvironmentUpdate":
            properties = event.get("Spark Properties")
            system = event.get("System Properties")
            zone = properties.get(ZONE) if isinstance(properties, Mapping) else None
            self.zone = zone or (system.get("user.timezone") if isinstance(system, Mapping) else None) or self.zone
        elif name == "SparkListenerApplicationStart":
            self.user = str(event.get("User") or "") or None
        elif name == "SparkListenerStageCompleted" and isinstance(stage := event.get("Stage Info"), Mapping):
            items = (item for item in _list(stage.get("Accumulables")) if isinstance(item, Mapping))
            self._count((item.get("ID"), item.get("Value")) for item in items)
        elif name == "SparkListenerDriverAccumUpdates":
            pairs = (pair for pair in _list(event.get("accumUpdates")) if isinstance(pair, list) and len(pair) == 2)
            self._count((counter, value) for counter, value in pairs)
        key = event.get("executionId")
        if not isinstance(key, int):
            return
        if name == "SparkListenerSQLExecutionStart":
            if len(self.open) >= MAX_OPEN:
                yield self._unfinished(dropped := self.open.pop(next(iter(self.open))))
                self._forget(dropped)
            if key in self.open:
                self._forget(self.open.pop(key))
            self.open[key] = _Open(number, event)
            self._expect(self.open[key], event)
        elif name == "SparkListenerSQLAdaptiveExecutionUpdate" and key in self.open:
            if isinstance(plan := event.get("sparkPlanInfo"), Mapping):
                self.open[key].plans = [plan]  # the last one is the plan that ran
                self._expect(self.open[key], event)
        elif name == "SparkListenerSQLExecutionEnd" and key in self.open:
            item = self.open.pop(key)
            try:
                yield self._closed(number, item, event)
            finally:
                self._forget(item)

    def _expect(self, item: _Open, event: Mapping[str, Any]) -> None:
        """Note which accumulators count what this plan's scans read."""
        if isinstance(plan := event.get("sparkPlanInfo"), Mapping):
            with contextlib.suppress(*MALFORMED):  # what is wrong with it is told once, at its end
                new = counters_of(plan) - item.counters
                item.counters |= new
                self.expected.update(new)
                self.counts |= dict.fromkeys(new - self.counts.keys(), 0)

    def _forget(self, item: _Open) -> None:
        """Keep no counts that no open execution waits for: a log may be that of a server that runs for months."""
        self.expected.subtract(item.counters)
        for counter in item.counters:
            if not self.expected[counter]:
                del self.expected[counter]
                self.counts.pop(counter, None)

    def _count(self, values: Iterable[tuple[Any, Any]]) -> None:
        for counter, value in values:
            if isinstance(counter, int) and counter in self.counts and _COUNT.fullmatch(str(value)):
                self.counts[counter] = max(self.counts[counter], int(value))

    def rest(self) -> Iterator[Execution]:
        """Executions without an end: the log is in progress, or was cut off."""
        yield from map(self._unfinished, self.open.values())
        self.open.clear()

    def _closed(self, number: int, item: _Open, end: Mapping[str, Any]) -> Execution:
        start = item.start
        began, ended = start.get("time"), end.get("time")
        timestamp = asked_at(began * 1000) if isinstance(began, int) else None
        changed = start.get("modifiedConfigs")
        zone = (changed.get(ZONE) if isinstance(changed, Mapping) else None) or self.zone
        plan = start.get("sparkPlanInfo")
        scans: list[PlanScan] = []
        description = str(start.get("description") or "")
        upkeep = UPKEEP.match(description) is not None
        for each in [] if upkeep else [*([plan] if isinstance(plan, Mapping) else []), *item.plans]:
            known = {scan.names for scan in scans}
            try:
                here = scans_of(each, timestamp, str(zone or ""), self.types_of)
                found = dict.fromkeys(here)  # a reused exchange is read once
            except (*MALFORMED, RuntimeError) as error:  # a plan of a shape not known here
                text = f"{description}: {error}"
                return Execution(number, damage="unreadable_plan", description=text, user=self.user)
            scans += [scan for scan in found if scan.names not in known]
        by_counter = [{c: self.counts.get(c, 0) for s in scans if (c := s.counters[i]) is not None} for i in (0, 1)]
        rows, size = [list(counted.values()) for counted in by_counter]
        text = json.dumps(plan) if not scans else ""
        internal = "delta_log" if "_delta_log" in text or "Delta Table State" in text else "no_scan"
        upkeep = upkeep or CHOSEN_FILES in text
        return Execution(
            number,
            kind="maintenance" if upkeep else internal,
            description=description,
            timestamp=timestamp,
            duration_ms=float(ended - began) if isinstance(ended, int) and isinstance(began, int) else None,
            user=self.user,
            failed=bool(end.get("errorMessage")),
            zone=str(zone) if zone else None,
            rows_read=sum(rows) if any(rows) else None,
            bytes_read=sum(size) if any(size) else None,
            scans=tuple(scans),
        )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
