"""What a SELECT or a set operation hands out, and when a condition on its output is one on its input."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

__all__ = ["FOREIGN", "group_keys", "large", "lets_through", "reshaped", "safe_output", "says_something"]
__all__ += ["select_of", "sources_of", "substituted"]

FOREIGN = "__foreign__"
MOST_NODES = 5_000
BLOCKING = ("limit", "offset", "windows", "pivots", "match", "sample")


def sources_of(scope: Scope) -> dict[str, exp.Expr | Scope]:
    """What a SELECT reads, by alias; sqlglot keeps the right sides of SEMI and ANTI joins apart."""
    found: dict[str, exp.Expr | Scope] = {alias: source for alias, (_, source) in scope.selected_sources.items()}
    for join in scope.expression.args.get("joins") or []:
        name = join.this.alias_or_name
        if name not in found and name in scope.sources:
            found[name] = scope.sources[name]
    return found


def select_of(scope: Scope) -> exp.Select:
    """The SELECT that names the scope's output columns: of a set operation, its first one."""
    node = scope.expression
    while not isinstance(node, exp.Select):
        node = node.this
    return node


def substituted(part: exp.Expr, place: Callable[[exp.Column], exp.Expr | None]) -> exp.Expr:
    """``part`` with its columns replaced; one without a replacement becomes a name that nothing resolves."""

    def swap(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        found = place(node)
        if found is None:
            return exp.column("x", table=FOREIGN)
        return found.copy() if isinstance(found, exp.Column | exp.Literal) else exp.Paren(this=found.copy())

    return part.copy().transform(swap, copy=False)


def large(*parts: exp.Expr) -> bool:
    """Whether conditions have become too large to be handed on: a chain of tables may double them at each step."""
    return next(islice((node for part in parts for node in part.walk()), MOST_NODES, None), None) is not None


def says_something(part: exp.Expr) -> bool:
    """Whether a condition is about a column that is known, or about none: ``1 = 0``."""
    columns = list(part.find_all(exp.Column))
    return not columns or any(column.table != FOREIGN for column in columns)


def lets_through(scope: Scope) -> bool:
    """Whether filtering the output by what `safe_output` lets through equals filtering the input."""
    select = scope.expression
    if not isinstance(select, exp.Select) or any(select.args.get(name) for name in BLOCKING):
        return False
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        return False
    return not any(item.find(exp.Explode, exp.UDTF) for item in select.expressions)


def reshaped(scope: Scope) -> bool:
    """Whether a PIVOT, UNPIVOT or sample stands between what FROM names and what the SELECT filters."""
    nodes = [scope.expression.args.get("from_"), *(scope.expression.args.get("joins") or [])]
    items = [node.this for node in nodes if node is not None]
    while items:
        node = items.pop()
        if node.args.get("pivots") or node.args.get("sample"):
            return True
        items += [join.this for join in node.args.get("joins") or []]
        if isinstance(node, exp.Subquery | exp.Paren) and isinstance(node.this, exp.Table | exp.Subquery | exp.Paren):
            items.append(node.this)
    return False


def group_keys(select: exp.Expr) -> list[exp.Expr] | None:
    """Expressions of GROUP BY; None when the select aggregates without them, or by more than one set of them."""
    group = select.args.get("group")
    if group is None:
        return None
    if any(group.args.get(name) for name in ("rollup", "cube", "grouping_sets", "totals")):
        return None
    keys = []
    if group.args.get("all"):
        items = [item.unalias() for item in select.expressions]
        return None if any(item.is_star for item in items) else [i for i in items if not i.find(exp.AggFunc)]
    for item in group.expressions:
        if isinstance(item, exp.Literal) and item.this.isdigit() and int(item.this) <= len(select.expressions):
            item = select.expressions[int(item.this) - 1].unalias()
        keys.append(item)
    return keys


def safe_output(node: exp.Expr | None, scope: Scope) -> exp.Expr | None:
    """An output expression, when it means the same for an input row.

    No aggregate, a key where there is a group, and of what windows see all rows of a partition or none are kept: so it
    is one of the keys that all windows are partitioned by.
    """
    if node is None or node.find(exp.AggFunc, exp.Window, exp.Select, exp.Explode):
        return None
    select = scope.expression
    if not _kept_by_windows(node, scope):
        return None
    keys = group_keys(select)
    if keys is not None:
        return node if node in keys else None
    if select.args.get("group") or any(item.find(exp.AggFunc) for item in select.expressions):
        return None
    return node


def _kept_by_windows(node: exp.Expr, scope: Scope) -> bool:
    """Whether every window of the SELECT is partitioned by the expression."""
    select = scope.expression
    places = [*select.expressions, *(select.args[name] for name in ("qualify", "order") if select.args.get(name))]
    windows = [window for place in places for window in place.find_all(exp.Window)]
    if not windows:
        return True
    sources = {alias.lower() for alias in sources_of(scope)}
    return all(any(_same(node, key, sources) for key in window.args.get("partition_by") or []) for window in windows)


def _same(node: exp.Expr, key: exp.Expr, sources: set[str]) -> bool:
    """Whether both are the same column or expression: one without a qualifier is the only column of its name."""
    if isinstance(node, exp.Column) and isinstance(key, exp.Column):
        one, other = sorted(([part.name.lower() for part in column.parts] for column in (node, key)), key=len)
        return one == other or (len(one) == 1 and len(other) == 2 and other[0] in sources and one[0] == other[1])
    return node == key
