"""Judgements of real tables: the reason of each refusal, approvals, the kill switch, and one budget for many tables."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from tests.spark.judged_tables import BUSY, SETTINGS, log, make, promising
from zorder_pipeline import pipeline
from zorder_pipeline.gate.cost import CostModel
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.model.candidate import ANOTHER, COMPACTION, Candidate
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.pipeline.judging.previews import cutter_of
from zorder_pipeline.relayout import history
from zorder_pipeline.relayout.clustering import Clustering
from zorder_pipeline.relayout.job import Safety
from zorder_pipeline.relayout.rewrite import rewrite
from zorder_pipeline.relayout.snapshot import open_table
from zorder_pipeline.state.ledger import Ledger


def test_without_the_gate_the_plan_s_own_layout_is_applied(spark: SparkSession, tmp_path: Path) -> None:
    path = make(spark, tmp_path / "t")
    plan, better = promising(spark, path, 0.1), promising(spark, path, 0.9, "v")
    other = Candidate(ANOTHER, better.spec, better.target_file_rows, better.promise)
    plan = replace(plan, candidates=(other,))
    assert pipeline.judge_table(spark, path, plan, gate=BUSY).plan.spec == better.spec, "the gate would take the other"
    assert pipeline.apply(spark, path, plan, force=True, gate=BUSY).decision == "applied"
    assert set(open_table(spark, path).files().layout) == {plan.spec.layout_id}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_must_not_be_rewritten_is_declined_with_its_reason(spark: SparkSession, tmp_path: Path) -> None:
    path = make(spark, tmp_path / "t")
    rng = np.random.default_rng(0)
    values = rng.integers(0, 10_000, 60).tolist()

    def learned(statements: list[str]) -> Plan:
        found = log(tmp_path / f"{len(statements)}.jsonl", statements)
        return pipeline.learn(spark, path, [found], aliases=["t"], settings=SETTINGS)

    five = pipeline.judge_table(spark, path, learned([f"SELECT * FROM t WHERE k = {v}" for v in values[:5]]), gate=BUSY)
    assert (five.outcome, five.decision.cause) == ("declined", "too_few_queries")
    random = learned([f"SELECT * FROM t WHERE k {'<>' if v % 2 else '>='} {v % 7}" for v in values])
    assert pipeline.judge_table(spark, path, random, gate=BUSY).outcome != "approved"
    by_hand = pipeline.layout_by_hand(spark, path, {"k": 4}, settings=SETTINGS)
    judged = pipeline.judge_table(spark, path, by_hand, gate=BUSY)
    assert (judged.outcome, judged.decision.cause) == ("declined", "no_workload")
    good = learned([f"SELECT * FROM t WHERE k = {v}" for v in values])
    assert pipeline.apply(spark, path, good, gate=BUSY).decision == "applied"
    again = pipeline.judge_table(spark, path, good, gate=BUSY)
    assert (again.outcome, again.decision.cause) == ("nothing_to_do", "nothing_new")
    for _ in range(2):  # another job compacts it after each of our relayouts
        spark.sql(f"OPTIMIZE delta.`{path}`")
        if pipeline.judge_table(spark, path, good, gate=BUSY).outcome == "approved":
            pipeline.apply(spark, path, good, gate=BUSY)
    undone = pipeline.judge_table(spark, path, good, gate=BUSY)
    assert (undone.outcome, undone.decision.cause) == ("declined", "undone")
    assert undone.decision.reasons[0].startswith("another job keeps undoing the layout: OPTIMIZE")


def test_a_job_is_named_that_undoes_the_layout_of_a_table_which_a_stream_writes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where more commits come in a day than were looked at, each night answered the job's rewrite with one of ours."""
    monkeypatch.setattr(history, "LOOKED_AT", 3)
    path, state = make(spark, tmp_path / "t"), str(tmp_path / "state")
    plan = promising(spark, path, 0.9)
    for _ in range(2):
        assert pipeline.apply(spark, path, plan, gate=BUSY, state=state).decision == "applied"
        for _ in range(3):
            spark.read.format("delta").load(path).limit(1).write.format("delta").mode("append").save(path)
        spark.sql(f"OPTIMIZE delta.`{path}`")
    undone = pipeline.judge_table(spark, path, plan, gate=BUSY, state=state)
    assert (undone.outcome, undone.decision.cause) == ("declined", "undone")


