"""Catalyst's expressions as Spark prints them in plans, read back as SQL trees."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError

from .plan_grammar import CUT, NAME, Filters, Found, Grammar, SpentError

__all__ = ["catalyst_filters"]

MAX_NESTED = 300
_ATTRIBUTE = re.compile(r"[A-Za-z_][\w-]*#\d+L?|[A-Za-z_]\w*(?= (?:INSET|IN) )")
_SUBQUERY = re.compile(r"(?:Reused)?(?:Subquery )?(?:scalar-)?subquery#\d+(?:, \[[^\]]*\])?(?: \[[^\]]*\])?", re.I)
_ESCAPE = re.compile(r"(.*) ESCAPE '(.)'", re.DOTALL)
_TYPE = re.compile(r"[a-z_]+(?:\(\d+(?:,\s*-?\d+)?\))?")
OPERATORS: dict[str, type[exp.Binary]] = {
    "=": exp.EQ,
    "<=>": exp.NullSafeEQ,
    ">=": exp.GTE,
    "<=": exp.LTE,
    ">": exp.GT,
    "<": exp.LT,
    "AND": exp.And,
    "OR": exp.Or,
    "+": exp.Add,
    "-": exp.Sub,
    "*": exp.Mul,
    "/": exp.Div,
    "%": exp.Mod,
    "&&": exp.And,
    "||": exp.Or,
}


def catalyst_filters(text: str, types: Mapping[str, str]) -> Filters:
    r"""A list of Catalyst expressions (``DataFilters``, ``PartitionFilters``), or one condition (a ``Filter`` node).

    Args:
        types: Spark type by the column's name, as far as known.

    >>> found = catalyst_filters("[isnotnull(b#1), ((b#1 > 5) OR (c#2 = a, b))]", {"b": "int", "c": "string"})
    >>> [condition.sql() for condition in found.conditions]
    ['NOT "b" IS NULL', '(("b" > 5) OR ("c" = \'a, b\'))']
    """
    return _Catalyst(text, types).filters()


class _Catalyst(Grammar):
    """``toString`` of Catalyst expressions."""

    def expression(self, position: int) -> Iterator[Found]:
        self.spend()
        self.depth += 1
        if self.depth > MAX_NESTED:
            raise SpentError
        try:
            for node, end in self._primary(position):
                yield from self._postfix(node, end)
        finally:
            self.depth -= 1

    def _primary(self, position: int) -> Iterator[Found]:
        text = self.text
        if text.startswith("NOT ", position):
            for node, end in self.expression(position + 4):
                yield exp.Not(this=node), end
        elif text.startswith("(", position):
            yield from self._binary(position)
        elif text.startswith("-", position):
            for node, end in self.expression(position + 1):
                yield exp.Neg(this=node), end
        elif (subquery := _SUBQUERY.match(text, position)) is not None:
            yield exp.Placeholder(), subquery.end()
        else:
            yield from self._named(position)

    def _named(self, position: int) -> Iterator[Found]:
        text = self.text
        for name in self.odd:
            if text.startswith(name + "#", position):
                mark = re.compile(r"#\d+L?").match(text, position + len(name))
                if mark is not None:
                    yield self.column(name), mark.end()
                    return
        if (attribute := _ATTRIBUTE.match(text, position)) is not None:
            yield self.column(attribute.group().split("#")[0]), attribute.end()
        elif (name_of := NAME.match(text, position)) is not None:
            yield from self._call(name_of.group(), name_of.end() + 1)

    def _binary(self, position: int) -> Iterator[Found]:
        for left, end in self.expression(position + 1):
            for symbol, kind in OPERATORS.items():
                if not self.text.startswith(f" {symbol} ", end):
                    continue
                start = end + len(symbol) + 2
                logical = kind in (exp.And, exp.Or)
                for right, stop in self._operand(start, "" if logical else self.type_of(left), ")", logical=logical):
                    if self.text.startswith(")", stop):
                        yield exp.Paren(this=kind(this=left, expression=right)), stop + 1

    def _operand(self, position: int, kind: str, stops: str, logical: bool = False) -> Iterator[Found]:
        yield from self.expression(position)
        if not logical:
            yield from self.literal(position, kind, stops)

    def _postfix(self, node: exp.Expr, end: int) -> Iterator[Found]:
        text = self.text
        if isinstance(node, exp.Column) and (step := re.compile(r"\.(\w+)").match(text, end)) is not None:
            path = [*(part.name for part in node.parts), step.group(1)]
            yield from self._postfix(self.column(".".join(path)), step.end())
        if text.startswith(" IN (", end):
            yield from self._in(node, end + 5)
        if text.startswith(" INSET ", end):
            yield from self._inset(node, end + 7)
        for word, kind in ((" LIKE ", exp.Like), (" RLIKE ", exp.RegexpLike)):
            if text.startswith(word, end):
                for pattern, stop in self.literal(end + len(word), "string", ",)]"):
                    yield _matched(kind, node, pattern), stop
        yield node, end

    def _in(self, node: exp.Expr, position: int) -> Iterator[Found]:
        """``b#1 IN (1,2)``; Spark writes no space after its commas, so a comma with one belongs to a string."""
        kind, values, start = self.type_of(node), list[exp.Expr](), position
        for item, stop in self.literal(start, kind, ",)"):
            if self.text.startswith(", ", stop):
                continue
            values, start = [item], stop
            break
        while values and self.text.startswith(",", start):
            ends = self.literal(start + 1, kind, ",)")
            found = next(((item, stop) for item, stop in ends if not self.text.startswith(", ", stop)), None)
            if found is None:
                return
            values.append(found[0])
            start = found[1]
        if values and self.text.startswith(")", start):
            yield exp.In(this=node, expressions=values), start + 1

    def _inset(self, node: exp.Expr, position: int) -> Iterator[Found]:
        """A list without brackets, which ends where a text with an attribute begins."""
        kind, values, end = self.type_of(node), list[exp.Expr](), position
        while end < len(self.text):
            if (cut := CUT.match(self.text, end)) is not None:
                yield exp.In(this=node, expressions=[*values, exp.Literal.string(cut.group())]), cut.end()
                return
            item = next(iter(self.literal(end, kind, ",)]")), None)
            if item is None or "#" in item[0].sql() or self.text.startswith("isnotnull(", end):
                break
            values.append(item[0])
            end = item[1]
            if not self.text.startswith(", ", end):
                yield exp.In(this=node, expressions=values), end
                return
            end += 2
        if values:
            yield exp.In(this=node, expressions=values), end - 2

    def _call(self, name: str, position: int) -> Iterator[Found]:
        if name.lower() in ("cast", "try_cast", "ansi_cast"):
            for inner, end in self._operand(position, "", " "):
                kind = _TYPE.match(self.text, end + 4) if self.text.startswith(" as ", end) else None
                if kind is not None and self.text.startswith(")", kind.end()):
                    yield exp.cast(inner, kind.group(), dialect="spark"), kind.end() + 1
            return
        for arguments, end in self._arguments(position, []):
            yield _function(name, arguments), end

    def _arguments(self, position: int, found: list[exp.Expr]) -> Iterator[tuple[list[exp.Expr], int]]:
        if self.text.startswith(")", position) and not found:
            yield [], position + 1
            return
        kind = "string" if found and self.type_of(found[0]) == "string" else ""
        for node, end in self._operand(position, kind, ",)"):
            if self.text.startswith(")", end):
                yield [*found, node], end + 1
            elif self.text.startswith(", ", end):
                yield from self._arguments(end + 2, [*found, node])


