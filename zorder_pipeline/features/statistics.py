"""Which columns, expressions and predicates deserve statistics of their own, and how a query is answered by them.

Seed 004 (4.1.2, 4.3) keeps statistics of what the key is made of, and *additional* ones of what queries ask for
besides: here all of them are `Feature` values, and a query asks them through columns that stand for them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from zorder_pipeline.model.file_stats import Feature, rounded
from zorder_pipeline.model.literals import type_literal
from zorder_pipeline.model.predicate import (
    FALSE,
    TRUE,
    And,
    Comparison,
    Literal,
    Opaque,
    Or,
    Predicate,
    comparison_sql,
    comparisons,
)
from zorder_pipeline.model.ranges import to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.spark_sql import boxes_sql, column_sql, value_sql
from zorder_pipeline.model.values import ValueType
from zorder_pipeline.model.workload import LoggedQuery

from .expressions import LOOKED_UP, ExpressionCandidate, compared_with
from .predicates import PredicateCandidate

__all__ = ["MAX_FEATURES", "enriched", "features_of", "predicate_sql", "worth_keeping"]

MAX_FEATURES = 48
"""Features that statistics are kept of at most: each is evaluated on every row that is rewritten."""
_COLUMN = r"`[^`]+`|[A-Za-z_][\w.]*"
_COMPARED = rf"(?P<left>{_COLUMN}) (?:<|<=|>|>=|=|<>) (?P<right>{_COLUMN})"
_REJECTING = re.compile(rf"(?P<not>NOT \()?(?:(?P<like>{_COLUMN}) LIKE '[^'\\]*'|{_COMPARED})(?(not)\))")
"""Conditions that a null in one of their columns makes null: Spark, and so Delta, also asks that it is none."""
_CONTAINED = re.compile(r"(?P<column>`[^`]+`|[\w.]+) LIKE '(?P<front>%)(?P<text>[^%_\\']+)(?P<back>%?)'")
TIMES = ("timestamp", "timestamp_ntz")
_Names: TypeAlias = Mapping[tuple[str, str], tuple[str, str]]
"""Kind and name of a feature to the column that stands for it, and the feature's type."""


def features_of(
    queries: Sequence[LoggedQuery],
    weights: Sequence[float],
    schema: TableSchema,
    paths: Mapping[str, tuple[str, ...]],
    expressions: Sequence[ExpressionCandidate],
    predicates: Sequence[PredicateCandidate],
    zone: str = "UTC",
) -> tuple[Feature, ...]:
    """What statistics should be kept of, the most frequent first.

    Of columns only where Delta's min/max do not do: those looked up by equality, strings (Delta cuts their bounds),
    and those that have no min/max in Delta's log at all.

    Args:
        weights: one per query.
        paths: path of each column by its name in ``schema``.
        expressions, predicates: the workload's candidates.
        zone: session time zone in which predicates are evaluated.
    """
    found = [*_columns(queries, weights, schema, paths)]
    for expression in expressions:
        if expression.chosen:
            text, weight = expression.expression, expression.frequency
            found.append(Feature(text, "expression", "", text, expression.columns, expression.looked_up, weight))
    for candidate in predicates:
        sql = predicate_sql(candidate.predicate, schema, paths, zone)
        if sql is not None and not _served_by_column(candidate.predicate):
            name, columns = candidate.predicate.to_sql(), _columns_of(candidate.predicate)
            own = zone if _zoned(candidate.predicate, schema) else ""
            found.append(Feature(name, "predicate", "boolean", sql, columns, False, candidate.frequency, own))
    return tuple(sorted(found, key=lambda feature: -feature.weight)[:MAX_FEATURES])


def worth_keeping(features: Sequence[Feature]) -> tuple[Feature, ...]:
    """The features without predicates that bounds of an expression answer, which are only there to cluster by."""
    expressions = {feature.name for feature in features if feature.kind == "expression"}
    return tuple(
        feature
        for feature in features
        if feature.kind != "predicate" or (found := compared_with(feature.name)) is None or found[0] not in expressions
    )


def _columns(
    queries: Sequence[LoggedQuery], weights: Sequence[float], schema: TableSchema, paths: Mapping[str, tuple[str, ...]]
) -> Iterable[Feature]:
    asked: dict[Column, float] = defaultdict(float)
    looked_up: set[Column] = set()
    for query, weight in zip(queries, weights, strict=True):
        seen = dict[Column, None]()  # in order: of those asked for alike, the first ones are kept
        for leaf in comparisons(query.predicate):
            column = schema.find(leaf.column)
            if column is None or column.partition or not column.value_type.orderable:
                continue
            if leaf.op in LOOKED_UP:
                looked_up.add(column)
            seen[column] = None
        for column in seen:
            asked[column] += weight
    for column, weight in asked.items():
        lacking = not column.delta_stats or column.value_type.family in ("string", "boolean")
        if column in looked_up or lacking:
            sql = column_sql(paths[column.name])
            yield Feature(column.name, "column", column.type, sql, (column.name,), column in looked_up, weight)


def _served_by_column(predicate: Predicate) -> bool:
    """Whether it is a comparison of one column that zones or a Bloom filter of the column answer."""
    return isinstance(predicate, Comparison) and predicate.op not in ("<>", "not_in")


def _columns_of(predicate: Predicate) -> tuple[str, ...]:
    match predicate:
        case And(children) | Or(children):
            return tuple(dict.fromkeys(name for child in children for name in _columns_of(child)))
        case Opaque(columns=columns):
            return columns
    return (predicate.column,)


