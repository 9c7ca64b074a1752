"""How long a saving lasts by partition and day, against rows counted one query and one day at a time."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from zorder_pipeline.features.sample import SampleColumn
from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.candidate import ANOTHER, Candidate
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.model.lasting import Lasting
from zorder_pipeline.model.partition_key import partition_key
from zorder_pipeline.model.plan import Promise
from zorder_pipeline.model.predicate import And
from zorder_pipeline.model.ranges import Boxes, Interval, Range
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.values import DAY
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.model.zone_map import ColumnZones, ZoneMap
from zorder_pipeline.pipeline.learning.apportioning import AHEAD, Apportioning

TODAY, DAYS, EACH, FILES = 20_780, 10, 400, 4
"""Ten days of four files each, in which the values lie anyhow."""
ROWS = DAYS * EACH
OF = np.repeat(np.arange(TODAY - DAYS + 1, TODAY + 1), EACH)
VALUES = np.random.default_rng(3).integers(0, 64, ROWS)
STORED = (np.arange(ROWS) // (EACH // FILES)).astype(np.int32)
SPEC = KeySpec((FeatureCodes("v", "bigint", tuple(range(1, 64)), tuple(range(64)), 6),), (0,) * 6)


def laid_out() -> np.ndarray:
    """File of each row, by the values within its day."""
    block = np.empty(ROWS, dtype=np.int32)
    for i, day in enumerate(np.unique(OF).tolist()):
        rows = np.flatnonzero(day == OF)
        block[rows[np.argsort(VALUES[rows], kind="stable")]] = i * FILES + np.arange(EACH) * FILES // EACH
    return block


def asked(day: int, value: int) -> Boxes:
    return ((Range("d", "date", (Interval(day, day),)), Range("v", "bigint", (Interval(value, value),))),)


def apportioning(
    lag: int | None, partitioned: bool, until: int = TODAY, picks: Sequence[int] = (), apart: bool = False
) -> tuple[Apportioning, list[int]]:
    """Queries of a week that ask for a value of the day so long ago, or of one and the same day without a lag; and the
    days that the unseen ones, of the last three days, ask for.
    """
    days = np.repeat(np.arange(until - 6, until + 1), 8)
    values = np.random.default_rng(4).integers(0, 64, len(days)).tolist()
    moments = [int((day + 0.25 * (i % 8 + 1) / 8) * DAY) for i, day in enumerate(days.tolist())]
    wanted = [TODAY - 2 if lag is None else day - lag for day in days.tolist()]
    boxes = [asked(day, value) for day, value in zip(wanted, values, strict=True)]
    columns = (Column("d", "date", partition=partitioned), Column("v", "bigint"))
    day_of_file = np.unique(np.stack([STORED, OF]), axis=1)[1]
    every = np.ones(len(day_of_file), dtype=np.bool_)
    nulls = np.zeros(len(day_of_file), dtype=np.int64)
    zones = ZoneMap(nulls + EACH // FILES, nulls + 1, {"d": ColumnZones(day_of_file, day_of_file, every, nulls)})
    names = [str(i) for i in range(DAYS * FILES)]
    files = SimpleNamespace(path=names, partitions=[(str(day),) for day in day_of_file], zone_map=lambda: zones)
    snapshot = SimpleNamespace(
        location="file:/t", partition_columns=("d",) * partitioned, schema=TableSchema(columns), files=lambda: files
    )
    present = np.ones(ROWS, dtype=np.bool_)
    arrays = {"d": (OF, present), "v": (VALUES, present)}
    sample = SimpleNamespace(
        rows=ROWS, total_rows=ROWS, stands_for=1.0, file=STORED, names=[f"file:/t/{name}" for name in names],
        arrays=arrays, columns={name: SampleColumn(*column) for name, column in arrays.items()},
    )  # fmt: skip
    queries = tuple(LoggedQuery("t", And(()), template="a", timestamp=moment) for moment in moments)
    analysis: Any = SimpleNamespace(sample=sample, snapshot=snapshot, boxes=boxes, queries=queries)
    seen = np.arange(len(days)) if apart else np.zeros(len(days), dtype=np.int64)  # one, which no other confirms
    unseen = Asked.of(np.array(picks or range(32, len(days))), np.arange(len(days)), seen=seen)
    return Apportioning(analysis, unseen, unseen.each(boxes)), unseen.each(wanted)


def counted(apportioned: Apportioning, block: np.ndarray, days: list[int]) -> np.ndarray:
    """Rows in the files that hold each query's value on the day that it asks for, by that day, shape (days,)."""
    found = np.zeros(DAYS)
    for boxes, day in zip(apportioned.boxes, days, strict=True):
        (value,) = {item.intervals[0].low for box in boxes for item in box if item.column == "v"}
        rows = np.flatnonzero(day == OF)
        for file in np.unique(block[rows]):
            held = VALUES[rows[block[rows] == file]]
            if held.min() <= value <= held.max():
                found[day - OF[0]] += len(held)
    return found


