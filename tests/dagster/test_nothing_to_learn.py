"""Tables of which nothing can be learned tonight, though queries ask for them, are no failures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from dagster import DagsterInstance
from deltalake import write_deltalake

from tests.dagster.conftest import statements, write_log
from tests.json_page import json_printed
from zorder_pipeline.assets.openmetrics import open_metrics
from zorder_pipeline.assets.run import run_tables
from zorder_pipeline.cli.runs import _told
from zorder_pipeline.config import load_config

CONFIG = """
spark: {master: "local[2]"}
state: state
query_logs: [{path: log.jsonl, format: sql}]
tables: [{name: emptied, location: emptied}, {name: renamed, location: renamed}]
"""


@pytest.mark.dagster
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_an_emptied_table_and_one_whose_columns_were_renamed_are_left_alone(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    none = pa.table({name: pa.array([], pa.int64()) for name in ("day", "sent", "part")})
    write_deltalake(tmp_path / "emptied", none)
    write_deltalake(tmp_path / "renamed", pa.table({"other": [1, 2, 3]}))
    write_log(tmp_path / "log.jsonl", [*statements("emptied", 30, rng), *statements("renamed", 30, rng)])
    (tmp_path / "tables.yaml").write_text(CONFIG)
    config = load_config(tmp_path / "tables.yaml", check_paths=False)
    with DagsterInstance.ephemeral() as instance:
        emptied, renamed = run_tables(config, instance=instance)
        metrics = open_metrics(instance, config)
    assert (emptied.decision, renamed.decision) == ("nothing_to_do", "not_asked"), (emptied.reasons, renamed.reasons)
    assert emptied.reasons[0].endswith("emptied is empty; there is nothing to lay out; the table stays as it is")
    assert renamed.reasons == ("no usable query of renamed among 60 statements; the table stays as it is",)
    told = json_printed("run", json.dumps({"tables": {o.table: _told(o) for o in (emptied, renamed)}}))["tables"]
    assert (told["emptied"]["cause"], told["emptied"]["version"]) == ("nothing_new", 0)
    assert (told["renamed"]["statements"], told["renamed"]["scans_of_the_table"]) == (60, 30)
    for table, decision in (("emptied", "nothing_to_do"), ("renamed", "not_asked")):
        assert f'zorder_decision{{table="{table}",decision="{decision}"}} 1' in metrics
