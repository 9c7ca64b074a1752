"""Which files a sample reads, and what share of their rows, on made-up lists of files."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.features.sampling import MAX_SCANNED, MIN_FILES, MISSED_SCANNED, Chosen, chosen_files, row_shares

MB = 1 << 20


@dataclass(frozen=True)
class Made:
    """Files of a table, see `Files`."""

    path: npt.NDArray[np.object_]
    bytes: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    partition_codes: npt.NDArray[np.int64]
    modified: npt.NDArray[np.int64]


def made(counts: list[int], size: int = 100 * MB, rows: int = 1_000_000) -> Made:
    """So many files of each partition."""
    part = np.repeat(np.arange(len(counts)), counts)
    path = np.array([f"p={p}/{i}.parquet" for i, p in enumerate(part)], dtype=object)
    return Made(path, np.full(len(part), size), np.full(len(part), rows), part, np.zeros(len(part), dtype=np.int64))


def shares_of_rows(files: Made, rows: int, seed: int = 0) -> npt.NDArray[np.float64]:
    """Share of the sampled rows by partition."""
    chosen = chosen_files(files, seed)
    taken = row_shares(files, chosen, rows) * files.rows[chosen.index]
    part = files.partition_codes
    found = np.bincount(part[chosen.index], weights=taken, minlength=part.max() + 1)
    assert taken.sum() == pytest.approx(rows, rel=0.02)
    return np.asarray(found / found.sum())


def test_a_large_partition_has_its_share_of_the_rows_beside_many_small_ones() -> None:
    files = made([9_000] + [1] * 300)
    chosen = chosen_files(files, 0).index
    assert set(files.partition_codes[chosen]) == set(range(301))
    found = shares_of_rows(files, 100_000)
    assert found[0] == pytest.approx(9_000 / 9_300, rel=0.01)
    assert found[1:] == pytest.approx(np.full(300, 1 / 9_300), rel=0.01)


def test_partitions_that_would_be_missed_are_read_as_far_as_bytes_go() -> None:
    files = made([1] * 10_000)
    chosen = chosen_files(files, 0).index
    assert MIN_FILES < len(chosen) <= MIN_FILES + MISSED_SCANNED // (100 * MB)
    late = replace(files, modified=np.where(files.partition_codes % 100 == 7, 10, 1))
    found = set(chosen_files(late, 0).index.tolist())
    assert set(range(7, 10_000, 100)) <= found, "what was written last is asked for most"
    huge = replace(files, bytes=np.full(10_000, MISSED_SCANNED))
    assert len(chosen_files(huge, 0).index) == pytest.approx(MIN_FILES, abs=2)


@pytest.mark.parametrize("counts", [[10_000], [400] * 25, [25] * 400, [9_000, 900, 90, 10]])
def test_some_of_each_partition_in_proportion_and_all_of_a_small_table(counts: list[int]) -> None:
    files = made(counts)
    chosen = chosen_files(files, 3).index
    assert np.array_equal(chosen, np.unique(chosen))
    assert len(chosen) >= MIN_FILES - 1
    held = np.bincount(files.partition_codes[chosen])
    assert (abs(held - np.maximum(1, np.array(counts) * MIN_FILES / sum(counts))) <= 1).all()
    assert files.bytes[chosen].sum() < 64 * MAX_SCANNED
    assert shares_of_rows(files, 100_000, 3) == pytest.approx(np.array(counts) / sum(counts), rel=0.01)
    shuffled = np.random.default_rng(1).permutation(len(files.path))
    again = Made(*(getattr(files, name)[shuffled] for name in ("path", "bytes", "rows", "partition_codes", "modified")))
    again = replace(again, partition_codes=len(counts) - 1 - again.partition_codes)
    assert set(again.path[chosen_files(again, 3).index]) == set(files.path[chosen])
    assert set(files.path[chosen_files(files, 4).index]) != set(files.path[chosen])
    small = made(counts, size=MAX_SCANNED // 10_000)
    every = chosen_files(small, 3)
    assert len(every.index) == len(small.path)
    assert row_shares(small, every, 10_000).tolist() == [1e-6] * len(small.path)


def test_no_share_is_more_than_all_rows() -> None:
    files = made([9_000] + [1] * 300)
    few = replace(files, rows=np.where(files.partition_codes == 0, 10, 1_000_000))
    chosen = chosen_files(few, 0)
    assert row_shares(few, chosen, 1_000_000_000).max() == 1
    hidden = chosen.index[files.partition_codes[chosen.index] == 0]
    rows = files.rows.copy()
    rows[hidden] = 0
    shares = row_shares(replace(files, rows=rows), chosen, 1_000)
    assert not shares[np.isin(chosen.index, hidden)].any(), "of a partition of which no row is read none is to be read"


def of_sizes(days: int, large: int, small: int, size: int) -> tuple[Made, npt.NDArray[np.bool_]]:
    """One file of ``large`` bytes a day and ``small`` ones of ``size``, a row every hundred bytes; which are large."""
    sizes = np.tile([large] + [size] * small, days)
    day = np.repeat(np.arange(days), small + 1)
    path = np.array([f"day={d}/{i}.parquet" for i, d in enumerate(day)], dtype=object)
    return Made(path, sizes, sizes // 100, day, day), sizes == large


@pytest.mark.parametrize(
    ("days", "large", "small", "size", "within"),
    [
        (365, 256 * MB, 20, MB, 0.03),
        (365, 100 * MB, 100, MB, 0.03),
        (30, 4096 * MB, 4096, MB, 0.03),
        (1, 5120 * MB, 50_000, 100 << 10, 0.03),
        (365, 1024 * MB, 20, MB, 0.3),  # of some days so large a file would be too much beside those of others
        (1_000, 128 * MB, 5, MB, 0.3),
    ],
)
def test_large_files_have_their_share_of_the_rows_beside_many_small_late_ones(
    days: int, large: int, small: int, size: int, within: float
) -> None:
    """Files were drawn alike and left out where they did not fit: a twentieth of the rows made most of the sample."""
    files, of_large = of_sizes(days, large, small, size)
    there = files.rows[of_large].sum() / files.rows.sum()
    found = []
    for seed in range(8):
        chosen = chosen_files(files, seed)
        taken = row_shares(files, chosen, 100_000) * files.rows[chosen.index]
        assert taken.sum() == pytest.approx(100_000, rel=0.02)
        assert set(files.partition_codes[chosen.index]) == set(range(days)), "each day is read"
        assert len(chosen.index) < len(files.path) / 2
        found.append(taken[of_large[chosen.index]].sum() / taken.sum())
    assert np.mean(found) == pytest.approx(there, abs=within)


@given(
    sizes=st.lists(st.integers(0, 1 << 34), min_size=1, max_size=400),
    days=st.integers(1, 50),
    seed=st.integers(0, 5),
)
def test_any_sizes_are_chosen_once_and_never_more_than_their_rows(sizes: list[int], days: int, seed: int) -> None:
    count = len(sizes)
    path = np.array([f"{i}.parquet" for i in range(count)], dtype=object)
    size = np.array(sizes, dtype=np.int64)
    files = Made(path, size, size // 100, np.arange(count) % min(days, count), np.zeros(count, dtype=np.int64))
    chosen: Chosen = chosen_files(files, seed)
    assert np.array_equal(chosen.index, np.unique(chosen.index))
    assert len(chosen.index) >= 1
    assert (chosen.weight >= 1).all()
    share = row_shares(files, chosen, 1_000)
    assert ((share >= 0) & (share <= 1)).all()
