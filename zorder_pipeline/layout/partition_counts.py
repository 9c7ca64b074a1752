"""Rows by table partition, and what follows from them: a node of a tree has files in each partition.

Compiled with numba, for `zorder_pipeline.layout.grow`. Counts are rows per partition, shape (partitions,).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zorder_pipeline.model.kernel import kernel

__all__ = ["counts_of", "follows", "numbered", "typical_number", "typical_rows"]


@kernel
def numbered(rows: Any, partition: Any) -> Any:  # pragma: no cover - compiled
    """Number of the table partition of each row, from 0 among ``rows``, which lie partition after partition."""
    found = np.zeros(len(rows), dtype=np.int64)
    for i in range(1, len(rows)):
        found[i] = found[i - 1] + (1 if partition[rows[i]] != partition[rows[i - 1]] else 0)
    return found


@kernel
def counts_of(rows: Any, partition: Any) -> Any:  # pragma: no cover - compiled
    """Rows by table partition of ``rows``, which lie partition after partition."""
    if partition[rows[0]] == partition[rows[-1]]:
        return np.array([len(rows)])
    return np.bincount(numbered(rows, partition))


@kernel
def typical_rows(counts: Any) -> float:  # pragma: no cover - compiled
    """Rows in the partition of a typical row."""
    total, squares = 0.0, 0.0
    for count in counts:
        total += count
        squares += float(count) ** 2
    return squares / total


@kernel
def typical_number(counts: Any) -> float:  # pragma: no cover - compiled
    """Partitions there would be of as many rows each as the partition of a typical row has."""
    return float(counts.sum() / typical_rows(counts))


@kernel
def follows(left: Any, right: Any) -> bool:  # pragma: no cover - compiled
    """Whether a cut by a column that follows the partitions made these: of too many all rows are on one side."""
    divided, total = 0, 0
    for g in range(len(left)):
        total += left[g] + right[g]
        if left[g] > 0 and right[g] > 0:
            divided += left[g] + right[g]
    return bool(4 * divided < 3 * total)
