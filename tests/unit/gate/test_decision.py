"""The gate: approves what pays, declines the rest with the right reason."""

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from zorder_pipeline.gate.benefit import observed_rate, promise
from zorder_pipeline.gate.cost import CostModel, RelayoutWork
from zorder_pipeline.gate.decision import decide
from zorder_pipeline.gate.proposal import PartitionWork, Proposal, narrowed
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.candidate import ANOTHER, COMPACTION
from zorder_pipeline.model.decision import DECLINE, Decision
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.model.lasting import Lasting
from zorder_pipeline.model.plan import KEPT, Plan, Promise
from zorder_pipeline.model.values import DAY

SPEC = KeySpec((FeatureCodes("a", "int", (5,), (0, 1), 1),), (0,))
RNG = np.random.default_rng(0)
GOOD = promise(np.full(100, 0.9), RNG.uniform(0, 0.2, 100), np.full(100, 1e9), (100.0, "observed"))
PLAN = Plan("t", "id", "hash", 0, SPEC, "learned", 1000, GOOD, trials=40)


def judge(plan: Plan, rewrite_bytes: float, table_bytes: float, settings: GateSettings | None = None) -> Decision:
    """The decision about one plan alone: rewriting ``rewrite_bytes`` of a table of ``table_bytes`` by it."""
    work = RelayoutWork(rewrite_bytes, len(plan.spec.features) if plan.spec else 1)
    credited = 1.0 if plan.promises_part else rewrite_bytes / table_bytes
    return decide([Proposal(plan, work, table_bytes, rewrite_bytes, credited)], settings)[0]


def test_a_saving_that_pays_is_approved_with_its_assumptions() -> None:
    decision = judge(PLAN, 1e9, 1e9)
    assert decision.approved
    assert decision.reasons[0].startswith("worth it: at 100 queries a day over 30 days")
    assert decision.saving_low < decision.saving_core_seconds < decision.saving_high
    assert decision.saving_core_seconds == pytest.approx(0.8 * 100 * 30 * CostModel().scan, rel=0.05)
    assert decision.assumptions["rate_source"] == "observed"


@pytest.mark.parametrize(
    ("plan", "settings", "reason"),
    [
        (dataclasses.replace(PLAN, spec=None), GateSettings(), "the present layout was not beaten"),
        (dataclasses.replace(PLAN, spec=None, trials=0), GateSettings(), "there is no other layout to try"),
        (dataclasses.replace(PLAN, origin="manual"), GateSettings(), "no workload: the layout was given by hand"),
        (PLAN, GateSettings(queries_per_day=0.01), "not worth it: at 0.01 queries a day"),
        (PLAN, GateSettings(costs=CostModel(base=1e9)), "not worth it"),
    ],
)
def test_what_does_not_pay_is_declined_with_its_reason(plan: Plan, settings: GateSettings, reason: str) -> None:
    decision = judge(plan, 1e9, 1e9, settings)
    assert not decision.approved
    assert decision.reasons[0].startswith(reason)


@pytest.mark.parametrize("settings", [GateSettings(horizon_days=np.inf, queries_per_day=0.0),
                                      GateSettings(costs=CostModel(base=np.inf))])  # fmt: skip
def test_what_is_no_number_is_never_approved(settings: GateSettings) -> None:
    with np.errstate(invalid="ignore"):
        assert not judge(PLAN, 1e9, 1e9, settings).approved


@pytest.mark.parametrize(
    ("laid_out", "cause", "reason"),
    [(False, "not_worth_it", "few ask"), (True, "in_good_order", "no other layout was sought: few ask")],
)
def test_a_table_that_no_layout_was_sought_for_says_why(laid_out: bool, cause: str, reason: str) -> None:
    plan = dataclasses.replace(PLAN, spec=None, unsought="few ask")
    decision, _ = decide([Proposal(plan, RelayoutWork(1e9), 1e9, in_force="a" * laid_out)])
    assert (decision.verdict, decision.cause, decision.reasons) == (DECLINE, cause, (reason,))
    kept = dataclasses.replace(PLAN, origin=KEPT, unsought="few ask")
    decision, _ = decide([Proposal(kept, RelayoutWork(1e9), 1e9, 1e9, in_force="a" * laid_out)])
    assert decision.approved
    assert decision.reasons[-1] == "no other layout was sought: few ask"


