"""How promises were kept, and what is booked of relayouts: what the ledger's rows tell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from zorder_pipeline.gate.accounts import BROKEN, Account, kept_share
from zorder_pipeline.gate.cost import CostModel
from zorder_pipeline.model.values import DAY
from zorder_pipeline.model.wording import counted
from zorder_pipeline.state.entry import Entry

from .due import asked_since

if TYPE_CHECKING:
    from zorder_pipeline.pictures import KeptPromise

__all__ = ["PromiseCheck", "account_of", "check_of", "kept_of", "pages_promised"]


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
        kept = None if self.kept is None else not self.broken
        return KeptPromise(name, self.promised, self.promised_low, self.measured, kept, self.cost, foretold)


def kept_of(entry: Entry, model: CostModel) -> float | None:
    """Measured saving as a multiple of the promised one; None when it was not checked yet or next to nothing."""
    if not entry.measured_queries:
        return None
    credited = _credited_then(entry)
    if entry.measured_bytes is None or not entry.bytes_before:
        promised, measured = entry.promised_whole * credited, entry.measured_before - entry.measured_after
        return kept_share(promised, measured, entry.promised_before)
    size = _by_pages(entry) or (entry.promised_bytes, entry.measured_bytes, entry.bytes_before)
    files = (entry.promised_files, entry.measured_files, entry.files_before)
    promised, measured, before = (model.saved(*each, entry.table_id) for each in zip(size, files, strict=True))
    return kept_share(promised * credited, measured, before)


def _credited_then(entry: Entry) -> float:
    """Share of the plan's promise that was foretold of the time in which it was measured; by own queries, as logged."""
    first, until = asked_since(entry), entry.measured_until or 0
    since = max(first, min(entry.measured_since or first, until))
    return entry.credited_over((until - since) / DAY, (since - first) / DAY)


def _by_pages(entry: Entry) -> tuple[float, float, float] | None:
    """Bytes promised, measured and read before by pages, where the gate weighed these and they were measured."""
    promised, measured, before = pages_promised(entry), entry.measured_page_bytes, entry.page_bytes_before
    return None if promised is None or measured is None or not before else (promised, measured, before)


def pages_promised(entry: Entry) -> float | None:
    """Bytes promised by pages; None where the gate weighed row groups."""
    weighed = entry.gate.get("assumptions", {}).get("page_skipping", True)
    return entry.promised_page_bytes if weighed else None


def check_of(entry: Entry, broken: float | None, model: CostModel) -> PromiseCheck:
    """What a relayout promised and what became of it.

    Args:
        broken: factor by which a promise may be missed; None for the one that it was decided with.
    """
    kept, credited = kept_of(entry, model), _credited_then(entry)
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


def account_of(entry: Entry, model: CostModel) -> Account:
    """What a relayout cost and saves: as measured, else as promised, and day by day as it was foretold to last."""
    checked, lasting, kept = entry.measured_queries > 0, entry.lasting, kept_of(entry, model)
    pages, promised = _by_pages(entry), pages_promised(entry)
    part = entry.credited if lasting is None else 1.0
    size, files = (entry.promised_bytes if promised is None else promised) * part, entry.promised_files * part
    if lasting is not None:  # as promised, day by day, and as far as that was kept; of next to nothing that is not told
        saved = model.saved(size, files, entry.table_id) * (1.0 if kept is None else kept)
        lasting = replace(lasting, since=max(0.0, (entry.committed_at - asked_since(entry)) / DAY))
    else:
        if checked and entry.measured_bytes is not None:
            size, files = pages[1] if pages else entry.measured_bytes, entry.measured_files
        elif kept is not None:
            size, files = size * kept, entry.measured_files
        saved = model.saved(size, files, entry.table_id)
    rate = entry.measured_per_day
    if rate is None:
        rate = entry.gate.get("assumptions", {}).get("queries_per_day", entry.queries_per_day)
    return Account(
        entry.location,
        entry.committed_at,
        entry.cost_measured,
        saved,
        rate,
        entry.horizon_days,
        checked,
        entry.ended_at,
        lasting,
    )
