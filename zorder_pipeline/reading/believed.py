"""Which rows of the state's ``file_stats`` are such as are written there: by any other a file could be left out."""

from __future__ import annotations

import json
from functools import reduce
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc

from zorder_pipeline.model.file_stats import Kind

__all__ = ["believed"]

NEVER_NULL = ("path", "vector", "session", "feature", "kind", "type", "columns", "rows", "nulls")
SLOTS = ("whole", "real", "text")


def believed(rows: pa.Table) -> pa.Table:
    """The rows that may be believed: a file of which none is left is read.

    >>> from zorder_pipeline.reading.gathered import STORED
    >>> row = {"path": "f", "vector": "", "session": "", "feature": "x", "kind": "column", "type": "int"}
    >>> told = [row | {"columns": "{}", "nulls": 0, "rows": n} for n in (5, 0, -5, None)]
    >>> believed(pa.Table.from_pylist(told, STORED))["rows"].to_pylist()
    [5]
    """
    kept = [rows[name].is_valid() for name in NEVER_NULL]
    kept += [pc.greater(rows["rows"], 0), pc.greater_equal(rows["nulls"], -1)]
    kept += [pc.less_equal(rows["nulls"], rows["rows"]), pc.is_in(rows["kind"], pa.array(get_args(Kind), pa.string()))]
    texts = rows["columns"].unique().to_pylist()
    kept.append(pc.is_in(rows["columns"], pa.array(filter(_names_columns, texts), pa.string())))
    kept.append(pc.equal(pc.bit_wise_and(pc.fill_null(pc.binary_length(rows["places"]), 0), 1), 0))
    for slot in SLOTS:
        low, high = rows[f"low_{slot}"], rows[f"high_{slot}"]
        kept.append(pc.equal(low.is_valid(), high.is_valid()))
        kept.append(pc.invert(pc.fill_null(pc.greater(low, high), False)))
    every: Any = reduce(pc.and_, (pc.fill_null(one, False) for one in kept))
    return rows if pc.all(every).as_py() is not False else rows.filter(every)


def _names_columns(text: str | None) -> bool:
    try:
        told = json.loads(text or "")
    except (ValueError, RecursionError):
        return False
    return isinstance(told, dict) and all(isinstance(value, str) for value in told.values())
