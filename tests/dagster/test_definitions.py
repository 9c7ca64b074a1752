"""Definitions: valid, in order, explained, quick to load, and without a JVM."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from dagster import (
    AssetKey,
    BackfillPolicy,
    DagsterInstance,
    DagsterInvalidConfigError,
    DefaultScheduleStatus,
    Definitions,
    DynamicPartitionsDefinition,
    asset,
    in_process_executor,
    materialize,
    multiprocess_executor,
)
from dagster._core.definitions.observe import observe
from dagster._core.instance.config import PoolGranularity
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster._serdes import serialize_value
from dagster.components.testing import create_defs_folder_sandbox
from deltalake import write_deltalake
from pyspark.errors import AnalysisException

from zorder_pipeline import pipeline
from zorder_pipeline.assets import STAGES, build_definitions, config_file, load_definitions
from zorder_pipeline.assets.budget import BUDGET
from zorder_pipeline.assets.common import DeltaSparkResource
from zorder_pipeline.assets.component import ZorderTables
from zorder_pipeline.assets.definitions import storage_folder
from zorder_pipeline.assets.events import sentence_of
from zorder_pipeline.config import MonitoringConfig, PipelineConfig, ScheduleConfig, TableConfig
from zorder_pipeline.config.models import SparkConfig
from zorder_pipeline.errors import ConfigError

pytestmark = pytest.mark.dagster

ORDER = ["feature_candidates", "correlation_graph", "bit_allocation", "cost_benefit", "clustered_table"]


def configured(*tables: TableConfig, schedule: ScheduleConfig | None = None) -> PipelineConfig:
    return PipelineConfig(tables=tables, schedule=schedule, state="/nowhere/state")


@pytest.fixture(scope="module")
def two_tables() -> Definitions:
    own = ScheduleConfig(cron="0 4 * * SUN", time_zone="Europe/Berlin")
    return build_definitions(
        configured(
            TableConfig(name="sales", location="/data/sales", owners=("team:shop",)),
            TableConfig(name="parts", catalog="shop.parts", schedule=own),
        )
    )


def test_the_definitions_are_valid(two_tables: Definitions) -> None:
    Definitions.validate_loadable(two_tables)


def test_what_dagster_shows_and_stores_holds_no_setting_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """They may be keys of an object store, and the UI has no login."""
    config = configured(TableConfig(name="sales", location="/data/sales"))
    secret = SparkConfig(conf={"spark.hadoop.fs.s3a.secret.key": "hunter2"})
    definitions = build_definitions(config.model_copy(update={"spark": secret}))
    repository = definitions.get_repository_def()
    stored = [serialize_value(RepositorySnap.from_def(repository))]
    stored += [serialize_value(job.get_job_snapshot()) for job in repository.get_all_jobs()]
    assert not [text for text in stored if "hunter2" in text]
    given: list[dict[str, str]] = []
    monkeypatch.setattr("zorder_pipeline.spark.session", lambda conf, _: given.append(conf))

    @asset
    def started(zorder_spark: DeltaSparkResource) -> None:
        zorder_spark._init_session()

    resources = {"zorder_spark": (definitions.resources or {})["zorder_spark"]}
    assert materialize([started], resources=resources).success
    assert given[0]["spark.hadoop.fs.s3a.secret.key"] == "hunter2"


def test_each_table_is_a_chain_behind_the_shared_log(two_tables: Definitions) -> None:
    graph = two_tables.resolve_asset_graph()
    assert [stage.__name__ for stage in STAGES] == ORDER
    for table in ("sales", "parts"):
        keys = [AssetKey([table, stage]) for stage in ORDER]
        assert graph.get(keys[0]).parent_keys == {AssetKey("query_log"), AssetKey([table, "data"])}
        for above, below in pairwise(keys):
            assert above in graph.get(below).parent_keys
        assert {key.path[0] for key in graph.get_all_asset_keys() if graph.get(key).group_name == table} == {table}


def test_every_asset_says_what_question_it_answers(two_tables: Definitions) -> None:
    graph = two_tables.resolve_asset_graph()
    for key in graph.materializable_asset_keys:
        node = graph.get(key)
        assert node.description is not None
        assert node.description.startswith("**")
        assert node.kinds, key
        assert node.code_version, key
        assert node.pools == (set() if key == BUDGET else {"spark"}), key
        (place,) = node.metadata["dagster/code_references"].code_references
        assert Path(place.file_path).is_file()
        assert "zorder_pipeline/assets" in place.file_path
    assert graph.get(AssetKey(["sales", "bit_allocation"])).owners == ["team:shop"]
    assert graph.get(AssetKey(["sales", "bit_allocation"])).kinds == {"optuna"}
    assert graph.get(AssetKey(["sales", "data"])).is_observable
    assert not graph.get(AssetKey(["parts", "data"])).is_observable


def test_the_budget_lies_between_the_judgements_and_the_relayouts(two_tables: Definitions) -> None:
    """In the lineage; in a run no step of the budget waits for a table's, which may fail."""
    graph = two_tables.resolve_asset_graph()
    (offers,) = graph.get(BUDGET).parent_keys - {AssetKey("query_log")}
    assert graph.get(offers).parent_keys == {AssetKey(["sales", "cost_benefit"])}  # parts has a schedule of its own
    assert BUDGET in graph.get(AssetKey(["sales", "clustered_table"])).parent_keys
    assert BUDGET not in graph.get(AssetKey(["parts", "clustered_table"])).parent_keys
    nightly = two_tables.resolve_job_def("nightly_relayout")
    waits_for = nightly.dependency_structure.input_to_upstream_outputs_for_node("night__nightly_budget")
    assert [output.node.name for outputs in waits_for.values() for output in outputs] == ["query_log"]


