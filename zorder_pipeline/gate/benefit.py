"""What a layout saves per query, with its uncertainty (seed 004, section 5.2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.bootstrap import resampled_sums, widening
from zorder_pipeline.model.plan import Promise
from zorder_pipeline.model.values import DAY

from .cost import CostModel, ScanWork
from .regression import Estimate

__all__ = ["ReadVolumes", "later_queries", "observed_rate", "promise", "saving"]

Floats = npt.NDArray[np.float64]

MOST_SPREAD = 50.0
"""Log of the widest interval, one way: nothing is sure then, and numbers stay finite."""
MIN_SPAN = DAY // 24

Interval: TypeAlias = tuple[float, float, float]
"""What is expected, and the lower and the upper end of its interval."""


def observed_rate(
    times: Sequence[int | None], queries: int, since: int | None = None, until: int | None = None
) -> tuple[float, str]:
    """Queries per day, and how that is known.

    Args:
        times: microseconds since 1970 per logged query, None where the log has none.
        queries: all logged queries of the table.
        since, until: the moments between which they are all of them, where that is known: quiet time before the first
            and after the last of them counts. How far back a log goes says little, as a table may have been named to
            it later than others; how far it goes is the same for all.

    Returns:
        The rate and ``observed`` when the times, and these moments, span at least an hour; otherwise the log is taken
        for one day and the source is ``assumed``, as it is when most queries have no time. These count as of the span
        of the table's own, or of a day.

    >>> observed_rate([0, DAY, 2 * DAY], 3)
    (1.5, 'observed')
    >>> observed_rate([0, DAY // 12, *[None] * 100], 102)
    (124.0, 'assumed')
    >>> observed_rate([4 * DAY, 4 * DAY + 1], 2, since=0, until=8 * DAY)
    (0.25, 'observed')
    """
    known = [moment for moment in times if moment is not None]
    moments = [*known, *(moment for moment in (since, until) if moment is not None)]
    span = max(moments) - min(moments) if known else 0
    if span < MIN_SPAN:
        return float(queries), "assumed"
    own, untimed = max(known) - min(known if since is None else [since, *known]), queries - len(known)
    rate = len(known) / (span / DAY) + untimed / max(own / DAY, 1.0)
    return rate, "observed" if untimed <= len(known) else "assumed"


@dataclass(frozen=True)
class ReadVolumes:
    """What each statement of the promise reads now and under the layout, beyond rows; arrays of shape (statements,).

    Attributes:
        bytes_before, bytes_after: of the columns it reads, in the row groups that it reads.
        files_before, files_after: opened.
        groups_before, groups_after: share of rows in the row groups that it reads.
        pages_before, pages_after: bytes, of readers that skip pages by their index, too; None where that is not known.
        enriched_bytes, enriched_files: what a reader through `reading/` would read under the layout; None when no
            query gains by it.
    """

    bytes_before: Floats
    bytes_after: Floats
    files_before: Floats
    files_after: Floats
    groups_before: Floats
    groups_after: Floats
    enriched_bytes: Floats | None = None
    enriched_files: Floats | None = None
    pages_before: Floats | None = None
    pages_after: Floats | None = None


def promise(
    before: Floats,
    after: Floats,
    query_bytes: Floats,
    rate: tuple[float, str],
    seed: int = 0,
    volumes: ReadVolumes | None = None,
    asked: Asked | None = None,
) -> Promise:
    """Promise from what later queries than those that were learned and chosen by read.

    Args:
        before, after: share of rows per statement now and under the layout, by the same estimator, shape (n,).
        query_bytes: bytes of the whole table in the columns each statement reads, shape (n,).
        asked: the queries, by their n statements; each once without it. Intervals are by observation
            (`zorder_pipeline.model.bootstrap`), and their lower ends at most those of what a later time may ask.
        rate: from `observed_rate`, or the configured rate with ``configured``.
        seed: of the bootstrap.
        volumes: bytes and files by virtual files; without them bytes follow the shares of rows.
    """
    per_day, source = rate
    if not len(before):
        return Promise(queries_per_day=per_day, rate_source=source)
    nothing = np.zeros(len(before))
    if volumes is None:
        volumes = ReadVolumes(before * query_bytes, after * query_bytes, nothing, nothing, before, after)
    asked = Asked.once(len(before)) if asked is None else asked
    times = asked.times

    def mean(values: Floats) -> float:
        return float(times @ values / times.sum())

    saved = {
        "rows": before - after,
        "bytes": volumes.bytes_before - volumes.bytes_after,
        "files": volumes.files_before - volumes.files_after,
    }
    most = {"rows": mean(before), "bytes": mean(volumes.bytes_before), "files": mean(volumes.files_before)}
    pages: dict[str, float] = {}
    if volumes.pages_before is not None and volumes.pages_after is not None:
        saved["page_bytes"] = volumes.pages_before - volumes.pages_after
        most["page_bytes"] = mean(volumes.pages_before)
        pages = {"page_bytes_before": most["page_bytes"], "page_bytes_saved_per_query": mean(saved["page_bytes"])}
    more = _on_top(volumes)
    low, high = _ends(saved | {f"enriched_{name}": saved[name] + more[name] for name in more}, most, asked, seed)
    enriched = {f"enriched_{name}_per_query": mean(each) for name, each in more.items()}
    for name in more:  # who saves more saves no less, however few the observations
        enriched[f"enriched_{name}_low"] = max(low[f"enriched_{name}"], low[name])
        enriched[f"enriched_{name}_high"] = high[f"enriched_{name}"]
    return Promise(
        queries=len(asked.queries),
        statements=asked.conditions,
        before=mean(before),
        after=mean(after),
        low=low["rows"],
        high=high["rows"],
        bytes_saved_per_query=mean(saved["bytes"]),
        bytes_low=low["bytes"],
        bytes_high=high["bytes"],
        bytes_before=mean(volumes.bytes_before),
        files_before=mean(volumes.files_before),
        files_saved_per_query=mean(saved["files"]),
        files_low=low["files"],
        files_high=high["files"],
        page_bytes_low=low.get("page_bytes"),
        page_bytes_high=high.get("page_bytes"),
        groups_before=mean(volumes.groups_before),
        groups_after=mean(volumes.groups_after),
        queries_per_day=per_day,
        rate_source=source,
        **pages,
        **enriched,
    )


def _on_top(volumes: ReadVolumes) -> dict[str, Floats]:
    """What only readers through `reading/` save of each statement, by measure; nothing where no query gains by it.

    Of the pages it is the part that it is of the bytes: what lies in no page that others read cannot be spared again.
    """
    if volumes.enriched_bytes is None and volumes.enriched_files is None:
        return {}
    size = volumes.bytes_after if volumes.enriched_bytes is None else volumes.enriched_bytes
    files = volumes.files_after if volumes.enriched_files is None else volumes.enriched_files
    less = np.maximum(volumes.bytes_after - size, 0.0)
    more = {"bytes": less, "files": np.maximum(volumes.files_after - files, 0.0)}
    if volumes.pages_before is not None and volumes.pages_after is not None:
        more["page_bytes"] = volumes.pages_after * less / np.maximum(volumes.bytes_after, 1e-12)
    return more


def _ends(
    saved: dict[str, Floats], most: dict[str, float], asked: Asked, seed: int
) -> tuple[dict[str, float], dict[str, float]]:
    """The ends of the intervals of what is saved in the mean, by name.

    Args:
        saved: per statement, by name.
        most: what was read, of which no more is saved, by the same names, but for ``enriched_`` before them.
    """
    values = [np.ones(len(asked.times)), *saved.values()]
    observed = np.array([asked.observed(each, weights) for weights in (None, asked.later) for each in values])
    drawn = resampled_sums(observed, np.random.default_rng(seed))
    ends = []
    for each, resampled in zip(np.split(observed, 2), np.split(drawn, 2), strict=True):
        # what stands for no later query tells nothing of one, and there are resamples of such observations alone
        wider, (queries, *sums) = widening(int((each[0] > 0).sum()), 0.975), resampled[:, resampled[0] > 0]
        middle = each[1:].sum(axis=1) / each[0].sum()
        ends.append(middle + wider * (np.quantile(np.array(sums) / queries, [0.025, 0.975], axis=1) - middle))
    now, later = ends
    low = np.minimum(now, later)[0]
    high = np.minimum(now[1], [most[name.removeprefix("enriched_")] for name in saved])
    return dict(zip(saved, low.tolist(), strict=True)), dict(zip(saved, high.tolist(), strict=True))


def later_queries(promised: Promise) -> str:
    """The queries that it was proved on, and how many are different.

    >>> later_queries(Promise(queries=1400, statements=90)), later_queries(Promise(queries=40, statements=40))
    ('1,400 later queries (90 different)', '40 later queries')
    """
    different = f" ({promised.statements:,} different)" if 0 < promised.statements < promised.queries else ""
    return f"{promised.queries:,} later queries{different}"


def saving(
    promised: Promise,
    costs: CostModel,
    queries: float,
    table: str = "",
    enriched_share: float = 0.0,
    widening: float = 1.0,
    pages: bool = False,
) -> Estimate:
    """Core-seconds that ``queries`` such queries save, with an interval.

    The interval joins the bootstrap's over queries with the doubt about what a scan costs here, as independent errors.

    Args:
        table: id of the table, whose own measured scans count most.
        enriched_share: share of the queries asked through `reading/`, 0 to 1.
        widening: factor by which earlier promises were broken (`zorder_pipeline.gate.accounts.widening`): the lower
            end is divided by it, as what was missed is no part of the interval.
        pages: the readers skip Parquet's pages by their index, too, as Spark does.
    """
    size = _mixed(_bytes_saved(promised), _of_enriched(promised, "bytes"), enriched_share)
    if pages and promised.page_bytes_saved_per_query is not None:
        paged = promised.page_bytes_saved_per_query, promised.page_bytes_low or 0.0, promised.page_bytes_high or 0.0
        size = _mixed(paged, _of_enriched(promised, "page_bytes"), enriched_share)
    opened = promised.files_saved_per_query, promised.files_low, promised.files_high
    files = _mixed(opened, _of_enriched(promised, "files"), enriched_share)
    expected, worst, best = (costs.saved(*each, table) for each in zip(size, files, strict=True))
    doubt = costs.scans(ScanWork(abs(size[0]), abs(files[0])), table)
    relative = doubt.high / doubt.expected if doubt.expected else 1.0
    if worst > 0:  # both errors are factors, so together they cannot turn a saving into a loss
        # where fewer bytes are bought with more files the errors stay as large, and what they are relative to shrinks
        spread = min(MOST_SPREAD, math.log(relative) * max(1.0, doubt.expected / expected))
        low = expected / math.exp(math.hypot(math.log(expected / worst), spread))
        high = expected * math.exp(math.hypot(math.log(best / expected), spread))
    else:
        low, high = worst * relative, max(best, 0.0) * relative
    return Estimate(low / widening if low > 0 else low, expected, high).times(queries)


def _bytes_saved(promised: Promise) -> Interval:
    """Bytes that a query saves."""
    expected, least, most = promised.bytes_saved_per_query, promised.bytes_low, promised.bytes_high
    if least == most == 0.0 and promised.before != promised.after:  # a promise of an older version
        whole = expected / (promised.before - promised.after)
        return expected, promised.low * whole, promised.high * whole
    return expected, least, most


def _of_enriched(promised: Promise, measure: str) -> tuple[float, float | None, float | None]:
    """What only readers through `reading/` save on top, and the ends of the interval of all that they save."""
    more, low, high = (getattr(promised, f"enriched_{measure}_{what}") for what in ("per_query", "low", "high"))
    return (promised.enriched_bytes_per_query if more is None else more), low, high


def _mixed(saved: Interval, enriched: tuple[float, float | None, float | None], share: float) -> Interval:
    """What is saved where a share of the queries is asked through `reading/`.

    Where the ends of what these save are not known, as in plans of older versions, nothing on top is sure.

    >>> _mixed((5.0, 2.0, 8.0), (4.0, 6.0, 10.0), 0.5), _mixed((5.0, 2.0, 8.0), (4.0, None, None), 0.5)
    ((7.0, 4.0, 9.0), (7.0, 2.0, 10.0))
    """
    (expected, least, most), (more, low, high) = saved, enriched
    low, high = (least if low is None else low), (most + more if high is None else high)
    return expected + share * more, least + share * (low - least), most + share * (high - most)
