"""Columns by which queries look up single values that no order of the rows leads to: Parquet's Bloom filters do.

Zone maps exclude few files for an identifier that lies scattered in each of them. A Bloom filter of each row group
tells with some bytes per value which groups cannot hold it, and Spark asks it without being told, as other engines do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from zorder_pipeline.errors import PlanError
from zorder_pipeline.layout.virtual_files import whole_distinct
from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.predicate import Comparison, conjuncts
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.pipeline.records import LearnSettings, TableAnalysis
from zorder_pipeline.relayout.job import ROW_GROUP

from .keeping import sample_files

__all__ = ["refuse_unfiltered", "with_bloom_filters", "with_named_filters"]

ASKED = 0.02
"""Share of the queries that look values up by a column, from which on it gets filters."""
MOST_VALUES = 10
"""Values of one IN that Spark hands down to Parquet one by one."""
SKIPPED = 0.75
"""Least share of the row groups that the order leaves to a look-up and a filter excludes."""
SERVED = 0.1
"""Share of the files to which the order leads a look-up from which on filters are worth their bytes."""


def with_bloom_filters(analysis: TableAnalysis, plan: Plan, settings: LearnSettings) -> Plan:
    """The plan with the columns that new files are to have Bloom filters of, and a sentence about them.

    Of those that the settings name the plan has the ones that can have filters: a column may be dropped any day.
    """
    schema = analysis.snapshot.schema
    if settings.bloom_filters is not None:
        return _with_named(schema, plan, settings.bloom_filters)
    if plan.spec is None:
        return plan
    shares = _look_ups(analysis, schema)
    chosen = [name for name, share in shares.items() if share >= ASKED and _helped(analysis, plan, settings, name)]
    if not chosen:
        return plan
    asked = " and ".join(f"{shares[name]:.0%}" for name in chosen)
    return _with(plan, chosen, f"by which {asked} of the queries look up single values that no order leads to")


def with_named_filters(schema: TableSchema, plan: Plan, names: Sequence[str]) -> Plan:
    """The plan with Bloom filters of some columns.

    Raises:
        PlanError: a column cannot have one.
    """
    refuse_unfiltered(schema, names)
    return _with_named(schema, plan, names)


def refuse_unfiltered(schema: TableSchema, names: Sequence[str]) -> None:
    """Check that columns can have Bloom filters.

    Raises:
        PlanError: one cannot.
    """
    for name in names:
        _named(schema, name)


def _with_named(schema: TableSchema, plan: Plan, names: Sequence[str]) -> Plan:
    found = {name: schema.find(name) for name in names}
    able = {name: column.name for name, column in found.items() if column is not None and _can(column)}
    lost = [name for name in found if name not in able]
    plan = _with(plan, list(dict.fromkeys(able.values())), "as was asked for")
    if not lost:
        return plan
    note = f"no Bloom filters of {', '.join(lost)}: the table has no such column that could have them"
    return replace(plan, notes=(*plan.notes, note))


def _with(plan: Plan, columns: Sequence[str], why: str) -> Plan:
    if not columns:
        return plan
    note = f"new files get Parquet Bloom filters of {', '.join(columns)}, {why}"
    return replace(plan, bloom_filters=tuple(columns), notes=(*plan.notes, note))


def _named(schema: TableSchema, name: str) -> str:
    column = schema.find(name)
    if column is None:
        raise PlanError(f"there is no column {name} to have Bloom filters of; the table has {', '.join(_able(schema))}")
    if not _can(column):
        raise PlanError(
            f"{name} ({column.type}) can have no Bloom filters; those that can are columns at the top level of whole "
            f"numbers, decimals, texts, bytes, dates and times, not of partitions: {', '.join(_able(schema))}"
        )
    return column.name


def _able(schema: TableSchema) -> list[str]:
    return [column.name for column in schema.columns if _can(column)]


def _can(column: Column) -> bool:
    """Whether Parquet has filters of the column's type, and Spark asks them."""
    family = column.value_type.family
    if column.partition or "." in column.name or (family == "string" and column.type != "string"):
        return False
    return family in ("integer", "decimal", "string", "binary", "date", "timestamp", "timestamp_ntz")


def _look_ups(analysis: TableAnalysis, schema: TableSchema) -> dict[str, float]:
    """Share of the queries that look values up by each column that can have filters."""
    asked = Asked.alike([query.condition for query in analysis.queries])
    times: dict[str, float] = defaultdict(float)
    for query, count in zip(asked.each(analysis.queries), asked.times.tolist(), strict=True):
        parts = [part for part in conjuncts(query.predicate) if isinstance(part, Comparison) and _looks_up(part)]
        found = [schema.find(part.column) for part in parts]
        columns = {column.name for column in found if column is not None and _can(column)}
        for name in columns:
            times[name] += count
    return {name: times[name] / len(analysis.queries) for name in sorted(times, key=lambda name: (-times[name], name))}


def _looks_up(part: Comparison) -> bool:
    if part.solved or part.op not in ("=", "<=>", "in"):
        return False
    return len(part.literals) <= MOST_VALUES and all(literal.kind != "null" for literal in part.literals)


def _helped(analysis: TableAnalysis, plan: Plan, settings: LearnSettings, name: str) -> bool:
    """Whether filters would exclude most of the row groups that the order leaves to a look-up."""
    sample = analysis.sample
    if plan.spec is None or not sample.rows or not {name, *plan.spec.columns} <= sample.arrays.keys():
        return False  # bits by hand may be of a column that no query filters by
    values, valid = sample.arrays[name]
    present = values[valid]
    if not len(present):
        return False
    codes = np.unique(present, return_inverse=True)[1].ravel()
    file = sample_files(analysis, plan.spec, plan.target_file_rows)[valid]
    left = _left_by_bounds(codes, file)
    rows = sample.total_rows * len(present) / sample.rows
    distinct = whole_distinct(*(np.array([float(n)]) for n in (codes.max() + 1, len(codes), rows)))[0]
    size = float(analysis.snapshot.files().bytes.sum())
    groups = max(sample.total_rows / plan.target_file_rows, size / (settings.row_group_bytes or ROW_GROUP))
    return left > SERVED and rows / distinct <= (1 - SKIPPED) * groups * left


def _left_by_bounds(codes: npt.NDArray[np.intp], file: npt.NDArray[np.int64]) -> float:
    """Share of the files between whose least and largest value a value lies, in the mean."""
    number, place = np.unique(file, return_inverse=True)
    low, high = np.full(len(number), codes.max() + 1), np.full(len(number), -1)
    np.minimum.at(low, place, codes)
    np.maximum.at(high, place, codes)
    return float(np.mean((high - low + 1) / (codes.max() + 1)))
