"""What is read by Parquet's pages, told from a sample: against pages cut and looked at one by one."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from zorder_pipeline.model.ranges import Boxes, Interval, Range
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.pipeline.learning.paging import PAGE_ROWS, PAGE_SAMPLE, sampled_pages
from zorder_pipeline.pipeline.learning.volumes import FileVolumes, with_sampled_pages

ROWS, FILES = 120_000, 2
QUERIES = ((0, 500), (4_000, 4_100), (9_000, 20_000), (30_000, 40_000))
VALUES = np.random.default_rng(0).integers(0, 10_000, ROWS)


def analysis_of(every: int = 1) -> Any:
    """Two files of three pages each, of which every so many rows are sampled."""
    values = VALUES[::every]
    sample = SimpleNamespace(
        rows=len(values),
        total_rows=ROWS,
        stands_for=ROWS / len(values),
        arrays={"a": (values, np.ones(len(values), dtype=np.bool_))},
    )
    return SimpleNamespace(sample=sample, snapshot=SimpleNamespace(schema=TableSchema((Column("a", "int"),))))


def box(low: int, high: int) -> Boxes:
    return ((Range("a", "int", (Interval(low, high),)),),)


BOXES = [box(*query) for query in QUERIES]


def by_hand(file: np.ndarray, order: np.ndarray) -> list[float]:
    """Share of the rows in the files that may match that lie in pages that may match, query by query."""
    result = []
    for low, high in QUERIES:
        read = opened = 0
        for number in range(FILES):
            rows = VALUES[order[file[order] == number]]
            if rows.max() < low or rows.min() > high:
                continue
            opened += len(rows)
            pages = [rows[at : at + PAGE_ROWS] for at in range(0, len(rows), PAGE_ROWS)]
            read += sum(len(page) for page in pages if page.max() >= low and page.min() <= high)
        result.append(read / opened if opened else 1.0)  # of what no file serves pages tell nothing
    return result


@pytest.mark.parametrize("ordered", [True, False])
def test_pages_are_told_as_they_are_cut(ordered: bool) -> None:
    file = np.arange(ROWS) * FILES // ROWS
    within = VALUES if ordered else np.zeros(ROWS, dtype=np.int64)
    order = np.lexsort((np.arange(ROWS), within, file))
    found = sampled_pages(analysis_of(), BOXES, file, within, np.ones(len(BOXES)))
    assert found == pytest.approx(by_hand(file, order))
    assert (found[1] == pytest.approx(1 / 3)) == ordered


def test_what_row_groups_skip_is_not_skipped_twice() -> None:
    file = np.arange(ROWS) * FILES // ROWS
    alone = sampled_pages(analysis_of(), BOXES, file, VALUES, np.ones(len(BOXES)))
    half = sampled_pages(analysis_of(), BOXES, file, VALUES, np.full(len(BOXES), 0.5))
    assert half == pytest.approx(np.minimum(1.0, alone / 0.5))


def test_a_page_that_too_few_rows_stand_for_is_told_with_its_neighbours() -> None:
    every = ROWS // FILES // (2 * PAGE_SAMPLE)  # rows for two pages where there are three
    file = np.arange(2 * FILES * PAGE_SAMPLE) // (2 * PAGE_SAMPLE)
    within = VALUES[::every]
    assert sampled_pages(analysis_of(every), BOXES[1:2], file, within, np.ones(1)) == pytest.approx(0.5)
    fewer = analysis_of(2 * every)
    assert sampled_pages(fewer, BOXES[1:2], file[::2], within[::2], np.ones(1)) == pytest.approx(1.0)


def test_of_a_column_without_an_index_no_page_is_skipped() -> None:
    """As of Spark's INT96, by which the present files seemed to be read as little as those that we would write."""
    file = np.arange(ROWS) * FILES // ROWS
    every = np.ones(len(BOXES))
    known = sampled_pages(analysis_of(), BOXES, file, VALUES, every)
    assert sampled_pages(analysis_of(), BOXES, file, VALUES, every, {"a", "b"}).tolist() == known.tolist()
    assert sampled_pages(analysis_of(), BOXES, file, VALUES, every, {"b"}).tolist() == [1.0] * len(BOXES)
    assert known.min() < 0.5


def test_what_is_read_now_goes_by_the_index_that_the_present_files_have() -> None:
    analysis, rows = analysis_of(), np.full(len(BOXES), float(ROWS))
    analysis.sample.file = np.arange(ROWS) * FILES // ROWS
    analysis.sample.arrays = {"a": (np.sort(VALUES), np.ones(ROWS, dtype=np.bool_))}
    of = FileVolumes(rows * 8, np.full(len(BOXES), 2.0), rows, np.ones(len(BOXES)))
    found = {
        indexed: with_sampled_pages(analysis, replace(of, indexed=indexed), BOXES).pages
        for indexed in (None, frozenset({"a"}), frozenset[str]())
    }
    whole = [told.tolist() for told in found.values() if told is not None]
    assert whole[0] == whole[1] != whole[2] == of.bytes.tolist()


@pytest.mark.parametrize(
    ("column", "asked"),
    [
        (Column("a", "int"), Range("a", "int", tuple(Interval(v, v) for v in (3, 5_000, 9_990)), hull=True)),
        (Column("a", "int", delta_stats=False), Range("a", "int", (Interval(5_000, 5_010),))),
    ],
    ids=["a list of values, of which Delta takes the hull", "a column without Delta statistics"],
)
def test_pages_are_told_of_the_files_that_delta_opens(column: Column, asked: Range) -> None:
    analysis, files = analysis_of(), 3
    values = np.sort(VALUES)
    analysis.sample.arrays = {"a": (values, np.ones(ROWS, dtype=np.bool_))}
    analysis.snapshot.schema = TableSchema((column,))
    file = np.arange(ROWS) * files // ROWS
    pages = values.reshape(-1, PAGE_ROWS)
    read = np.mean([any(i.low <= p.max() and i.high >= p.min() for i in asked.intervals) for p in pages])
    found = sampled_pages(analysis, [((asked,),)], file, values, np.ones(1))
    assert found == pytest.approx([read])
    assert read < 0.6
