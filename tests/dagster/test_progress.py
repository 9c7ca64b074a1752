"""What a run says on the command line while it goes on."""

import pytest
from dagster import (
    AssetCheckResult,
    AssetCheckSpec,
    AssetExecutionContext,
    AssetKey,
    DagsterInstance,
    Definitions,
    Failure,
    MaterializeResult,
    asset,
    multi_asset_check,
)

from zorder_pipeline.assets.common import Shelf
from zorder_pipeline.assets.partitions import relayout_settings
from zorder_pipeline.assets.run import _execute, _outcome
from zorder_pipeline.config import PipelineConfig

pytestmark = pytest.mark.dagster


def test_a_failure_is_told_when_it_happens_and_nothing_of_steps_that_are_not_done() -> None:
    @asset
    def looked_at(context: AssetExecutionContext) -> None:
        context.log.info("reading 3 log files")
        raise Failure("orders: there is no Delta table at /lake/orders", allow_retries=False)

    @asset(deps=[looked_at])
    def learned() -> None: ...

    @asset(deps=[learned])
    def judged() -> None: ...

    said: list[str] = []
    keys = [AssetKey([name]) for name in ("looked_at", "learned", "judged")]
    with DagsterInstance.ephemeral() as instance:
        _execute(Definitions([looked_at, learned, judged]), None, keys, instance, said.append)
    assert said == ["reading 3 log files", "failed: orders: there is no Delta table at /lake/orders"]


def test_every_line_about_a_table_names_it() -> None:
    config = PipelineConfig.model_validate({"tables": [{"name": "orders", "location": "/lake/orders"}]})
    shelf = Shelf(config, config.tables[0])

    @asset
    def rewritten(context: AssetExecutionContext) -> None:
        relayout_settings(context, shelf).progress("writing 3 files")

    said: list[str] = []
    with DagsterInstance.ephemeral() as instance:
        _execute(Definitions([rewritten]), None, [AssetKey(["rewritten"])], instance, said.append)
    assert said == ["orders: writing 3 files"]


def test_a_check_that_blocks_is_no_failure_of_the_relayout() -> None:
    """It was rewritten, so that its figures, and the command that takes it back, are told with the failed check."""
    key = AssetKey(["orders", "clustered_table"])

    @asset(key=key)
    def rewritten() -> MaterializeResult:
        return MaterializeResult(metadata={"reasons": "- worth it", "undo": "zorder rollback --table /t"})

    @multi_asset_check(
        name="orders__clustered_table_checks", specs=[AssetCheckSpec("content_unchanged", asset=key, blocking=True)]
    )
    def checked() -> AssetCheckResult:
        return AssetCheckResult(passed=False, asset_key=key, check_name="content_unchanged")

    said: list[str] = []
    with DagsterInstance.ephemeral() as instance:
        result = _execute(Definitions([rewritten], asset_checks=[checked]), None, [key], instance, said.append)
    outcome = _outcome("orders", result.all_events)
    assert (outcome.decision, outcome.reasons) == ("applied", ("worth it",))
    assert (outcome.failed_checks, outcome.figures["undo"]) == (("content_unchanged",), "zorder rollback --table /t")
    assert not said
