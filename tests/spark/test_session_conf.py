"""Settings for a while: several sessions and users of them at once, and settings that are refused."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import zorder_pipeline
from tests.spark.gathering import asked_of, gathered
from tests.spark.test_relayout import spec_for
from zorder_pipeline import pipeline
from zorder_pipeline.features.sample import take_sample
from zorder_pipeline.java import class_name
from zorder_pipeline.model.file_stats import Feature
from zorder_pipeline.model.predicate import Opaque
from zorder_pipeline.model.ranges import to_boxes
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline import layout_by_hand, partition_conditions
from zorder_pipeline.pipeline.partition_conditions import told_on
from zorder_pipeline.pipeline.reading import choosing, known_files
from zorder_pipeline.pipeline.reading.statistics import gather_statistics
from zorder_pipeline.pipeline.rewriting.proof import prove
from zorder_pipeline.reading.relations import analysed, optimized, scans
from zorder_pipeline.reading.session import session_of
from zorder_pipeline.reading.unprepared import unprepared
from zorder_pipeline.relayout.cell_zones import zones_by_cell
from zorder_pipeline.relayout.compaction import Compaction
from zorder_pipeline.relayout.job import Safety
from zorder_pipeline.relayout.rewrite import rewrite
from zorder_pipeline.relayout.session_conf import exactly
from zorder_pipeline.relayout.snapshot import open_table
from zorder_pipeline.state.session_conf import ZONE, alone, set_for_a_while

pytestmark = pytest.mark.matrix

NAME, OTHER = "spark.sql.files.maxRecordsPerFile", "spark.sql.parquet.filterPushdown"


def test_each_session_gets_its_own_settings_back_from_the_last_of_its_users(spark: SparkSession) -> None:
    one, other = spark.newSession(), spark.newSession()
    one.conf.set(NAME, "7")
    blocks = [
        set_for_a_while(session, {NAME: "1", OTHER: None})
        for session in (one, other, SparkSession(one.sparkContext, one._jsparkSession))
    ]
    for block in blocks:
        block.__enter__()
    assert (one.conf.get(NAME), other.conf.get(NAME)) == ("1", "1")
    blocks[0].__exit__(None, None, None)
    assert one.conf.get(NAME) == "1"
    for block in blocks[1:]:
        block.__exit__(None, None, None)
    assert (one.conf.get(NAME), other.conf.get(NAME)) == ("7", "0")


def test_a_setting_that_is_refused_leaves_the_others_as_they_were(spark: SparkSession) -> None:
    session = spark.newSession()
    for _ in range(2):
        with pytest.raises(PySparkException), set_for_a_while(session, {NAME: "1", "spark.sql.warehouse.dir": "x"}):
            raise AssertionError
    assert session.conf.get(NAME) == "0"


def test_what_a_block_did_counts_when_its_session_has_died(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = spark.newSession()

    def dead(key: str, *_: str) -> None:
        raise ConnectionError(key)

    with set_for_a_while(session, {NAME: "1", OTHER: "false"}):
        for name in ("set", "unset"):
            monkeypatch.setattr(session.conf, name, dead)
    monkeypatch.undo()
    with set_for_a_while(session, {NAME: "2"}):
        assert session.conf.get(NAME) == "2"


def test_sessions_that_read_names_by_the_letter_of_the_standard_are_rewritten_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    rows = spark.range(1000).selectExpr("id", "id * 7919 % 1000 AS k")
    rows.repartition(4).write.format("delta").save(path)
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 100 = 3")
    session = spark.newSession()
    for name in ("enabled", "enforceReservedKeywords", "doubleQuotedIdentifiers"):
        session.conf.set(f"spark.sql.ansi.{name}", "true")
    done = pipeline.apply(session, path, layout_by_hand(session, path, {"k": 2, "id": 1}), force=True)
    assert (done.decision, done.rows) == ("applied", 990)
    assert session.read.format("delta").load(path).distinct().count() == 990


def test_while_a_scan_is_planned_delta_selects_files_for_the_session_s_other_threads(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, state, seen = f"{tmp_path}/t", f"{tmp_path}/s", []
    spark.range(40).selectExpr("id", "concat('c', id) c").repartition(4).write.format("delta").save(path)
    gathered(spark, path, state, "c LIKE '%x%'")

    def spied(real: Any) -> Any:
        def call(*args: Any) -> Any:
            seen.append(spark.conf.get("spark.databricks.delta.stats.skipping", "true"))
            seen.append(spark.conf.get("spark.sql.optimizer.nestedSchemaPruning.enabled"))
            return real(*args)

        return call

    for module, name in ((known_files, "Meanings"), (choosing, "optimized")):
        monkeypatch.setattr(module, name, spied(getattr(module, name)))
    assert zorder_pipeline.scan(spark, path, "c LIKE '%x%'", state=state).inputFiles() == []
    assert seen == ["true"] * 4
    plan = analysed(spark.read.format("delta").load(path).where("id = 1"))
    (found,) = scans(optimized(spark, plan))
    assert class_name(found.node.relation().location()) == "TahoeLogFileIndex"  # and none that a job has prepared
    assert len(found.conditions) == 1


def test_conditions_on_partitions_are_told_without_a_change_for_the_session_s_other_threads(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = str(tmp_path / "t"), list[tuple[str | None, ...]]()
    rows = spark.range(4).selectExpr("id", "timestamp_seconds(id * 7200) AS at")
    rows.write.format("delta").partitionBy("at").save(path)
    session = spark.newSession()
    own = {"spark.sql.ansi.enabled": "true", ZONE: "UTC"}
    for name, value in own.items():
        session.conf.set(name, value)

    def spied(rows: Any, *args: Any) -> Any:
        seen.append((*map(session.conf.get, own), *map(rows.sparkSession.conf.get, own)))
        return truths(rows, *args)

    truths = partition_conditions.partition_truths
    monkeypatch.setattr(partition_conditions, "partition_truths", spied)
    asked = Opaque("function", ("at",), "HOUR(at) < 3")
    queries = [LoggedQuery("t", asked, zone=zone) for zone in ("UTC", "Asia/Tokyo")]
    told = told_on(open_table(session, path), queries)
    assert seen == [("true", "UTC", "false", "UTC"), ("true", "UTC", "false", "Asia/Tokyo")]
    schema = open_table(session, path).schema
    assert [bool(to_boxes(asked, schema, query.zone, told=told)) for query in queries] == [True, False]
    active = SparkSession.getActiveSession()
    assert active is not None
    assert active.conf.get("spark.sql.ansi.enabled") == "true"


def test_what_is_gathered_while_other_threads_change_settings_counts_for_the_session(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A relayout has settings of its own for a while, under which statistics would be of other values, and nobody's."""
    path, state, condition = str(tmp_path / "t"), str(tmp_path / "state"), "hour(at) = 2"
    rows = spark.range(0, 24, 1, 4).selectExpr("id", "timestamp_seconds(id * 3600) AS at")
    rows.write.format("delta").save(path)
    session, snapshot = session_of(spark), open_table(spark, path)
    with set_for_a_while(spark, {**exactly(spark, instants=True), ZONE: "Asia/Tokyo"}):
        assert session_of(spark) != session
        asked = asked_of(snapshot, condition)
        assert gather_statistics(spark, snapshot, asked, state).rows_added == 4
    found = zorder_pipeline.scan(spark, path, condition, state=state)
    assert len(found.inputFiles()) == 1
    assert [row["id"] for row in found.collect()] == [2]
    assert gather_statistics(spark, snapshot, asked_of(snapshot, condition), state).files == 0


