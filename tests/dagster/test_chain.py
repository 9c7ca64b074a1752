"""The whole chain as the nightly job on real Delta tables: one rewritten, one declined, one unasked, one missing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from dagster import AssetKey, DagsterEventType, ExecuteInProcessResult
from deltalake import DeltaTable

from tests.json_page import json_printed
from zorder_pipeline.assets.checks import CHECKS
from zorder_pipeline.assets.openmetrics import open_metrics
from zorder_pipeline.assets.partition_keys import keep_in_step
from zorder_pipeline.assets.run import _outcome, run_job, run_tables
from zorder_pipeline.assets.upstream import look
from zorder_pipeline.cli.runs import _told
from zorder_pipeline.errors import ConfigError, ZorderError

from .conftest import DAYS, ROWS, write_daily

if TYPE_CHECKING:
    from .conftest import Night

pytestmark = [pytest.mark.dagster, pytest.mark.spark]

STAGES = ["feature_candidates", "correlation_graph", "bit_allocation", "cost_benefit", "clustered_table"]


def materialized(night: Night, table: str) -> dict[str, dict[str, Any]]:
    """Metadata by stage of what the night materialized of a table."""
    found = {}
    for event in night.result.get_asset_materialization_events():
        key = event.asset_key
        if key is not None and key.path[0] == table:
            found[key.path[-1]] = {name: value.value for name, value in event.materialization.metadata.items()}
    return found


def observed(night: Night, table: str) -> list[tuple[str, str | None]]:
    events = [e for e in night.result.all_events if e.event_type == DagsterEventType.ASSET_OBSERVATION]
    observations = [event.asset_observation_data.asset_observation for event in events]
    mine = [o for o in observations if o.asset_key.path[0] == table and o.asset_key.path[-1] != "data"]
    return [(o.asset_key.path[-1], o.description) for o in mine]


def version(night: Night, table: str) -> int:
    return DeltaTable(str(night.folder / table)).version()


def test_the_log_is_counted_with_its_reasons(night: Night) -> None:
    facts = materialized(night, "query_log")["query_log"]
    assert (facts["statements"], facts["used"], facts["quarantined"]) == (331, 330, 1)
    assert "| sales | 120 |" in facts["scans by table"]
    assert "day BETWEEN" in facts["queries by form"]


def test_a_table_that_pays_is_rewritten_and_measured(night: Night) -> None:
    stages = materialized(night, "sales")
    assert list(stages) == STAGES
    assert version(night, "sales") == 16
    assert DeltaTable(str(night.folder / "sales")).to_pyarrow_table().num_rows == 8000
    done = stages["clustered_table"]
    assert (done["dagster/row_count"], done["dagster/table_name"]) == (8000, "sales")
    assert [column.name for column in done["dagster/column_schema"].columns] == ["day", "sent", "part"]
    assert done["dagster/uri"] == f"file://{night.folder}/sales"
    assert set(done["dagster/column_lineage"].deps_by_column) == {"day", "sent", "part"}
    assert "rows read per later query" in done["before and after"]


def test_metadata_holds_pictures_and_tables(night: Night) -> None:
    stages = materialized(night, "sales")
    pictures = [
        stages["correlation_graph"]["graph"],
        stages["bit_allocation"]["layout"],
        stages["bit_allocation"]["share of rows read by layout"],
        stages["bit_allocation"]["rows read by later queries"],
        stages["bit_allocation"]["search"],
        stages["bit_allocation"]["files in the plane of two columns"],
        stages["clustered_table"]["rows read by later queries"],
        stages["clustered_table"]["zone maps"],
    ]
    assert all("](data:image/png;base64," in picture for picture in pictures)
    assert "| day |" in stages["feature_candidates"]["candidates"]
    assert "| day | sent | 1 | ascending |" in stages["correlation_graph"]["graph"]
    assert (stages["correlation_graph"]["primary columns"], stages["bit_allocation"]["rows per file"]) == (
        "day, part",
        500,
    )
    assert "worth it" in stages["cost_benefit"]["reasons"]


def test_the_checks_are_run_and_pass(night: Night) -> None:
    checks = {(e.asset_key.path[0], e.check_name): e.passed for e in night.result.get_asset_check_evaluations()}
    names = [name for name, _, _ in CHECKS]
    assert checks == {("query_log", "parse_rate"): True} | {(t, n): True for t in ("sales", "daily") for n in names}


def test_a_declined_table_is_skipped_with_its_reason(night: Night) -> None:
    assert list(materialized(night, "seldom")) == STAGES[:-1]
    ((stage, reason),) = observed(night, "seldom")
    assert stage == "clustered_table"
    assert reason is not None
    assert reason.startswith("declined: not worth it")
    assert version(night, "seldom") == 15


def test_the_budget_saw_every_table_that_was_judged(night: Night) -> None:
    """It comes after the analysis of all tables and before the relayouts, though one of them fails."""
    begun = ("STEP_START", "STEP_FAILURE")
    steps = [e.step_key for e in night.result.all_events if e.event_type_value in begun]
    place = steps.index("night__nightly_budget")
    assert {"sales__cost_benefit", "seldom__cost_benefit", "missing__feature_candidates"} <= set(steps[:place])
    assert {"sales__clustered_table", "seldom__clustered_table"} <= set(steps[place:])
    facts = materialized(night, "night")["nightly_budget"]
    assert (facts["approved"], facts["postponed"], facts["budget, core-hours"]) == (2, 0, "no limit")
    assert "| seldom | declined |" in facts["tables"]
    offered = night.instance.get_latest_materialization_event(AssetKey(["night", "offers"]))
    assert offered is not None
    assert offered.asset_materialization is not None
    assert "| sales | approved |" in str(offered.asset_materialization.metadata["tables"].value)


def test_a_table_that_nobody_asks_is_left_alone(night: Night) -> None:
    assert materialized(night, "unasked") == {}
    ((stage, reason),) = observed(night, "unasked")
    assert (stage, reason) == (
        "feature_candidates",
        "no usable query of unasked among 331 statements; the table stays as it is",
    )


def test_only_the_missing_table_fails_and_says_so(night: Night) -> None:
    failed = night.result.get_step_failure_events()
    assert [event.step_key for event in failed] == ["missing__feature_candidates"]
    sentence = failed[0].step_failure_data.user_failure_data.description
    assert sentence.startswith(f"missing: {night.folder}/nowhere is no Delta table")


@pytest.mark.matrix
def test_one_asset_can_be_made_again_and_nothing_is_left_to_do(night: Night) -> None:
    """From the values that the night left under the state folder, as the UI does it."""
    keys = [AssetKey(["sales", "cost_benefit"]), AssetKey(["sales", "clustered_table"])]
    job = night.defs.resolve_job_def("nightly_relayout")
    again = job.execute_in_process(instance=night.instance, asset_selection=keys)
    assert again.success
    (event,) = again.get_asset_materialization_events()
    assert event.materialization.metadata["decision"].value == "nothing to do"
    assert version(night, "sales") == 16


@pytest.mark.matrix
def test_the_command_line_hears_of_every_table(night: Night) -> None:
    chosen = ["seldom", "unasked", "missing"]
    said: list[str] = []
    seldom, unasked, missing = run_tables(night.config, chosen, instance=night.instance, progress=said.append)
    assert "no usable query of unasked among 331 statements; the table stays as it is" in said
    assert [outcome.table for outcome in (seldom, unasked, missing)] == chosen
    assert (seldom.decision, seldom.reasons[0][:12]) == ("declined", "not worth it")
    assert seldom.figures["Delta version"] == version(night, "seldom") == 15
    assert (unasked.decision, unasked.reasons[0][:15]) == ("not_asked", "no usable query")
    assert (missing.decision, len(missing.reasons)) == ("failed", 1)
    assert missing.reasons[0].startswith(f"missing: {night.folder}/nowhere is no Delta table")
    sales, daily = (_outcome(table, night.result.all_events) for table in ("sales", "daily"))
    assert (sales.decision, daily.decision) == ("applied", "applied")
    every = (sales, daily, seldom, unasked, missing)
    told = json_printed("run", json.dumps({"tables": {o.table: _told(o) for o in every}}))
    assert told["tables"]["sales"]["version"] == 16
    assert told["tables"]["sales"]["undo"] == f"zorder rollback --table {night.folder}/sales"
    assert not {"path", "in_words"} & told["tables"]["sales"].keys()
    assert told["tables"]["missing"] == {"decision": "failed", "reasons": list(missing.reasons)}
    with pytest.raises(ConfigError, match="no table seldon is configured"):
        run_tables(night.config, ["seldon"])


@pytest.mark.slow
def test_the_demo_gets_plan_and_decision_of_one_table(night: Night) -> None:
    done = run_job(night.defs, night.instance, "seldom")
    assert done.plan.table.endswith("/seldom")
    assert done.plan.unsought.startswith("not worth it")  # the night before has looked
    assert done.preview.decision == "declined"
    assert done.relayout is None
    with pytest.raises(ZorderError, match=r"missing: .* is no Delta table"):
        run_job(night.defs, night.instance, "missing")
    with pytest.raises(ZorderError, match="no usable query of unasked"):
        run_job(night.defs, night.instance, "unasked")


def test_each_partition_of_a_night_has_its_own_record(night: Night) -> None:
    asset = AssetKey(["daily", "clustered_partitions"])
    assert night.instance.get_materialized_partitions(asset) == {f"ds={ds}" for ds in DAYS}
    made = night.result.get_asset_materialization_events()
    records = [e for e in made if e.asset_key == asset]
    (table,) = (e for e in made if e.asset_key == AssetKey(["daily", "clustered_table"]))
    whole = table.materialization.metadata["bytes rewritten"].value
    assert isinstance(whole, int)
    for event in records:
        facts = {name: value.value for name, value in event.materialization.metadata.items()}
        assert (facts["decision"], facts["dagster/partition_row_count"]) == ("applied", 2 * ROWS)
        assert (facts["files removed"], facts["files added"]) == (2, pytest.approx(3, abs=1))
        assert (facts["rows rewritten"], facts["files left alone"]) == (2 * ROWS, 0)
        assert facts["bytes rewritten"] == pytest.approx(whole / len(DAYS), rel=0.2)
        assert "seconds" not in facts, "the night's are those of all partitions"
    assert {e.partition for e in records} == night.instance.get_materialized_partitions(asset)


def test_a_relayout_makes_no_new_version_of_the_data(night: Night) -> None:
    """Else every asset were stale as soon as its own table is relaid."""
    seen = look(night.config.table("sales"))
    assert (seen.version, seen.data_version) == (16, 15)
    assert seen.relaid.read_at < seen.relaid.at
    assert seen.new_share(seen.relaid.read_at) == 0.0, "the new files are ours, and no data of others"
    observed = night.instance.fetch_observations(AssetKey(["sales", "data"]), limit=1).records[0]
    assert observed.asset_observation is not None
    assert observed.asset_observation.tags["dagster/data_version"] == seen.state


@pytest.mark.slow
def test_partitions_are_done_one_by_one_and_a_broken_one_leaves_the_others(night: Night) -> None:
    """One of two new files is damaged: the backfill of all days does the others and names what is left."""
    new = "2026-01-04"
    write_daily(night.folder / "daily", np.random.default_rng(5), [new, DAYS[0]])
    look_again = look(night.config.table("daily"))
    keep_in_step(night.instance, "daily", look_again.partitions)
    damaged = next(iter((night.folder / "daily" / f"ds={new}").glob("*.parquet")))
    content = damaged.read_bytes()
    damaged.write_bytes(content[:100])
    asset = AssetKey(["daily", "clustered_partitions"])
    chosen = {"dagster/asset_partition_range_start": f"ds={DAYS[0]}", "dagster/asset_partition_range_end": f"ds={new}"}
    job = night.defs.resolve_implicit_global_asset_job_def()

    def backfill() -> ExecuteInProcessResult:
        return job.execute_in_process(
            instance=night.instance, asset_selection=[asset], tags=chosen, raise_on_error=False
        )

    broken = backfill()
    assert {e.partition for e in broken.get_asset_materialization_events()} == {f"ds={ds}" for ds in DAYS}
    failure = broken.get_step_failure_events()[0].step_failure_data.user_failure_data
    assert failure is not None
    assert (failure.description or "").startswith(f"daily ds={new}: ")
    assert "the other 3 of 4 partitions are done" in (failure.description or "")
    assert {"table", "cause", "next step"} <= failure.metadata.keys()
    damaged.write_bytes(content)
    outcome = run_tables(night.config, ["daily"], [f"ds={new}", "ds=1999-01-01"], instance=night.instance)[0]
    assert outcome.partitions[f"ds={new}"]["decision"] == "applied"
    assert outcome.partitions["ds=1999-01-01"]["decision"] == "failed"
    json_printed("run", json.dumps({"tables": {"daily": _told(outcome)}}))
    assert outcome.reasons == ("ds=1999-01-01: there is no such partition; it has 4, e.g. ds=2026-01-01",)
    assert DeltaTable(str(night.folder / "daily")).to_pyarrow_table().num_rows == 10 * ROWS


def test_partitions_are_of_one_table_that_has_some(night: Night) -> None:
    with pytest.raises(ConfigError, match="one --table, not 5"):
        run_tables(night.config, partitions=["ds=1"])
    with pytest.raises(ConfigError, match="sales has no partitions"):
        run_tables(night.config, ["sales"], ["ds=1"])


def test_figures_for_alerting(night: Night) -> None:
    lines = open_metrics(night.instance, night.config).splitlines()
    assert lines[-1] == "# EOF"
    assert len(lines) == len(set(lines)), "a sample twice"
    figures = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert float(figures["zorder_log_statements"]) == 331
    assert float(figures['zorder_check_passed{table="sales",check="row_count_unchanged"}']) == 1
    checked = float(figures['zorder_check_timestamp_seconds{table="sales",check="row_count_unchanged"}'])
    assert checked >= float(figures['zorder_relaid_timestamp_seconds{table="sales"}'])  # not when it was planned
    assert float(figures['zorder_decision{table="seldom",decision="declined"}']) == 1
    assert float(figures['zorder_decision{table="unasked",decision="not_asked"}']) == 1
    assert float(figures['zorder_relaid_timestamp_seconds{table="sales"}']) > 1.7e9
    failed = {name: float(value) for name, value in figures.items() if name.startswith("zorder_failed_")}
    assert {name for name, moment in failed.items() if moment} == {'zorder_failed_timestamp_seconds{table="missing"}'}
    assert len(failed) == 5
    assert not any("missing" in name for name in figures.keys() - failed.keys())
