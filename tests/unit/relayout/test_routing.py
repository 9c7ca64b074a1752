"""Files cut from a sample of the rows: within their bounds, or the sample says that it cannot tell."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from zorder_pipeline.layout.cells import cut_cells
from zorder_pipeline.relayout.routing import WORTH_SAMPLING, cut, sampled_share, surely_bounded

TARGET = 100_000


def table(seed: int, files: int, bits: int, skew: float, heavy: float) -> np.ndarray:
    """Rows per key of a table; ``heavy`` is the share of one key."""
    rng = np.random.default_rng(seed)
    weights = rng.lognormal(0, skew, 1 << bits)
    weights[rng.integers(1 << bits)] += weights.sum() * heavy / (1 - heavy)
    return np.maximum(1, weights / weights.sum() * files * TARGET).astype(np.int64)


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 2**32), st.integers(2, 80), st.integers(1, 12), st.floats(0, 2.5), st.floats(0, 0.8))
def test_no_file_is_over_twice_its_target_or_under_half_of_it(
    seed: int, files: int, bits: int, skew: float, heavy: float
) -> None:
    counts = table(seed, files, bits, skew, heavy)
    total, keys = int(counts.sum()), np.arange(len(counts))
    share = sampled_share([total], TARGET)
    assert share < WORTH_SAMPLING
    sampled = np.random.default_rng(seed).binomial(counts, share)
    met = sampled > 0
    extrapolated = np.maximum(1, np.round(sampled[met] / share)).astype(np.int64)
    cuts = cut(([()] * int(met.sum()), keys[met], extrapolated), lambda k, c: cut_cells(k, c, TARGET))
    if not surely_bounded(cuts, TARGET):
        return  # then all rows are counted
    real = np.bincount(np.searchsorted(cuts[0].starts, keys, side="right"), weights=counts) / cuts[0].pieces
    target = total / max(1, round(total / TARGET))
    assert real.max() <= 2 * target
    assert len(real) == 1 or real[:-1].min() >= target / 2


def test_most_tables_are_cut_by_their_sample() -> None:
    cases = [table(seed, 40, 9, 1.0, 0.5 if seed % 4 == 0 else 0.0) for seed in range(40)]
    sure = 0
    for counts in cases:
        cuts = cut(([()] * len(counts), np.arange(len(counts)), counts), lambda k, c: cut_cells(k, c, TARGET))
        sure += surely_bounded(cuts, TARGET)
    assert sure > 30


def test_small_files_and_small_partitions_are_counted_in_full() -> None:
    assert sampled_share([10_000], 1_000) == 1.0
    assert sampled_share([10_000_000, 5_000], 1_000_000) == 1.0
    assert sampled_share([10_000_000, 500_000], 1_000_000) == 0.008


def test_partitions_are_cut_apart_and_every_nan_is_one_partition() -> None:
    values = [("a",), (float("nan"),), ("a",), (float("nan"),)]
    histogram = (values, np.array([2, 1, 1, 5]), np.array([10, 20, 30, 40]))
    first, second = cut(histogram, lambda k, c: cut_cells(k, c, 30))
    assert (first.value, first.rows.tolist()) == (("a",), [40])
    assert second.rows.tolist() == [20, 40]
