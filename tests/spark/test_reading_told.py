"""Scans of tables whose log tells less, or otherwise, than Spark does today: no row of a plain read is lost."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from tests.spark.gathering import read_alike
from zorder_pipeline.relayout.snapshot import open_table


def _retold(path: str, change: Callable[[str], str]) -> str:
    """A copy of a table whose commits somebody else wrote."""
    copy = Path(shutil.copytree(path, f"{path}_retold"))
    for old in [*copy.glob("_delta_log/*.crc"), *copy.glob("_delta_log/.*.crc")]:
        old.unlink()
    changed = 0
    for commit in copy.glob("_delta_log/*.json"):
        before = commit.read_text()
        commit.write_text(change(before))
        changed += commit.read_text() != before
    assert changed, "nothing is told otherwise"
    return str(copy)


def test_decimals_that_delta_rs_tells_as_doubles(spark: SparkSession, tmp_path: Path) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "none")
    for text in ("1234567890123456.78", "5.00"):
        column = pa.array([Decimal(text)], pa.decimal128(18, 2))
        write_deltalake(path, pa.table({"m": column}), mode="append")
    assert 123456789012345680 in open_table(spark, path).files().zones["m"].low.tolist(), "told as a double"
    assert read_alike(spark, path, state, "m IN (1234567890123456.78, 9999999999999999.99)") == 1
    assert read_alike(spark, path, state, "m IN (5.00, 9999999999999999.99)") == 1
    assert read_alike(spark, path, state, "m = 1234567890123456.78") == 0, "Delta itself leaves it out"


TRUE = ["(f > 5) IS TRUE", "CASE WHEN f > 5 THEN true ELSE false END", "coalesce(f > 5, false)", "(f > 5) IS NOT FALSE"]
TRUE += ["(f > 5) = true", "NOT (NOT (f > 5))", "((f > 5) IS TRUE) OR f < 0", "(f > 5 AND id > 0) IS TRUE"]


@pytest.mark.parametrize("counted", [True, False])
def test_where_delta_reads_no_bounds_without_nan_leave_no_file_out(
    spark: SparkSession, tmp_path: Path, counted: bool
) -> None:
    """It says nothing of a comparison that is compared with true, nor of a file whose rows are not told."""
    path, state = str(tmp_path / "t"), str(tmp_path / "none")
    for values in ([0.5], [0.0, float("nan")]):
        columns = {"id": pa.array([2] * len(values), pa.int64()), "f": pa.array(values, pa.float64())}
        write_deltalake(path, pa.table(columns), mode="append")
    if not counted:
        path = _retold(path, lambda text: re.sub(r'\\"numRecords\\":\d+,', "", text))
    for condition in [*TRUE, "f > 5", "f > 5 AND id > 0"]:
        read_alike(spark, path, state, condition)
    assert read_alike(spark, path, state, "(f > 5) IS TRUE") == 2
    assert read_alike(spark, path, state, "f > 5") == (0 if counted else 2)
