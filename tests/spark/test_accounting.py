"""Afterwards: promises measured by later queries at the versions themselves, broken ones remembered, savings summed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from zorder_pipeline import pipeline
from zorder_pipeline.gate.cost import CostModel
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.predicate import Comparison, Literal
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.measuring.accounting import experienced
from zorder_pipeline.relayout.rollback import rollback
from zorder_pipeline.state.ledger import Ledger

HOUR = 3_600_000_000
START = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1e6)


def asked(column: str, first: int, count: int) -> list[LoggedQuery]:
    """Look-ups of one value, one an hour."""
    rng = np.random.default_rng(abs(first))
    values = [Literal("number", str(value)) for value in rng.integers(0, 10_000, count)]
    return [
        LoggedQuery("t", Comparison(column, "=", (value,)), (column, "id"), column, START + (first + i) * HOUR)
        for i, value in enumerate(values)
    ]


@pytest.fixture(scope="module")
def relaid(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, Plan, int]:
    """A table laid out by ``part`` for look-ups by it, its state, the plan, and the version that was made."""
    folder = tmp_path_factory.mktemp("accounts")
    path, state = str(folder / "t"), str(folder / "state")
    rows = spark.range(20_000).selectExpr("id", "pmod(hash(id, 1), 10000) AS part", "pmod(hash(id, 2), 10000) AS price")
    rows.repartition(4).write.format("delta").save(path)
    by_hand = pipeline.layout_by_hand(spark, path, {"part": 6}, settings=pipeline.LearnSettings(target_file_rows=1000))
    promise = replace(by_hand.promise, queries=40, before=1.0, after=0.06, low=0.9, high=0.95, queries_per_day=24.0,
                      bytes_saved_per_query=50_000.0)  # fmt: skip
    plan = replace(by_hand, origin="learned", promise=promise, log_watermark=START)
    done = pipeline.apply(spark, path, plan, gate=GateSettings(queries_per_day=1e9), state=state)
    assert done.decision == "applied"
    return path, state, plan, done.version


@pytest.mark.slow
def test_later_queries_show_whether_a_promise_was_kept(
    spark: SparkSession, relaid: tuple[str, str, Plan, int], tmp_path: Path
) -> None:
    path, state, plan, version = relaid
    spark.range(20_000, 21_000).selectExpr("id", "1 AS part", "1 AS price").write.format("delta").mode("append").save(
        path
    )
    before = asked("price", -60, 40)  # the log that it was learned from: says nothing about later ones
    (check,) = pipeline.check_promises(spark, state, path, before)
    assert (check.measured, check.kept, check.broken) == (None, None, False)
    (check,) = pipeline.check_promises(spark, state, path, [*asked("part", 1, 1) * 40, *before])
    assert check.measured is None, "one query says nothing, however often it is asked"
    (check,) = pipeline.check_promises(spark, state, path, [*asked("part", 1, 5), *asked("price", 1, 1) * 15])
    assert (check.queries, check.broken) == (20, True)
    assert 0.2 < check.measured < 0.3, "three of four read all, word for word the same"
    (check,) = pipeline.check_promises(spark, state, path, [*before, *asked("part", 1, 40)])
    assert (check.queries, check.version, check.broken) == (40, version, False)
    assert check.kept == pytest.approx(1.0, abs=0.05), "what was appended since is not held against it"
    assert check.cost_low is not None
    assert experienced(spark, state, (plan.table_id, path)).widening == 1.0
    (check,) = pipeline.check_promises(spark, state, path, asked("price", 1, 80))
    assert check.broken
    assert check.warning is not None
    assert "instead of the promised 94.0%" in check.warning
    assert experienced(spark, state, (plan.table_id, path)).widening == pytest.approx(10.0, abs=0.01)
    later = datetime.now(UTC) + timedelta(days=2 * GateSettings.horizon_days)
    assert experienced(spark, state, (plan.table_id, path), now=later).widening == pytest.approx(1 + 9 / 4, abs=0.01), (
        "it fades with age"
    )
    preview = pipeline.apply(spark, path, plan, state=state, full=True, dry_run=True)
    assert preview.gate["saving_low"] <= preview.gate["saving_core_seconds"] / 9.99
    pipeline.check_promises(spark, state, path, asked("part", 1, 50))
    assert experienced(spark, state, (plan.table_id, path)).widening == 1.0
    nowhere = replace(asked("price", 90, 1)[0], predicate=Comparison("price", "=", (Literal("number", "999999"),)))
    (check,) = pipeline.check_promises(spark, state, path, [*asked("price", 1, 80), nowhere])
    assert (check.queries, check.broken) == (81, True), "a query that reads nothing hides not what the others read"


@pytest.mark.slow
def test_as_many_other_queries_are_measured_anew(spark: SparkSession, relaid: tuple[str, str, Plan, int]) -> None:
    """A log that is kept for some days has as many queries each night where as many are asked each day."""
    path, state, _, _ = relaid
    (check,) = pipeline.check_promises(spark, state, path, asked("part", 1, 30))
    assert (check.queries, check.broken) == (30, False)
    (check,) = pipeline.check_promises(spark, state, path, asked("price", 31, 30))
    assert (check.queries, check.broken) == (30, True)


def test_savings_rest_on_what_was_measured(spark: SparkSession, relaid: tuple[str, str, Plan, int]) -> None:
    path, state, _, _ = relaid
    later = datetime.now(UTC) + timedelta(days=10)
    assumed = CostModel(price_per_core_hour=0.5)
    pipeline.check_promises(spark, state, path, asked("part", 1, 50))
    books = pipeline.savings(spark, state, table=path, assumed=assumed, now=later)
    assert sum(row.relayouts for row in books.months) == 1
    assert sum(row.cost for row in books.months) == pytest.approx(books.checks[0].cost)
    assert all(row.checked == 1.0 for row in books.months if row.saved)
    half = pipeline.savings(spark, state, assumed=assumed, now=datetime.now(UTC) + timedelta(days=5))
    saved = [sum(row.saved for row in found.months) for found in (half, books)]
    assert saved[1] == pytest.approx(2 * saved[0], rel=0.01)
    assert saved[0] > 0
    money = books.to_json()["months"][0]
    assert money["money"] == pytest.approx(money["net"] / 3600 * 0.5)


@pytest.mark.slow
def test_what_others_append_while_a_relayout_is_at_work_counts_neither_for_nor_against_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Nor is a rollback overlooked that goes back to after they did."""
    path, state = f"{tmp_path}/t", f"{tmp_path}/state"
    rows = spark.range(20_000).selectExpr("id", "pmod(hash(id, 1), 10000) AS part")
    rows.repartition(4).write.format("delta").save(path)
    by_hand = pipeline.layout_by_hand(spark, path, {"part": 6}, settings=pipeline.LearnSettings(target_file_rows=1000))
    plan = replace(by_hand, origin="learned", promise=replace(by_hand.promise, queries=40), log_watermark=START)
    more = pa.table({"id": range(5_000), "part": [i * 2 for i in range(5_000)]})
    measured = {}
    for appends in (0, 3):

        def appending(said: str, appends: int = appends) -> None:
            for _ in range(appends if said.startswith("rewriting") else 0):
                write_deltalake(path, more, mode="append")

        done = pipeline.apply(spark, path, plan, force=True, state=state, progress=appending)
        (check,) = pipeline.check_promises(spark, state, path, asked("part", 1, 40))[-1:]
        entry = Ledger(spark, state).entries()[-1]
        assert (done.version, entry.version - entry.replaced_version) == (entry.version, 1 + appends)
        assert check.measured is not None
        measured[appends] = (check.measured * (20_000 + appends * 5_000), entry.measured_files)
        rollback(spark, path, entry.version - 1)
    pipeline.check_promises(spark, state, path, [])
    assert all(entry.ended_at is not None for entry in Ledger(spark, state).entries())
    assert measured[3] == pytest.approx(measured[0])


