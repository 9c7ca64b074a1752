"""Bloom filters that Parquet's writer adds to new files, for readers that look up single values."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .leaves import Leaf

__all__ = ["bloom_filters"]

_ENABLED, _EXPECTED = "parquet.bloom.filter.enabled", "parquet.bloom.filter.expected.ndv"
_LARGEST = "parquet.bloom.filter.max.bytes"
MOST_BYTES = 4 << 20
"""Of one filter: three million values of which one in a hundred is taken for another."""


def bloom_filters(leaves: Sequence[Leaf], columns: Sequence[str], values: float) -> dict[str, str]:
    """Settings by which Parquet's writer gives each row group filters of some columns at the top level.

    Args:
        leaves: the table's columns.
        columns: their names; what the table does not have gets none.
        values: different ones that are expected in a row group.
    """
    found: dict[str, str] = {}
    for leaf in leaves:
        if leaf.path in {(name,) for name in columns} and "." not in leaf.physical[0]:
            name = leaf.physical[0]
            found |= {f"{_ENABLED}#{name}": "true", f"{_EXPECTED}#{name}": str(max(1, math.ceil(values)))}
    return found | {_LARGEST: str(MOST_BYTES)} if found else found
