"""Partitions that came after a plan: credited by what was measured of the others, and never told to be out of date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from zorder_pipeline.errors import TableError
from zorder_pipeline.gate.decision import decide
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.model.candidate import ANOTHER, INCREMENTAL, Candidate
from zorder_pipeline.model.decision import Decision
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.model.lasting import Lasting
from zorder_pipeline.model.plan import KEPT, Plan, Promise
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.values import DAY
from zorder_pipeline.pipeline.judging.judgements import Judgement
from zorder_pipeline.pipeline.judging.weighing import Weighing
from zorder_pipeline.pipeline.learning.apportioning import AHEAD, _Asking
from zorder_pipeline.relayout.file_list import FileList

SPEC = KeySpec((FeatureCodes("a", "int", (10,), (0, 1), 1, null_code=0),), (0,))
PROMISE = Promise(
    queries=400, statements=200, before=0.9, after=0.2, low=0.6, high=0.75, bytes_saved_per_query=5e9, bytes_low=4e9,
    bytes_high=6e9, bytes_before=8e9, files_before=90.0, queries_per_day=5000.0, rate_source="observed",
)  # fmt: skip
GATE = GateSettings(min_new_data_share=0.0, min_new_data_bytes=0.0)
LEARNED, NOW = 7, 8
GB = 1_000_000_000
DAYS = tuple(float(day) for day in range(11))


def window(age: int, days: int = 3) -> Lasting:
    """What is left of a day's saving whose queries ask for one of the last ``days`` days alike."""
    return Lasting(DAYS, tuple((1 / days) if age + day < days else 0.0 for day in DAYS))


def table(then: Mapping[str, float], now: Mapping[str, float], log_is_there: bool = True) -> Any:
    """A table by days, each a file of so many GB: those of the plan's version lie by its layout, later ones by none."""

    def files(sizes: Mapping[str, float]) -> FileList:
        rows = np.array([int(1e6 * size) for size in sizes.values()])
        layout = tuple(SPEC.layout_id if name in then else "" for name in sizes)
        number = np.zeros(len(rows), dtype=np.int64)
        return FileList(
            path=np.array(list(sizes), dtype=object), bytes=rows * 1000, rows=rows, deleted=number, layout=layout,
            generation=np.array([1 if one else -1 for one in layout]), key_low=number - 1, key_high=number - 1,
            modified=number, partitions=tuple((name,) for name in sizes), load_zones=lambda columns: {},
        )  # fmt: skip

    def at(version: int) -> Any:
        assert version == LEARNED
        if not log_is_there:
            raise TableError("the log does not hold it any more")
        return SimpleNamespace(files=lambda: files(then))

    listed, columns = files(now), (Column("ds", "string", partition=True), Column("a", "int"))
    return SimpleNamespace(
        version=NOW, partition_columns=("ds",), schema=TableSchema(columns), files=lambda: listed, at=at,
        whole_partitions=False,
    )  # fmt: skip


def planned(
    shares: Mapping[str, float], lasting: Mapping[str, Lasting] | None = None, action: str = INCREMENTAL
) -> Plan:
    days = {f"ds={name}": share for name, share in shares.items()}
    lasts = {f"ds={name}": each for name, each in (lasting or {}).items()}
    candidate = Candidate(action, SPEC, 1_000_000, PROMISE, days, lasting=lasts)
    origin = KEPT if action == INCREMENTAL else "learned"
    return Plan(
        "/t", "id", "h", LEARNED, SPEC, origin, 1_000_000, PROMISE, action=action, candidates=(candidate,)
    )  # fmt: skip


