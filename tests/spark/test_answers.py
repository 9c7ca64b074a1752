"""Plans that a person has to approve: asked for, answered, done, and ended when they are stale."""

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.judged_tables import BUSY, SETTINGS, make, promising
from zorder_pipeline import pipeline
from zorder_pipeline.errors import UnsupportedTableError, ZorderError
from zorder_pipeline.gate.holds import Blackout
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.model.candidate import ANOTHER, COMPACTION, INCREMENTAL, Candidate
from zorder_pipeline.model.lasting import Lasting
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.relayout.rollback import rollback
from zorder_pipeline.relayout.snapshot import open_table
from zorder_pipeline.state.approvals import Approvals
from zorder_pipeline.state.ledger import Ledger


def test_an_answer_where_no_plan_waits_says_so(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ZorderError, match="no plan of sales waits for approval, nor one of any other table"):
        pipeline.answer_request(spark, str(tmp_path / "state"), "sales")


@pytest.mark.slow
def test_a_plan_waits_until_a_person_approves_it_and_holds_stop_even_then(spark: SparkSession, tmp_path: Path) -> None:
    path, state = make(spark, tmp_path / "t"), str(tmp_path / "state")
    plan, rules = promising(spark, path), pipeline.Rules(approval="changes")

    def judged(given: Plan = plan, **others: object) -> pipeline.Judgement:
        chosen = replace(rules, **others)
        return pipeline.judge_table(spark, path, given, name="sales", gate=BUSY, rules=chosen, state=state)

    first = judged()
    assert (first.outcome, first.decision.cause) == ("postponed", "awaiting_approval")
    assert f"zorder approve --table sales --plan {plan.plan_id} --state {state}" in first.decision.reasons[0]
    assert pipeline.carry_out(spark, first, pipeline.RelayoutSettings(state=state)).decision == "postponed"
    another = replace(plan, target_file_rows=700)
    assert judged(another).request.plan_id == plan.plan_id, "the plan that waits is no moving target"
    assert [request.plan_id for request in pipeline.waiting_requests(spark, state)] == [plan.plan_id]
    with pytest.raises(ZorderError, match=f"plan 1234 of sales does not wait any more; plan {plan.plan_id} does"):
        pipeline.answer_request(spark, state, "sales", "1234")
    for other in ("orders", "t"):  # a table may be called as another's folder is
        with pytest.raises(ZorderError, match=f"no plan of {other} waits for approval; waiting: sales"):
            pipeline.answer_request(spark, state, other)
    assert pipeline.answer_request(spark, state, os.path.relpath(path), by="asha").status == "approved"

    now = datetime.now(UTC)
    window = Blackout((now - timedelta(hours=1)).time(), (now + timedelta(hours=1)).time())
    assert judged(blackouts=(window,)).decision.cause == "blackout"
    pipeline.stop_all(spark, state, "storage is down")
    stopped = judged()
    assert stopped.decision.cause == "stopped"
    assert "storage is down" in stopped.decision.reasons[0]
    assert pipeline.apply(spark, path, plan, force=True, state=state).decision == "postponed", "also with --force"
    assert pipeline.lift_stop(spark, state)
    assert not pipeline.lift_stop(spark, state)

    ready = judged(another)
    assert (ready.outcome, ready.decision.cause, ready.plan) == ("approved", "approved_by_hand", plan)
    assert ready.decision.reasons[0] == f"plan {plan.plan_id} was approved by asha"
    assert pipeline.carry_out(spark, ready, pipeline.RelayoutSettings(rules=rules, state=state)).decision == "applied"
    assert pipeline.waiting_requests(spark, state) == []

    other = replace(promising(spark, path, column="v"), origin="learned")
    assert judged(other).decision.cause == "awaiting_approval"
    pipeline.answer_request(spark, state, path, reject=True, by="asha")
    assert judged(other).decision.cause == "rejected"


