"""Names of common table expressions in one case: Spark ignores case, sqlglot's scopes do not."""

from __future__ import annotations

from sqlglot import exp

__all__ = ["with_uniform_names"]


def with_uniform_names(tree: exp.Expr) -> exp.Expr:
    """``tree``, changed: common table expressions and what may name them in lower case.

    >>> from sqlglot import parse_one
    >>> with_uniform_names(parse_one("WITH Sold AS (SELECT 1) SELECT * FROM sold, Db.SOLD")).sql()
    'WITH sold AS (SELECT 1) SELECT * FROM sold, Db.SOLD'
    """
    names = [cte.args["alias"].this for cte in tree.find_all(exp.CTE) if cte.alias]
    known = {name.name.lower() for name in names}
    if known:
        tables = (table for table in tree.find_all(exp.Table) if not table.db)
        named = [table.this for table in tables if table.name.lower() in known]
        for name in (*names, *named):
            if isinstance(name, exp.Identifier):
                name.set("this", name.name.lower())
    return tree
