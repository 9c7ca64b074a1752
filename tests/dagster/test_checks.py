"""The checks of a relayout, each of which must be able to fail."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dagster import AssetCheckSeverity, Failure, RetryRequested
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import AnalysisException

from zorder_pipeline.assets.checks import (
    CHECKS,
    check_content,
    check_file_sizes,
    check_promise,
    check_row_count,
    check_schema,
)
from zorder_pipeline.assets.common import told
from zorder_pipeline.assets.query_log import check_parse_rate
from zorder_pipeline.assets.records import Relayout
from zorder_pipeline.assets.settings import gate_settings
from zorder_pipeline.config import GateConfig, TableConfig
from zorder_pipeline.errors import LostRaceError, TableError
from zorder_pipeline.model.results import ApplyResult
from zorder_pipeline.model.workload import QueryLog
from zorder_pipeline.pipeline.rewriting.proof import NOT_KNOWN, NOTHING, Proof

pytestmark = pytest.mark.dagster

PROOF = Proof((100, 100), ("{}", "{}"), ("{}", "{}"), ("7", "7"), "hash of every row", (50, 60, 40, 55, 45))
GOOD = Relayout(
    ApplyResult(3, "applied", ("worth it",)), PROOF,
    read_before=np.array([0.8, 0.6]), read_after=np.array([0.1, 0.1]), promised=0.6, promised_low=0.5,
    target_file_rows=50,
)  # fmt: skip


def with_proof(**changes: Any) -> Relayout:
    return replace(GOOD, proof=replace(PROOF, **changes))


def test_a_good_relayout_passes_all() -> None:
    assert [check(GOOD).passed for _, check, _ in CHECKS] == [True] * 5


def test_a_lost_row_fails() -> None:
    result = check_row_count(with_proof(rows=(100, 99)))
    assert not result.passed
    assert result.severity == AssetCheckSeverity.ERROR
    assert result.description == "100 rows before, 99 after: take it back with zorder rollback, and report it"


def test_other_content_fails() -> None:
    result = check_content(with_proof(contents=("7", "8")))
    assert (result.passed, result.severity) == (False, AssetCheckSeverity.ERROR)
    assert (result.description or "").startswith("the rows differ by hash of every row")


def test_what_nothing_was_compared_of_fails() -> None:
    results = [check(with_proof(contents=NOT_KNOWN, compared=NOTHING)) for _, check, _ in CHECKS]
    assert not any(result.passed for result in results)
    said = "compared was nothing, as the table's history has no commit of ours"
    assert all((result.description or "").startswith(said) for result in results)
    assert [result.severity == AssetCheckSeverity.ERROR for result in results] == [blocking for *_, blocking in CHECKS]


@pytest.mark.parametrize(
    ("changes", "named"),
    [({"schemas": ("{}", "{'a'}")}, "schema differ"), ({"properties": ("{}", "{'b'}")}, "table properties differ")],
)
def test_another_schema_or_property_fails(changes: dict[str, Any], named: str) -> None:
    result = check_schema(with_proof(**changes))
    assert not result.passed
    assert (result.description or "").startswith(named)


@pytest.mark.parametrize(("rows", "passed"), [((24, 50, 50, 50, 50), True), ((24, 101, 50, 50), False), ((), True)])
def test_odd_files_are_worth_a_look(rows: tuple[int, ...], passed: bool) -> None:
    result = check_file_sizes(with_proof(file_rows=rows))
    assert result.passed is passed
    assert result.severity == AssetCheckSeverity.WARN


def test_a_log_that_is_hardly_understood_warns() -> None:
    log = QueryLog((), lines=10, used=7, ignored={"SET": 1}, quarantined={"no SQL": 2})
    nothing = QueryLog((), 0, 0)
    assert check_parse_rate(log, nothing, 0.8).passed
    result = check_parse_rate(log, nothing, 0.9)
    assert (result.passed, result.severity) == (False, AssetCheckSeverity.WARN)
    assert "most often: no SQL (2)" in (result.description or "")
    assert check_parse_rate(nothing, nothing, 0.9).passed


def test_a_log_that_broke_today_is_not_hidden_by_all_that_was_read_before() -> None:
    log = QueryLog((), lines=1000, used=980, ignored={}, quarantined={"no SQL": 20})
    broken = QueryLog((), lines=20, used=2, ignored={}, quarantined={"no SQL": 18})
    result = check_parse_rate(log, broken, 0.9)
    assert (result.passed, result.severity) == (False, AssetCheckSeverity.WARN)
    assert result.description == (
        "98.0% of 1,000 statements can be read; 10.0% of 20 new statements can be read, less than 90.0%; "
        "most often: no SQL (18); see quarantine"
    )
    told = {name: value.value for name, value in result.metadata.items()}
    assert told == {"statements": 1000, "quarantined": 20, "new statements": 20, "new quarantined": 18}
    assert check_parse_rate(log, QueryLog((), lines=20, used=19, quarantined={"no SQL": 1}), 0.9).passed
    assert check_parse_rate(log, QueryLog((), lines=19, used=9, quarantined={"no SQL": 10}), 0.9).passed, "a few"


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
    waits = {
        name: gate_settings(TableConfig(name="sales", location="/data/sales", gate=gate)).payback_days
        for name, gate in {
            "default": GateConfig(),
            "seed": GateConfig(preset="seed"),
            "both": GateConfig(preset="seed", payback_days=2),
        }.items()
    }
    assert (gate_settings(table).payback_days, waits) == (0.0, {"default": 1.0, "seed": 0.0, "both": 2.0})


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
    told_facts = {name: value.value for name, value in failed.value.metadata.items()}
    assert told_facts["table"] == "sales"
    assert told_facts["cause"] == "no table"
    assert "tables.yaml" in str(told_facts["next step"])


def test_what_spark_fails_with_is_told_in_one_sentence_and_a_mistake_of_ours_by_its_trace() -> None:
    """Such as a file of the table's data that is gone: a page of Java would hide which."""
    said = "An error occurred while calling o1.getResult.\n: a.b.SparkException: in a stage\n\tat a.b(C.scala:1)\n"
    lost = Py4JError(f"{said}Caused by: java.io.FileNotFoundException: File /t/1.parquet does not exist\n\tat a.b(C:2)")
    for error, cause in (
        (lost, "File /t/1.parquet does not exist"),
        (ConnectionRefusedError(111, "Connection refused"), "Spark's Java process ended; "),
        (Py4JNetworkError("Answer from Java side is empty"), "Spark's Java process ended; "),
        (AnalysisException("[PATH_NOT_FOUND] Path does not exist: /t\nand more"), "[PATH_NOT_FOUND] Path does not"),
    ):
        with pytest.raises(Failure) as failed, told(_Context(0), "sales"):  # type: ignore[arg-type]
            raise error
        assert str(failed.value.description).startswith(f"sales: {cause}")
        assert failed.value.allow_retries is False
        assert str(failed.value.metadata["cause"].value).startswith(cause)
        assert "\n" not in str(failed.value.metadata["cause"].value)
    with pytest.raises(ZeroDivisionError), told(_Context(0), "sales"):  # type: ignore[arg-type]
        raise ZeroDivisionError
