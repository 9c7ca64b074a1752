"""What a layout saves per query, with its uncertainty (seed 004, section 5.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.plan import Promise

__all__ = ["observed_rate", "promise"]

RESAMPLES = 2000
DAY = 86_400_000_000
MIN_SPAN = DAY // 24


def observed_rate(times: Sequence[int | None], queries: int) -> tuple[float, str]:
    """Queries per day, and how that is known.

    Args:
        times: microseconds since 1970 per logged query, None where the log has none.
        queries: all logged queries of the table.

    Returns:
        The rate and ``observed`` when the times span at least an hour; otherwise the log is taken for one day and the
        source is ``assumed``.

    >>> observed_rate([0, DAY, 2 * DAY], 3)
    (1.5, 'observed')
    """
    known = [moment for moment in times if moment is not None]
    span = max(known) - min(known) if known else 0
    if span < MIN_SPAN:
        return float(queries), "assumed"
    return queries / (span / DAY), "observed"


def promise(
    before: npt.NDArray[np.float64],
    after: npt.NDArray[np.float64],
    query_bytes: npt.NDArray[np.float64],
    rate: tuple[float, str],
    seed: int = 0,
) -> Promise:
    """Promise from shares of rows read by queries that had no part in learning.

    Args:
        before, after: share of rows per query now and under the layout, by the same estimator, shape (n,).
        query_bytes: bytes of the whole table in the columns each query reads, shape (n,).
        rate: from `observed_rate`, or the configured rate with ``configured``.
        seed: of the bootstrap.
    """
    per_day, source = rate
    if not len(before):
        return Promise(queries_per_day=per_day, rate_source=source)
    rng = np.random.default_rng(seed)
    saved = before - after
    means = saved[rng.integers(len(saved), size=(RESAMPLES, len(saved)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Promise(
        queries=len(before),
        before=float(before.mean()),
        after=float(after.mean()),
        low=float(low),
        high=float(high),
        bytes_saved_per_query=float((saved * query_bytes).mean()),
        queries_per_day=per_day,
        rate_source=source,
    )
