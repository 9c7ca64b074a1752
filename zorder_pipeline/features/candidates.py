"""Column candidates: what a workload filters by, and whether an order of it pays (seed 004, algorithm 1: P1, P2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from zorder_pipeline.model.literals import type_literal
from zorder_pipeline.model.predicate import Comparison, comparisons
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.values import DAY, Value
from zorder_pipeline.model.workload import LoggedQuery

from .profile import Profile, profile
from .sample import Sample

__all__ = ["GAMMA", "MIN_MAX_OPS", "THETA", "Candidate", "column_candidates", "query_weights"]

MIN_MAX_OPS = frozenset(["=", "<=>", "<", "<=", ">", ">=", "between", "in", "starts_with"])
THETA, GAMMA = 2, 0.01
"""Seed 004's: distinct values that a column is compared with at least, and weighted share of the queries that do so."""
FEW_VALUES = 8
SMALL_RANGE = 256
MOSTLY = 0.5
"""Seed 001 calls a column of little use that has few distinct values, a small range, or mostly nulls or one value."""


@dataclass(frozen=True)
class Candidate:
    """A column the workload filters by.

    Attributes:
        column, type: as in the schema.
        frequency: weighted number of queries with a comparison of it that min/max statistics can answer.
        queries: the same, each query counted once.
        share: ``frequency`` as a share of the weight of all queries, 0 to 1.
        comparison_points: distinct values it is compared with.
        distinct, null_share, top_share, overlap_depth: see `Profile`; zeros when the column was not sampled.
        level: what skips by it: ``delta`` (file statistics), ``row_group`` (only Parquet's) or ``enriched``
            (only statistics of our own).
        chosen: whether it qualifies for the key.
        reason: why, or why not, in one sentence.
    """

    column: str
    type: str
    frequency: float
    queries: int
    share: float
    comparison_points: int
    distinct: int
    null_share: float
    top_share: float
    overlap_depth: float
    level: str
    chosen: bool
    reason: str


@dataclass
class _Tally:
    queries: list[int] = field(default_factory=list)
    points: set[Value] = field(default_factory=set)


def query_weights(
    queries: Sequence[LoggedQuery],
    half_life_days: float | None = None,
    scanned: Sequence[float] | None = None,
) -> list[float]:
    """Weight of each query. What the log says of its duration and bytes does not count: that would feed the present
    layout back into the next one.

    Args:
        half_life_days: a query counts half for every so many days it is older than the newest one; undated ones count
            in full, and all do when this is None.
        scanned: share of the table that each query would scan if only its partitions were pruned; None takes all.
    """
    times = [query.timestamp for query in queries if query.timestamp is not None]
    newest = max(times, default=0)
    span = half_life_days * DAY if half_life_days is not None else None
    ages = [0.0 if q.timestamp is None or span is None else (newest - q.timestamp) / span for q in queries]
    sizes = [1.0] * len(queries) if scanned is None else scanned
    return [size * float(0.5**age) for size, age in zip(sizes, ages, strict=True)]


def column_candidates(
    queries: Sequence[LoggedQuery],
    weights: Sequence[float],
    schema: TableSchema,
    sample: Sample,
    *,
    theta: int = THETA,
    gamma: float = GAMMA,
    solved: bool = False,
) -> tuple[Candidate, ...]:
    """Every column the queries filter by, most frequent first, each chosen or left out with the reason (P1, P2).

    Args:
        weights: one per query.
        theta: distinct comparison points a column must have.
        gamma: weighted share of the queries that must filter by it.
        solved: some readers also skip by what was solved out of expressions (`Comparison.solved`).
    """
    tallies = _tally(queries, schema, solved)
    total = sum(weights) or 1.0
    result = []
    for column, tally in tallies.items():
        frequency = sum(weights[i] for i in tally.queries)
        sampled = sample.columns.get(column.name)
        shape = Profile() if sampled is None else profile(sampled, sample.file, column.value_type)
        level = "delta" if column.delta_stats else "row_group" if column.value_type.orderable else "enriched"
        facts = (frequency, len(tally.queries), frequency / total, len(tally.points))
        chosen, reason = _verdict(column, facts, shape, sampled is not None, len(queries), theta, gamma)
        shown = (shape.distinct, shape.null_share, shape.top_share, shape.overlap_depth)
        result.append(Candidate(column.name, column.type, *facts, *shown, level, chosen, reason))
    return tuple(sorted(result, key=lambda c: -c.frequency))


def _tally(queries: Sequence[LoggedQuery], schema: TableSchema, solved: bool) -> dict[Column, _Tally]:
    result: dict[Column, _Tally] = defaultdict(_Tally)
    for i, query in enumerate(queries):
        for comparison in comparisons(query.predicate):
            column = schema.find(comparison.column)
            if column is None:
                continue
            tally, points = result[column], set() if comparison.solved and not solved else _points(comparison, column)
            tally.points.update(points)
            if points and tally.queries[-1:] != [i]:
                tally.queries.append(i)
    return result


def _points(comparison: Comparison, column: Column) -> set[Value]:
    """Values that min/max of the column are compared with; none when they cannot answer the comparison."""
    if comparison.op not in MIN_MAX_OPS or not column.value_type.orderable:
        return set()
    known = [literal for literal in comparison.literals if literal.kind != "null"]
    typed = [type_literal(literal, column.value_type) for literal in known]
    present = [item.value for item in typed if item is not None]
    return set(present) if len(present) == len(typed) else set()


def _verdict(
    column: Column,
    facts: tuple[float, int, float, int],
    shape: Profile,
    sampled: bool,
    queries: int,
    theta: int,
    gamma: float,
) -> tuple[bool, str]:
    name, (_, asked, share, points) = column.name, facts
    if column.partition:
        return False, f"{name} is a partition column: its files are already apart"
    if not column.value_type.orderable:
        return False, f"{name} has type {column.type}, which has no order to sort by"
    if not column.delta_stats:
        return False, f"{name} ({column.type}) has no Delta statistics, so no file would be skipped by it"
    if not asked:
        return False, f"no query compares {name} in a way that min/max statistics can answer"
    if sampled and not shape.distinct:
        return False, f"{name} is null in every sampled row"
    if sampled and shape.distinct == 1 and not shape.null_share:
        return False, f"{name} is constant in the sample: no order of rows separates it"
    if points < theta:
        return False, f"{name} is compared with only {points} distinct value{'s' * (points != 1)}, fewer than {theta}"
    if share < gamma:
        return False, f"only {share:.1%} of the queries filter by {name}, less than {gamma:.1%}"
    notes = list(_notes(shape)) if sampled else ["it was not sampled"]
    told = f"{asked} of {queries} queries compare {name} with {points} distinct values"
    return True, told + (f", though {' and '.join(notes)}" if notes else "")


def _notes(shape: Profile) -> Iterator[str]:
    if shape.distinct <= FEW_VALUES:
        yield f"it has only {shape.distinct} value{'s' * (shape.distinct != 1)}"
    elif shape.span is not None and shape.span < SMALL_RANGE:
        yield f"its values span only {shape.span} units, so its raw bits hardly differ (rank codes do)"
    if shape.null_share >= MOSTLY:
        yield f"{shape.null_share:.0%} of its rows are null"
    if shape.top_share >= MOSTLY and shape.distinct > 1:
        yield f"one value has {shape.top_share:.0%} of the rows"
