"""Which files a sample reads, and what share of their rows, on made-up lists of files."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pytest

from zorder_pipeline.features.sampling import MAX_SCANNED, MIN_FILES, MISSED_SCANNED, STEEPEST, chosen_files, row_shares

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
    taken = row_shares(files, chosen, rows) * files.rows[chosen]
    found = np.bincount(files.partition_codes[chosen], weights=taken, minlength=files.partition_codes.max() + 1)
    assert taken.sum() == pytest.approx(rows, rel=0.02)
    collected = row_shares(files, chosen, rows).max() * files.rows[chosen].sum()
    assert collected <= STEEPEST * rows * 1.001, "the driver gets as many of each file before it leaves out some"
    return np.asarray(found / found.sum())


def test_a_large_partition_has_its_share_of_the_rows_beside_many_small_ones() -> None:
    files = made([9_000] + [1] * 300)
    chosen = chosen_files(files, 0)
    assert set(files.partition_codes[chosen]) == set(range(301))
    found = shares_of_rows(files, 100_000)
    assert found[0] == pytest.approx(9_000 / 9_300, rel=0.01)
    assert found[1:] == pytest.approx(np.full(300, 1 / 9_300), rel=0.01)


def test_partitions_that_would_be_missed_are_read_as_far_as_bytes_go() -> None:
    files = made([1] * 10_000)
    chosen = chosen_files(files, 0)
    assert MIN_FILES < len(chosen) <= MISSED_SCANNED // (100 * MB)
    late = replace(files, modified=np.where(files.partition_codes % 100 == 7, 10, 1))
    assert set(range(7, 10_000, 100)) <= set(chosen_files(late, 0).tolist()), "what was written last is asked for most"
    huge = replace(files, bytes=np.full(10_000, MISSED_SCANNED))
    assert len(chosen_files(huge, 0)) == MIN_FILES


@pytest.mark.parametrize("counts", [[10_000], [400] * 25, [25] * 400, [9_000, 900, 90, 10]])
def test_some_of_each_partition_in_proportion_and_all_of_a_small_table(counts: list[int]) -> None:
    files = made(counts)
    chosen = chosen_files(files, 3)
    assert np.array_equal(chosen, np.unique(chosen))
    assert len(chosen) >= MIN_FILES
    assert files.bytes[chosen].sum() < 64 * MAX_SCANNED
    assert shares_of_rows(files, 100_000, 3) == pytest.approx(np.array(counts) / sum(counts), rel=0.01)
    shuffled = np.random.default_rng(1).permutation(len(files.path))
    again = Made(*(getattr(files, name)[shuffled] for name in ("path", "bytes", "rows", "partition_codes", "modified")))
    assert set(again.path[chosen_files(again, 3)]) == set(files.path[chosen])
    assert set(files.path[chosen_files(files, 4)]) != set(files.path[chosen])
    small = made(counts, size=MAX_SCANNED // 10_000)
    assert len(chosen_files(small, 3)) == len(small.path)
    assert row_shares(small, np.arange(len(small.path)), 10_000).tolist() == [1e-6] * len(small.path)


def test_of_the_few_rows_of_a_partition_none_stand_for_too_many() -> None:
    files = made([9_000] + [1] * 300)
    few = replace(files, rows=np.where(files.partition_codes == 0, 10, 1_000_000))
    chosen = chosen_files(few, 0)
    assert row_shares(few, chosen, 1_000).max() <= STEEPEST * 1_000 / few.rows[chosen].sum() + 1e-12
    hidden = chosen[files.partition_codes[chosen] == 0]
    rows = files.rows.copy()
    rows[hidden] = 0
    shares = row_shares(replace(files, rows=rows), chosen, 1_000)
    assert not shares[np.isin(chosen, hidden)].any(), "of a partition of which no row is read none is to be read"
