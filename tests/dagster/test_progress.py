"""What a run says on the command line while it goes on."""

import pytest
from dagster import AssetExecutionContext, AssetKey, DagsterInstance, Definitions, Failure, asset

from zorder_pipeline.assets.common import Shelf
from zorder_pipeline.assets.partitions import relayout_options
from zorder_pipeline.assets.run import _execute
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
        relayout_options(context, shelf)["progress"]("writing 3 files")

    said: list[str] = []
    with DagsterInstance.ephemeral() as instance:
        _execute(Definitions([rewritten]), None, [AssetKey(["rewritten"])], instance, said.append)
    assert said == ["orders: writing 3 files"]
