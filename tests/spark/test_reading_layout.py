"""Layouts by predicates: what Spark computes of a key is what the search computed, and scans through it read less."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from pyspark.sql import SparkSession

import zorder_pipeline
from zorder_pipeline import pipeline
from zorder_pipeline.errors import NothingToLearnError
from zorder_pipeline.features.sop import Sop, Vectors, vector_sql
from zorder_pipeline.gate.cost import CostModel
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.layout import choosing
from zorder_pipeline.layout.blocks import blocks_of
from zorder_pipeline.layout.learn import Learned
from zorder_pipeline.model.candidate import ANOTHER, INCREMENTAL
from zorder_pipeline.model.file_stats import Feature
from zorder_pipeline.model.key_spec import PARTITION_INDEX, FeatureCodes, KeySpec
from zorder_pipeline.model.plan import KEPT, Plan, read_plan, write_plan
from zorder_pipeline.pipeline.learning import confirming, drawing, reading_contest, reading_layout
from zorder_pipeline.pipeline.learning.keeping import sample_files
from zorder_pipeline.pipeline.learning.reading_sample import ReadingSample, reading_sample
from zorder_pipeline.pipeline.logs import ingest
from zorder_pipeline.pipeline.records import TableAnalysis
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table
from zorder_pipeline.state.ledger import Ledger

Floats = npt.NDArray[np.float64]


def test_partition_indices_are_the_same_in_spark_and_numpy(spark: SparkSession) -> None:
    frame = spark.range(3000).selectExpr("id", *_columns())
    texts = ("c LIKE '%7%'", "k < 9", "m = 3", "c LIKE '%12%'")
    features = [Feature(text, "predicate", "boolean", text, (), weight=i + 1.0) for i, text in enumerate(texts)]
    found = frame.selectExpr(f"{vector_sql(features)} AS vector").toPandas()["vector"].to_numpy()
    codes, rows = np.unique(found, return_counts=True)
    vectors = Vectors.of_codes(codes, rows.astype(np.int64), len(features))
    most = np.argsort(-vectors.rows)[:9]  # the others are vectors that no sample has seen
    sop = Sop.learn(features, Vectors(vectors.bits[most], vectors.rows[most]), 200)
    place = frame.selectExpr(f"{sop.sql()} AS place").toPandas()["place"]
    assert place.tolist() == sop.index_of(found).tolist()
    assert set(found.tolist()) - set(sop.codes)
    assert place.max() == len(sop.vectors) - 1  # a vector that was never seen makes no partition of its own


def _columns() -> list[str]:
    return [
        "concat('c', id * 7919 % 1000) AS c",
        "CAST(id * 31 % 97 AS INT) AS k",
        "IF(id % 5 = 0, NULL, id % 11) AS m",
    ]


SETTINGS = pipeline.LearnSettings(trials=60, target_file_rows=250, enriched_share=0.9, sample_rows=6000)


def _asked(spark: SparkSession, folder: Path) -> tuple[str, str]:
    """A table that is asked by predicates, and its log."""
    path, log = str(folder / "t"), folder / "log.jsonl"
    rows = spark.range(6000).selectExpr("id", *_columns()).repartition(24)
    rows.write.format("delta").save(path)
    rng = np.random.default_rng(0)
    records = []
    for i in range(160):
        condition = (
            f"c LIKE '%{rng.choice(['77', '12', '90'])}%'",
            f"k + m < {int(rng.integers(2, 8))}",
            f"k BETWEEN {(low := int(rng.integers(0, 90)))} AND {low + 3}",
        )[i % 3]
        moment = f"2026-01-01T{i // 60:02d}:{i % 60:02d}:00Z"
        records.append(json.dumps({"statement": f"SELECT id FROM t WHERE {condition}", "timestamp": moment}))
    log.write_text("\n".join(records))
    return path, str(log)


@pytest.mark.slow
def test_a_layout_that_costs_ordinary_readers_too_much_is_not_taken(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, log = _asked(spark, tmp_path)
    told: list[bool] = []

    def confirmed(snapshot: TableSnapshot, spec: KeySpec | None, *rest: Any) -> tuple[Floats, Floats] | None:
        """As if on all rows every file of a layout by predicates were wider than the sample shows."""
        told.append(spec is not None and any(feature.expression for feature in spec.features))
        found = confirming.confirmed(snapshot, spec, *rest)
        return (found[0], found[1] * 1.03) if told[-1] and found is not None else found

    monkeypatch.setattr(reading_contest, "confirmed", confirmed)
    plan = pipeline.learn(spark, path, [log], aliases=["t"], settings=SETTINGS)
    assert any(told)
    assert plan.spec is not None
    assert not any(feature.expression for feature in plan.spec.features)
    assert "columns alone are best" in plan.notes[-1]
    promised = plan.promise
    assert promised.page_bytes_before is not None, "its own promise, by pages too"
    assert promised.enriched_page_bytes_per_query is not None
    assert promised.enriched_bytes_low is not None
    assert promised.bytes_low <= promised.enriched_bytes_low
    most = promised.bytes_saved_per_query + promised.enriched_bytes_per_query
    assert promised.enriched_bytes_per_query > 0
    assert promised.enriched_bytes_low < most < promised.bytes_before


@pytest.mark.slow
def test_a_layout_by_predicates_is_learned_applied_and_read(spark: SparkSession, tmp_path: Path) -> None:
    path, log = _asked(spark, tmp_path)
    state = str(tmp_path / "state")
    plan = pipeline.learn(spark, path, [log], aliases=["t"], settings=SETTINGS)
    assert plan.spec is not None
    expressions = [feature for feature in plan.spec.features if feature.expression]
    assert expressions, plan.notes
    assert plan.reading["reading_after"] < 0.6 * plan.reading["plain_after"]
    assert plan.promise.enriched_bytes_per_query > 0
    assert "won on the select queries" in plan.notes[-1]
    write_plan(plan, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == Plan.from_json(plan.to_json()) == plan
    before = sorted(map(str, spark.read.format("delta").load(path).collect()))
    done = pipeline.apply(spark, path, plan, force=True, state=state)
    assert done.decision == "applied"
    assert Ledger(spark, state).entries()[-1].predicates == len(expressions), "they cost more than columns do"
    assert sorted(map(str, spark.read.format("delta").load(path).collect())) == before
    for condition in ("c LIKE '%77%'", "k + m < 3"):
        report = zorder_pipeline.explain(spark, path, condition, state=state)
        assert report.files_read < 0.6 * report.delta_files_read, str(report)
        plain = spark.read.format("delta").load(path).where(condition)
        found = zorder_pipeline.scan(spark, path, condition, state=state)
        assert sorted(map(str, found.collect())) == sorted(map(str, plain.collect()))
    assert pipeline.apply(spark, path, plan, force=True, state=state).decision == "nothing_to_do"
    again = pipeline.update_statistics(spark, path, state, features=plan.statistics)
    assert (again.files, again.files_forgotten) == (0, 0)
    assert open_table(spark, path).version == done.version


def test_a_layout_of_an_expression_is_known_though_the_form_that_is_asked_for_fails(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, log = str(tmp_path / "t"), tmp_path / "log.jsonl"
    spark.range(300).selectExpr("CAST(id AS INT) AS a", "CAST(id % 7 AS INT) AS b").write.format("delta").save(path)
    asked = (f"SELECT a FROM t WHERE a / b > {i % 30} AND a > {i}" for i in range(40))
    log.write_text("\n".join(json.dumps({"statement": text}) for text in asked))
    codes = FeatureCodes("a / b", "double", (10.0,), (0, 1), 1, 0, expression="TRY_DIVIDE(a, b)")
    snapshot = open_table(spark, path)
    found = ingest([str(log)], {snapshot.location: (snapshot, ("t",))})
    layouts = [KeySpec((codes,), (0,))]
    analysis = pipeline.analyse(spark, snapshot, found, [snapshot.location], SETTINGS, layouts=layouts)
    assert "a / b" in analysis.columns.values(), "it is among what is asked for"
    column = analysis.sample.columns["a / b"]
    assert (len(column.values), int((~column.valid).sum())) == (300, 43), "null where a division by zero would fail"


DAYS = 8


def _drifting(spark: SparkSession, folder: Path) -> tuple[str, str]:
    """A table asked by words, two of which are born a day and given up four days later, and its log."""
    path, log = str(folder / "t"), folder / "log.jsonl"
    words = "concat('w', lpad(CAST(pmod(hash(id), 50) AS STRING), 2, '0'), ' of ', id) AS c"
    spark.range(6000).selectExpr("id", words).repartition(24, "id").write.format("delta").save(path)
    asked = [(day, k, i) for day in range(DAYS) for i in range(4) for k in range(2 * max(0, day - 3), 2 * day + 2)]
    records = [
        {
            "statement": f"SELECT id FROM t WHERE c LIKE '%w{k:02d} %'",
            "timestamp": f"2026-01-{1 + day:02d}T{6 * i:02d}:{k:02d}:00Z",
        }
        for day, k, i in asked
    ]
    log.write_text("\n".join(map(json.dumps, records)))
    return path, str(log)


def _first_asked(analysis: TableAnalysis) -> dict[str, int]:
    """The block in which each condition was first asked."""
    blocks = blocks_of(analysis.queries).block
    found: dict[str, int] = {}
    for query, block in zip(analysis.queries, blocks.tolist(), strict=True):
        name = query.predicate.to_sql()
        found[name] = min(block, found.get(name, block))
    return found


def test_no_layout_is_made_for_what_is_first_asked_in_the_time_that_it_is_proved_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, log = _drifting(spark, tmp_path)
    snapshot = open_table(spark, path)
    found = ingest([log], {snapshot.location: (snapshot, ("t",))})
    analysis = pipeline.analyse(spark, snapshot, found, [snapshot.location], SETTINGS)
    first = _first_asked(analysis)
    by_block = [{name for name, block in first.items() if block <= last} for last in range(3)]
    assert len(by_block[0]) < len(by_block[1]) < len(by_block[2]) == 2 * DAYS
    assert {f.name for f in analysis.columns if f.kind == "predicate"} == by_block[2], "statistics are of all"
    blocks = blocks_of(analysis.queries)
    for last, weights, block in ((0, analysis.train_weights, blocks.train), (1, analysis.known_weights, blocks.known)):
        asked = [analysis.queries[i].predicate.to_sql() for i in block.queries]
        assert {f.name: weight for f, weight in weights.items() if f.kind == "predicate"} == Counter(asked)
        sampled = reading_sample(analysis, 250, None, weights)
        assert {name for name in sampled.expressions if name != sampled.index} <= by_block[last]
        assert not any(name in sampled.expressions[sampled.index] for name in by_block[2] - by_block[last])
        read = dict(zip((q.predicate.to_sql() for q in analysis.queries), _by_index(sampled), strict=True))
        born = by_block[2] - by_block[last]
        known = [read[name] for name in by_block[last]]
        assert np.mean(known) < 0.3, "rows of what it is made for lie together"
        assert min(read[name] for name in born) > 0.5, "and those of what it is not made for anywhere"


def _by_index(sampled: ReadingSample) -> Floats:
    """Share of the rows that each query reads through ``reading/`` of files by the partition index."""
    file = sampled.columns[sampled.index][0].astype(np.int32)
    return sampled.read(None, sampled.reading, file)


@pytest.mark.matrix
def test_a_log_of_functions_alone_is_learned_from_where_scans_skip_by_them(spark: SparkSession, tmp_path: Path) -> None:
    path, log = str(tmp_path / "t"), tmp_path / "log.jsonl"
    moment = "timestampadd(HOUR, CAST(id * 7919 % 87600 AS INT), TIMESTAMP '2010-01-01') AS ts"
    spark.range(2000).selectExpr("id", moment).repartition(8).write.format("delta").save(path)
    records = [
        {"statement": f"SELECT id FROM t WHERE year(ts) = {2010 + i * 7 % 9}", "timestamp": 1_767_225_600 + 60 * i}
        for i in range(90)
    ]
    log.write_text("\n".join(map(json.dumps, records)))
    settings = pipeline.LearnSettings(trials=10, target_file_rows=250, confirm=False)
    with pytest.raises(NothingToLearnError, match=r"filter by ts only through functions .* \(--enriched-share"):
        pipeline.learn(spark, path, [str(log)], aliases=["t"], settings=settings)
    settings = replace(settings, enriched_share=0.9)
    plan = pipeline.learn(spark, path, [str(log)], aliases=["t"], settings=settings)
    assert plan.spec is not None
    assert plan.spec.columns == ("ts",)
    assert plan.reading["reading_after"] < 0.3 < plan.reading["plain_after"] == 1
    assert "columns that queries filter by through functions won" in plan.notes[-1]
    assert (plan.promise.bytes_saved_per_query, plan.promise.enriched_bytes_per_query > 0) == (0, True)
    assert pipeline.apply(spark, path, plan, force=True, state=str(tmp_path / "state")).decision == "applied"
    told = zorder_pipeline.explain(spark, path, "year(ts) = 2013", state=str(tmp_path / "state"))
    assert told.files_read < 0.5 * told.delta_files_read, str(told)
    again = pipeline.learn(spark, path, [str(log)], aliases=["t"], settings=settings)
    assert (again.spec, again.promise.enriched_bytes_per_query) == (None, 0), "they skip as it lies"


@pytest.mark.slow
def test_a_promise_is_of_files_that_know_nothing_of_what_promises(spark: SparkSession, tmp_path: Path) -> None:
    path, log = _drifting(spark, tmp_path)
    snapshot = open_table(spark, path)
    found = ingest([log], {snapshot.location: (snapshot, ("t",))})
    analysis = pipeline.analyse(spark, snapshot, found, [snapshot.location], SETTINGS)
    first, said = _first_asked(analysis), list[str]()
    plan, _ = pipeline.learn_layout_for(analysis, SETTINGS, say=said.append)
    assert plan.spec is not None
    used = " ".join(feature.expression for feature in plan.spec.features)
    assert not [name for name, block in first.items() if block == 2 and name in used]
    assert [name for name, block in first.items() if block == 1 and name in used], "learned again by what chose it"
    assert any("once more" in text for text in said)
    promise = blocks_of(analysis.queries).promise
    unknown = np.mean([first[analysis.queries[i].predicate.to_sql()] == 2 for i in promise.queries])
    assert unknown > 0.2
    assert plan.reading["reading_after"] > 0.75 * unknown
    assert plan.promise.enriched_bytes_low is not None
    assert plan.promise.enriched_bytes_low < plan.promise.enriched_bytes_per_query


@pytest.mark.slow
def test_nights_go_on_with_a_partition_index(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, log = _asked(spark, tmp_path)
    costs = CostModel(per_opened_file=0.0)  # of files this small it is all that counts
    state, gate = str(tmp_path / "state"), GateSettings(queries_per_day=1e6, min_new_data_bytes=0, costs=costs)

    def night() -> tuple[Plan, Learned, TableAnalysis]:
        snapshot = open_table(spark, path)
        found = ingest([log], {snapshot.location: (snapshot, ("t",))})
        layouts = pipeline.layouts_in_use(spark, snapshot, state)
        analysis = pipeline.analyse(spark, snapshot, found, [snapshot.location], SETTINGS, layouts=layouts)
        return *pipeline.learn_tonight(spark, analysis, state, SETTINGS), analysis

    plan, learned, analysis = night()
    assert plan.spec is not None
    (index,) = [name for name in plan.spec.columns if name.startswith(PARTITION_INDEX)]
    assert index not in analysis.sample.columns
    assert sample_files(analysis.with_computed(learned.computed), plan.spec, 250).max() > 10
    assert drawing.plane(analysis.with_computed(learned.computed), plan) is not None
    assert drawing.plane(analysis, plan) is None, "it cannot be told where rows would lie"
    assert pipeline.apply(spark, path, plan, force=True, state=state).decision == "applied"
    rows = spark.range(6000, 6600).selectExpr("id", *_columns()).repartition(3)
    rows.write.format("delta").mode("append").save(path)
    monkeypatch.setattr(choosing, "MIN_GAIN", 0.9)  # of so small a table a whole relayout would be worth it
    later, _, analysis = night()
    assert (later.origin, later.spec) == (KEPT, plan.spec)
    values = {f: column.values for f, column in analysis.sample.columns.items()}
    assert set(np.unique(values[index])) == {0, 1}, "the sample has what Spark computes of it"
    done = pipeline.apply(spark, path, later, gate=gate, state=state)
    assert (done.decision, done.gate["action"]) == ("applied", INCREMENTAL)
    assert done.rows < 3000
    assert set(open_table(spark, path).files().layout) == {plan.spec.layout_id}


@pytest.mark.slow
def test_a_table_that_lies_by_columns_goes_over_to_predicates_once_scans_are_expected_and_then_stays(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With new files no layout for scans was sought; without any, one a hair better took the place of another."""
    path, log = _asked(spark, tmp_path)
    costs = CostModel(per_opened_file=0.0)
    state, gate = str(tmp_path / "state"), GateSettings(queries_per_day=1e6, min_new_data_bytes=0, costs=costs)
    gate = replace(gate, enriched_share=0.9)

    def night(settings: pipeline.LearnSettings) -> tuple[Plan, Learned]:
        snapshot = open_table(spark, path)
        found = ingest([log], {snapshot.location: (snapshot, ("t",))})
        layouts = pipeline.layouts_in_use(spark, snapshot, state)
        analysis = pipeline.analyse(spark, snapshot, found, [snapshot.location], settings, layouts=layouts)
        return pipeline.learn_tonight(spark, analysis, state, settings, gate=gate)

    first, _ = night(replace(SETTINGS, enriched_share=0.0))
    assert first.spec is not None
    assert not first.spec.computed
    assert pipeline.apply(spark, path, first, force=True, state=state).decision == "applied"
    rows = spark.range(6000, 6600).selectExpr("id", *_columns()).repartition(3)
    rows.write.format("delta").mode("append").save(path)
    plan, learned = night(SETTINGS)
    assert plan.spec is not None
    assert plan.spec.computed
    assert (plan.origin, learned.spec, learned.name != reading_contest.COLUMNS) == ("learned", plan.spec, True)
    assert plan.predicted == {"train_fraction": learned.train, "validation_fraction": learned.select}
    assert set(learned.compared) == {*learned.baselines, learned.name}
    assert float(learned.unseen.times @ learned.after) == pytest.approx(plan.promise.after * learned.unseen.times.sum())
    assert [one.action for one in plan.candidates][:2] == [ANOTHER, INCREMENTAL]
    done = pipeline.apply(spark, path, plan, gate=gate, state=state)
    assert (done.decision, done.gate["action"]) == ("applied", ANOTHER)
    assert set(open_table(spark, path).files().layout) == {plan.spec.layout_id}
    again, learned = night(SETTINGS)
    assert (again.spec, learned.spec, learned.name) == (None, None, "stored")
    assert again.predicted["validation_fraction"] == learned.stored_select == learned.stays[1]
    rows.write.format("delta").mode("append").save(path)
    for module in (choosing, reading_layout):
        monkeypatch.setattr(module, "MIN_GAIN", 0.9)  # of so small a table a whole relayout would be worth it
    later, learned = night(SETTINGS)
    assert (later.origin, later.spec, learned.name) == (KEPT, plan.spec, KEPT)
    assert learned.compared[KEPT] <= learned.compared["stored"]
