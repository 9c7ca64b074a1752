"""Which relayouts are measured tonight: a table that is laid out every night has one more of them each night."""

from __future__ import annotations

from collections.abc import Sequence

from zorder_pipeline.gate.benefit import observed_rate
from zorder_pipeline.model.values import DAY
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.state.entry import Entry

from .comparing import latest_of

__all__ = ["asked_since", "is_due", "later", "rate_now", "spanned_later"]

MOVED = 0.1
"""By what share a rate has moved that is noted anew."""
LONGER = 1.5
"""A relayout is measured again once queries came in for so many times the time until it was measured last."""


def later(entry: Entry, queries: Sequence[LoggedQuery]) -> list[LoggedQuery]:
    """The queries that came after a relayout and after those that its layout was learned from."""
    since = asked_since(entry)
    return [query for query in queries if query.timestamp is not None and query.timestamp > since]


def is_due(entry: Entry, queries: Sequence[LoggedQuery]) -> bool:
    """Whether a relayout, other than a table's newest, is worth measuring with the queries that came later.

    Each time two versions of the table are opened and the footers of their files are read. A night more tells little of
    one that stands for weeks, and nothing of one whose saving is not credited any more.

    Args:
        queries: those of `later`.
    """
    newest, last, since = latest_of(queries), entry.measured_until, asked_since(entry)
    if last is None or newest is None or not is_told(entry):
        return True
    return last < credited_until(entry) and newest - since >= LONGER * (last - since)


def is_told(entry: Entry) -> bool:
    """Whether a relayout was measured with queries that came later, and not only with the promise's own."""
    return entry.measured_until is not None and entry.measured_until > asked_since(entry)


def credited_until(entry: Entry) -> float:
    """When a relayout's saving is credited no more, microseconds since 1970 UTC."""
    horizon = entry.committed_at + entry.horizon_days * DAY  # may be for ever
    return horizon if entry.ended_at is None else min(horizon, entry.ended_at)


def asked_since(entry: Entry) -> int:
    """When the first query came that tells of a relayout, microseconds since 1970 UTC."""
    if entry.log_watermark is None:
        return entry.committed_at
    return min(entry.committed_at, entry.log_watermark)  # older plans may have been learned from lines of the future


def spanned_later(entry: Entry, queries: Sequence[LoggedQuery], until: int | None = None) -> tuple[int, int] | None:
    """Between which moments those of `later` are all that was asked of the table; None of a log without times.

    So it is where a rate is noted and the log goes on after the saving is over: how often is asked then says nothing.

    Args:
        queries: all that the log holds of the table.
        until: how far the whole log goes (`QueryLog.until`); without it as far as ``queries``.
    """
    moments = [query.timestamp for query in queries if query.timestamp is not None]
    if not moments:
        return None
    end = max(moments if until is None else [*moments, until])
    if entry.measured_per_day is not None and end > credited_until(entry):
        return None
    return max(asked_since(entry), min(moments)), end


def rate_now(entry: Entry, chosen: Sequence[LoggedQuery], between: tuple[int, int] | None) -> float | None:
    """Queries a day, where they are by a tenth others than noted: of a table that nobody asks any more they get fewer.

    Where none were noted, or none came, a log that goes on for a day after the relayout tells so. Of those that it was
    measured with, what the log has forgotten since counts on; a log that does not go on from there tells nothing.

    Args:
        chosen: those of `later`.
        between: see `spanned_later`.
    """
    noted = entry.measured_per_day
    if between is None or (not (noted and chosen) and between[1] - between[0] < DAY):
        return None
    asked = [query.timestamp for query in chosen if query.timestamp is not None]
    if is_told(entry) and (last := entry.measured_until) is not None:
        if not between[0] <= last <= max(asked, default=0):
            return None
        forgotten = entry.measured_queries - sum(moment <= last for moment in asked)
        asked += [entry.measured_since or asked_since(entry)] * forgotten
    rate, source = observed_rate(asked, len(asked), *between) if asked else (0.0, "observed")
    return rate if source == "observed" and (noted is None or abs(rate - noted) > MOVED * noted) else None
