"""Scans of tables whose log tells less, or otherwise, than Spark does today: no row of a plain read is lost."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from tests.spark.gathering import read_alike
from zorder_pipeline.relayout.snapshot import open_table


def test_decimals_that_delta_rs_tells_as_doubles(spark: SparkSession, tmp_path: Path) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "none")
    for text in ("1234567890123456.78", "5.00"):
        column = pa.array([Decimal(text)], pa.decimal128(18, 2))
        write_deltalake(path, pa.table({"m": column}), mode="append")
    assert 123456789012345680 in open_table(spark, path).files().zones["m"].low.tolist(), "told as a double"
    assert read_alike(spark, path, state, "m IN (1234567890123456.78, 9999999999999999.99)") == 1
    assert read_alike(spark, path, state, "m IN (5.00, 9999999999999999.99)") == 1
    assert read_alike(spark, path, state, "m = 1234567890123456.78") == 0, "Delta itself leaves it out"
