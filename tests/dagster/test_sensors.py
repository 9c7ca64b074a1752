"""Sensors: partitions in step, runs on new data and drift, and no JVM."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dagster import (
    AssetKey,
    AssetMaterialization,
    AssetObservation,
    DagsterEvent,
    DagsterEventType,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    Definitions,
    MetadataValue,
    RunRequest,
    SensorDefinition,
    SensorResult,
    SkipReason,
    build_sensor_context,
)
from dagster._core.events import AssetObservationData
from deltalake import DeltaTable, write_deltalake
from sqlalchemy import Engine, event

from zorder_pipeline.assets import build_definitions, sensors, ticks, triggers
from zorder_pipeline.assets.openmetrics import open_metrics
from zorder_pipeline.assets.upstream import NEVER, RECENT, has_partitions, look
from zorder_pipeline.config import MonitoringConfig, PipelineConfig, TableConfig, TriggerConfig
from zorder_pipeline.errors import TableError
from zorder_pipeline.model.predicate import Comparison, predicate_to_json
from zorder_pipeline.query_log.intake import without_spark

pytestmark = pytest.mark.dagster


def append(folder: Path, days: list[str | None], metadata: str | None = None) -> None:
    from deltalake import CommitProperties

    table = pa.table({"ds": pa.array(days, pa.string()), "a": list(range(len(days)))})
    properties = CommitProperties(custom_metadata={"userMetadata": metadata}) if metadata else None
    write_deltalake(str(folder), table, mode="append", partition_by=["ds"], commit_properties=properties)


def configured(folder: Path, **table: Any) -> PipelineConfig:
    tables = (TableConfig(name="t", location=str(folder / "t"), **table),)
    return PipelineConfig(tables=tables, state=str(folder / "state"))


START = 1_700_000_000
"""When the first query was asked, seconds since 1970 UTC."""


def asked(column: str, moment: int, run: str = "1") -> dict[str, Any]:
    """A row of the state's query log, so many seconds after `START`."""
    predicate = json.dumps(predicate_to_json(Comparison(column, "is_null", ())))
    place = {"run": run, "source": f"{run}.jsonl", "table_name": "t"}
    return {**place, "predicate": predicate, "query_timestamp": (START + moment) * 1_000_000}


def store(folder: Path, rows: list[dict[str, Any]], **record: str) -> None:
    """Add rows to the state's query log, with the record by which they count."""
    run = rows[0]["run"]
    write_deltalake(str(folder / "state" / "query_log"), pa.Table.from_pylist(rows), mode="append")
    files = {"batch": int(run), "run": run, "source": f"{run}.jsonl", "name": f"/{run}.jsonl", "log": f"/{run}.jsonl"}
    known = pa.Table.from_pylist([{"generation": "g", "replaces": record.get("replaces", ""), **files}])
    write_deltalake(str(folder / "state" / "log_files"), known, mode="append")


def tick(
    defs: Definitions, name: str, instance: DagsterInstance, cursor: str | None = None
) -> SensorResult | SkipReason:
    found: SensorDefinition = defs.resolve_sensor_def(name)
    result = found(build_sensor_context(instance=instance, cursor=cursor, definitions=defs))
    assert isinstance(result, SensorResult | SkipReason)
    return result


def quiet(result: SensorResult | SkipReason, said: str | None = "0% of the bytes of t are new") -> str | None:
    """Cursor of a tick that starts nothing, and says so."""
    assert isinstance(result, SensorResult)
    assert not result.run_requests
    assert result.skip_reason
    assert said is None or said in (result.skip_reason.skip_message or "")
    return result.cursor


