"""The checks of a relayout, each of which must be able to fail."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest
from dagster import AssetCheckSeverity, Failure, RetryRequested

from zorder_pipeline.assets.checks import check_promise, check_row_count, check_schema
from zorder_pipeline.assets.common import told
from zorder_pipeline.assets.records import Relayout
from zorder_pipeline.assets.settings import gate_settings
from zorder_pipeline.config import GateConfig, TableConfig
from zorder_pipeline.errors import LostRaceError, TableError
from zorder_pipeline.model.results import ApplyResult

pytestmark = pytest.mark.dagster

GOOD = Relayout(
    ApplyResult(3, "applied", ("worth it",)), 100, 100, "{}", "{}",
    read_before=np.array([0.8, 0.6]), read_after=np.array([0.1, 0.1]), promised=0.6, promised_low=0.5,
)  # fmt: skip


def test_a_good_relayout_passes_all() -> None:
    assert all(check(GOOD).passed for check in (check_row_count, check_schema, check_promise))


def test_a_lost_row_fails() -> None:
    result = check_row_count(replace(GOOD, rows_after=99))
    assert not result.passed
    assert result.severity == AssetCheckSeverity.ERROR
    assert result.description == "100 rows before, 99 after: roll back"


def test_another_schema_fails() -> None:
    assert not check_schema(replace(GOOD, schema_after="{'a'}")).passed


@pytest.mark.parametrize(("after", "passed"), [(0.1, True), (0.2, True), (0.205, True), (0.25, False)])
def test_a_broken_promise_warns(after: float, passed: bool) -> None:
    result = check_promise(replace(GOOD, read_after=np.array([after, after])))
    assert result.passed is passed
    assert result.severity == AssetCheckSeverity.WARN


def test_without_a_promise_nothing_is_broken() -> None:
    assert check_promise(replace(GOOD, promised=None, read_after=np.array([1.0, 1.0]))).passed


def test_the_configured_share_of_new_data_reaches_the_gate() -> None:
    table = TableConfig(name="sales", location="/data/sales", gate=GateConfig(min_new_data_share=0.05))
    assert gate_settings(table).min_new_data_share == 0.05


class _Context:
    """What `told` uses of an execution context."""

    def __init__(self, retry_number: int) -> None:
        self.retry_number, self.log = retry_number, logging.getLogger("test")


def test_only_a_lost_race_is_tried_again() -> None:
    with pytest.raises(RetryRequested) as asked, told(_Context(1), "sales"):  # type: ignore[arg-type]
        raise LostRaceError("another writer was faster")
    assert asked.value.seconds_to_wait == 60
    with pytest.raises(Failure, match="sales: another writer"), told(_Context(3), "sales"):  # type: ignore[arg-type]
        raise LostRaceError("another writer was faster")
    with pytest.raises(Failure, match="sales: no table") as failed, told(_Context(0), "sales"):  # type: ignore[arg-type]
        raise TableError("no table")
    assert failed.value.allow_retries is False