def test_what_is_carried_out_a_second_time_says_that_it_is_done(spark: SparkSession, tmp_path: Path) -> None:
    """As by Materialize on `clustered_table` alone; it told that the rewrite is worth it, and why."""
    path = make(spark, tmp_path / "t")
    judged = pipeline.judge_table(spark, path, promising(spark, path), gate=BUSY)
    assert pipeline.carry_out(spark, judged).decision == "applied"
    again = pipeline.carry_out(spark, judged)
    assert (again.decision, again.gate["verdict"], again.gate["cause"]) == ("nothing_to_do", "decline", "nothing_new")
    assert again.reasons == ("what was approved is done already: no file is left that it would rewrite",)


@pytest.mark.slow
def test_small_files_are_merged_where_no_layout_helps_and_that_pays(spark: SparkSession, tmp_path: Path) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    spark.range(3_000).selectExpr("id", "pmod(hash(id), 97) AS k").repartition(60).write.format("delta").save(path)
    found = log(tmp_path / "log.jsonl", [f"SELECT * FROM t WHERE k <> {v}" for v in range(60)])
    plan = pipeline.learn(spark, path, [found], aliases=["t"], settings=SETTINGS)
    assert (plan.spec, [candidate.action for candidate in plan.candidates]) == (None, [COMPACTION])
    (merged,) = plan.candidates
    assert (merged.promise.files_before, merged.promise.files_saved_per_query) == (60.0, pytest.approx(54.0, abs=1.0))

    seldom = pipeline.judge_table(spark, path, plan, gate=GateSettings(queries_per_day=0.01))
    assert (seldom.outcome, seldom.decision.cause) == ("nothing_to_do", "in_good_order")
    assert "compaction only in 6 files -" in seldom.decision.reasons[0]
    assert pipeline.judge_table(spark, path, plan, gate=GateSettings(enabled=False)).outcome == "nothing_to_do"
    often = pipeline.judge_table(spark, path, plan, gate=GateSettings(queries_per_day=1e6), state=state)
    assert (often.outcome, often.decision.action) == ("approved", COMPACTION)
    assert often.decision.reasons[0].startswith("compaction only worth it")
    done = pipeline.carry_out(spark, often, pipeline.RelayoutSettings(state=state))
    assert (done.decision, done.files_removed) == ("applied", 60)
    assert done.files_added == pytest.approx(6, abs=1)
    assert spark.read.format("delta").load(path).distinct().count() == 3_000
    (entry,) = Ledger(spark, state).entries()
    assert (entry.layout_id, entry.columns, entry.promised_files) == ("", 0, merged.promise.files_saved_per_query)
    again = pipeline.learn(spark, path, [found], aliases=["t"], settings=SETTINGS)
    assert pipeline.judge_table(spark, path, again, gate=GateSettings(queries_per_day=1e6)).outcome == "nothing_to_do"


