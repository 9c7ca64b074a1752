"""What is read of several logs, some of which are not there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dagster import DagsterInstance, materialize, mem_io_manager

from zorder_pipeline import pipeline
from zorder_pipeline.assets import query_log as logs_asset
from zorder_pipeline.assets.common import VALUES, DeltaSparkResource
from zorder_pipeline.assets.query_log import query_log, read_logs
from zorder_pipeline.config import PipelineConfig, TableConfig, load_config
from zorder_pipeline.errors import ConfigError, LogError, LostRaceError
from zorder_pipeline.model.workload import QueryLog
from zorder_pipeline.pipeline import logs
from zorder_pipeline.query_log.intake.files import list_logs
from zorder_pipeline.query_log.intake.stored import StoredLog


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Reads logs of these names, of which there are those that were written, and tells what was warned of."""

    def ingested(_spark: object, _state: str, sources: list[pipeline.LogSource], *_: object) -> StoredLog:
        return StoredLog(QueryLog((), 0, 0), files=sum(len(list_logs(source.path)) for source in sources))

    monkeypatch.setattr(pipeline, "ingest_into", ingested)
    monkeypatch.setattr(pipeline, "stored_log", lambda *_: QueryLog((), 0, 0))
    monkeypatch.setattr(logs, "open_table", lambda *_, **__: SimpleNamespace(location="/t", table_id="1"))

    def reading(*names: str) -> tuple[StoredLog, list[str]]:
        listed = ", ".join(f"{{path: {name}}}" for name in names)
        (tmp_path / "tables.yaml").write_text(f"query_logs: [{listed}]\ntables: [{{name: a, location: a}}]\n")
        config = load_config(tmp_path / "tables.yaml", check_paths=False)
        warned: list[str] = []
        context: Any = SimpleNamespace(log=SimpleNamespace(info=print, warning=warned.append))
        spark: Any = SimpleNamespace(session=None)
        return read_logs(context, spark, config)[0], warned

    return reading


def test_a_log_that_is_not_there_costs_no_other(read: Any, tmp_path: Path) -> None:
    (tmp_path / "b.sql").write_text("SELECT 1")
    added, (warning,) = read("nowhere", "b.sql")
    assert added.files == 1
    assert warning.startswith(f"query log {tmp_path}/nowhere does not exist")


def test_no_log_at_all_is_an_error(read: Any) -> None:
    with pytest.raises(LogError, match="nowhere does not exist"):
        read("nowhere", "nor_here")


def test_what_sessions_recorded_is_enough_without_a_log(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"no query log is configured, and none is recorded in .*: name one under"):
        read()
    monkeypatch.setattr(pipeline, "stored_log", lambda *_: QueryLog((), 3, 3))
    assert read() == (StoredLog(QueryLog((), 0, 0)), [])


@pytest.fixture
def night(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Reads an empty log into a state by the asset; returns its metadata, and what is said of it."""
    nothing = QueryLog((), 0, 0)
    monkeypatch.setattr(logs_asset, "read_logs", lambda *_: (StoredLog(nothing), nothing, {}))
    monkeypatch.setattr(pipeline, "tidy_state", lambda *_: {})
    monkeypatch.setattr(pipeline, "expire", lambda *_: {})
    monkeypatch.setattr(DeltaSparkResource, "session", None)

    def materialized(state: str, instance: DagsterInstance) -> tuple[dict[str, Any], list[str]]:
        tables = (TableConfig(name="t", location="/nowhere"), TableConfig(name="u", location="/nor_here"))
        asset = query_log(PipelineConfig(tables=tables, state=state, retention_days=30))
        resources = {"zorder_spark": DeltaSparkResource(spark_config={}), VALUES: mem_io_manager}
        done = materialize([asset], instance=instance, resources=resources)
        (made,) = done.asset_materializations_for_node("query_log")
        entries = [entry for entry in instance.all_logs(done.run_id) if not entry.is_dagster_event]
        return {name: found.value for name, found in made.metadata.items()}, [entry.user_message for entry in entries]

    return materialized


def test_two_configurations_with_one_instance_are_told(night: Any) -> None:
    with DagsterInstance.ephemeral() as instance:
        states = ("/lake/state", "/lake/state", "/sea/state", "/sea/state")
        said = [night(state, instance)[1] for state in states]
    told = [[sentence for sentence in sentences if "configurations share" in sentence] for sentences in said]
    (sentence,) = told.pop(2)
    assert told == [[], [], []]
    assert sentence.startswith("query_log was last made for the state /lake/state, and here it is /sea/state: ")


def test_what_is_older_than_the_retention_is_deleted_and_told(night: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(pipeline, "expire", lambda *given: asked.append(given) or {"query_log": 1200, "recorded": 2})
    with DagsterInstance.ephemeral() as instance:
        facts, said = night("/lake/state", instance)
    assert asked == [(None, "/lake/state", ["t", "u"], 30)]
    assert (facts["expired queries"], facts["expired quarantined lines"]) == (1200, 0)
    assert "deleted 1,200 of the state's query_log, older than 30 days (retention_days), or read again since" in said
    assert "deleted 2 of the state's recorded, older than 30 days (retention_days)" in said


def test_what_cannot_be_deleted_now_fails_no_night(night: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> None:
        raise LostRaceError("another run wrote into /lake/state at the same time")

    monkeypatch.setattr(pipeline, "expire", lost)
    with DagsterInstance.ephemeral() as instance:
        facts, said = night("/lake/state", instance)
    assert "expired queries" not in facts
    assert said[-1] == (
        "what is older than 30 days (retention_days) could not be deleted from /lake/state: another run wrote into "
        "/lake/state at the same time; the next run tries it again"
    )


def test_a_run_observes_the_tables_that_it_is_about() -> None:
    """Each of its observations is kept as long as the run; a run of one table noted all of them."""
    names = ("t", "t2", "u")
    config = PipelineConfig(tables=tuple(TableConfig(name=name, location=f"/{name}") for name in names), state="/s")
    for steps, own in (
        ({"query_log", "t__feature_candidates", "t__clustered_table"}, ["t"]),
        ({"query_log", "u__clustered_table", "t2__cost_benefit"}, ["t2", "u"]),
        ({"query_log"}, list(names)),
    ):
        assert [table.name for table in logs_asset._tables(config, steps)] == own
