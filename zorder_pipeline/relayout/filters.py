"""Bloom filters that Parquet's writer adds to new files, for readers that look up single values."""

from __future__ import annotations

from collections.abc import Sequence

from .leaves import Leaf

__all__ = ["bloom_filters"]

_ENABLED = "parquet.bloom.filter.enabled"
_SIZED = {
    "parquet.bloom.filter.adaptive.enabled": "true",
    "parquet.bloom.filter.candidates.number": "10",
    "parquet.bloom.filter.max.bytes": str(4 << 20),
}
"""Each row group gets the smallest filter of 8 KiB, 16 KiB, ... 4 MiB that its own values fit into: of three million of
these one in a hundred is taken for another."""


def bloom_filters(leaves: Sequence[Leaf], columns: Sequence[str]) -> dict[str, str]:
    """Settings by which Parquet's writer gives each row group filters of some columns at the top level.

    Args:
        leaves: the table's columns.
        columns: their names; what the table does not have gets none.
    """
    asked = {(name,) for name in columns}
    names = [leaf.physical[0] for leaf in leaves if leaf.path in asked and "." not in leaf.physical[0]]
    return {f"{_ENABLED}#{name}": "true" for name in names} | (_SIZED if names else {})