@pytest.mark.slow
def test_a_table_that_is_written_anew_or_made_anew_saves_no_more_by_what_was_laid_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    """An overwrite ends a relayout also where the table was laid out again since; a new table is another one."""
    path, state = f"{tmp_path}/t", f"{tmp_path}/state"
    rows = spark.range(4_000).selectExpr("id", "pmod(hash(id, 1), 10000) AS part").repartition(2)

    def ended() -> list[bool]:
        return [entry.ended_at is not None for entry in Ledger(spark, state).entries()]

    def laid_out() -> Plan:
        settings = pipeline.LearnSettings(target_file_rows=1000)
        plan = pipeline.layout_by_hand(spark, path, {"part": 3}, settings=settings)
        assert pipeline.apply(spark, path, plan, force=True, state=state).decision == "applied"
        return plan

    rows.write.format("delta").save(path)
    laid_out()
    rows.write.format("delta").mode("overwrite").save(path)
    laid_out()
    pipeline.check_promises(spark, state, path, [])
    assert ended() == [True, False]
    DeltaTable(path).optimize.compact()  # by delta-rs, which tells no bytes
    pipeline.check_promises(spark, state, path, [])
    assert ended() == [True, True]
    old = laid_out()
    before = [entry.ended_at for entry in Ledger(spark, state).entries()]
    rows.createOrReplaceTempView("rows_of_it")
    spark.sql(f"CREATE OR REPLACE TABLE delta.`{path}` USING delta AS SELECT * FROM rows_of_it").collect()
    new = laid_out()
    assert new.table_id != old.table_id
    pipeline.check_promises(spark, state, path, [])
    assert ended() == [True, True, True, False]
    entries = Ledger(spark, state).entries()
    assert [entry.ended_at for entry in entries][:2] == before[:2], "what had ended before stays as it was noted"
    assert entries[2].committed_at < (entries[2].ended_at or 0) < entries[3].committed_at
    here = entries[3].location
    assert experienced(spark, state, (entries[3].table_id, f"{here}_elsewhere")).life_days is None
    known = experienced(spark, state, (entries[3].table_id, here))
    assert known.life_days == pytest.approx(1 / 24), "that of the tables that lay there before counts"
    weighed = pipeline.apply(spark, path, new, force=True, state=state, full=True, dry_run=True)
    assert weighed.gate["assumptions"]["credited_days"] == pytest.approx(1 / 24)


