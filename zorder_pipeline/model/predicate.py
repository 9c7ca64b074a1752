"""Predicates as a query log states them: a tree over comparisons of one column with literals, not yet typed.

The tree is deliberately small: ``And``, ``Or``, ``Comparison`` and ``Opaque`` (a condition that is known to exist but
that no min/max statistic can answer). NOT is pushed down before a tree is built. `zorder_pipeline.model.ranges` types a
tree by a table's schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, TypeAlias

__all__ = ["FALSE", "FLIPPED", "REPEATED_GROUP", "TRUE", "VARIABLE", "And", "Comparison", "Literal", "Opaque", "Or"]
__all__ += ["Predicate", "as_solved", "begins_as", "comparison_sql", "comparisons", "conjuncts", "day_literal"]
__all__ += ["lies_in", "predicate_from_json", "predicate_to_json"]

OPS = ("=", "<=>", "<>", "<", "<=", ">", ">=", "between", "in", "not_in", "starts_with", "is_null", "is_not_null")
FLIPPED = {"=": "=", "<=>": "<=>", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""Each operator to the one that says the same with its sides exchanged."""
_HIDDEN = "?"
VARIABLE = "${"
"""What Spark puts a setting, or a variable of the driver's environment, in the place of, within quotes too, before it
parses a text: text from a log that holds it is never evaluated."""
REPEATED_GROUP = re.compile(r"\)[*+{]")
"""What in a pattern may take Java a time that doubles with each character of a text, as ``(a+)+$`` does, and more calls
in calls than its stack has room for: such a pattern from a log is never evaluated."""


@dataclass(frozen=True)
class Literal:
    """A constant as the log states it.

    ``text`` is a decimal number, a string, an ISO date, an ISO timestamp (``timestamp`` always carries an offset or Z,
    ``timestamp_ntz`` never does), ``true``/``false``, hex digits, or empty for null.
    """

    kind: str
    text: str = ""

    def to_sql(self, redact: bool = False) -> str:
        """The literal in Spark SQL, or ``?`` when literals are to be hidden.

        >>> Literal("string", "it's").to_sql(), Literal("date", "2024-01-31").to_sql(redact=True)
        ("'it''s'", '?')
        """
        if redact:
            return _HIDDEN
        if self.kind in ("number", "boolean"):
            return self.text
        if self.kind == "null":
            return "NULL"
        quoted = "'" + self.text.replace("'", "''") + "'"
        prefix = {"string": "", "binary": "X"}.get(self.kind, self.kind.upper() + " ")
        return prefix + quoted


TRUE, FALSE = Literal("boolean", "true"), Literal("boolean", "false")


@dataclass(frozen=True)
class Comparison:
    """``column op literals``; ``between`` has two literals, ``in``/``not_in`` any number, ``is_null`` none.

    Attributes:
        column: name as the log writes it, a dotted path for struct fields.
        derived: the comparison is implied by the statement, not written in it (a solved expression, a join's other
            side), so it restricts rows but counts as no form of its own.
        solved: it was solved out of an expression (``year(ts) = 2024``) that neither Delta's nor Parquet's statistics
            are asked for: of a column that does not partition the table only scans through ``reading/`` skip by it.
    """

    column: str
    op: str
    literals: tuple[Literal, ...] = ()
    derived: bool = False
    solved: bool = False

    def __post_init__(self) -> None:
        if self.op not in OPS:
            raise ValueError(f"unknown operator {self.op!r}; one of {', '.join(OPS)}")

    def to_sql(self, redact: bool = False) -> str:
        """The comparison in Spark SQL.

        >>> Comparison("ship", "between", (Literal("number", "1"), Literal("number", "5"))).to_sql()
        'ship BETWEEN 1 AND 5'
        """
        values = [literal.to_sql(redact) for literal in self.literals]
        hidden = redact and self.op in ("in", "not_in")  # how many there are can tell something, too
        return comparison_sql(self.column, self.op, [_HIDDEN] if hidden else values)


def comparison_sql(column: str, op: str, values: Sequence[str]) -> str:
    """A comparison in Spark SQL; column and values are SQL already.

    >>> comparison_sql("`a b`", "not_in", ["1", "2"]), comparison_sql("c", "is_not_null", [])
    ('`a b` NOT IN (1, 2)', 'c IS NOT NULL')
    """
    match op:
        case "between":
            return f"{column} BETWEEN {values[0]} AND {values[1]}"
        case "in" | "not_in":
            return f"{column} {'NOT ' if op == 'not_in' else ''}IN ({', '.join(values)})"
        case "starts_with":
            return f"startswith({column}, {values[0]})"
        case "is_null" | "is_not_null":
            return f"{column} IS {'NOT ' if op == 'is_not_null' else ''}NULL"
    return f"{column} {op} {values[0]}"


@dataclass(frozen=True)
class Opaque:
    """A condition no min/max answers.

    Attributes:
        form: its kind (``like``, ``function``, ``column_comparison``, ...).
        columns: the columns it looks at.
        expression: the condition in Spark SQL, rebuilt from allow-listed deterministic functions; "" where it holds
            anything else, so that it can be known to exist but never evaluated. Of a condition on partition columns in
            a plan of the session itself it is Spark's own text.
    """

    form: str
    columns: tuple[str, ...] = ()
    expression: str = ""

    def to_sql(self, redact: bool = False) -> str:
        """The condition, or a readable stand-in where it is unknown or its literals are to be hidden."""
        if self.expression and not redact:
            return self.expression
        return f"<{self.form} over {', '.join(self.columns) or 'no column'}>"


