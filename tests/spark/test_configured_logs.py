"""The query logs of a configuration, night after night: its tables may be away, and logs be read by hand besides."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from zorder_pipeline import pipeline
from zorder_pipeline.cli.entry import zorder
from zorder_pipeline.config import PipelineConfig, load_config
from zorder_pipeline.errors import LogError
from zorder_pipeline.pipeline.repeated import repeated
from zorder_pipeline.relayout.snapshot import open_table
from zorder_pipeline.report import collect

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


def by_hand(nights: Nights, *words: str) -> dict[str, int]:
    """What ``zorder ingest`` of a log into the state adds to it."""
    options = ["--state", f"{nights.folder}/state", "--json", *words]
    result = CliRunner().invoke(zorder, ["ingest", "--log", str(nights.log), *options], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    told: dict[str, int] = json.loads(result.stdout.splitlines()[-1])
    return told


def test_by_hand_what_is_new_is_added_as_the_night_would(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.delenv("ZORDER_CONFIG", raising=False)
    monkeypatch.setattr("zorder_pipeline.cli.logs.start_spark", lambda *_, **__: nights.spark)
    nights.ask(0, 1)
    assert nights.night() == 2
    nights.ask(2)
    with pytest.raises(LogError, match=r"were read for the tables of a configuration \(sales\); name it by --config"):
        by_hand(nights)
    assert nights.asked == ["a = 0", "a = 1"], "nothing is lost"
    monkeypatch.setenv("ZORDER_CONFIG", str(nights.folder / "tables.yaml"))
    assert by_hand(nights)["lines"] == 1
    assert nights.asked == ["a = 0", "a = 1", "a = 2"]
    nights.ask(3)
    monkeypatch.delenv("ZORDER_CONFIG")
    assert by_hand(nights, "--config", str(nights.folder / "tables.yaml"))["lines"] == 1
    assert nights.night() == 0
    assert nights.asked == [f"a = {i}" for i in range(4)]


def test_a_state_of_no_configuration_is_added_to(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that was read in one dialect is not read in another, which would drop what it does not hold any more."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.delenv("ZORDER_CONFIG", raising=False)
    monkeypatch.setattr("zorder_pipeline.cli.logs.start_spark", lambda *_, **__: nights.spark)
    nights.ask(0, 1)
    monkeypatch.chdir(nights.folder)
    assert by_hand(nights, "--dialect", "trino")["lines"] == 2
    with pytest.raises(LogError, match=r"was read into .* and would replace what is stored"):
        by_hand(nights)
    nights.ask(2)
    nights.log = nights.log.relative_to(nights.folder)
    assert by_hand(nights, "--dialect", "trino")["lines"] == 1, "it is the same log, however it is named"
    assert nights.night() == 3, "the configuration reads it for its tables"
    assert nights.asked == [f"a = {i}" for i in range(3)]


def test_the_queries_of_a_table_are_found_by_where_it_lies(nights: Nights) -> None:
    """Its folder is called otherwise than the configuration calls it; a report of it knew nothing of what is asked."""
    nights.ask(*range(30))
    assert nights.night() == 30
    made = collect(nights.spark, str(nights.place), state=nights.config.state)
    assert "30 queries" in made.about
    snapshot = open_table(nights.spark, "sales_2026")
    assert pipeline.names_in_state(nights.spark, nights.config.state, "sales_2026", snapshot)[0] == "sales"


def test_a_table_by_its_place_and_by_its_name_is_one(nights: Nights) -> None:
    """All of its queries are those of the first entry; a copy of its folder, which keeps the id, has its own."""
    shutil.copytree(nights.place, nights.folder / "copy")
    (nights.folder / "tables.yaml").write_text(
        CONFIG.replace("tables: [", f"tables: [{{name: first, location: {nights.place}}}, ").replace(
            "]}]", "]}, {name: copied, location: copy}]"
        )
    )
    nights.ask(0)
    nights.ask(1, name="sales_2026")
    nights.ask(2, name='"3f2a"')
    nights.ask(3, name="copied")
    warned: list[str] = []
    known = pipeline.configured_tables(nights.spark, nights.config, warned.append)
    assert repeated(known) == {"sales": "first", "copied": "first"}
    assert [warning.partition(":")[0] for warning in warned] == ["sales", "copied"]
    assert nights.night() == 4
    stored = pipeline.stored_log(nights.spark, nights.config.state)
    assert [query.table for query in stored.queries] == ["first", "first", "first", "copied"]


def test_the_queries_of_a_table_are_none_of_another_whose_folder_has_its_name(nights: Nights) -> None:
    """The report of that one showed them as its own, and `triage` advised on it by them."""
    other = str(nights.folder / "elsewhere" / "sales")
    nights.spark.range(3).withColumnRenamed("id", "a").write.format("delta").save(other)
    nights.ask(*range(30))
    assert nights.night() == 30
    assert " 0 queries" in collect(nights.spark, other, state=nights.config.state).about
    (looked,) = pipeline.triage(nights.spark, [], [other], state=nights.config.state)
    assert looked.queries == 0
    assert "30 queries" in collect(nights.spark, other, state=nights.config.state, aliases=["sales"]).about