def _matched(kind: type[exp.Binary], node: exp.Expr, pattern: exp.Expr) -> exp.Expr:
    """LIKE or RLIKE; of LIKE, Spark prints an escape character that is not its own after the pattern."""
    told = _ESCAPE.fullmatch(pattern.name) if kind is exp.Like else None
    if told is None:
        return kind(this=node, expression=pattern)
    like = kind(this=node, expression=exp.Literal.string(told[1]))
    return exp.Escape(this=like, expression=exp.Literal.string(told[2]))


def _function(name: str, arguments: list[exp.Expr]) -> exp.Expr:
    """A call as the tree that its SQL text would give."""
    lowered = name.lower()
    given = [a for a in arguments if not _is_option(a)]
    if lowered in ("isnotnull", "isnull") and len(given) == 1:
        node = exp.Is(this=given[0], expression=exp.Null())
        return exp.Not(this=node) if lowered == "isnotnull" else node
    if lowered == "knownnotnull" and len(given) == 1:
        return given[0]
    known = {"startswith": exp.StartsWith, "endswith": exp.EndsWith, "contains": exp.Contains}
    if lowered in known and len(given) == 2:
        return known[lowered](this=given[0], expression=given[1])
    try:
        return exp.func(lowered, *given, dialect="spark")
    except (SqlglotError, ValueError, TypeError, IndexError):
        return exp.Anonymous(this=name, expressions=given)


def _is_option(node: exp.Expr) -> bool:
    """Whether an argument is Scala's ``Some(...)`` or ``None``: a session's time zone, what ``trim`` takes away."""
    if isinstance(node, exp.Literal):
        return node.is_string and node.this == "None"
    return isinstance(node, exp.Anonymous) and str(node.this) in ("Some", "None")
