"""Skipping-oriented partitioning (SOP) on the queries it is evaluated by, beside ours and the peers of `layout`.

The table is TPC-H's lineitem with all that eight of its queries filter by. SOP lays rows by which of the log's frequent
conditions they satisfy, and keeps for each file which of these any of its rows satisfies: its readers open a file only
if that and min/max allow it. All others are read by min/max alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from zorder_pipeline.features.implication import implies
from zorder_pipeline.features.sop import Sop, Vectors, chosen_bits, vectors_of
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.model.file_stats import Feature
from zorder_pipeline.model.ranges import Box, Boxes, Interval, Range, columns_asked
from zorder_pipeline.model.schema import Column, TableSchema

from .cases import Arrays, Case, Loaded
from .data import denormalised_lineitem
from .denormalised import TABLE, denormalised_logs
from .harness import Options, Outcome, Progress, Workload
from .layout import PEERS, Read, simulated

__all__ = ["WORKLOAD", "frequent_conditions", "reader", "satisfied", "sop_files"]

OFTEN = 0.01
"""Share of the training queries that a condition must serve."""
BITS = (8, 12, 16, 24)
"""So many conditions are tried; which number reads fewest rows of the sample for the training queries decides. Of more
conditions rows have too many combinations to be merged well."""

Bits = npt.NDArray[np.bool_]


def run(options: Options, progress: Progress) -> list[Outcome]:
    """See `Workload`."""
    return simulated((CASE,), options, progress, _beside)


def _beside(loaded: Loaded, chosen: npt.NDArray[np.int64], files: int) -> Iterator[tuple[str, str, Read]]:
    """What is read of SOP's own layout, by its bits and min/max."""
    conditions = frequent_conditions(loaded.train_boxes)
    sample = replace(loaded, columns=loaded.part(chosen), rows=len(chosen))
    features = [Feature(str(i), "predicate", "boolean", "", (), weight=w) for i, (_, w) in enumerate(conditions)]
    ranked = chosen_bits(features, [satisfied(box, sample.columns) for box, _ in conditions], max(BITS))
    best, least = None, np.inf
    for most in BITS:
        asked = [conditions[j][0] for j in ranked[:most]]
        truth = [satisfied(box, sample.columns) for box in asked]
        distinct, counts = np.unique(vectors_of(truth), return_counts=True)
        vectors = Vectors.of_codes(distinct, counts.astype(np.int64), len(asked))
        sop = Sop.learn([features[j] for j in ranked[:most]], vectors, len(chosen) / files)
        read = _read(sample, asked, truth, sop, files, loaded.train_boxes).shares.mean()
        if read < least:
            best, least = (asked, sop), read
    assert best is not None
    asked, sop = best
    truth = [satisfied(box, loaded.columns) for box in asked]
    yield (
        "sop",
        f"SOP, at its best with {min(BITS)} to {max(BITS)} conditions",
        _read(loaded, asked, truth, sop, files, loaded.unseen_boxes),
    )


def _read(
    table: Loaded, conditions: Sequence[Box], truth: Sequence[Bits], sop: Sop, files: int, queries: Sequence[Boxes]
) -> Read:
    file = sop_files(sop.index_of(vectors_of(truth)), table.rows / files)
    made = int(file.max()) + 1
    return Read(reader(table, conditions, truth, queries).rows_read(file, made) / table.rows, made)


def frequent_conditions(queries: Sequence[Boxes]) -> list[tuple[Box, float]]:
    """Conditions, of one column or all of a query's together, with how many of the queries imply each; no rare ones."""
    found: dict[Box, None] = {}
    for boxes in queries:
        for box in boxes:
            found |= dict.fromkeys([(item,) for item in box] + [box])
    asked = [columns_asked([boxes]) for boxes in queries]
    counted = []
    for box in found:
        columns = {item.column for item in box}
        served = [
            boxes
            for boxes, names in zip(queries, asked, strict=True)
            if columns <= names and all(implies(mine, box) for mine in boxes)
        ]
        if box and len(served) >= OFTEN * len(queries):
            counted.append((box, float(len(served))))
    return counted


def satisfied(box: Box, columns: Arrays) -> Bits:
    """Which rows satisfy a condition, shape (rows,)."""
    every = np.ones(len(next(iter(columns.values()))[0]), dtype=np.bool_)
    for item in box:
        values, valid = columns[item.column]
        hit = np.zeros(len(values), dtype=np.bool_)
        present = values[valid]
        inside = np.zeros(len(present), dtype=np.bool_)
        for part in item.intervals:
            inside |= _above(present, part) & _below(present, part)
        hit[valid] = inside
        every &= hit | (~valid if item.nulls else False)
    return every


def _above(values: npt.NDArray[Any], part: Interval) -> Bits:
    if part.low is None:
        return np.ones(len(values), dtype=np.bool_)
    return np.asarray(values > part.low if part.low_open else values >= part.low, dtype=np.bool_)


def _below(values: npt.NDArray[Any], part: Interval) -> Bits:
    if part.high is None:
        return np.ones(len(values), dtype=np.bool_)
    return np.asarray(values < part.high if part.high_open else values <= part.high, dtype=np.bool_)


def reader(table: Loaded, conditions: Sequence[Box], truth: Sequence[Bits], queries: Sequence[Boxes]) -> Estimator:
    """Queries as readers by min/max and bits ask them: whoever implies a condition wants its bit set."""
    names = [f"sop {j}" for j in range(len(conditions))]
    every = np.ones(table.rows, dtype=np.bool_)
    bits: Mapping[str, tuple[npt.NDArray[np.int64], Bits]] = {
        name: (hit.astype(np.int64), every) for name, hit in zip(names, truth, strict=True)
    }
    schema = TableSchema((*table.schema.columns, *(Column(name, "int") for name in names)))
    wanted = [Range(name, "int", (Interval(1, 1),)) for name in names]
    asked = [
        tuple(
            (*box, *(bit for bit, condition in zip(wanted, conditions, strict=True) if implies(box, condition)))
            for box in boxes
        )
        for boxes in queries
    ]
    return Estimator.build({**table.columns, **bits}, schema, asked, table.rows)


def sop_files(partition: npt.NDArray[np.int64], target_rows: float) -> npt.NDArray[np.int32]:
    """File of each row: each partition is cut into as many files of about ``target_rows`` rows as it fills.

    >>> sop_files(np.array([1, 0, 1, 1, 1]), 2.0).tolist()
    [1, 0, 1, 2, 2]
    """
    counts = np.bincount(partition)
    pieces = np.where(counts > 0, np.maximum(1, np.round(counts / target_rows)), 0).astype(np.int64)
    first = np.cumsum(pieces) - pieces
    order = np.argsort(partition, kind="stable")
    place = np.empty(len(partition), dtype=np.int64)
    place[order] = np.arange(len(partition)) - np.repeat(np.cumsum(counts) - counts, counts)
    return (first[partition] + place * pieces[partition] // counts[partition]).astype(np.int32)


def _rows(folder: Path, scale: float) -> pa.Table:
    return pq.read_table(denormalised_lineitem(folder, 0.1 * scale))


CASE = Case(TABLE, _rows, lambda _, train, unseen, seed, __: denormalised_logs(train, unseen, seed))
WORKLOAD = Workload(
    "sop",
    "SOP's TPC-H queries on one denormalised table: rows read under layouts learned and chosen",
    run,
    peers={**PEERS, "sop": ("sop",)},
    sized=True,
)
