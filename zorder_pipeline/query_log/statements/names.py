"""Names as sqlglot's scopes take them: of common table expressions in one case, and of tables in FROM no two alike."""

from __future__ import annotations

from collections import defaultdict

from sqlglot import exp

from .qualified import column_of, lower_path_of, names_of, path_of

__all__ = ["with_uniform_names"]


def with_uniform_names(tree: exp.Expr) -> exp.Expr:
    """``tree``, changed: common table expressions and what may name them in lower case, and an alias for each table in
    a FROM that has several of one name, which are told apart by their schemas.

    >>> from sqlglot import parse_one
    >>> with_uniform_names(parse_one("WITH Sold AS (SELECT 1) SELECT * FROM SOLD")).sql()
    'WITH sold AS (SELECT 1) SELECT * FROM sold'
    >>> with_uniform_names(parse_one("SELECT * FROM a.t JOIN b.t ON a.t.x = b.t.x")).sql()
    'SELECT * FROM a.t AS t__1 JOIN b.t AS t__2 ON t__1.x = t__2.x'
    """
    names = [cte.args["alias"].this for cte in tree.find_all(exp.CTE) if cte.alias]
    known = {name.name.lower() for name in names}
    if known:
        tables = (table for table in tree.find_all(exp.Table) if not table.db)
        named = [table.this for table in tables if table.name.lower() in known]
        for name in (*names, *named):
            if isinstance(name, exp.Identifier):
                name.set("this", name.name.lower())
    for select in tree.find_all(exp.Select):
        _tell_apart(select)
    return tree


def _tell_apart(select: exp.Select) -> None:
    """Give tables of one name in FROM, changed, aliases by which columns with their full names find them."""
    named: dict[str, list[exp.Table]] = defaultdict(list)
    for part in (select.args.get("from_"), *(select.args.get("joins") or [])):
        table = part.this if part is not None else None
        if isinstance(table, exp.Table) and not table.alias and isinstance(table.this, exp.Identifier):
            named[table.name.lower()].append(table)
    called: dict[tuple[str, ...], str] = {}
    for name, tables in named.items():
        full = [tuple(part.name.lower() for part in table.parts) for table in tables]
        if len(tables) < 2 or len(set(full)) < len(tables):
            continue
        for number, table in enumerate(tables, 1):
            alias, (*ends, _) = f"{name}__{number}", names_of(name, table)
            table.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
            called |= {end: alias for end in ends if sum(other[-len(end) :] == end for other in full) == 1}
    for column in list(select.find_all(exp.Column)) if called else ():
        path, lowered = path_of(column), lower_path_of(column)
        found = next((end for end in range(2, len(path)) if lowered[:end] in called), None)
        if found is not None and column.find_ancestor(exp.Select) is select:
            own = column_of(path[found:], called[lowered[:found]])
            if own is not None:
                column.replace(own)
