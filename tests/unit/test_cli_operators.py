"""Commands of an operator and of a new user touch only what was meant, and say what they did."""

import contextlib
import io
import json
import os
import re
import shlex
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

import zorder_pipeline.report
from zorder_pipeline import pipeline
from zorder_pipeline.cli import common, costs, logs, operators, report, runs, start, tables, triage
from zorder_pipeline.cli.entry import zorder
from zorder_pipeline.cli.states import existing
from zorder_pipeline.config import config_file, load_config
from zorder_pipeline.errors import ConfigError, PlanError, ZorderError
from zorder_pipeline.gate.accounts import MonthlySaving
from zorder_pipeline.gate.cost import CostModel, RelayoutWork
from zorder_pipeline.model.plan import Plan, read_plan, write_plan
from zorder_pipeline.model.results import ApplyResult
from zorder_pipeline.model.triage import TableTriage
from zorder_pipeline.model.workload import QueryLog
from zorder_pipeline.pipeline import PromiseCheck, Savings
from zorder_pipeline.spark import quiet_conf


def refused(*words: str) -> str:
    """The sentence of a command that is refused before Spark starts."""
    result = CliRunner().invoke(zorder, list(words), standalone_mode=False)
    assert isinstance(result.exception, ZorderError | click.ClickException), result.output
    return str(result.exception)


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What commands print that would have started Spark."""
    page = io.StringIO()
    for module in (common, costs, logs, operators, start, tables, triage):
        monkeypatch.setattr(module, "out", Console(file=page, width=200))
    for module in (costs, logs, operators, triage):
        monkeypatch.setattr(module, "start_spark", lambda *_, **__: None)
    return page


def delta(folder: Path) -> Path:
    (folder / "_delta_log").mkdir(parents=True)
    return folder


def log(folder: Path) -> str:
    (folder / "log.sql").write_text("SELECT 1;\n")
    return str(folder / "log.sql")


@pytest.mark.parametrize("words", [("stop",), ("approve",), ("metrics",)])
def test_nobody_stops_the_example_by_a_mistyped_home(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ZORDER_CONFIG", raising=False)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    assert f"DAGSTER_HOME={tmp_path} has none" in refused(*words)
    assert config_file({}).name == "tables.yaml"
    with pytest.raises(ConfigError, match="no configuration"):
        config_file({}, example=False)


READS = ("--log", "log.sql", "--table", "t")


@pytest.mark.parametrize(
    "words",
    [
        *(("stop",), ("approve",), ("purge",), ("savings",), ("triage",), ("compact", "--table", "t")),
        *(("evaluate", *READS), ("report", *READS, "--out", "/tmp/page.html")),
    ],
)
def test_a_state_that_is_not_there_is_not_made(words: tuple[str, ...], tmp_path: Path) -> None:
    state = tmp_path / "typo"
    assert f"the state {state} does not exist" in refused(*words, "--state", str(state))
    assert not state.exists()


@pytest.mark.parametrize("uri", ["s3a://bucket/state", "dbfs:/mnt/state", "abfss://box@account/state"])
def test_a_state_elsewhere_is_taken_as_given(uri: str) -> None:
    assert existing(uri) == uri


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_a_local_state_is_looked_for_however_it_is_written(form: str, tmp_path: Path) -> None:
    assert existing(form.format(tmp_path)) == form.format(tmp_path)
    with pytest.raises(ZorderError, match="does not exist"):
        existing(form.format(tmp_path / "typo"))


def test_costs_are_those_of_the_configuration_at_hand(
    tmp_path: Path, page: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A calibration in the folder that happens to be at hand is one that no night ever sees."""
    asked: list[str] = []
    monkeypatch.setattr(pipeline, "savings", lambda _, state, **__: asked.append(state) or Savings((), ()))
    monkeypatch.setattr(pipeline, "calibrate", lambda _, __, state, **___: asked.append(state) or 1 / 0)
    monkeypatch.delenv("ZORDER_CONFIG", raising=False)
    home = tmp_path / "home"
    (home / "state").mkdir(parents=True)
    (home / "tables.yaml").write_text("state: state\nquery_logs: [{path: l}]\ntables: [{name: a, location: b}]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    costs.savings.main([], standalone_mode=False)
    with pytest.raises(ZeroDivisionError):
        costs.calibrate.main(["--table", "/t"], standalone_mode=False)
    assert asked == [f"{home}/state"] * 2
    monkeypatch.delenv("DAGSTER_HOME")
    assert "the state state does not exist" in refused("savings")


class Files:
    """Of a table that is not there."""

    bytes = np.array([1e9])

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize(("table", "relaid", "scanned"), [("a", 400.0, 77.0), ("b", 100.0, 14.0)])
def test_a_calibration_begins_with_what_its_configuration_assumes(
    table: str, relaid: float, scanned: float, tmp_path: Path, page: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a table that is not in it with what holds without one."""
    opened = SimpleNamespace(files=Files, table_id="id")
    monkeypatch.setattr("zorder_pipeline.relayout.snapshot.open_table", lambda *_: opened)
    monkeypatch.setattr(pipeline, "calibrate", lambda *_, assumed=None, **__: (assumed or CostModel(), ()))
    gate = "gate: {rewrite_core_seconds_per_gb: 400, scan_core_seconds_per_gb: 77}"
    (tmp_path / "tables.yaml").write_text(f"state: books\ntables: [{{name: a, location: a, {gate}}}]\n")
    monkeypatch.setenv("ZORDER_CONFIG", str(tmp_path / "tables.yaml"))
    costs.calibrate.main(["--table", str(tmp_path / table)], standalone_mode=False)
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in page.getvalue().splitlines()]
    told = {row[0]: row[1:] for row in cells if row}
    assert [float(cell) for cell in told["a GB relaid by one column"]] == [relaid] * 2
    assert [float(cell) for cell in told["a GB read by a query"]] == [scanned] * 2
    whole = CostModel(base=relaid).relayout(RelayoutWork(1e9, 3, files=2)).expected
    assert f"would take {whole:,.0f} core-seconds" in page.getvalue()


def test_no_minus_stands_before_a_saving_of_nothing(
    tmp_path: Path, page: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = PromiseCheck("t", 3, 10**15, 0, 0.5, 0.4, None, None, False, 0.1, None, None, None)
    books = Savings((check,), (MonthlySaving("t", "2026-01", 1, 0.1, -0.2, 1.0),), 0.05)
    monkeypatch.setattr(pipeline, "savings", lambda *_, **__: books)
    costs.savings.main(["--state", str(tmp_path), "--price-per-core-hour", "0.05"], standalone_mode=False)
    (told,) = (line for line in page.getvalue().splitlines() if "2026-01" in line)
    assert [cell.strip() for cell in told.split("│")[3:-1]] == ["1", "0", "0", "100%", "+0", "+0.00"]


def test_a_state_without_relayouts_is_told_in_a_sentence(
    tmp_path: Path, page: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "savings", lambda *_, **__: Savings((), ()))
    costs.savings.main(["--state", str(tmp_path)], standalone_mode=False)
    assert page.getvalue() == f"no relayout is noted in {tmp_path}\n"
    costs.savings.main(["--state", str(tmp_path), "--table", "/t"], standalone_mode=False)
    assert page.getvalue().endswith(f"\nno relayout of /t is noted in {tmp_path}\n"), "others may be"
    with pytest.raises(ZorderError, match="holds no relayout to draw"):
        costs.savings.main(["--state", str(tmp_path), "--out", str(tmp_path / "p.png")], standalone_mode=False)


def test_a_state_that_the_configuration_names_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tables.yaml").write_text("state: books\ntables: [{name: a, location: a}]\n")
    monkeypatch.setenv("ZORDER_CONFIG", str(tmp_path / "tables.yaml"))
    there = tmp_path / "books"
    assert (
        refused("savings")
        == f"the state {there} does not exist; no run has written it yet, or it lies elsewhere: name it with --state"
    )
    assert refused("savings", "--state", str(there)).endswith("name the folder that `state` in tables.yaml names")
    there.write_text("no folder")
    assert refused("calibrate", "--table", "t").startswith(f"the state {there} cannot be written: ")
    assert refused("calibrate", "--table", "t", "--state", str(there)).startswith(
        f"--state {there} cannot be written: "
    )


def test_savings_promise_nothing_of_a_layout_by_hand(
    tmp_path: Path, page: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_hand = PromiseCheck("t", 3, 10**15, 0, 0.0, 0.0, None, None, False, 8.0, None, None, None)
    learned = replace(by_hand, version=4, promised=0.25, cost_expected=8.0, cost_low=6.0, cost_high=9.0)
    merged = replace(learned, version=5, promised=-0.0004, measured=-0.431)
    monkeypatch.setattr(pipeline, "savings", lambda *_, **__: Savings((by_hand, learned, merged), ()))
    costs.savings.main(["--state", str(tmp_path)], standalone_mode=False)
    rows = [line.split("│") for line in page.getvalue().splitlines() if line.startswith("│ t")]
    assert [row[5].strip() for row in rows] == ["nothing", "25.0%", "0.0%"]
    assert rows[2][6].strip() == "-43.1%"


@pytest.mark.parametrize("count", [0, 3])
def test_what_follows_a_deletion_is_told_where_something_was_deleted(
    count: int, tmp_path: Path, page: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "purge", lambda *_: {"queries": count, "file_stats": 0})
    (tmp_path / "query_log").mkdir()
    logs.purge.main(["--state", str(tmp_path), "--user", "ann"], standalone_mode=False)
    assert ("VACUUM" in page.getvalue()) == ("layouts keep the constants" in page.getvalue()) == (count > 0)


def test_the_way_out_of_a_stop_names_the_same_state(
    tmp_path: Path, page: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "stop_all", lambda *_: None)
    state = tmp_path / "my state"
    state.mkdir()
    operators.stop.main(["--state", str(state)], standalone_mode=False)
    assert f"zorder stop --state '{state}' --lift goes on" in page.getvalue()


CONFIG = """
spark: {master: "spark://far:7077", conf: {spark.hadoop.fs.s3a.endpoint: here}}
state: state
stop: %s
tables: [{name: a, location: a}]
"""


@pytest.fixture
def started(page: io.StringIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, str]]:
    """The Spark settings that commands asked for, with a configuration at hand."""
    asked: dict[str, dict[str, str]] = {}
    for module in (operators, tables):
        monkeypatch.setattr(module, "start_spark", lambda app, settings, **_: asked.update({app: settings}))
    (tmp_path / "tables.yaml").write_text(CONFIG % "false")
    (tmp_path / "state").mkdir()
    monkeypatch.setenv("ZORDER_CONFIG", str(tmp_path / "tables.yaml"))
    monkeypatch.setattr(pipeline, "stop_all", lambda *_: None)
    monkeypatch.setattr(pipeline, "waiting_requests", lambda *_: [])
    return asked


@pytest.mark.parametrize("words", [[], ["--state", "{}/state"], ["--config", "{}/tables.yaml"]])
def test_a_state_is_reached_by_the_configured_settings(
    words: list[str], tmp_path: Path, started: dict[str, dict[str, str]]
) -> None:
    for command in (operators.stop, operators.approve):
        command.main([word.format(tmp_path) for word in words], standalone_mode=False)
    assert {app: s["spark.hadoop.fs.s3a.endpoint"] for app, s in started.items()} == {"stop": "here", "approve": "here"}
    assert started["approve"]["spark.master"] == "spark://far:7077"
    assert started["stop"]["spark.master"] == "local[1]"


def test_a_wrong_configuration_keeps_nobody_from_stopping_a_state_by_its_name(
    tmp_path: Path, started: dict[str, dict[str, str]]
) -> None:
    (tmp_path / "tables.yaml").write_text("tables: 3")
    operators.stop.main(["--state", str(tmp_path / "state")], standalone_mode=False)
    assert set(started) == {"stop"}
    with pytest.raises(ConfigError, match="tables must be a list"):
        operators.stop.main([], standalone_mode=False)
    with pytest.raises(ConfigError, match="tables must be a list"):  # it is not known whether all is stopped
        tables.compact.main(["--table", "t"], standalone_mode=False)


@pytest.mark.parametrize("stopped", ["true", "false"])
@pytest.mark.parametrize("command", ["apply", "compact"])
def test_a_rewrite_by_hand_obeys_the_configuration_at_hand(
    command: str, stopped: str, tmp_path: Path, started: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}

    def rewritten(*_: object, **options: object) -> ApplyResult:
        given.update(options)
        return ApplyResult(3, "postponed", ("stopped",))

    monkeypatch.setattr(pipeline, command, rewritten)
    monkeypatch.setattr("zorder_pipeline.model.plan.read_plan", lambda _: None)
    (tmp_path / "tables.yaml").write_text(CONFIG % stopped)
    plan = ["--plan", "p.json"] if command == "apply" else ["--state", str(tmp_path)]
    getattr(tables, command).main(["--table", "t", *plan], standalone_mode=False)
    assert given["rules"] == pipeline.Rules(stop=stopped == "true", stop_state=f"{tmp_path}/state")
    assert given["state"] == (None if command == "apply" else str(tmp_path))
    assert started[command] == {"spark.hadoop.fs.s3a.endpoint": "here"}
    monkeypatch.delenv("ZORDER_CONFIG")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "another program's"))
    getattr(tables, command).main(["--table", "t", *plan], standalone_mode=False)
    assert (given["rules"], started[command]) == (pipeline.Rules(), {})


def test_spark_of_any_command_has_the_settings_at_hand(
    tmp_path: Path, started: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table in an object store is reached by these alone."""
    asked: list[dict[str, str]] = []
    monkeypatch.setattr("zorder_pipeline.spark.session", lambda settings, _: asked.append(settings))
    common.start_spark("inspect")
    (tmp_path / "tables.yaml").write_text("tables: 3")
    said = io.StringIO()
    monkeypatch.setattr("zorder_pipeline.cli.configured.err", Console(file=said, width=200))
    common.start_spark("inspect")
    assert "spark.conf of the configuration at hand is not used: " in said.getvalue()
    monkeypatch.delenv("ZORDER_CONFIG")
    common.start_spark("inspect")
    assert [settings.get("spark.hadoop.fs.s3a.endpoint") for settings in asked] == ["here", None, None]
    assert all("spark.master" not in settings for settings in asked)


def test_java_of_a_brief_command_optimises_nothing_unless_it_is_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, str]] = []
    monkeypatch.setattr("zorder_pipeline.spark.session", lambda settings, _: asked.append(settings))
    options = "spark.driver.extraJavaOptions"
    common.start_spark("inspect", {"a": "b"}, brief=True)
    common.start_spark("inspect", {options: "-Xmine"}, brief=True)
    common.start_spark("learn", {})
    assert asked[0][options].endswith(" -XX:TieredStopAtLevel=1")
    assert asked[0][options].startswith(quiet_conf()[options])
    assert (asked[0]["a"], asked[1][options], asked[2]) == ("b", "-Xmine", {})


