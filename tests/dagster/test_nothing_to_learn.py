"""Tables of which nothing can be learned tonight, though queries ask for them, are no failures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from dagster import DagsterInstance
from deltalake import write_deltalake

from tests.dagster.conftest import statements, write_log
from tests.json_page import json_printed
from zorder_pipeline import pipeline
from zorder_pipeline.assets.openmetrics import open_metrics
from zorder_pipeline.assets.run import run_tables
from zorder_pipeline.cli.runs import _told
from zorder_pipeline.config import load_config
from zorder_pipeline.state.ledger import Ledger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONFIG = """
spark: {master: "local[2]"}
state: state
query_logs: [{path: log.jsonl, format: sql}]
tables:
  - {name: emptied, location: emptied}
  - {name: renamed, location: renamed}
  - {name: liquid, location: liquid}
"""


@pytest.mark.dagster
@pytest.mark.spark
@pytest.mark.slow
def test_tables_that_are_empty_renamed_or_liquid_are_left_alone_with_the_reason(
    spark: SparkSession, tmp_path: Path
) -> None:
    rng, places = np.random.default_rng(2), {name: f"{tmp_path}/{name}" for name in ("emptied", "liquid")}
    rows = spark.range(0, 16000, 1, 16).selectExpr("id % 1000 day", "id % 1000 sent", "pmod(xxhash64(id), 1000) part")
    for place in places.values():
        rows.write.format("delta").save(place)
        plan = pipeline.layout_by_hand(spark, place, {"part": 3})
        assert pipeline.apply(spark, place, plan, force=True, state=f"{tmp_path}/state").decision == "applied"
        spark.sql(f"DELETE FROM delta.`{place}`")
    write_deltalake(tmp_path / "renamed", pa.table({"other": [1, 2, 3]}))
    spark.sql(f"ALTER TABLE delta.`{places['liquid']}` CLUSTER BY (sent)")
    rows.write.format("delta").mode("append").save(places["liquid"])
    asked = [statements(name, count, rng) for name, count in (("emptied", 30), ("renamed", 30), ("liquid", 60))]
    write_log(tmp_path / "log.jsonl", [line for lines in asked for line in lines])
    (tmp_path / "tables.yaml").write_text(CONFIG)
    config = load_config(tmp_path / "tables.yaml", check_paths=False)
    with DagsterInstance.ephemeral() as instance:
        emptied, renamed, advised = run_tables(config, instance=instance)
        metrics = open_metrics(instance, config)
    entries = Ledger(spark, config.state).entries()
    assert [entry.ended_at is not None for entry in entries] == [True, True], "what was laid out saves no more"
    assert (emptied.decision, renamed.decision) == ("nothing_to_do", "not_asked"), (emptied.reasons, renamed.reasons)
    assert emptied.reasons[0].endswith("emptied is empty; there is nothing to lay out; the table stays as it is")
    (why,) = renamed.reasons
    assert why == (
        "no usable query of renamed among 120 statements: 30 queries scan it, and what 30 of them filter by cannot be "
        "told: columns that the table does not have (were they renamed or dropped?), or a time that the log does not "
        "tell; the table stays as it is"
    )
    assert advised.decision == "declined", advised.reasons
    assert "uses liquid clustering" in advised.reasons[0]
    assert not any("zorder learn" in reason for reason in advised.reasons)  # which refuses it
    assert any(reason.startswith("ALTER TABLE delta.`file:") for reason in advised.reasons), advised.reasons
    outcomes = {o.table: _told(o) for o in (emptied, renamed, advised)}
    told = json_printed("run", json.dumps({"tables": outcomes}))["tables"]
    assert (told["emptied"]["cause"], told["emptied"]["version"]) == ("nothing_new", 2)
    assert (told["renamed"]["statements"], told["renamed"]["scans_of_the_table"]) == (120, 30)
    assert (told["liquid"]["cause"], told["liquid"]["version"]) == ("unsupported", 4)
    for table, decision in (("emptied", "nothing_to_do"), ("renamed", "not_asked"), ("liquid", "declined")):
        assert f'zorder_decision{{table="{table}",decision="{decision}"}} 1' in metrics
