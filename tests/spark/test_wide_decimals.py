"""Bounds of wide decimals made with doubles hold every value that Spark's decimals have, and hardly more."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from zorder_pipeline.reading.wide_decimals import as_double, wide_decimal

pytestmark = pytest.mark.matrix

QUICK = (
    *("price / amount", "price * rate", "price * (1 - rate)", "price * amount", "-price / (amount + 3)"),
    *("tiny / long", "long * long", "tiny * tiny", "long / tiny2", "amount / price", "s.`in side` / amount"),
    *("price * (rate * rate - 1)", "(2.5 - rate) * -(price + rate)", "price / (amount - 1 - rate)"),
    *("(rate - (rate + rate) * 0.125) * price", "price * (rate - 5000000000)"),
)
EXACT = (
    *("price * rate / amount", "wide * price", "price * big", "ROUND(price * rate, 1)", "price % amount * rate"),
    *("long / tiny", "ABS(price) * rate", "price * rate + price * rate"),
)
ROWS = 4000


@pytest.fixture(scope="module")
def rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """Decimals of all sizes, and the largest and smallest that their types hold."""
    rng = random.Random(5)

    def decimals(precision: int, scale: int) -> list[Decimal | None]:
        some = [rng.randint(1, 10 ** rng.randint(1, precision) - 1) for _ in range(ROWS)]
        some[:4] = [10**precision - 1, 1, 10**precision - 2, 3]
        signs = rng.choices([-1, 1], k=ROWS)
        return [
            None if i % 97 == 96 else (sign * Decimal(n)).scaleb(-scale)
            for i, (n, sign) in enumerate(zip(some, signs, strict=True))
        ]

    types = {"price": (15, 2), "rate": (4, 2), "long": (18, 0), "tiny": (18, 18), "tiny2": (18, 13), "wide": (25, 4)}
    columns = {name: decimals(*of) for name, of in types.items()}
    amount = [rng.randint(1, 2**31 - 4) for _ in range(ROWS)]
    names = ", ".join(f"{name} DECIMAL({p}, {s})" for name, (p, s) in types.items())
    made = spark.createDataFrame(
        [
            (i % 8, *items, many, many * 2**20)
            for i, (*items, many) in enumerate(zip(*columns.values(), amount, strict=True))
        ],
        f"part INT, {names}, amount INT, big BIGINT",
    )
    path = str(tmp_path_factory.mktemp("wide") / "t")
    made.withColumn("s", F.struct(F.col("price").alias("in side"))).write.parquet(path)
    return spark.read.parquet(path)


@pytest.mark.parametrize("sql", QUICK)
def test_all_values_lie_between_the_bounds_which_are_close(rows: DataFrame, sql: str) -> None:
    found = wide_decimal(rows, as_double(sql))
    assert found is not None
    assert found.error is not None
    valued = rows.select("part", found.value(rows.sparkSession).alias("v"), F.expr(as_double(sql)).alias("exact"))
    bounds = found.bounds("v")
    for row in valued.groupBy("part").agg(
        bounds["low"].alias("low"), bounds["high"].alias("high"), F.min("exact"), F.max("exact"), F.count("v"),
        F.count("exact"),
    ).collect():  # fmt: skip
        _, low, high, least, most, values, exact = row
        assert values == exact, "null where the decimal is"
        assert low <= least <= most <= high
        assert least - low <= 2 * found.error + 1e-13 * abs(least)
        assert high - most <= 2 * found.error + 1e-13 * abs(most)


@pytest.mark.parametrize("sql", EXACT)
def test_what_is_not_surely_near_is_made_of_decimals(rows: DataFrame, sql: str) -> None:
    found = wide_decimal(rows, as_double(sql))
    assert found is not None
    assert (found.sql, found.error, found.operands) == (sql, None, ())


@pytest.mark.parametrize(
    "sql", [as_double("tiny + tiny"), as_double("amount"), "CAST(rate AS DOUBLE) + CAST(rate AS DOUBLE)"]
)
def test_only_a_wide_decimal_is_one(rows: DataFrame, sql: str) -> None:
    found = wide_decimal(rows, sql)
    assert found is None or found.error is None


def test_a_division_by_nothing_fails_as_before(rows: DataFrame) -> None:
    found = wide_decimal(rows, as_double("price / (amount - amount)"))
    assert found is not None
    for ansi in ("true", "false"):
        rows.sparkSession.conf.set("spark.sql.ansi.enabled", ansi)
        try:
            asked = rows.select(F.count(found.value(rows.sparkSession)))
            if ansi == "false":
                assert asked.collect()[0][0] == 0
            else:
                with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
                    asked.collect()
        finally:
            rows.sparkSession.conf.unset("spark.sql.ansi.enabled")