def test_a_plan_is_weighed_and_approved_by_what_is_left_of_its_saving(spark: SparkSession, tmp_path: Path) -> None:
    path, state = make(spark, tmp_path / "t"), str(tmp_path / "state")
    made, learned = promising(spark, path), datetime.now(UTC)
    fades = Lasting((0.0, 2.0), (1.0, 0.0))
    candidate = Candidate(ANOTHER, made.spec, made.target_file_rows, made.promise, lasting={"": fades})
    plan = replace(made, candidates=(candidate,), learned_at=int(learned.timestamp() * 1e6))

    def judged(days: float, approval: str) -> pipeline.Judgement:
        rules, now = pipeline.Rules(approval=approval), learned + timedelta(days=days)
        return pipeline.judge_table(spark, path, plan, name="sales", gate=BUSY, rules=rules, state=state, now=now)

    assert [judged(days, "never").outcome for days in (0, 1, 2)] == ["approved", "approved", "declined"]
    assert judged(0, "changes").decision.cause == "awaiting_approval"
    pipeline.answer_request(spark, state, "sales", by="asha")
    fresh, day = judged(0, "changes"), judged(1, "changes")
    assert (fresh.decision.cause, day.decision.cause) == ("approved_by_hand", "approved_by_hand")
    saved = [Lasting.promised(one.said["assumptions"]["lasting"], 1.0) for one in (fresh, day)]
    assert [one.over(0) for one in saved if one] == pytest.approx([1.0, 0.5], abs=1e-3), "its promise is held to that"


@pytest.mark.slow
def test_a_rollback_is_remembered_until_a_person_says_so(spark: SparkSession, tmp_path: Path) -> None:
    path, state = make(spark, tmp_path / "t"), str(tmp_path / "our state")
    plan = promising(spark, path)
    options = {"name": "sales", "gate": BUSY, "state": state}
    assert pipeline.apply(spark, path, plan, gate=BUSY, state=state).version == 1
    undone = rollback(spark, path)
    pipeline.check_promises(spark, state, path, [])
    (entry,) = Ledger(spark, state).entries()
    assert entry.ended_at is not None
    assert entry.ended_at >= entry.committed_at - 1_000_000
    spark.range(4_000, 4_100).selectExpr("id", "1 AS k", "1 AS v", "0L AS p").write.format("delta").mode("append").save(
        path
    )
    for gate in (BUSY, GateSettings(enabled=False)):
        judged = pipeline.judge_table(spark, path, plan, **(options | {"gate": gate}))
        assert (judged.outcome, judged.decision.cause) == ("postponed", "rolled_back")
    why = judged.decision.reasons[0]
    assert f"version {undone.version} (RESTORE by " in why
    assert "took our relayout of version 1 back, so nothing is rewritten until a person says so" in why
    assert f"plan {plan.plan_id} waits for approval" in why
    assert why.endswith(f"zorder approve --table sales --plan {plan.plan_id} --state '{state}'"), "it can be pasted"
    assert pipeline.judge_table(spark, path, plan, gate=BUSY).decision.cause == "rolled_back", "without a state, too"
    pipeline.answer_request(spark, state, "sales", by="asha")
    ready = pipeline.judge_table(spark, path, plan, **options)
    assert ready.decision.cause == "approved_by_hand"
    assert pipeline.carry_out(spark, ready, pipeline.RelayoutSettings(state=state)).decision == "applied"
    fresh = promising(spark, path, column="v")
    assert pipeline.judge_table(spark, path, fresh, **options).decision.cause == "worth_it", "our newest stands again"
    assert len(Ledger(spark, state).entries()) == 2
    rollback(spark, path)
    assert pipeline.judge_table(spark, path, fresh, **options).decision.cause == "rolled_back"
    assert pipeline.apply(spark, path, fresh, gate=BUSY, state=state, force=True).decision == "applied"


@pytest.mark.slow
def test_a_restore_to_a_moment_before_the_replaced_version_is_remembered(spark: SparkSession, tmp_path: Path) -> None:
    """Nobody saw it, as that commit is not among those that are looked at, and the next night rewrote the table."""
    path, state = make(spark, tmp_path / "t"), str(tmp_path / "state")
    (first,) = spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()
    for number in range(2):
        rows = spark.range(4_000 + number, 4_001 + number).selectExpr("id", "1 AS k", "1 AS v", "0L AS p")
        rows.write.format("delta").mode("append").save(path)
    plan = promising(spark, path)
    assert pipeline.apply(spark, path, plan, gate=BUSY, state=state).version == 3
    spark.sql(f"RESTORE TABLE delta.`{path}` TO TIMESTAMP AS OF '{first['timestamp']}'").collect()
    pipeline.check_promises(spark, state, path, [])
    (entry,) = Ledger(spark, state).entries()
    assert entry.ended_at is not None
    assert pipeline.judge_table(spark, path, plan, gate=BUSY, state=state).decision.cause == "rolled_back"


