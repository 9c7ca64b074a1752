"""docs/json.md lists every command, and the keys that it prints with ``--json``.

Commands run here with what they would have found put in the place of Spark's work; those of `tests/spark` and
`tests/dagster` that run for themselves are held to the page by the same helper.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import optuna
import pytest
from click.testing import CliRunner

import zorder_pipeline.demo
import zorder_pipeline.report
from tests.json_page import differences, json_printed, keys_of, sections
from tests.unit.gate.test_decision import judge
from zorder_pipeline import pipeline
from zorder_pipeline.cli import common, costs, explaining, learning, logs, operators, report, studies, tables, triage
from zorder_pipeline.cli.entry import zorder
from zorder_pipeline.demo import DemoResult
from zorder_pipeline.gate.accounts import MonthlySaving
from zorder_pipeline.gate.cost import CostModel
from zorder_pipeline.layout.draft import Draft
from zorder_pipeline.layout.trials import Space
from zorder_pipeline.model.approval import PENDING, Request
from zorder_pipeline.model.cut_tree import LEAF, CutTree
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.model.plan import Plan, Promise
from zorder_pipeline.model.results import ApplyResult, Evaluation, StatisticsResult
from zorder_pipeline.model.triage import TableTriage
from zorder_pipeline.model.workload import QueryLog
from zorder_pipeline.pipeline import PromiseCheck, Savings
from zorder_pipeline.pipeline.reading.reports import RelationReport, StatementReport
from zorder_pipeline.query_log.intake.stored import StoredLog
from zorder_pipeline.reading.prune import Excluded
from zorder_pipeline.relayout import rollback, snapshot
from zorder_pipeline.state.studies import KeptStudy

CODES = FeatureCodes("a", "int", (5,), (0, 1), 1)
BITS = KeySpec((CODES,), (0,))
TREE = KeySpec((CODES,), (0,), "tree", (), CutTree((0, LEAF, LEAF), (1, 0, 0), (1, 1, 2), (2, 1, 2), (0, 0, 1)))
PREDICTED = {"train_fraction": 0.1, "validation_fraction": 0.2}
PLAN = Plan("t", "id", "hash", 0, BITS, "learned", 1000, Promise(9, 0.9, 0.2, 0.6, 0.8), PREDICTED, {"stored": 0.9})
BY_HAND = replace(PLAN, origin="manual", promise=Promise(), predicted={}, baselines={})
GATE = judge(PLAN, 1e9, 1e9).to_json()
APPLIED = ApplyResult(3, "applied", ("worth it",), 8, 4, 1000, 100, 0, 1.5, gate=GATE)
READ = Evaluation(2, 4, 100, np.ones(2), np.ones(2), np.ones(2), np.ones(2), None, 0, 7)
UNCHECKED = PromiseCheck("t", 3, 10**15, 0, 0.5, 0.4, None, None, False, 8.0, None, None, None)
BROKEN = PromiseCheck("t", 4, 10**15, 9, 0.5, 0.4, 0.1, 0.2, True, 8.0, 7.0, 5.0, 9.0)
MONTH = MonthlySaving("t", "2026-01", 1, 8.0, 9.0, 1.0)
REQUEST = Request("t", "id", PLAN, PENDING, 10**15, reasons=("worth it",))
STORED = StoredLog(QueryLog((), 3, 1, {"set": 1}, {"parse_error": 1}), {"t": 1}, 1)
TRIAGED = TableTriage("t", "/t", read_now=0.5, columns=("a",)), TableTriage("u", problem="it is not there")
COPIES = {name: READ.to_json() for name in ("stored", "zorder")}
COPIES["ours"] = replace(READ, matched_per_query=None).to_json()
PLACES = dict.fromkeys(("table", "plan", "state", "log", "dagster home"), "/demo")
CHOSEN = RelationReport("/t", 3, 4, 40, 99, 1, 10, 25, 4, (Excluded("column", "a", 3),), "a = 1", None)
UNREAD = replace(CHOSEN, left_to_delta="no", excluded=(), **dict.fromkeys(("files_read", "rows_read", "bytes_read")))
UNREAD = replace(UNREAD, delta_files_read=None, asked=None)
DEMO = DemoResult(COPIES, ("a",), APPLIED.to_json(), ("by a",), {"zorder": 1.0}, PLACES, 2, 9.0)


class Files:
    """Of a table that is not there."""

    bytes = np.array([1e9])

    def __len__(self) -> int:
        return 1


OPENED = SimpleNamespace(files=Files, table_id="id")
SEARCHED = optuna.create_study()
SEARCHED.add_trial(Space(["a", "b"], [1, 1], 2).trial(Draft((1, 0)), 0.5, "greedy"))
TABLE, LOG, STATE = ("--table", "t"), ("--log", "log.sql"), ("--state", "{state}")
FOUND: list[tuple[tuple[str, ...], dict[tuple[Any, str], Any]]] = [
    (("demo",), {(zorder_pipeline.demo, "run_demo"): DEMO}),
    (
        ("ingest", *LOG, *STATE),
        {(pipeline, "ingest_into"): STORED, (pipeline, "stored_log"): QueryLog((), 3, 1)},
    ),
    (("triage", *LOG), {(pipeline, "triage"): TRIAGED}),
    (("learn", *TABLE, *LOG, "--out", "{state}/p.json"), {(pipeline, "learn"): PLAN}),
    (("learn", *TABLE, *LOG, "--out", "{state}/p.json"), {(pipeline, "learn"): replace(PLAN, spec=TREE)}),
    (("learn", *TABLE, *LOG, "--out", "{state}/p.json"), {(pipeline, "learn"): replace(PLAN, spec=None)}),
    (("layout", *TABLE, "--bits", "a:1", "--out", "{state}/p.json"), {(pipeline, "layout_by_hand"): BY_HAND}),
    (
        ("calibrate", *TABLE, *STATE),
        {(pipeline, "calibrate"): (CostModel(), ()), (snapshot, "open_table"): OPENED},
    ),
    (("apply", *TABLE, "--plan", "p.json"), {(pipeline, "apply"): APPLIED}),
    (("apply", *TABLE, "--plan", "p.json"), {(pipeline, "apply"): ApplyResult(3, "nothing_to_do", ("in order",))}),
    (("compact", *TABLE), {(pipeline, "compact"): ApplyResult(3, "postponed", ("stopped",))}),
    (
        ("evaluate", *TABLE, *LOG, *STATE),
        {(pipeline, "evaluate"): READ, (pipeline, "check_promises_by_log"): [UNCHECKED, BROKEN]},
    ),
    (("rollback", *TABLE), {(rollback, "rollback"): rollback.Rollback(3, 5)}),
    (("approve", *STATE), {(pipeline, "waiting_requests"): [REQUEST]}),
    (("approve", *STATE, *TABLE), {(pipeline, "answer_request"): replace(REQUEST, settled_at=10**15, by="ann")}),
    (("stop", *STATE), {(pipeline, "stop_all"): None}),
    (("stop", *STATE, "--lift"), {(pipeline, "lift_stop"): True}),
    (("savings", *STATE), {(pipeline, "savings"): Savings((UNCHECKED, BROKEN), (MONTH,), 0.05)}),
    (("stats", *TABLE, *STATE), {(pipeline, "update_statistics"): StatisticsResult("t", 3, ("a",), 4, 4, 0, 1.0)}),
    (
        ("study", *TABLE, *STATE),
        {
            (pipeline, "kept_studies"): [KeptStudy("t", 10**15, "rows", 1, 0.5, 1.0)],
            (pipeline, "kept_study"): SEARCHED,
            (pipeline, "redact_key"): "key",
            (snapshot, "open_table"): OPENED,
        },
    ),
    (("explain", *TABLE), {(pipeline, "explain_scan"): StatementReport((CHOSEN, UNREAD), None)}),
    (("explain", "--sql", "SELECT 1"), {(pipeline, "explain_sql"): StatementReport((), "it reads no Delta table")}),
    (("purge", *STATE), {(pipeline, "purge"): {"begun": 0, "recorded": 0, "studies": 0}}),
    (
        ("report", *TABLE, "--out", "{state}/page.html"),
        {
            (zorder_pipeline.report, "collect"): SimpleNamespace(lead="it lies well", sections=()),
            (zorder_pipeline.report, "page"): "<html>",
        },
    ),
]


def test_the_page_has_every_command_and_no_other() -> None:
    listed = [name.removeprefix("zorder-") for name in sections() if name.startswith("zorder-")]
    assert listed == list(zorder.commands)
    for name, command in zorder.commands.items():
        takes = any("--json" in option.opts for option in command.params)
        assert bool(keys_of(f"zorder-{name}")) == takes, name


@pytest.mark.parametrize(("words", "found"), FOUND, ids=[" ".join(words[:1]) for words, _ in FOUND])
def test_a_command_prints_the_keys_of_the_page(
    words: tuple[str, ...],
    found: Mapping[tuple[Any, str], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(common.out, "quiet", False)  # else it stays so for others
    monkeypatch.delenv("ZORDER_CONFIG", raising=False)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    for module in (costs, explaining, learning, logs, operators, report, studies, tables, triage):
        monkeypatch.setattr(module, "start_spark", lambda *_, **__: None)
    monkeypatch.setattr("zorder_pipeline.model.plan.read_plan", lambda _: PLAN)
    for (place, name), result in found.items():
        monkeypatch.setattr(place, name, lambda *_, result=result, **__: result)
    (tmp_path / "query_log").mkdir()
    done = CliRunner().invoke(zorder, [word.format(state=tmp_path) for word in (*words, "--json")])
    assert done.exception is None, done.output
    json_printed(words[0], done.stdout)


def test_the_ui_says_where_it_will_be_before_it_becomes_dagster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dagster.yaml").touch()
    became: list[Any] = []
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.setattr("os.execve", lambda *words: became.append(words))
    monkeypatch.setattr("os.dup2", lambda *ends: became.append(ends))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = CliRunner().invoke(zorder, ["ui", "--port", str(port)])
        assert not became
        assert f"port {port} cannot be used (Address already in use)" in str(refused.exception or refused.output)
    done = CliRunner().invoke(zorder, ["ui", "--port", str(port), "--json"])
    assert done.exception is None, done.output
    assert json_printed("ui", done.stdout)["url"] == f"http://127.0.0.1:{port}"
    output_to_stderr, (program, words, environment) = became
    assert output_to_stderr == (2, 1)
    assert (Path(program).name, words[1]) == ("dagster", "dev")
    assert environment["DAGSTER_HOME"] == str(tmp_path)


def test_what_differs_from_the_page_is_named() -> None:
    assert differences("rollback", {"version": None, "to": 3}) == [
        "rollback.restored_version is missing",
        "rollback.version is null",
        "rollback.to is not on the page",
    ]
    books = {"relayouts": [{**vars(UNCHECKED), "warning": 3}], "months": {}}
    assert differences("savings", books) == [
        "savings.relayouts[0].warning is no text, or null: 3",
        "savings.months is no list: {}",
    ]
    run = {"tables": {"orders": {"decision": "declined", "reasons": [], "partitions": {"ds=1": {"decision": 1}}}}}
    assert differences("run", run)[0] == "run.tables.orders.partitions.ds=1.reasons is missing"