def test_a_file_that_is_no_plan_is_not_to_be_written_over(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"statement": "SELECT 1"}\n{}\n')
    (tmp_path / "answer.json").write_text('{"decision": "declined"}')
    for path in (tmp_path / "log.jsonl", tmp_path, tmp_path / "answer.json"):
        with pytest.raises(ZorderError) as error:
            read_plan(path)
        assert f"--out {path}" not in str(error.value)
        assert "give the file that zorder learn" in str(error.value)
    with pytest.raises(ZorderError, match="write one with zorder learn --out"):
        read_plan(tmp_path / "none.json")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"schema_version": 1, "spec": ' + '{"a": ' * 900 + "0" + "}" * 901])
def test_a_plan_nested_too_deeply_is_no_plan(tmp_path: Path, text: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(PlanError):
        read_plan(tmp_path / "plan.json")


def test_a_home_that_cannot_be_written_is_told_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--table", str(delta(tmp_path / "t")), "--log", log(tmp_path))
    told = refused("init", f"{tmp_path}/log.sql/home", *words)
    assert told == f"HOME {tmp_path}/log.sql/home cannot be written: not a directory; name another folder"
    reached = os.access
    monkeypatch.setattr(os, "access", lambda place, mode: Path(place).name != "h" and reached(place, mode))
    assert "cannot be written: permission denied" in refused("init", str(tmp_path / "h"), *words)
    assert not list((tmp_path / "h").iterdir())


def test_dagster_home_has_to_be_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "mine"
    home.mkdir()
    (home / "tables.yaml").write_text("tables: [{name: a, location: a}]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DAGSTER_HOME", "mine")
    assert refused("metrics") == f"DAGSTER_HOME=mine must be an absolute path: set it to {home}"
    (home / "dagster.yaml").write_text("storage: {nonsense: 1}\n")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    assert refused("metrics").startswith(f"DAGSTER_HOME={home} cannot be opened: Received unexpected config entry ")


def test_a_home_keeps_its_dagster_yaml_and_any_folder_gets_a_name(tmp_path: Path, page: io.StringIO) -> None:
    home, table = tmp_path / "home", delta(tmp_path / "my-flights.2024")
    home.mkdir()
    (home / "dagster.yaml").write_text("storage: {}\n")
    zorder.main(["init", str(home), "--table", str(table), "--log", log(tmp_path)], standalone_mode=False)
    assert "dagster.yaml is there already and stays as it is" in page.getvalue()
    assert (home / "dagster.yaml").read_text() == "storage: {}\n"
    (configured,) = load_config(home / "tables.yaml").tables
    assert (configured.name, configured.aliases) == ("my_flights_2024", ("my-flights.2024",))


def test_a_configuration_is_written_for_people(
    tmp_path: Path, page: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    delta(tmp_path / "Übersicht 1")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    words = ["init", "../home", "--table", "../Übersicht 1", "--log", os.path.relpath(log(tmp_path))]
    zorder.main(words, standalone_mode=False)
    written = (tmp_path / "home" / "tables.yaml").read_text(encoding="utf-8")
    assert f'location: "{tmp_path}/Übersicht 1"' in written
    assert 'aliases: ["Übersicht 1"]' in written
    assert ".." not in written + page.getvalue()


def test_links_stay_in_a_configuration_and_any_name_is_read_back(
    tmp_path: Path, page: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that rotates behind a link would else be the one of today for ever."""
    delta(tmp_path / "release 7" / 'odd "\U0001f600\u00a0" t')
    (tmp_path / "work").mkdir()
    (tmp_path / "current").symlink_to(tmp_path / "release 7")
    (tmp_path / "newest.sql").symlink_to(log(tmp_path))
    monkeypatch.chdir(tmp_path / "work")
    place = 'current/odd "\U0001f600\u00a0" t'
    zorder.main(["init", "../home", "--table", f"../{place}", "--log", "../newest.sql"], standalone_mode=False)
    config = load_config(tmp_path / "home" / "tables.yaml")
    assert [table.location for table in config.tables] == [str(tmp_path / place)]
    assert [source.path for source in config.query_logs] == [str(tmp_path / "newest.sql")]


def test_the_command_to_go_on_with_can_be_pasted(tmp_path: Path, page: io.StringIO) -> None:
    home, table = tmp_path / "my home", delta(tmp_path / "t")
    zorder.main(["init", str(home), "--table", str(table), "--log", log(tmp_path)], standalone_mode=False)
    assert shlex.split(page.getvalue())[-3:] == [f"DAGSTER_HOME={home}", "zorder", "run"]


def test_a_table_elsewhere_is_named_as_it_is(tmp_path: Path, page: io.StringIO) -> None:
    words = ["init", str(tmp_path / "h"), "--table", "s3a://lake/sales/orders", "--log", log(tmp_path)]
    zorder.main(words, standalone_mode=False)
    (configured,) = load_config(tmp_path / "h" / "tables.yaml").tables
    assert (configured.name, configured.location) == ("orders", "s3a://lake/sales/orders")


@pytest.mark.parametrize("name", ["2024", "yes", "null"])
def test_a_name_stays_a_text_in_yaml(name: str, tmp_path: Path, page: io.StringIO) -> None:
    table = delta(tmp_path / name)
    home = tmp_path / "h"
    zorder.main(["init", str(home), "--table", str(table), "--log", log(tmp_path)], standalone_mode=False)
    assert "is ready" in page.getvalue()
    assert load_config(tmp_path / "h" / "tables.yaml").tables[0].name == name


def test_what_cannot_be_a_table_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    told = refused("init", str(tmp_path / "h"), "--table", str(tmp_path / "plain"), "--log", log(tmp_path))
    assert "is no folder of a Delta table" in told
    assert "`catalog: sales.orders` instead of location" in told
    words = ("--table", str(delta(tmp_path / "t")), "--log", log(tmp_path), "--name", "a: b")
    assert "must be of letters, digits and underscores" in refused("init", str(tmp_path / "h"), *words)
    (tmp_path / "state.parquet").touch()
    words = ("--parquet", str(tmp_path / "state.parquet"), "--log", log(tmp_path))
    assert "give another one with --name" in refused("init", str(tmp_path / "h"), *words)
    assert not (tmp_path / "h").exists()
    words = ("--table", str(tmp_path / "t"), "--log", log(tmp_path))
    assert "whose VACUUM deletes it" in refused("init", str(tmp_path / "t" / "home"), *words)
    assert not (tmp_path / "t" / "home").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("ingest", "--log", "x.sql"),
        ("stats", "--table", "/t"),
        ("calibrate", "--table", "/t"),
        ("apply", "--table", "/t", "--plan", "plan.json"),
    ],
    ids=lambda words: words[0],
)
def test_a_state_that_cannot_be_written_is_refused_before_spark_starts(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("zorder_pipeline.model.plan.read_plan", lambda _: None)
    monkeypatch.setattr("zorder_pipeline.spark.session", lambda *_: pytest.fail("Spark is started"))
    for state, why in ((tmp_path / "file" / "state", "not a directory"), (Path("/proc/q"), "no such file|denied")):
        told = refused(*words, "--state", str(state))
        assert re.search(f"--state {state} cannot be written: {state.parent} takes no new folder .*{why}", told)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_log_is_not_read_by_hand_otherwise_than_by_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "home")
    place = tmp_path / "home" / "tables.yaml"
    place.write_text("query_logs: [{path: log.sql, dialect: trino}]\ntables: [{name: a, location: a}]\n")
    monkeypatch.setattr("zorder_pipeline.spark.session", lambda *_: pytest.fail("Spark is started"))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    words = ("ingest", "--log", log(tmp_path / "home"), "--state", str(tmp_path / "link" / "state"))
    told = refused(*words, "--dialect", "hive")
    assert told.endswith("with --dialect trino; leave out --dialect hive, or change the log's entry in tables.yaml")
    place.write_text("tables: 1\n")
    assert "tables" in refused(*words), "of a wrong configuration it is not known whose state that is"


def test_a_folder_that_is_no_state_is_not_purged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "purge", lambda *_: pytest.fail("purged"))
    told = refused("purge", "--state", str(tmp_path), "--user", "x")
    assert told.startswith(f"{tmp_path} is no state: it holds none of the folders of one, such as query_log")


@pytest.mark.parametrize(
    ("found", "printed"),
    [
        ((), "the log names no table\n"),
        ((TableTriage("u", problem="gone"),), "Nothing to say of\n- u (0 queries): gone\n"),
    ],
)
def test_no_empty_table_is_drawn_of_tables_that_cannot_be_opened(
    found: tuple[TableTriage, ...], printed: str, page: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "triage", lambda *_, **__: found)
    triage.triage.main([], standalone_mode=False)
    assert page.getvalue() == printed


def _run() -> None:
    """A run whose assets start Spark themselves."""
    with contextlib.suppress(ZeroDivisionError):
        runs.run.main(["--config", "tables.yaml"], standalone_mode=False)


def _demo() -> None:
    with contextlib.suppress(ZeroDivisionError):
        runs.demo.main([], standalone_mode=False)


def _bench() -> None:
    with contextlib.suppress(ZeroDivisionError):
        runs.bench.main([], standalone_mode=False)


@pytest.mark.parametrize("start", [lambda: common.start_spark("inspect"), _run, _demo, _bench])
@pytest.mark.parametrize("there", [(), ("spark-warehouse",), ("spark-warehouse", "spark-warehouse/sales.db")])
def test_no_command_leaves_an_empty_warehouse_behind(
    there: tuple[str, ...], start: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark makes one where the command is called; what was there before is somebody's."""
    ends: list[Any] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ZORDER_CONFIG", raising=False)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    for folder in there:
        Path(folder).mkdir()

    def session(*_: object, **__: object) -> None:
        Path("spark-warehouse").mkdir(exist_ok=True)
        if start in (_run, _demo, _bench):
            raise ZeroDivisionError

    monkeypatch.setattr("zorder_pipeline.spark.session", session)
    monkeypatch.setattr("zorder_pipeline.assets.run.run_tables", session)
    monkeypatch.setattr("zorder_pipeline.demo.run_demo", session)
    monkeypatch.setattr("zorder_pipeline.benchmarks.running.bench", session)
    monkeypatch.setattr(runs, "_configuration", lambda _: SimpleNamespace())
    monkeypatch.setattr("zorder_pipeline.assets.instance.instance_at_hand", contextlib.nullcontext)
    monkeypatch.setattr(common.atexit, "register", lambda function, *given: ends.append((function, given)))
    start()
    for function, given in ends:
        function(*given)
    assert [path.name for path in tmp_path.iterdir()] == ["spark-warehouse"][: len(there)]


def test_a_plan_that_names_no_statistics_is_told_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was answered by the advice to name a plan."""
    plan = tmp_path / "plan.json"
    write_plan(Plan("t", "id", "hash", 0, None, "learned", 1000), plan)
    monkeypatch.setattr("zorder_pipeline.spark.session", lambda *_: pytest.fail("Spark is started"))
    told = refused("stats", "--table", "/t", "--state", str(tmp_path / "state"), "--plan", str(plan))
    assert f"{plan} names no statistics to gather" in told
    assert "name a log with --log" in told


@pytest.mark.parametrize(("lines", "unchanged", "told"), [(0, 1, "1 file held nothing new"), (2, 0, "no statement")])
def test_a_log_read_before_is_not_called_useless(
    lines: int, unchanged: int, told: str, tmp_path: Path, page: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {"lines": lines, "used": 0, "ignored": lines, "quarantined": 0, "unchanged_files": unchanged}
    found = SimpleNamespace(to_json=lambda: counts | {"tables": {}, "reasons": {}, "unmatched": {}})
    monkeypatch.setattr(pipeline, "ingest_into", lambda *_: found)
    monkeypatch.setattr(pipeline, "stored_log", lambda *_: QueryLog((), 0, 0))
    logs.ingest.main(["--log", "x.sql", "--state", str(tmp_path)], standalone_mode=False)
    last = page.getvalue().splitlines()
    assert [line.startswith(told) for line in last[5:]] == [True]


def test_what_is_not_printed_of_a_log_is_said(tmp_path: Path, page: io.StringIO) -> None:
    """Tables beyond the fifth were left out without a word, and habits were told of conditions that there are not."""

    def printed(*statements: str) -> str:
        asked = [{"statement": text, "timestamp": 1_767_225_600 + i} for i, text in enumerate(statements)]
        (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in asked))
        page.truncate(0)
        logs.ingest.main(["--log", str(tmp_path / "log.jsonl")], standalone_mode=False)
        return page.getvalue()

    told = printed(*[f"SELECT * FROM t{i} WHERE a = {i}" for i in range(6)] * 20)
    assert told.endswith("\n1 further table not printed: --json tells of all\n")
    assert told.count("alike in both halves") == 5
    assert "alike in both halves" not in printed(*["SELECT * FROM t"] * 20)


def test_an_interface_that_a_script_began_ends_by_sigterm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shells ignore SIGINT for such jobs, and Dagster does with SIGTERM what is done with SIGINT: kill did nothing."""
    (tmp_path / "dagster.yaml").write_text("")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.setattr(runs, "_free", lambda _: None)
    seen: list[Any] = []
    monkeypatch.setattr(os, "execve", lambda *_: seen.append(signal.getsignal(signal.SIGINT)))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        runs.ui.main([], standalone_mode=False)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIG_DFL]


CONFIGURED = """state: state
retention_days: 30
tables:
  - {name: a, location: a, gate: {price_per_core_hour: 0.5, scan_core_seconds_per_gb: 7}}
  - {name: b, location: b, gate: {price_per_core_hour: 0.25, scan_core_seconds_per_gb: 7}}
"""
ONE_PRICE = CONFIGURED.replace("0.25, scan_core_seconds_per_gb: 7", "0.5, scan_core_seconds_per_gb: 28")


@pytest.mark.parametrize(
    ("words", "price", "scan"),
    [
        (("--table", "{}/a"), 0.5, 7.0),
        (("--table", "{}/b/"), 0.25, 7.0),
        (("--table", "{}/c"), 0.0, 14.0),
        ((), 0.0, 7.0),
        (("--table", "{}/a", "--price-per-core-hour", "0"), 0.0, 7.0),
        (("--table", "{}/a", "--price-per-core-hour", "2"), 2.0, 7.0),
    ],
)
def test_savings_are_told_at_the_costs_of_the_configuration(
    words: tuple[str, ...],
    price: float,
    scan: float,
    tmp_path: Path,
    page: io.StringIO,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(pipeline, "savings", lambda *_, assumed, **__: asked.append(assumed) or Savings((), ()))
    (tmp_path / "state").mkdir()
    (tmp_path / "tables.yaml").write_text(CONFIGURED)
    monkeypatch.setenv("ZORDER_CONFIG", str(tmp_path / "tables.yaml"))
    costs.savings.main([word.format(tmp_path) for word in words], standalone_mode=False)
    assert (asked[0].price_per_core_hour, asked[0].scan) == (price, scan)
    (tmp_path / "other").mkdir()
    costs.savings.main(["--state", str(tmp_path / "other"), "--table", f"{tmp_path}/a"], standalone_mode=False)
    assert asked[1].price_per_core_hour == 0.0, "a state of another configuration"


def test_what_tables_agree_on_is_told_of_all_and_each_is_booked_at_its_own_costs(
    tmp_path: Path, page: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(pipeline, "savings", lambda *_, **given: asked.append(given) or Savings((), ()))
    (tmp_path / "state").mkdir()
    (tmp_path / "tables.yaml").write_text(ONE_PRICE)
    monkeypatch.setenv("ZORDER_CONFIG", str(tmp_path / "tables.yaml"))
    costs.savings.main([], standalone_mode=False)
    assert (asked[0]["assumed"].price_per_core_hour, asked[0]["assumed"].scan) == (0.5, 14.0)
    assert [asked[0]["own"](f"file:{tmp_path}/{name}").scan for name in "ab"] == [7.0, 28.0]
    assert asked[0]["own"](f"file:{tmp_path}/c") is None


def test_a_report_and_triage_count_as_far_back_as_the_configuration(
    tmp_path: Path, page: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(zorder_pipeline.report, "collect", lambda *_, **given: asked.append(given) or 1 / 0)
    monkeypatch.setattr(pipeline, "triage", lambda *_, **given: asked.append(given) or ())
    monkeypatch.setattr(report, "start_spark", lambda *_, **__: None)
    (tmp_path / "state").mkdir()
    (tmp_path / "tables.yaml").write_text(CONFIGURED)
    monkeypatch.setenv("ZORDER_CONFIG", str(tmp_path / "tables.yaml"))
    words = ["--state", str(tmp_path / "state")]
    with pytest.raises(ZeroDivisionError):
        report.report.main(
            [*words, "--table", f"{tmp_path}/a", "--out", str(tmp_path / "a.html")], standalone_mode=False
        )
    triage.triage.main(words, standalone_mode=False)
    assert (asked[0]["days"], asked[0]["assumed"].price_per_core_hour, asked[1]["days"]) == (30, 0.5, 30)


@pytest.mark.parametrize(
    ("words", "trials", "rows", "share"),
    [
        (("--state", "{}/state"), 70, 5000, 0.5),
        (("--state", "{}/state", "--trials", "30"), 30, 5000, 0.5),
        (("--state", "{}/other"), 200, None, 0.0),
        ((), 200, None, 0.0),
    ],
)
def test_a_report_searches_as_the_nights_of_its_state_do_and_leaves_their_study_alone(
    words: tuple[str, ...], trials: int, rows: int | None, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(zorder_pipeline.report, "collect", lambda *_, **given: asked.append(given["settings"]) or 1 / 0)
    monkeypatch.setattr(report, "start_spark", lambda *_, **__: None)
    for name in ("state", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "tables.yaml").write_text(f"""
state: state
tables:
  - name: a
    location: a
    search: {{trials: 70, study: "sqlite:///{tmp_path}/study.db"}}
    layout: {{target_file_rows: 5000}}
    gate: {{enriched_reader_share: 0.5}}
""")
    monkeypatch.setenv("ZORDER_CONFIG", str(tmp_path / "tables.yaml"))
    words = tuple(word.format(tmp_path) for word in words)
    with pytest.raises(ZeroDivisionError):
        report.report.main(
            [*words, "--table", f"{tmp_path}/a", "--out", str(tmp_path / "a.html")], standalone_mode=False
        )
    assert (asked[0].trials, asked[0].target_file_rows, asked[0].enriched_share) == (trials, rows, share)
    assert asked[0].study is None


def test_a_picture_of_no_table_is_none(tmp_path: Path, page: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "triage", lambda *_, **__: ())
    words = ["--log", log(tmp_path), "--picture", str(tmp_path / "p.png")]
    with pytest.raises(ZorderError, match=r"p\.png was not written: there is no table to draw"):
        triage.triage.main(words, standalone_mode=False)
    assert "the log names no table" in page.getvalue()


@pytest.mark.parametrize("option", [("--dialect", "trino"), ("--time-zone", "UTC"), ("--log-format", "sql")])
@pytest.mark.parametrize("command", ["report", "triage", "stats"])
def test_how_a_log_is_read_means_nothing_without_one(option: tuple[str, str], command: str, tmp_path: Path) -> None:
    words = {"report": ("--table", "t", "--out", str(tmp_path / "t.html")), "stats": ("--table", "t")}.get(command, ())
    told = refused(command, *words, "--state", str(tmp_path), *option)
    assert told == f"{option[0]} means nothing without --log; name a log, or leave it out"


def test_another_name_of_the_table_means_nothing_where_a_plan_says_what_to_gather(tmp_path: Path) -> None:
    told = refused("stats", "--table", "t", "--state", str(tmp_path), "--plan", "plan.json", "--alias", "flights")
    assert told == "--alias means nothing with --plan and without --log; name a log, or leave it out"


def test_a_note_means_nothing_where_a_stop_is_lifted(tmp_path: Path) -> None:
    told = refused("stop", "--state", str(tmp_path), "--lift", "--note", "x")
    assert told == "--note means nothing with --lift; leave one of them out"


def test_a_dry_run_with_a_state_that_is_not_there_is_refused(tmp_path: Path) -> None:
    write_plan(Plan("t", "id", "hash", 0, None, "learned", 1000), tmp_path / "plan.json")
    told = refused(
        *("apply", "--table", "t", "--plan", str(tmp_path / "plan.json"), "--dry-run"),
        *("--state", str(tmp_path / "typo")),
    )
    assert told.startswith(f"the state {tmp_path}/typo does not exist")
