"""Expression candidates: functions of columns that queries compare with constants, ``month(ts) = 3`` (seed 004)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from zorder_pipeline.model.predicate import FLIPPED, And, Literal, Opaque, Or, Predicate
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.workload import LoggedQuery

from .candidates import GAMMA, THETA

__all__ = ["LOOKED_UP", "ExpressionCandidate", "compared_with", "expression_candidates"]

COMPARED = (exp.EQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
OPERATORS = {exp.EQ: "=", exp.NullSafeEQ: "<=>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_Compared: TypeAlias = tuple[str, str, tuple[str, ...], tuple[Literal, ...] | None]
LONG = 200
"""Letters of a condition from which on it is not remembered what it compares, as it may be with very many constants."""
LOOKED_UP = frozenset({"=", "<=>", "in"})
"""Operators that a Bloom filter answers."""


@dataclass(frozen=True)
class ExpressionCandidate:
    """An expression over a table's columns that queries compare with constants.

    Attributes:
        expression: in Spark SQL, of allow-listed deterministic functions only; it may hold constants of its own.
        columns: what it looks at.
        frequency, queries, share: of the queries that compare it, as of a column's
            `zorder_pipeline.features.candidates.Candidate`.
        comparison_points: different constants it is compared with.
        looked_up: whether it is compared by equality.
        chosen: whether it is asked often and with enough constants to be worth statistics of its own.
        reason: why, or why not, in one sentence.
    """

    expression: str
    columns: tuple[str, ...]
    frequency: float
    queries: int
    share: float
    comparison_points: int
    looked_up: bool
    chosen: bool
    reason: str

    def to_json(self, redact: bool = False) -> dict[str, Any]:
        """JSON-ready form; with ``redact`` without the expression, which may hold constants."""
        shown = f"<over {', '.join(self.columns)}>" if redact else self.expression
        return dict(vars(self)) | {"expression": shown, "reason": self.reason.replace(self.expression, shown)}


def expression_candidates(
    queries: Sequence[LoggedQuery], weights: Sequence[float], schema: TableSchema
) -> tuple[ExpressionCandidate, ...]:
    """Every expression that queries compare with constants, most frequent first.

    Neither Delta's nor Parquet's statistics answer such a comparison; statistics of the expression itself do, for
    scans through ``reading/``. Those of partition columns alone are left out: Delta evaluates them for each partition.

    Args:
        weights: one per query.
    """
    asked: dict[str, set[int]] = defaultdict(set)
    points: dict[str, set[str]] = defaultdict(set)
    columns: dict[str, tuple[str, ...]] = {}
    looked_up: set[str] = set()
    parsed: dict[str, tuple[str, str, tuple[str, ...]] | None] = {}
    for i, query in enumerate(queries):
        for leaf in _opaque(query.predicate):
            if leaf.expression not in parsed:
                parsed[leaf.expression] = _compared(leaf.expression)
            found = parsed[leaf.expression]
            known = [schema.find(column) for column in leaf.columns]
            if found is not None and None not in known and not all(column and column.partition for column in known):
                subject, op, constants = found
                if op in LOOKED_UP:
                    looked_up.add(subject)
                asked[subject].add(i)
                points[subject].update(constants)
                columns[subject] = leaf.columns
    total = sum(weights) or 1.0
    result = []
    for subject, where in asked.items():
        frequency, count = sum(weights[i] for i in where), len(points[subject])
        chosen, reason = _verdict(subject, len(where), len(queries), frequency / total, count)
        facts = (frequency, len(where), frequency / total, count, subject in looked_up)
        result.append(ExpressionCandidate(subject, columns[subject], *facts, chosen, reason))
    return tuple(sorted(result, key=lambda candidate: -candidate.frequency))


def _verdict(subject: str, asked: int, queries: int, share: float, points: int) -> tuple[bool, str]:
    if points < THETA:
        return False, f"{subject} is compared with only {points} constant: the whole predicate is the better feature"
    if share < GAMMA:
        return False, f"only {share:.1%} of the queries compare {subject}, less than {GAMMA:.1%}"
    told = f"{asked} of {queries} queries compare {subject} with {points} constants"
    return True, told + "; only statistics of the expression itself can skip by it"


def _opaque(predicate: Predicate) -> Iterator[Opaque]:
    if isinstance(predicate, And | Or):
        for child in predicate.children:
            yield from _opaque(child)
    elif isinstance(predicate, Opaque) and predicate.expression:
        yield predicate


def _compared(text: str) -> tuple[str, str, tuple[str, ...]] | None:
    """The expression, the operator and the constants that a condition compares it with; None when it is none.

    >>> _compared("MONTH(ts) = 3"), _compared("UPPER(c) IN ('A', 'B')"), _compared("a = b")
    (('MONTH(ts)', '=', ('3',)), ('UPPER(c)', 'in', ("'A'", "'B'")), None)
    """
    found = _taken_apart(text)
    return None if found is None else found[:3]


def compared_with(text: str) -> tuple[str, str, tuple[Literal, ...]] | None:
    """The expression that a condition compares, the operator and the literals, as of a `Comparison` of a column.

    >>> compared_with("3 > MONTH(ts)")
    ('MONTH(ts)', '<', (Literal(kind='number', text='3'),))
    """
    found = _taken_apart(text)
    return None if found is None or found[3] is None else (found[0], found[1], found[3])


def _taken_apart(text: str) -> _Compared | None:
    """Expression, operator, constants, and these as literals where they are plain ones; None where nothing is compared.

    Conditions that are denied are none: nothing would be told of them.
    """
    return (_remembered if len(text) <= LONG else _parted)(text)


def _parted(text: str) -> _Compared | None:
    found = _sides(_parsed(text))
    if found is None:
        return None
    subject, op, constants = found
    literals = [_literal(constant) for constant in constants]
    known = tuple(literal for literal in literals if literal is not None)
    texts = tuple(constant.sql("spark") for constant in constants)
    return subject, op, texts, known if len(known) == len(literals) else None


# candidates, features and every query that is told by them ask of the same conditions
_remembered = lru_cache(maxsize=1 << 14)(_parted)


def _parsed(text: str) -> exp.Expr | None:
    try:
        return parse_one(text, read="spark").unnest()
    except SqlglotError:
        return None


def _sides(node: exp.Expr | None) -> tuple[str, str, list[exp.Expr]] | None:
    """Expression, operator and constants of a comparison; None when it is none."""
    if isinstance(node, exp.In) and node.expressions:
        sides, op, constants = node.this, "in", node.expressions
    elif isinstance(node, exp.Between):
        sides, op, constants = node.this, "between", [node.args["low"], node.args["high"]]
    elif isinstance(node, COMPARED):
        op = OPERATORS[type(node)]
        sides, constants = node.this, [node.expression]
        if not node.this.find(exp.Column):
            sides, constants, op = node.expression, [node.this], FLIPPED[op]
    else:
        return None
    if not sides.find(exp.Column) or isinstance(sides.unnest(), exp.Column):
        return None
    if any(constant.find(exp.Column) for constant in constants):
        return None
    return sides.unnest().sql("spark"), op, constants


def _literal(node: exp.Expr) -> Literal | None:
    """A constant written plainly; None for one that has to be computed."""
    node = node.unnest()
    match node:
        case exp.Literal():
            return Literal("string" if node.is_string else "number", node.this)
        case exp.Neg(this=exp.Literal() as inner) if not inner.is_string:
            return Literal("number", f"-{inner.this}")
        case exp.Boolean():
            return Literal("boolean", "true" if node.this else "false")
        case exp.Cast(this=exp.Literal() as inner) if inner.is_string and node.to.this == exp.DType.DATE:
            return Literal("date", inner.this.strip()[:10])
    return None
