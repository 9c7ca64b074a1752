"""Afterwards: whether relayouts kept their promises, by queries that came later, and what they saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from zorder_pipeline.gate.accounts import Kept, MonthlySaving, mean_life, monthly_savings, widening
from zorder_pipeline.gate.cost import CostModel
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.model.values import DAY
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.costs import cost_model, measured_costs
from zorder_pipeline.pipeline.records import LogSource
from zorder_pipeline.pipeline.table_log import asked_log
from zorder_pipeline.relayout.snapshot import AUTO, TableSnapshot, open_table
from zorder_pipeline.relayout.unrecorded import record_late
from zorder_pipeline.state.entry import Entry
from zorder_pipeline.state.ledger import Ledger

from .comparing import compared, latest_of, spans_of
from .due import is_due, later, rate_now, spanned_later
from .promises import PromiseCheck, account_of, check_of, kept_of, pages_promised
from .undoing import note_ends

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Savings", "check_promises", "check_promises_by_log", "experienced", "note_undone", "savings"]

FORGOTTEN = 2.0
"""Horizons after its own that a broken promise still counts in `experienced`: by then its weight is an eighth."""


@dataclass(frozen=True)
class Savings:
    """The books: every relayout's promise, and costs and savings by table and month.

    Attributes:
        price_per_core_hour: 0 when costs are not told in money.
    """

    checks: tuple[PromiseCheck, ...]
    months: tuple[MonthlySaving, ...]
    price_per_core_hour: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """The object ``zorder savings --json`` prints."""
        rate = self.price_per_core_hour / 3600
        months = [vars(row) | {"net": row.net, "money": row.net * rate if rate else None} for row in self.months]
        return {"relayouts": [vars(check) | {"warning": check.warning} for check in self.checks], "months": months}


def check_promises(
    spark: SparkSession,
    state: str,
    table: str,
    queries: Sequence[LoggedQuery],
    *,
    version: int | None = None,
    every: bool = False,
    broken: float | None = None,
    committer: str = AUTO,
    until: int | None = None,
    assumed: CostModel | None = None,
) -> list[PromiseCheck]:
    """Measure the promises of a table's relayouts with queries that came later, and note it in the state.

    Each relayout is measured before and after its own commits, exactly as `zorder_pipeline.pipeline.evaluate` does, so
    that what was appended since, or while it was at work, does not count for or against it. A version that Delta's log
    does not hold any more is left as it was measured before. Which of them were undone since, by a RESTORE or what
    another wrote anew, is noted, too, and that a table that lay there before is no more.

    Args:
        table: path or catalog name.
        queries: logged queries of the table, in any order.
        version: check only the relayout that made this version, with all of the queries: the promise's own ones, right
            after it. Otherwise the newest relayout, and of those whose saving is still credited what is due (`is_due`),
            with the queries after the newest one that its layout was learned from; and of each of these how often such
            queries come by now (`rate_now`), which may be never any more.
        every: measure all relayouts there ever were, due or not.
        broken: factor by which a promise may be missed; None for the one that each was decided with.
        committer: how the table is opened, see `zorder_pipeline.relayout.snapshot.COMMITTERS`.
        until: how far the log goes (`QueryLog.until`): what comes after the queries is quiet time.
        assumed: see `zorder_pipeline.pipeline.cost_model`: what is promised and kept is held together in core-seconds.

    Raises:
        TableError: there is no such table.
    """
    now, ledger = open_table(spark, table, committer=committer), Ledger(spark, state)
    record_late(now, state)
    known = _known(ledger, now.table_id, version, every)
    note_ends(now, ledger, known)
    timed = all(query.timestamp is not None for query in queries)
    for entry in (entry for entry in known if version in (None, entry.version)):
        chosen = list(queries) if version is not None else later(entry, queries)
        between = spanned_later(entry, queries, until) if version is None else None
        newest, found = entry is known[-1], None
        # the same number may be others: with a window that slides as many come in as go out
        same = (len(chosen), latest_of(chosen)) == (entry.measured_queries, entry.measured_until)
        if not same and (every or version is not None or newest or is_due(entry, chosen)):
            # files are read for it, so only of what is in force, or was asked for
            pages = pages_promised(entry) is not None and (version is not None or newest)
            found = compared(now, spans_of(now, entry), chosen, pages, between)
        if found is None and timed:  # for which no file is read, so of each whose saving is credited
            rate = rate_now(entry, chosen, between)
            found = None if rate is None else {"per_day": rate}
        if found is not None:
            ledger.measured(entry, found)
    model = cost_model(spark, state, assumed)
    return [check_of(entry, broken, model) for entry in _known(ledger, now.table_id, version, every)]


def note_undone(now: TableSnapshot, state: str) -> None:
    """Note in the state which relayouts were undone of a table that is not looked at any further."""
    ledger = Ledger(now.spark, state)
    note_ends(now, ledger, _known(ledger, now.table_id, version=None, every=False))


def _known(ledger: Ledger, table_id: str, version: int | None, every: bool) -> list[Entry]:
    """A table's relayouts, oldest first: those whose saving is credited and the newest, where these are enough."""
    found = [] if every else ledger.entries(table_id, credited=datetime.now(UTC).timestamp() * 1e6)
    enough = not every and (version is None or any(entry.version == version for entry in found))
    return found if enough else ledger.entries(table_id)