def _zoned(predicate: Predicate, schema: TableSchema) -> bool:
    """Whether a time in it is another instant in another session time zone."""
    columns = (schema.find(leaf.column) for leaf in comparisons(predicate))
    return any(column is not None and column.value_type.family in TIMES for column in columns)


def predicate_sql(
    predicate: Predicate, schema: TableSchema, paths: Mapping[str, tuple[str, ...]], zone: str = "UTC"
) -> str | None:
    """A condition true for at least the rows that satisfy ``predicate``, made of typed values and rebuilt trees.

    None when nothing is known of a part of it.
    """
    match predicate:
        case And(children) | Or(children):
            parts = [predicate_sql(child, schema, paths, zone) for child in children]
            known = [f"({part})" for part in parts if part is not None]
            if len(known) < len(parts) or not known:
                return None
            return (" AND " if isinstance(predicate, And) else " OR ").join(known)
        case Opaque(expression=expression):
            return expression or None
    boxes = to_boxes(predicate, schema, zone, solved=True)
    listed = replace(predicate, op="in") if predicate.op == "not_in" else predicate  # no range answers a NOT IN
    if to_boxes(listed, schema, zone, solved=True) == ((),):
        return None
    compared = _compared_sql(predicate, schema, paths, zone)
    return boxes_sql(boxes, dict(paths)) if compared is None and boxes != ((),) else compared


def _compared_sql(leaf: Comparison, schema: TableSchema, paths: Mapping[str, tuple[str, ...]], zone: str) -> str | None:
    """The comparison as it stands in Spark's plan of a query, by which it is found again; None of an inexact one."""
    column = schema.find(leaf.column)
    if column is None or leaf.solved:
        return None
    typed = [type_literal(literal, column.value_type, zone) for literal in leaf.literals if literal.kind != "null"]
    exact = [item.value for item in typed if item is not None and item.exact]
    if len(exact) < len(leaf.literals):
        return None
    name, numeric = column_sql(paths[column.name]), column.value_type.family in ("integer", "decimal", "float")
    values = [value_sql(value, column.value_type) for value in exact]
    values = [f"CAST({value} AS {column.type})" for value in values] if numeric else values
    return comparison_sql(name, leaf.op, values) if values or leaf.op not in ("in", "not_in") else None


def enriched(predicate: Predicate, columns: Mapping[Feature, str]) -> Predicate:
    """``predicate`` and what it says of features, as comparisons of the columns that stand for them: the same rows.

    What is said of a double may hold for more rows: where it stands for a decimal, larger means no less.

    Args:
        columns: the column of each feature, from `zorder_pipeline.model.file_stats.widened`.

    >>> feature = Feature("c LIKE '%x%'", "predicate", "boolean", "c LIKE '%x%'", ("c",))
    >>> enriched(Opaque("like", ("c",), "c LIKE '%x%'"), {feature: "f"}).to_sql()
    "c LIKE '%x%' AND f = true AND c IS NOT NULL"
    """
    names: _Names = {
        (feature.kind, _normal(feature.name)): (column, feature.type)
        for feature, column in columns.items()
        if feature.kind != "column"
    }
    return _enriched(predicate, names)


def _normal(text: str) -> str:
    """One spelling of what Spark's optimizer, and so a recorded plan, spells otherwise.

    >>> _normal("c LIKE '%x y%'"), _normal("c LIKE '%x_y%'")
    ("CONTAINS(c, 'x y')", "c LIKE '%x_y%'")
    """
    found = _CONTAINED.fullmatch(text)
    if found is None:
        return text
    name = {("%", "%"): "CONTAINS", ("%", ""): "ENDSWITH"}[found["front"], found["back"]]
    return f"{name}({found['column']}, '{found['text']}')"


def _enriched(predicate: Predicate, names: _Names) -> Predicate:
    said: list[Predicate] = []
    if (not isinstance(predicate, Opaque) or predicate.expression) and (
        found := names.get(("predicate", _normal(predicate.to_sql())))
    ) is not None:
        said.append(Comparison(found[0], "=", (TRUE,)))
    match predicate:
        case And(children):
            return And((*(_enriched(child, names) for child in children), *said))
        case Or(children):
            predicate = Or(tuple(_enriched(child, names) for child in children))
        case Opaque(expression=text) if text:
            said += _of_opaque(text, names)
    return And((predicate, *said)) if said else predicate


def _of_opaque(text: str, names: _Names) -> Iterable[Comparison]:
    if (found := _REJECTING.fullmatch(text)) is not None:
        for column in dict.fromkeys(found.group("like", "left", "right")):
            if column and column.upper() not in ("TRUE", "FALSE", "NULL"):
                yield Comparison(column.replace("`", ""), "is_not_null")
    if text.startswith("NOT (") and text.endswith(")"):
        inner = names.get(("predicate", _normal(text[5:-1])))
        if inner is not None:
            yield Comparison(inner[0], "=", (FALSE,))
    if any(kind == "expression" for kind, _ in names) and (compared := compared_with(text)) is not None:
        subject, op, literals = compared
        named = names.get(("expression", subject))
        if named is not None and all(_alike(literal, op, named[1]) for literal in literals):
            yield Comparison(named[0], rounded(op, named[1]), literals)


def _alike(literal: Literal, op: str, feature_type: str) -> bool:
    """Whether a literal is typed by the feature alone, whatever the session's rules of casts are."""
    family = ValueType.parse(feature_type).family
    if literal.kind == "string":
        return family == "string" or (family in ("date", "timestamp", "timestamp_ntz") and op != "in")
    return literal.kind != "number" or "e" not in literal.text.lower() or family == "float"
