"""For all tests: patience on a machine under load, and one Spark session, small, quiet, and with Delta."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from zorder_pipeline.interrupts import stop_jobs_on

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
SLOW_SECONDS = 1500
"""After so many a slow test hangs; on a busy machine those of a minute or two take that many times as long."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests have more time than pyproject.toml gives to all."""
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_SECONDS))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """A test that is out of time ends Spark's jobs: else all that come after it fail, by answers to its questions."""
    out_of_time, pyspark = signal.getsignal(signal.SIGALRM), sys.modules.get("pyspark.sql")
    session = pyspark.SparkSession._instantiatedSession if pyspark is not None else None
    if session is not None and callable(out_of_time):
        stop_jobs_on(signal.SIGALRM, session, out_of_time)


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