@dataclass(frozen=True)
class And:
    """All children hold; without children it is TRUE."""

    children: tuple[Predicate, ...] = ()

    def to_sql(self, redact: bool = False) -> str:
        """The conjunction in Spark SQL (``TRUE`` when empty)."""
        return " AND ".join(_nested(child, Or, redact) for child in self.children) or "TRUE"


@dataclass(frozen=True)
class Or:
    """At least one child holds; without children it is FALSE."""

    children: tuple[Predicate, ...] = ()

    def to_sql(self, redact: bool = False) -> str:
        """The disjunction in Spark SQL (``FALSE`` when empty)."""
        return " OR ".join(_nested(child, And, redact) for child in self.children) or "FALSE"


Predicate: TypeAlias = And | Or | Comparison | Opaque


def day_literal(day: date) -> Literal:
    """A day as a constant."""
    return Literal("date", day.isoformat())


def lies_in(column: str, op: str, start: Literal, end: Literal, *, derived: bool, solved: bool) -> Predicate:
    """``f(column) op v`` where f maps exactly the values from ``start`` up to ``end`` to v, the others in their order.

    Args:
        op: one of `FLIPPED`.
        derived, solved: see `Comparison`.

    Raises:
        ValueError: it is another one.

    >>> year = day_literal(date(2024, 1, 1)), day_literal(date(2025, 1, 1))
    >>> lies_in("d", "<=", *year, derived=True, solved=True).to_sql()
    "d < DATE '2025-01-01'"
    """

    def beside(op: str, value: Literal) -> Comparison:
        return Comparison(column, op, (value,), derived, solved)

    match op:
        case "=" | "<=>":
            return And((beside(">=", start), beside("<", end)))
        case "<>":
            return Or((beside("<", start), beside(">=", end)))
        case _ if op not in FLIPPED:
            raise ValueError(f"days are not compared by {op}")
    return beside("<" if op in ("<", "<=") else ">=", start if op in ("<", ">=") else end)


def as_solved(predicate: Predicate) -> Predicate:
    """The predicate as one that only scans through ``reading/`` skip by, see `Comparison`.

    >>> as_solved(Or((Comparison("a", "is_null"),))).children[0].solved
    True
    """
    match predicate:
        case Comparison():
            return replace(predicate, derived=True, solved=True)
        case Or(()):  # which Delta does not see either: nothing is said, where it says no
            return And(())
        case And(children) | Or(children):
            return replace(predicate, children=tuple(map(as_solved, children)))
    return predicate


def begins_as(column: str, text: str, size: int, *, derived: bool) -> Predicate:
    """Where the first ``size`` characters of a column are ``text``: what is shorter than they is all of the value.

    A longer one no value has. That, too, is said by a comparison that only scans through ``reading/`` see.
    """
    op = "=" if len(text) < size else "starts_with"
    return Comparison(column, op, (Literal("string", text),), derived, solved=True)


def _nested(child: Predicate, other: type, redact: bool) -> str:
    text = child.to_sql(redact)
    return f"({text})" if isinstance(child, other) and len(getattr(child, "children", ())) > 1 else text


def comparisons(predicate: Predicate) -> Iterator[Comparison]:
    """Every comparison in the tree, left to right.

    >>> [c.op for c in comparisons(And((Comparison("a", "is_null"), Or((Comparison("b", "is_not_null"),)))))]
    ['is_null', 'is_not_null']
    """
    if isinstance(predicate, Comparison):
        yield predicate
    elif isinstance(predicate, And | Or):
        for child in predicate.children:
            yield from comparisons(child)


def conjuncts(predicate: Predicate) -> Iterator[Predicate]:
    """What all has to hold, left to right: no conjunctions any more; a disjunction is one of them, whole.

    >>> [part.to_sql() for part in conjuncts(And((Comparison("a", "is_null"), And((Or(()), And(()))))))]
    ['a IS NULL', 'FALSE']
    """
    if isinstance(predicate, And):
        for child in predicate.children:
            yield from conjuncts(child)
    else:
        yield predicate


def predicate_to_json(predicate: Predicate) -> dict[str, Any]:
    """A JSON-ready form; `predicate_from_json` is its inverse. The enclosing record carries the format's version.

    >>> predicate_to_json(Comparison("a", "=", (Literal("number", "1"),)))
    {'column': 'a', 'op': '=', 'literals': [['number', '1']]}
    """
    match predicate:
        case And(children) | Or(children):
            key = "and" if isinstance(predicate, And) else "or"
            return {key: [predicate_to_json(child) for child in children]}
        case Opaque(form, columns, expression):
            opaque: dict[str, Any] = {"opaque": form, "columns": list(columns)}
            return opaque | {"expression": expression} if expression else opaque
        case Comparison(column, op, literals, derived, solved):
            data: dict[str, Any] = {"column": column, "op": op, "literals": [[lit.kind, lit.text] for lit in literals]}
            return data | {name: True for name, flag in (("derived", derived), ("solved", solved)) if flag}


def predicate_from_json(data: dict[str, Any]) -> Predicate:
    """The predicate that `predicate_to_json` wrote.

    Raises:
        ValueError: the data is no predicate of this format.
    """
    if "and" in data:
        return And(tuple(predicate_from_json(child) for child in data["and"]))
    if "or" in data:
        return Or(tuple(predicate_from_json(child) for child in data["or"]))
    if "opaque" in data:
        expression = data.get("expression", "")
        return Opaque(data["opaque"], tuple(data["columns"]), "" if VARIABLE in expression else expression)
    if "column" not in data:
        raise ValueError(f"no predicate: {sorted(data)}")
    literals = tuple(Literal(kind, text) for kind, text in data["literals"])
    flags = bool(data.get("derived", False)), bool(data.get("solved", False))
    return Comparison(data["column"], data["op"], literals, *flags)
