"""What a condition of a statement is read with: whose columns are meant, of what types, and when it ran."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from zorder_pipeline.model.predicate import Comparison, Literal
from zorder_pipeline.model.schema import Column

from .clock import Clock
from .literals import single_of
from .qualified import path_of

__all__ = ["Context"]

EXACT_DIGITS = 15
"""Decimal digits that every double keeps."""
_OF_SINGLES = ("trino", "presto", "duckdb")
"""Dialects that compare a column of type FLOAT with 0.1 as singles; the others make doubles of both, so that none is
equal."""


@dataclass(frozen=True)
class Context:
    """What a condition is read with.

    Attributes:
        resolve: the column's name when it belongs to the table in question, else None.
        clock: when the statement ran, for relative time; notes what could not be resolved.
        type_of: the table's column of that name, where the schema is known.
    """

    resolve: Callable[[exp.Column], str | None]
    clock: Clock
    type_of: Callable[[str], Column | None] = lambda _: None

    def column(self, node: exp.Expr) -> str | None:
        """Name of the table's column that ``node`` is."""
        node = node.unnest()
        return self.resolve(node) if isinstance(node, exp.Column) else None

    def typed(self, node: exp.Expr) -> tuple[str, Column | None] | None:
        """The same with the column's entry in the schema, where that is known."""
        name = self.column(node)
        return None if name is None else (name, self.type_of(name))

    def path(self, node: exp.Expr) -> tuple[str, ...] | None:
        """Path of the table's column that ``node`` is; where the schema is not known, as the statement writes it."""
        node = node.unnest()
        name = self.column(node)
        if name is None or not isinstance(node, exp.Column):
            return None
        if (column := self.type_of(name)) is not None:
            return column.parts
        written = path_of(node)
        for first in range(len(written)):  # behind qualifiers
            if (own := ".".join(written[first:])).lower() == name.lower():
                return written[first:] if own == name else tuple(part.lower() for part in written[first:])
        return tuple(name.split("."))

    def partitions(self, name: str) -> bool:
        """Whether the column is known to be one that partitions the table."""
        column = self.type_of(name)
        return column is not None and column.partition

    def family(self, name: str) -> str:
        """Family of the column's type, "" where it is not known."""
        column = self.type_of(name)
        return column.value_type.family if column is not None else ""

    def compared(
        self, name: str, op: str, literals: tuple[Literal, ...], derived: bool = False, as_double: bool = False
    ) -> Comparison | None:
        """A comparison of the column with literals; None where Spark would cast one of them otherwise than we do.

        Args:
            as_double: the statement makes a double of the column.
        """
        real = [literal.kind == "number" and "e" in literal.text.lower() for literal in literals]
        # a list has one type, and as doubles long numbers are equal that are not; BETWEEN is two comparisons
        mixed = op == "in" and not all(real) and self._long(name, literals)
        if any(real) and mixed:
            return None
        if not as_double and not any(real) and self.clock.dialect in _OF_SINGLES and self._is_single(name):
            literals = tuple(single_of(literal) for literal in literals)
        return Comparison(name, op, literals, derived)

    def _is_single(self, name: str) -> bool:
        column = self.type_of(name)
        return column is not None and column.type == "float"

    def _long(self, name: str, literals: tuple[Literal, ...]) -> bool:
        """Whether a value of the column, or a literal that it is compared with, may have no double of its own."""
        column = self.type_of(name)
        if column is None or column.value_type.family == "float":
            return False
        if column.value_type.digits > EXACT_DIGITS:
            return True
        return any(sum(map(str.isdigit, literal.text)) > EXACT_DIGITS for literal in literals)
