"""Which columns have statistics, told from the table's properties alone, and how they are told apart."""

import pytest
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructField, StructType

from zorder_pipeline.relayout.leaves import Leaf, distinct_names, indexed_paths, leaves_of

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


def _leaves(*columns: tuple[str, str | StructType]) -> tuple[Leaf, ...]:
    kinds = [StructField(name, IntegerType() if kind == "int" else kind) for name, kind in columns]
    return distinct_names(tuple(leaves_of(StructType(kinds), [], set())))


def _struct(name: str) -> StructType:
    return StructType([StructField(name, IntegerType())])


def test_a_column_with_a_dot_is_not_stored_where_a_field_of_a_struct_is() -> None:
    """Else statistics of a column that is gone would be taken for those of a field that came later."""
    (column,), (field,) = _leaves(("a.b", "int")), _leaves(("a", _struct("b")))
    assert column.column.name == field.column.name == "a.b"
    assert (column.stored, field.stored) == ("`a.b` int", "a.b int")
    (plain,) = _leaves(("x y", "int"))
    assert plain.stored == "x y int", "statistics that were gathered before stay"


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ([("a.b", _struct("c")), ("a", _struct("b.c"))], ["`a.b`.`c`", "`a`.`b.c`"]),
        ([("a.b", "int"), ("a", _struct("b"))], ["`a.b`", "a.b"]),
        ([("a.b", "int"), ("A", _struct("B"))], ["`a.b`", "A.B"]),
        ([("a.b", "int"), ("a", _struct("c"))], ["a.b", "a.c"]),
        ([("x", "int"), ("X", "int")], ["x", "X"]),
    ],
)
def test_no_two_columns_have_the_same_name(columns: list[tuple[str, str | StructType]], names: list[str]) -> None:
    assert [leaf.column.name for leaf in _leaves(*columns)] == names
