"""Afterwards: whether relayouts kept their promises, by queries that came later, and what they saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from zorder_pipeline.gate.accounts import BROKEN, Account, Kept, MonthlySaving, kept_share, monthly_savings, widening
from zorder_pipeline.gate.cost import CostModel
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.model.values import DAY
from zorder_pipeline.model.wording import counted
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.costs import cost_model
from zorder_pipeline.pipeline.logs import ingest, names_of
from zorder_pipeline.pipeline.records import LogSource
from zorder_pipeline.relayout.snapshot import AUTO, TableSnapshot, open_table
from zorder_pipeline.relayout.unrecorded import record_late
from zorder_pipeline.state.ledger import Entry, Ledger

from .comparing import compared, latest_of
from .due import asked_since, is_due, later
from .undoing import note_ends

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zorder_pipeline.pictures import KeptPromise

__all__ = ["PromiseCheck", "Savings", "check_promises", "check_promises_by_log", "note_undone", "savings"]
__all__ += ["trust"]

FORGOTTEN = 2.0
"""Horizons after its own that a broken promise still counts in `trust`: by then its weight is an eighth."""


@dataclass(frozen=True)
class PromiseCheck:
    """What a relayout promised and what became of it.

    Attributes:
        version: table version that it made.
        committed_at: microseconds since 1970 UTC.
        promised, promised_low: share of the rows that a query was to read less, and its lower end; by the time of the
            queries that it was measured with where they were foretold to move on to newer data.
        measured: the same, measured with ``queries`` later queries; None when it was not checked yet.
        kept: what was measured as a multiple of what was promised, in core-seconds where bytes and files are known,
            else in rows; None without both, and of a promise of next to nothing.
        broken: whether it was missed by more than the set factor.
        cost, cost_expected, cost_low, cost_high: core-seconds measured and foretold; None where nothing was foretold.
    """

    table: str
    version: int
    committed_at: int
    queries: int
    promised: float
    promised_low: float
    measured: float | None
    kept: float | None
    broken: bool
    cost: float
    cost_expected: float | None
    cost_low: float | None
    cost_high: float | None

    @property
    def by_hand(self) -> bool:
        """Whether nothing was promised, as of a layout that was given and not learned."""
        return self.promised == 0 and self.cost_expected is None

    @property
    def warning(self) -> str | None:
        """A sentence about a broken promise; None when it was kept."""
        if not self.broken or self.measured is None or self.kept is None:
            return None
        rows = f", and {self.measured:.1%} of the rows instead of the promised {self.promised:.1%}"
        return (
            f"{self.table}: the relayout of version {self.version} saves {max(0.0, self.kept):.0%} of what it "
            f"promised{rows if round(self.promised, 3) > 0 else ''}, by {counted(self.queries, 'query')}; the next "
            "promises are trusted less"
        )

    @property
    def remark(self) -> str | None:
        """A sentence about a promise of more rows, as of small files that are merged; None of others."""
        if round(self.promised, 3) >= 0:  # none that could be told
            return None
        return (
            f"{self.table}: version {self.version} was made for the files that queries open less; that they read "
            f"{-self.promised:.1%} of the rows more was known"
        )

    @property
    def drawn(self) -> KeptPromise:
        """The line of it in a picture."""
        # here, as Matplotlib takes a second to load and most commands draw nothing
        from zorder_pipeline.pictures import KeptPromise

        name = f"{self.table.rstrip('/').rpartition('/')[2]} v{self.version}"
        known = self.cost_expected is not None and self.cost_low is not None and self.cost_high is not None
        foretold = (self.cost_low or 0.0, self.cost_expected or 0.0, self.cost_high or 0.0) if known else None
        return KeptPromise(name, self.promised, self.promised_low, self.measured, self.broken, self.cost, foretold)


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
) -> list[PromiseCheck]:
    """Measure the promises of a table's relayouts with queries that came later, and note it in the state.

    Each relayout is measured at the version that it replaced and at the one that it made, exactly as
    `zorder_pipeline.pipeline.evaluate` does, so that what was appended since does not count for or against it. A
    version that Delta's log does not hold any more is left as it was measured before. Which of them were undone since,
    by a RESTORE or what another wrote anew, is noted, too, and that a table that lay there before is no more.

    Args:
        table: path or catalog name.
        queries: logged queries of the table, in any order.
        version: check only the relayout that made this version, with all of the queries: the promise's own ones, right
            after it. Otherwise the newest relayout, and of those whose saving is still credited what is due (`is_due`),
            with the queries after the newest one that its layout was learned from.
        every: measure all relayouts there ever were, due or not.
        broken: factor by which a promise may be missed; None for the one that each was decided with.
        committer: how the table is opened, see `zorder_pipeline.relayout.snapshot.COMMITTERS`.

    Raises:
        TableError: there is no such table.
    """
    now, ledger = open_table(spark, table, committer=committer), Ledger(spark, state)
    record_late(now, state)
    known = _known(ledger, now.table_id, version, every)
    note_ends(now, ledger, known)
    for entry in (entry for entry in known if version in (None, entry.version)):
        chosen = list(queries) if version is not None else later(entry, queries)
        # the same number may be others: with a window that slides as many come in as go out
        if (len(chosen), latest_of(chosen)) == (entry.measured_queries, entry.measured_until):
            continue
        if not (every or version is not None or entry is known[-1] or is_due(entry, chosen)):
            continue
        # files are read for it, so only of what is in force, or was asked for
        pages = _pages_promised(entry) is not None and (version is not None or entry is known[-1])
        if (found := compared(now, (entry.replaced_version, entry.version), chosen, pages)) is not None:
            ledger.measured(now.table_id, entry.version, found)
    model = cost_model(spark, state)
    return [_check(entry, broken, model) for entry in _known(ledger, now.table_id, version, every)]


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
    spark: SparkSession, state: str, table: str, logs: Sequence[LogSource | str], *, aliases: Sequence[str] = ()
) -> list[PromiseCheck]:
    """`check_promises` of every relayout with the queries of logs.

    Raises:
        TableError, LogError: see `zorder_pipeline.pipeline.evaluate`.
    """
    snapshot = open_table(spark, table)
    log = ingest(logs, {snapshot.location: (snapshot, names_of(table, snapshot, aliases))})
    return check_promises(spark, state, table, log.of_table([snapshot.location]), every=True)


def savings(
    spark: SparkSession,
    state: str,
    *,
    table: str | None = None,
    assumed: CostModel | None = None,
    broken: float | None = None,
    now: datetime | None = None,
) -> Savings:
    """What relayouts promised, cost and saved, from the state alone.

    A saving is credited for as many days as the gate counted with, at the rate of the later queries where they were
    checked, else at the rate that was promised; never beyond ``now``, nor once it was undone (`check_promises` notes
    that).

    Args:
        table: only this one, path or catalog name.
        assumed: see `zorder_pipeline.pipeline.cost_model`; has the price.
        broken: see `check_promises`.
    """
    model = cost_model(spark, state, assumed)
    entries = Ledger(spark, state).entries(open_table(spark, table).table_id if table is not None else None)
    accounts = [_account(entry, model) for entry in entries]
    months = monthly_savings(accounts, now or datetime.now(UTC))
    return Savings(tuple(_check(entry, broken, model) for entry in entries), tuple(months), model.price_per_core_hour)


def trust(
    spark: SparkSession, state: str | None, table_id: str, gate: GateSettings | None = None, now: datetime | None = None
) -> float:
    """Factor by which the next promise of a table is trusted less, from how its latest were kept; 1 without a state.

    Args:
        gate: the cost model, the horizon, and when a promise counts as broken.
        now: the time to judge at; the present when None.
    """
    if state is None:
        return 1.0
    gate, moment = gate or GateSettings(), (now or datetime.now(UTC)).timestamp() * 1e6
    known = Ledger(spark, state).entries(table_id, credited=moment - FORGOTTEN * gate.horizon_days * DAY)
    told = [(_kept(entry, gate.costs), entry.committed_at) for entry in known]
    kept = [Kept(share, max(0.0, (moment - then) / DAY)) for share, then in told if share is not None]
    return widening(kept, gate.broken_promise_factor, gate.horizon_days)


def _kept(entry: Entry, model: CostModel) -> float | None:
    """Measured saving as a multiple of the promised one; None when it was not checked yet or next to nothing."""
    if not entry.measured_queries:
        return None
    credited = entry.credited_over(_measured_days(entry))
    if entry.measured_bytes is None or not entry.bytes_before:
        promised, measured = entry.promised_whole * credited, entry.measured_before - entry.measured_after
        return kept_share(promised, measured, entry.promised_before)
    size = _by_pages(entry) or (entry.promised_bytes, entry.measured_bytes, entry.bytes_before)
    files = (entry.promised_files, entry.measured_files, entry.files_before)
    promised, measured, before = (model.saved(*each, entry.table_id) for each in zip(size, files, strict=True))
    return kept_share(promised * credited, measured, before)


def _measured_days(entry: Entry) -> float:
    """Days over which it was measured, from the newest query that was logged when it was promised; else 0."""
    return max(0.0, ((entry.measured_until or 0) - asked_since(entry)) / DAY)


def _by_pages(entry: Entry) -> tuple[float, float, float] | None:
    """Bytes promised, measured and read before by pages, where the gate weighed these and they were measured."""
    promised, measured, before = _pages_promised(entry), entry.measured_page_bytes, entry.page_bytes_before
    return None if promised is None or measured is None or not before else (promised, measured, before)


def _pages_promised(entry: Entry) -> float | None:
    """Bytes promised by pages; None where the gate weighed row groups."""
    weighed = entry.gate.get("assumptions", {}).get("page_skipping", True)
    return entry.promised_page_bytes if weighed else None


def _check(entry: Entry, broken: float | None, model: CostModel) -> PromiseCheck:
    kept, credited = _kept(entry, model), entry.credited_over(_measured_days(entry))
    factor = broken or float(entry.gate.get("assumptions", {}).get("broken_promise_factor", BROKEN))
    return PromiseCheck(
        table=entry.location,
        version=entry.version,
        committed_at=entry.committed_at,
        queries=entry.measured_queries,
        promised=entry.promised_whole * credited,
        promised_low=entry.promised_low * credited,
        measured=entry.measured_before - entry.measured_after if entry.measured_queries else None,
        kept=kept,
        broken=kept is not None and kept < 1 / factor,
        cost=entry.cost_measured,
        cost_expected=entry.cost_expected,
        cost_low=entry.cost_low,
        cost_high=entry.cost_high,
    )


def _account(entry: Entry, model: CostModel) -> Account:
    checked, lasting = entry.measured_queries > 0, entry.lasting
    so_far = entry.credited_over(_measured_days(entry)) if lasting is not None else 1.0
    pages, promised = _by_pages(entry), _pages_promised(entry)
    part = entry.credited if lasting is None else 1.0
    size, files = (entry.promised_bytes if promised is None else promised) * part, entry.promised_files * part
    if checked and so_far <= 0:  # more than was foretold: it goes on as it was measured
        lasting, so_far = None, 1.0
    if checked and entry.measured_bytes is not None:
        size, files = (pages[1] if pages else entry.measured_bytes) / so_far, entry.measured_files / so_far
    elif (kept := _kept(entry, model)) is not None:
        size, files = size * kept, entry.measured_files / so_far
    if lasting is not None:
        lasting = replace(lasting, since=max(0.0, (entry.committed_at - asked_since(entry)) / DAY))
    assumed = entry.gate.get("assumptions", {})
    return Account(
        entry.location,
        entry.committed_at,
        entry.cost_measured,
        model.saved(size, files, entry.table_id),
        entry.measured_per_day or assumed.get("queries_per_day", entry.queries_per_day),
        entry.horizon_days,
        checked,
        entry.ended_at,
        lasting,
    )
