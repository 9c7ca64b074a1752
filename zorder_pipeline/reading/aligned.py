"""Statistics of files in the order in which a snapshot lists the files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zorder_pipeline.model.file_stats import BloomFilters, Feature, FeatureStats
from zorder_pipeline.model.values import ValueType
from zorder_pipeline.model.zone_map import ColumnZones

from .gathered import Gathered

__all__ = ["aligned"]


def aligned(
    gathered: Gathered, features: Sequence[Feature], paths: Sequence[str], vectors: Sequence[str], session: str
) -> tuple[FeatureStats, ...]:
    """What is known of each feature in the files of a snapshot, features without any statistic left out.

    Statistics hold for a file with the deletion vector under which they were gathered. Those gathered without one hold
    under every vector: rows only become fewer, so that bounds stay bounds.
    """
    rows = gathered.rows
    place = {path: i for i, path in enumerate(paths)}
    file = np.array([place.get(path, -1) for path in rows["path"].to_pylist()], dtype=np.int64)
    vector = np.array(rows["vector"].to_pylist(), dtype=object)
    now = np.array([*vectors, ""], dtype=object)[file] if len(file) else vector
    usable = (file >= 0) & ((vector == "") | (vector == now))
    sessions = np.array(rows["session"].to_pylist(), dtype=object)
    usable &= (sessions == "") | (sessions == session)
    names, kinds, types, texts = (
        np.array(rows[name].to_pylist(), dtype=object) for name in ("feature", "kind", "type", "sql")
    )
    found = []
    for feature in features:
        mine = usable & (names == feature.name) & (kinds == feature.kind) & (types == feature.type)
        if feature.kind != "column":
            mine &= texts == feature.sql
        if mine.any():
            chosen = np.flatnonzero(mine)
            chosen = chosen[np.argsort(vector[chosen] != "", kind="stable")]  # an exact vector's statistics come last
            found.append(_of_files(feature, rows.take(pa.array(chosen)), file[chosen], len(paths)))
    return tuple(found)


def _of_files(feature: Feature, rows: pa.Table, file: npt.NDArray[np.int64], count: int) -> FeatureStats:
    family = ValueType.parse(feature.type).family
    slot = {"string": "text", "float": "real"}.get(family, "whole")
    blank: Any = {"text": "", "real": 0.0, "whole": 0}[slot]
    dtype = {"text": object, "real": np.float64, "whole": np.int64}[slot]
    low, high = (np.full(count, blank, dtype=dtype) for _ in range(2))
    known = np.zeros(count, dtype=np.bool_)
    nulls, total = np.full(count, -1, dtype=np.int64), np.zeros(count, dtype=np.int64)
    valid = np.asarray(rows[f"low_{slot}"].is_valid())
    for side, array in (("low", low), ("high", high)):
        filled = pc.fill_null(rows[f"{side}_{slot}"], blank)
        array[file] = filled.to_numpy()
    known[file] = valid
    nulls[file] = rows["nulls"].to_numpy()
    total[file] = rows["rows"].to_numpy()
    zones = ColumnZones(low, high, known, nulls)
    places = zip(file.tolist(), rows["places"].to_pylist(), strict=True) if feature.equality else ()
    kept = {index: packed for index, packed in places if packed is not None}  # an exact vector's comes last
    present = {index: np.frombuffer(packed, dtype="<u2") for index, packed in kept.items()}
    if not present:
        return FeatureStats(feature, zones, total)
    filtered = np.zeros(count, dtype=np.bool_)
    filtered[list(present)] = True
    bits = np.concatenate(list(present.values()))
    owner = np.repeat(np.array(list(present), dtype=np.int32), [len(each) for each in present.values()])
    return FeatureStats(feature, zones, total, BloomFilters.of(bits, owner), filtered)
