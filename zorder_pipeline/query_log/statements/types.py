"""The column that a node of a statement is, and its type."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from zorder_pipeline.model.schema import Column

__all__ = ["INSTANTS", "Find", "is_own_type"]

Find = Callable[[exp.Expr], tuple[str, Column | None] | None]
"""Name and, where known, schema entry of the table's column that a node is."""
INSTANTS = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ)


def is_own_type(column: Column, to: exp.DataType) -> bool:
    """Whether a cast to a type changes nothing, as the column has it."""
    match column.value_type.family:
        case "string":
            return to.this in (exp.DType.TEXT, exp.DType.VARCHAR) and not to.expressions
        case "timestamp":
            return to.this in INSTANTS and not to.expressions
        case "timestamp_ntz":
            return to.this == exp.DType.TIMESTAMPNTZ and not to.expressions
    return to == exp.DataType.build(column.type, dialect="spark")
