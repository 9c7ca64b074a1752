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

from .gathered import Gathered, counts_in

__all__ = ["aligned"]


def aligned(
    gathered: Gathered, features: Sequence[Feature], paths: Sequence[str], vectors: Sequence[str], session: str
) -> tuple[FeatureStats, ...]:
    """What is known of each feature in the files of a snapshot, features without any statistic left out.

    Statistics hold for a file with the deletion vector under which they were gathered. Those gathered without one hold
    under every vector: rows only become fewer, so that bounds stay bounds.
    """
    rows = gathered.rows
    places = pc.index_in(rows["path"], value_set=pa.array(list(paths), pa.string()))
    file = pc.fill_null(places, -1).to_numpy().astype(np.int64)
    now = pa.array([*vectors, None], pa.string()).take(pa.array(file % (len(paths) + 1)))  # -1 is the last one
    bare = _mask(pc.equal(rows["vector"], ""))
    usable = (file >= 0) & (bare | _mask(pc.equal(rows["vector"], pa.chunked_array([now]))))
    usable &= _mask(counts_in(rows, session))
    told = ("feature", "kind", "type", "sql")
    coded = {name: pc.dictionary_encode(rows[name]).combine_chunks() for name in told}
    codes = {name: pc.fill_null(each.indices, -1).to_numpy(zero_copy_only=False) for name, each in coded.items()}
    numbers = {name: {text: i for i, text in enumerate(each.dictionary.to_pylist())} for name, each in coded.items()}
    found = []
    for feature in features:
        asked = {"feature": feature.name, "kind": feature.kind, "type": feature.type}
        asked |= {} if feature.kind == "column" else {"sql": feature.sql}
        mine = usable.copy()
        for name, text in asked.items():
            mine &= codes[name] == numbers[name].get(text, len(numbers[name]))
        if mine.any():
            chosen = np.flatnonzero(mine)
            chosen = chosen[np.argsort(~bare[chosen], kind="stable")]  # an exact vector's statistics come last
            found.append(_of_files(feature, rows.take(pa.array(chosen)), file[chosen], len(paths)))
    return tuple(found)


def _mask(told: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.fill_null(told, False).to_numpy(zero_copy_only=False), dtype=np.bool_)


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
