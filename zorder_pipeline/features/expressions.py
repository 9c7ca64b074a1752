"""Expression candidates: functions of columns that queries compare with constants, ``month(ts) = 3`` (seed 004)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from zorder_pipeline.model.predicate import And, Opaque, Or, Predicate
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.workload import LoggedQuery

__all__ = ["ExpressionCandidate", "expression_candidates"]

COMPARED = (exp.EQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


@dataclass(frozen=True)
class ExpressionCandidate:
    """An expression over a table's columns that queries compare with constants.

    Attributes:
        expression: in Spark SQL, of allow-listed deterministic functions only; it may hold constants of its own.
        columns: what it looks at.
        frequency, queries, share: of the queries that compare it, as of a column's
            `zorder_pipeline.features.candidates.Candidate`.
        comparison_points: different constants it is compared with.
        chosen: whether it is asked often and with enough constants to be worth statistics of its own.
        reason: why, or why not, in one sentence.
    """

    expression: str
    columns: tuple[str, ...]
    frequency: float
    queries: int
    share: float
    comparison_points: int
    chosen: bool
    reason: str

    def to_json(self, redact: bool = False) -> dict[str, Any]:
        """JSON-ready form; with ``redact`` without the expression, which may hold constants."""
        shown = f"<over {', '.join(self.columns)}>" if redact else self.expression
        return dict(vars(self)) | {"expression": shown, "reason": self.reason.replace(self.expression, shown)}


def expression_candidates(
    queries: Sequence[LoggedQuery],
    weights: Sequence[float],
    schema: TableSchema,
    *,
    theta: int = 2,
    gamma: float = 0.01,
) -> tuple[ExpressionCandidate, ...]:
    """Every expression that queries compare with constants, most frequent first.

    Neither Delta's nor Parquet's statistics answer such a comparison; statistics of the expression itself do, for
    scans through ``reading/``.

    Args:
        weights: one per query.
        theta: distinct constants an expression must be compared with.
        gamma: weighted share of the queries that must compare it.
    """
    asked: dict[str, set[int]] = defaultdict(set)
    points: dict[str, set[str]] = defaultdict(set)
    columns: dict[str, tuple[str, ...]] = {}
    parsed: dict[str, tuple[str, tuple[str, ...]] | None] = {}
    for i, query in enumerate(queries):
        for leaf in _opaque(query.predicate):
            if leaf.expression not in parsed:
                parsed[leaf.expression] = _compared(leaf.expression)
            found = parsed[leaf.expression]
            if found is not None and all(schema.find(column) is not None for column in leaf.columns):
                subject, constants = found
                asked[subject].add(i)
                points[subject].update(constants)
                columns[subject] = leaf.columns
    total = sum(weights) or 1.0
    result = []
    for subject, where in asked.items():
        frequency, count = sum(weights[i] for i in where), len(points[subject])
        chosen, reason = _verdict(subject, len(where), len(queries), frequency / total, count, theta, gamma)
        facts = (frequency, len(where), frequency / total, count)
        result.append(ExpressionCandidate(subject, columns[subject], *facts, chosen, reason))
    return tuple(sorted(result, key=lambda candidate: -candidate.frequency))


def _verdict(
    subject: str, asked: int, queries: int, share: float, points: int, theta: int, gamma: float
) -> tuple[bool, str]:
    if points < theta:
        return False, f"{subject} is compared with only {points} constant: the whole predicate is the better feature"
    if share < gamma:
        return False, f"only {share:.1%} of the queries compare {subject}, less than {gamma:.1%}"
    told = f"{asked} of {queries} queries compare {subject} with {points} constants"
    return True, told + "; only statistics of the expression itself can skip by it"


def _opaque(predicate: Predicate) -> Iterator[Opaque]:
    if isinstance(predicate, And | Or):
        for child in predicate.children:
            yield from _opaque(child)
    elif isinstance(predicate, Opaque) and predicate.expression:
        yield predicate


def _compared(text: str) -> tuple[str, tuple[str, ...]] | None:
    """The expression and the constants that a condition compares it with; None when it is no such comparison.

    >>> _compared("MONTH(ts) = 3"), _compared("UPPER(c) IN ('A', 'B')"), _compared("a = b")
    (('MONTH(ts)', ('3',)), ('UPPER(c)', ("'A'", "'B'")), None)
    """
    try:
        node = parse_one(text, read="spark").unnest()
    except SqlglotError:
        return None
    if isinstance(node, exp.Not):
        node = node.this.unnest()
    if isinstance(node, exp.In) and node.expressions:
        sides, constants = node.this, node.expressions
    elif isinstance(node, exp.Between):
        sides, constants = node.this, [node.args["low"], node.args["high"]]
    elif isinstance(node, COMPARED):
        left_first = not node.this.find(exp.Column)
        sides, constants = (node.expression, [node.this]) if left_first else (node.this, [node.expression])
    else:
        return None
    if not sides.find(exp.Column) or isinstance(sides.unnest(), exp.Column):
        return None
    if any(constant.find(exp.Column) for constant in constants):
        return None
    return sides.unnest().sql("spark"), tuple(constant.sql("spark") for constant in constants)
