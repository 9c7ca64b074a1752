"""What pictures of a table's analysis are told."""

from typing import Any

import pytest

from zorder_pipeline import pictures
from zorder_pipeline.features.candidates import Candidate
from zorder_pipeline.features.select import Analysis
from zorder_pipeline.pipeline.learning import drawing


def test_the_graph_counts_queries_as_the_tables_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what they weigh: one that partitions prune to a tenth was a tenth, and the table beside said one."""
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(pictures, "correlation_graph", lambda queries, *_: told.append(queries) or b"")
    user = Candidate("user", "bigint", 426.0, 556, 0.6, 9, 9, 0.0, 0.1, 1.0, "delta", True, "")
    drawing.graph(Analysis((user,), (), ("user",), (), (), ("user",)))
    assert told == [{"user": 556}]
