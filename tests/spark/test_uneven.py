"""Layouts of files that differ in size, in real tables: written as they are meant, and left alone afterwards."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from zorder_pipeline import pipeline
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.ranges import to_boxes
from zorder_pipeline.pipeline.judging.previews import job_of
from zorder_pipeline.pipeline.learning.confirming import confirmed
from zorder_pipeline.pipeline.records import LearnSettings
from zorder_pipeline.query_log.statements.sql import parse_statement
from zorder_pipeline.relayout import clustering, routing
from zorder_pipeline.relayout.clustering import Clustering
from zorder_pipeline.relayout.file_list import FileList
from zorder_pipeline.relayout.snapshot import open_table

pytestmark = pytest.mark.usefixtures("compiled")

ROWS, PER_FILE = 12_000, 200
SKEWED = "cast(-800 * ln(1 - pmod(hash(id, {0}), 100000) / 100000D) as int)"


def append(spark: SparkSession, path: str, first: int, rows: int, partitioned: bool = False) -> None:
    """Rows of which most lie in one corner of a and b."""
    frame = spark.range(first, first + rows, numPartitions=4).selectExpr(
        "id", *(f"{SKEWED.format(seed)} AS {name}" for seed, name in enumerate("ab")), "id % 2 AS p"
    )
    writer = frame.write.format("delta").mode("append")
    (writer.partitionBy("p") if partitioned else writer).save(path)


@pytest.fixture
def log(tmp_path: Path) -> str:
    """Queries for the dense corner."""
    low = np.random.default_rng(0).integers(0, 400, (240, 2)).tolist()
    texts = [f"SELECT id FROM t WHERE a BETWEEN {a} AND {a + 40} AND b BETWEEN {b} AND {b + 40};" for a, b in low]
    (tmp_path / "log.sql").write_text("\n".join(texts))
    return str(tmp_path / "log.sql")


def learned(spark: SparkSession, path: str, log: str) -> Plan:
    settings = LearnSettings(target_file_rows=PER_FILE, trials=20, seconds=60)
    plan = pipeline.learn(spark, path, [log], aliases=["t"], settings=settings)
    assert plan.spec is not None
    assert plan.spec.smallest_file < 0.5
    return plan


def files_of(spark: SparkSession, path: str, committer: str = "auto") -> FileList:
    return open_table(spark, path, committer=committer).files()


@pytest.mark.parametrize("partitioned", [False, True])
def test_files_are_written_as_they_are_meant_and_left_alone(
    spark: SparkSession, tmp_path: Path, log: str, partitioned: bool
) -> None:
    path = str(tmp_path / "t")
    append(spark, path, 0, ROWS, partitioned)
    plan = learned(spark, path, log)
    schema = open_table(spark, path).schema
    texts = Path(log).read_text().splitlines()
    queries = [to_boxes(query.predicate, schema) for text in texts for query in parse_statement(text)]
    told = confirmed(open_table(spark, path), plan.spec, PER_FILE, queries)
    assert told is not None
    done = pipeline.apply(spark, path, plan, force=True)
    assert done.files_added == pytest.approx(ROWS / PER_FILE, abs=3)
    files = files_of(spark, path)
    assert files.size is not None
    assert files.size.min() < 0.5 < 1.5 < files.size.max()
    filled = files.even_rows() / PER_FILE
    assert np.quantile(filled, 0.05) >= 0.5
    assert filled.max() < 2
    found = files.zone_map().shares_read(queries, ROWS)
    assert found == pytest.approx(told[1])
    assert found.mean() < 0.5 * told[0].mean()
    again = pipeline.apply(spark, path, plan, force=True)
    assert again.decision == "nothing_to_do"
    assert pipeline.compact(spark, path).decision == "nothing_to_do"


@pytest.mark.slow
def test_new_rows_are_laid_out_alone_and_their_files_are_of_the_same_sizes(
    spark: SparkSession, tmp_path: Path, log: str
) -> None:
    path = str(tmp_path / "t")
    append(spark, path, 0, ROWS)
    plan = learned(spark, path, log)
    pipeline.apply(spark, path, plan, force=True)
    before = set(files_of(spark, path).path)
    append(spark, path, ROWS, ROWS // 3)
    done = pipeline.apply(spark, path, plan, force=True)
    assert done.rows == ROWS // 3
    files = files_of(spark, path)
    assert before < set(files.path)
    new = np.array([name not in before for name in files.path])
    assert files.size is not None
    assert files.size[new].min() < 0.6
    assert new.sum() == pytest.approx(ROWS / 3 / PER_FILE, abs=3)
    assert pipeline.apply(spark, path, plan, force=True).decision == "nothing_to_do"
    spark.sql(f"DELETE FROM delta.`{path}` WHERE a < 30")  # some files lose a third of their rows or more
    again = pipeline.apply(spark, path, plan, force=True)
    assert again.files_removed < len(files) / 2
    assert pipeline.apply(spark, path, plan, force=True).decision == "nothing_to_do"


@pytest.mark.slow
def test_small_files_of_an_uneven_layout_are_merged_where_they_are_smaller_than_meant(
    spark: SparkSession, tmp_path: Path, log: str
) -> None:
    path = str(tmp_path / "t")
    append(spark, path, 0, ROWS)
    plan = learned(spark, path, log)
    finer = replace(plan, target_file_rows=PER_FILE // 4)
    pipeline.apply(spark, path, finer, force=True)
    assert len(files_of(spark, path)) == pytest.approx(4 * ROWS / PER_FILE, rel=0.1)
    settings = LearnSettings(target_file_rows=PER_FILE)
    done = pipeline.compact(spark, path, settings=settings)
    files = files_of(spark, path)
    assert done.files_added == len(files) == pytest.approx(ROWS / PER_FILE, rel=0.2)
    assert files.size is not None
    assert files.size.min() < 0.5 < 1.5 < files.size.max()
    assert (files.even_rows() / PER_FILE).max() < 2
    assert pipeline.compact(spark, path, settings=settings).decision == "nothing_to_do"
    assert pipeline.apply(spark, path, plan, force=True).decision == "nothing_to_do"


@pytest.mark.slow
def test_without_tags_files_count_as_small_only_below_the_smallest(
    spark: SparkSession, tmp_path: Path, log: str
) -> None:
    path = str(tmp_path / "t")
    append(spark, path, 0, ROWS, partitioned=True)
    plan = learned(spark, path, log)
    done = pipeline.apply(spark, path, plan, force=True, committer="public")
    assert done.files_added == pytest.approx(ROWS / PER_FILE, abs=3)
    files = files_of(spark, path, "public")
    assert files.size is not None
    assert not files.size.any()
    assert (files.rows < PER_FILE / 2).any()
    assert pipeline.apply(spark, path, plan, force=True, committer="public").decision == "nothing_to_do"


@pytest.mark.slow
def test_a_histogram_by_sample_knows_that_files_differ(
    spark: SparkSession, tmp_path: Path, log: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With so few rows per file a sample would not do; here it is made to, and sizes stay within their bounds."""
    path = str(tmp_path / "t")
    append(spark, path, 0, ROWS)
    plan = learned(spark, path, log)
    looked: list[bool] = []

    def bounded(cuts: list[routing.PartitionCuts], target: int) -> bool:
        looked.append(routing.surely_bounded(cuts, target))
        return looked[-1]

    monkeypatch.setattr(routing, "SAMPLED_ROWS", 20)
    monkeypatch.setattr(routing, "WORTH_SAMPLING", 0.9)
    monkeypatch.setattr(clustering, "surely_bounded", bounded)
    job = job_of(plan)
    assert isinstance(job, Clustering)
    pipeline.apply(spark, path, plan, force=True)
    assert len(looked) == 1
    filled = files_of(spark, path).even_rows() / PER_FILE
    assert filled.max() < 3