def chosen(weighing: Weighing, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> tuple[Decision, Any]:
    """The decision, and the proposal that it is about, for what does not lie by the layout."""
    monkeypatch.setattr("zorder_pipeline.relayout.clustering.Clustering.select", _not_laid_out)
    proposal = weighing.proposal(plan, weighing.preview(plan))
    return decide([proposal], weighing.gate)[0], proposal


def _not_laid_out(_: Any, snapshot: Any, where: str | None = None) -> Any:
    return np.flatnonzero(~snapshot.files().lies_by(SPEC.layout_id))


THIRTY = {f"d{day:02}": 1.0 for day in range(30)}
LAST = "d29"


def test_a_day_that_came_after_the_plan_is_credited_by_its_share_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """It had no credit at all: "not proved to help", on each morning after a night that offered something."""
    snapshot = table(THIRTY, THIRTY | {"d30": 1.0})
    for shares in ({**dict.fromkeys(THIRTY, 0.0), LAST: 1.0}, dict.fromkeys(THIRTY, 1 / 30)):
        decision, proposal = chosen(Weighing(snapshot, GATE), planned(shares), monkeypatch)
        assert proposal.credited == pytest.approx(1 / 31)
        assert proposal.lasting is None
        assert decision.approved, decision.reasons
        told = "partition ds=d30 came after the plan and is credited by bytes with what it measured of others"
        assert told in decision.reasons[1]


@pytest.mark.parametrize("later", [1, 2, 10])
def test_a_day_that_queries_move_on_to_is_credited_with_what_the_days_had_that_they_leave(
    later: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was declined as "queries move on to newer data, and ask for none of these rows": they ask for just these."""
    hot = {f"d{29 - age}": window(age) for age in range(3)}
    new = {f"d{30 + day}": 1.0 for day in range(later)}
    plan = planned({**dict.fromkeys(THIRTY, 0.0), **dict.fromkeys(hot, 1 / 3)}, hot, ANOTHER)
    decision, proposal = chosen(Weighing(table(THIRTY, THIRTY | new), GATE), plan, monkeypatch)
    assert proposal.credited == 0.0, "no logged query asks for it"
    assert proposal.lasting is not None
    assert sum(part.credited_over(10.0) for part in proposal.partitions) == pytest.approx(
        sum(each.over(10.0) for each in hot.values()) * min(1.0, later / 3)
    ), "as the days before it by their bytes, and no more in all than these had"
    assert proposal.credited_over(10.0) < window(0).over(10.0) * later
    assert decision.approved, decision.reasons
    assert "ask for none of these rows" not in decision.reasons[0]


def test_what_waits_does_not_age_what_came_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    hot = {LAST: Lasting(DAYS, window(0).shares, since=2.0)}
    plan = planned({**dict.fromkeys(THIRTY, 0.0), LAST: 1.0}, hot)
    _, proposal = chosen(Weighing(table(THIRTY, THIRTY | {"d30": 1.0}), GATE), plan, monkeypatch)
    assert hot[LAST].over(10.0) < 0.2 * window(0).over(8.0)
    assert proposal.credited_over(8.0) == pytest.approx(window(0).over(8.0), rel=0.2)


@pytest.mark.parametrize("since", [0.0, 0.1, 1.3, 3.0])
@pytest.mark.parametrize("hour", [0.0, 0.02, 0.5, 0.99])
@pytest.mark.parametrize("days", [1, 3, 7])
def test_what_a_later_day_brings_is_no_matter_of_when_the_log_ended_and_the_day_came(
    days: int, hour: float, since: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of queries for the newest day alone nothing is left of what a plan knew, once its log's last day has ended."""
    asking = _Asking((), np.zeros((1, 1)), np.zeros((1, 1)), AHEAD, hour, since)
    hot = {
        f"d{29 - age}": asking.lasting(np.array([1 / days if age + day < days else 0.0 for day in asking.days]))
        for age in range(days)
    }
    plan = planned({**dict.fromkeys(THIRTY, 0.0), **dict.fromkeys(hot, 1 / days)}, hot)
    plan = replace(plan, log_watermark=int(hour * DAY))
    _, proposal = chosen(Weighing(table(THIRTY, THIRTY | {"d30": 1.0}), GATE), plan, monkeypatch)
    mean_of_them = sum(age + 1 for age in range(days)) / days**2
    assert 30 * proposal.credited_over(30.0) == pytest.approx(mean_of_them, rel=0.01)
    assert 0.5 <= mean_of_them <= 1.0, "a day's own saving in all: one by one they bring what is saved in a day"


def test_of_queries_that_stay_a_new_day_has_no_more_than_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the saving is of a day that dashboards name, a fifth of all days alike, the rest moves on."""
    everywhere, named = 0.2 / 30, 0.5
    lasting = {name: Lasting(DAYS, (everywhere,) * len(DAYS)) for name in THIRTY}
    lasting["d05"] = lasting["d05"].times(1 + named / everywhere)
    moving = window(0).times(0.9)
    lasting[LAST] = Lasting(DAYS, tuple(share + everywhere for share in moving.shares))
    shares = {name: each.shares[0] for name, each in lasting.items()}
    snapshot = table(THIRTY, THIRTY | {"d30": 1.0})
    _, proposal = chosen(Weighing(snapshot, GATE), planned(shares, lasting, ANOTHER), monkeypatch)
    assert proposal.credited == pytest.approx((0.2 + named) / 31)
    assert proposal.credited_over(10.0) == pytest.approx((0.2 + named) / 31 + moving.over(10.0))


@pytest.mark.parametrize("lasting", [None, {LAST: window(0)}])
@pytest.mark.parametrize("why", ["there already", "no log"])
def test_a_partition_that_the_sample_had_no_room_for_is_not_told_to_bring_nothing(
    why: str, lasting: Mapping[str, Lasting] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may bring nothing: those that are asked for least are left out first. That is not known, and told so."""
    now = THIRTY | {"d30": 1.0}
    snapshot = table(THIRTY, now, log_is_there=False) if why == "no log" else table(now, now)
    plan = planned({**dict.fromkeys(THIRTY, 0.0), LAST: 1.0}, lasting)
    weighing = Weighing(snapshot, GATE)
    monkeypatch.setattr("zorder_pipeline.relayout.file_list.FileList.lies_by", lambda own, _: own.path != "d30")
    decision, proposal = chosen(weighing, plan, monkeypatch)
    assert proposal.credited_over(30.0) == 0.0
    assert (decision.approved, decision.cause) == (False, "not_proved")
    assert decision.reasons[0] == (
        "not proved to help: the plan measured nothing of partition ds=d30; learn a new one, as the table's next night "
        "does, or apply it with --force if you know better"
    )


def test_what_was_measured_to_bring_nothing_is_told_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = table(THIRTY, THIRTY)
    monkeypatch.setattr("zorder_pipeline.relayout.file_list.FileList.lies_by", lambda own, _: own.path != "d03")
    monkeypatch.setattr(snapshot, "at", None)
    for lasting, told in (
        (None, "not proved to help: the interval of the saving reaches zero"),
        ({LAST: window(0)}, "not worth it: queries move on to newer data, and ask for none of these rows in the 30 "),
    ):
        plan = planned({**dict.fromkeys(THIRTY, 0.0), LAST: 1.0}, lasting)
        decision, _ = chosen(Weighing(snapshot, GATE), plan, monkeypatch)
        assert decision.reasons[0].startswith(told)


def test_what_the_ledger_and_the_budget_are_told_is_what_was_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    hot, snapshot = {LAST: window(0)}, table(THIRTY, THIRTY | {"d30": 1.0, "d31": 1.0})
    for plan in (
        planned(dict.fromkeys(THIRTY, 1 / 30)),
        planned({**dict.fromkeys(THIRTY, 0.0), LAST: 1.0}, hot),
    ):
        weighing = Weighing(snapshot, GATE)
        decision, proposal = chosen(weighing, plan, monkeypatch)
        judged = Judgement("t", "/t", NOW, plan, decision, weighing.preview(plan))
        judged = Judgement("t", "/t", NOW, plan, decision, judged.preview, weighing.parts(judged))
        assert judged.credited == pytest.approx(proposal.credited)
        assert sum(part.saving for part in judged.parts) == pytest.approx(decision.saving_low)
        assert [part.key for part in judged.parts] == ["ds=d30", "ds=d31"]
        noted = Lasting.promised(judged.said["assumptions"].get("lasting"), judged.credited)
        assert (noted is None) == (proposal.lasting is None)
        if noted is not None:
            assert noted.over(30.0) == pytest.approx(proposal.credited_over(30.0))


def test_a_part_of_the_table_has_lost_no_more_than_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A backfill of one partition went over to another layout at once, and the next night all others followed."""
    plan = replace(planned(dict.fromkeys(THIRTY, 1 / 30), action=ANOTHER), lost=600.0)
    whole, one = (Weighing(table(THIRTY, THIRTY), GATE, where=where) for where in (None, f"ds = '{LAST}'"))
    monkeypatch.setattr("zorder_pipeline.relayout.clustering.Clustering.select", _of_the_last_day)
    assert whole.proposal(plan, whole.preview(plan)).lost == 600.0
    assert one.proposal(plan, one.preview(plan)).lost == pytest.approx(20.0)


def _of_the_last_day(_: Any, snapshot: Any, where: str | None = None) -> Any:
    files = snapshot.files()
    return np.array([i for i, (day,) in enumerate(files.partitions) if where is None or day == LAST])


def _carried_out(sizes: Mapping[str, float], since: Mapping[str, float], later: Mapping[str, float]) -> Any:
    """A table whose days ``since`` were laid out after the plan was learned, and to which ``later`` came then."""
    snapshot = table(sizes, {**sizes, **{f"{name}+": size for name, size in later.items()}})
    files = snapshot.files()
    new = [str(path).removesuffix("+") for path in files.path]
    done = [name in since and name == path for name, path in zip(new, files.path, strict=True)]
    lies = [layout if own else "" for own, layout in zip(done, files.layout, strict=True)]
    listed = replace(
        files, partitions=tuple((name,) for name in new), layout=tuple(lies), generation=np.where(done, NOW, -1)
    )
    return SimpleNamespace(**vars(snapshot) | {"files": lambda: listed, "version": NOW + 1})


@pytest.mark.parametrize("lasting", [None, window(0)])
@pytest.mark.parametrize("action", [ANOTHER, INCREMENTAL])
def test_a_plan_that_is_carried_out_again_is_credited_for_what_came_since(
    action: str, lasting: Lasting | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Learned weekly, applied nightly: late rows of a known day were credited with all of that day each night."""
    sizes, shares = {"d0": 4.0, "d1": 4.0}, {"d0": 0.25, "d1": 0.75}
    days = {name: lasting.times(share) for name, share in shares.items()} if lasting else None
    plan = planned(shares, days, action)
    for since, later, credited in (
        ({}, {"d1": 1.0}, {"d0": 0.25, "d1": 0.75}),
        (sizes, {"d1": 1.0}, {"d1": 0.75 / 5}),
        ({"d1": 4.0}, {"d1": 12.0}, {"d0": 0.25, "d1": 0.75 * 12 / 16}),
    ):
        weighing = Weighing(_carried_out(sizes, since, later), GATE)
        _, proposal = chosen(weighing, plan, monkeypatch)
        assert proposal.credited == pytest.approx(sum(credited.values()))
        told = {part.key.removeprefix("ds="): part.credited for part in proposal.partitions}
        assert told == pytest.approx(credited)
        if lasting is not None:
            assert proposal.credited_over(9.0) == pytest.approx(sum(credited.values()) * lasting.over(9.0))