@pytest.mark.slow
def test_a_layout_of_many_small_files_may_be_written_in_larger_ones(spark: SparkSession, tmp_path: Path) -> None:
    path, state, settings = str(tmp_path / "t"), str(tmp_path / "state"), replace(SETTINGS, target_file_rows=None)
    rows = spark.range(80_000).selectExpr("id", "pmod(hash(id), 9973) AS k", "sha2(string(id), 256) AS text")
    rows.repartition(64).write.format("delta").save(path)
    asked = [f"SELECT text FROM t WHERE k BETWEEN {v} AND {v + 40}" for v in range(0, 9900, 45)]
    found = log(tmp_path / "log.jsonl", asked)
    plan = pipeline.learn(spark, path, [found], aliases=["t"], settings=settings)
    assert plan.spec is not None
    own = [candidate for candidate in plan.candidates if candidate.action == ANOTHER]
    assert [candidate.spec for candidate in own] == [plan.spec] * 2
    first, *larger = (candidate.target_file_rows for candidate in own)
    assert (first, larger) == (plan.target_file_rows, [8 * first])
    after = [candidate.promise.after for candidate in own]
    opened = [c.promise.files_before - c.promise.files_saved_per_query for c in own]
    assert after == sorted(after), "larger files: more rows are read"
    assert opened == sorted(opened, reverse=True), "and fewer files opened"
    assert plan.candidates[-1].action == COMPACTION

    def weighed(per_file: float) -> tuple[pipeline.Judgement, dict[str, float]]:
        gate = GateSettings(queries_per_day=1e5, costs=CostModel(per_opened_file=per_file))
        judged = pipeline.judge_table(spark, path, plan, gate=gate, state=state)
        return judged, {option.label: option.net_low for option in judged.decision.options}

    dear = weighed(1.0)[1]
    assert dear["another layout in 8 files"] > dear["another layout in 64 files"]
    judged, cheap = weighed(0.0)
    assert cheap["another layout in 64 files"] > cheap["another layout in 8 files"]
    assert set(cheap) == {
        "nothing",
        "another layout in 64 files",
        "another layout in 8 files",
        "compaction only in 1 file",
    }
    assert (judged.outcome, judged.decision.action) == ("approved", ANOTHER)
    done = pipeline.carry_out(spark, judged, pipeline.RelayoutSettings(state=state))
    assert done.files_added == pytest.approx(80_000 / judged.plan.target_file_rows, rel=0.2)
    told = pipeline.evaluate(spark, path, [found], aliases=["t"])
    assert told.rows_read_fraction == pytest.approx(judged.plan.promise.after, rel=0.15)


@pytest.mark.slow
def test_partitions_that_are_single_files_are_laid_out_in_smaller_ones(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "zorder_pipeline.pipeline.learning.sizes.SMALLER_FILE", 64 << 10
    )  # as if a file here were a large one
    path, settings = str(tmp_path / "t"), replace(SETTINGS, target_file_rows=None)
    rows = spark.range(80_000).selectExpr("id % 8 AS p", "pmod(hash(id), 9973) AS k", "sha2(string(id), 256) AS text")
    rows.repartition("p").write.format("delta").partitionBy("p").save(path)
    asked = [f"SELECT text FROM t WHERE p = {v % 8} AND k BETWEEN {v} AND {v + 40}" for v in range(0, 9900, 45)]
    found = log(tmp_path / "log.jsonl", asked)
    assert len(open_table(spark, path).files()) == 8

    def learned(**changes: object) -> Plan:
        return pipeline.learn(spark, path, [found], aliases=["t"], settings=replace(settings, **changes))

    assert learned(smaller_files=False).spec is None, "one file of a partition skips nothing by another column"
    plan = learned()
    assert plan.spec is not None
    assert (plan.spec.columns, plan.spec.rows) == (("k",), 80_000)
    unasked = pipeline.judge_table(spark, path, plan, gate=GateSettings(enabled=False))
    assert unasked.preview.files_added == 8, "nobody weighed another size"
    few = log(tmp_path / "few.jsonl", asked[:4])
    unproved = pipeline.learn(spark, path, [few], aliases=["t"], settings=settings)
    assert unproved.promise.queries == 0
    assert unproved.spec is None or unproved.target_file_rows == 10_000, "nothing told sizes apart"
    judged = pipeline.judge_table(spark, path, plan, gate=BUSY)
    assert judged.outcome == "approved"
    made = round(80_000 / judged.plan.target_file_rows)
    assert any(f"; 8 files become {judged.preview.files_added}" in reason for reason in judged.decision.reasons)
    done = pipeline.carry_out(spark, judged)
    assert done.files_added == pytest.approx(made, rel=0.2)
    last = log(tmp_path / "last.jsonl", asked[-plan.promise.queries :])  # the ones that it was promised for
    told = pipeline.evaluate(spark, path, [last], aliases=["t"])
    assert told.rows_read_fraction == pytest.approx(judged.plan.promise.after, rel=0.08)
    assert told.rows_read_fraction < 1 / 8 / 3, "a query reads less than a third of its partition"
    again = pipeline.judge_table(spark, path, plan, gate=BUSY)
    assert (again.outcome, again.decision.cause) == ("nothing_to_do", "nothing_new"), "nor in another size"


