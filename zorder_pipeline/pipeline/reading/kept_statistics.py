"""Statistics of files that came: what a relayout or another writer wrote gets those that are kept of its table."""

from __future__ import annotations

import datetime as dt
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from zorder_pipeline.errors import ZorderError
from zorder_pipeline.features.statistics import MAX_FEATURES
from zorder_pipeline.java import reason_of
from zorder_pipeline.model.file_stats import Feature
from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.reading.file_stats import FileStats
from zorder_pipeline.reading.session import session_of
from zorder_pipeline.state.session_conf import alone

from .known_files import current
from .statistics import gather_statistics

if TYPE_CHECKING:
    from zorder_pipeline.model.plan import Plan
    from zorder_pipeline.model.results import StatisticsResult
    from zorder_pipeline.relayout.snapshot import TableSnapshot

__all__ = ["complete_statistics", "keep_statistics"]


def keep_statistics(
    before: TableSnapshot, plan: Plan | None, state: str, progress: Progress | None = None
) -> StatisticsResult | None:
    """After a commit of ours gather statistics of what it wrote, and forget files that are gone; None where none are.

    A plan that has a layout and statistics says what to keep of the files that lie by it. Without one the new files get
    those that are kept of the table already: merged files would lose theirs. What goes wrong here is told and costs
    nothing but reading time: a file without statistics is read.

    Args:
        before: the version that was rewritten.
    """
    say = progress or silent

    def kept() -> StatisticsResult | None:
        snapshot = before.newest()
        files = snapshot.files()
        if plan is not None and plan.spec is not None and plan.statistics:
            layout = plan.spec.layout_id
            mine = [str(path) for path, own in zip(files.path, files.layout, strict=True) if own == layout]
            # the rows that tell since when there are any may all be of files that are gone
            others = [] if (so_far := _kept_so_far(before, state)) is None else _came(snapshot, so_far[1])
            mine = list(dict.fromkeys((*mine, *others)))
            return gather_statistics(before.spark, snapshot, plan.statistics, state, paths=mine, progress=say)
        if (so_far := _kept_so_far(snapshot, state)) is None:
            return None
        new = sorted({*map(str, files.path)} - {*map(str, before.files().path)})
        return gather_statistics(before.spark, snapshot, so_far[0], state, paths=new, progress=say)

    return _or_told(kept, before, state, say)


def complete_statistics(
    snapshot: TableSnapshot, state: str, progress: Progress | None = None
) -> StatisticsResult | None:
    """Gather what files lack that came since statistics are kept of the table; None where none are.

    Those that others append or rewrite would be opened by every scan until a relayout takes them. What was there before
    that nobody laid out stays without any: all of a large table is read on request alone (`gather_statistics`).
    """
    say = progress or silent

    def completed() -> StatisticsResult | None:
        if (so_far := _kept_so_far(snapshot, state)) is None:
            return None
        wanted, since = so_far
        came = _came(snapshot, since)
        return gather_statistics(snapshot.spark, snapshot, wanted, state, paths=came, progress=say)

    return _or_told(completed, snapshot, state, say)


def _came(snapshot: TableSnapshot, since: int) -> list[str]:
    """Files that were written since a moment, milliseconds since 1970."""
    files = snapshot.files()
    return [str(path) for path in files.path[files.modified >= since]]


def _kept_so_far(snapshot: TableSnapshot, state: str) -> tuple[list[Feature], int] | None:
    """What statistics are kept of a table, and since when, milliseconds since 1970 (the begin of that day).

    Of more than `MAX_FEATURES` those that were gathered last: what queries asked before is asked no more, or less.
    None where none are. In a session to which those that there are say nothing none are to be kept, and those of files
    that are gone still go.
    """
    held = FileStats(snapshot.spark, state).load(snapshot.table_id, fresh=True)
    if (first := held.since()) is None:
        return None
    with alone(snapshot.spark) as own:
        session = session_of(own)
    usable = held.within(session).under(snapshot.stored_as).features()
    since = dt.datetime.combine(first, dt.time(), dt.UTC).timestamp() * 1000
    return [feature for feature in current(usable, snapshot) if feature.sql][:MAX_FEATURES], int(since)


def _or_told(
    gather: Callable[[], StatisticsResult | None], table: TableSnapshot, state: str, say: Progress
) -> StatisticsResult | None:
    """What was gathered; what goes wrong is told instead, as a file without statistics is read and nothing else."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        return gather()
    except (ZorderError, Py4JError, PySparkException, pa.ArrowException, AssertionError) as error:
        again = shlex.join(("zorder", "stats", "--table", table.location, "--state", state))
        told = f"run {again} to try again, with --log or --plan where the state holds no queries that say what to keep"
        say(f"statistics of the new files could not be kept ({reason_of(error)}); {told}")
        return None
