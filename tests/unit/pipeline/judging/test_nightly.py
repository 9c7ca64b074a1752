"""What the budget of a night has room for, and what it says of the rest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from zorder_pipeline.model.decision import APPROVE, DECLINE, POSTPONE, Decision
from zorder_pipeline.model.lasting import Lasting
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.pipeline import Judgement, share_budget
from zorder_pipeline.pipeline.judging.judgements import Part
from zorder_pipeline.pipeline.records import Preview

HOUR = 3600.0


def judged(cause: str, *parts: tuple[str, float, float]) -> Judgement:
    """A table whose partitions cost and save so many core-hours."""
    plan = Plan("/t", "t", "hash", 0, None, "learned", 100)
    found = tuple(Part(key, cost * HOUR, saving * HOUR) for key, cost, saving in parts)
    return Judgement("t", "/t", 0, plan, Decision(APPROVE, cause, ("worth it",)), Preview(0, 1), found)


@pytest.mark.parametrize("cause", ["gate_off", "approved_by_hand"])
def test_of_what_nobody_weighs_as_many_partitions_are_done_as_fit(cause: str) -> None:
    first, second, weighed = share_budget(
        [
            judged(cause, *((f"d={i}", 0.3, 0.0) for i in range(10))),
            judged(cause, ("", 0.7, 0.0)),
            judged("worth_it", ("", 0.05, 900.0)),
        ],
        1.0,
    )
    assert first.partitions == ("d=0", "d=1", "d=2")
    assert (
        first.decision.reasons[-1] == "3 of 10 partitions fit tonight's budget (0.9 of 3 core-hours); the others wait"
    )
    assert second.outcome == "postponed"
    assert second.decision.reasons[0].endswith(
        "it would take 0.7 core-hours of tonight's 1, which go to what was asked for by hand"
    )
    assert weighed.outcome == "approved"


@pytest.mark.parametrize(
    ("parts", "which"),
    [
        ([("", 2.0, 900.0)], "it takes 2"),
        ([("d=1", 3.0, 9.0), ("d=2", 2.5, 9.0)], "the smallest of its partitions takes 2.5"),
    ],
)
def test_what_no_night_has_room_for_is_told_so(parts: list[tuple[str, float, float]], which: str) -> None:
    (found,) = share_budget([judged("worth_it", *parts)], 1.0)
    assert (found.outcome, found.decision.cause) == ("postponed", "budget")
    assert f"{which} core-hours, more than a night's 1; raise budget_core_hours" in found.decision.reasons[0]


def test_what_saves_most_per_core_hour_comes_first_over_tables_and_partitions() -> None:
    """The last one's saving is large, but not for what it takes."""
    mixed = judged("worth_it", ("d=1 a", 1.0, 40.0), ("d=2 b", 1.0, 2.0))
    small, large = judged("worth_it", ("", 1.0, 30.0)), judged("worth_it", ("", 1.5, 31.0))
    some, whole, none = share_budget([mixed, small, large], 2.0)
    assert (some.outcome, some.partitions) == ("approved", ("d=1 a",))
    assert some.decision.reasons[-1].startswith(
        "1 of 2 partitions fit tonight's budget, those that save most in it (1 of 2 core-hours); "
    )
    assert whole is small, "nothing is to be said of what is done in whole"
    assert (none.outcome, none.decision.cause) == ("postponed", "budget")
    assert none.decision.reasons[0].endswith("tonight's 2, which save more elsewhere")


def test_what_takes_the_whole_night_is_done_or_told_what_is_done_instead() -> None:
    for cause in ("gate_off", "worth_it"):
        first, second = share_budget([judged(cause, ("", 1.0, 9.0)), judged(cause, ("", 1.0, 8.0))], 1.0)
        assert (first.outcome, second.outcome) == ("approved", "postponed")
        assert "it would take 1 core-hours of tonight's 1, which " in second.decision.reasons[0]


@pytest.mark.parametrize("cause", ["gate_off", "approved_by_hand"])
def test_what_nobody_weighs_takes_its_room_once_whatever_it_saves(cause: str) -> None:
    tables = [judged(cause, ("", 1.0, 900.0)), judged("worth_it", ("", 1.0, 5.0))]
    assert [one.outcome for one in share_budget(tables, 2.0)] == ["approved", "approved"]


@pytest.mark.parametrize("cause", ["not_worth_it", "gate_off"])
def test_what_was_not_approved_is_neither_done_nor_takes_room(cause: str) -> None:
    """A table whose gate is off may be postponed, too, as in a blackout window."""
    refused = judged(cause, ("", 1.0, 900.0))
    for verdict in (DECLINE, POSTPONE):
        kept = replace(refused, decision=replace(refused.decision, verdict=verdict))
        same, done = share_budget([kept, judged("worth_it", ("", 1.0, 2.0))], 1.0)
        assert same is kept
        assert done.outcome == "approved"


def test_no_partition_that_was_approved_waits_while_there_is_room() -> None:
    """Its own rewrite pays, as the gate found; only with its part of what a job costs at least it does not."""
    table = judged("worth_it", ("d=1", 1.0, 9.0), ("d=2", 1.0, 0.95), ("d=3", 1.0, 0.9))
    for hours, done in ((100.0, None), (3.0, None), (2.0, ("d=1", "d=2")), (1.0, ("d=1",))):
        (found,) = share_budget([table], hours)
        assert (found.outcome, found.partitions) == ("approved", done), hours


def test_beside_what_saves_most_alone_others_get_what_is_left() -> None:
    """By core-hour d=2 saves more than d=1, but then d=1 has no room."""
    table = judged("worth_it", ("d=1", 8.0, 24.0), ("d=2", 3.0, 12.0), ("d=3", 2.0, 3.0), ("d=4", 1.0, 0.5))
    (found,) = share_budget([table], 10.0)
    assert found.partitions == ("d=1", "d=3")


def test_without_a_budget_everything_is_done() -> None:
    (found,) = share_budget([judged("worth_it", ("", 2.0, 900.0))], None)
    assert found.outcome == "approved"


def test_what_is_booked_of_some_partitions_is_what_lasts_of_them() -> None:
    old, new = (Lasting((0.0, 1.0), shares) for shares in ((0.8, 0.0), (0.0, 0.4)))
    parts = (Part("d=1", 1.0, 1.0, 0.75, old), Part("d=2", 1.0, 1.0, 0.0, new))
    decision = Decision(APPROVE, "worth_it", ("worth it",), assumptions={"horizon_days": 30.0, "lasting": {}})
    both = replace(judged("worth_it"), parts=parts, decision=decision)
    assert both.said["assumptions"]["lasting"] == Lasting.together([old, new]).to_json() | {"credited": 0.75}
    newest = replace(both, partitions=("d=2",))
    told = newest.said["assumptions"]["lasting"]
    assert (newest.credited, told) == (0.0, new.to_json() | {"credited": 0.0})
    assert Lasting.promised(told, newest.credited) == new, "asked for from tomorrow on: that was promised"
    assert both.decision.assumptions["lasting"] == {}, "the decision itself stays"
    assert "lasting" not in judged("worth_it", ("", 1.0, 1.0)).said["assumptions"]
