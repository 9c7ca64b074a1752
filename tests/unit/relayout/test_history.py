"""What a table's history says of our relayouts: whether a RESTORE took the newest back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from zorder_pipeline.relayout.history import taken_back

START = datetime(2026, 1, 1)  # the history's times have no zone


def commit(version: int, operation: str, label: str | None = None, /, **parameters: str) -> dict[str, Any]:
    return {
        "version": version, "operation": operation, "userMetadata": label, "operationParameters": parameters,
        "timestamp": START + timedelta(hours=version), "userName": "asha", "engineInfo": None,
    }  # fmt: skip


def ours(version: int, run: str = "run") -> dict[str, Any]:
    return commit(version, "OPTIMIZE", f"zorder layout abc {run}")


def history(*commits: dict[str, Any]) -> list[Any]:
    return [*reversed(commits), commit(0, "WRITE")]


BACK = commit(3, "RESTORE", version="1", timestamp="")


@pytest.mark.parametrize(
    ("commits", "by"),
    [
        ([commit(1, "WRITE")], None),
        ([commit(1, "WRITE"), ours(2)], None),
        ([commit(1, "WRITE"), ours(2), BACK], 3),
        ([commit(1, "WRITE"), ours(2), BACK, commit(4, "WRITE"), commit(5, "OPTIMIZE")], 3),
        ([commit(1, "WRITE"), ours(2), BACK, ours(4, "again")], None),
        ([ours(1, "first"), ours(2), BACK], 3),
        ([commit(1, "WRITE"), ours(2), BACK, commit(4, "RESTORE", version="2")], None),
        ([commit(1, "WRITE"), ours(2), BACK, commit(4, "RESTORE", version="3")], 3),
        ([ours(1), ours(2), commit(3, "RESTORE", version="1")], None),  # one of two bins
        ([ours(1), ours(2), commit(3, "RESTORE", version="0")], 3),
        ([ours(1), commit(2, "WRITE"), commit(3, "RESTORE", timestamp="2026-01-01 00:30:00.0")], 3),
        ([ours(1), commit(2, "WRITE"), commit(3, "RESTORE", timestamp="2026-01-01 01:30:00.0")], None),
        ([ours(1), commit(2, "WRITE"), commit(3, "RESTORE", timestamp="whenever")], None),
    ],
)
def test_a_restore_from_before_our_newest_relayout_took_it_back(commits: list[Any], by: int | None) -> None:
    found = taken_back(history(*commits))
    assert (None if found is None else found.version) == by


def test_it_says_who_did_it_and_when() -> None:
    found = taken_back(history(commit(1, "WRITE"), ours(2), BACK))
    assert found is not None
    assert found.why.startswith("version 3 (RESTORE by asha) took our relayout of version 2 back, so nothing is")
    assert datetime.fromtimestamp(found.moment / 1e6, UTC) == (START + timedelta(hours=3)).astimezone(UTC)
