"""Which commits a relayout that was killed is looked for among."""

from datetime import datetime
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from zorder_pipeline.errors import TableError
from zorder_pipeline.relayout import unrecorded
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


@pytest.mark.parametrize(("held", "merged"), [((0, 1, 2), {0: 5, 1: 5}), ((1, 2), None)])
def test_what_a_run_of_two_bins_merged_is_recorded_where_delta_s_log_tells_it(
    held: tuple[int, ...], merged: dict[int, int] | None
) -> None:
    """Of what is not known the ledger says nothing, and not that nothing was merged."""

    def at(version: int) -> Any:
        if version not in held:
            raise TableError("gone")
        rows = np.array([10])
        files = SimpleNamespace(rows=rows, bytes=rows, replaced_by=lambda _: (rows > 0, rows > 0))
        files.generations = lambda layout, among: {version: 5 * len(among)} if layout == "abc" else {}
        return SimpleNamespace(files=lambda: files)

    noted: list[Any] = []
    ledger: Any = SimpleNamespace(record=lambda plan, layout, version, known, *_: noted.append((layout, known)))
    begun: Any = SimpleNamespace(
        plan=SimpleNamespace(spec=SimpleNamespace(layout_id="abc")),
        work={"credited": 1.0}, bytes=20, begun_at=0.0, run="run", gate={},
    )  # fmt: skip
    commits: Any = [{"version": version, "timestamp": datetime.fromtimestamp(version)} for version in (2, 1)]
    snapshot: Any = SimpleNamespace(at=at)
    unrecorded._record(snapshot, ledger, begun, commits)
    (layout, known), *_ = noted
    assert (layout, known["merged"]) == ("abc", merged)
