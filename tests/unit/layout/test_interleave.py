"""Interleaving against the seeds' worked examples and a bit-string oracle."""

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.errors import PlanError
from zorder_pipeline.layout.draft import FINE_BITS, Draft, SampledTable
from zorder_pipeline.layout.interleave import (
    gray_rank,
    hilbert_index,
    hilbert_table,
    interleave,
    keys,
    round_robin,
    shared_bits,
)
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec


def grid(order: tuple[int, ...], size: int = 8) -> np.ndarray:
    """Keys of the points (x, y) of a square; x is column 0. Shape (size, size), indexed [x, y]."""
    x, y = (axis.ravel() for axis in np.meshgrid(np.arange(size), np.arange(size), indexing="ij"))
    return interleave([x, y], [3, 3], order).reshape(size, size)


@pytest.mark.parametrize(("x", "y", "z"), [(3, 6, 30), (7, 3, 47), (0, 0, 0), (7, 7, 63), (0, 4, 16), (4, 0, 32)])
def test_seed_002_interleaves_x_before_y(x: int, y: int, z: int) -> None:
    assert grid((0, 1, 0, 1, 0, 1))[x, y] == z


@pytest.mark.parametrize(("order", "files"), [((0, 0, 0, 1, 1, 1), 9), ((1, 0, 1, 0, 1, 0), 7)])
def test_seed_003_x0_or_y0_reads_nine_files_lexically_and_seven_in_z_order(order: tuple[int, ...], files: int) -> None:
    """64 points in 16 files of four; WHERE x = 0 OR y = 0. Lexical order reads 2 files of x = 0 and one per other x."""
    file = grid(order) // 4
    touched = {int(f) for f in np.concatenate([file[0, :], file[:, 0]])}
    assert len(touched) == files


def test_seed_000_figure_1_unequal_bits_read_two_blocks_instead_of_four() -> None:
    """Points of an 8 x 8 square in blocks of four by a 4-bit key; 1 <= x <= 2 and 0 <= y <= 3."""

    def blocks(counts: list[int]) -> int:
        x, y = (axis.ravel() for axis in np.meshgrid(np.arange(8), np.arange(8), indexing="ij"))
        order = round_robin(counts)
        key = interleave([x >> (3 - counts[0]), y >> (3 - counts[1])], counts, order)
        wanted = set(key[(x >= 1) & (x <= 2) & (y <= 3)].tolist())
        return len(wanted)

    assert (blocks([2, 2]), blocks([3, 1])) == (4, 2)


def test_round_robin_takes_whole_multiples_of_the_smallest_share() -> None:
    assert round_robin([5, 2]) == (0, 0, 1, 0, 0, 1, 0)
    assert round_robin([1, 0, 3]) == (0, 2, 2, 2)


@pytest.mark.parametrize("counts", [[0, 0], [-1, 2], []])
def test_round_robin_refuses_an_empty_allocation(counts: list[int]) -> None:
    with pytest.raises(PlanError, match="at least one bit"):
        round_robin(counts)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=8).filter(lambda w: sum(w) > 1e-6), st.integers(1, 64))
def test_shared_bits_add_up_and_stay_within_one_of_the_exact_share(weights: list[float], total: int) -> None:
    bits = shared_bits(weights, total)
    assert sum(bits) == total
    assert all(abs(b - total * w / sum(weights)) < 1 + 1e-9 for b, w in zip(bits, weights, strict=True))


@given(st.data())
def test_interleave_agrees_with_bit_strings(data: st.DataObject) -> None:
    bits = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    order = data.draw(st.permutations([i for i, count in enumerate(bits) for _ in range(count)]))
    codes = [data.draw(st.integers(0, 2**count - 1)) for count in bits]
    strings = [list(format(code, f"0{count}b")) for code, count in zip(codes, bits, strict=True)]
    expected = int("".join(strings[i].pop(0) for i in order), 2)
    assert interleave([np.array([c]) for c in codes], bits, order)[0] == expected


