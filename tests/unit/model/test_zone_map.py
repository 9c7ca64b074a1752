"""Lists of values, looked up together, select the blocks that they select one by one."""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

from zorder_pipeline.model import zone_map
from zorder_pipeline.model.ranges import Interval, Range
from zorder_pipeline.model.zone_map import MANY, ColumnZones, ZoneMap

NAN = float("nan")


def _zones(seed: int, kind: str) -> tuple[ColumnZones, list[Any]]:
    """Zones of 200 blocks with nulls, blocks without bounds and blocks of nulls alone, and values around the bounds."""
    rng = np.random.default_rng(seed)
    low = rng.integers(-300, 300, 200)
    high = low + rng.integers(0, 8, 200)
    values: list[Any] = rng.integers(-320, 320, 2 * MANY).tolist()
    if kind == "double":
        low, high = low / 2, high / 2
        values = [value / 2 for value in values] + [0.0, -0.0, float("inf"), -float("inf")]
        low[:6], high[:6] = [NAN, -0.0, 0.0, -5.0, -np.inf, -np.inf], [NAN, -0.0, 0.0, NAN, -np.inf, np.inf]
    elif kind == "string":
        low, high, values = (
            np.array([f"{value:+04d}" for value in each], dtype=object) for each in (low, high, values)
        )
        values = list(values)
    nulls = np.where(rng.random(200) < 0.2, -1, rng.integers(0, 11, 200))
    return ColumnZones(low, high, rng.random(200) < 0.9, nulls, exact=bool(seed % 2)), values