def test_partitions_and_data_versions_follow_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensors, "SELDOM", 0)
    append(tmp_path / "t", ["1", "2", None])
    defs = build_definitions(configured(tmp_path))
    with DagsterInstance.ephemeral() as instance:
        first = tick(defs, "delta_tables", instance)
        assert isinstance(first, SensorResult)
        (added,) = first.dynamic_partitions_requests or ()
        made = DeltaTable(tmp_path / "t").metadata()
        assert list(added.partition_keys) == ["ds=1", "ds=2", "ds=__HIVE_DEFAULT_PARTITION__"]
        assert [event.tags["dagster/data_version"] for event in first.asset_events] == [f"{made.id[:8]}-0"]
        instance.add_dynamic_partitions("t_partitions", ["ds=1", "ds=9"])
        append(tmp_path / "t", ["3"])
        second = tick(defs, "delta_tables", instance, first.cursor)
        assert isinstance(second, SensorResult)
        new, gone = second.dynamic_partitions_requests or ()
        assert (len(new.partition_keys), list(gone.partition_keys)) == (3, ["ds=9"])
        assert [event.tags["dagster/data_version"][-2:] for event in second.asset_events] == ["-1"]
        third = tick(defs, "delta_tables", instance, second.cursor)
        assert isinstance(third, SensorResult)
        assert not third.asset_events
        told = [tick.skip_reason.skip_message for tick in (first, second, third) if tick.skip_reason]
        assert told == ["t is at version 0", "t is at version 1", "nothing new in 1 table"]


