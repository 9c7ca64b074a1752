"""Cutting cells into files: complete, near the target, aligned where possible, heavy hitters dealt out."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from zorder_pipeline.layout.cells import TOLERANCE, cut_cells, file_count


def sizes(counts: np.ndarray, cells: np.ndarray, target: float) -> tuple[np.ndarray, np.ndarray]:
    cuts = cut_cells(cells, counts, target)
    place = np.searchsorted(cuts.starts, cells, side="right")
    return np.bincount(place, weights=counts, minlength=len(cuts.pieces)), cuts.pieces


@settings(deadline=None)  # the first call compiles
@example([7, 22, 1, 25, 9], 12)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=300), st.integers(5, 400))
def test_every_range_is_non_empty_and_no_file_is_over_twice_the_target(counts: list[int], target: int) -> None:
    rows, pieces = sizes(np.array(counts), np.arange(len(counts)), target)
    assert rows.sum() == sum(counts)
    assert (rows > 0).all()
    assert pieces.sum() <= max(1, 2 * file_count(sum(counts), target))
    assert (rows / pieces <= 2.0 * max(target, sum(counts) / file_count(sum(counts), target))).all()


def test_fine_cells_give_the_asked_number_of_files_within_the_tolerance() -> None:
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 20, 4096)
    target = counts.sum() / 100
    rows, pieces = sizes(counts, np.arange(4096), target)
    assert pieces.sum() == 100
    assert (rows[:-1] >= target * (1 - TOLERANCE)).all()
    assert (rows <= target * 1.25 * (1 + TOLERANCE)).all()


def test_files_end_at_coarse_cells() -> None:
    """Cells slightly smaller than 1/64 of the rows: equal counts would drift off the grid, aligned cuts stay on it."""
    counts = np.full(1024, 10)
    counts[::7] = 11
    cuts = cut_cells(np.arange(1024), counts, counts.sum() / 64)
    assert (cuts.starts % 16 == 0).all()


def test_half_of_the_table_in_one_cell_is_dealt_out_evenly() -> None:
    counts = np.ones(1000, dtype=np.int64)
    counts[500] = 1000
    rows, pieces = sizes(counts, np.arange(1000), 100)
    heavy = int(np.argmax(rows))
    assert pieces[heavy] == 10
    assert (rows[:heavy] <= 150).all()


def test_an_empty_histogram_is_one_range() -> None:
    assert cut_cells(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), 10).files == 1
