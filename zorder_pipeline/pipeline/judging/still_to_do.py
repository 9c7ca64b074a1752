"""What a plan has left to do where it has been carried out since it was learned: only that brings something new."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from zorder_pipeline.model.candidate import FULL
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.relayout.snapshot import TableSnapshot

__all__ = ["Left", "still_to_do"]

Left: TypeAlias = Mapping[tuple[str | None, ...], float]


def still_to_do(snapshot: TableSnapshot, plan: Plan) -> Left:
    """Share of what ``plan`` does that is not done, by the values of those partitions of which a part is done.

    Files of its layout that were written since it was learned are what it, or another run of it, has done. The rest is
    what does not lie by the layout, and of a plan that lays out all of a table anew also what did then.
    """
    if plan.spec is None:
        return {}
    files = snapshot.files()
    lies = files.lies_by(plan.spec.layout_id)
    done = lies & (files.generation > plan.delta_version)
    rest = ~done if plan.action == FULL else ~lies
    if not done.any():
        return {}
    codes, size = files.partition_codes, int(files.partition_codes.max()) + 1
    did = np.bincount(codes[done], files.bytes[done], size)
    left = np.bincount(codes[rest], files.bytes[rest], size)
    parts, first = np.unique(codes, return_index=True)
    return {
        files.partitions[at]: float(left[part] / max(1.0, did[part] + left[part]))
        for part, at in zip(parts.tolist(), first.tolist(), strict=True)
        if did[part]
    }
