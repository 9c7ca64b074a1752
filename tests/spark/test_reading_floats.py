"""Scans of tables whose log tells the bounds of floats without NaN, as delta-rs writes it: no such row is lost."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

import zorder_pipeline
from tests.spark.gathering import gathered, read_alike
from zorder_pipeline import pipeline
from zorder_pipeline.benchmarks.data import session_conf
from zorder_pipeline.relayout.snapshot import open_table

NAN = float("nan")
LATE = "c LIKE '%late%'"
FLOATS = "CAST(f AS DOUBLE) AS f, CAST(f AS FLOAT) AS g, named_struct('x', CAST(f AS DOUBLE)) AS n"


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Files of delta-rs in partitions a, b and c, and of Spark in d; NaN is in b and d, and `LATE` holds in a."""
    folder = tmp_path_factory.mktemp("floats")
    path, state = str(folder / "t"), str(folder / "state")
    for part, values, text in (("a", [0.5], "late"), ("b", [0.0, 1.0, NAN], "on time"), ("c", [0.0, 2.0], "early")):
        count = len(values)
        columns = {
            "p": pa.array([part] * count),
            "f": pa.array(values, pa.float64()),
            "g": pa.array(values, pa.float32()),
            "n": pa.StructArray.from_arrays([pa.array(values, pa.float64())], ["x"]),
            "c": pa.array([text] * count),
        }
        write_deltalake(path, pa.table(columns), mode="append", partition_by=["p"])
    rows = spark.sql(f"SELECT 'd' AS p, {FLOATS}, 'early' AS c FROM VALUES (0), (double('NaN')) AS v(f)")
    rows.coalesce(1).write.format("delta").mode("append").save(path)
    gathered(spark, path, state, LATE)
    files = open_table(spark, path).files()
    others = ["p=d/" not in str(file) for file in files.path]  # listed in any order
    told = [max(files.zones[name].high[others].tolist()) for name in ("f", "g", "n.x")]
    assert told == [2.0, pytest.approx(2.0), 2.0], "delta-rs leaves NaN out"
    return path, state


@pytest.mark.parametrize(
    ("condition", "read"),
    [
        ("p = 'a' OR f > 5", 4),
        ("p = 'a' OR g >= 5", 4),
        ("p = 'a' OR n.x > 5", 4),
        ("p = 'a' OR NOT (f <= 5)", 4),
        ("p = 'a' OR isnan(f)", 4),
        (f"{LATE} OR f > 5", 4),
        ("p = 'a' OR f = 5", 2),  # no NaN is equal to a number, and d may have anything up to NaN
        ("p = 'a' OR f IN (5, 7)", 2),
        ("p = 'a' OR f BETWEEN 5 AND 9", 2),
        ("p = 'a' OR f < 0", 1),
        ("f > 5", 1),  # Delta itself leaves b out
        ("f > 5 AND p <> 'd'", 0),
        (f"f > 5 AND {LATE}", 0),
    ],
)
def test_not_a_number_is_the_largest_whatever_the_log_tells(
    spark: SparkSession, table: tuple[str, str], condition: str, read: int
) -> None:
    assert read_alike(spark, *table, condition) == read


def test_what_excluded_a_file_is_told_where_delta_leaves_it_out(spark: SparkSession, table: tuple[str, str]) -> None:
    report = zorder_pipeline.explain(spark, table[0], "f > 5", state=table[1])
    assert [(item.kind, item.name, item.files) for item in report.excluded] == [("delta", "f", 3)]


def test_a_session_in_which_delta_asks_no_statistics_reads_what_they_hide(
    spark: SparkSession, table: tuple[str, str]
) -> None:
    with session_conf(spark, {"spark.databricks.delta.stats.skipping": "false"}):
        assert read_alike(spark, *table, "f > 5") == 4
        assert read_alike(spark, *table, "f > 5 AND p = 'c'") == 1
    assert read_alike(spark, *table, "f > 5") == 1


@pytest.mark.matrix
def test_two_zeros_in_a_list_are_two_values_to_delta(spark: SparkSession, tmp_path: Path) -> None:
    """Of lists it makes nothing where they are denied, and so reads a file of zeros and NaN."""
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    for values, text in (([0.0, NAN], "late"), ([1.0], "on time")):
        columns = {"f": pa.array(values, pa.float64()), "c": pa.array([text] * len(values))}
        write_deltalake(path, pa.table(columns), mode="append")
    gathered(spark, path, state, LATE)
    assert read_alike(spark, path, state, f"f NOT IN (0.0D, -0.0D) AND {LATE}") == 1
    assert read_alike(spark, path, state, f"f <> 0.0D AND {LATE}") == 0, "Delta itself leaves it out"


@pytest.mark.matrix
def test_files_of_a_layout_are_left_out_by_their_bounds(spark: SparkSession, tmp_path: Path) -> None:
    """Spark wrote them, whose bounds hold NaN."""
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    values = [float(i) for i in range(40)]
    for part in (values, [*values, NAN]):
        texts = pa.array(["late" if value == 3 else "on time" for value in part])
        write_deltalake(path, pa.table({"f": pa.array(part, pa.float64()), "c": texts}), mode="append")
    asked = f"f > 35 OR {LATE}"
    gathered(spark, path, state, LATE)
    assert read_alike(spark, path, state, asked) == 2
    plan = pipeline.layout_by_hand(spark, path, {"f": 3}, settings=pipeline.LearnSettings(target_file_rows=10))
    assert pipeline.apply(spark, path, plan, force=True, state=state).decision == "applied"
    gathered(spark, path, state, LATE)
    files = len(open_table(spark, path).files())
    assert 2 <= read_alike(spark, path, state, asked) <= files // 2
