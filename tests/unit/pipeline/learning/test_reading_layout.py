"""What scans through ``reading/`` are credited with on top of what all readers save."""

from __future__ import annotations

import numpy as np
import pytest

from zorder_pipeline.model.ranges import Boxes, Interval, Range
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.pipeline.learning.reading_layout import _of_others
from zorder_pipeline.pipeline.learning.reading_sample import ReadingSample

FILES, ROWS = 100, 500
ALL: Boxes = ((),)


def sampled(noise: float) -> ReadingSample:
    """Rows that lie by x but for some, with a predicate that holds in every second file."""
    rng, file = np.random.default_rng(3), np.repeat(np.arange(FILES), ROWS)
    stray = rng.random(len(file)) < noise
    x = np.where(stray, rng.random(len(file)), (file + rng.random(len(file))) / FILES)
    some = rng.permutation(len(file))[: len(file) // 4]
    known = np.ones(len(some), dtype=np.bool_)
    columns = {"x": (x[some], known), "p": ((file % 2)[some].astype(np.int64), known)}
    schema = TableSchema((Column("x", "double"), Column("p", "bigint")))
    return ReadingSample(columns, schema, (), (), {}, ROWS / 4, file[some].astype(np.int32), None, 4.0)


def between(low: float) -> Boxes:
    return ((Range("x", "double", (Interval(low, low + 0.035),)),),)


def holding(boxes: Boxes) -> Boxes:
    return tuple((*box, Range("p", "bigint", (Interval(1, 1),))) for box in boxes)


@pytest.mark.parametrize("noise", [0.0, 0.002, 0.02])
def test_who_skips_by_what_all_readers_do_saves_nothing_on_top(noise: float) -> None:
    """The sample, which lacks stray rows, told what these scans read; all rows told it of the others."""
    plain = [between(at / 50) for at in range(49)]
    asked = [holding(boxes) if i % 2 else boxes for i, boxes in enumerate(plain)]
    sample = sampled(noise)
    reads, left = _of_others(sample, None, plain, asked, plain)
    assert (reads[::2] == 1.0).all()
    assert (left[::2] == 1.0).all()
    assert reads[1::2].mean() == pytest.approx(0.5, abs=0.1)
    assert left.tolist() == reads.tolist()
    assert (_of_others(sample, None, plain, plain, plain)[1] == 1.0).all()


def test_what_is_skipped_as_the_table_lies_is_no_saving_of_a_layout() -> None:
    plain, sample = [ALL] * 4, sampled(0.0)
    asked = [holding(boxes) for boxes in plain]
    reads, left = _of_others(sample, None, plain, asked, asked)
    assert reads == pytest.approx(0.5, abs=0.01)
    assert left == pytest.approx(1.0)


def test_what_the_sample_knows_nothing_of_is_read_whole() -> None:
    beyond, sample = [between(5.0)], sampled(0.0)
    assert not sample.read(None, beyond).any()
    reads, left = _of_others(sample, None, beyond, [holding(beyond[0])], beyond)
    assert (reads.tolist(), left.tolist()) == ([1.0], [1.0])
