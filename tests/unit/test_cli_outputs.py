"""What commands write and where: nothing goes elsewhere than said, and nothing that was done stays untold."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner

from zorder_pipeline import demo, pipeline
from zorder_pipeline.assets import run as asset_runs
from zorder_pipeline.assets.run import TableOutcome
from zorder_pipeline.cli import common, learning, runs
from zorder_pipeline.cli.entry import zorder
from zorder_pipeline.config import load, load_config
from zorder_pipeline.errors import ConfigError, PlanError, ZorderError
from zorder_pipeline.model.partition_key import spelled
from zorder_pipeline.model.plan import Plan, Promise, read_plan, write_plan

PROMISE, READ = Promise(queries=7, before=0.5), {"validation_fraction": 0.5}
PLAN = Plan("t", "id", "hash", 0, None, "learned", 1000, PROMISE, predicted=READ)


def refused(*words: str) -> str:
    result = CliRunner().invoke(zorder, list(words), standalone_mode=False)
    assert isinstance(result.exception, ZorderError | click.ClickException), result.output
    return str(result.exception)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a configuration, and no Dagster home."""
    (tmp_path / "tables.yaml").write_text("tables: [{name: a, location: a}]\nmonitoring: {metrics_file: m.prom}\n")
    for name in ("DAGSTER_HOME", "ZORDER_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_figures_of_no_home_are_none(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty ones took the place of those that an alert looks at."""
    words = ("metrics", "--config", str(home / "tables.yaml"), "--out", str(home / "m.prom"))
    (home / "m.prom").write_text("kept")
    assert "set DAGSTER_HOME to the home of these" in refused(*words)
    monkeypatch.setenv("DAGSTER_HOME", str(home / "typo"))
    assert f"DAGSTER_HOME={home}/typo is no folder" in refused(*words)
    assert f"DAGSTER_HOME={home}/typo is no folder" in refused("run", "--config", str(home / "tables.yaml"))
    assert (home / "m.prom").read_text() == "kept"


@pytest.mark.parametrize("name", ["DAGSTER_HOME", "ZORDER_CONFIG"])
def test_a_variable_without_a_value_is_as_one_that_is_not_set(
    name: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example ran then, as if it were somebody's tables."""
    checkout = home / "checkout"  # one in which no demo ran
    (checkout / "dagster_home").mkdir(parents=True)
    shutil.copy(Path(__file__).parents[2] / "dagster_home/tables.yaml", checkout / "dagster_home")
    monkeypatch.setattr(load, "__file__", str(checkout / "zorder_pipeline/config/load.py"))
    unset = refused("run")
    assert "that is the example of zorder demo: name your own with --config" in unset
    monkeypatch.setenv(name, "")
    assert refused("run") == unset


@pytest.mark.parametrize("words", [["--json"], []])
def test_figures_that_cannot_be_written_hide_no_relayout(
    words: list[str],
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    ended_with: Callable[..., object],
) -> None:
    def fail(*_: object) -> None:
        raise ZorderError("cannot write metrics to m.prom: No space left on device")

    config = load_config(home / "tables.yaml", check_paths=False)
    done = TableOutcome("a", "applied", ("worth it",), {"Delta version": 7})
    monkeypatch.setattr(runs, "_configuration", lambda _: config)
    monkeypatch.setattr(asset_runs, "run_tables", lambda *_, **__: (done,))
    monkeypatch.setattr("zorder_pipeline.assets.openmetrics.write_metrics", fail)
    alone = CliRunner().invoke(zorder, ["run"], catch_exceptions=False)
    assert alone.exit_code == 0, "of one run no figures take the place of a home's"
    assert "m.prom stays as it is: the figures are those of Dagster's runs" in alone.stderr
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    code = ended_with("run", *words)
    told = capsys.readouterr()
    assert (code, told.err.splitlines()[-1]) == (
        1,
        "zorder: cannot write metrics to m.prom: No space left on device",
    )
    if words:
        assert json.loads(told.out)["tables"]["a"]["version"] == 7
    else:
        assert "worth it" in told.out


def test_a_plan_is_written_before_anything_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever quits ``| less`` ended the command, and the search was for nothing."""

    def gone(*_: object, **__: object) -> None:
        raise SystemExit(1)

    (tmp_path / "log.sql").write_text("SELECT 1;\n")
    monkeypatch.setattr(learning, "start_spark", lambda *_: None)
    monkeypatch.setattr(pipeline, "learn", lambda *_, **__: PLAN)
    monkeypatch.setattr(learning, "print_columns", gone)
    target = tmp_path / "plan.json"
    with pytest.raises(SystemExit):
        learning.learn.main(
            ["--table", "t", "--log", str(tmp_path / "log.sql"), "--out", str(target)], standalone_mode=False
        )
    assert read_plan(target) == PLAN


def test_what_was_learned_is_told_where_it_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.sql").write_text("SELECT 1;\n")
    target = tmp_path / "plan.json"

    def full(*_: object) -> None:
        raise PlanError(f"cannot write plan {target}: No space left on device")

    monkeypatch.setattr(learning, "start_spark", lambda *_: None)
    monkeypatch.setattr(pipeline, "learn", lambda *_, **__: PLAN)
    monkeypatch.setattr("zorder_pipeline.model.plan.write_plan", full)
    words = ["--table", "t", "--log", str(tmp_path / "log.sql"), "--out", str(target), "--json"]
    with pytest.raises(common.UnfinishedError, match="No space left"):
        learning.learn.main(words, standalone_mode=False)
    assert json.loads(capsys.readouterr().out)["plan_id"] == PLAN.plan_id


def test_a_folder_that_takes_no_new_file_is_told_before_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan is replaced as a whole, for which it is not enough that the one that is there can be written."""
    target = tmp_path / "plan.json"
    target.write_text("{}")
    reached = os.access
    monkeypatch.setattr(os, "access", lambda place, mode: place != str(tmp_path) and reached(place, mode))
    told = refused("learn", "--table", "t", "--log", str(target), "--out", str(target))
    assert told == f"--out {target} cannot be written: {tmp_path} takes no new file; choose another place"


def test_a_demo_that_declines_shows_its_own_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from zorder_pipeline.benchmarks import compare, data, workloads

    figures = SimpleNamespace(to_json=dict)
    facts: dict[str, Any] = {"rows": 256, "columns": ["a"], "costs": {"zorder": 1.0}}
    facts |= {"scale": 0.001, "queries": 20, "format": 3}
    ran = SimpleNamespace(plan=PLAN, relayout=None, preview=SimpleNamespace(to_json=dict))
    monkeypatch.setattr("zorder_pipeline.spark.session", lambda *_: None)
    monkeypatch.setattr(data, "make_folder", lambda *_: None)
    monkeypatch.setattr(demo, "_prepare", lambda *_: facts)
    monkeypatch.setattr(demo, "_run_job", lambda _: ran)
    monkeypatch.setattr(pipeline, "evaluate", lambda *_, **__: figures)
    monkeypatch.setattr(workloads, "read_log", lambda _: [])
    monkeypatch.setattr(compare, "same_results", lambda *_, **__: [])
    found = demo.run_demo(tmp_path, 0.001, 20, lambda _: None)
    assert found.layout == pipeline.in_words(PLAN)
    assert read_plan(tmp_path / "plan.json") == PLAN
    assert "ours" not in found.costs
    other = replace(PLAN, predicted={"validation_fraction": 0.25})
    monkeypatch.setattr(ran, "plan", other)
    assert demo.run_demo(tmp_path, 0.001, 20, lambda _: None).layout == pipeline.in_words(other)
    facts["costs"]["ours"] = 1.0
    monkeypatch.setattr(ran, "plan", PLAN)
    assert demo.run_demo(tmp_path, 0.001, 20, lambda _: None).layout == pipeline.in_words(other), "what was applied"


def test_a_demo_of_another_size_keeps_no_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from zorder_pipeline.benchmarks import data

    class BegunError(Exception):
        pass

    def begin(*_: object) -> None:
        raise BegunError

    write_plan(PLAN, tmp_path / "plan.json")
    monkeypatch.setattr(data, "lineitem_table", begin)
    with pytest.raises(BegunError):
        demo._prepare(None, tmp_path, 0.001, 20, lambda _: None)  # type: ignore[arg-type]
    assert not (tmp_path / "plan.json").exists()


def test_options_that_mean_nothing_together_are_refused(tmp_path: Path) -> None:
    told = refused("purge", "--state", str(tmp_path), "--user", "bob", "--older-than", "365")
    assert told.startswith("--older-than means nothing with --user")
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    (tmp_path / "log.sql").write_text("SELECT 1;\n")
    words = ("init", str(tmp_path / "h"), "--log", str(tmp_path / "log.sql"), "--table", str(tmp_path / "t"))
    assert refused(*words, "--partition-by", "ds").startswith("--partition-by means nothing with --table")
    assert not (tmp_path / "h").exists()


def test_the_demo_that_is_named_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, str]] = []
    for name in ("mine", "demo/dagster_home"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "dagster.yaml").write_text("")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "mine"))
    monkeypatch.setenv("ZORDER_CONFIG", str(tmp_path / "mine" / "tables.yaml"))
    monkeypatch.setattr(runs, "_free", lambda _: None)
    monkeypatch.setattr(os, "execve", lambda _program, _words, environment: seen.append(environment))
    runs.ui.main(["--workdir", str(tmp_path / "demo")], standalone_mode=False)
    runs.ui.main([], standalone_mode=False)
    assert [one["DAGSTER_HOME"] for one in seen] == [str(tmp_path / "demo" / "dagster_home"), str(tmp_path / "mine")]
    assert ["ZORDER_CONFIG" in one for one in seen] == [False, True]


