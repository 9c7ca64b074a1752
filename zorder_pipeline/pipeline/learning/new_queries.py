"""Which queries came in since the last night: each counts once."""

from __future__ import annotations

from collections.abc import Sequence

from zorder_pipeline.model.moments import latest
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.values import DAY
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.records import TableAnalysis

from .memory import Memory, since_then

__all__ = ["later_one", "learned_until", "new_queries", "uncounted"]


def uncounted(analysis: TableAnalysis, memory: Memory, present: Plan) -> tuple[float, float]:
    """Days from the first to the last of the queries that are not counted yet, and of all that the log still has."""
    new = new_queries(analysis, memory, present)
    chosen = ([analysis.queries[i] for i in new], analysis.queries)
    times = [[query.timestamp for query in some if query.timestamp is not None] for some in chosen]
    waited, held = ((max(some) - min(some)) / DAY if some else 0.0 for some in times)
    return waited, held


def new_queries(analysis: TableAnalysis, memory: Memory, present: Plan) -> list[int]:
    """Indices of the queries that came in since the last night, also of those that another log had later ones than."""
    since = since_then(memory, present)[1]
    timed = [(i, query.timestamp) for i, query in enumerate(analysis.queries) if query.timestamp is not None]
    if not timed:
        until, batches = memory.batch, [one.batch for one in analysis.queries]
        new = [i for i, batch in enumerate(batches) if until is not None and batch is not None and batch > until]
        # of those that nobody can tell, as many as there are more: a log that is read anew holds old ones, too
        untold = [i for i, batch in enumerate(batches) if until is None or batch is None]
        grown = max(0, len(batches) - memory.counted - len(new))
        return sorted(new + untold[max(0, len(untold) - grown) :])
    if since is None:
        return [i for i, _ in timed]
    late = _late(analysis.queries, memory, present)
    return [i for i, moment in timed if moment > since or i in late]


def later_one(since: int | None, newest: int | None) -> int | None:
    """The watermark goes back for no log that is missing for a night, but from a moment at which no query can be."""
    if since is None or newest is None or since > latest():
        return newest if newest is not None else since
    return max(since, newest)


def learned_until(memory: Memory, present: Plan) -> int | None:
    """Newest query that the present layout was learned from: what is new is laid out by it with ever newer plans."""
    assert present.spec is not None
    known = memory.drift is not None and memory.drift.real.present == present.spec.layout_id
    return memory.learned_until if known and memory.learned_until is not None else present.log_watermark


def _late(queries: Sequence[LoggedQuery], memory: Memory, present: Plan) -> set[int]:
    """Indices of the queries that were asked before the newest one that was counted, and came in after it.

    Such as those of an event log that is delivered a day after a history of the same warehouse. One that came in
    before, as exports of the last week have it each day, does not count again.
    """
    known, until, since = memory.batch, memory.watermark, learned_until(memory, present)
    if known is None or until is None or since is None:
        return set()
    within = [(i, one) for i, one in enumerate(queries) if one.timestamp is not None and since < one.timestamp <= until]
    came = {(one.timestamp, one.fingerprint) for _, one in within if one.batch is None or one.batch <= known}
    late = ((i, one) for i, one in within if one.batch is not None and one.batch > known)
    return {i for i, one in late if (one.timestamp, one.fingerprint) not in came}
