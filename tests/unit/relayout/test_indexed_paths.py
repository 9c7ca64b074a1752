"""Which columns have statistics, told from the table's properties alone."""

import pytest
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructField, StructType

from zorder_pipeline.relayout.leaves import indexed_paths

INNER = StructType([StructField("x", IntegerType()), StructField("y z", StringType())])
TABLE = StructType(
    [
        StructField("p", StringType()),
        StructField("a", IntegerType()),
        StructField("s", INNER),
        StructField("l", ArrayType(IntegerType())),
        StructField("b.c", IntegerType()),
    ]
)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, {("a",), ("s", "x"), ("s", "y z"), ("l",), ("b.c",)}),
        ({"delta.dataSkippingNumIndexedCols": "2"}, {("a",), ("s", "x")}),
        ({"delta.dataSkippingNumIndexedCols": "0"}, set()),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, {("a",), ("s", "x"), ("s", "y z"), ("l",), ("b.c",)}),
        ({"delta.dataSkippingStatsColumns": "s, `b.c`"}, {("s", "x"), ("s", "y z"), ("b.c",)}),
        ({"delta.dataSkippingStatsColumns": "s.`y z`,a"}, {("a",), ("s", "y z")}),
    ],
)
def test_the_leaves_that_delta_keeps_statistics_of(properties: dict[str, str], expected: set[tuple[str, ...]]) -> None:
    assert indexed_paths(TABLE, ["p"], properties) == expected
