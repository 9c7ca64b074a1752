"""Tables that statements name by a call: ``delta_scan('/lake/t')``, ``IDENTIFIER('db.t')``, ``TABLE('db.t')``."""

from __future__ import annotations

import re
from collections import defaultdict

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from .dialects import tokens_of

__all__ = ["CALLS", "with_called_tables"]

_OF_A_PLACE = "delta_scan"
CALLS = frozenset({_OF_A_PLACE, "identifier", "table"})
"""Functions of DuckDB, of Databricks and Snowflake, and of Snowflake that take the text of a table's name or place."""
_MAX_PARTS = 3


def with_called_tables(tree: exp.Expr, dialect: str) -> exp.Expr:
    """``tree``, changed: the table in the place of each call in FROM that names it by one text.

    Calls of anything else stay what they are, as do those of a text that is no name.

    >>> from sqlglot import parse_one
    >>> with_called_tables(parse_one("SELECT * FROM IDENTIFIER('db.t') AS x", read="spark"), "spark").sql("spark")
    'SELECT * FROM db.t AS x'
    >>> with_called_tables(parse_one("SELECT * FROM delta_scan('/lake/t')", read="duckdb"), "duckdb").sql("spark")
    'SELECT * FROM delta.`/lake/t` AS delta_scan'
    """
    unnamed: dict[int, list[exp.Expr]] = defaultdict(list)
    for node in list(tree.find_all(exp.Table, exp.TableFromRows)):
        name, text = _called(node)
        if text is None:
            continue
        parts = [exp.to_identifier(part) for part in ("delta", text)] if name == _OF_A_PLACE else []
        parts = parts or _parts(text, dialect)
        if not parts:
            continue
        table = node
        if not isinstance(node, exp.Table):
            table = exp.Table(**{key: value for key, value in node.args.items() if key != "this"})
            node.replace(table)
        for key, part in zip(("this", "db", "catalog"), reversed(parts), strict=False):
            table.set(key, part)
        if name == _OF_A_PLACE and not table.alias:
            unnamed[id(table.find_ancestor(exp.Select))].append(table)
    for tables in unnamed.values():
        if len(tables) == 1:  # DuckDB calls what has no alias by the function
            tables[0].set("alias", exp.TableAlias(this=exp.to_identifier(_OF_A_PLACE)))
    return tree


def _called(node: exp.Expr) -> tuple[str, str | None]:
    """The function by which a table is named, and the text that it is given; None where it is given anything else."""
    call = node.this
    if isinstance(node, exp.TableFromRows):
        name, given = "table", [call]
    elif isinstance(call, exp.DynamicIdentifier):
        name, given = "identifier", [call.this]
    elif isinstance(call, exp.Anonymous):
        name, given = call.name.lower(), call.expressions
    else:
        return "", None
    is_one = name in CALLS and len(given) == 1 and isinstance(given[0], exp.Literal) and given[0].is_string
    return name, given[0].name if is_one and not node.args.get("db") else None


def _parts(text: str, dialect: str) -> list[exp.Identifier]:
    """The parts of a name that stands in a text as it would in FROM; nothing of another text."""
    tokens = tokens_of(text, dialect) or []
    names, dots = tokens[::2], tokens[1::2]
    if len(names) > _MAX_PARTS or len(dots) != len(names) - 1 or any(dot.token_type != TokenType.DOT for dot in dots):
        return []
    quoted = [name.token_type == TokenType.IDENTIFIER for name in names]
    if not all(is_quoted or re.fullmatch(r"\w+", name.text) for name, is_quoted in zip(names, quoted, strict=True)):
        return []
    return [exp.to_identifier(name.text, is_quoted) for name, is_quoted in zip(names, quoted, strict=True)]