def test_what_is_noted_for_ever_is_new_data_alone_and_seldom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An observation belongs to no run, so that nothing ever deletes it."""
    append(tmp_path / "t", ["1"])
    defs = build_definitions(configured(tmp_path))
    clock = 1_800_000_000.0
    monkeypatch.setattr(time, "time", lambda: clock)

    def said() -> tuple[str, int]:
        nonlocal cursor
        found = tick(defs, "delta_tables", instance, cursor)
        assert isinstance(found, SensorResult)
        assert found.skip_reason is not None
        cursor = found.cursor
        return str(found.skip_reason.skip_message), len(found.asset_events)

    with DagsterInstance.ephemeral() as instance:
        cursor: str | None = json.dumps({"t": f"{DeltaTable(tmp_path / 't').metadata().id}-0"})  # of version 0.2
        assert said() == ("t is at version 0", 1)
        append(tmp_path / "t", ["1"], metadata="zorder layout 00")
        assert said() == ("nothing new in 1 table", 0)
        for version in (2, 3):
            append(tmp_path / "t", ["2"])
            clock += 600
            assert said() == (f"t is at version {version}, to be noted within the hour", 0)
        clock += 3600
        assert said() == ("t is at version 3", 1)
        assert said() == ("nothing new in 1 table", 0)


@pytest.mark.parametrize("label", ["zorder layout 00", "zorder compaction"])
def test_what_we_rewrite_is_no_new_data(tmp_path: Path, label: str) -> None:
    append(tmp_path / "t", ["1"])
    append(tmp_path / "t", ["1"] * 50, metadata=f"{label} 5f1c")
    seen = look(configured(tmp_path).tables[0])
    assert (seen.version, seen.data_version) == (1, 0)
    assert seen.new_share(seen.relaid.at) == 0.0


def test_new_data_starts_the_tables_chain_once(tmp_path: Path) -> None:
    append(tmp_path / "t", ["1"] * 50)
    append(tmp_path / "t", ["1"], metadata="zorder layout 00")
    time.sleep(0.02)
    defs = build_definitions(configured(tmp_path, trigger=TriggerConfig(new_data_share=0.2)))
    with DagsterInstance.ephemeral() as instance:
        cursor = quiet(tick(defs, "new_data", instance))
        append(tmp_path / "t", ["2"] * 50)
        found = tick(defs, "new_data", instance, cursor)
        assert isinstance(found, SensorResult)
        (request,) = found.run_requests or ()
        assert request.job_name == "relayout_t"
        assert request.tags["zorder/why"].endswith("of the bytes are new")
        quiet(tick(defs, "new_data", instance, found.cursor))  # the same data asks once
        earlier = json.dumps({"t": round(time.time() * 1000)})
        quiet(tick(defs, "new_data", instance, earlier))  # a cursor of an earlier version


def relaid(folder: Path, read: int, size: int, removed: str | None = None) -> None:
    """Commit a bin as Delta writes it: a file instead of one that is in the table, or in place of none."""
    found, now = DeltaTable(folder), round(time.time() * 1000)
    metrics = {"numAddedBytes": str(size), "numOutputRows": "1"}
    commit = {"timestamp": now, "operation": "OPTIMIZE", "operationParameters": {}, "readVersion": read}
    commit |= {"operationMetrics": metrics, "userMetadata": "zorder layout 00 5f1c"}
    path = f"ds=1/bin-{found.version()}.parquet"
    add = {"path": path, "partitionValues": {"ds": "1"}, "size": size, "modificationTime": now - 1}
    actions: list[dict[str, Any]] = [{"commitInfo": commit}, {"add": {**add, "dataChange": False}}]
    if removed is not None:
        actions.append({"remove": {"path": removed, "deletionTimestamp": now, "dataChange": False}})
    log = folder / "_delta_log" / f"{found.version() + 1:020}.json"
    log.write_text("\n".join(json.dumps(action) for action in actions))


@pytest.mark.parametrize("bins", [1, 2])
def test_what_others_append_while_a_relayout_runs_is_new(tmp_path: Path, bins: int) -> None:
    """Each bin of it is larger than all that is new."""
    append(tmp_path / "t", ["1"] * 50)
    (old,) = pa.table(DeltaTable(tmp_path / "t").get_add_actions())["path"].to_pylist()
    time.sleep(0.02)
    for number in range(bins):
        append(tmp_path / "t", ["2"] * 50)
        time.sleep(0.02)
        relaid(tmp_path / "t", 2 * number, 5_000, old if number == 0 else None)
        time.sleep(0.02)
    defs = build_definitions(configured(tmp_path, trigger=TriggerConfig(new_data_share=0.1)))
    size = int(os.path.getsize(next((tmp_path / "t" / "ds=2").glob("*.parquet"))))
    share = f"{bins * size / (bins * (size + 5_000)):.0%} of the bytes are new"
    with DagsterInstance.ephemeral() as instance:
        found = tick(defs, "new_data", instance)
        assert isinstance(found, SensorResult)
        (request,) = found.run_requests or ()
        assert request.tags["zorder/why"] == share
        cursor = found.cursor
        first = look(configured(tmp_path).tables[0]).relaid
        for _ in range(RECENT - 1):  # the relayout is among so many commits, and what it read is not
            append(tmp_path / "t", [])
        assert look(configured(tmp_path).tables[0]).relaid == first
        quiet(tick(defs, "new_data", instance, cursor))
        for _ in range(6):  # the relayout is behind them, and its files are no news
            append(tmp_path / "t", [])
        assert look(configured(tmp_path).tables[0]).relaid == NEVER
        quiet(tick(defs, "new_data", instance, cursor))
        earlier = json.dumps({name: kept[:5] for name, kept in json.loads(cursor or "").items()})
        quiet(tick(defs, "new_data", instance, earlier), None)  # a cursor of an earlier version


def ran(instance: DagsterInstance, request: RunRequest, status: DagsterRunStatus) -> None:
    """What Dagster does with a request, and what became of its run."""
    run = DagsterRun(job_name=str(request.job_name), tags={**request.tags, "dagster/run_key": str(request.run_key)})
    instance.add_run(run.with_status(status))


@pytest.mark.parametrize("name", ["new_data", "drift"])
def test_what_a_failed_run_was_asked_for_is_asked_again(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(tmp_path / "t", ["1"] * 50)
    rows = [*(asked("a", i) for i in range(90)), *(asked("b", i) for i in range(100, 150))]
    store(tmp_path, rows)
    defs = build_definitions(configured(tmp_path, trigger=TriggerConfig(new_data_share=0.2, drift=0.5)))
    with DagsterInstance.ephemeral() as instance:
        facts = {"newest query used": MetadataValue.timestamp(START + 99.0)}
        instance.report_runless_asset_event(AssetMaterialization(AssetKey(["t", "bit_allocation"]), metadata=facts))
        cursor, keys = None, []
        for status in (DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED, DagsterRunStatus.SUCCESS):
            found = tick(defs, name, instance, cursor)
            assert isinstance(found, SensorResult)
            (request,) = found.run_requests or ()
            keys.append(f"{request.run_key}")
            time.sleep(1.0)  # the key of another try has its second
            cursor = found.cursor
            ran(instance, request, status)
            monkeypatch.setattr(ticks, "AGAIN", (60, 60))
            assert not getattr(tick(defs, name, instance, cursor), "run_requests", None), "nothing is hurried"
            monkeypatch.setattr(ticks, "AGAIN", (0, 0))
        assert len(set(keys)) == 3
        assert all(key.startswith(f"{keys[0]}-") for key in keys[1:])
        assert not getattr(tick(defs, name, instance, cursor), "run_requests", None)


def test_while_a_run_that_a_sensor_asked_for_has_not_ended_none_asks_for_another(tmp_path: Path) -> None:
    append(tmp_path / "t", ["1"] * 50)
    store(tmp_path, [*(asked("a", i) for i in range(90)), *(asked("b", i) for i in range(100, 150))])
    defs = build_definitions(configured(tmp_path, trigger=TriggerConfig(new_data_share=0.2, drift=0.5)))
    with DagsterInstance.ephemeral() as instance:
        facts = {"newest query used": MetadataValue.timestamp(START + 99.0)}
        instance.report_runless_asset_event(AssetMaterialization(AssetKey(["t", "bit_allocation"]), metadata=facts))
        first = tick(defs, "new_data", instance)
        assert isinstance(first, SensorResult)
        (request,) = first.run_requests or ()
        ran(instance, request, DagsterRunStatus.STARTED)
        (run,) = instance.get_runs()
        found = tick(defs, "drift", instance)
        assert isinstance(found, SkipReason)
        assert found.skip_message == f"the queries of t moved by 100%, and run {run.run_id} has yet to end"
        append(tmp_path / "t", ["1"] * 500)
        waiting = tick(defs, "new_data", instance, first.cursor)
        cursor = quiet(waiting, f" of the bytes of t are new, and run {run.run_id} has yet to end")
        instance.report_run_canceled(run)
        again = tick(defs, "new_data", instance, cursor)
        assert isinstance(again, SensorResult)
        assert len(again.run_requests or ()) == 1


def by_hand(asset: str, table: str = "t", job: str = "__ASSET_JOB") -> DagsterRun:
    return DagsterRun(job_name=job, asset_selection=frozenset({AssetKey([table, asset])}))


@pytest.mark.parametrize(
    ("run", "waits"),
    [
        (DagsterRun(job_name="nightly_relayout"), True),
        (by_hand("clustered_table"), True),
        (by_hand("clustered_partitions"), False),
        (DagsterRun(job_name="relayout_u"), False),
        (DagsterRun(job_name="nightly_relayout", tags={"zorder/tables": "s,t"}), True),
        (DagsterRun(job_name="nightly_relayout", tags={"zorder/tables": "s,tt"}), False),
        (DagsterRun(job_name="nightly_relayout", tags={"zorder/tables": "s," * 100}), True),
        (by_hand("clustered_table", "u", "nightly_relayout"), False),
    ],
    ids=["the night's", "zorder run", "a backfill", "another table's", "a night of both", "another configuration's",
         "a night of more than the tag holds", "zorder run of another table"],
)  # fmt: skip
def test_a_run_of_the_tables_chain_is_waited_for_whoever_asked_for_it(
    tmp_path: Path, run: DagsterRun, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(tmp_path / "t", ["1"] * 50)
    defs = build_definitions(configured(tmp_path, trigger=TriggerConfig(new_data_share=0.2)))
    with DagsterInstance.ephemeral() as instance:
        first = tick(defs, "new_data", instance)
        assert isinstance(first, SensorResult)
        ran(instance, (first.run_requests or ())[0], DagsterRunStatus.FAILURE)
        monkeypatch.setattr(ticks, "AGAIN", (0, 0))
        instance.add_run(run.with_status(DagsterRunStatus.STARTED))
        append(tmp_path / "t", ["1"] * 500)
        for cursor in (None, first.cursor):  # new data, and what a failed run was asked for
            found = tick(defs, "new_data", instance, cursor)
            assert isinstance(found, SensorResult)
            assert bool(found.run_requests) is not waits


@pytest.mark.parametrize("asset", ["clustered_table", "feature_candidates"])
def test_what_a_night_has_decided_on_is_no_new_data(
    tmp_path: Path, asset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was asked for again at once, by a run that has no share in the night's budget."""
    monkeypatch.setattr(ticks, "AGAIN", (0, 0))
    append(tmp_path / "t", ["1"] * 50)
    defs = build_definitions(configured(tmp_path, trigger=TriggerConfig(new_data_share=0.2)))
    decision = AssetObservation(AssetKey(["t", asset]), metadata={"decision": "declined"})
    with DagsterInstance.ephemeral() as instance:
        time.sleep(0.02)
        instance.report_runless_asset_event(decision)
        cursor = quiet(tick(defs, "new_data", instance))
        append(tmp_path / "t", ["1"] * 500)
        found = tick(defs, "new_data", instance, cursor)
        assert isinstance(found, SensorResult)
        (request,) = found.run_requests or ()
        ran(instance, request, DagsterRunStatus.FAILURE)
        instance.report_runless_asset_event(decision)  # a night has looked at it since
        quiet(tick(defs, "new_data", instance, found.cursor))


