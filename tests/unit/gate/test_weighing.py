"""Whether one rewrite pays, at the very edges of what it must, and what people are told of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from zorder_pipeline.gate.cost import CostModel, RelayoutWork
from zorder_pipeline.gate.proposal import Proposal
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.gate.weighing import saved_by, weighed
from zorder_pipeline.model.candidate import ANOTHER, COMPACTION
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.model.lasting import Lasting
from zorder_pipeline.model.plan import KEPT, Plan, Promise

PROMISE = Promise(
    queries=50, before=0.9, after=0.1, low=0.7, high=0.85, bytes_saved_per_query=8e8, queries_per_day=100.0,
    rate_source="observed", bytes_low=7e8, bytes_high=8.5e8, bytes_before=9e8, files_before=9.0,
)  # fmt: skip
SPEC = KeySpec((FeatureCodes("a", "int", (10,), (0, 1), 1, null_code=0),), (0,))
PLAN = Plan("t", "id", "hash", 0, None, "learned", 1000, PROMISE)
SAVED = saved_by(PLAN, GateSettings())


def costing(seconds: float, **others: Any) -> GateSettings:
    """A gate that expects a rewrite of a GB to take so many core-seconds, and nothing besides."""
    own = {"base": seconds, "per_feature": 0.0, "per_job": 0.0, "per_written_file": 0.0}
    return GateSettings(costs=CostModel(**own, price_per_core_hour=others.pop("price", 0.0)), **others)


def of(plan: Plan = PLAN, **others: Any) -> Proposal:
    return Proposal(plan, RelayoutWork(1e9), **{"table_bytes": 1e9, "new_bytes": 1e9, **others})


def test_a_rewrite_has_to_pay_surely_and_not_only_as_expected() -> None:
    assert 0 < SAVED.low < 0.5 * SAVED.expected
    dear, unsure, sure = (
        weighed(of(), costing(cost)) for cost in (1.01 * SAVED.expected, 1.01 * SAVED.low, 0.99 * SAVED.low)
    )
    assert (dear.approved, dear.cause) == (False, "not_worth_it")
    assert (unsure.approved, unsure.cause) == (False, "interval_too_wide")
    assert unsure.reasons[0].startswith(
        "interval too wide: it is expected to pay, but not sure to; at 100 queries a day"
    )
    assert (sure.approved, sure.cause) == (True, "worth_it")


@pytest.mark.parametrize(("queries", "statements"), [(5, 0), (50, 5)])
def test_five_different_queries_prove_a_layout_and_four_do_not(queries: int, statements: int) -> None:
    def cause(less: int) -> str:
        promise = replace(PROMISE, queries=queries - less, statements=max(0, statements - less))
        return weighed(of(replace(PLAN, promise=promise)), GateSettings()).cause

    assert (cause(0), cause(1)) == ("worth_it", "too_few_queries")


def test_without_a_query_to_prove_it_on_a_person_has_to_know_better() -> None:
    found = weighed(of(replace(PLAN, promise=Promise())), GateSettings())
    assert found.cause == "too_few_queries"
    assert found.reasons[0].endswith("that it was not learned from; apply it with --force if you know better")


def test_a_table_that_nobody_will_ask_is_told_so() -> None:
    found = weighed(of(), GateSettings(queries_per_day=0.0))
    assert (found.approved, found.cause) == (False, "not_worth_it")
    assert found.reasons[0] == "not worth it: no queries are expected (gate.queries_per_day is 0)"


def test_a_work_that_brings_nothing_is_not_proved_to_help() -> None:
    """Partitions that no logged query asks for; nobody said that queries move on."""
    found = weighed(of(credited=0.0), GateSettings())
    assert found.cause == "not_proved"
    assert found.reasons[0] == "not proved to help: the interval of the saving reaches zero"


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ({"low": 0.0, "files_saved_per_query": -2.0}, "the interval of the saving reaches zero"),
        ({}, "the interval of the saving reaches zero"),
        ({"files_saved_per_query": -2.0}, "fewer rows are read, but a query opens 11.0 files instead of 9.0"),
    ],
)
def test_more_files_are_blamed_only_where_surely_fewer_rows_are_read(others: dict[str, float], told: str) -> None:
    promise = replace(PROMISE, bytes_low=-1.0, files_low=-3.0, **others)
    found = weighed(of(replace(PLAN, promise=promise)), GateSettings())
    assert found.cause == "not_proved"
    assert found.reasons[0].startswith(f"not proved to help: {told}")


def test_what_others_would_undo_is_not_done_whether_the_gate_asks_or_not() -> None:
    undone = of(why_not="others write its rows anew each night")
    for enabled in (True, False):
        found = weighed(undone, GateSettings(enabled=enabled))
        assert (found.approved, found.cause) == (False, "undone")
        assert found.reasons[0] == "others write its rows anew each night"
    assert weighed(of(), GateSettings(enabled=False)).reasons == ("the gate is switched off for this table",)


def test_another_layout_waits_until_what_it_costs_was_lost() -> None:
    change, settings = replace(PLAN, action=ANOTHER), costing(100.0)
    for lost, patience, approved in (
        (101.0, 1.0, True),
        (99.0, 1.0, False),
        (990.0, 10.0, False),
        (1010.0, 10.0, True),
    ):
        found = weighed(of(change, lost=lost, patience=patience), settings)
        assert (found.approved, found.cause == "not_lost_enough") == (approved, not approved), (lost, patience)
        if not approved:
            times = " (10 times its cost, as earlier changes did not pay)" if patience > 1 else ""
            assert found.reasons[0].endswith(f"a change waits until that exceeds {100 * patience:,.1f}{times}")
            assert found.reasons[1].startswith("worth it: ")
    assert weighed(of(replace(PLAN, origin=KEPT), lost=0.0), settings).approved, "no change"


def test_a_table_that_keeps_its_layout_is_never_given_another_one() -> None:
    """Without the gate it was, and where nobody knew what its own had lost: by readers' layouts, or a lost state."""
    another, manual = replace(PLAN, spec=SPEC, action=ANOTHER), replace(PLAN, spec=SPEC, origin="manual")
    for enabled in (True, False):
        keeps = GateSettings(change_layout=False, enabled=enabled)
        for plan, lost in ((another, 1e9), (another, None), (manual, None)):
            found = weighed(of(plan, lost=lost, in_force="its own"), keeps)
            assert (found.approved, found.cause) == (False, "not_lost_enough")
            assert found.reasons == ("the table keeps its layout: layout.keep is set",)
        assert weighed(of(another), keeps).approved, "one that has none yet"
        assert weighed(of(another, in_force=SPEC.layout_id), keeps).approved, "what of it does not lie so yet"
        assert weighed(of(replace(PLAN, spec=SPEC, origin=KEPT), in_force="its own"), keeps).approved
    assert weighed(of(another, in_force="its own"), GateSettings(enabled=False)).approved


