"""The query logs of a configuration, night after night: its tables may be away, and logs be read by hand besides."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from zorder_pipeline import pipeline
from zorder_pipeline.config import PipelineConfig, load_config

pytestmark = pytest.mark.slow
CONFIG = """
state: state
query_logs: [{path: logs, dialect: trino}]
tables: [{name: sales, catalog: sales_2026, aliases: [shop.orders]}]
"""


class Nights:
    """A table of the session's catalog, a log of queries with numbers, and a state."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.place, self.log = folder / "warehouse" / "3f2a", folder / "logs" / "a.jsonl"
        self.log.parent.mkdir()
        (folder / "tables.yaml").write_text(CONFIG)
        spark.range(3).withColumnRenamed("id", "a").write.format("delta").save(str(self.place))
        self.there(True)

    @property
    def config(self) -> PipelineConfig:
        return load_config(self.folder / "tables.yaml")

    def there(self, there: bool) -> None:
        self.spark.sql("DROP TABLE IF EXISTS sales_2026")
        if there:
            self.spark.sql(f"CREATE TABLE sales_2026 USING delta LOCATION '{self.place}'")

    def ask(self, *numbers: int, name: str = "shop.orders", log: Path | None = None) -> None:
        with (log or self.log).open("a") as stream:
            for i in numbers:
                record = {"statement": f'SELECT "a" FROM {name} WHERE "a" = {i}', "ts": 1_705_312_800 + i}
                stream.write(json.dumps(record) + "\n")

    def night(self) -> int:
        """Reads as the nightly run does; returns how many lines that were."""
        config, (log,) = self.config, self.config.query_logs
        known = pipeline.configured_tables(self.spark, config)
        source = pipeline.LogSource(log.path, log.format, log.dialect, log.time_zone)
        return pipeline.ingest_into(self.spark, config.state, [source], known).log.lines

    @property
    def asked(self) -> list[str]:
        """What is known to be asked of the configured table."""
        found = pipeline.stored_log(self.spark, self.config.state, ["sales"])
        return [query.predicate.to_sql() for query in found.queries]


@pytest.fixture
def nights(spark: SparkSession, tmp_path: Path) -> Iterator[Nights]:
    found = Nights(spark, tmp_path)
    yield found
    found.there(False)


def test_a_table_of_a_catalog_that_is_away_for_a_night_costs_nothing(nights: Nights) -> None:
    nights.ask(0, 1)
    assert nights.night() == 2
    nights.there(False)
    nights.ask(2)
    nights.ask(3, name=f'delta."{nights.place}"')
    assert nights.night() == 2, "what was read is not read again"
    assert nights.asked == [f"a = {i}" for i in range(4)]
    nights.there(True)
    nights.ask(4)
    assert nights.night() == 1
    assert nights.asked == [f"a = {i}" for i in range(5)]