def test_data_that_came_while_a_run_looked_at_the_table_are_new(tmp_path: Path) -> None:
    append(tmp_path / "t", ["1"] * 50)
    time.sleep(0.02)
    defs = build_definitions(configured(tmp_path, trigger=TriggerConfig(new_data_share=0.2)))
    with DagsterInstance.ephemeral() as instance:
        run = DagsterRun(job_name="nightly_relayout")
        instance.add_run(run)
        instance.report_dagster_event(
            DagsterEvent(DagsterEventType.PIPELINE_START.value, run.job_name), run.run_id, timestamp=time.time()
        )
        time.sleep(0.02)
        append(tmp_path / "t", ["1"] * 50)
        noted = AssetObservation(AssetKey(["t", "clustered_table"]), metadata={"decision": "declined"})
        instance.report_dagster_event(
            DagsterEvent(
                DagsterEventType.ASSET_OBSERVATION.value, run.job_name, event_specific_data=AssetObservationData(noted)
            ),
            run.run_id,
        )
        instance.report_run_canceled(run)
        found = tick(defs, "new_data", instance)
        assert isinstance(found, SensorResult)
        assert len(found.run_requests or ()) == 1


@pytest.mark.parametrize("name", ["delta_tables", "new_data", "drift"])
def test_a_sensor_says_which_table_or_state_it_cannot_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "state" / "log_files").mkdir(parents=True)
    (tmp_path / "state" / "log_files" / "_delta_log").write_text("in its way")
    defs = build_definitions(configured(tmp_path, trigger=TriggerConfig(new_data_share=0.2, drift=0.5)))
    with DagsterInstance.ephemeral() as instance:
        facts = {"newest query used": MetadataValue.timestamp(START + 99.0)}
        instance.report_runless_asset_event(AssetMaterialization(AssetKey(["t", "bit_allocation"]), metadata=facts))
        found = tick(defs, name, instance)
    reason = found.skip_reason if isinstance(found, SensorResult) else found
    assert reason is not None
    assert str(reason.skip_message).startswith("t: delta-rs cannot read ")