def test_tags_runtime_and_freshness_come_from_the_configuration() -> None:
    table = TableConfig(name="a", location="/a", tags={"domain": "shop"}, partitions=True)
    config = PipelineConfig(tables=(table,), state="/x", monitoring=MonitoringConfig(max_age_hours=30))
    defs = build_definitions(config)
    graph = defs.resolve_asset_graph()
    node = graph.get(AssetKey(["a", "cost_benefit"]))
    assert node.tags["domain"] == "shop"
    assert (node.tags["zorder/table"], node.tags["zorder/stage"]) == ("a", "cost_benefit")
    assert "fail_window" in str(node.freshness_policy)
    assert defs.resolve_job_def("nightly_relayout").tags["dagster/max_runtime"] == "43200"
    partitions = graph.get(AssetKey(["a", "clustered_partitions"]))
    assert partitions.partitions_def == DynamicPartitionsDefinition(name="a_partitions")
    assert partitions.backfill_policy == BackfillPolicy.single_run()


def test_a_plan_can_be_approved_in_the_launchpad(two_tables: Definitions) -> None:
    schema = two_tables.resolve_job_def("answer_approval").run_config_schema
    assert schema.config_type is not None
    with DagsterInstance.ephemeral() as instance:
        wrong = {"ops": {"answer": {"config": {"approve": True}}}}
        with pytest.raises(DagsterInvalidConfigError, match="table"):
            two_tables.resolve_job_def("answer_approval").execute_in_process(run_config=wrong, instance=instance)


def test_an_answer_waits_for_no_place_in_the_pool_that_the_relayout_holds(two_tables: Definitions) -> None:
    """A rejection waited until all was rewritten."""
    (node,) = two_tables.resolve_job_def("answer_approval").nodes
    assert node.definition.pools == set()


