"""What is known of a table before a layout is sought for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from zorder_pipeline.model.predicate import And
from zorder_pipeline.model.values import DAY
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.learning.situation import _rate
from zorder_pipeline.pipeline.records import LearnSettings


def test_a_table_of_one_busy_afternoon_is_asked_as_often_as_the_whole_log_says() -> None:
    """200 queries within three hours of a month counted as 1,600 a day."""
    queries = [LoggedQuery("t", And(()), timestamp=9 * DAY + i * DAY // 8 // 199) for i in range(200)]
    analysis: Any = SimpleNamespace(queries=queries, spanned=(0, 30 * DAY))
    assert _rate(analysis, LearnSettings()) == (200 / 30, "observed")
    assert _rate(analysis, LearnSettings(queries_per_day=7.0)) == (7.0, "configured")
    alone: Any = SimpleNamespace(queries=queries, spanned=(queries[0].timestamp, queries[-1].timestamp))
    unknown: Any = SimpleNamespace(queries=queries, spanned=None)
    assert _rate(alone, LearnSettings()) == _rate(unknown, LearnSettings())
    assert round(_rate(alone, LearnSettings())[0]) == 1600
