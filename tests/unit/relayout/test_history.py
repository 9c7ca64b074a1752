"""What a table's history says of our relayouts: whether a RESTORE took the newest back, or another job undoes them."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from zorder_pipeline.relayout import history as module
from zorder_pipeline.relayout.history import taken_back, undone_by

START = datetime(2026, 1, 1)  # the history's times have no zone


def commit(version: int, operation: str, label: str | None = None, /, **parameters: str) -> dict[str, Any]:
    return {
        "version": version, "operation": operation, "userMetadata": label, "operationParameters": parameters,
        "timestamp": START + timedelta(hours=version), "userName": "asha", "engineInfo": None, "operationMetrics": {},
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


@pytest.mark.parametrize(
    ("moment", "here", "anywhere"),
    [("01-01 01:59", True, True), ("01-01 04:30", False, True), ("01-02 22:30", False, False)],
)
def test_a_restore_to_a_moment_is_told_in_the_time_zone_of_who_did_it(moment: str, here: bool, anywhere: bool) -> None:
    commits = history(commit(1, "WRITE"), ours(2), commit(90, "RESTORE", timestamp=f"2026-{moment}:00.0"))
    assert (taken_back(commits) is not None) == here
    assert (taken_back(commits, gone_anyway=True) is not None) == anywhere


def test_where_others_wrote_the_table_anew_a_restore_to_a_moment_is_taken_as_it_reads() -> None:
    """No file of ours is left in such a table either, whatever was restored later."""
    anew = commit(4, "WRITE", mode="Overwrite") | {"operationMetrics": {"numRemovedFiles": "3"}}
    commits = history(ours(2), anew, commit(8, "RESTORE", timestamp="2026-01-01 05:00:00.0"))
    assert taken_back(commits, gone_anyway=True) is None


def test_a_restore_to_a_moment_before_what_is_looked_at_took_it_back() -> None:
    """Nights look at the history since the version that the newest relayout replaced; last week's is before that."""
    week = commit(12, "RESTORE", timestamp="2026-01-01 03:30:00.0")
    found = taken_back([week, ours(11), commit(10, "WRITE")])
    assert found is not None
    assert found.version == 12


def test_it_says_who_did_it_and_when() -> None:
    found = taken_back(history(commit(1, "WRITE"), ours(2), BACK))
    assert found is not None
    assert found.why.startswith("version 3 (RESTORE by asha) took our relayout of version 2 back, so nothing is")
    assert datetime.fromtimestamp(found.moment / 1e6, UTC) == (START + timedelta(hours=3)).astimezone(UTC)


def sentence(
    commits: str,
    share: float,
    monkeypatch: pytest.MonkeyPatch,
    auto: str = "false",
    since: int | None = None,
    largest: int = 0,
    wrote: int = 100,
) -> str | None:
    """What is said of a history: O and C are a relayout and a compaction of ours, P is another's OPTIMIZE.

    Args:
        share: of the table's 100 rows of 10 bytes that lie by a layout of ours now.
        wrote: rows that each relayout wrote.
        since, largest: the version before the relayouts that the state knows of, and rows of the largest.
    """
    made = [
        commit(i, "WRITE" if each == "W" else "OPTIMIZE", labels.get(each), auto=auto)
        | {"operationMetrics": {"numAddedBytes": str(10 * wrote)}}
        for i, each in enumerate(commits.split(), 1)
        for labels in ({"O": f"zorder layout abc run{i}", "C": f"zorder compaction run{i}"},)
    ]
    newest = [*reversed(made), commit(0, "WRITE")]
    monkeypatch.setattr(module, "history_of", lambda _, limit: newest[:limit])
    ours = round(100 * share)
    rows = np.array([ours, 100 - ours])
    files: Any = SimpleNamespace(rows=rows, bytes=10 * rows, lies_by=lambda _: np.array([False, True]))
    snapshot: Any = SimpleNamespace(version=len(made), files=lambda: files)
    return undone_by(snapshot, lambda: (since, largest))