def test_an_answer_that_spark_fails_is_one_sentence(two_tables: Definitions, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AnalysisException("[DELTA_TABLE_NOT_FOUND] the state's approvals are gone")

    monkeypatch.setattr(DeltaSparkResource, "session", None)
    monkeypatch.setattr(pipeline, "answer_request", fail)
    answer = {"ops": {"answer": {"config": {"table": "sales"}}}}
    with DagsterInstance.ephemeral() as instance:
        ended = two_tables.resolve_job_def("answer_approval").execute_in_process(
            run_config=answer, instance=instance, raise_on_error=False
        )
    (failed,) = (event for event in ended.all_events if event.is_step_failure)
    assert sentence_of(failed).startswith("sales: ")


def test_the_component_is_scaffolded_and_makes_the_definitions() -> None:
    with create_defs_folder_sandbox() as sandbox:
        folder = sandbox.scaffold_component(component_cls=ZorderTables, scaffold_params={})
        assert (folder / "tables.yaml").is_file()
        with sandbox.load_component_and_build_defs(defs_path=folder) as (component, made):
            assert isinstance(component, ZorderTables)
            keys = made.resolve_asset_graph().materializable_asset_keys
            assert AssetKey(["my_table", "clustered_table"]) in keys


def test_a_project_s_own_resources_stand_beside_the_component_s() -> None:
    """Of one name they were refused: "Definitions objects 0 and 1 have different resources with same key 'spark'".

    So was a second executor, which all jobs of the project had where it named none.
    """
    with create_defs_folder_sandbox() as sandbox:
        sandbox.scaffold_component(component_cls=ZorderTables, scaffold_params={}, defs_path="lake")
        (sandbox.defs_folder_path / "own.py").write_text(OWN)
        with sandbox.build_all_defs() as made:
            Definitions.validate_loadable(made)
            assert made.executor is multiprocess_executor, "the project's own"
            assert made.resolve_job_def("answer_approval").executor_def is in_process_executor
            keys = made.resolve_asset_graph().materializable_asset_keys
            assert {AssetKey("mine"), AssetKey(["my_table", "clustered_table"])} <= keys


OWN = """
import dagster

@dagster.asset(required_resource_keys={"spark"})
def mine():
    return 1

@dagster.definitions
def defs():
    own = {"spark": dagster.ResourceDefinition.none_resource(), "io_manager": dagster.mem_io_manager}
    return dagster.Definitions([mine], resources=own, executor=dagster.multiprocess_executor)
"""


def test_correctness_checks_block_and_the_promise_warns(two_tables: Definitions) -> None:
    graph = two_tables.resolve_asset_graph()
    blocking = {
        key.name: graph.get(key).blocking
        for key in graph.asset_check_keys
        if key.asset_key == AssetKey(["sales", "clustered_table"])
    }
    unchanged = {"row_count_unchanged": True, "content_unchanged": True, "schema_unchanged": True}
    assert blocking == unchanged | {"promise_kept": False, "file_sizes": False}


def test_jobs_run_in_one_process_and_schedules_only_when_told_to(two_tables: Definitions) -> None:
    nightly = two_tables.resolve_job_def("nightly_relayout")
    assert nightly.executor_def is in_process_executor
    chain = {AssetKey("query_log"), BUDGET, *(AssetKey(["sales", stage]) for stage in ORDER)}
    assert nightly.asset_layer.selected_asset_keys == chain
    assert two_tables.resolve_schedule_def("nightly_relayout_schedule").default_status == DefaultScheduleStatus.STOPPED
    own = two_tables.resolve_schedule_def("relayout_parts_schedule")
    assert (own.cron_schedule, own.execution_timezone) == ("0 4 * * SUN", "Europe/Berlin")
    assert own.default_status == DefaultScheduleStatus.RUNNING
    told = build_definitions(
        configured(TableConfig(name="a", location="/a"), schedule=ScheduleConfig(cron="5 1 * * *"))
    )
    assert told.resolve_schedule_def("nightly_relayout_schedule").default_status == DefaultScheduleStatus.RUNNING


def test_a_changed_setting_makes_only_what_it_decides_stale() -> None:
    def versions(**search: int) -> dict[str, str | None]:
        table = TableConfig(name="a", location="/a", search=search)
        graph = build_definitions(configured(table)).resolve_asset_graph()
        return {stage: graph.get(AssetKey(["a", stage])).code_version for stage in ORDER}

    before, after = versions(seed=0), versions(seed=1)
    changed = {stage for stage in ORDER if before[stage] != after[stage]}
    assert changed == {"feature_candidates", "bit_allocation"}


def test_where_the_configuration_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = Path(__file__).parents[2] / "dagster_home" / "tables.yaml"
    assert config_file({"ZORDER_CONFIG": "mine.yaml", "DAGSTER_HOME": str(tmp_path)}) == Path("mine.yaml")
    assert config_file({}) == example
    with pytest.raises(ConfigError, match=f"DAGSTER_HOME={tmp_path} has none"):  # whose nights these are not
        config_file({"DAGSTER_HOME": str(tmp_path)})
    (tmp_path / "tables.yaml").write_text("tables: [{name: a, location: b, serch: 1}]")
    assert config_file({"DAGSTER_HOME": str(tmp_path)}) == tmp_path / "tables.yaml"
    monkeypatch.setenv("ZORDER_CONFIG", str(tmp_path / "tables.yaml"))
    with pytest.raises(ConfigError, match=r"tables.yaml, line 1: tables\[0\] \(a\).serch is not a known key"):
        load_definitions()


def test_values_wait_under_a_local_state(two_tables: Definitions) -> None:
    table = TableConfig(name="a", location="/a")
    assert storage_folder(PipelineConfig(tables=(table,), state="/x")) == "/x/assets"
    assert storage_folder(PipelineConfig(tables=(table,), state="file:///x")) == "/x/assets"
    assert storage_folder(PipelineConfig(tables=(table,), state="s3a://bucket/x")) is None


def test_two_hundred_tables_load() -> None:
    schedule = ScheduleConfig(cron="0 1 * * *")
    tables = [TableConfig(name=f"t{i}", location=f"/t{i}", schedule=schedule if i % 4 else None) for i in range(200)]
    repository = build_definitions(configured(*tables)).get_repository_def()
    repository.load_all_definitions()
    assert len(repository.asset_graph.materializable_asset_keys) == 2 + 5 * 200


def test_loading_starts_no_spark_and_imports_nothing_that_only_a_run_needs(tmp_path: Path) -> None:
    code = (
        "import zorder_pipeline.assets as a; a.defs\n"
        "from pyspark import SparkContext; import sys\n"
        "needless = {'matplotlib', 'optuna', 'sqlglot'} & sys.modules.keys()\n"
        "sys.exit(SparkContext._gateway is not None or bool(needless))\n"
    )
    root = Path(__file__).parents[2]
    example = str(root / "dagster_home" / "tables.yaml")
    environment = {**os.environ, "DAGSTER_HOME": str(tmp_path), "ZORDER_CONFIG": example, "PYTHONPATH": str(root)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


def test_the_data_table_is_observed_without_spark(tmp_path: Path) -> None:
    import pyarrow as pa

    write_deltalake(str(tmp_path / "t"), pa.table({"a": [1, 2]}))
    write_deltalake(str(tmp_path / "t"), pa.table({"a": [3]}), mode="append")
    tables = (TableConfig(name="t", location=str(tmp_path / "t")), TableConfig(name="u", location=str(tmp_path / "u")))
    defs = build_definitions(configured(*tables))
    graph = defs.resolve_asset_graph()
    with DagsterInstance.ephemeral() as instance:
        for name, good in (("t", True), ("u", False)):
            asset = graph.assets_def_for_key(AssetKey([name, "data"]))
            result = observe([asset], instance=instance, raise_on_error=False)
            assert result.success is good
            if good:
                (event,) = result.asset_observations_for_node(asset.node_def.name)
                assert event.metadata["Delta version"].value == 1
                assert event.tags["dagster/data_version"].endswith("-1")
            else:
                failure = result.get_step_failure_events()[0].step_failure_data
                assert "delta-rs cannot read" in str(failure.user_failure_data or failure.error)


def test_the_example_home_is_a_valid_instance_that_runs_one_spark_step_at_a_time(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "dagster_home" / "dagster.yaml"
    (tmp_path / "dagster.yaml").write_text(example.read_text())

    @asset(pool="spark")
    def anything() -> int:
        return 1

    with DagsterInstance.from_config(str(tmp_path)) as instance:
        assert not instance.telemetry_enabled
        pools = instance.get_concurrency_config().pool_config
        assert (pools.pool_granularity, pools.default_pool_limit) == (PoolGranularity.OP, 1)
        assert materialize([anything], instance=instance).success
        assert instance.event_log_storage.get_concurrency_info("spark").slot_count == 1