@given(st.data())
def test_the_gray_curve_passes_through_the_same_cells_and_takes_one_step_at_a_time(data: st.DataObject) -> None:
    bits = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    order = data.draw(st.permutations([i for i, count in enumerate(bits) for _ in range(count)]))
    codes = [axis.ravel() for axis in np.meshgrid(*[np.arange(2**count) for count in bits], indexing="ij")]
    rank, plain = gray_rank(codes, bits, order), interleave(codes, bits, order)
    assert sorted(rank.tolist()) == list(range(2 ** len(order)))
    for dropped in range(len(order)):  # rows that share the first bits of one key share those of the other
        pairs = set(zip((rank >> dropped).tolist(), (plain >> dropped).tolist(), strict=True))
        assert len(pairs) == 2 ** (len(order) - dropped)
    path, taken, digits = np.stack(codes)[:, np.argsort(rank)], [0] * len(bits), []
    for i, turn in groupby(order):  # a digit is the bits of one column that follow each other
        taken[i] += (width := len(list(turn)))
        digits.append(path[i] >> (bits[i] - taken[i]) & ((1 << width) - 1))
    assert (np.abs(np.diff(np.stack(digits))).sum(axis=0) == 1).all()
    if len(bits) == 1:
        assert rank.tolist() == codes[0].tolist()


@given(st.lists(st.integers(0, 2), min_size=1, max_size=20), st.sampled_from(["interleave", "gray"]))
def test_the_search_and_the_plan_compute_the_same_keys(order: list[int], curve: str) -> None:
    rng = np.random.default_rng(len(order))
    columns = {name: (rng.integers(0, 500, 300), rng.random(300) > 0.1) for name in "abc"}
    table = SampledTable.build(columns, dict.fromkeys("abc", "int"), list("abc"), np.zeros(300, np.int32), 8)
    draft = Draft(tuple(order), curve)
    spec = table.spec(draft)
    assert spec.curve == curve
    assert max(order.count(i) for i in range(3)) <= FINE_BITS
    np.testing.assert_array_equal(_dense(keys(spec, columns)), _dense(table.keys(draft)))


def _dense(key: np.ndarray) -> np.ndarray:
    """Places of keys among those that occur: a plan leaves out bits that tell no rows apart."""
    return np.unique(key, return_inverse=True)[1]


@pytest.mark.parametrize(("dimensions", "bits"), [(2, 1), (2, 4), (3, 3), (4, 2)])
def test_hilbert_visits_every_cell_once_in_unit_steps(dimensions: int, bits: int) -> None:
    axes = np.stack([a.ravel() for a in np.meshgrid(*[np.arange(2**bits)] * dimensions, indexing="ij")])
    position = hilbert_index(axes.astype(np.int64), bits)
    assert sorted(position.tolist()) == list(range(2 ** (bits * dimensions)))
    path = axes[:, np.argsort(position)]
    assert (np.abs(np.diff(path, axis=1)).sum(axis=0) == 1).all()


def feature(column: str, bits: int, null_code: int = 0) -> FeatureCodes:
    return FeatureCodes(column, "int", tuple(range(1, 2**bits)), tuple(range(2**bits)), bits, null_code)


def test_keys_follow_spec_for_nulls_and_values_outside_the_breakpoints() -> None:
    spec = KeySpec((feature("a", 2, null_code=3), feature("b", 1)), (0, 1, 0))
    columns = {
        "a": (np.array([-5, 0, 99, 7]), np.array([True, True, True, False])),
        "b": (np.array([0, 1, 9, 0]), np.ones(4, dtype=bool)),
    }
    assert keys(spec, columns).tolist() == [0b000, 0b010, 0b111, 0b101]


def test_hilbert_table_permutes_the_cells() -> None:
    spec = KeySpec((feature("a", 3), feature("b", 2)), (0, 1, 0, 1, 0), curve="hilbert")
    assert sorted(hilbert_table(spec).tolist()) == list(range(32))
