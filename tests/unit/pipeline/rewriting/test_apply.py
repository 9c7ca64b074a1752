"""What is said of a rewrite that nobody asked the gate about, and by which name a table is judged."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.model.approval import APPROVED, DONE, PENDING, REJECTED, Request
from zorder_pipeline.model.candidate import ANOTHER, FULL, INCREMENTAL, Candidate
from zorder_pipeline.model.decision import APPROVE, DECLINE, Decision
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.model.lasting import Lasting
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.pipeline.judging import approving
from zorder_pipeline.pipeline.judging.judgements import Judgement
from zorder_pipeline.pipeline.records import Preview
from zorder_pipeline.pipeline.rewriting import apply as rewriting
from zorder_pipeline.pipeline.rewriting import partitions
from zorder_pipeline.pipeline.rewriting.relayout_settings import RelayoutSettings

PLAN = Plan("t", "id", "hash", 0, None, "learned", 1000)
SPEC = KeySpec((FeatureCodes("a", "int", (5,), (0, 1), 1),), (0,))
LASTS = Lasting((0.0, 1.0), (1.0, 0.0))


@pytest.mark.parametrize(
    ("dry_run", "told"),
    [
        (False, "applied without asking the gate (--force)"),
        (True, "would be applied without asking the gate (--force)"),
    ],
)
def test_a_dry_run_speaks_of_what_would_be(dry_run: bool, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    preview = Preview(3, files_removed=2, files_added=1)
    judged = Judgement("t", "t", 3, PLAN, Decision(DECLINE, "no_workload", ("no workload",)), preview)
    monkeypatch.setattr(rewriting, "judge_table", lambda *_, **__: judged)
    monkeypatch.setattr(rewriting, "carry_out", lambda _, found, *rest, **__: found)
    spark: Any = None
    carried: Any = rewriting.apply(spark, "t", PLAN, force=True, dry_run=dry_run)
    assert carried.decision.reasons == (told,)


def test_what_is_forced_is_booked_as_it_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long its saving lasts, and where it comes from, was thrown away with the choices that the gate has else."""
    mine, other = (
        Candidate(action, SPEC, 1000, PLAN.promise, lasting={"": LASTS}) for action in (ANOTHER, INCREMENTAL)
    )
    asked: list[tuple[Plan, GateSettings]] = []

    def judge_table(*given: Any, gate: GateSettings, **_: object) -> Judgement:
        asked.append((given[2], gate))
        return Judgement("t", "t", 3, given[2], Decision(APPROVE, "gate_off", ("it is off",)), Preview(3, 2, 1))

    monkeypatch.setattr(rewriting, "judge_table", judge_table)
    monkeypatch.setattr(rewriting, "carry_out", lambda _, found, *rest, **__: found)
    monkeypatch.setattr(rewriting, "hold_now", lambda *_: None)
    plan = replace(PLAN, spec=SPEC, action=ANOTHER, candidates=(other, mine))
    spark: Any = None
    rewriting.apply(spark, "t", plan, force=True)
    ((forced, gate),) = asked
    assert (forced.candidates, forced.lasting_by_partition(), gate.enabled) == ((mine,), {"": LASTS}, False)
    rest = replace(plan, action=FULL, candidates=(mine,)).alone
    assert rest.choosing(rest.candidates[0]).action == FULL, "it is no other choice for that"


def test_partitions_are_judged_by_the_name_that_people_call_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its location a request for approval could not be answered by that name."""
    names: list[str] = []

    def judge_table(*_: object, name: str, **__: object) -> Judgement:
        names.append(name)
        return Judgement(name, "/t", 3, PLAN, Decision(DECLINE, "not_worth_it", ("no",)), Preview(3))

    monkeypatch.setattr(partitions, "open_table", lambda *_, **__: SimpleNamespace(partition_types={"p": "int"}))
    monkeypatch.setattr(rewriting, "judge_table", judge_table)
    spark: Any = None
    (done,) = partitions.apply_partitions(spark, "/t", PLAN, ["p=1"], RelayoutSettings(name="orders"))
    assert (names, done.error) == (["orders"], None)


REQUEST = Request("orders", "id", PLAN, APPROVED, 5, 7, by="asha")
BY_HAND = Judgement(
    "orders", "/t", 3, PLAN, Decision(APPROVE, "approved_by_hand", ("approved",)), Preview(3, 2), request=REQUEST
)


@pytest.mark.parametrize(
    ("now", "decision", "told"),
    [
        (replace(REQUEST, status=REJECTED, by="bo"), "declined", "was rejected by bo after it was judged"),
        (replace(REQUEST, status=PENDING), "postponed", "was approved when it was judged, and is pending now: "),
        (None, "postponed", "was approved when it was judged, and is withdrawn now: "),
    ],
)
def test_what_a_person_says_after_the_judgement_stops_an_approved_plan(
    now: Request | None, decision: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A night judges all tables before it relays out the first, which may take hours; then before each bin."""
    spark: Any = None
    said: list[Request | None] = [now]
    monkeypatch.setattr(approving, "Approvals", lambda *_: SimpleNamespace(as_it_is=lambda _: said[-1]))
    monkeypatch.setattr(rewriting, "why_held", lambda *_: None)
    settings = RelayoutSettings(state="/state")
    done = rewriting.carry_out(spark, BY_HAND, settings)
    assert (done.decision, done.files_removed) == (decision, 0)
    assert done.reasons[0].startswith(f"plan {PLAN.plan_id} {told}")
    assert rewriting._why_not_on(spark, BY_HAND, settings) == done.reasons[0]
    for stands in (REQUEST, replace(REQUEST, status=DONE)):
        said.append(stands)
        assert rewriting._why_not_on(spark, BY_HAND, settings) is None
    said.append(now)
    assert rewriting._why_not_on(spark, replace(BY_HAND, request=None), settings) is None, "the gate's own decision"