@pytest.mark.slow
def test_the_gate_chooses_the_size_of_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zorder_pipeline.pipeline.learning.sizes.SMALLER_FILE", 64 << 10)
    path, settings = str(tmp_path / "t"), replace(SETTINGS, target_file_rows=None)
    rows = spark.range(80_000).selectExpr("id", "pmod(hash(id), 9973) AS k", "sha2(string(id), 256) AS text")
    rows.repartition(8).write.format("delta").save(path)
    asked = [f"SELECT text FROM t WHERE k BETWEEN {v} AND {v + 40}" for v in range(0, 9900, 45)]
    plan = pipeline.learn(spark, path, [log(tmp_path / "log.jsonl", asked)], aliases=["t"], settings=settings)
    own = {c.target_file_rows: c for c in plan.candidates if c.action == ANOTHER}
    small, large = min(own), max(own)
    assert (plan.target_file_rows, plan.promise) == (large, own[large].promise), "the present size"
    assert own[small].promise.after < own[large].promise.after

    def chosen(per_file: float) -> Plan:
        gate = GateSettings(queries_per_day=1e5, costs=CostModel(per_opened_file=per_file, per_written_file=0.0))
        return pipeline.judge_table(spark, path, plan, gate=gate).plan

    assert [chosen(cost).target_file_rows for cost in (0.0, 1.0)] == [small, large]
    assert chosen(1.0).plan_id == plan.plan_id, "the id that learn prints"
    assert pipeline.judge_table(spark, path, plan, gate=GateSettings(enabled=False)).plan.target_file_rows == large