@pytest.mark.parametrize(
    ("commits", "share", "versions"),
    [
        ("O P O P", 0.0, "2, 4"),
        ("O P O P", 0.49, "2, 4"),
        ("O P O P", 0.5, None),  # enough of it stands
        ("O P W W", 0.0, None),  # once is no habit
        ("O P P P", 0.0, None),  # only the first of them undid anything
        ("P P O P", 0.0, None),  # what came before a relayout of ours undid none
        ("O P O W W P", 0.0, "2, 6"),
        ("O P O P O P O P", 0.0, "4, 6, 8"),  # the latest three are named
        ("O O O O", 0.0, None),
        ("C P C P", 0.0, None),  # merging files gives no layout that could be undone
        ("O P C P", 0.0, None),
    ],
)
def test_a_job_that_undid_two_relayouts_is_named(
    commits: str, share: float, versions: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = sentence(commits, share, monkeypatch)
    if versions is None:
        assert found is None
    else:
        assert found is not None
        assert f"OPTIMIZE of asha rewrote its files at versions {versions};" in found


@pytest.mark.parametrize(("wrote", "named"), [(40, False), (60, False), (62, True)])
def test_of_partitions_that_are_laid_out_alone_half_is_enough(
    wrote: int, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta's history tells bytes of an OPTIMIZE, and no rows: all of the table was asked for."""
    assert (sentence("O P O P", 0.3, monkeypatch, wrote=wrote) is not None) is named


def test_auto_compaction_is_called_that(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "auto-compaction rewrote" in (sentence("O P O P", 0.0, monkeypatch, auto="true") or "")


@pytest.mark.parametrize("between", ["W", "O"])
def test_a_job_is_named_whatever_came_between(between: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream commits every minute, a relayout in each of its bins: the newest commits may be of one hour."""
    many = " ".join(between * 100)
    month = f"O {many} P O {many} P"
    found = sentence(month, 0.0, monkeypatch, since=0)
    assert found is not None
    assert "rewrote its files at versions 102, 204;" in found
    assert sentence(month, 0.0, monkeypatch, since=102) is None, "as much is looked at as the state says"


def test_a_job_is_named_where_the_state_knows_only_what_came_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nightly relayouts and a weekly OPTIMIZE: the newest relayouts never lie on both sides of two of them."""
    weeks = " ".join(["W O"] * 7 + ["P"] + ["W O"] * 7 + ["P"])
    assert sentence(weeks, 0.0, monkeypatch, since=24) == sentence(weeks, 0.0, monkeypatch) is not None


def test_a_long_history_is_not_read_where_enough_stands_of_what_the_state_knows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a table that a stream writes, and of which hot partitions alone are laid out, each night read all of it."""
    month = "O P O P " + "W " * 1_500
    assert sentence(month, 0.3, monkeypatch, since=0, largest=100) is not None
    assert sentence(month, 0.3, monkeypatch, since=0) is not None, "compactions alone: nothing is known"
    assert sentence(month, 0.3, monkeypatch, since=0, largest=60) is None


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (commit(2, "WRITE", mode="Append"), 0),
        (commit(2, "DELETE"), math.inf),
        (commit(2, "DELETE") | {"operationMetrics": {"numRemovedBytes": "7"}}, 7),
        (commit(2, "WRITE") | {"operation": None, "operationParameters": None, "operationMetrics": None}, math.inf),
    ],
)
def test_a_commit_that_does_not_say_what_it_did_may_have_removed_files(row: Any, expected: float) -> None:
    """``commitInfo`` is optional by Delta's protocol: a saving went on after such a commit had undone the relayout."""
    assert module.bytes_removed(row) == expected


@pytest.mark.parametrize(
    ("version", "newest", "limits", "found"),
    [
        (-1, 5, [None], [5, 4, 3]),
        (-1, 7, [None], [5, 4, 3]),
        (3, 5, [2], [5, 4]),
        (3, 7, [2, 66], [5, 4]),
        (5, 7, [], []),
    ],
)
def test_of_a_long_history_the_entries_that_are_gone_are_not_asked_for(
    version: int, newest: int, limits: list[int | None], found: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a limit Delta tries to open each entry that it would reach: of a stream's table, millions in vain.

    Entries before version 3 are gone, and others may commit up to ``newest`` after the snapshot was taken.
    """
    asked: list[int | None] = []

    def history_of(_: Any, limit: int | None = None) -> list[Any]:
        asked.append(limit)
        return [commit(i, "WRITE") for i in range(newest, 2, -1)][:limit]

    monkeypatch.setattr(module, "history_of", history_of)
    snapshot: Any = SimpleNamespace(version=5)
    assert [row["version"] for row in module.commits_after(snapshot, version)] == found
    assert asked == limits
