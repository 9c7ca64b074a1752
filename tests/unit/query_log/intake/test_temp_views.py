"""Temporary views that statements of the log create: what is read through their names is read of the table behind."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.model.predicate import predicate_from_json
from zorder_pipeline.model.workload import QueryLog
from zorder_pipeline.query_log.intake import temp_views
from zorder_pipeline.query_log.intake.files import list_logs
from zorder_pipeline.query_log.intake.ingest import ingest
from zorder_pipeline.query_log.intake.parts import Part, rows_of
from zorder_pipeline.query_log.intake.temp_views import LONGEST, Created, Moment, Versions
from zorder_pipeline.query_log.statements.catalog import Catalog
from zorder_pipeline.query_log.statements.sql import Unusable, parse_statement
from zorder_pipeline.query_log.statements.view_names import Change, changes_of

Record = Mapping[str, Any]
KNOWN = {"db.t": "db.t", "t": "db.t"}


def read(folder: Path, records: Sequence[Record | str], views: Mapping[str, str] | None = None) -> QueryLog:
    path = folder / "log.json"
    lines = [{"statement": item} if isinstance(item, str) else item for item in records]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return ingest([str(path)], aliases=KNOWN, views=views)


def asked(log: QueryLog) -> list[str]:
    return [query.predicate.to_sql() for query in log.queries]


def test_a_dbt_run_reads_its_source_where_the_view_is_merged(tmp_path: Path) -> None:
    create = (
        '/* {"app": "dbt"} */\ncreate or replace temporary view daily__dbt_tmp as\n'
        "select b, sum(a) as a from db.t where ts >= '2024-01-0%d' group by b"
    )
    merge = (
        "merge into daily as DBT_INTERNAL_DEST using daily__dbt_tmp as DBT_INTERNAL_SOURCE "
        "on DBT_INTERNAL_SOURCE.b = DBT_INTERNAL_DEST.b when matched then update set * when not matched then insert *"
    )
    log = read(tmp_path, [text for day in range(1, 6) for text in (create % day, merge)])
    assert asked(log) == [f"ts >= '2024-01-0{day}'" for day in range(1, 6)]
    assert log.ignored == {"create_view": 5}
    assert set(log.queries[0].columns) == {"a", "b", "ts"}
    assert len({query.template for query in log.queries}) == 1


@pytest.mark.parametrize(
    ("statements", "found"),
    [
        (["CREATE TEMP VIEW v AS SELECT * FROM t WHERE a = 1", "SELECT * FROM V WHERE b = 2"], ["a = 1 AND b = 2"]),
        (["CREATE TEMP VIEW v (x, y) AS SELECT a, b FROM t", "SELECT x FROM v WHERE y = 2"], ["b = 2"]),
        (["CREATE TEMP VIEW v AS SELECT * FROM t WHERE a = 1; SELECT * FROM v WHERE b = 2"], ["a = 1 AND b = 2"]),
        (
            [
                "CREATE GLOBAL TEMP VIEW v AS SELECT * FROM t WHERE a = 1",
                "SELECT * FROM v",
                "SELECT * FROM global_temp.v WHERE b = 2",
            ],
            ["a = 1 AND b = 2"],
        ),
        (
            [
                "CREATE TEMP VIEW v AS SELECT * FROM t WHERE a = 1",
                "CREATE TEMP VIEW w AS SELECT * FROM v WHERE b = 2",
                "SELECT * FROM w WHERE c = 'x'",
            ],
            ["a = 1 AND b = 2 AND c = 'x'"],
        ),
        (  # the newest before the statement, and none before the first
            [
                "SELECT * FROM v",
                "CREATE TEMP VIEW v AS SELECT * FROM t WHERE a = 1",
                "SELECT * FROM v",
                "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT * FROM t WHERE a = 2",
                "SELECT * FROM v",
            ],
            ["a = 1", "a = 2"],
        ),
        (  # until it is dropped, and what was created before it does not come back
            [
                "CREATE TEMP VIEW t AS SELECT * FROM db.t WHERE a = 1",
                "CREATE OR REPLACE TEMP VIEW t AS SELECT * FROM db.t WHERE a = 2",
                "SELECT * FROM t",
                "DROP VIEW IF EXISTS t",
                "SELECT * FROM t WHERE a = 3",
            ],
            ["a = 2", "a = 3"],
        ),
        (
            [
                "CREATE TEMP VIEW t AS SELECT * FROM db.t WHERE a = 1; SELECT * FROM t; DROP VIEW t; SELECT * FROM t",
                "SELECT * FROM t WHERE a = 2",
            ],
            ["a = 1", "TRUE", "a = 2"],
        ),
        # hides a table of its name, which is read by its whole name
        (
            ["CREATE TEMP VIEW t AS SELECT * FROM db.t WHERE a = 1", "SELECT * FROM t", "SELECT * FROM db.t"],
            ["a = 1", "TRUE"],
        ),
        (["CREATE TEMP VIEW t AS SELECT * FROM other", "SELECT * FROM t WHERE a = 1"], []),
        # another schema's, a common table expression's and a path's name are not the view's
        (["CREATE TEMP VIEW v AS SELECT * FROM t", "SELECT * FROM db.v"], []),
        (["CREATE TEMP VIEW v AS SELECT * FROM t", "WITH v AS (SELECT 1) SELECT * FROM v"], []),
        (["CREATE TEMP VIEW v AS SELECT * FROM t", "INSERT INTO v SELECT * FROM u"], []),
        # over a table of its own name, in a circle, over files, and what cannot be read
        (["CREATE TEMP VIEW v AS SELECT t.* FROM v JOIN t", "SELECT * FROM v WHERE a = 1"], ["a = 1"]),
        (
            [
                "CREATE TEMP VIEW v AS SELECT * FROM t WHERE a = 1",
                "CREATE TEMP VIEW w AS SELECT * FROM v",
                "CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM w",
                "SELECT * FROM v",
                "SELECT * FROM t WHERE a = 7",
            ],
            ["a = 7"],
        ),
        (["CREATE TEMP VIEW v USING parquet OPTIONS (path '/t')", "SELECT * FROM v"], []),
        (["CREATE TEMP VIEW v AS SELECT FROM WHERE", "SELECT * FROM v JOIN t WHERE t.a = 3"], ["a = 3"]),
        # cached, with blanks or none where others have them, and with names that are no words
        (["CACHE LAZY TABLE t AS SELECT a AS b FROM db.t", "SELECT * FROM t WHERE b = 2"], ["TRUE"]),
        (["CACHE TABLE t SELECT a AS b FROM db.t; SELECT * FROM t WHERE b = 2"], ["TRUE"]),
        (["CACHE TABLE t", "SELECT * FROM t WHERE b = 2"], ["b = 2"]),
        # changed: of what is no temporary view that says nothing
        (["CREATE TEMP VIEW v AS SELECT * FROM t WHERE a = 1", "alter view v as select * from t", "FROM v"], ["TRUE"]),
        (["ALTER VIEW t AS SELECT a AS b FROM db.t", "SELECT * FROM t WHERE b = 2"], ["b = 2"]),
        (
            [
                "CREATE TEMP VIEW v AS SELECT * FROM t WHERE a = 1",
                "DROP VIEW v; ALTER VIEW v AS SELECT * FROM t",
                "SELECT * FROM v",
            ],
            [],
        ),
        (["CREATE TEMP VIEW v AS SELECT * FROM t", "ALTER VIEW v RENAME TO t", "FROM v", "SELECT * FROM t"], []),
        (["CREATE TEMP /* x */ VIEW`t` AS SELECT a AS b FROM db.t", "SELECT * FROM T WHERE b = 2"], ["a = 2"]),
        (["%sql\nCREATE TEMP VIEW `my-v` AS SELECT a AS b FROM t", "SELECT * FROM `My-V` WHERE b = 2"], ["a = 2"]),
        (
            [
                "CREATE TEMP VIEW `db.t` AS SELECT a, b FROM t WHERE a = 1; SELECT * FROM db.t WHERE b = 2",
                "SELECT * FROM `db.t`",
            ],
            ["b = 2", "a = 1"],
        ),
    ],
)
def test_a_view_is_what_the_session_created_last(tmp_path: Path, statements: list[str], found: list[str]) -> None:
    assert asked(read(tmp_path, statements)) == found


@pytest.mark.parametrize(
    ("first", "found"),
    [
        ("CREATE TEMP VIEW t AS SELECT a AS b, b AS a FROM t", ["a = 2"]),
        ("CREATE TEMP VIEW t AS WITH t AS (SELECT a AS b FROM db.t) SELECT * FROM t", ["a = 2"]),
        ("CREATE TEMP VIEW t USING parquet OPTIONS (path '/x')", []),
        ("CREATE TEMP VIEW t AS VALUES (1, 2) AS x (a, b)", []),
        ("CREATE TEMP VIEW t AS SELECT FROM WHERE", []),
        ("CREATE GLOBAL TEMPORARY VIEW t AS TABLE u", ["b = 2"]),
        ("CREATE OR REPLACE TEMPORARY VIEW t AS TABLE u", []),
        ('CREATE TEMP VIEW t AS SELECT "a" AS b FROM "u" WHERE "c" = 5', []),
        ("CREATE TEMPORARY TABLE t AS SELECT a AS b FROM db.t", ["TRUE"]),
    ],
)
def test_a_view_that_cannot_be_read_is_not_the_table_of_its_name(tmp_path: Path, first: str, found: list[str]) -> None:
    assert asked(read(tmp_path, [first, "SELECT * FROM t WHERE b = 2"]))[-1:] == found


@pytest.mark.parametrize(
    ("statements", "found"),
    [
        # as long as the name means it; statements before and after one on its own line
        (["SELECT * FROM t WHERE b = 2; CREATE OR REPLACE TEMP VIEW t AS SELECT b FROM db.t"], ["a = 2"]),
        (["SELECT * FROM t WHERE b = 2; DROP VIEW t", "SELECT * FROM t WHERE b = 3"], ["a = 2", "b = 3"]),
        (["DROP TABLE t", "SELECT * FROM t WHERE b = 3"], ["b = 3"]),
        (["DROP VIEW t.report", "DROP VIEW global_temp.t", "SELECT * FROM t WHERE b = 3"], ["a = 3"]),
        (["DROP FUNCTION IF EXISTS t; SELECT * FROM t WHERE b = 3"], ["a = 3"]),
        (["CREATE OR REPLACE TEMP VIEW t AS VALUES (1); SELECT * FROM t WHERE b = 2"], []),
        # what stands in texts and comments
        (["INSERT INTO audit VALUES ('drop view t')", "SELECT * FROM t WHERE b = 2"], ["a = 2"]),
        (["-- reads temp view t\nSELECT * FROM t WHERE b = 2", "SELECT * FROM t WHERE b = 3"], ["a = 2", "a = 3"]),
        # changes of what is behind it are not looked into
        (["DELETE FROM t WHERE b = 2"], []),
        (
            ["UPDATE t SET b = 1 WHERE b = 2", "MERGE INTO t USING u ON t.b = u.a WHEN MATCHED THEN DELETE"],
            [],
        ),
        # a common table expression hides it where it reaches
        (["WITH t AS (SELECT * FROM t WHERE b = 2) SELECT * FROM t"], ["a = 2"]),
        (["WITH RECURSIVE t AS (SELECT 1 AS b UNION ALL SELECT b FROM t WHERE b = 2) SELECT * FROM t"], []),
        (["SELECT * FROM t WHERE b = 2 AND EXISTS (WITH t AS (SELECT 1) SELECT * FROM t)"], ["a = 2"]),
        (["WITH t AS (SELECT 1), u AS (SELECT * FROM t WHERE b = 2) SELECT * FROM u"], []),
        (
            [
                "CREATE TEMP VIEW x AS WITH t AS (SELECT 1 AS k) SELECT * FROM t",
                "CREATE TEMP VIEW y AS SELECT * FROM t WHERE b = 2",
                "SELECT y.b FROM x, y",
            ],
            ["a = 2"],
        ),
        (
            [
                "CREATE TEMP VIEW v AS SELECT * FROM db.t WHERE a = 1; CREATE TEMP VIEW w AS SELECT * FROM v",
                "WITH v AS (SELECT * FROM other WHERE c = 3) SELECT w.* FROM w, v",
            ],
            ["a = 1"],
        ),
        # others' circles are not its own
        (
            [
                "CREATE TEMP VIEW x AS SELECT 1",
                "CREATE TEMP VIEW y AS SELECT * FROM x",
                "CREATE OR REPLACE TEMP VIEW x AS SELECT * FROM y",
                "SELECT * FROM t JOIN x WHERE t.b = 2",
            ],
            ["a = 2"],
        ),
        # of local and global views of one name
        (
            [
                "CREATE GLOBAL TEMP VIEW t AS SELECT c AS b FROM db.t",
                "SELECT * FROM global_temp.t WHERE b = 2",
                "SELECT * FROM t WHERE b = 2",
            ],
            ["c = 2", "a = 2"],
        ),
    ],
)
def test_a_name_means_the_view_where_spark_takes_it_for_one(
    tmp_path: Path, statements: list[str], found: list[str]
) -> None:
    assert asked(read(tmp_path, ["CREATE TEMP VIEW t AS SELECT a AS b FROM db.t", *statements])) == found


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize(
    ("statements", "found"),
    [
        (  # a table's name in a view stays a table's
            [
                "CREATE TEMP VIEW w AS SELECT * FROM t WHERE a = 1",
                "CREATE TEMP VIEW t AS SELECT * FROM db.t WHERE b = 2",
                "SELECT * FROM w",
            ],
            ["a = 1"],
        ),
        (
            [
                "CREATE TEMP VIEW w AS SELECT a AS b FROM t",
                "CREATE TEMP VIEW t AS SELECT * FROM w",
                "SELECT * FROM t WHERE b = 2",
            ],
            ["a = 2"],
        ),
        (  # a view's name means the view of today
            [
                "CREATE TEMP VIEW v AS SELECT * FROM t WHERE a = 1",
                "CREATE TEMP VIEW w AS SELECT * FROM v",
                "CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM t WHERE a = 2",
                "SELECT * FROM w",
                "DROP VIEW v",
                "SELECT * FROM w",
            ],
            ["a = 2"],
        ),
        (
            [
                "CREATE TEMP VIEW IF NOT EXISTS v AS SELECT * FROM t WHERE a = 1",
                "CREATE TEMP VIEW IF NOT EXISTS v AS SELECT * FROM t WHERE a = 2",
                "SELECT * FROM v",
            ],
            ["a = 1"],
        ),
    ],
)
def test_what_a_views_own_names_mean_is_settled_when_it_is_made(
    tmp_path: Path, statements: list[str], found: list[str], together: bool
) -> None:
    """Checked in Spark 4.2, but for IF NOT EXISTS, which others have."""
    assert asked(read(tmp_path, ["; ".join(statements)] if together else statements)) == found


def test_permanent_views_see_no_temporary_ones(tmp_path: Path) -> None:
    records = ["CREATE TEMP VIEW t AS SELECT * FROM db.t WHERE b = 2", "SELECT pv.a FROM pv JOIN t ON pv.a = t.a"]
    assert sorted(asked(read(tmp_path, records, views={"pv": "SELECT * FROM t WHERE a = 1"}))) == ["a = 1", "b = 2"]
    around = {"v": "SELECT * FROM w", "w": "SELECT * FROM v"}
    assert asked(read(tmp_path, ["SELECT * FROM v, t WHERE t.a = 1"], views=around)) == ["a = 1"]


def test_lines_that_create_the_same_views_by_other_names_are_told_apart(tmp_path: Path) -> None:
    first = "CREATE TEMP VIEW v AS SELECT * FROM t WHERE a = 1; CREATE TEMP VIEW w AS SELECT * FROM t WHERE a = 2"
    assert asked(read(tmp_path, [first, "SELECT * FROM v", "SELECT * FROM w"])) == ["a = 1", "a = 2"]


def test_values_of_parameters_are_part_of_a_view(tmp_path: Path) -> None:
    create = {"statement": "CREATE TEMP VIEW v AS SELECT * FROM t WHERE a = :x", "parameters": {"x": 5}}
    assert asked(read(tmp_path, [create, "SELECT * FROM v"])) == ["a = 5"]


def test_of_what_is_too_much_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temp_views, "MAX_TEXT", 600)
    records = [
        "CREATE TEMP VIEW v AS SELECT * FROM t WHERE a = 1",
        "SELECT * FROM v",
        *(f"CREATE OR REPLACE TEMP VIEW v{i} AS SELECT 1" for i in range(3)),
        "CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM t WHERE a = 2",
        "SELECT * FROM v",
    ]
    assert asked(read(tmp_path, records)) == []
    chain = [f"CREATE TEMP VIEW c{i} AS SELECT * FROM {f'c{i - 1}' if i else 't'}" for i in range(20)]
    monkeypatch.undo()
    log = read(tmp_path, [*chain, "SELECT * FROM c15 WHERE b = 2", "SELECT * FROM c16 WHERE b = 2"])
    assert (asked(log), log.quarantined) == (["b = 2"], {"unsupported": 1})
    large = f"CREATE TEMP VIEW v AS SELECT a FROM t WHERE a IN ({', '.join(map(str, range(3_000)))})"
    log = read(tmp_path, [large, "SELECT v.a FROM v", "SELECT 1 FROM " + ", ".join(f"v v{i}" for i in range(90))])
    assert (len(log.queries), log.quarantined) == (1, {"unsupported": 1})


def test_one_second_of_a_history_that_is_exported_newest_first(tmp_path: Path) -> None:
    def at(second: int, statement: str) -> Record:
        return {"statement": statement, "start_time": f"2024-05-01T00:00:{second:02}Z", "executed_by": "Ann"}

    records = [
        at(1, "CREATE TEMP VIEW v AS SELECT * FROM t WHERE a = 1"),
        at(2, "CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM t WHERE a = 2"),
        {**at(2, "SELECT * FROM v"), "executed_by": "ann"},
    ]
    assert asked(read(tmp_path, records)) == asked(read(tmp_path, records[::-1])) == ["a = 2"]


def test_users_times_and_failures_are_told_apart(tmp_path: Path) -> None:
    def at(hour: int, statement: str, user: str = "ann", status: str = "FINISHED") -> Record:
        time = f"2024-05-{1 + hour // 24:02}T{hour % 24:02}:00:00Z"
        return {"statement": statement, "start_time": time, "executed_by": user, "execution_status": status}

    records = [
        at(1, "CREATE TEMP VIEW v AS SELECT * FROM t WHERE a = 1"),
        at(2, "CREATE TEMP VIEW v AS SELECT * FROM t WHERE a = 2", user="bob"),
        at(3, "CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM t WHERE a = 3", status="FAILED"),
        at(4, "SELECT * FROM v"),
        at(5, "SELECT * FROM v", user="bob"),
        at(6, "SELECT * FROM v", user="eve"),
        at(30, "SELECT * FROM v"),
    ]
    assert asked(read(tmp_path, records)) == ["a = 1", "a = 2"]
    assert asked(read(tmp_path, records[::-1])) == ["a = 2", "a = 1"]  # histories are often exported newest first


def test_a_permanent_view_is_hidden_by_a_temporary_one(tmp_path: Path) -> None:
    records = ["SELECT * FROM v", "CREATE TEMP VIEW v AS SELECT * FROM t WHERE a = 1", "SELECT * FROM v"]
    assert asked(read(tmp_path, records, views={"v": "SELECT * FROM t WHERE b = 2"})) == ["b = 2", "a = 1"]


def test_what_was_read_before_and_by_others_is_known(tmp_path: Path) -> None:
    """Of a log that has grown, or is read by several tasks, each line knows the views of all lines before it."""
    statements = [f"CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM t WHERE a = {i // 2}" for i in range(20)]
    statements[1::2] = ["SELECT * FROM v"] * 10
    path = tmp_path / "log.json"
    path.write_text("".join(json.dumps({"statement": text}) + "\n" for text in statements))
    [log] = list_logs(str(path), "auto")
    catalog = Catalog.of(KNOWN, {}, {}, "spark")

    def values(*parts: Part) -> list[int]:
        rows = [row for batch in rows_of(parts, catalog) for row in batch.to_pylist() if row["kind"] == "query"]
        found = [predicate_from_json(json.loads(row["predicate"])) for row in rows]
        return sorted(int(item.to_sql().removeprefix("a = ")) for item in found)

    assert values(Part(log, "UTC", "log", 15)) == [7, 8, 9]
    assert values(*(Part(log, "UTC", share=(i, 3)) for i in range(3))) == list(range(10))


def test_a_view_of_one_log_is_none_of_the_next(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("CREATE TEMP VIEW v AS SELECT * FROM t WHERE a = 1;\nSELECT * FROM v;\n")
    (tmp_path / "b.sql").write_text("SELECT * FROM v;\n")
    assert asked(ingest([str(tmp_path)], aliases=KNOWN)) == ["a = 1"]


def test_a_line_that_cannot_be_told_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = ["%sql\n-- drop me later", "CREATE TEMP VIEW v AS SELECT * FROM t WHERE a = 1", "SELECT * FROM v"]
    assert asked(read(tmp_path, records)) == ["a = 1"]

    def broken(statement: str, dialect: str) -> tuple[list[Change], int]:
        if "odd" in statement:
            raise IndexError("list index out of range")
        return changes_of(statement, dialect)

    monkeypatch.setattr(temp_views, "changes_of", broken)
    assert asked(read(tmp_path, ["DROP VIEW odd", *records[1:]])) == ["a = 1"]


def test_several_statements_of_one_line_follow_each_other() -> None:
    script = "CREATE TEMP VIEW v AS SELECT * FROM t WHERE a = 1; CREATE TEMP VIEW w AS SELECT * FROM v; SELECT b FROM w"
    found = parse_statement(script)
    assert not isinstance(found, Unusable)
    assert [(scan.table, scan.predicate.to_sql()) for scan in found] == [("t", "a = 1")]
    again = parse_statement("CREATE TEMP VIEW v AS SELECT * FROM v x, v y; SELECT * FROM v")
    assert not isinstance(again, Unusable)
    assert {scan.table for scan in again} == {"v"}


USERS = st.sampled_from([None, "ann", "bob"])


@given(st.lists(st.tuples(USERS, st.integers(0, 9)), max_size=12), st.tuples(USERS, st.integers(0, 9)), st.booleans())
def test_the_last_version_is_the_one_that_looking_at_all_of_them_finds(
    made: list[tuple[str | None, int]], asked: tuple[str | None, int], timed: bool
) -> None:
    """Times in units of a third of a day; every other place in the log is the line's that asks."""
    unit, place = LONGEST // 3, 2 * asked[1] + 1
    versions, every = Versions(), []
    for i, (user, time) in enumerate(made):
        every.append(Created(time * unit if timed else None, 2 * i, user=user))
        versions.append(every[-1])
    line = Moment(asked[1] * unit if timed else None, place, user=asked[0])
    known = [
        created
        for created in every
        if (not created.user or not line.user or created.user == line.user)
        and (
            created.position < line.position
            if created.timestamp is None or line.timestamp is None or created.timestamp == line.timestamp
            else created.timestamp < line.timestamp <= created.timestamp + LONGEST
        )
    ]
    assert versions.last_before(line) is max(known, key=lambda c: (c.timestamp or 0, c.position), default=None)


def test_views_that_name_each_other_twice_do_not_grow_without_end(tmp_path: Path) -> None:
    """Sixteen of them would be 65,536 tables."""
    views = [f"CREATE TEMP VIEW v{i} AS SELECT x.a FROM v{i - 1} x JOIN v{i - 1} y ON x.a = y.a" for i in range(1, 17)]
    first = "CREATE TEMP VIEW v0 AS SELECT * FROM t WHERE a = 1"
    log = read(tmp_path, [first, *views, "SELECT * FROM v16", "SELECT * FROM v2", "SELECT * FROM t WHERE a = 7"])
    assert log.quarantined["unsupported"] >= 1
    assert asked(log) == ["a = 1"] * 4 + ["a = 7"]