def test_a_tiny_table_is_told_in_kilobytes_how_much_is_new() -> None:
    waits = GateSettings(payback_days=0.0, min_new_data_bytes=1e6)
    found = weighed(of(replace(PLAN, origin=KEPT), new_bytes=4e5, table_bytes=8e5), waits)
    assert found.reasons[0] == "too little new data: 400.0 kB (50.0% of the table), the gate waits for 1.0 MB"


@pytest.mark.parametrize(
    ("files", "made", "told"),
    [(3, 2, "1 file becomes 2"), (6, 4, "2 files become 4"), (5, 3, ""), (4, 4, ""), (0, 0, "")],
)
def test_files_that_become_twice_as_many_are_told_of(files: int, made: int, told: str) -> None:
    """Read and written together; of what is only written anew nothing becomes more."""
    reading = weighed(replace(of(made=made), work=RelayoutWork(1e9, files=files)), GateSettings()).reasons[1]
    assert reading.endswith(f"; {told}") if told else "become" not in reading


def test_merged_files_pages_doubts_and_money_are_told_of_where_they_count() -> None:
    def told(plan: Plan = PLAN, **settings: Any) -> str:
        return "; ".join(weighed(of(plan), costing(3600.0, **settings)).reasons)

    pages = replace(PLAN, promise=replace(PROMISE, page_bytes_before=8e8, page_bytes_saved_per_query=6e8))
    assert "in the pages that they read now they read 25.0% afterwards" in told(pages)
    assert "pages" not in told(pages, page_skipping=False)
    assert told(replace(PLAN, action=COMPACTION)).startswith("compaction only worth it: ")
    assert told().startswith("worth it: ")
    assert "an earlier promise was broken, so the least is divided by 4.0" in told(widening=4.0)
    assert "an earlier promise was broken" not in told()
    money = (SAVED.low - 3600) / 3600 * 2.0
    assert f"; that is {money:+.2f} in money" in told(price=2.0)
    assert "money" not in told()


def test_what_is_left_as_queries_move_on_is_told_as_a_share_of_what_is_asked_for_now() -> None:
    fades = Lasting((0.0, 15.0, 30.0), (0.5, 0.0, 0.0))
    (reason, *_) = weighed(of(credited=0.5, lasting=fades), GateSettings()).reasons
    assert "queries move on to newer data, so they save 25% of what they would if they stayed" in reason
    newest = weighed(of(credited=0.0, lasting=Lasting((0.0, 1.0), (0.0, 0.5))), GateSettings())
    assert newest.approved
    assert "move on" not in newest.reasons[0], "of nothing no share is left"
    nearly = weighed(of(lasting=Lasting((0.0,), (0.999,))), GateSettings())
    assert "move on" not in nearly.reasons[0]


def test_what_the_ledger_notes_is_what_was_counted_with() -> None:
    pages = replace(PLAN, promise=replace(PROMISE, page_bytes_before=8e8, page_bytes_saved_per_query=6e8))

    def noted(plan: Plan, **settings: Any) -> dict[str, Any]:
        return weighed(of(plan), GateSettings(**settings)).assumptions

    assert [noted(plan)["page_skipping"] for plan in (pages, PLAN)] == [True, False]
    assert not noted(pages, page_skipping=False)["page_skipping"]
    rates = [{name: noted(PLAN, **one)[name] for name in ("queries_per_day", "rate_source")}
             for one in ({}, {"queries_per_day": 7.0})]  # fmt: skip
    assert [tuple(one.values()) for one in rates] == [(100.0, "observed"), (7.0, "configured")]
    nothing = weighed(replace(of(), work=RelayoutWork(0.0)), GateSettings()).assumptions
    assert nothing["rewrite_core_seconds_per_gb"] == 0.0
