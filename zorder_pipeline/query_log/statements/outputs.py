"""What a SELECT or a set operation hands out, and when a condition on its output is one on its input."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import islice

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from .clock import SPARKS
from .qualified import lower_path_of
from .relative import called

__all__ = ["FOREIGN", "Outputs", "cut_off", "large", "lets_through", "reshaped", "says_something", "select_of"]
__all__ += ["sources_of", "substituted", "varies"]

FOREIGN = "__foreign__"
MOST_NODES = 5_000
VARYING = (exp.Rand, exp.Randn, exp.Randstr, exp.Uniform, exp.Uuid, exp.Shuffle)
VARYING_CALLS = {"monotonically_increasing_id", "spark_partition_id", "input_file_name", "input_file_block_start"}
VARYING_CALLS |= {"input_file_block_length"}
BLOCKING = ("limit", "offset", "windows", "pivots", "match", "connect", "sample")


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


def varies(select: exp.Expr, dialect: str) -> bool:
    """Whether an output is another each time, so that Spark filters nothing before it; other engines may."""
    if dialect not in SPARKS:
        return False
    calls = {called(call) for item in select.expressions for call in item.find_all(exp.Anonymous)}
    return bool(VARYING_CALLS & calls) or any(item.find(*VARYING) for item in select.expressions)


def cut_off(query: exp.Expr) -> bool:
    """Whether a clause of a query, or of parentheses around it, looks at its rows: ``(SELECT a FROM t) LIMIT 10``."""
    node: exp.Expr | None = query
    while node is query or isinstance(node, exp.Subquery | exp.Paren):
        if any(node.args.get(name) for name in BLOCKING):
            return True
        node = node.parent
    return False


def lets_through(scope: Scope, dialect: str) -> bool:
    """Whether filtering the output by what is `Outputs.safe` equals filtering the input, and engines do it."""
    select = scope.expression
    if not isinstance(select, exp.Select) or cut_off(select):
        return False
    distinct = select.args.get("distinct")
    if (distinct is not None and distinct.args.get("on")) or varies(select, dialect):
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


class Outputs:
    """What a SELECT hands out that means the same for an input row.

    >>> from sqlglot import parse_one
    >>> from sqlglot.optimizer.scope import traverse_scope
    >>> query = parse_one("SELECT o.a, count(*) AS n, b + 1 AS c FROM t AS o GROUP BY A, b")
    >>> outputs = Outputs(traverse_scope(query)[0])
    >>> [outputs.safe(item.unalias()) is not None for item in query.expressions]
    [True, False, True]
    """

    def __init__(self, scope: Scope) -> None:
        select = self._select = scope.expression
        self._sources = frozenset(alias.lower() for alias in sources_of(scope))
        places = [*select.expressions, *(select.args[name] for name in ("qualify", "order") if select.args.get(name))]
        windows = (window for place in places for window in place.find_all(exp.Window))
        partitions = {tuple(window.args.get("partition_by") or ()) for window in windows}
        self._windows = [self._all(partition) for partition in partitions]
        aggregates = (call for item in select.expressions for call in item.find_all(exp.AggFunc))
        self._aggregates = not all(_is_of_window(call) for call in aggregates)

    def safe(self, node: exp.Expr | None) -> exp.Expr | None:
        """An output's expression, when it means the same for an input row and engines filter by it before windows.

        Of what windows see all rows of a partition or none are kept: so it is one of the keys that all of them are
        partitioned by. It is a column under its own name, as Spark takes no other output for a key.
        """
        if node is None or not all(self._is_plain(node) and partition.holds(node) for partition in self._windows):
            return None
        return self.before_windows(node)

    def before_windows(self, node: exp.Expr) -> exp.Expr | None:
        """An output's expression, when it means the same for an input row, whatever windows see of it.

        No aggregate, and one value for a group where there are any.
        """
        if node.find(exp.AggFunc, exp.Window, exp.Select, exp.Explode):
            return None
        if self._select.args.get("group"):
            return node if self.keys is not None and (self.keys.holds(node) or self._of_keys(node)) else None
        return None if self._aggregates else node

    @cached_property
    def keys(self) -> Expressions | None:
        """Expressions of GROUP BY; None without it, or when there is more than one set of them."""
        group, items = self._select.args.get("group"), self._select.expressions
        if group is None or group.args.get("totals") or group.find(exp.Rollup, exp.Cube, exp.GroupingSets):
            return None
        if group.args.get("all"):
            starred = any(item.unalias().is_star for item in items)
            return None if starred else self._all(item.unalias() for item in items if not item.find(exp.AggFunc))
        keys = []
        for key in group.expressions:
            place = int(key.this) if isinstance(key, exp.Literal) and key.this.isdecimal() else 0
            keys.append(items[place - 1].unalias() if 0 < place <= len(items) else key)
        return self._all(keys)

    @cached_property
    def named(self) -> dict[str, exp.Expr]:
        """What outputs with an alias are, by that name in lower case."""
        return {item.alias.lower(): item.unalias() for item in self._select.expressions if item.alias}

    def same(self, one: exp.Expr, other: exp.Expr) -> bool:
        """Whether both are surely the same column or expression."""
        return self._all([one]).holds(other)

    def _is_plain(self, node: exp.Expr) -> bool:
        """Whether it is a column, no field of one, that is handed out under its own name."""
        if not isinstance(node, exp.Column):
            return False
        path = lower_path_of(node)
        if isinstance(node.parent, exp.Alias) and node.parent.alias.lower() != path[-1]:
            return False
        return len(path) == 1 or (len(path) == 2 and path[0] in self._sources)

    def _all(self, items: Iterable[exp.Expr]) -> Expressions:
        return Expressions(items, self._sources)

    def _of_keys(self, node: exp.Expr) -> bool:
        """Whether an expression is made of keys: it is, or engines refuse it, unless it is some unknown aggregate, or
        calls an output beside it by its name.
        """
        if node.find(exp.Anonymous, exp.AnonymousAggFunc):
            return False
        for column in node.find_all(exp.Column):
            beside = self.named.get(column.name.lower()) if not column.table else None
            if beside is not None and beside is not node and not self.same(beside, column):
                return False
        return True


def _is_of_window(call: exp.Expr) -> bool:
    """Whether a function is a window's own, which keeps all rows: ``sum(x) OVER (PARTITION BY id)``."""
    return isinstance(call.parent, exp.Window) and call.arg_key == "this"


class Expressions:
    """Some expressions. Of columns it finds those with and without a qualifier: one without is the only one so called.

    Args:
        sources: names, in lower case, that qualify columns.
    """

    def __init__(self, items: Iterable[exp.Expr], sources: frozenset[str]) -> None:
        self._sources, self._others, self._paths = sources, set[exp.Expr](), set[tuple[str, ...]]()
        for item in items:
            if isinstance(item, exp.Column):
                self._paths.add(lower_path_of(item))
            else:
                self._others.add(item)
        self._names = {path[1] for path in self._paths if len(path) == 2 and path[0] in sources}

    def holds(self, node: exp.Expr) -> bool:
        """Whether ``node`` is surely one of them."""
        if not isinstance(node, exp.Column):
            return node in self._others
        path = lower_path_of(node)
        if path in self._paths or (len(path) == 1 and path[0] in self._names):
            return True
        return len(path) == 2 and path[0] in self._sources and path[1:] in self._paths