@pytest.mark.parametrize("kind", ["bigint", "double", "string"])
@pytest.mark.parametrize("seed", range(6))
def test_a_list_selects_what_its_values_select(seed: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    zones, values = _zones(seed, kind)
    rows = np.full(200, 10)
    blocks = ZoneMap(rows, rows, {"a": zones}, all_or_none=seed % 3 == 0)
    other = [
        Interval(values[0], values[1]),
        Interval(values[2], values[2], low_open=True),
        Interval(values[3], None, True),
    ]
    other += [Interval(NAN, NAN)] if kind == "double" else []
    points = tuple(Interval(value, value) for value in values)
    asked = [(*points, each) for each in other] + [points, (*points, Interval()), points[: MANY + 1]]
    boxes = [((Range("a", kind, intervals, nulls),),) for intervals in asked for nulls in (False, True)]
    found = [blocks.matching(each).tolist() for each in boxes]
    monkeypatch.setattr(zone_map, "MANY", 1_000)
    assert found == [blocks.matching(each).tolist() for each in boxes]


@pytest.mark.parametrize("value", [1 << 63, -(1 << 63) - 1])
def test_a_value_beyond_64_bits_is_in_no_block_and_breaks_nothing(value: int) -> None:
    bounds = np.arange(3)
    blocks = ZoneMap(bounds, bounds, {"a": ColumnZones(bounds, bounds, bounds >= 0, bounds * 0)})
    intervals = tuple(Interval(each, each) for each in (*range(2, 30), value))
    assert blocks.matching(((Range("a", "decimal(38,0)", intervals),),)).tolist() == [False, False, True]


@pytest.mark.parametrize("kind", ["bigint", "double", "string"])
def test_values_of_a_long_list_are_not_compared_one_by_one(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    zones, values = _zones(0, kind)
    blocks = ZoneMap(np.full(200, 10), np.full(200, 10), {"a": zones})
    monkeypatch.delattr(zone_map, "_overlap")
    assert blocks.matching(((Range("a", kind, tuple(Interval(value, value) for value in values)),),)).any()


def test_a_column_is_all_null_only_by_the_rows_that_the_statistics_were_taken_over() -> None:
    """Of ten rows five are deleted; five were null, which may be the deleted ones or not."""
    zones = ColumnZones(np.array([1, 1]), np.array([3, 3]), np.array([True, True]), np.array([5, 10]))
    live, physical = np.array([5, 5]), np.array([10, 10])
    for all_or_none in (False, True):
        blocks = ZoneMap(live, live, {"a": zones}, physical, all_or_none)
        for interval in (Interval(), Interval(2, 2), Interval(None, 2)):
            assert blocks.matching(((Range("a", "bigint", (interval,)),),)).tolist() == [True, False]
        many = tuple(Interval(value, value) for value in range(2 * MANY))
        assert blocks.matching(((Range("a", "bigint", many),),)).tolist() == [True, False]


def test_a_file_that_lacks_bounds_alone_is_read_where_they_are_asked_for_and_it_is_not_all_null() -> None:
    """Delta keeps no largest value of some texts, and nulls all the same; an absent statistic is read whatever else."""
    count, nowhere = np.full(4, 10), np.zeros(4, dtype=np.bool_)
    small = ColumnZones(count * 0, count * 0, ~nowhere, count * 0)
    texts = ColumnZones(np.full(4, "", object), np.full(4, "", object), nowhere, np.array([0, 3, 10, -1]))
    blocks = ZoneMap(count, count, {"a": small, "s": texts}, all_or_none=True)
    never = Range("a", "bigint", (Interval(5, 5),))
    equal, present, null = (
        Range("s", "string", (Interval("x", "x"),)),
        Range("s", "string", (Interval(),)),
        Range("s", "string", (), nulls=True),
    )
    assert blocks.matching(((never, equal),)).tolist() == [True, True, False, True]
    assert blocks.matching(((never, present),)).tolist() == [False, False, False, True]
    assert blocks.matching(((never, null),)).tolist() == [False, False, False, True]
    both = Range("s", "string", (Interval(), Interval("x", "x")))
    assert blocks.matching(((never, both),)).tolist() == [True, True, False, True]
    assert blocks.matching(((never, Range("unknown", "int", (Interval(1, 1),))),)).tolist() == [False] * 4


def test_partitions_of_any_type_are_told_apart() -> None:
    count = np.full(2, 10)
    zones = ColumnZones(np.array([0, 1]), np.array([0, 1]), np.array([True, True]), count * 0, exact=True)
    blocks = ZoneMap(count, count, {"p": zones}, all_or_none=True)
    assert blocks.matching(((Range("p", "boolean", (Interval(1, 1),)),),)).tolist() == [False, True]


def test_doubles_lie_between_bounds_by_the_total_order_in_which_nan_is_the_largest() -> None:
    values = [-float("inf"), -1.0, 0.0, 2.5, float("inf"), NAN]
    blocks = list(combinations_with_replacement(values, 2))
    low, high = (np.array(side) for side in zip(*blocks, strict=True))
    count = np.ones(len(blocks), dtype=np.int64)
    found = ZoneMap(count, count, {"d": ColumnZones(low, high, count == 1, count * 0)})
    place = {repr(value): i for i, value in enumerate(values)}
    for bottom, top, low_open, high_open in product([*values, None], [*values, None], (False, True), (False, True)):
        interval = Interval(bottom, top, low_open, high_open)
        least = 0 if bottom is None else place[repr(bottom)] + low_open
        most = len(values) - 1 if top is None else place[repr(top)] - high_open
        expected = [place[repr(high)] >= least and place[repr(low)] <= most for low, high in blocks]
        assert found.matching(((Range("d", "double", (interval,)),),)).tolist() == expected, interval


@pytest.mark.parametrize(("kind", "bounds"), [("string", ["a", "a\0", "b"]), ("binary", [b"a", b"a\0", b"b"])])
def test_a_value_that_ends_in_nul_is_compared_whole(kind: str, bounds: list[Any]) -> None:
    """numpy takes the NULs off a single string: the file that holds the value was skipped."""
    ends, rows, value = np.array(bounds, dtype=object), np.full(3, 10), bounds[1]
    blocks = ZoneMap(rows, rows, {"a": ColumnZones(ends, ends, rows > 0, rows * 0)})

    def matching(interval: Interval) -> list[bool]:
        return blocks.matching(((Range("a", kind, (interval,)),),)).tolist()

    assert matching(Interval(value, value)) == [False, True, False]
    assert matching(Interval(value, None)) == [False, True, True]
    assert matching(Interval(value, None, low_open=True)) == [False, False, True]
    assert matching(Interval(None, value)) == [True, True, False]
    assert matching(Interval(None, value, high_open=True)) == [True, False, False]


@pytest.mark.parametrize("points", [1, 2 * MANY])
@pytest.mark.parametrize("blank", ["", 0, None])
def test_what_stands_where_there_are_no_bounds_is_compared_with_nothing(blank: Any, points: int) -> None:
    """A text column that is null in some files, or all, has no text that could stand there."""
    low = np.array([blank, "b", blank], dtype=object)
    zones = ColumnZones(low, low, np.array([False, True, False]), np.array([10, 0, 0]))
    blocks = ZoneMap(np.full(3, 10), np.full(3, 10), {"a": zones})
    values = (*(Interval(f"{i:03d}", f"{i:03d}") for i in range(points - 1)), Interval("b", "b"))
    assert blocks.matching(((Range("a", "string", values, False),),)).tolist() == [False, True, True]
    assert blocks.matching(((Range("a", "string", values[:-1], False),),)).tolist() == [False, False, points > 1]
