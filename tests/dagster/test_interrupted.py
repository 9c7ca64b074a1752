"""A run of the command line that somebody stops."""

from __future__ import annotations

import pytest
from dagster import AssetKey, DagsterInstance, Definitions, Failure, asset

from zorder_pipeline.assets.run import _execute

pytestmark = pytest.mark.dagster


def test_an_interrupted_run_is_no_failed_table() -> None:
    @asset
    def interrupted() -> None:
        raise KeyboardInterrupt

    @asset
    def wrapped() -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise Failure("it stopped") from error

    @asset
    def failed() -> None:
        raise Failure("no such table")

    definitions = Definitions([interrupted, wrapped, failed])
    with DagsterInstance.ephemeral() as instance:
        for name in ("interrupted", "wrapped"):
            with pytest.raises(KeyboardInterrupt):
                _execute(definitions, None, [AssetKey([name])], instance, None)
        assert not _execute(definitions, None, [AssetKey(["failed"])], instance, None).success
