"""What the benchmarks measure inside Spark: rows scanned by its own metrics, pages by parquet-hadoop's page index."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from zorder_pipeline.benchmarks import demo_workload, harness, reading_costs, tuning
from zorder_pipeline.benchmarks.appends import after_appends
from zorder_pipeline.benchmarks.data import lineitem_table
from zorder_pipeline.benchmarks.engines import spark_times
from zorder_pipeline.benchmarks.harness import Options
from zorder_pipeline.benchmarks.iceberg import ICEBERG
from zorder_pipeline.benchmarks.page_index import PageIndex
from zorder_pipeline.benchmarks.workloads import tpch_logs, write_logs
from zorder_pipeline.pipeline import LearnSettings, stored_log


def test_pages_are_filtered_as_their_bounds_say(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    values = np.arange(4_000, dtype=np.int32)
    shuffled = np.random.default_rng(0).permutation(values)
    table = pa.table({"a": values, "b": shuffled})
    pq.write_table(table, path, write_page_index=True, data_page_size=400, use_dictionary=False, write_batch_size=100)
    index = PageIndex(spark, [path])
    bounds = [(start, start + 99) for start in range(0, 4_000, 100)]
    assert index.pages == 2 * len(bounds)
    for value in (0, 1234, 3999, 5000):
        hits = sum(low <= value <= high for low, high in bounds)
        assert index.filtered("a", value) == 1 - hits / len(bounds)  # both columns have pages of the same rows
        assert index.filtered("a", value, "b") == 1 - hits / len(bounds)
    spans = [(int(shuffled[low : high + 1].min()), int(shuffled[low : high + 1].max())) for low, high in bounds]
    assert index.filtered("b", 7) == 1 - sum(low <= 7 <= high for low, high in spans) / len(bounds)


def test_rows_scanned_are_those_of_the_files_that_were_read(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "one" / "t"
    spark.range(0, 1000, 1, 4).write.format("delta").save(str(path))
    statements = ["SELECT sum(id) FROM t WHERE id < 10", "SELECT sum(id) FROM t WHERE id < 0", "SELECT sum(id) FROM t"]
    found = spark_times(spark, {"one": path}, statements, "t", rounds=1)["one"]
    assert found.scanned is not None
    assert found.scanned.tolist() == [250, 0, 1000]
    assert (found.seconds > 0).all()
    assert (found.empty > 0).all()


@pytest.mark.matrix
def test_what_recording_costs_is_measured_as_users_record(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, work = tmp_path / "lineitem", tmp_path / "work"
    lineitem_table(spark, source, 0.001, 2)
    for name, value in (("QUICK_PAIRS", 2), ("BLOCK", 2), ("QUICK_APPENDED", 3)):
        monkeypatch.setattr(reading_costs, name, value)
    found = reading_costs.recorder(spark, source, work, True, lambda _: None)
    known = {name: figure for name, figure in found.items() if figure is not None}
    assert known["ratio low"] <= known["ratio"] <= known["ratio high"]
    assert known["append share"] == pytest.approx(known["append seconds"] / 300)
    (state,) = work.glob("recorded-*")
    log = stored_log(spark, str(state)).of_table(["lineitem"])
    assert len(log) == 3 * 2 + 3, "those of the blocks with a recording, and of the append"
    assert len({query.predicate for query in log}) == len(log)


@pytest.mark.slow
def test_nights_of_new_days_are_measured_beside_full_relayouts(spark: SparkSession, tmp_path: Path) -> None:
    source, folder = tmp_path / "lineitem", tmp_path / "work"
    lineitem_table(spark, source, 0.002, 4)
    records, later = tpch_logs(160, 40, 0, scale=0.002)
    settings = LearnSettings(trials=10, target_file_rows=1000)
    said: list[str] = []
    found = after_appends(
        spark, source, folder, write_logs(records, later, tmp_path), settings, 4, said.append, first=4
    )
    assert found["appends"] == 4
    assert 0.5 < found["rows_read_to_full_after_appends"] < 2
    assert 0.5 < (found["rows_read_to_new_layout_after_appends"] or 0.0) < 2, "a layout was learned"
    assert 0.8 < found["bytes_rewritten_per_byte_after_appends"] < 5, found
    assert 6 <= found["files_after_appends"] <= 24
    assert said[0] == "4 of 4 nights of new days"
    assert not folder.exists()


@pytest.mark.slow
def test_a_peer_that_fails_is_told_and_the_benchmark_goes_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ICEBERG.variable, "/nowhere/python")
    for name, value in (("FILES", 4), ("QUERIES", 30), ("QUICK_TRIALS", 10)):
        monkeypatch.setattr(demo_workload, name, value)
    options = Options((0, 1), tmp_path, quick=True, scale=0.001, against=("stored", "iceberg-sort"))
    said: list[str] = []
    report = harness.summarise(demo_workload.run(options, said.append))
    assert list(report["contenders"]) == ["stored", "ours", "bound"]
    assert "/nowhere/python" in report["not_run"]["Iceberg sort, 2 columns"]
    assert report["not_run"]["Delta ZORDER, 3 columns"] == "not named by --against"
    assert sum("is left out" in line for line in said) == 1  # it is not tried again


def test_forms_of_files_differ_from_ours_in_one_thing() -> None:
    ours, *others = tuning.FORMS
    assert ours == tuning.Form(harness.OURS, ours.label)
    plain = vars(ours)
    for form in others:
        assert sum(value != plain[key] for key, value in vars(form).items() if key not in ("name", "label")) == 1
        assert len(form.conf) <= 1
    assert len({form.name for form in tuning.FORMS}) == len({form.label for form in tuning.FORMS}) == len(tuning.FORMS)


@pytest.mark.slow
def test_files_are_written_in_the_forms_that_are_timed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = ("ours", "files-half", "row-groups-4", "pages-1000", "shuffled", "plain", "zstd", "asked")
    monkeypatch.setattr(tuning, "FORMS", tuple(form for form in tuning.FORMS if form.name in kept))
    for name, value in {"QUERIES": 40, "QUICK_TRIALS": 10, "QUICK_TIMED": 2, "QUICK_FILE_ROWS": 6_000}.items():
        monkeypatch.setattr(tuning, name, value)
    outcomes = tuning.run(Options((0,), tmp_path, quick=True, scale=0.004), lambda _: None)
    found = {outcome.contender: outcome for outcome in outcomes}
    assert tuple(found) == kept
    files = {name: outcome.figures["files"] for name, outcome in found.items()}
    assert files.pop("files-half") > files["ours"]
    assert set(files.values()) == {files["ours"]}
    size = {name: outcome.figures["file_bytes"] for name, outcome in found.items()}
    assert size["zstd"] < size["ours"] < min(size["plain"], size["pages-1000"], size["row-groups-4"])
    ours = found["ours"]
    for name in files:
        assert found[name].per_query["rows"].tolist() == ours.per_query["rows"].tolist(), name
    read = {name: outcome.figures["row_groups_read_fraction"] for name, outcome in found.items()}
    assert read["row-groups-4"] < read["ours"] == read["shuffled"]
    assert found["pages-1000"].per_query["scanned"].sum() < ours.per_query["scanned"].sum()
    assert not list(tmp_path.glob("tuning/*"))
