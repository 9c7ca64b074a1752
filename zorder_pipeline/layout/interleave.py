"""Keys: interleaved bits (seeds 000, 002, 003), Gray-code and Hilbert curves over their cells, leaves of a tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline.errors import PlanError
from zorder_pipeline.model.key_spec import KeySpec, ends_of_turns

from .encoding import codes_of
from .tree import leaf_of

__all__ = ["gray_rank", "hilbert_table", "interleave", "keys", "round_robin", "shared_bits"]


def round_robin(counts: Sequence[int]) -> tuple[int, ...]:
    """The bit order of an allocation: ``floor(v_i / m)`` bits of each column at a time, m the smallest positive count.

    Seed 000, definition 2; a column without bits is left out.

    Args:
        counts: bits per column.

    Returns:
        Column index per bit, most significant first.

    >>> round_robin([2, 2]), round_robin([3, 1])
    ((0, 1, 0, 1), (0, 0, 0, 1))
    """
    if any(count < 0 for count in counts) or not any(counts):
        raise PlanError("a bit allocation needs at least one bit and no negative count")
    smallest = min(count for count in counts if count > 0)
    left = list(counts)
    order: list[int] = []
    while any(left):
        for column, count in enumerate(counts):
            taken = min(count // smallest, left[column])
            order.extend([column] * taken)
            left[column] -= taken
    return tuple(order)


def shared_bits(weights: Sequence[float], total: int) -> tuple[int, ...]:
    """``total`` bits shared out in proportion to ``weights``, rounded by largest remainder (seed 000, section 2.2).

    >>> shared_bits([0.5, 0.3, 0.2], 4)
    (2, 1, 1)
    """
    scale = float(sum(weights))
    if scale <= 0:
        raise PlanError("at least one weight must be positive")
    exact = [total * weight / scale for weight in weights]
    bits = [int(share) for share in exact]
    by_remainder = sorted(range(len(bits)), key=lambda i: (bits[i] - exact[i], i))
    for i in by_remainder[: total - sum(bits)]:
        bits[i] += 1
    return tuple(bits)


def interleave(
    codes: Sequence[npt.NDArray[np.integer[Any]]], bits: Sequence[int], order: Sequence[int]
) -> npt.NDArray[np.int64]:
    """Keys whose bits are taken from ``codes`` in ``order``.

    Args:
        codes: one array of codes per column, each shape (n,).
        bits: bits of each column's codes.
        order: column index per bit of the key, most significant first.

    >>> int(interleave([np.array([3]), np.array([6])], [3, 3], [0, 1, 0, 1, 0, 1])[0])  # seed 002: x=3, y=6
    30
    """
    key = np.zeros(len(codes[0]), dtype=np.int64)
    left = list(bits)
    for column in order:
        left[column] -= 1
        key = (key << 1) | ((codes[column].astype(np.int64) >> left[column]) & 1)
    return key


def gray_rank(
    codes: Sequence[npt.NDArray[np.integer[Any]]], bits: Sequence[int], order: Sequence[int]
) -> npt.NDArray[np.int64]:
    """Places on the Gray-code curve through the cells that `interleave` numbers; the arguments are the same.

    >>> x, y = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> interleave([x, y], [1, 1], [0, 1]), gray_rank([x, y], [1, 1], [0, 1])
    (array([0, 1, 2, 3]), array([0, 1, 3, 2]))
    """
    key = interleave(codes, bits, order)
    turned = key & ends_of_turns(order)
    step = 1
    while step < len(order):  # each bit becomes the parity of itself and all above it
        turned ^= turned >> step
        step *= 2
    return np.asarray(key ^ (turned >> 1))


def keys(spec: KeySpec, columns: Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]]) -> npt.NDArray[np.int64]:
    """Keys of rows under ``spec``, shape (n,).

    A row lies in the latest epoch that any of its values lies in.

    Args:
        columns: canonical values and validity of each column of the key.
    """
    whole = [codes_of(feature, *columns[feature.column]) for feature in spec.features]
    codes = [code & ((1 << feature.bits) - 1) for code, feature in zip(whole, spec.features, strict=True)]
    if spec.tree is not None:
        tree = spec.tree
        nodes = [np.array(items, dtype=np.int64) for items in (tree.feature, tree.cut, tree.low, tree.high)]
        key = np.asarray(np.array(tree.key, dtype=np.int64)[leaf_of(np.stack(codes).astype(np.int32), *nodes)])
    else:
        bits = [feature.bits for feature in spec.features]
        key = (gray_rank if spec.curve == "gray" else interleave)(codes, bits, spec.order)
        key = hilbert_table(spec)[key] if spec.curve == "hilbert" else key
    epochs = [code >> feature.bits for code, feature in zip(whole, spec.features, strict=True) if feature.epochs]
    return key | (np.maximum.reduce(epochs) << spec.bits) if epochs else key


def hilbert_table(spec: KeySpec) -> npt.NDArray[np.int64]:
    """Position on the Hilbert curve by interleaved cell, shape (2 ** spec.bits,): a permutation of 0 .. 2 ** bits - 1.

    Features with fewer bits than the widest are stretched to it; the positions so left out are closed up.
    """
    widest = max(feature.bits for feature in spec.features)
    cells = np.arange(1 << spec.bits, dtype=np.int64)
    axes = np.zeros((len(spec.features), len(cells)), dtype=np.int64)
    for place, feature in enumerate(spec.order):
        axes[feature] = (axes[feature] << 1) | ((cells >> (spec.bits - 1 - place)) & 1)
    for i, feature_codes in enumerate(spec.features):
        axes[i] <<= widest - feature_codes.bits
    position = hilbert_index(axes, widest)
    table = np.empty(len(cells), dtype=np.int64)
    table[np.argsort(position, kind="stable")] = cells
    return table


def hilbert_index(axes: npt.NDArray[np.int64], bits: int) -> npt.NDArray[np.int64]:
    """Position on the Hilbert curve (Skilling 2004, "Programming the Hilbert curve"), shape (n,).

    Args:
        axes: coordinates, shape (dimensions, n), each below ``2 ** bits``; dimensions times bits is at most 62.

    >>> hilbert_index(np.array([[0, 0, 1, 1], [0, 1, 1, 0]]), 1)
    array([0, 1, 2, 3])
    """
    x = axes.copy()
    dimensions = len(x)
    level = 1 << (bits - 1)
    while level > 1:
        low = level - 1
        for i in range(dimensions):
            inverted = (x[i] & level) != 0
            swap = np.where(inverted, 0, (x[0] ^ x[i]) & low)
            x[0] = np.where(inverted, x[0] ^ low, x[0] ^ swap)
            x[i] ^= swap
        level >>= 1
    for i in range(1, dimensions):
        x[i] ^= x[i - 1]
    flip = np.zeros_like(x[0])
    level = 1 << (bits - 1)
    while level > 1:
        flip = np.where((x[dimensions - 1] & level) != 0, flip ^ (level - 1), flip)
        level >>= 1
    x ^= flip
    order = [i for _ in range(bits) for i in range(dimensions)]
    return interleave(list(x), [bits] * dimensions, order)