def test_random_savings_are_not_proved() -> None:
    noise = promise(RNG.uniform(0, 1, 60), RNG.uniform(0, 1, 60), np.full(60, 1e12), (1e6, "observed"))
    assert judge(dataclasses.replace(PLAN, promise=noise), 1.0, 1.0).reasons[0].startswith("not proved to help")


def test_a_small_table_of_many_files_is_told_that_opening_them_costs_what_its_rows_save() -> None:
    small = dataclasses.replace(
        promise(np.ones(60), np.full(60, 0.5), np.full(60, 1e6), (100.0, "observed")),
        files_before=1.0, files_saved_per_query=-3.4, files_low=-3.6, files_high=-3.2,
    )  # fmt: skip
    decision = judge(dataclasses.replace(PLAN, promise=small), 1e6, 1e6)
    assert not decision.approved
    assert "a query opens 4.4 files instead of 1.0" in decision.reasons[0]


def test_too_few_promise_queries_prove_nothing() -> None:
    """Neither do a few that are asked again and again."""
    for times in (1, 1000):
        statement = np.repeat(np.arange(3), times)
        asked = Asked.of(np.arange(len(statement)), statement)
        few = promise(np.ones(3), np.zeros(3), np.full(3, 1e12), (1e6, "observed"), asked=asked)
        found = judge(dataclasses.replace(PLAN, promise=few), 1.0, 1.0)
        assert found.cause == "too_few_queries"
        assert found.reasons[0].startswith("only 3 different later queries")


def test_a_switched_off_gate_approves_any_layout() -> None:
    assert judge(dataclasses.replace(PLAN, origin="manual"), 1e9, 1e9, GateSettings(enabled=False)).approved


def test_what_is_done_unasked_has_its_cost_and_is_the_plans_own_choice() -> None:
    dear, cheap = (Proposal(dataclasses.replace(PLAN, target_file_rows=i), RelayoutWork(size), 1e9, credited=0.1)
                   for i, size in ((1, 1e9), (2, 1e8)))  # fmt: skip
    decision, chosen = decide([dear, cheap], GateSettings(enabled=False))
    assert (decision.cause, chosen) == ("gate_off", dear)
    assert decision.cost_core_seconds == pytest.approx(CostModel().relayout(dear.work).expected)
    assert decision.cost_low < decision.cost_core_seconds < decision.cost_high
    manual = dataclasses.replace(PLAN, origin="manual", promise=Promise())
    assert judge(manual, 1e9, 1e9).cost_core_seconds > 0, "as zorder apply --force records it"


def test_a_part_of_the_table_is_credited_with_that_part_of_the_saving() -> None:
    whole, part = judge(PLAN, 1e9, 1e9), judge(PLAN, 1e8, 1e9)
    assert part.saving_low == pytest.approx(0.1 * whole.saving_low)
    job = CostModel().per_job
    assert part.cost_core_seconds - job == pytest.approx(0.1 * (whole.cost_core_seconds - job))
    assert part.cost_low < part.cost_core_seconds < part.cost_high


def days(hot: int, cold: int, **others: Any) -> Proposal:
    """A table of a partition a day, 1 GB each, whose saving lies in the hot ones."""
    parts = tuple(
        PartitionWork(f"day={i:04d}", 1 / hot if i >= cold else 0.0, 1e9, 20, 1e9, 10) for i in range(cold + hot)
    )
    size = 1e9 * len(parts)
    plan = dataclasses.replace(PLAN, **{name: value for name, value in others.items() if name in ("origin", "action")})
    rest = {name: value for name, value in others.items() if name not in ("origin", "action")}
    work = RelayoutWork(size, 3, files=20 * len(parts))
    return Proposal(plan, work, size, size, partitions=parts, made=10 * len(parts), **rest)


def test_only_the_partitions_that_pay_are_rewritten() -> None:
    proposal = days(7, 1000)
    assert decide([dataclasses.replace(proposal, partitions=())])[0].cause == "not_worth_it"
    decision, chosen = decide([proposal])
    assert decision.approved
    assert chosen is not None
    assert chosen.plan.partitions == tuple(f"day={i:04d}" for i in range(1000, 1007))
    assert (chosen.work, chosen.made, chosen.credited) == (RelayoutWork(7e9, 3, files=140), 70, pytest.approx(1.0))
    assert decision.cost_core_seconds == pytest.approx(CostModel().relayout(chosen.work).expected)
    assert decision.reasons[1].startswith("7 of 1,007 partitions pay for their own rewrite")
    assert Plan.from_json(json.loads(json.dumps(chosen.plan.to_json()))) == chosen.plan


