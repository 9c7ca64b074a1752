"""What no log should hold, and some do: it costs its line, at most its file, and never the night."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from zorder_pipeline.query_log.intake.files import list_logs
from zorder_pipeline.query_log.intake.ingest import Interpreter, ingest
from zorder_pipeline.query_log.intake.parts import Part, rows_of
from zorder_pipeline.query_log.intake.reader import MAX_LINE
from zorder_pipeline.query_log.intake.records import line_of
from zorder_pipeline.query_log.intake.stored import failed_of, is_moved
from zorder_pipeline.query_log.statements.catalog import Catalog

START, END = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart", "x.SparkListenerSQLExecutionEnd"
ACCUMULATED = "org.apache.spark.sql.execution.ui.SparkListenerDriverAccumUpdates"
BEGUN = {"Event": "SparkListenerLogStart"}
PLAN = {"nodeName": "Scan", "simpleString": "", "children": []}


def rows(path: Path) -> list[dict[str, Any]]:
    """What the store gets of the logs at a path."""
    parts = [Part(log, "UTC", log.source) for log in list_logs(str(path))]
    return [row for batch in rows_of(parts, Catalog()) for row in batch.to_pylist()]


def reasons(path: Path) -> list[str | None]:
    return [row["reason"] for row in rows(path) if row["kind"] != "file"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (r'{"statement": "SELECT (\ud83d"}', "parse_error"),
        (r'{"statement": "SELECT * FROM t WHERE c = ' + r"'\ud83d'" + '"}', None),
        (r'{"statement": "SELECT * FROM `\ud800x` WHERE a = 1"}', None),
        (r'{"statement": "SELECT * FROM t WHERE c = 1", "user": "\uDC00"}', None),
        (r'{"statement": "SELECT /* \ud83d */ * FROM t WHERE c = 1"}', None),
        (r'{"statement": "SELECT * FROM t WHERE c = ?", "parameters": "[\"\\ud83d\"]"}', None),
        (r'{"\ud83d": "\ud83d"}', "no_statement"),
        (r'[{"statement": "SELECT * FROM t WHERE c = 1", "user": "\ud83d"}]', None),
    ],
)
def test_half_a_character_stops_no_night(tmp_path: Path, line: str, found: str | None) -> None:
    (tmp_path / "a.jsonl").write_text(line + "\n")
    (told,) = (row for row in rows(tmp_path) if row["kind"] != "file")
    assert (told["kind"], told["reason"]) == ("quarantine" if found else "query", found)


def test_half_a_character_in_an_event_log_stops_no_night(tmp_path: Path) -> None:
    start = {"Event": START, "executionId": 1, "time": 1_700_000_000_000, "description": "SELECT '\ud83d"}
    plan = {"sparkPlanInfo": {"nodeName": "x", "children": 5}}  # is quarantined
    events = (BEGUN, start | plan, {"Event": END, "executionId": 1, "time": 1_700_000_000_001})
    (tmp_path / "app-1").write_text("\n".join(map(json.dumps, events)) + "\n")
    (text,) = [row["text"] for row in rows(tmp_path) if row["kind"] == "quarantine"]
    assert text.startswith("SELECT '\ufffd: ")


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ([{"Event": "SparkListenerStageCompleted", "Stage Info": {"Accumulables": [1]}}], []),
        ([{"Event": ACCUMULATED, "executionId": 1, "accumUpdates": [1, [[1], 2], ["a", 2], "ab"]}], []),
        ([{"Event": ACCUMULATED, "executionId": 1, "accumUpdates": 7}], []),
        ([{"Event": START, "executionId": 1, "sparkPlanInfo": {"nodeName": "x", "children": 5}}], ["unreadable_plan"]),
        ([{"Event": START, "executionId": 1, "sparkPlanInfo": PLAN | {"metrics": 5}}], []),
        ([{"Event": START, "executionId": 1, "time": 10**400}], ["malformed_json"]),
        ([{"Event": "x.SparkListenerSQLExecutionStart", "executionId": [1]}], []),
    ],
)
def test_an_event_of_an_unknown_form_costs_one_execution_at_most(
    tmp_path: Path, events: list[dict[str, Any]], found: list[str]
) -> None:
    end = {"Event": END, "executionId": 1, "time": 1_700_000_000_000}
    (tmp_path / "app-1").write_text("\n".join(map(json.dumps, (BEGUN, *events, end))) + "\n")
    assert reasons(tmp_path) == found


def test_what_nobody_thought_of_costs_its_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"statement": f"SELECT * FROM {name} WHERE c = 1"}) + "\n")
    one = Interpreter.one

    def unthought(self: Interpreter, line: Any) -> Any:
        if line.source.endswith("a.jsonl"):
            raise KeyError("nobody thought of this")
        return one(self, line)

    monkeypatch.setattr(Interpreter, "one", unthought)
    first, query, last = rows(tmp_path)
    assert json.loads(first["counts"])["quarantined"] == {"unreadable_file": 1}
    assert first["text"].endswith("a.jsonl cannot be read: unexpected KeyError: 'nobody thought of this'")
    assert (query["table_name"], last["position"]) == ("b", 1)
    assert ingest([str(tmp_path)]).quarantined == {"unreadable_file": 1}


def test_a_file_that_is_read_in_shares_fails_once_whichever_share_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = ({"statement": f"SELECT * FROM t WHERE a = {i}"} for i in range(8))
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in statements))
    one = Interpreter.one

    def unthought(self: Interpreter, line: Any) -> Any:
        if line.statement[-1] in "26":  # of the share 3
            raise KeyError("nobody thought of this")
        return one(self, line)

    monkeypatch.setattr(Interpreter, "one", unthought)
    (log,) = list_logs(str(tmp_path))
    parts = [Part(log, "UTC", "a", share=(i, 4)) for i in range(4)]
    told = [row for batch in rows_of(parts, Catalog()) for row in batch.to_pylist() if row["kind"] == "file"]
    shares = [row | {"counts": json.loads(row["counts"])} for row in told]
    assert is_moved(shares)
    (failed,) = failed_of(shares).values()
    assert failed["counts"]["quarantined"] == {"unreadable_file": 1}
    assert failed["text"].endswith("unexpected KeyError: 'nobody thought of this'")


def test_quarantined_lines_say_whose_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"sqlText": "SELECT 1 -- ann@x.org", "user": "ann"}\n')
    (tmp_path / "b.csv").write_text("user,statement\nann,SELECT a, b FROM t\n")
    events = (BEGUN, {"Event": "SparkListenerApplicationStart", "User": "ann"})
    start = {"Event": START, "executionId": 1, "description": "x", "sparkPlanInfo": {"nodeName": "x", "children": 5}}
    end = {"Event": END, "executionId": 1}
    lines = map(json.dumps, (*events, start, end, start, {**start, "executionId": 2}))
    (tmp_path / "app-1").write_text("\n".join(lines) + f'\n{{"Event":"{START}"')
    told = [(row["reason"], row["user"]) for row in rows(tmp_path) if row["kind"] == "quarantine"]
    found = ("no_statement", "malformed_csv", "unreadable_plan", "truncated")
    assert sorted(told) == sorted((reason, "ann") for reason in found)


@pytest.mark.parametrize("cut", [0, 1])
def test_a_last_line_that_is_cut_off_in_a_character_is_read_when_it_is_whole(tmp_path: Path, cut: int) -> None:
    line = '{"statement": "SELECT * FROM t WHERE n = \'Müller\'"}\n'.encode()
    (tmp_path / "a.jsonl").write_bytes(line[: line.index(b"\xc3") + cut])
    quarantined, file = rows(tmp_path)
    assert (quarantined["reason"], file["position"]) == ("truncated", 0)


def test_a_row_with_more_columns_than_the_header_is_no_shorter_statement(tmp_path: Path) -> None:
    log = tmp_path / "a.csv"
    log.write_text('statement,user\n"SELECT * FROM t WHERE x = 1",ann,\nSELECT * FROM t WHERE x IN (1, 2),ann\n')
    found = ingest([str(log)])
    assert (found.used, found.quarantined) == (1, {"malformed_csv": 1})


@pytest.mark.parametrize(
    ("header", "row", "used"),
    [
        ("ts,statement", '2026-01-01T00:00:00Z,"SELECT * FROM t WHERE x IN (1, 2)",ann', 1),
        ("statement,user", '"SELECT * FROM `a ""b"", c` WHERE x = 1",ann,1,2', 1),
        ("ts,statement", "2026-01-01T00:00:00Z,SELECT * FROM t WHERE x IN (1, 2)", 0),
        ("user,statement", 'Doe, Ann,"SELECT * FROM t WHERE x = 1"', 0),
        ("user,ts", "ann,1,2", 0),
    ],
)
def test_a_statement_in_quotes_is_whole_whatever_follows_it(tmp_path: Path, header: str, row: str, used: int) -> None:
    log = tmp_path / "a.csv"
    log.write_text(f"{header}\n{row}\n")
    found = ingest([str(log)])
    assert (found.used, found.quarantined) == (used, {} if used else {"malformed_csv": 1})


@pytest.mark.parametrize("row", ['"SELECT * FROM t",Doe, Ann,FAILED', '"SELECT * FROM t",Doe, 20260101,FINISHED,x'])
def test_what_stands_behind_a_statement_in_a_row_of_too_many_columns_says_nothing(tmp_path: Path, row: str) -> None:
    log = tmp_path / "a.csv"
    log.write_text(f"statement,user,status\n{row}\n")
    (query,) = ingest([str(log)]).queries
    assert (query.user, query.timestamp) == (None, None)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"statement": "SELECT * FROM t WHERE a = 1", "user": "x"}, indent=1),
        '\n \n[\n{"statement": "SELECT * FROM t WHERE a = 1"}\n]\n',
        '\n{"statement": "SELECT * FROM t WHERE a = 1"}\n',
        '\ufeff\r\n[\n{"statement": "SELECT * FROM t WHERE a = 1"}\n]\n',
        '\ufeff\n{"statement": "SELECT * FROM t WHERE a = 1"}\n',
    ],
)
def test_a_document_may_be_one_record_and_begin_with_blank_lines(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    found = ingest([str(tmp_path / "a.json")])
    assert (found.lines, found.used) == (1, 1)


@pytest.mark.parametrize("nuls", [MAX_LINE - 40, MAX_LINE, 2 * MAX_LINE + 7])
def test_nuls_that_end_anywhere_in_what_is_read_at_once_cost_no_line(tmp_path: Path, nuls: int) -> None:
    lines = (json.dumps({"statement": f"SELECT * FROM t WHERE a = {i}"}) + "\n" for i in range(3))
    (tmp_path / "a.jsonl").write_bytes(b"\0" * nuls + "".join(lines).encode())
    assert ingest([str(tmp_path)]).used == 3


def test_a_day_as_a_number_is_no_second_of_1970() -> None:
    for day in (20260612, "20260612", 20260612.0, Decimal("20260612.00"), "20260612.000"):
        assert line_of("log", 1, {"sql": "SELECT 1", "ts": day}).timestamp == 1_781_222_400_000_000
    assert line_of("log", 1, {"sql": "SELECT 1", "ts": 20260232}).timestamp == 20_260_232_000_000
    assert line_of("log", 1, {"sql": "SELECT 1", "ts": 1_781_222_400}).timestamp == 1_781_222_400_000_000
