"""What is known of a table before a layout is sought for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from zorder_pipeline.model.predicate import And
from zorder_pipeline.model.values import DAY
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.learning.situation import _rate
from zorder_pipeline.pipeline.records import LearnSettings


def test_a_table_that_was_asked_on_one_afternoon_is_asked_as_seldom_as_the_rest_of_the_log_says() -> None:
    """200 queries within three hours counted as 1,600 a day for ever."""
    queries = [LoggedQuery("t", And(()), timestamp=9 * DAY + i * DAY // 8 // 199) for i in range(200)]
    analysis: Any = SimpleNamespace(queries=queries, until=29 * DAY)
    assert _rate(analysis, LearnSettings()) == (10.0, "observed")
    assert _rate(analysis, LearnSettings(queries_per_day=7.0)) == (7.0, "configured")
    alone: Any = SimpleNamespace(queries=queries, until=queries[-1].timestamp)
    unknown: Any = SimpleNamespace(queries=queries, until=None)
    assert _rate(alone, LearnSettings()) == _rate(unknown, LearnSettings())
    assert round(_rate(alone, LearnSettings())[0]) == 1600
