"""Values between two assets: one sentence where there is none that can be read."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from dagster import (
    AssetIn,
    AssetKey,
    DagsterInstance,
    Definitions,
    Failure,
    InputContext,
    IOManager,
    OutputContext,
    asset,
    in_process_executor,
)

from zorder_pipeline.assets.records import SelectedFeatures
from zorder_pipeline.assets.stored_values import StoredValues
from zorder_pipeline.features.select import Analysis

pytestmark = pytest.mark.dagster


class Nothing(IOManager):
    """Files of which none is there."""

    def handle_output(self, context: OutputContext, obj: object) -> None:
        raise NotImplementedError

    def load_input(self, context: InputContext) -> object:
        raise FileNotFoundError


def of_before() -> SelectedFeatures:
    """As an earlier version stored it, whose `Analysis` had one field less."""
    analysis = Analysis((), (), (), (), (), ())
    vars(analysis).pop("ranked")
    return SelectedFeatures(analysis)


def test_a_value_that_is_gone_or_cannot_be_read_is_told_in_one_sentence(tmp_path: Path) -> None:
    seen: list[int] = []

    @asset(key=["sales", "bit_allocation"])
    def made() -> int:
        return 7

    @asset(key=["sales", "cost_benefit"], ins={"made": AssetIn(key=AssetKey(["sales", "bit_allocation"]))})
    def used(made: int) -> None:
        seen.append(made)

    stored = StoredValues(base_dir=str(tmp_path / "assets"))
    defs = Definitions(assets=[made, used], resources={"io_manager": stored}, executor=in_process_executor)
    job = defs.resolve_implicit_global_asset_job_def()
    value = tmp_path / "assets" / "sales" / "bit_allocation"
    with DagsterInstance.ephemeral() as instance:
        assert job.execute_in_process(instance=instance).success
        assert seen == [7]
        for content, cause in (
            (None, "is not there in"),
            (b"no pickle", "cannot be read (UnpicklingError) in"),
            (pickle.dumps(pickle.Pickler)[:-20] + b"NoSuchThing.", "cannot be read"),
            (pickle.dumps({"sales": [of_before()]}), "cannot be read (AttributeError) in"),
        ):
            value.unlink()
            if content is not None:
                value.write_bytes(content)
            again = job.execute_in_process(
                instance=instance, asset_selection=[AssetKey(["sales", "cost_benefit"])], raise_on_error=False
            )
            (failure,) = [event.step_failure_data for event in again.all_events if event.is_step_failure]
            assert failure.user_failure_data is not None, failure.error
            said = failure.user_failure_data.description or ""
            assert said.startswith(f"sales: what sales/bit_allocation made last {cause}")
            assert said.endswith("materialize sales/bit_allocation again, in the UI or with zorder run --table sales")
            assert failure.user_failure_data.metadata["table"].value == "sales"
            value.write_bytes(b"")


@pytest.mark.parametrize(
    ("key", "end"),
    [
        (["query_log"], "materialize query_log again, in the UI or with zorder run"),
        (["night", "nightly_budget"], "materialize night/nightly_budget again, in the UI or with zorder run"),
        (["night", "cost_benefit"], "materialize night/cost_benefit again, in the UI or with zorder run --table night"),
    ],
)
def test_what_belongs_to_no_table_is_not_made_again_by_the_name_of_one(
    key: list[str], end: str, tmp_path: Path
) -> None:
    stored, context = StoredValues(base_dir=str(tmp_path)), InputContext(asset_key=AssetKey(key))
    stored._files = Nothing()
    with pytest.raises(Failure) as failed:
        stored.load_input(context)
    assert (failed.value.description or "").endswith(f": {end}")


def test_two_configurations_with_one_instance_do_not_read_each_others_values(tmp_path: Path) -> None:
    """Both have an asset ``query_log``, and the other one's night may come in between two assets of this one's."""
    seen: list[str] = []

    def of(state: str) -> Definitions:
        @asset
        def query_log() -> str:
            return state

        @asset
        def used(query_log: str) -> None:
            seen.append(query_log)

        stored = StoredValues(base_dir=None, state=state)
        return Definitions([query_log, used], resources={"io_manager": stored}, executor=in_process_executor)

    lake, sea = (of(state).resolve_implicit_global_asset_job_def() for state in ("s3a://lake/state", "s3a://sea/state"))
    with DagsterInstance.local_temp(str(tmp_path)) as instance:
        for job, name in ((lake, "query_log"), (sea, "query_log"), (lake, "used"), (sea, "used")):
            assert job.execute_in_process(instance=instance, asset_selection=[AssetKey(name)]).success
    assert seen == ["s3a://lake/state", "s3a://sea/state"]