def test_a_table_that_was_made_anew_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensors, "SELDOM", 0)
    append(tmp_path / "t", ["1"] * 50)
    defs = build_definitions(configured(tmp_path, trigger=TriggerConfig(new_data_share=0.2)))
    versions, keys = set(), set()
    with DagsterInstance.ephemeral() as instance:
        cursors: dict[str, str | None] = {"delta_tables": None, "new_data": None}
        for _ in range(2):
            for name in cursors:
                found = tick(defs, name, instance, cursors[name])
                assert isinstance(found, SensorResult)
                cursors[name] = found.cursor
                versions |= {event.tags["dagster/data_version"] for event in found.asset_events}
                keys |= {request.run_key for request in found.run_requests or ()}
            shutil.rmtree(tmp_path / "t")
            append(tmp_path / "t", ["1"] * 50)
    assert (len(versions), len(keys)) == (2, 2)


def test_a_log_whose_commits_do_not_say_what_they_did_is_read_all_the_same(tmp_path: Path) -> None:
    """``commitInfo`` is optional by Delta's protocol; commits may be gone beside a checkpoint."""
    append(tmp_path / "t", ["1"])
    append(tmp_path / "t", ["1"])
    for commit in (tmp_path / "t" / "_delta_log").glob("*.json"):
        kept = [line for line in commit.read_text().splitlines() if '"commitInfo"' not in line]
        commit.write_text("\n".join(kept))
    seen = look(configured(tmp_path).tables[0])
    assert (seen.version, seen.data_version, seen.relaid) == (1, 1, NEVER)
    DeltaTable(tmp_path / "t").create_checkpoint()
    for commit in (tmp_path / "t" / "_delta_log").glob("*.json"):
        commit.unlink()
    assert look(configured(tmp_path).tables[0]).version == 1


