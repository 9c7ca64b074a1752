"""``zorder purge``: what one user asked is nowhere in the state afterwards, and what others asked is."""

from __future__ import annotations

import json
import time
from pathlib import Path

from pyspark.sql import SparkSession

from zorder_pipeline import pipeline
from zorder_pipeline.model.file_stats import Feature
from zorder_pipeline.query_log.spool import RECORDED, delete_moved
from zorder_pipeline.relayout.snapshot import open_table

SECRET = "4711007"
NOW = int(time.time())


def _recorded(folder: Path, second: int, user: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{second}-17-{len(list(folder.iterdir())):012x}.jsonl"
    file.write_text(json.dumps({"Event": "SparkListenerApplicationStart", "User": user}) + f'\n{{"text": "{user}"}}\n')
    return file.name


def test_one_user_s_queries_go_wherever_they_were_kept(spark: SparkSession, tmp_path: Path) -> None:
    path, state, log = str(tmp_path / "t"), str(tmp_path / "state"), tmp_path / "log.jsonl"
    spark.range(0, 1000, 1, 2).selectExpr("id", "CAST(id AS STRING) AS c").write.format("delta").save(path)
    asked = [
        ("bob", f"SELECT * FROM t WHERE c LIKE '%{SECRET}%'"),
        ("bob", f"SELECT FROM WHERE c = '{SECRET}' AND ("),
        ("ann", "SELECT * FROM t WHERE c LIKE '%12%'"),
        ("ann", "SELECT FROM WHERE c = '12' AND ("),
    ]
    lines = [json.dumps({"user": user, "statement": text, "timestamp": NOW * 1_000_000}) for user, text in asked]
    log.write_text("\n".join([*lines, "{no JSON"]) + "\n")
    known = {"t": (open_table(spark, path), ["t"])}
    assert pipeline.ingest_into(spark, state, [str(log)], known).to_json()["quarantined"] == 3
    column = Feature("c", "column", "string", "`c`", ("c",), True)
    stats = pipeline.update_statistics(spark, path, state, [str(log)], aliases=["t"], features=[column])
    assert any(SECRET in name for name in stats.features)
    of_bob = _recorded(Path(state, RECORDED), NOW, "bob")
    _recorded(Path(state, RECORDED), NOW, "ann")

    deleted = pipeline.purge(spark, state, 90, "bob")
    assert deleted == {"query_log": 1, "quarantine": 1, "recorded": 1, "file_stats": 4}
    left = {name: spark.read.format("delta").load(f"{state}/{name}").toArrow() for name in deleted if name != RECORDED}
    assert {name: table.num_rows for name, table in left.items()} == {"query_log": 1, "quarantine": 2, "file_stats": 2}
    assert SECRET not in json.dumps([table.to_pylist() for table in left.values()], default=str)
    assert not Path(state, RECORDED, of_bob).exists()
    assert len(list(Path(state, RECORDED).glob("*.jsonl"))) == 1
    assert [query.user for query in pipeline.stored_log(spark, state).queries] == ["ann"]
    # an ordinary read has not become wrong by it
    assert pipeline.scan(spark, path, "c LIKE '%12%'", state=state).count() == 20
    assert pipeline.purge(spark, state, 90, "nobody") == dict.fromkeys(deleted, 0)


def test_recorded_files_go_by_the_time_of_their_names(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / RECORDED
    assert delete_moved(spark, str(folder), 0) == 0
    old, new = (_recorded(folder, NOW - days * 86_400, "ann") for days in (91, 89))
    copied = folder / f"_{new}"
    copied.write_text("half of a fi")  # by a run that was cut off, it is copied again from where it is
    (folder / "notes.txt").touch()
    assert delete_moved(spark, str(folder), 90) == 2
    assert {file.name for file in folder.iterdir() if not file.name.startswith(".")} == {new, "notes.txt"}
    assert delete_moved(spark, str(folder), 90) == 0
    assert old != new
