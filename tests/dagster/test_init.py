"""``zorder init``: from Parquet and a log to a Dagster home, without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable

from tests.json_page import json_printed
from zorder_pipeline.cli.entry import zorder
from zorder_pipeline.config import load_config
from zorder_pipeline.errors import ZorderError

pytestmark = pytest.mark.dagster


def run(*words: str | Path) -> dict[str, object]:
    done = CliRunner().invoke(zorder, ["init", *map(str, words), "--json"], catch_exceptions=True)
    if done.exception is not None:
        raise done.exception
    return json_printed("init", done.stdout)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    folder = tmp_path / "flights"
    folder.mkdir()
    for part in range(2):
        pq.write_table(pa.table({"day": [part] * 3, "carrier": ["a", "b", "c"]}), folder / f"{part}.parquet")
    (tmp_path / "log.sql").write_text("SELECT * FROM flights WHERE day = 1;\n")
    return tmp_path


def test_parquet_becomes_a_table_with_its_configuration(mine: Path) -> None:
    told = run(mine / "home", "--parquet", mine / "flights", "--partition-by", "day", "--log", mine / "log.sql")
    assert told["rows"] == 6
    table = DeltaTable(str(mine / "home" / "flights"))
    assert table.metadata().partition_columns == ["day"]
    assert sorted(table.to_pyarrow_table()["carrier"].to_pylist()) == ["a", "a", "b", "b", "c", "c"]
    config = load_config(mine / "home" / "tables.yaml")
    assert [found.name for found in config.tables] == ["flights"]
    assert (mine / "home" / "dagster.yaml").is_file()


def test_metrics_of_a_home_without_a_night_are_counted(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, target = mine / "home", mine / "zorder.prom"
    run(home, "--parquet", mine / "flights", "--log", mine / "log.sql")
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    words = ["metrics", "--config", str(home / "tables.yaml"), "--out", str(target), "--json"]
    told = json_printed("metrics", CliRunner().invoke(zorder, words, catch_exceptions=False).stdout)
    assert told["figures"] == sum(not line.startswith("#") for line in target.read_text().splitlines())


def test_what_is_wrong_is_said_in_one_sentence(mine: Path) -> None:
    log = ("--log", mine / "log.sql")
    with pytest.raises(ZorderError, match="either --parquet"):
        run(mine / "home", *log)
    with pytest.raises(ZorderError, match=r"no column month; the files have day, carrier"):
        run(mine / "home", "--parquet", mine / "flights", "--partition-by", "month", *log)
    (mine / "empty").mkdir()
    with pytest.raises(ZorderError, match="no Parquet file in"):
        run(mine / "home", "--parquet", mine / "empty", *log)
    (mine / "bad.parquet").write_text("no")
    with pytest.raises(ZorderError, match="cannot be made a Delta table"):
        run(mine / "home", "--parquet", mine / "bad.parquet", *log)
    run(mine / "home", "--parquet", mine / "flights", *log)
    with pytest.raises(ZorderError, match="is there already; add the table to it"):
        run(mine / "home", "--table", mine / "home" / "flights", *log)