def check_promises_by_log(
    spark: SparkSession,
    state: str,
    table: str,
    logs: Sequence[LogSource | str] = (),
    *,
    aliases: Sequence[str] = (),
    days: float | None = None,
    assumed: CostModel | None = None,
) -> list[PromiseCheck]:
    """`check_promises` of every relayout with the queries of logs, or without any with those of the state.

    Args:
        days: only stored queries of so many days before the newest.
        assumed: see `check_promises`.

    Raises:
        TableError, LogError: see `zorder_pipeline.pipeline.evaluate`.
    """
    snapshot = open_table(spark, table)
    log = asked_log(spark, table, snapshot, logs, state=None if logs else state, aliases=aliases, days=days)
    mine = log.of_table([snapshot.location])
    return check_promises(spark, state, table, mine, every=True, until=log.until, assumed=assumed)


def savings(
    spark: SparkSession,
    state: str,
    *,
    table: str | None = None,
    assumed: CostModel | None = None,
    own: Callable[[str], CostModel | None] | None = None,
    broken: float | None = None,
    now: datetime | None = None,
) -> Savings:
    """What relayouts promised, cost and saved, from the state alone.

    A saving is credited for as many days as the gate counted with, at the rate of the later queries where the log was
    seen to go on after the relayout, else at the rate that was promised; never beyond ``now``, nor once it was undone
    (`check_promises` notes that).

    Args:
        table: only this one, path or catalog name.
        assumed: see `zorder_pipeline.pipeline.cost_model`; has the price.
        own: what is assumed of a table by its location instead; None of one for which that is ``assumed``, too.
        broken: see `check_promises`.
    """
    measured, usual = measured_costs(spark, state), assumed or CostModel()

    @cache
    def model(place: str) -> CostModel:
        return ((own and own(place)) or usual).measured(*measured)

    entries = Ledger(spark, state).entries(open_table(spark, table).table_id if table is not None else None)
    accounts = [account_of(entry, model(entry.location)) for entry in entries]
    months = monthly_savings(accounts, now or datetime.now(UTC))
    checks = tuple(check_of(entry, broken, model(entry.location)) for entry in entries)
    return Savings(checks, tuple(months), usual.price_per_core_hour)


def experienced(
    spark: SparkSession,
    state: str | None,
    table: tuple[str, str],
    gate: GateSettings | None = None,
    now: datetime | None = None,
) -> GateSettings:
    """The gate's settings with what earlier relayouts of a table teach: how far to trust the next promise, by how the
    latest were kept, and how long the next one will stand. Without a state they teach nothing.

    Args:
        table: its id and its location: one that is replaced each day is another each day, in the same place.
        gate: the cost model, the horizon, and when a promise counts as broken.
        now: the time to judge at; the present when None.
    """
    gate, moment = gate or GateSettings(), (now or datetime.now(UTC)).timestamp() * 1e6
    if state is None:
        return gate
    known = Ledger(spark, state).entries(*table, credited=moment - FORGOTTEN * gate.horizon_days * DAY)
    told = [(kept_of(entry, gate.costs), entry.committed_at) for entry in known]
    kept = [Kept(share, max(0.0, (moment - then) / DAY)) for share, then in told if share is not None]
    ends = [(e.committed_at / DAY, None if e.ended_at is None else e.ended_at / DAY) for e in known]
    return replace(
        gate,
        widening=widening(kept, gate.broken_promise_factor, gate.horizon_days),
        life_days=mean_life(ends, moment / DAY),
    )
