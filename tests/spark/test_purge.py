"""``zorder purge``: what one user asked is nowhere in the state afterwards, and what others asked is."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from zorder_pipeline import pipeline
from zorder_pipeline.model.file_stats import Feature
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.query_log.intake.store import LogStore
from zorder_pipeline.query_log.spool import RECORDED, delete_moved
from zorder_pipeline.query_log.statements.catalog import Catalog
from zorder_pipeline.relayout.snapshot import open_table
from zorder_pipeline.state.begun import Beginnings, Begun

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
    assert deleted == {"query_log": 1, "quarantine": 1, "begun": 0, "recorded": 1, "studies": 0, "file_stats": 4}
    tables = deleted.keys() - {RECORDED, "begun", "studies"}
    left = {name: spark.read.format("delta").load(f"{state}/{name}").toArrow() for name in tables}
    assert {name: table.num_rows for name, table in left.items()} == {"query_log": 1, "quarantine": 2, "file_stats": 2}
    assert SECRET not in json.dumps([table.to_pylist() for table in left.values()], default=str)
    assert not Path(state, RECORDED, of_bob).exists()
    assert len(list(Path(state, RECORDED).glob("*.jsonl"))) == 1
    told = "".join(_commits(Path(state, name)) for name in tables)
    assert [word for word in ("bob", SECRET) if word in told] == [], "Delta keeps its log past VACUUM"
    assert [query.user for query in pipeline.stored_log(spark, state).queries] == ["ann"]
    # an ordinary read has not become wrong by it
    assert pipeline.scan(spark, path, "c LIKE '%12%'", state=state).count() == 20
    assert pipeline.purge(spark, state, 90, "nobody") == dict.fromkeys(deleted, 0)


def _commits(folder: Path, since: int = 0) -> str:
    return "".join(entry.read_text() for entry in (folder / "_delta_log").glob("*.json") if int(entry.stem) >= since)


@pytest.mark.matrix
def test_who_is_erased_stays_in_no_file_of_a_state_that_was_made_otherwise(spark: SparkSession, tmp_path: Path) -> None:
    """By an older version, with statistics of all columns, and in a session whose tables have deletion vectors."""
    names, catalog = ("query_log", "quarantine"), Catalog({"t": "t"}, {})
    store, log = LogStore(spark, str(tmp_path / "state")), tmp_path / "log.jsonl"
    folders = {name: Path(store.path(name)) for name in names}

    def ingest(*users: str) -> None:
        with log.open("a") as stream:
            for user in users:
                for text in (f"SELECT a FROM t WHERE a = '{user}'", f"SELECT FROM WHERE a = '{user}' AND ("):
                    stream.write(json.dumps({"user": user, "statement": text}) + "\n")
        assert store.ingest(str(log), catalog).log.used == len(users)

    ingest("ann", "bob")
    for folder in folders.values():
        spark.sql(f"ALTER TABLE delta.`{folder}` UNSET TBLPROPERTIES IF EXISTS ('delta.dataSkippingStatsColumns')")
        spark.sql(f"ALTER TABLE delta.`{folder}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    ingest("bob", "joe", "zoe")
    for folder in folders.values():
        assert "bob" in _commits(folder)
        spark.sql(f"DELETE FROM delta.`{folder}` WHERE user = 'joe'")  # as earlier versions deleted
    versions = {name: len(list((folder / "_delta_log").glob("*.json"))) for name, folder in folders.items()}
    assert store.purge(90, "bob") == dict.fromkeys(names, 2)
    assert store.purge(90, "bob") == dict.fromkeys(names, 0)
    for name, folder in folders.items():
        assert not [user for user in ("ann", "bob", "joe", "zoe") if user in _commits(folder, versions[name])]
        files = store.read(name).inputFiles()  # all that VACUUM leaves
        assert {row["user"] for row in spark.read.parquet(*files).collect()} == {"ann", "zoe"}


def test_recorded_files_go_by_the_time_of_their_names(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / RECORDED
    assert delete_moved(spark, str(folder), 0) == 0
    old, new = (_recorded(folder, NOW - days * 86_400, "ann") for days in (91, 89))
    for copied in (folder / f"_{old}", folder / f"_{new}"):
        copied.write_text("half of a fi")  # by a run that was cut off, or that is at it
    (folder / "notes.txt").touch()
    assert delete_moved(spark, str(folder), 90) == 2
    assert {file.name for file in folder.iterdir() if not file.name.startswith(".")} == {new, f"_{new}", "notes.txt"}
    assert delete_moved(spark, str(folder), 90) == 0
    assert old != new


def test_plans_of_relayouts_that_ended_without_their_record_go_once_no_run_needs_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    """They hold constants of queries: those of a table that is gone stayed for ever."""
    state, begun = str(tmp_path), Beginnings(spark, str(tmp_path))
    for days, run in ((100, "a"), (10, "b"), (6, "c")):
        plan = Plan("/t", "id", "hash", 0, None, "learned", 100)
        begun.note(Begun(f"zorder layout x {run}", 3, NOW - days * 86_400.0, plan, 10, {}, {}))
        os.utime(tmp_path / "begun" / f"id.{run}.json", (NOW - days * 86_400,) * 2)

    def left() -> list[str]:
        return sorted(found.run[-1] for found in begun.of_table("id"))

    assert pipeline.purge(spark, state, 90) == {"begun": 1, "recorded": 0, "studies": 0}
    assert left() == ["b", "c"], "a table that is relaid once a month may need the first"
    assert pipeline.purge(spark, state, 0, "bob") == {"begun": 1, "recorded": 0, "studies": 0, "file_stats": 0}
    assert left() == ["c"]
    assert pipeline.purge(spark, state, 0)["begun"] == 0
    assert left() == ["c"]