@pytest.mark.slow
def test_a_rejected_change_is_not_asked_for_again_and_one_that_waits_is_not_forgotten(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, state = make(spark, tmp_path / "t"), str(tmp_path / "state")
    plan, rules = promising(spark, path), pipeline.Rules(approval="changes")

    def judged(given: Plan, now: datetime | None = None) -> pipeline.Judgement:
        return pipeline.judge_table(spark, path, given, name="sales", gate=BUSY, rules=rules, state=state, now=now)

    def waiting() -> list[str]:
        return [request.plan_id for request in pipeline.waiting_requests(spark, state)]

    assert judged(plan).decision.cause == "awaiting_approval"
    small = replace(promising(spark, path, 0.5), action=INCREMENTAL, origin="kept", target_file_rows=900)
    both = [Candidate(p.action, p.spec, p.target_file_rows, p.promise) for p in (plan, small)]
    better = replace(both[1], promise=promising(spark, path, 0.9).promise)
    first = judged(replace(plan, candidates=(both[0], better)))
    assert (first.decision.cause, first.decision.action) == ("worth_it", INCREMENTAL)
    assert waiting() == [plan.plan_id], "the gate would still do it"
    none = replace(both[0], promise=promising(spark, path, 0.0).promise)
    judged(replace(plan, candidates=(none, better)))
    assert waiting() == [], "it would not any more"

    assert judged(plan).decision.cause == "awaiting_approval"
    pipeline.answer_request(spark, state, "sales", reject=True, by="asha")
    grown = replace(plan, spec=pipeline.layout_by_hand(spark, path, {"k": 3}, settings=SETTINGS).spec)
    grown = replace(grown, target_file_rows=800)
    assert grown.plan_id != plan.plan_id
    for again in (plan, grown):
        told = judged(again).decision
        assert (told.cause, told.reasons[0].partition(", and")[0]) == (
            "rejected",
            f"plan {plan.plan_id} was rejected by asha",
        )
    assert judged(promising(spark, path, column="v")).decision.cause == "awaiting_approval", "other columns"
    later = datetime.now(UTC) + timedelta(days=rules.approval_days + 1)
    assert judged(grown, later).decision.cause == "awaiting_approval", "it may be asked again by then"


@pytest.mark.matrix
def test_a_plan_is_approved_by_the_id_that_it_was_asked_by(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older version of the code may have made another one."""
    path, requests = make(spark, tmp_path / "t"), Approvals(spark, str(tmp_path / "state"))
    plan = promising(spark, path)
    with monkeypatch.context() as older:
        older.setattr(Plan, "plan_id", property(lambda self: "0ld"))
        requests.ask("sales", plan, (), 0)
    assert [request.plan_id for request in requests.waiting()] == ["0ld"]
    assert requests.answer("sales", "0ld", "approved", "asha").status == "approved"
    assert (requests.waiting()[0].status, requests.waiting()[0].plan) == ("approved", plan)


@pytest.mark.slow
def test_an_approved_merge_is_left_to_sessions_that_can_merge_files(spark: SparkSession, tmp_path: Path) -> None:
    path, state, rules = make(spark, tmp_path / "t"), str(tmp_path / "state"), pipeline.Rules(approval="changes")
    plan = promising(spark, path)
    merge = replace(plan, spec=None, action=COMPACTION, target_file_rows=4000)
    Approvals(spark, state).ask("sales", merge, (), 0)
    pipeline.answer_request(spark, state, "sales", by="asha")
    options = {"name": "sales", "gate": BUSY, "rules": rules, "state": state}
    ready = pipeline.judge_table(spark, path, plan, **options)
    assert (ready.decision.cause, ready.plan) == ("approved_by_hand", merge)
    with pytest.raises(UnsupportedTableError, match=r"merging files of .* needs Delta's own transaction"):
        pipeline.carry_out(spark, ready, pipeline.RelayoutSettings(state=state, committer="public"))
    assert open_table(spark, path).version == 0
    public = pipeline.judge_table(spark, path, plan, committer="public", **options)
    assert (public.decision.cause, public.plan) == ("awaiting_approval", plan)


@pytest.mark.slow
def test_a_night_with_nothing_new_settles_what_was_asked_and_does_what_was_approved(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, state = make(spark, tmp_path / "t"), str(tmp_path / "state")
    plan, other = promising(spark, path), promising(spark, path, column="v")
    rules = pipeline.Rules(approval="changes")

    def judged(given: Plan) -> pipeline.Judgement:
        return pipeline.judge_table(spark, path, given, name="sales", gate=BUSY, rules=rules, state=state)

    def waiting() -> list[str]:
        return [request.plan_id for request in pipeline.waiting_requests(spark, state)]

    assert judged(plan).decision.cause == "awaiting_approval"
    assert pipeline.apply(spark, path, plan, force=True, gate=BUSY).decision == "applied", "by hand meanwhile"
    kept = replace(plan, origin="kept", action=INCREMENTAL)
    assert judged(kept).decision.cause == "nothing_new"
    assert waiting() == [], "it is done"

    assert judged(other).decision.cause == "awaiting_approval"
    for _ in range(2):  # no other layout is sought tonight
        assert judged(kept).decision.cause == "nothing_new"
        assert waiting() == [other.plan_id], "nothing speaks against it"
    pipeline.answer_request(spark, state, "sales", by="asha")
    ready = judged(kept)
    assert (ready.outcome, ready.decision.cause, ready.plan) == ("approved", "approved_by_hand", other)
    assert pipeline.carry_out(spark, ready, pipeline.RelayoutSettings(rules=rules, state=state)).decision == "applied"
    assert waiting() == []


@pytest.mark.slow
def test_an_approval_of_a_table_is_not_used_up_by_one_of_its_partitions(spark: SparkSession, tmp_path: Path) -> None:
    path, state = make(spark, tmp_path / "t", parts=3), str(tmp_path / "state")
    plan, rules = promising(spark, path), pipeline.Rules(approval="changes")

    def judged() -> pipeline.Judgement:
        return pipeline.judge_table(spark, path, plan, name="sales", gate=BUSY, rules=rules, state=state)

    def backfilled(*keys: str, gate: GateSettings = BUSY) -> list[str]:
        settings = pipeline.RelayoutSettings(rules=rules, state=state)
        outcomes = list(pipeline.apply_partitions(spark, path, plan, keys, settings, gate=gate))
        return [outcome.result.decision if outcome.result else str(outcome.error) for outcome in outcomes]

    assert judged().decision.cause == "awaiting_approval"
    assert backfilled("p=0", gate=GateSettings(queries_per_day=0.001)) == ["declined"]
    assert len(pipeline.waiting_requests(spark, state)) == 1, "what does not pay for one partition may for the table"
    pipeline.answer_request(spark, state, "sales", by="asha")
    assert backfilled("p=0", "p=1") == ["applied", "applied"]
    assert judged().decision.cause == "approved_by_hand"
    assert backfilled("p=2") == ["applied"]
    assert judged().outcome == "nothing_to_do"
    assert Approvals(spark, state).all(plan.table_id)[-1].status == "done"


@pytest.mark.slow
def test_by_hand_the_given_plan_is_done_or_none(spark: SparkSession, tmp_path: Path) -> None:
    """What was approved took its place, also with --force."""
    path, state = make(spark, tmp_path / "t"), str(tmp_path / "state")
    plan, given = promising(spark, path), promising(spark, path, column="v")
    assert pipeline.apply(spark, path, plan, gate=BUSY, state=state).decision == "applied"
    rollback(spark, path)
    assert pipeline.judge_table(spark, path, plan, name="sales", gate=BUSY, state=state).request is not None
    pipeline.answer_request(spark, state, "sales", by="asha")
    held = pipeline.apply(spark, path, given, gate=BUSY, state=state)
    assert (held.decision, held.files_removed) == ("postponed", 0)
    assert f"plan {plan.plan_id} was approved, not {given.plan_id}: zorder apply --force" in held.reasons[0]
    assert pipeline.apply(spark, path, given, gate=BUSY, state=state, force=True).decision == "applied"
    assert {*open_table(spark, path).files().layout} == {given.spec.layout_id if given.spec else ""}
    rollback(spark, path)
    pipeline.judge_table(spark, path, plan, name="sales", gate=BUSY, state=state)
    pipeline.answer_request(spark, state, "sales", by="asha")
    better = Candidate(ANOTHER, given.spec, 500, promising(spark, path, 0.9, "v").promise)
    choices = replace(plan, candidates=(better, Candidate(ANOTHER, plan.spec, 500, plan.promise)))
    assert pipeline.judge_table(spark, path, choices, gate=BUSY).plan.spec == given.spec, "which gains more"
    done = pipeline.apply(spark, path, choices, gate=BUSY, state=state)
    assert done.decision == "applied", "what was approved is one of its choices"
    assert {*open_table(spark, path).files().layout} == {plan.spec.layout_id if plan.spec else ""}
