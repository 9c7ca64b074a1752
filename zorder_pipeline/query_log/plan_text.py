"""Filters as Spark prints them in plans, read back as SQL trees.

A grammar of Catalyst's ``toString`` (``[isnotnull(b#1), (b#1 > 5), c#2 IN (x,y)]``) and of the data source filters
(``[IsNotNull(b), GreaterThan(b,5), In(c, [x,y])]``). Both print strings without quotes, so the text is ambiguous where
a string holds a bracket or a comma: the parser backtracks, taking the shortest literal with which everything after it
still can be read. A filter that cannot be read, or that Spark cut off, is left out and reported as missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.errors import SqlglotError

__all__ = ["Filters", "catalyst_filters", "source_filters"]

Found = tuple[exp.Expr, int]
BUDGET = 20_000
"""Alternatives tried before a text is given up."""
MAX_TEXT = 200_000
MAX_NESTED = 60
CUT = re.compile(r"\.\.\. \d+ more fields?|\.\.\.(?=[\])]|$)")
_ATTRIBUTE = re.compile(r"[A-Za-z_][\w-]*#\d+L?|[A-Za-z_]\w*(?= (?:INSET|IN) )")
_SUBQUERY = re.compile(r"(?:Reused)?(?:Subquery )?(?:scalar-)?subquery#\d+(?:, \[[^\]]*\])?(?: \[[^\]]*\])?", re.I)
_NAME = re.compile(r"[A-Za-z_]\w*(?=\()")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:BD|[LDFSY])?(?![\w.:-])")
_TYPE = re.compile(r"[a-z_]+(?:\(\d+(?:,\s*-?\d+)?\))?")
_NUMERIC = re.compile(r"tinyint|smallint|int|integer|bigint|float|double|decimal.*|byte|short|long")
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
SOURCES: dict[str, type[exp.Expr]] = {
    "EqualTo": exp.EQ,
    "EqualNullSafe": exp.NullSafeEQ,
    "GreaterThan": exp.GT,
    "GreaterThanOrEqual": exp.GTE,
    "LessThan": exp.LT,
    "LessThanOrEqual": exp.LTE,
    "StringStartsWith": exp.StartsWith,
    "StringEndsWith": exp.EndsWith,
    "StringContains": exp.Contains,
}


@dataclass
class Filters:
    """Filters read from a plan.

    Attributes:
        conditions: all of them held.
        partial: at least one more filter was there that could not be read.
    """

    conditions: list[exp.Expr] = field(default_factory=list)
    partial: bool = False


def catalyst_filters(text: str, types: Mapping[str, str]) -> Filters:
    r"""A list of Catalyst expressions (``DataFilters``, ``PartitionFilters``), or one condition (a ``Filter`` node).

    Args:
        types: Spark type by the column's name, as far as known.

    >>> found = catalyst_filters("[isnotnull(b#1), ((b#1 > 5) OR (c#2 = a, b))]", {"b": "int", "c": "string"})
    >>> [condition.sql() for condition in found.conditions]
    ['NOT "b" IS NULL', '(("b" > 5) OR ("c" = \'a, b\'))']
    """
    return _Catalyst(text, types).filters()


def source_filters(text: str, types: Mapping[str, str]) -> Filters:
    r"""A list of data source filters (``PushedFilters``).

    >>> found = source_filters("[IsNotNull(b), Or(LessThan(b,5),In(c, [x,y]))]", {"b": "int", "c": "string"})
    >>> [condition.sql() for condition in found.conditions]
    ['NOT "b" IS NULL', '("b" < 5 OR "c" IN (\'x\', \'y\'))']
    """
    return _Source(text, types).filters()


class _SpentError(Exception):
    """Too many alternatives."""


class _Grammar:
    """Backtracking over one text: every rule yields what it can read from a position, and where that ends."""

    def __init__(self, text: str, types: Mapping[str, str]) -> None:
        self.text, self.tries, self.depth = text.strip()[:MAX_TEXT], 0, 0
        self.types = {name.lower(): kind for name, kind in types.items()}
        odd = [name for name in types if not re.fullmatch(r"[A-Za-z_]\w*", name)]
        self.odd = sorted(odd, key=len, reverse=True)

    def filters(self) -> Filters:
        """All filters of the text, as far as they can be read."""
        text, found = self.text, Filters()
        listed = text.startswith("[")
        if not text or text == "[]":
            return found
        position = 1 if listed else 0
        end = len(text) - 1 if listed and text.endswith("]") else len(text)
        while position < end:
            best = self._item(position, end)
            if best is None:
                found.partial = True
                following = text.find(", ", position)
                if following < 0 or following >= end:
                    break
                position = following + 2
                continue
            node, position = best
            if CUT.search(node.sql()):
                found.partial = True
            elif not isinstance(node, exp.Boolean):
                found.conditions.append(node)
            position += 2 if text.startswith(", ", position) else 1
        found.partial = found.partial or (listed and not text.endswith("]"))
        return found

    def _item(self, position: int, end: int) -> Found | None:
        """The shortest reading of the next filter after which another one, or the end, follows."""
        try:
            for node, stop in self.expression(position):
                self.spend()
                if stop == end or self.text.startswith(", ", stop):
                    return node, stop
        except (_SpentError, RecursionError):
            return None
        return None

    def spend(self) -> None:
        self.tries += 1
        if self.tries > BUDGET:
            raise _SpentError

    def expression(self, position: int) -> Iterator[Found]:
        raise NotImplementedError

    def column(self, name: str) -> exp.Expr:
        parts = [part.replace("`", "") for part in re.findall(r"`[^`]+`|[^.`]+", name)]
        if name.lower() in self.types or len(parts) > 4:
            return exp.column(exp.to_identifier(name, quoted=True))
        return exp.column(*(exp.to_identifier(part, quoted=True) for part in reversed(parts)))

    def type_of(self, node: exp.Expr | None) -> str:
        if isinstance(node, exp.Cast):
            return node.to.sql("spark").lower()
        if not isinstance(node, exp.Column):
            return ""
        path = ".".join(part.name for part in node.parts).lower()
        return self.types.get(path, "")

    def literal(self, position: int, kind: str, stops: str) -> Iterator[Found]:
        """A literal from ``position`` to one of the ``stops``; the shortest first."""
        text = self.text
        if kind not in ("", "string") and text.startswith("null", position):  # of strings, 'null' is a value
            yield exp.Null(), position + 4
        if kind == "boolean" or (not kind and re.compile(r"(true|false)(?=[,)])").match(text, position)):
            for word in ("true", "false"):
                if text.startswith(word, position):
                    yield exp.Boolean(this=word == "true"), position + len(word)
            return
        if (not kind or _NUMERIC.fullmatch(kind)) and (number := _NUMBER.match(text, position)):
            yield _number(number.group()), number.end()
        if kind and _NUMERIC.fullmatch(kind):
            for word in ("NaN", "Infinity", "-Infinity"):
                if text.startswith(word, position):
                    yield exp.Literal.string(word), position + len(word)
            return
        for end in range(position, len(text) + 1):
            if end == len(text) or text[end] in stops:
                self.spend()
                yield exp.Literal.string(text[position:end]), end


class _Catalyst(_Grammar):
    """``toString`` of Catalyst expressions."""

    def expression(self, position: int) -> Iterator[Found]:
        self.spend()
        self.depth += 1
        if self.depth > MAX_NESTED:
            raise _SpentError
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
        elif (name_of := _NAME.match(text, position)) is not None:
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
                    yield kind(this=node, expression=pattern), stop
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


class _Source(_Grammar):
    """``toString`` of ``org.apache.spark.sql.sources.Filter``."""

    def expression(self, position: int) -> Iterator[Found]:
        self.spend()
        if self.text.startswith("*", position):  # Spark 2 marks what the source handles alone
            position += 1
        name = _NAME.match(self.text, position)
        if name is None:
            return
        word, start = name.group(), name.end() + 1
        if word in ("And", "Or"):
            kind = exp.And if word == "And" else exp.Or
            for left, end in self.expression(start):
                if self.text.startswith(",", end):
                    for right, stop in self.expression(end + 1):
                        if self.text.startswith(")", stop):
                            yield exp.Paren(this=kind(this=left, expression=right)), stop + 1
        elif word == "Not":
            for node, end in self.expression(start):
                if self.text.startswith(")", end):
                    yield exp.Not(this=node), end + 1
        elif word in ("AlwaysTrue", "AlwaysFalse"):
            yield exp.Boolean(this=word == "AlwaysTrue"), self.text.index(")", start) + 1
        else:
            yield from self._leaf(word, start)

    def _leaf(self, word: str, position: int) -> Iterator[Found]:
        if word in ("IsNull", "IsNotNull"):
            for column, end in self._attribute(position, ")"):
                node = exp.Is(this=column, expression=exp.Null())
                yield (exp.Not(this=node) if word == "IsNotNull" else node), end + 1
        elif word == "In":
            for column, end in self._attribute(position, ","):
                opening = end + (2 if self.text.startswith(", [", end) else 1)
                if self.text.startswith("[", opening):
                    close = self.text.find("])", opening)
                    values = self.text[opening + 1 : close] if close > 0 else ""
                    items = [self._value(item, self.type_of(column)) for item in values.split(",")]
                    if close > 0:
                        yield exp.In(this=column, expressions=items), close + 2
        elif word in SOURCES:
            for column, end in self._attribute(position, ","):
                for literal, stop in self.literal(end + 1, self.type_of(column) or "string", ")"):
                    yield SOURCES[word](this=column, expression=literal), stop + 1

    def _attribute(self, position: int, stop: str) -> Iterator[Found]:
        for name in self.odd:
            if self.text.startswith(name + stop, position):
                yield self.column(name), position + len(name)
                return
        end = self.text.find(stop, position)
        if end > position:
            yield self.column(self.text[position:end]), end

    def _value(self, text: str, kind: str) -> exp.Expr:
        if text == "null":
            return exp.Null()
        if kind and _NUMERIC.fullmatch(kind) and _NUMBER.fullmatch(text.strip()):
            return _number(text.strip())
        return exp.Literal.string(text)


def _number(text: str) -> exp.Expr:
    digits = re.sub(r"(BD|[LDFSY])$", "", text)
    plain = exp.Literal.number(digits.lstrip("+-"))
    return exp.Neg(this=plain) if digits.startswith("-") else plain


def _function(name: str, arguments: list[exp.Expr]) -> exp.Expr:
    """A call as the tree that its SQL text would give."""
    lowered = name.lower()
    given = [a for a in arguments if not (isinstance(a, exp.Anonymous) and str(a.this) in ("Some", "None"))]
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