@pytest.mark.slow
def test_rows_that_lie_in_order_inside_a_file_are_skipped_by_pages(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zorder_pipeline.pipeline.learning.sizes.SMALLER_FILE", 64 << 10)
    monkeypatch.setattr("zorder_pipeline.pipeline.learning.paging.PAGE_ROWS", 1000)
    path, settings = str(tmp_path / "t"), replace(SETTINGS, target_file_rows=None)
    rows = spark.range(80_000).selectExpr("id % 8 AS p", "pmod(hash(id), 9973) AS k", "sha2(string(id), 256) AS text")
    rows.repartition("p").write.format("delta").partitionBy("p").save(path)
    asked = [f"SELECT text FROM t WHERE p = {v % 8} AND k BETWEEN {v} AND {v + 2000}" for v in range(0, 7900, 37)]
    plan = pipeline.learn(spark, path, [log(tmp_path / "log.jsonl", asked)], aliases=["t"], settings=settings)
    here = plan.promise  # in files of the present size, which are whole partitions
    assert (here.before, here.after) == (pytest.approx(1 / 8, abs=0.01),) * 2
    assert here.bytes_saved_per_query == pytest.approx(0.0, abs=0.1 * here.bytes_before)
    assert here.page_bytes_before is not None
    assert here.page_bytes_saved_per_query > 0.5 * here.page_bytes_before, "about three of ten pages"

    def judged(**changes: object) -> pipeline.Judgement:
        costs = CostModel(per_opened_file=0.001, per_written_file=0.0)
        return pipeline.judge_table(spark, path, plan, gate=GateSettings(queries_per_day=1e7, costs=costs, **changes))

    by_pages, by_files = judged(), judged(page_skipping=False)
    assert (by_pages.outcome, by_pages.preview.files_added) == ("approved", 8), "opening more files costs more"
    assert any("of the bytes in the pages" in reason for reason in by_pages.decision.reasons)
    assert by_files.plan.target_file_rows < by_pages.plan.target_file_rows
    assert not any("pages" in reason for reason in by_files.decision.reasons)
    state = str(tmp_path / "state")
    done = pipeline.carry_out(spark, by_pages, pipeline.RelayoutSettings(state=state))
    snapshot = open_table(spark, path)
    later = log(tmp_path / "later.jsonl", asked[5::7])
    queries = pipeline.ingest([later], {snapshot.location: (snapshot, ["t"])}).of_table([snapshot.location])
    (check,) = pipeline.check_promises(spark, state, path, queries, version=done.version)
    assert (check.measured, check.kept) == (pytest.approx(0.0, abs=0.01), pytest.approx(1.0, abs=0.15))
    months = pipeline.savings(spark, state, now=datetime.now(UTC) + timedelta(days=1)).months
    assert sum(month.saved for month in months) > 0


def test_a_run_stops_between_two_bins_and_keeps_what_is_done(spark: SparkSession, tmp_path: Path) -> None:
    path = make(spark, tmp_path / "t", parts=3)
    plan = promising(spark, path)
    answers = iter(["", "all relayouts are stopped"])
    safety = Safety(bin_bytes=1, hold=lambda: next(answers))
    done = rewrite(open_table(spark, path), Clustering(plan.spec, cutter_of(plan.spec, 500), 500), safety=safety)
    assert done.held == "stopped after 1 of 3 bins: all relayouts are stopped"
    assert done.committed
    layouts = open_table(spark, path).files()
    ours = {part for part, layout in zip(layouts.partitions, layouts.layout, strict=True) if layout}
    assert len(ours) == 1


def test_what_is_done_by_hand_is_stopped_by_another_state_s_file(spark: SparkSession, tmp_path: Path) -> None:
    path, state = make(spark, tmp_path / "t"), str(tmp_path / "state")
    rules = pipeline.Rules(stop_state=state)
    assert pipeline.hold_now(spark, None, rules) is None
    pipeline.stop_all(spark, state, "look at it first")
    for options in ({"state": state}, {"rules": rules}):
        held = pipeline.compact(spark, path, settings=pipeline.LearnSettings(target_file_rows=10**6), **options)  # type: ignore[arg-type]
        assert (held.decision, "look at it first" in held.reasons[0]) == ("postponed", True)
        assert len(held.reasons) == 1, "no file became another"
    pipeline.stop_all(spark, state)  # once more, without a reason: the earlier one stays
    by_hand = pipeline.layout_by_hand(spark, path, {"v": 2})  # which the gate would decline
    size = pipeline.LearnSettings(target_file_rows=10**6)
    for dry_run in (True, False):
        merged = pipeline.compact(spark, path, settings=size, rules=rules, dry_run=dry_run)
        for plan in (promising(spark, path), by_hand):
            forced = pipeline.apply(spark, path, plan, force=True, rules=rules, dry_run=dry_run)
            assert (forced.decision, "look at it first" in forced.reasons[0]) == ("postponed", True)
            assert (merged.decision, merged.skipped_files) == ("postponed", forced.skipped_files)
    assert not Path(state, "relayouts").exists()


@pytest.mark.slow
def test_with_a_budget_for_three_of_ten_tables_the_three_best_are_done(spark: SparkSession, tmp_path: Path) -> None:
    tables = [make(spark, tmp_path / f"t{i}", 2_000) for i in range(10)]
    saved = {table: 0.05 + 0.09 * ((7 * i) % 10) for i, table in enumerate(tables)}
    judged = [pipeline.judge_table(spark, t, promising(spark, t, saved[t]), name=t, gate=BUSY) for t in tables]
    assert {one.outcome for one in judged} == {"approved"}
    costs = [one.parts[0].cost / 3600 for one in judged]
    assert max(costs) < 1.05 * min(costs)
    shared = pipeline.share_budget(judged, 3.5 * min(costs))
    results = {one.name: pipeline.carry_out(spark, one).decision for one in shared}
    best = sorted(tables, key=lambda table: -saved[table])[:3]
    assert {name for name, decision in results.items() if decision == "applied"} == set(best)
    assert {results[table] for table in tables if table not in best} == {"postponed"}
    assert [t for t in tables if any(open_table(spark, t).files().layout)] == [t for t in tables if t in best]


def test_the_budget_takes_the_partitions_that_save_most(spark: SparkSession, tmp_path: Path) -> None:
    path = make(spark, tmp_path / "t", parts=3)
    plan = promising(spark, path)
    candidate = Candidate(ANOTHER, plan.spec, 500, plan.promise, {"p=0": 0.1, "p=1": 0.6, "p=2": 0.3})
    judged = pipeline.judge_table(spark, path, replace(plan, candidates=(candidate,)), gate=BUSY)
    hours = sum(part.cost for part in judged.parts) / 3600
    (shared,) = pipeline.share_budget([judged], 0.7 * hours)
    assert shared.partitions == ("p=1", "p=2")
    by_pages = replace(plan, candidates=(replace(candidate, page_partitions={"p=0": 0.6, "p=1": 0.1, "p=2": 0.3}),))
    for skipping, best in ((True, ("p=0", "p=2")), (False, ("p=1", "p=2"))):
        other = pipeline.judge_table(spark, path, by_pages, gate=replace(BUSY, page_skipping=skipping))
        assert pipeline.share_budget([other], 0.7 * hours)[0].partitions == best
    assert shared.decision.reasons[-1].startswith("2 of 3 partitions fit tonight's budget")
    assert pipeline.carry_out(spark, shared).decision == "applied"
    files = open_table(spark, path).files()
    assert {p for p, layout in zip(files.partitions, files.layout, strict=True) if layout} == {("1",), ("2",)}


@pytest.mark.matrix
def test_a_partition_that_came_after_the_plan_is_laid_out_by_it(spark: SparkSession, tmp_path: Path) -> None:
    """As README says of an append: the plan names no share of the new partition, and declined it for that."""
    path, state = make(spark, tmp_path / "t", parts=3), str(tmp_path / "state")
    plan = promising(spark, path)
    candidate = Candidate(ANOTHER, plan.spec, 500, plan.promise, {f"p={i}": 1 / 3 for i in range(3)})
    plan = replace(plan, candidates=(candidate,))
    assert pipeline.apply(spark, path, plan, gate=BUSY, state=state).decision == "applied"
    spark.read.format("delta").load(path).where("p = 0").selectExpr("id", "k", "v", "3L AS p").write.format(
        "delta"
    ).mode("append").save(path)
    public = pipeline.judge_table(spark, path, plan, gate=BUSY, committer="public")
    assert (public.outcome, [part.key for part in public.parts]) == ("approved", ["p=3"]), public.decision.reasons
    again = pipeline.apply(spark, path, plan, gate=BUSY, state=state)
    assert (again.decision, again.rows) == ("applied", 1_334), again.reasons
    assert "partition p=3 came after the plan" in again.reasons[1]
    _, entry = Ledger(spark, state).entries()
    assert 0.1 < entry.credited < 0.4, "about a quarter of the table's bytes"


@pytest.mark.slow
def test_what_is_done_unasked_and_what_a_person_approved_uses_up_the_budget(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, state, rules = make(spark, tmp_path / "t"), str(tmp_path / "state"), pipeline.Rules(approval="changes")
    plan = promising(spark, path)
    other = make(spark, tmp_path / "other")
    pinned = pipeline.layout_by_hand(spark, other, {"k": 4}, settings=SETTINGS)
    off = pipeline.judge_table(spark, other, pinned, gate=GateSettings(enabled=False))
    pipeline.judge_table(spark, path, plan, name="sales", gate=BUSY, rules=rules, state=state)
    pipeline.answer_request(spark, state, "sales", by="asha")
    tonight = replace(plan, target_file_rows=700)
    approved = pipeline.judge_table(spark, path, tonight, name="sales", gate=BUSY, rules=rules, state=state)
    assert (approved.decision.cause, approved.plan) == ("approved_by_hand", plan)
    hours = [sum(part.cost for part in one.parts) / 3600 for one in (off, approved)]
    assert all(cost > 0 for cost in hours)
    outcomes = [one.outcome for one in pipeline.share_budget([off, approved], sum(hours) - min(hours) / 2)]
    assert outcomes == ["approved", "postponed"]
    assert (
        pipeline.carry_out(spark, approved, pipeline.RelayoutSettings(rules=rules, state=state)).decision == "applied"
    )
    (entry,) = Ledger(spark, state).entries()
    assert entry.cost_expected == pytest.approx(hours[1] * 3600)