def test_plans_are_optimized_by_the_settings_that_their_session_has_now(spark: SparkSession) -> None:
    session = spark.newSession()
    found = unprepared(session)
    assert unprepared(session) is found
    session.conf.set(NAME, "7")
    other = unprepared(session)
    assert other is not found
    assert other.conf().get(NAME) == "7"
    assert other.conf().get("spark.databricks.delta.stats.skipping") == "false"
    assert session.conf.get("spark.databricks.delta.stats.skipping", "true") == "true"


def of_hive(spark: SparkSession, path: str, name: str = "id") -> SparkSession:
    """A table of ten rows whose first file spells a column otherwise, and a session that reads nulls there."""
    for start, spelled in ((0, name.swapcase()), (5, name)):
        rows = spark.range(start, start + 5).selectExpr(f"id AS {spelled}", "id AS v")
        rows.coalesce(1).write.parquet(f"{path}/{start}")
        (file,) = Path(path, str(start)).glob("*.parquet")
        file.rename(Path(path, f"{start}.parquet"))  # the last by name tells how the table spells its columns
        shutil.rmtree(Path(path, str(start)))
    spark.sql(f"CONVERT TO DELTA parquet.`{path}`")
    minding = spark.newSession()
    minding.conf.set("spark.sql.caseSensitive", "true")
    return minding