PART_OF_IT = "where Delta takes it for a part of the table; choose another"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("state: a/state", f"state is {{}}/a/state, in the folder of a, {PART_OF_IT}"),
        ("state: a", f"state is {{}}/a, in the folder of a, {PART_OF_IT}"),
        ("state: ~nobody.at.all/x", "state begins with ~nobody.at.all, a home that is not known; name the folder"),
        ("monitoring: {{metrics_file: '.'}}", "monitoring.metrics_file is the folder {}; name a file in it"),
        ("state: a/_zorder/s", f"state is {{}}/a/_zorder/s, in the folder of a, {PART_OF_IT}"),
        ("state: ab", ""),
    ],
)
def test_places_that_cannot_be_are_refused(text: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "tables.yaml"
    file.write_text(text.format() + "\ntables: [{name: a, location: a}]\n")
    if not told:
        load_config(file, check_paths=False)
        return
    with pytest.raises(ConfigError) as error:
        load_config(file, check_paths=False)
    assert str(error.value).endswith(told.format(tmp_path))


def test_a_configuration_in_an_unknown_home_is_not_there() -> None:
    assert refused("metrics", "--config", "~nobody.at.all/tables.yaml") == (
        "configuration file ~nobody.at.all/tables.yaml does not exist; correct --config or ZORDER_CONFIG, or unset that"
    )


def test_a_state_in_the_folder_of_its_table_is_refused(tmp_path: Path) -> None:
    write_plan(PLAN, tmp_path / "plan.json")
    for state in (tmp_path / "t" / "state", tmp_path / "t" / "_zorder" / "state"):
        state.mkdir(parents=True)
        told = f"the state {state} lies in the folder of {tmp_path}/t, {PART_OF_IT}"
        for words in (("calibrate",), ("stats",), ("apply", "--plan", str(tmp_path / "plan.json"))):
            assert refused(*words, "--table", str(tmp_path / "t"), "--state", str(state)) == told


def test_a_partition_that_is_not_there_fails_also_where_the_table_is_declined(monkeypatch: pytest.MonkeyPatch) -> None:
    """It went untold then, and the same mistake had two exit codes."""
    there, gone = spelled("ds=1"), "ds=TYPO"
    declined = TableOutcome("a", "declined", ("it does not pay",))
    config = SimpleNamespace(table=lambda _: None)
    instance = SimpleNamespace(get_latest_materialization_event=lambda _: None)
    monkeypatch.setattr(asset_runs, "_assets", lambda _: {asset_runs.AssetKey(["a", asset_runs.PARTITIONS])})
    monkeypatch.setattr(asset_runs, "_execute", lambda *_: SimpleNamespace(all_events=[], success=True))
    monkeypatch.setattr(asset_runs, "_outcome", lambda *_: declined)

    def run(*keys: str) -> TableOutcome:
        lacking = tuple(key for key in keys if key == gone)
        monkeypatch.setattr(asset_runs, "missing_partitions", lambda *_: (lacking, "it has 1, e.g. ds=1"))
        return asset_runs._run_partitions(config, None, ["a"], keys, instance, None)  # type: ignore[arg-type]

    assert run(there) == declined
    found = run(gone, there)
    assert found.decision == "failed"
    assert found.reasons == (f"{gone}: there is no such partition; it has 1, e.g. ds=1", "it does not pay")
    assert found.partitions[gone]["decision"] == "failed"