@pytest.mark.slow
def test_a_table_that_was_renamed_saves_on_where_another_took_its_name(spark: SparkSession, tmp_path: Path) -> None:
    state, schema = f"{tmp_path}/state", "renames"
    rows = spark.range(4_000).selectExpr("id", "pmod(hash(id, 1), 10000) AS part").repartition(2)
    spark.sql(f"CREATE DATABASE {schema} LOCATION '{tmp_path}/db'")
    try:
        rows.write.format("delta").saveAsTable(f"{schema}.orders")
        for bits in (3, 2):
            settings = pipeline.LearnSettings(target_file_rows=1000)
            plan = pipeline.layout_by_hand(spark, f"{schema}.orders", {"part": bits}, settings=settings)
            assert pipeline.apply(spark, f"{schema}.orders", plan, force=True, full=True, state=state).files_added
            if bits == 3:
                rows.write.format("delta").mode("overwrite").saveAsTable(f"{schema}.orders")
        spark.sql(f"ALTER TABLE {schema}.orders RENAME TO {schema}.old_orders")
        rows.write.format("delta").saveAsTable(f"{schema}.orders")
        for name in ("orders", "old_orders", "orders"):
            pipeline.check_promises(spark, state, f"{schema}.{name}", [])
        entries = Ledger(spark, state).entries()
        assert [entry.ended_at is not None for entry in entries] == [True, False], "what was overwritten has ended"
        assert {row.table for row in pipeline.savings(spark, state).months} == {f"file:{tmp_path}/db/old_orders"}
    finally:
        spark.sql(f"DROP DATABASE {schema} CASCADE")


@pytest.mark.slow
def test_a_promise_is_measured_by_queries_of_a_column_that_was_renamed_since(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, state = f"{tmp_path}/t", f"{tmp_path}/state"
    rows = spark.range(20_000).selectExpr("id", "pmod(hash(id, 1), 10000) AS part")
    mapped = rows.repartition(4).write.format("delta").option("delta.columnMapping.mode", "name")
    mapped.save(path)
    by_hand = pipeline.layout_by_hand(spark, path, {"part": 6}, settings=pipeline.LearnSettings(target_file_rows=1000))
    promise = replace(by_hand.promise, queries=40, before=1.0, after=0.06, low=0.9, high=0.95, queries_per_day=24.0,
                      bytes_saved_per_query=50_000.0)  # fmt: skip
    plan = replace(by_hand, origin="learned", promise=promise, log_watermark=START)
    assert pipeline.apply(spark, path, plan, gate=GateSettings(queries_per_day=1e9), state=state).decision == "applied"
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN part TO piece")
    (check,) = pipeline.check_promises(spark, state, path, asked("piece", 1, 40))
    assert (check.queries, check.broken) == (40, False), "they counted as reading all of it before and after"
    assert check.measured == pytest.approx(0.94, abs=0.02)


@pytest.mark.slow
def test_what_a_loader_writes_anew_each_morning_is_credited_until_then(spark: SparkSession, tmp_path: Path) -> None:
    """The days beside it lie by the same layout, so that each night's relayout of one day was credited for a month."""
    path, state = f"{tmp_path}/t", f"{tmp_path}/state"

    def load(first: int, days: int, mode: str, **options: str) -> None:
        rows = spark.range(days * 400).selectExpr(
            "id", "pmod(hash(id, 1), 1000) AS part", f"{first} + id % {days} AS d"
        )
        written = rows.repartition(2).write.format("delta").mode(mode).partitionBy("d").options(**options)
        written.save(path)

    def ended() -> list[bool]:
        pipeline.check_promises(spark, state, path, [])
        return [entry.ended_at is not None for entry in Ledger(spark, state).entries()]

    load(1, 6, "overwrite")
    settings = pipeline.LearnSettings(target_file_rows=100)
    plan = pipeline.layout_by_hand(spark, path, {"part": 3}, settings=settings)
    assert pipeline.apply(spark, path, plan, force=True, state=state).rows == 2_400
    load(7, 1, "append")
    assert pipeline.apply(spark, path, plan, force=True, state=state).rows == 400
    assert ended() == [False, False]
    load(7, 1, "append")
    assert pipeline.apply(spark, path, plan, force=True, state=state).rows == 800, "the night's own are merged with it"
    newest = Ledger(spark, state).entries()[-1]
    assert newest.merged == {newest.replaced_version - 1: 400}
    assert ended() == [False, False, False], "what we merged ourselves lies by the layout as before"
    load(7, 1, "overwrite", replaceWhere="d = 7")
    assert ended() == [False, True, True]
    assert pipeline.apply(spark, path, plan, force=True, state=state).rows == 400
    assert ended() == [False, True, True, False]
    load(1, 4, "overwrite", replaceWhere="d <= 4")
    assert ended() == [True, True, True, False]