@pytest.mark.parametrize("looked", [False, True])
def test_a_relayout_is_found_behind_many_commits(tmp_path: Path, looked: bool) -> None:
    """A stream of tiny commits does not make the files of a relayout look new."""
    append(tmp_path / "t", ["1"])
    defs = build_definitions(configured(tmp_path, trigger=TriggerConfig(new_data_share=0.2)))
    with DagsterInstance.ephemeral() as instance:
        first = tick(defs, "new_data", instance)
        append(tmp_path / "t", ["1"] * 50_000, metadata="zorder layout 00")
        time.sleep(0.02)
        for _ in range(RECENT + 5):
            append(tmp_path / "t", ["1"])
        assert look(configured(tmp_path).tables[0]).relaid == NEVER
        assert isinstance(first, SensorResult)
        cursor = quiet(tick(defs, "new_data", instance, first.cursor if looked else None), None)
        quiet(tick(defs, "new_data", instance, cursor), None)


def test_the_newest_data_is_found_behind_many_commits_of_a_relayout(tmp_path: Path) -> None:
    append(tmp_path / "t", ["1"])
    append(tmp_path / "t", ["1"])
    for _ in range(RECENT + 5):
        append(tmp_path / "t", ["1"], metadata="zorder layout 00")
    assert look(configured(tmp_path).tables[0]).data_version == 1


def test_drifting_queries_start_the_tables_chain(tmp_path: Path) -> None:
    store(tmp_path, [asked("a", i) for i in range(100)])
    defs = build_definitions(configured(tmp_path, trigger=TriggerConfig(drift=0.5)))
    with DagsterInstance.ephemeral() as instance:
        assert isinstance(tick(defs, "drift", instance), SkipReason), "nothing was learned yet"
        facts = {"newest query used": MetadataValue.timestamp(START + 99.0)}
        instance.report_runless_asset_event(AssetMaterialization(AssetKey(["t", "bit_allocation"]), metadata=facts))
        for column, moved in (("a", False), ("b", True)):
            store(tmp_path, [asked(column, 100 + i, run="2" if moved else "1") for i in range(60)])
            found = tick(defs, "drift", instance)
            assert isinstance(found, SensorResult) is moved
        assert isinstance(found, SensorResult)
        (request,) = found.run_requests or ()
        assert request.run_key == f"drift-t-{START + 99}"
        assert request.tags["zorder/why"] == "120 newer queries filter by other columns than before: 50% moved"


def test_queries_by_a_column_s_new_name_have_not_drifted(tmp_path: Path) -> None:
    store(tmp_path, [asked("cust" if i < 100 else "customer", i) for i in range(150)])
    defs = build_definitions(configured(tmp_path, trigger=TriggerConfig(drift=0.5)))
    facts = {"newest query used": MetadataValue.timestamp(START + 99.0)}
    with DagsterInstance.ephemeral() as instance:
        for former, moved in (({}, 100), ({"cust": "customer"}, 0)):
            named = facts | ({"former names of columns": MetadataValue.json(former)} if former else {})
            instance.report_runless_asset_event(AssetMaterialization(AssetKey(["t", "bit_allocation"]), metadata=named))
            found = tick(defs, "drift", instance)
            assert isinstance(found, SensorResult) is bool(moved)
    assert isinstance(found, SkipReason)
    assert found.skip_message == "the queries of t moved by 0%"


