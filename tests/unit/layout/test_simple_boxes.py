"""Lists as single intervals: the same blocks match, or more of them where the intervals are too many."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zorder_pipeline.layout import simple_boxes as module
from zorder_pipeline.layout.simple_boxes import Ends, joined, simple_boxes, widened
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.model.predicate import And, Comparison, Literal, Or, Predicate
from zorder_pipeline.model.ranges import Boxes, Interval, Range, to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.zone_map import ColumnZones, ZoneMap

BLOCKS = [(low, high) for low in range(10) for high in range(low, 10)]
INTERVALS = st.lists(st.tuples(st.integers(0, 10), st.integers(-1, 10)), min_size=1, max_size=8)
SCHEMA = TableSchema(
    (Column("day", "int", partition=True), Column("region", "int", partition=True), Column("x", "int"))
)


def matching(intervals: list[Ends]) -> list[bool]:
    return [any(high >= first and low <= last for first, last in intervals) for low, high in BLOCKS]


@given(INTERVALS, st.integers(1, 8))
def test_joined_intervals_match_the_same_blocks_and_wider_ones_no_fewer(intervals: list[Ends], most: int) -> None:
    fewer = joined(intervals)
    assert matching(fewer) == matching(intervals)
    assert fewer == sorted(fewer)
    wider = widened(fewer, most)
    assert len(wider) == min(most, len(fewer))
    assert all(wide or not own for wide, own in zip(matching(wider), matching(fewer), strict=True))


def test_neighbours_are_one_interval() -> None:
    points = tuple(Interval(day, day) for day in range(400))
    box = (Range("day", "int", points), Range("region", "int", points[:3], nulls=True))
    positions = {name: lambda interval: (interval.low, interval.high) for name in ("day", "region")}
    assert list(simple_boxes(box, positions)) == [
        (("day", False, (0, 399)), ("region", False, (0, 2))),
        (("day", False, (0, 399)), ("region", True, (1, 1))),
    ]
    assert list(simple_boxes(box, {})) == [()]


def listed(column: str, values: list[int]) -> Predicate:
    return Comparison(column, "in", tuple(Literal("number", str(value)) for value in values))


def read(boxes: Boxes, nulls: bool = False) -> tuple[float, float]:
    """Share read of a table of 60 days by 7 regions, with some of no region: by the estimator, and by its zone map."""
    day, region = np.array(list(product(range(60), range(7 + nulls)))).T
    valid, rows = region < 7, np.arange(1, len(day) + 1)
    every = np.ones(len(day), dtype=bool)
    block = np.repeat(np.arange(len(day), dtype=np.int32), rows)
    columns = {"day": (day[block], every[block]), "region": (region[block], valid[block])}
    estimator = Estimator.build(columns, SCHEMA, [boxes], len(block))
    zones = {
        "day": ColumnZones(day, day, every, rows * 0, exact=True),
        "region": ColumnZones(region, region, valid, np.where(valid, 0, rows), exact=True),
    }
    told = float(estimator.rows_read(block, len(day))[0] / len(block))
    return told, float(ZoneMap(rows, rows, zones, all_or_none=True).shares_read([boxes])[0])


@pytest.mark.parametrize(
    ("days", "regions"),
    [
        (range(60), []),
        (range(-10, 70), []),
        (range(5, 35), [0, 1, 2]),
        (range(0, 60, 2), [4]),
        ([*range(10), *range(30, 40), 1000], range(7)),
    ],
)
def test_a_list_of_partitions_reads_what_the_zone_map_tells(days: range, regions: range) -> None:
    asked = [listed("day", list(days)), *([listed("region", list(regions))] if regions else [])]
    told, true = read(to_boxes(And(tuple(asked)), SCHEMA))
    assert told == pytest.approx(true)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_lists_that_do_not_fit_read_no_less_and_not_everything(data: st.DataObject) -> None:
    numbers = st.lists(st.integers(-3, 63), min_size=1, max_size=50, unique=True)
    days, regions = data.draw(numbers), data.draw(st.lists(st.integers(0, 7), min_size=1, max_size=7, unique=True))
    nulls, most = data.draw(st.booleans()), data.draw(st.integers(1, 70))
    region = (
        Or((listed("region", regions), Comparison("region", "is_null", ()))) if nulls else listed("region", regions)
    )
    boxes = to_boxes(And((listed("day", days), region)), SCHEMA)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_EXPANSION", most)
        told, true = read(boxes, nulls)
        between = read(
            to_boxes(
                Comparison("day", "between", tuple(Literal("number", str(end(days))) for end in (min, max))), SCHEMA
            ),
            nulls,
        )[1]
    assert told >= true - 1e-12
    assert told <= between + 1e-12
