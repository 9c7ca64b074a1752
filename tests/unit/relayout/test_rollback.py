"""Where a rollback goes, and what it says when there is nothing for it to take back, or something to lose."""

from __future__ import annotations

from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest

from zorder_pipeline.errors import TableError
from zorder_pipeline.relayout import rollback as module


def commit(number: int, operation: str | None, **parameters: str) -> dict[str, Any]:
    """A commit of somebody else."""
    who = {"userMetadata": None, "userName": None, "engineInfo": None}
    moment = datetime(2026, 1, 1, number)
    return {"version": number, "operation": operation, "operationParameters": parameters, "timestamp": moment, **who}


OURS = commit(2, "OPTIMIZE") | {"userMetadata": "zorder layout abc run"}
TAKEN_BACK = commit(3, "RESTORE", version="1", timestamp="")


@pytest.mark.parametrize(
    ("later", "sentence"),
    [
        ([TAKEN_BACK], "our last relayout of /t is already taken back by version 3; give --to-version"),
        ([TAKEN_BACK, commit(4, "VACUUM END")], "already taken back by version 3"),
        ([commit(3, "RESTORE", version="0")], "already taken back by version 3"),
        ([commit(3, "RESTORE", timestamp="2026-01-01 01:30:00")], "already taken back by version 3"),
        ([TAKEN_BACK, commit(4, "WRITE"), commit(5, "RESTORE", version="2")], "RESTORE at version 5 came after our"),
        ([TAKEN_BACK, commit(4, "RESTORE", version="2")], "RESTORE at version 4 came after our relayout began"),
        ([commit(3, "WRITE")], "WRITE at version 3 came after our relayout began"),
        ([commit(3, None)], "^a commit at version 3 came after our relayout began"),
    ],
)
def test_our_own_rollback_is_called_that(later: list[Any], sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "history_of", lambda _: [*reversed(later), OURS, commit(1, "WRITE")])
    snapshot: Any = SimpleNamespace(location="/t", version=len(later) + 2)
    with pytest.raises(TableError, match=sentence):
        module._before_last_relayout(snapshot)


@pytest.mark.parametrize(
    ("commits", "expected"),
    [
        ("W O", 1),
        ("L W O", 2),  # the write came before
        ("W O O M M", 1),  # all bins of the run
        ("W O M O", 1),
        ("W O W O", None),  # between the bins, whose rows the first one's version does not have
        ("W O W", None),
        ("W O P", None),  # nor another relayout of another's
        ("W P O", 2),
        ("W O L", 2),  # a later run of ours is taken back alone
        ("W P M", None),
    ],
)
def test_a_rollback_goes_to_before_the_newest_relayout_and_loses_nobodys_commit(
    commits: str, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W is a write, M maintenance, P another's OPTIMIZE, O and L bins of two relayouts of ours."""
    labels = {"O": "zorder layout abc run", "L": "zorder layout abc later"}
    operations = {"W": "WRITE", "M": "VACUUM START"}
    made = [
        commit(i, operations.get(each, "OPTIMIZE")) | {"userMetadata": labels.get(each)}
        for i, each in enumerate(commits.split(), 1)
    ]
    monkeypatch.setattr(module, "history_of", lambda _: [*reversed(made), commit(0, "CREATE TABLE")])
    snapshot: Any = SimpleNamespace(location="/t", version=len(made))
    if expected is not None:
        assert module._before_last_relayout(snapshot) == expected
    else:
        with pytest.raises(TableError, match=r"would be lost|has no relayout of ours"):
            module._before_last_relayout(snapshot)


@pytest.mark.parametrize("version", [3, 4, -1])
def test_only_an_earlier_version_can_be_gone_back_to(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "open_table", lambda *_, **__: SimpleNamespace(location="/t", version=3))
    spark: Any = None
    with pytest.raises(TableError, match=f"version {version} of /t .* must be below 3, the table's newest version"):
        module.rollback(spark, "/t", version)
