"""Former names of columns, from a table's history as Delta tells it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.relayout import renames
from zorder_pipeline.relayout.leaves import Leaf
from zorder_pipeline.relayout.renames import former_names, with_former_names

GIVEN = "col-1b4e28ba-2fa1-11d2-883f-0016d3cca427"


def leaf(*path: str, physical: tuple[str, ...] | None = None) -> Leaf:
    return Leaf(path, physical or (GIVEN,) * len(path), Column(".".join(path), "int"), "")


def history(*commits: tuple[str, dict[str, str]]) -> Any:
    """Commits as `history_of` gives them, from the oldest, whose version is 0."""
    rows = [
        {"version": version, "operation": operation, "operationParameters": told, "timestamp": None}
        for version, (operation, told) in enumerate(commits)
    ]
    return rows[::-1]


def rename(old: str, new: str) -> tuple[str, dict[str, str]]:
    return "RENAME COLUMN", {"oldColumnPath": old, "newColumnPath": new}


def added(*names: str) -> tuple[str, dict[str, str]]:
    return "ADD COLUMNS", {"columns": json.dumps([{"column": {"name": name, "type": "integer"}} for name in names])}


WRITE: tuple[str, dict[str, str]] = ("WRITE", {"mode": "Append"})


def test_each_name_that_a_column_had_leads_to_that_of_today() -> None:
    commits = history(WRITE, rename("a", "b"), WRITE, rename("b", "`c d`"), rename("x", "y"))
    names = [leaf("c d"), leaf("y"), leaf("z")]
    assert dict(former_names(names, commits)) == {"a": "c d", "b": "c d", "x": "y"}


def test_fields_follow_their_struct() -> None:
    commits = history(rename("s.a", "s.b"), rename("s", "t"))
    assert dict(former_names([leaf("t", "b"), leaf("t", "k")], commits)) == {
        "s.b": "t.b", "s.k": "t.k", "s.a": "t.b",
    }  # fmt: skip


def test_a_name_that_another_column_has_today_is_that_columns() -> None:
    commits = history(rename("a", "free"), rename("b", "a"), rename("free", "b"))
    assert former_names([leaf("a"), leaf("b")], commits) == (("free", "b"),)


def test_of_two_columns_that_had_a_name_the_later_one_counts() -> None:
    commits = history(rename("x", "a"), rename("y", "x"), rename("x", "b"))
    assert dict(former_names([leaf("a"), leaf("b")], commits)) == {"x": "b", "y": "b"}


@pytest.mark.parametrize("later", [added("a"), ("REPLACE TABLE", {}), ("CREATE OR REPLACE TABLE AS SELECT", {})])
def test_what_a_name_meant_before_the_column_came_is_not_its_former_name(later: tuple[str, dict[str, str]]) -> None:
    commits = history(rename("old", "a"), ("DROP COLUMNS", {"columns": '["a"]'}), later, rename("a", "b"))
    assert former_names([leaf("b")], commits) == (("a", "b"),)


def test_a_column_that_a_write_added_under_a_former_name_is_another_one() -> None:
    commits = history(rename("w", "x"), rename("x", "y"), ("WRITE", {"mode": "Append"}))
    assert dict(former_names([leaf("y"), leaf("x")], commits)) == {"w": "y"}


def test_renames_that_a_restore_took_back_are_passed_over() -> None:
    commits = history(WRITE, rename("a", "b"), WRITE, ("RESTORE", {"version": "0"}), rename("a", "c"))
    assert former_names([leaf("c")], commits) == (("a", "c"),)


def test_a_column_from_before_column_mapping_tells_its_first_name_itself() -> None:
    names = [leaf("b", physical=("first",)), leaf("t", "x", physical=("s", "x")), leaf("k", physical=("k",))]
    assert dict(former_names(names, [])) == {"first": "b", "s.x": "t.x"}


def test_commits_that_do_not_say_what_they_did_tell_of_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """``commitInfo`` is optional by Delta's protocol; learning and applying ended with a TypeError."""
    commits = history(rename("a", "b"), WRITE)
    silent = {"version": 2, "operation": None, "operationParameters": None, "timestamp": None}
    assert former_names([leaf("b")], [silent, *commits]) == (("a", "b"),)
    monkeypatch.setattr(renames, "commits_after", lambda *_: [silent, *commits])
    table: Any = SimpleNamespace(table_id="another table", location="a place", version=2)
    assert renames._commits_about_names(table) == commits[1:]


def test_nothing_is_looked_up_where_no_column_can_be_renamed() -> None:
    snapshot: Any = SimpleNamespace(properties={"delta.columnMapping.mode": "none"}, schema="its schema")
    assert with_former_names(snapshot) == "its schema"


def test_a_process_reads_each_commit_once_for_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table with column mapping that a stream writes has 40,000 in a month, and a night opens it several times."""
    commits, read = history(WRITE, rename("a", "b"), WRITE, rename("b", "c")), list[int]()

    def after(snapshot: Any, version: int) -> Any:
        found = [row for row in commits if version < row["version"] <= snapshot.version]
        read.extend(row["version"] for row in found)
        return found

    monkeypatch.setattr(renames, "commits_after", after)

    def former(version: int, name: str) -> dict[str, str]:
        mapped, leaves = {"delta.columnMapping.mode": "name"}, [leaf(name)]
        schema, place = TableSchema((leaves[0].column,)), {"table_id": "a table", "location": "a place"}
        table: Any = SimpleNamespace(properties=mapped, leaves=leaves, schema=schema, version=version, **place)
        return dict(with_former_names(table).former)

    assert former(2, "b") == {"a": "b"}
    assert former(3, "c") == {"a": "c", "b": "c"}
    assert former(2, "b") == {"a": "b"}, "an earlier version, too"
    assert read == [2, 1, 0, 3]