def told_on(lasting: Lasting, day: float) -> float:
    return lasting.over(0, since=day)


@pytest.mark.parametrize("partitioned", [True, False])
@pytest.mark.parametrize("lag", [0, 1, 3, 6])
def test_a_saving_lasts_as_long_as_its_rows_are_asked_for(lag: int, partitioned: bool) -> None:
    apportioned, days = apportioning(lag, partitioned)
    told = apportioned.shared_out(Candidate(ANOTHER, SPEC, EACH // FILES, Promise()), laid_out())
    saved = counted(apportioned, STORED, days) - counted(apportioned, laid_out(), days)
    total = saved.sum()
    assert total > 0
    expected = {}
    for ahead in AHEAD:  # on the day that is so many days after the newest query's
        then = [min(TODAY + ahead - lag, TODAY + 1) for _ in days]
        there = [day for day in then if day <= TODAY]
        part = counted(apportioned, STORED, there) - counted(apportioned, laid_out(), there) if there else saved * 0
        expected[ahead] = np.maximum(0.0, part) / total
    noon = 0.5 - 0.25
    whole = Lasting.together(list(told.lasting.values()))
    for ahead, shares in expected.items():
        for part in (-0.4, 0.0, 0.4) if ahead < 14 else (0.0,):  # of the whole day
            assert told_on(whole, ahead + noon + part) == pytest.approx(shares.sum(), abs=1e-5)
        for name, lasting in told.lasting.items() if partitioned else ():
            day = int(name.removeprefix("d=")) - int(OF[0])
            assert told_on(lasting, ahead + noon) == pytest.approx(shares[day], abs=1e-5)
    assert whole.shares[-1] == 0.0, "in the end all ask for days that are not there yet"
    assert (set(told.lasting) == {""}) == (not partitioned)
    assert (told.partitions == {}) == (not partitioned)
    assert Candidate.from_json(json.loads(json.dumps(told.to_json()))) == told


def test_who_stays_saves_as_long_as_anyone_asks() -> None:
    for partitioned in (True, False):
        apportioned, _ = apportioning(None, partitioned)
        told = apportioned.shared_out(Candidate(ANOTHER, SPEC, EACH // FILES, Promise()), laid_out())
        assert (told.lasting, told.page_lasting) == ({}, {})
        assert sum(told.partitions.values()) == pytest.approx(float(partitioned))


def test_a_log_that_ended_before_the_data_is_told_of_from_the_data_on() -> None:
    """The newest query asks for its own day, three days before the last that the table has."""
    apportioned, _ = apportioning(0, True, until=TODAY - 3)
    told = apportioned.shared_out(Candidate(ANOTHER, SPEC, EACH // FILES, Promise()), laid_out())
    whole = Lasting.together(list(told.lasting.values()))
    assert (whole.since, told_on(whole, 3.25) > 0, told_on(whole, 4.25)) == (2.75, True, 0.0)
    assert whole.over(30) < whole.over(30, since=0.0)
    assert told.lasting[f"d={TODAY}"].shares[0] == 0.0


@pytest.mark.parametrize("lag", [0, 3])
def test_days_in_three_columns_are_told_of_like_days_in_one(lag: int) -> None:
    base, _ = apportioning(lag, True)
    names = ("year", "month", "day")

    def parts(day: int) -> tuple[int, ...]:
        return tuple((dt.date(1970, 1, 1) + dt.timedelta(days=day)).timetuple()[:3])

    def apart(boxes: Boxes) -> Boxes:
        ((days, value),) = boxes
        low = days.intervals[0].low
        assert isinstance(low, int)
        each = zip(names, parts(low), strict=True)
        return ((*(Range(name, "int", (Interval(part, part),)) for name, part in each), value),)

    columns = tuple(Column(name, "int", partition=True) for name in names)
    schema = TableSchema((*columns, Column("v", "bigint")))
    files: Any = base.analysis.snapshot.files()
    there = [tuple(map(str, parts(int(day)))) for (day,) in files.partitions]
    listed = SimpleNamespace(path=files.path, partitions=there, zone_map=lambda: ZoneMap(*[np.zeros(0)] * 2, {}))
    snapshot = SimpleNamespace(partition_columns=names, schema=schema, location="file:/t", files=lambda: listed)
    of = np.array([parts(day) for day in OF.tolist()])
    arrays = {"v": (VALUES, np.ones(ROWS, dtype=np.bool_))}
    arrays |= {name: (of[:, i], np.ones(ROWS, dtype=np.bool_)) for i, name in enumerate(names)}
    sample = SimpleNamespace(**{**vars(base.analysis.sample), "arrays": arrays})
    sample.columns = {name: SampleColumn(*column) for name, column in arrays.items()}
    boxes = [apart(one) for one in base.analysis.boxes]
    analysis: Any = SimpleNamespace(**{**vars(base.analysis), "boxes": boxes, "snapshot": snapshot, "sample": sample})
    told, expected = (
        one.shared_out(Candidate(ANOTHER, SPEC, EACH // FILES, Promise()), laid_out())
        for one in (Apportioning(analysis, base.unseen, base.unseen.each(boxes)), base)
    )
    assert expected.lasting
    keys = {partition_key(("d",), [str(day)]): partition_key(names, list(map(str, parts(day)))) for day in OF.tolist()}
    assert told.partitions == pytest.approx({keys[name]: part for name, part in expected.partitions.items()})
    assert told.lasting == {keys[name]: lasting for name, lasting in expected.lasting.items()}


def test_a_statement_that_is_asked_again_is_told_by_the_days_of_its_queries() -> None:
    """Each value of a day is asked for on three days: then two thirds of them are left, and one third."""
    days = [day for day in range(TODAY - 5, TODAY + 1) for _ in range(3 * 8)]
    wanted = [day - i % 3 for i, day in enumerate(days)]
    values = [(7 * i + day) % 64 for i, day in zip([i // 3 % 8 for i in range(len(days))], wanted, strict=True)]
    base, _ = apportioning(0, True)
    boxes = [asked(day, value) for day, value in zip(wanted, values, strict=True)]
    moments = [int((day + 0.25) * DAY) for day in days]
    queries = tuple(LoggedQuery("t", And(()), template="a", timestamp=moment) for moment in moments)
    analysis: Any = SimpleNamespace(**{**vars(base.analysis), "boxes": boxes, "queries": queries})
    number = {box: i for i, box in enumerate(dict.fromkeys(boxes))}
    one = np.zeros(len(days), dtype=np.int64)
    unseen = Asked.of(np.arange(72, len(days)), np.array([number[box] for box in boxes]), seen=one)
    assert len(unseen.statements) < len(unseen.queries)
    each = Asked.of(np.arange(72, len(days)), np.arange(len(days)), seen=one)
    candidate = Candidate(ANOTHER, SPEC, EACH // FILES, Promise())
    told, alone = (
        Apportioning(analysis, one, one.each(boxes)).shared_out(candidate, laid_out()) for one in (unseen, each)
    )
    assert told.partitions == pytest.approx(alone.partitions)
    assert told.lasting.keys() == alone.lasting.keys()
    for name, lasting in told.lasting.items():
        assert lasting.shares == pytest.approx(alone.lasting[name].shares)
    whole = Lasting.together(list(told.lasting.values()))
    assert [told_on(whole, day + 0.25) for day in range(4)] == pytest.approx([1.0, 2 / 3, 1 / 3, 0.0], abs=0.12)


def test_what_is_told_of_a_time_is_its_mean() -> None:
    lasting = Lasting((0.0, 1.0, 3.0), (1.0, 0.5, 0.0))
    for days in (0.25, 1.0, 2.0, 3.0, 10.0):
        moments = (np.arange(100_000) + 0.5) * days / 100_000
        assert lasting.over(days) == pytest.approx(np.interp(moments, lasting.days, lasting.shares).mean(), abs=1e-6)
    assert (lasting.over(0), lasting.over(-1)) == (1.0, 1.0)
    assert math.isclose(lasting.times(2).over(3), 2 * lasting.over(3))
    for wrong in ({"days": [], "shares": []}, {"days": [1], "shares": [1]}, {"days": [0, 0], "shares": [1, 1]},
                  {"days": [0], "shares": [1, 2]}, {"days": [0, math.nan], "shares": [1, 1]}):  # fmt: skip
        with pytest.raises(ValueError, match="ascend"):
            Lasting.from_json(wrong | {"since": 0})
        assert Lasting.promised(wrong | {"since": 0, "credited": 1.0}, 1.0) is None
    assert Lasting.promised({"credited": "a"}, 1.0) is None


@pytest.mark.parametrize(("lag", "often"), [(None, True), (0, False)])
def test_a_day_is_credited_with_what_other_queries_confirm(lag: int | None, often: bool) -> None:
    """All ask for one day, or (of a log whose days nothing moves on along) each for another one by chance."""
    base, _ = apportioning(lag, True)
    analysis, n = base.analysis, len(base.analysis.boxes)
    if not often:
        chance = np.random.default_rng(1).permutation(np.resize(np.unique(OF), n)).tolist()
        boxes: list[Boxes] = [asked(day, i % 64) for i, day in enumerate(chance)]
        queries = tuple(replace(one, timestamp=None) for one in analysis.queries)
        analysis = SimpleNamespace(**{**vars(analysis), "boxes": boxes, "queries": queries})
    unseen = Asked.of(np.arange(n - 7, n), np.arange(n))
    measured = Asked.of(unseen.queries, np.arange(n), seen=np.zeros(n, dtype=np.int64))
    candidate = Candidate(ANOTHER, SPEC, EACH // FILES, Promise())
    told, alone = (
        Apportioning(analysis, one, one.each(analysis.boxes)).shared_out(candidate, laid_out()).partitions
        for one in (unseen, measured)
    )
    assert sum(told.values()) == pytest.approx(1.0)
    if often:
        assert told == pytest.approx(alone)
    else:
        assert sorted(alone.values())[0] == 0.0
        assert 0.0 < min(told.values()) <= max(told.values()) < max(alone.values())


def test_where_queries_move_on_all_of_them_tell() -> None:
    candidate = Candidate(ANOTHER, SPEC, EACH // FILES, Promise())
    picks = (33, 41, 49, 50, 51, 52, 53)
    told, measured = (
        apportioning(0, True, picks=picks, apart=apart)[0].shared_out(candidate, laid_out()) for apart in (True, False)
    )
    assert told.lasting
    assert told == measured
