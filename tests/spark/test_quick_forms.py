"""Quick forms of predicates: what they give is what the predicates give, on every row."""

from decimal import Decimal

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from zorder_pipeline.model.spark_sql import value_sql
from zorder_pipeline.model.values import ValueType
from zorder_pipeline.reading.quick_forms import contained, predicate_bits, quick_decimals
from zorder_pipeline.state.session_conf import set_for_a_while

pytestmark = [pytest.mark.usefixtures("compiled"), pytest.mark.matrix]

TEXTS = (
    "",
    "special",
    "a special offer",
    "speciál",
    "sp\u00e9cial special",
    "SPECIAL",
    "\U0001f600special",
    "specia",
    None,
)
BROKEN = ("ff7370656369616c", "e28273706563", "7370c365636961", "c2737065", "f09f98737065")
"""Bytes that are no UTF-8, with parts of the text among them."""


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    texts = spark.createDataFrame([(text,) for text in TEXTS], "s string")
    broken = spark.createDataFrame([(raw,) for raw in BROKEN], "raw string").selectExpr(
        "CAST(unhex(raw) AS STRING) AS s"
    )
    return texts.union(broken).selectExpr("s", "named_struct('in ner', s) AS n").persist()


@pytest.mark.parametrize("column", ["s", "n.`in ner`"])
@pytest.mark.parametrize("text", ["special", "spe", "l", " ", "al sp", "(s", "."])
def test_a_text_is_found_where_spark_finds_it(rows: DataFrame, column: str, text: str) -> None:
    sql = f"{column} LIKE '%{text}%'"
    found = contained(rows, [sql])
    assert list(found) == [sql]
    told = rows.select(F.expr(sql).alias("plain"), found[sql].alias("quick")).collect()
    assert [row["quick"] for row in told] == [row["plain"] for row in told]


def test_many_texts_of_a_column_make_one_java_text(rows: DataFrame) -> None:
    asked = [f"s LIKE '%{text}%'" for text in ("special", "spe", "offer")]
    plan = rows.select(*contained(rows, asked).values())
    assert plan.collect() == rows.selectExpr(*asked).collect()


@pytest.mark.parametrize(
    "sql",
    [
        "s LIKE 'special%'",
        "s LIKE '%spe%ial%'",
        "s LIKE '%sp_cial%'",
        "s LIKE '%spe\\\\%ial%'",
        "s LIKE '%sp\u00e9%'",
        "s LIKE '%%'",
        "s NOT LIKE '%special%'",
        "s ILIKE '%special%'",
        "upper(s) LIKE '%special%'",
        "s LIKE '%special%' OR s IS NULL",
        "s LIKE '%special%' ESCAPE 'e'",
        "c LIKE '%special%'",
        "s = 'special'",
        "s LIKE",
        "(" * 3000 + "s LIKE '%a%'" + ")" * 3000,
    ],
)
def test_all_else_is_left_to_spark(rows: DataFrame, sql: str) -> None:
    assert contained(rows.selectExpr("s", "s COLLATE UTF8_LCASE AS c"), [sql]) == {}


@pytest.mark.parametrize(
    "kind", ["decimal(15,2)", "decimal(18,6)", "decimal(18,0)", "decimal(5,5)", "decimal(38,2)", "decimal(18,7)"]
)
@pytest.mark.parametrize("unscaled", [0, 1, -1, 8, 10, 4900, -12345, 99_999])
def test_a_decimal_is_the_same_number_of_the_same_type(spark: SparkSession, kind: str, unscaled: int) -> None:
    value_type = ValueType.parse(kind)
    sql = f"CAST({value_sql(unscaled, value_type)} AS {kind})"
    quick = quick_decimals(sql)
    assert (quick != sql) == (kind not in ("decimal(38,2)", "decimal(18,7)")), quick
    plain, found = (spark.sql(f"SELECT {text} AS x") for text in (sql, quick))
    assert found.schema["x"].dataType == plain.schema["x"].dataType
    assert found.collect() == plain.collect()
    assert found.first()["x"] == Decimal(unscaled).scaleb(-value_type.scale)


def test_a_decimal_that_is_rounded_inside_stays() -> None:
    sql = "CAST(CAST('1.50' AS DECIMAL(38, 0)) AS decimal(5,2))"
    assert quick_decimals(sql) == sql


def test_a_decimal_that_no_interval_can_be_stays(spark: SparkSession) -> None:
    sql = f"CAST({value_sql(10**17, ValueType.parse('decimal(18,2)'))} AS decimal(18,2))"
    assert quick_decimals(sql) == sql


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("intervals", ["true", "false"])
def test_bits_say_true_false_and_null_in_any_session(spark: SparkSession, ansi: str, intervals: str) -> None:
    rows = spark.sql("SELECT * FROM VALUES (1.10BD, 'ab'), (0.08BD, 'b'), (NULL, NULL) AS t(d, s)")
    least = f"d >= CAST({value_sql(8, ValueType.parse('decimal(3,2)'))} AS decimal(3,2))"
    asked = [least, "s LIKE '%a%'", least.replace(">=", ">"), *["s LIKE '%b%'"] * 19]
    settings = {"spark.sql.ansi.enabled": ansi, "spark.sql.legacy.interval.enabled": intervals}
    with set_for_a_while(spark, settings):
        bits = predicate_bits(rows, asked)
        found = rows.select(*(column.alias(name) for name, column in bits.items())).collect()
    assert [[row["bits_0"] >> 3 * place & 7 for place in range(4)] for row in found] == [
        [1, 1, 1, 1],
        [1, 2, 2, 1],
        [4, 4, 4, 4],
    ]
    assert [row["bits_1"] for row in found] == [1, 1, 4]