@pytest.mark.parametrize("name", ["id", "ID"])
def test_columns_that_files_spell_otherwise_keep_their_values_in_sessions_that_mind_the_case(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """Such a session reads nulls there: a rewrite made them last, and statistics hid the rows from everybody."""
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    minding = of_hive(spark, path, name)
    table = open_table(minding, path)
    assert [column.name for column in table.schema.columns] == [name, "v"]
    feature = Feature(name, "column", "bigint", name, (name,), True)
    gather_statistics(minding, table, [feature], state)
    for session in (spark, minding):
        found = zorder_pipeline.scan(session, path, f"{name} IS NOT NULL", state=state)
        assert found.count() == session.read.format("delta").load(path).where(f"{name} IS NOT NULL").count()
    assert zorder_pipeline.scan(spark, path, "id = 3", state=state).count() == 1
    assert rewrite(table, Compaction(1000), safety=Safety("hash")).committed
    for session in (spark, minding):
        rows = session.read.format("delta").load(path).collect()
        assert sorted((row[0], row[1]) for row in rows) == [(i, i) for i in range(10)]


def test_what_a_session_that_minds_the_case_tells_of_a_table_is_what_others_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It was told of nulls: the sample and the zones that a layout is chosen by, and the proof, which took a right
    relayout for a wrong one."""
    path, log = str(tmp_path / "t"), tmp_path / "log.jsonl"
    minding = of_hive(spark, path)
    table = open_table(minding, path)
    sample = take_sample(table, ["id"], rows=10, seed=0, total_rows=10).columns["id"]
    assert (sample.valid.all(), sorted(sample.values)) == (True, list(range(10)))
    cells = zones_by_cell(table, spec_for("id", span=10), ["id"], table.files().path.tolist())
    assert (cells.rows.sum(), cells.nulls["id"].sum()) == (10, 0)
    zones = open_table(minding, path, committer="public").files().zones_of(["id"])["id"]
    assert (zones.null_count.tolist(), sorted(zones.low)) == ([0, 0], [0, 5])
    log.write_text(json.dumps({"statement": f"SELECT * FROM delta.`{path}` WHERE id < 3"}))
    assert pipeline.evaluate(minding, path, [str(log)]).matched_per_query.tolist() == [3]
    assert rewrite(table, Compaction(1000), safety=Safety("hash")).committed
    proof = prove(table, open_table(minding, path), hashed=True)
    assert proof.contents[0] == proof.contents[1]


def test_no_other_thread_is_given_a_copy_of_the_session(spark: SparkSession) -> None:
    """PySpark has one active session for all threads, which whoever makes a DataFrame of Python's data sets."""
    spark.createDataFrame([(0,)], "a INT")
    off, seen = {"spark.sql.ansi.enabled": "false"}, list[Any]()

    def another() -> None:
        seen.append(SparkSession._activeSession)
        with alone(spark):
            pass
        seen.append(SparkSession._activeSession)

    with alone(spark, off) as copied:
        assert copied.createDataFrame([(1,)], "a INT").sparkSession is copied
        assert copied.range(1).sparkSession.conf.get("spark.sql.ansi.enabled") == "false"
        assert copied.createDataFrame([("x",)], "a STRING").selectExpr("CAST(a AS INT)").first() == (None,)
        with alone(copied, {ZONE: "Asia/Tokyo"}) as inner:
            inner.createDataFrame([(1,)], "a INT").count()
            assert inner.conf.get("spark.sql.ansi.enabled") == "false"
        with ThreadPoolExecutor(1) as pool:
            pool.submit(another).result()
    assert [one is spark for one in (*seen, SparkSession._activeSession)] == [True] * 3
    assert SparkSession.getActiveSession() is spark
