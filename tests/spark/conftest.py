"""One Spark session for all Spark tests: small, quiet, and with Delta."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from zorder_pipeline.spark import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    found = session({"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "2g"})
    yield found
    found.stop()
