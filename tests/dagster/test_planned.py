"""A run whose process finds another tables.yaml than the one that the code location loaded when it planned the run."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path

import pytest
from dagster import AssetKey, DagsterInstance, Definitions
from dagster._core.definitions.definitions_load_context import DefinitionsLoadContext, DefinitionsLoadType
from dagster._utils.test.definitions import scoped_reconstruction_metadata

from zorder_pipeline.assets import build_definitions
from zorder_pipeline.config import PipelineConfig, ScheduleConfig, TableConfig, TriggerConfig
from zorder_pipeline.model.workload import QueryLog

pytestmark = pytest.mark.dagster

SALES, PARTS = (TableConfig(name=name, location=f"/data/{name}") for name in ("sales", "parts"))


def as_run(loaded: Sequence[TableConfig], now: Sequence[TableConfig], state: Path) -> Definitions:
    """What a run's process defines that finds the tables ``now`` after the code location had ``loaded`` others."""
    loading = DefinitionsLoadContext(DefinitionsLoadType.INITIALIZATION)
    with DefinitionsLoadContext.scoped(loading):
        build_definitions(PipelineConfig(tables=tuple(loaded), state=str(state)))
    with scoped_reconstruction_metadata(loading.get_pending_reconstruction_metadata()):
        return build_definitions(PipelineConfig(tables=tuple(now), state=str(state)))


def steps(definitions: Definitions, job: str) -> set[str]:
    return set(definitions.resolve_job_def(job).graph.node_dict)


def test_a_night_has_the_steps_that_it_was_planned_with(tmp_path: Path) -> None:
    drifting = PARTS.model_copy(update={"trigger": TriggerConfig(drift=0.3)})
    alone = SALES.model_copy(update={"schedule": ScheduleConfig(cron="0 4 * * *")})
    planned = build_definitions(PipelineConfig(tables=(SALES, drifting), state=str(tmp_path)))
    for now in ([drifting], [alone, PARTS], [SALES, PARTS, TableConfig(name="new", location="/data/new")]):
        found = as_run([SALES, drifting], now, tmp_path)
        Definitions.validate_loadable(found)
        for job in ("nightly_relayout", "relayout_parts"):
            assert steps(found, job) == steps(planned, job)


def test_a_table_that_was_taken_out_is_skipped_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "query_log").write_bytes(pickle.dumps(QueryLog((), 0, 0)))
    found = as_run([SALES, PARTS], [SALES], tmp_path).resolve_job_def("nightly_relayout")
    key = AssetKey(["parts", "feature_candidates"])
    with DagsterInstance.ephemeral() as instance:
        ended = found.execute_in_process(asset_selection=[key], instance=instance)
        (noted,) = ended.get_asset_observation_events()
    assert ended.success
    said = noted.asset_observation_data.asset_observation.description
    assert said is not None
    assert said.startswith("parts is no longer in tables.yaml and stays as it is; press Reload")
