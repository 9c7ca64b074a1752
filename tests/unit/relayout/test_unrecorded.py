"""Which commits a relayout that was killed is looked for among."""

from types import SimpleNamespace
from typing import Any

import pytest

from zorder_pipeline.relayout.unrecorded import _relayouts_since

MINE = (11, 12)


def table(version: int) -> Any:
    """A table of sixteen commits, two of them ours, that was opened at some version."""
    told = {"userMetadata": "zorder layout abc run", "operation": "OPTIMIZE"}
    rest = {"userMetadata": None, "operation": "WRITE"}
    log = [{"version": v, "operationMetrics": {}} | (told if v in MINE else rest) for v in reversed(range(16))]

    def sql(text: str) -> Any:
        return SimpleNamespace(collect=lambda: log[: int(text.rsplit(" ", 1)[1])])

    return SimpleNamespace(location="/t", version=version, spark=SimpleNamespace(sql=sql))


@pytest.mark.parametrize(("version", "found"), [(12, [12, 11]), (14, [12, 11]), (15, [12, 11]), (11, [11]), (10, [])])
def test_commits_that_came_since_the_table_was_opened_hide_none(version: int, found: list[int]) -> None:
    assert [row["version"] for row in _relayouts_since(table(version), 10)] == found
