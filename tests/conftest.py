"""For all tests: patience on a machine under load, and one Spark session, small, quiet, and with Delta."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# A quarter of the time would go into optimising code that runs for a few rows; without it Java reserves 48 MB for
# compiled code, fewer than some hundred tests need: it would be thrown away and compiled again all the time. Java's
# first guesses of heap and classes are small and cost full collections. Spark's classes need no verifying here.
JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -XX:MetaspaceSize=256m"
    " -Xms1g -XX:NewSize=320m -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
os.environ.setdefault("SPARK_SUBMIT_OPTS", JAVA)

CONF = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.driver.memory": "2g",
}
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}


@pytest.fixture(scope="session")
def spark(pytestconfig: pytest.Config) -> Iterator[SparkSession]:
    """Most plans are of a few rows and take longer to compile than to run: only `make test-full` compiles them all."""
    from zorder_pipeline.spark import session

    quick = "not slow" in pytestconfig.getoption("markexpr")
    found = session(CONF | (INTERPRETED if quick else COMPILED))
    yield found
    found.stop()


@pytest.fixture(scope="module")
def interpreted(spark: SparkSession) -> Iterator[None]:
    """The module's plans are not compiled in `make test-full` either."""
    from zorder_pipeline.benchmarks.data import session_conf

    with session_conf(spark, INTERPRETED):
        yield


@pytest.fixture(scope="module")
def compiled(spark: SparkSession) -> Iterator[None]:
    """The module's plans are compiled in `make test`, too."""
    from zorder_pipeline.benchmarks.data import session_conf

    with session_conf(spark, COMPILED):
        yield