def test_a_tick_that_takes_too_long_goes_on_with_the_next_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster ends it after a minute, and then none of the tables is ever asked for."""
    monkeypatch.setattr(triggers, "SECONDS", 0.0)
    tables = tuple(TableConfig(name=name, location=f"/{name}", trigger=TriggerConfig(drift=0.5)) for name in "tuv")
    defs = build_definitions(PipelineConfig(tables=tables, state=str(tmp_path / "state")))
    rows = [*(asked("a", i) for i in range(90)), *(asked("b", i) for i in range(100, 150))]
    store(tmp_path, [row | {"table_name": name} for name in "tuv" for row in rows])
    opened: list[str] = []
    monkeypatch.setattr(without_spark, "current_runs", lambda files: opened.append("") or {("1", "1.jsonl")})
    with DagsterInstance.ephemeral() as instance:
        facts = {"newest query used": MetadataValue.timestamp(START + 99.0)}
        for name in "tuv":
            instance.report_runless_asset_event(AssetMaterialization([name, "bit_allocation"], metadata=facts))

        def asks(cursor: str | None) -> tuple[list[str | None], str | None]:
            context = build_sensor_context(instance=instance, cursor=cursor, definitions=defs)
            found = defs.resolve_sensor_def("drift")(context)
            assert isinstance(found, SensorResult)
            return [request.job_name for request in found.run_requests or ()], context.cursor

        assert asks(None) == (["relayout_t"], "u")
        assert asks("u") == (["relayout_u"], "v")
        assert asks("v") == (["relayout_v"], "t")
        monkeypatch.setattr(triggers, "SECONDS", 30.0)
        opened.clear()
        assert asks("v") == (["relayout_v", "relayout_t", "relayout_u"], "")
        assert len(opened) == 1, "which stored queries count is read once, for all tables"
        assert asks("a table that is gone")[0] == ["relayout_t", "relayout_u", "relayout_v"]


def test_only_queries_that_still_count_have_drifted(tmp_path: Path) -> None:
    day = 86_400
    config = configured(tmp_path, trigger=TriggerConfig(drift=0.5)).model_copy(update={"retention_days": 90})
    defs = build_definitions(config)
    store(tmp_path, [asked("old", i * 60) for i in range(1000)])  # forgotten by now, though nothing was purged
    store(tmp_path, [asked("wrong", 200 * day + i, run="2") for i in range(500)])  # read by other names at first
    store(tmp_path, [asked("a", 200 * day + i, run="3") for i in range(500)], replaces="/2.jsonl")
    orphans = pa.Table.from_pylist([asked("cut off", 200 * day + i, run="4") for i in range(900)])
    write_deltalake(str(tmp_path / "state" / "query_log"), orphans, mode="append")

    def said(learned_until: float) -> str:
        facts = {"newest query used": MetadataValue.timestamp(START + learned_until)}
        instance.report_runless_asset_event(AssetMaterialization(AssetKey(["t", "bit_allocation"]), metadata=facts))
        found = tick(defs, "drift", instance)
        assert isinstance(found, SkipReason)
        return str(found.skip_message)

    with DagsterInstance.ephemeral() as instance:
        assert said(200 * day + 300.0) == "the queries of t moved by 0%"
        store(tmp_path, [asked("b", 201 * day + i, run="5") for i in range(200)])
        assert said(201 * day + 150.0) == "the queries of t moved by 0%", (
            "a layout that was learned after the move is not at fault"
        )


def test_the_file_for_alerting_is_kept(tmp_path: Path) -> None:
    target = tmp_path / "metrics" / "zorder.prom"
    config = configured(tmp_path).model_copy(update={"monitoring": MonitoringConfig(metrics_file=str(target))})
    with DagsterInstance.ephemeral() as instance:
        assert isinstance(tick(build_definitions(config), "metrics", instance), SkipReason)
    assert target.read_text().endswith("# EOF\n")
    assert [path.name for path in target.parent.iterdir()] == ["zorder.prom"]


def test_metrics_ask_dagster_little_more_for_more_tables(tmp_path: Path) -> None:
    """Each minute: seventeen statements for each table were seconds of every one for forty tables."""
    asked: list[str] = []
    counts = []

    def noted(*told: Any) -> None:
        asked.append(told[2])

    with DagsterInstance.local_temp(str(tmp_path)) as instance:
        event.listen(Engine, "before_cursor_execute", noted)
        try:
            for tables in (2, 12):
                asked.clear()
                names = tuple(TableConfig(name=f"t{i}", location=f"/t{i}") for i in range(tables))
                open_metrics(instance, PipelineConfig(tables=names, state="/state"))
                counts.append(sum(text.startswith("SELECT") for text in asked))
        finally:
            event.remove(Engine, "before_cursor_execute", noted)
    assert (counts[1] - counts[0]) / 10 <= 4, "the newest observations of two assets"


def test_which_tables_have_partitions(tmp_path: Path) -> None:
    append(tmp_path / "t", ["1"])
    write_deltalake(str(tmp_path / "u"), pa.table({"a": [1]}))
    assert has_partitions(TableConfig(name="t", location=str(tmp_path / "t")))
    DeltaTable(tmp_path / "t").create_checkpoint()
    (tmp_path / "t" / "_delta_log" / f"{0:020d}.json").unlink()  # as Delta does after a month
    assert has_partitions(TableConfig(name="t", location=str(tmp_path / "t")))
    assert not has_partitions(TableConfig(name="u", location=str(tmp_path / "u")))
    assert not has_partitions(TableConfig(name="v", location=str(tmp_path / "v")))
    assert not has_partitions(TableConfig(name="w", location="s3a://bucket/w"))
    assert has_partitions(TableConfig(name="x", location="s3a://bucket/x", partitions=True))
    with pytest.raises(TableError, match="catalog name only"):
        look(TableConfig(name="y", catalog="sales.y"))


def test_a_table_that_was_replaced_has_the_partitions_of_its_successor(tmp_path: Path) -> None:
    """By the commit that replaced it, by a checkpoint of any form, and behind one that was cut off."""
    from pyarrow import parquet

    table, log = TableConfig(name="t", location=str(tmp_path / "t")), tmp_path / "t" / "_delta_log"
    rows = pa.table({"ds": ["1"], "a": [1]})
    write_deltalake(str(tmp_path / "t"), rows)
    assert not has_partitions(table)
    write_deltalake(str(tmp_path / "t"), rows, mode="overwrite", schema_mode="overwrite", partition_by=["ds"])
    assert has_partitions(table)
    append(tmp_path / "t", ["2"])
    assert has_partitions(table), "a commit of data alone says nothing of it"
    DeltaTable(tmp_path / "t").create_checkpoint()
    for commit in log.glob("*.json"):
        commit.unlink()
    assert has_partitions(table)
    (whole,) = log.glob("*.checkpoint.parquet")
    parts = parquet.read_table(whole)
    half = parts.num_rows - 1  # metadata comes first, and only one part has it
    for number, part in enumerate((parts[:half], parts[half:]), 1):
        parquet.write_table(part, log / f"{2:020d}.checkpoint.{number:010d}.{2:010d}.parquet")
    whole.unlink()
    assert has_partitions(table)
    (log / f"{3:020d}.checkpoint.parquet").write_bytes(b"PAR1")
    assert has_partitions(table)
    write_deltalake(str(tmp_path / "u"), rows, partition_by=["ds"])
    write_deltalake(str(tmp_path / "u"), rows, mode="overwrite", schema_mode="overwrite", partition_by=["a"])
    DeltaTable.create(str(tmp_path / "u"), DeltaTable(tmp_path / "u").schema(), mode="overwrite")
    assert not has_partitions(TableConfig(name="u", location=str(tmp_path / "u")))


def test_sensors_start_no_spark(tmp_path: Path) -> None:
    append(tmp_path / "t", ["1"])
    (tmp_path / "tables.yaml").write_text(
        "monitoring: {metrics_file: m.prom}\ntables:\n"
        "  - {name: t, location: t, trigger: {new_data_share: 0.1, drift: 0.1}}\n  - {name: u, location: u}\n"
    )
    code = (
        "import sys, zorder_pipeline.assets as a\n"
        "from dagster import DagsterInstance, build_sensor_context\n"
        "names = [s.name for s in a.defs.sensors]\n"
        "assert names == ['delta_tables', 'new_data', 'drift', 'metrics', 'cut_off'], names\n"
        "with DagsterInstance.ephemeral() as instance:\n"
        "    for found in a.defs.sensors:\n"
        "        found(build_sensor_context(instance=instance, definitions=a.defs))\n"
        "sys.exit('pyspark' in sys.modules and __import__('pyspark').SparkContext._gateway is not None)\n"
    )
    environment = {**os.environ, "ZORDER_CONFIG": str(tmp_path / "tables.yaml")}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
