"""``zorder calibrate``: the table is only read, copies go away also on failure, and later estimates rest on it."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from zorder_pipeline import pipeline
from zorder_pipeline.errors import TableError
from zorder_pipeline.gate.cost import CostModel, RelayoutWork
from zorder_pipeline.pipeline.rewriting import calibration
from zorder_pipeline.relayout.snapshot import open_table

pytestmark = pytest.mark.matrix


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    rows = spark.range(20_000).selectExpr("id", "hash(id) AS a", "id % 7 AS `b`", "uuid() AS name")
    rows.repartition(4).write.format("delta").save(path)
    return path


def test_while_all_relayouts_are_stopped_nothing_is_timed(
    spark: SparkSession, tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relayouts of no bytes in no seconds were kept as measured costs."""
    monkeypatch.setenv("ZORDER_STOP", "1")
    state = str(tmp_path / "state")
    with pytest.raises(TableError, match="no relayout can be timed: all relayouts are stopped"):
        pipeline.calibrate(spark, table, state)
    assert not (tmp_path / "state" / "calibrations").exists()


@pytest.mark.slow
def test_costs_are_measured_on_copies_that_are_gone_afterwards(
    spark: SparkSession, tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = (calibration._Run(0, 1), calibration._Run(1, 2, split=2, bare=True))
    monkeypatch.setattr(calibration, "RUNS", runs)
    before, state = open_table(spark, table), str(tmp_path / "state")
    model, timings = pipeline.calibrate(spark, table, state)
    assert {item.kind for item in timings} == {"relayout", "scan"}
    first, second = (item for item in timings if item.kind == "relayout")
    assert (first.features, first.additional, second.features, second.additional) == (1, 3, 2, 0)
    assert first.bytes > second.bytes, "the second copy holds fewer of the files"
    now = open_table(spark, table)
    assert (now.version, sorted(now.files().path)) == (before.version, sorted(before.files().path))
    assert sorted(path.name for path in Path(state).iterdir()) == ["calibrations"], "no copy is left"
    assert pipeline.cost_model(spark, state) == model != CostModel()
    work = RelayoutWork(first.bytes, 1, 3, files=first.files)
    own, other = model.relayout(work, now.table_id), model.relayout(work, "another table")
    unmeasured = CostModel().relayout(work)
    assert own.high / own.low < other.high / other.low < unmeasured.high / unmeasured.low


def test_a_failure_leaves_no_copy_and_no_timing(
    spark: SparkSession, tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("the cluster is gone")

    monkeypatch.setattr(calibration, "_relayout", fails)
    state = tmp_path / "state"
    with pytest.raises(RuntimeError, match="cluster is gone"):
        pipeline.calibrate(spark, table, str(state))
    assert not state.exists() or not list(state.iterdir())


def test_an_empty_table_is_refused_in_a_sentence(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(0).write.format("delta").save(str(tmp_path / "t"))
    with pytest.raises(TableError, match="is empty; there is nothing to calibrate on"):
        pipeline.calibrate(spark, str(tmp_path / "t"), str(tmp_path / "state"))


def test_a_relative_state_is_a_place_for_copies(spark: SparkSession) -> None:
    """The default of ``zorder calibrate``; in SQL it would be no table's name."""
    with calibration._scratch(spark, "state") as folder:
        assert folder.startswith("file:/")
        assert "/state/calibration-copies/" in folder
