"""Columns that are renamed or widened: the layout stays, and queries from before count."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from zorder_pipeline import pipeline
from zorder_pipeline.gate.cost import CostModel
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.model.candidate import INCREMENTAL
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.results import ApplyResult
from zorder_pipeline.model.workload import QueryLog, boxes_of
from zorder_pipeline.pipeline.learning.keeping import present_plan
from zorder_pipeline.pipeline.logs import ingest
from zorder_pipeline.relayout import renames
from zorder_pipeline.relayout.snapshot import open_table
from zorder_pipeline.report.facts import Facts

pytestmark = pytest.mark.matrix

SETTINGS = pipeline.LearnSettings(trials=40, target_file_rows=500)
GATE = GateSettings(queries_per_day=1e6, min_new_data_bytes=0, costs=CostModel(per_opened_file=0.0))


def written(spark: SparkSession, path: str, rows: int, part: str = "part", first: int = 0) -> None:
    frame = spark.range(first, first + rows).selectExpr("id", f"int(pmod(hash(id, 1), 10000)) AS {part}", "id AS day")
    writer = frame.repartition(3).write.format("delta").mode("append")
    writer.option("delta.columnMapping.mode", "name").option("delta.enableTypeWidening", "true").save(path)


def logged(path: Path, column: str, lines: int = 120, days: int = 0) -> str:
    with path.open("w") as file:
        for i in range(lines):
            stamp = f"2026-01-{1 + days + i // 12:02d}T00:00:{i % 60:02d}Z"
            where = f"{column} BETWEEN {i * 80} AND {i * 80 + 50}"
            file.write(json.dumps({"statement": f"SELECT * FROM t WHERE {where}", "timestamp": stamp}) + "\n")
    return str(path)


def night(spark: SparkSession, path: str, log: QueryLog, state: str) -> tuple[Plan, ApplyResult]:
    """A night by queries that were read before, as the state keeps them."""
    snapshot = open_table(spark, path)
    layouts = pipeline.layouts_in_use(spark, snapshot, state)
    analysis = pipeline.analyse(spark, snapshot, log, [snapshot.location], SETTINGS, layouts=layouts)
    plan, _ = pipeline.learn_tonight(spark, analysis, state, SETTINGS, gate=GATE)
    return plan, pipeline.apply(spark, path, plan, gate=GATE, state=state)


def rename(spark: SparkSession, path: str, old: str, new: str) -> None:
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN {old} TO {new}")


def test_a_layout_and_queries_go_by_the_new_name(spark: SparkSession, tmp_path: Path) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    written(spark, path, 3_000)
    before = open_table(spark, path)
    log = ingest([logged(tmp_path / "a.jsonl", "part")], {before.location: (before, ("t",))})
    plan = pipeline.layout_by_hand(spark, path, {"part": 3}, settings=SETTINGS)
    assert plan.spec is not None
    assert pipeline.apply(spark, path, plan, force=True, state=state).decision == "applied"
    rename(spark, path, "part", "`piece of it`")
    spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN `piece of it` TYPE BIGINT")

    snapshot = open_table(spark, path)
    present = present_plan(spark, snapshot, state)
    assert present is not None
    assert present.spec is not None
    assert present.spec.columns == ("piece of it",)
    assert present.spec.features[0].type == "bigint"
    assert set(snapshot.files().layout) == {present.spec.layout_id} == {plan.spec.layout_id}
    assert pipeline.apply(spark, path, plan, force=True, state=state).decision == "nothing_to_do"
    analysis = pipeline.analyse(spark, snapshot, log, [snapshot.location], SETTINGS, layouts=[present.spec])
    assert analysis.features.ranked == ("piece of it",)
    read = [
        pipeline.evaluate(spark, path, [logged(tmp_path / "log.jsonl", column)], aliases=["t"]).rows_read_fraction
        for column in ("part", "`piece of it`")
    ]
    assert read[0] == read[1] < 0.3


def test_a_report_asks_an_old_version_by_the_names_of_then(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    frame = spark.range(2_000).selectExpr("id", "int(id * 5) AS part").repartitionByRange(4, "id")
    frame.write.format("delta").option("delta.columnMapping.mode", "name").save(path)
    before = open_table(spark, path)
    rename(spark, path, "part", "piece")
    now = open_table(spark, path)
    queries = ingest([logged(tmp_path / "a.jsonl", "piece")], {now.location: (now, ("t",))}).queries
    facts = Facts(now, before, queries, boxes_of(queries, now.schema), None, (), None, None, None)
    read, then = facts.read_now(), facts.read_before()
    assert then is not None
    assert then.tolist() == read.tolist()
    assert read.mean() < 0.3


@pytest.mark.slow
def test_nights_go_on_after_a_rename(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    written(spark, path, 20_000)
    before = open_table(spark, path)
    log = ingest([logged(tmp_path / "a.jsonl", "part")], {before.location: (before, ("t",))})
    first, done = night(spark, path, log, state)
    assert (first.origin, done.decision) == ("learned", "applied")
    assert first.spec is not None
    rename(spark, path, "part", "piece")
    kept, done = night(spark, path, log, state)
    assert (done.decision, done.rows) == ("nothing_to_do", 0)
    assert "column part is now called piece" in kept.notes
    assert not any("given up" in note for note in kept.notes)
    written(spark, path, 1_500, "piece", 20_000)
    # Delta's history has forgotten the rename, and the state has not
    monkeypatch.setattr(renames, "_commits_about_names", lambda _: [])
    later = open_table(spark, path)
    asked = ingest([logged(tmp_path / "b.jsonl", "piece", days=10)], {later.location: (later, ("t",))})
    plan, done = night(spark, path, asked, state)
    assert (done.gate["action"], done.decision) == (INCREMENTAL, "applied")
    assert set(open_table(spark, path).files().layout) == {first.spec.layout_id}
    assert done.rows < 4_000
    assert plan.spec is not None
    assert plan.spec.columns == ("piece",)