def test_a_partition_has_to_pay_by_the_lower_end_of_its_saving() -> None:
    """Half of the table's saving in each of two partitions: it pays by what is expected, or surely."""
    proposal = days(2, 10)
    low, expected = (getattr(judge(PLAN, 1e9, 1e9), name) / 2 for name in ("saving_low", "saving_core_seconds"))
    job = CostModel().per_job
    costs = [CostModel(base=(low + expected) / 2, per_feature=1e-9, per_written_file=1e-9, per_job=job)]
    costs += [dataclasses.replace(costs[0], base=0.99 * low)]
    wide, sure = (decide([proposal], GateSettings(costs=model))[1] for model in costs)
    assert wide is proposal, "none pays: all of it is what the reason tells of"
    assert sure is not None
    assert sure.plan.partitions == ("day=0010", "day=0011")


@pytest.mark.parametrize(("size", "files"), [(5e8, 0), (0.0, 300), (2e8, 40)])
def test_a_partition_has_to_pay_for_its_bytes_and_its_files(size: float, files: int) -> None:
    """What its rewrite adds to that of another partition, told by the cost model itself."""
    costs, hot = CostModel(), PartitionWork("day=2", 1.0, 1e9, files=10, made=5)
    whole = RelayoutWork(1e9 + size, 3, files=10 + files)
    adds = costs.relayout(whole).expected - costs.relayout(RelayoutWork(1e9, 3, files=10)).expected

    def kept(saving: float) -> tuple[str, ...]:
        cold = PartitionWork("day=1", saving / 1e6, size, files=files, made=files // 2)
        proposal = Proposal(PLAN, whole, 2e9, 2e9, partitions=(hot, cold))
        return narrowed(proposal, 1e6, 30.0, costs).plan.partitions

    assert kept(0.99 * adds) == ("day=2",)
    assert kept(1.01 * adds) == PLAN.partitions == (), "both pay, which is the whole"


def fading(*credited: float) -> Proposal:
    """A table of two days: an old one that is asked for now, and the newest, that is asked for from tomorrow on."""
    told = [Lasting((0.0, 1.0, 2.0), shares) for shares in ((credited[0], 0.0, 0.0), (credited[1], 1.0, 1.0))]
    parts = tuple(
        PartitionWork(f"day={i}", share, 1e9, 20, 1e9, 10, lasting)
        for i, (share, lasting) in enumerate(zip(credited, told, strict=True))
    )
    whole = Lasting.together(told)
    return Proposal(PLAN, RelayoutWork(2e9, 3, files=40), 2e9, 2e9, partitions=parts, made=20, lasting=whole)


def test_partitions_pay_by_what_queries_ask_of_them_within_the_horizon() -> None:
    stays = dataclasses.replace(fading(0.9, 0.1), lasting=None)
    stays = dataclasses.replace(stays, partitions=tuple(dataclasses.replace(p, lasting=None) for p in stays.partitions))
    costs = CostModel(base=0.5 * judge(PLAN, 1e9, 1e9).saving_low, per_feature=1e-9, per_written_file=1e-9)
    settings = GateSettings(costs=costs)
    (old, new) = (decide([one], settings)[1] for one in (stays, fading(0.9, 0.1)))
    assert old is not None
    assert new is not None
    assert (old.plan.partitions, new.plan.partitions) == (("day=0",), ("day=1",))
    assert new.lasting == fading(0.9, 0.1).partitions[1].lasting


def test_a_saving_that_does_not_last_is_credited_for_as_long_as_it_does() -> None:
    fades = Lasting((0.0, 2.0), (1.0, 0.0))
    proposal = Proposal(PLAN, RelayoutWork(1e9), 1e9, 1e9, lasting=fades)
    lasts, left = judge(PLAN, 1e9, 1e9), decide([proposal])[0]
    assert left.saving_low == pytest.approx(lasts.saving_low / 30)
    assert left.saving_core_seconds == pytest.approx(lasts.saving_core_seconds / 30)
    assert "so they save 3% of what they would if they stayed" in left.reasons[0]
    assert left.assumptions["lasting"] == fades.to_json() | {"credited": 1.0}
    assert "lasting" not in lasts.assumptions
    half = decide([dataclasses.replace(proposal, credited=0.5, lasting=fades.times(0.5))])[0]
    assert half.assumptions["lasting"] == fades.times(0.5).to_json() | {"credited": 0.5}
    grows = decide([dataclasses.replace(proposal, lasting=Lasting((0.0,), (5.0,)))])[0]
    assert grows.saving_low == pytest.approx(lasts.saving_low), "no more is credited than was proved"
    assert grows.assumptions["lasting"]["shares"] == [1.0], "nor is the promise held to more"
    assert "move on" not in grows.reasons[0]
    over = decide([dataclasses.replace(proposal, lasting=Lasting((0.0,), (0.0,)))])[0]
    assert (over.cause, "ask for none of these rows" in over.reasons[0]) == ("not_worth_it", True)
    passed = decide([dataclasses.replace(proposal, lasting=dataclasses.replace(fades, since=1.0))])[0]
    assert passed.saving_low == pytest.approx(lasts.saving_low / 120), "a day of the two has passed"


def test_a_table_that_others_overwrite_is_credited_for_as_long_as_a_relayout_stands() -> None:
    stands, daily = decide([Proposal(PLAN, RelayoutWork(1e9), 1e9, 1e9)]), GateSettings(life_days=1.0)
    over = decide([Proposal(PLAN, RelayoutWork(1e9), 1e9, 1e9)], daily)[0]
    assert over.saving_low == pytest.approx(stands[0].saving_low / 30)
    assert "others undid what was laid out after 1.0 days on average, so 1.0 of the 30 days count" in over.reasons[0]
    assert over.assumptions["credited_days"] == pytest.approx(1.0)
    assert "credited_days" not in stands[0].assumptions
    kept = dataclasses.replace(PLAN, origin=KEPT)
    costs = CostModel(base=0.7 * judge(PLAN, 1e9, 1e9).saving_low / 30, per_job=0.0, per_feature=1e-9)
    waits = GateSettings(costs=costs, min_new_data_bytes=1e12, life_days=40.0)
    assert decide([Proposal(kept, RelayoutWork(1e9), 1e9, 1e9)], waits)[0].approved, "a day pays for it as before"


def test_partitions_pay_together_for_no_more_than_was_promised() -> None:
    """Ten, each of which half of all queries ask for tomorrow: of the promise there is one."""
    surely = judge(PLAN, 1e9, 1e9).saving_low
    costs = CostModel(base=0.15 * surely, per_feature=1e-9, per_written_file=1e-9)
    parts = tuple(PartitionWork(f"day={i}", 0.1, (1 + i) * 1e9, lasting=Lasting((0.0,), (0.5,))) for i in range(10))
    work = RelayoutWork(sum(part.bytes for part in parts), 3)
    proposal = Proposal(PLAN, work, work.bytes, partitions=parts, lasting=Lasting((0.0,), (5.0,)))
    decision, chosen = decide([proposal], GateSettings(costs=costs))
    assert decision.approved
    assert chosen is not None
    assert chosen.plan.partitions == ("day=0", "day=1"), "the cheapest two bring all of it"


def test_a_table_waits_for_new_data_by_what_the_first_days_save() -> None:
    """What fades within two days has paid for itself by then, or never."""
    kept = dataclasses.replace(PLAN, origin=KEPT)
    fades = Lasting((0.0, 1.0, 1.5), (1.0, 1.0, 0.0))
    day = judge(PLAN, 1e9, 1e9).saving_core_seconds / 30
    costs = CostModel(base=0.7 * judge(PLAN, 1e9, 1e9).saving_low / 30, per_job=0.0, per_feature=1e-9)
    settings = GateSettings(costs=costs, min_new_data_bytes=1e12)
    proposal = Proposal(kept, RelayoutWork(1e9), 1e9, 1e9, lasting=fades)
    assert costs.relayout(proposal.work).expected < day
    assert decide([proposal], settings)[0].approved
    waits = decide([proposal], dataclasses.replace(settings, payback_days=0.0))[0]
    assert waits.cause == "too_little_new_data"


def test_what_no_partition_pays_for_is_declined_as_a_whole_and_a_switched_off_gate_takes_all() -> None:
    proposal = days(7, 1000)
    decision, chosen = decide([proposal], GateSettings(queries_per_day=0.1))
    assert (decision.approved, chosen) == (False, proposal)
    decision, chosen = decide([proposal], GateSettings(enabled=False))
    assert (decision.approved, chosen) == (True, proposal)
    assert decide([days(7, 0)])[1] == days(7, 0), "all of them pay"


def test_what_is_lost_and_what_is_new_count_in_the_partitions_that_pay() -> None:
    decision, chosen = decide([days(7, 1000, action=ANOTHER, lost=1e4)])
    assert (decision.cause, chosen is not None and chosen.lost) == ("worth_it", pytest.approx(1e4))
    half = days(4, 1000, action=ANOTHER, lost=800.0)
    cold = tuple(dataclasses.replace(one, credited=5e-4) for one in half.partitions[:1000])
    hot = tuple(dataclasses.replace(one, credited=0.125) for one in half.partitions[1000:])
    decision, _ = decide([dataclasses.replace(half, partitions=cold + hot)])
    assert decision.cause == "not_lost_enough"
    assert "cost 400.0 core-seconds more" in decision.reasons[0], "half of it was lost in partitions that stay"
    waiting = decide([days(1, 1000, origin=KEPT)], GateSettings(payback_days=0.0, min_new_data_bytes=2e9))[0]
    assert waiting.reasons[0].startswith("too little new data: 1,000.0 MB (100.0% of what is laid out)")


@pytest.mark.parametrize(("lost", "told"), [(None, "the plan's layout in 8 files"), (5.0, "another layout in 8 files")])
def test_another_layout_is_spoken_of_only_where_there_is_one(lost: float | None, told: str) -> None:
    merged = dataclasses.replace(PLAN, spec=None, action=COMPACTION)
    worse = dataclasses.replace(PLAN, action=ANOTHER, promise=dataclasses.replace(GOOD, bytes_low=0.0))
    dear = RelayoutWork(1e9, 1)
    proposals = [
        Proposal(worse, dear, 1e9, credited=0.5, lost=lost, made=8),
        Proposal(merged, dear, 1e9, made=1),
    ]
    decision, chosen = decide(proposals)
    assert chosen is proposals[1]
    assert f"also weighed: {told} " in decision.reasons[-1]


MERGED = Proposal(dataclasses.replace(PLAN, spec=None, action=COMPACTION), RelayoutWork(1e8), 1e9, 1e8)


def test_of_what_pays_that_is_done_which_gains_most_at_least() -> None:
    """A layout or merged files alike; more work for the same saving gains less."""
    much, little = (Proposal(PLAN, RelayoutWork(size), 1e9, 1e9) for size in (1e9, 5e8))
    part = dataclasses.replace(MERGED, credited=0.1)
    for offered, best in (((much, little), little), ((little, MERGED), MERGED), ((part, much), much)):
        for proposals in (offered, offered[::-1]):
            decision, chosen = decide(proposals)
            assert (decision.cause, chosen) == ("worth_it", best)
            assert "also weighed: " in decision.reasons[-1]
            assert [option.why_not for option in decision.options[1:]] == ["", ""]


def test_of_what_is_declined_a_layout_is_spoken_of_first_and_merged_files_alone_are_a_table_in_good_order() -> None:
    never = GateSettings(queries_per_day=0.001)
    layout = Proposal(PLAN, RelayoutWork(1e9), 1e9, 1e9)
    for proposals in ((layout, MERGED), (MERGED, layout)):
        decision, chosen = decide(proposals, never)
        assert (decision.cause, chosen) == ("not_worth_it", layout)
    decision, chosen = decide([MERGED], never)
    assert (decision.approved, decision.cause, chosen) == (False, "in_good_order", MERGED)
    assert decision.reasons[0].startswith("the present layout was not beaten on the select queries; the table stays")
    assert decide([MERGED])[0].cause == "worth_it"


def test_what_queries_read_is_told_in_pages_and_files_and_the_cost_per_gigabyte() -> None:
    paged = dataclasses.replace(GOOD, page_bytes_before=8e8, page_bytes_saved_per_query=6e8, files_before=9.0)
    paged = dataclasses.replace(paged, files_saved_per_query=7.0)
    merging = Proposal(
        dataclasses.replace(PLAN, promise=paged, action=COMPACTION), RelayoutWork(4e9, files=6), 4e9, made=4
    )
    decision, _ = decide([merging], GateSettings(page_skipping=True))
    told = decision.reasons[1]
    assert told.startswith("merging small files lets a query open 2.0 instead of 9.0; ")
    assert "in the pages that they read now they read 25.0% afterwards" in told
    assert told.endswith("; 2 files become 4")
    assert decision.assumptions["rewrite_core_seconds_per_gb"] == pytest.approx(decision.cost_core_seconds / 4)
    same = Proposal(dataclasses.replace(PLAN, promise=paged), RelayoutWork(4e9), 4e9)
    assert not decide([same])[0].reasons[1].startswith("merging")


def test_a_kept_layout_waits_for_more_new_data() -> None:
    kept = dataclasses.replace(PLAN, origin=KEPT)

    def ask(rewritten: float, table: float = 1e10, plan: Plan = kept, **settings: float) -> Decision:
        return judge(plan, rewritten, table, GateSettings(**{"payback_days": 0.0, **settings}))

    assert ask(5e8).approved, "5%, and more than 256 MB"
    waiting = ask(4e8)
    assert (waiting.verdict, waiting.cause) == (DECLINE, "too_little_new_data")
    assert waiting.reasons[0] == "too little new data: 400.0 MB (4.0% of the table), the gate waits for 500.0 MB"
    assert waiting.reasons[1].startswith("worth it")
    assert ask(2e8, 1e9).cause == "too_little_new_data", "20%, but less than 256 MB"
    assert ask(4e8, enabled=False).approved, "a gate that is switched off asks for nothing"
    days = waiting.cost_core_seconds / (waiting.saving_core_seconds / GateSettings.horizon_days)
    assert ask(4e8, payback_days=1.01 * days).approved, "a rewrite that is expected to have paid by then does not wait"
    assert ask(4e8, payback_days=0.99 * days).cause == "too_little_new_data"
    assert ask(4e8, plan=PLAN).cause == "worth_it", "a first layout is not about new data"
    declined = ask(4e8, plan=dataclasses.replace(kept, origin="manual"))
    assert declined.cause == "no_workload", "what is declined anyway keeps its own reason"


@pytest.mark.parametrize(
    ("times", "rate"),
    [
        ([None, None], (2.0, "assumed")),
        ([0, 1], (2.0, "assumed")),
        ([0, DAY // 2], (4.0, "observed")),
        ([0, DAY // 12, None, None], (26.0, "observed")),
        ([0, DAY // 12, None, None, None], (27.0, "assumed")),
        ([0, 3 * DAY, None, None, None, None], (2.0, "assumed")),
    ],
)
def test_the_query_rate_is_observed_or_said_to_be_assumed(times: list, rate: tuple) -> None:
    """Those without a time counted as often as if they, too, had been asked between the two that have one."""
    found, source = observed_rate(times, len(times))
    assert (pytest.approx(found), source) == rate


def test_the_time_before_the_first_query_counts_where_it_is_known() -> None:
    """What is asked from 9 to 17 o'clock alone seemed to be asked three times as often after the first day."""
    hours = [h * DAY // 24 for h in range(9, 18)]
    assert observed_rate(hours, 9) == (27.0, "observed")
    assert observed_rate(hours, 9, since=17 * DAY // 24 - DAY) == (9.0, "observed")
    assert observed_rate(hours, 9, until=9 * DAY // 24 + 3 * DAY) == (3.0, "observed"), "and that after the last one"
    assert observed_rate(hours, 9, since=DAY // 2, until=DAY // 2) == (27.0, "observed"), "they span as much at least"
    assert observed_rate([None] * 9, 9, 0, 3 * DAY) == (9.0, "assumed"), "when these were asked nobody knows"


def test_the_bootstrap_interval_covers_the_true_saving() -> None:
    """Of 200 samples from a known distribution, about 95% of the intervals hold its mean."""
    hits = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        found = promise(np.ones(80), rng.beta(1, 3, 80), np.ones(80), (1.0, "observed"), seed)
        hits += found.low <= 0.75 <= found.high
    assert hits >= 180
