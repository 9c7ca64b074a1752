"""Which Spark and Delta work together, and what differs between them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from zorder_pipeline.errors import UnsupportedTableError
from zorder_pipeline.relayout.key_column import FILE
from zorder_pipeline.relayout.routing import by_hash, keys_of_partitions, to_files
from zorder_pipeline.relayout.sessions import session_versions
from zorder_pipeline.relayout.snapshot import open_table
from zorder_pipeline.versions import check_pair


def test_this_session_is_a_supported_pair(spark: SparkSession) -> None:
    check_pair(*session_versions(spark))


def test_delta_finds_the_session_in_a_thread_of_our_own(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(3).write.format("delta").save(path)

    def look() -> tuple[bool, bool]:
        active = spark._jvm.org.apache.spark.sql.classic.SparkSession.getActiveSession
        before = active().isDefined()
        open_table(spark, path)
        return before, active().isDefined()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(look).result() == (False, True)


@pytest.mark.parametrize(
    ("spark", "delta"), [("3.5.9", "3.3.2"), ("4.2.0", "4.3.1"), ("5.0.0", "5.0.0"), ("4.2.0", "")]
)
def test_another_pair_is_refused_with_the_range(spark: str, delta: str) -> None:
    with pytest.raises(
        UnsupportedTableError, match=rf"Spark {spark} with Delta {delta}; supported are Spark 4\.0 with"
    ):
        check_pair(spark, delta)


@pytest.mark.parametrize("number", [1, 2, 7, 64, 1000])
def test_a_key_for_each_partition(spark: SparkSession, number: int) -> None:
    """Spark's own hash function says where its hash partitioning sends the keys."""
    keys = spark.createDataFrame([(i, int(key)) for i, key in enumerate(keys_of_partitions(number))], "i INT, key INT")
    wrong = keys.where(F.pmod(F.hash("key"), F.lit(number)) != F.col("i"))
    assert keys.count() == number
    assert wrong.isEmpty()


@pytest.mark.parametrize("send", [to_files, by_hash])
def test_rows_reach_the_file_that_they_name(spark: SparkSession, send: Callable[[DataFrame, int], DataFrame]) -> None:
    rows = spark.range(5000).withColumn(FILE, F.col("id") * 31 % 37)
    landed = send(rows, 37).select(FILE, F.spark_partition_id().alias("at")).distinct().toPandas()
    assert np.array_equal(np.sort(landed[FILE]), np.arange(37))
    assert (landed[FILE] == landed["at"]).all()
