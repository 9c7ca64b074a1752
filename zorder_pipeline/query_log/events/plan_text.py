"""Catalyst's expressions as Spark prints them in plans, read back as SQL trees."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from sqlglot import exp

from .plan_calls import function, is_option, matched
from .plan_grammar import CUT, NAME, NESTING, Filters, Found, Grammar, SpentError, is_numeric

__all__ = ["catalyst_filters"]

MAX_NESTED = 300
SCANNED = 64
"""Characters that are looked at for one try of the budget."""
_ATTRIBUTE = re.compile(r"[A-Za-z_][\w-]*#\d+L?|[A-Za-z_]\w*(?= (?:INSET|IN) )")
_SUBQUERY = re.compile(r"(?:Reused)?(?:Subquery )*(?:scalar-)?subquery#\d+(?:, \[[^\]]*\])?(?: \[[^\]]*\])?", re.I)
_MARK = re.compile(r"(?<![\w`.-])([\w`][\w`.-]*)#\d")
"""An attribute's name and number, wherever it stands: what Spark could compute beforehand has none."""
_TOKEN = re.compile(r"([^\s()\[\],#]+) (?:<=>|[<>]=?|[=+*/%-]) ")
_UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z"})
_ZONE = re.compile(r"[A-Za-z_]+(?:/[\w+-]+)+|UTC|GMT|Z|[+-]\d\d:?\d\d")
METADATA = "_metadata"
"""The column of what is known of a row's file, which no schema has."""
UNREAD = "unread"
"""Called so: what Spark printed in a form that has no rule here."""
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


def catalyst_filters(
    text: str, types: Mapping[str, str], *, names: Iterable[str] = (), whole: bool = True, zone: str = ""
) -> Filters:
    r"""A list of Catalyst expressions (``DataFilters``, ``PartitionFilters``), or one condition (a ``Filter`` node).

    Args:
        types: Spark type by the column's name, as far as known.
        names: of columns whose types are not known.
        whole: whether these are all columns: else ``Brand#12`` may be a text as well as an attribute, and says nothing.
        zone: session time zone that the conditions are read in, where it is known; a call that was told another one
            says nothing.

    >>> found = catalyst_filters("[isnotnull(b#1), ((b#1 > 5) OR (c#2 = a, b))]", {"b": "int", "c": "string"})
    >>> [condition.sql() for condition in found.conditions]
    ['NOT "b" IS NULL', '(("b" > 5) OR ("c" = \'a, b\'))']
    """
    return _Catalyst(text, types, names, whole, zone).filters()


class _Catalyst(Grammar):
    """``toString`` of Catalyst expressions.

    Of an operand that this grammar has no rule for (``m#1[k]``, ``CASE``, a lambda) the columns are kept, in a call of
    nobody's function: taken for a text, it would be compared, and be found false.
    """

    def __init__(self, text: str, types: Mapping[str, str], names: Iterable[str], whole: bool, zone: str) -> None:
        super().__init__(text, types)
        self.whole, self.zone = whole, zone
        self.known = {name for column in self.types for name in (column, column.split(".")[0])}
        self.known |= {METADATA, *(name.lower() for name in names)}

    def told(self, text: str) -> exp.Expr:
        """A text, or an operand without a rule: one that names attributes of the table."""
        if "#" not in text:
            return exp.Literal.string(text)
        self.spend(1 + len(text) // SCANNED)
        names = [name.replace("`", "") for name in _MARK.findall(text)]
        known = [name for name in names if name.lower() in self.known]
        known += [name for name in self.odd if f"{name}#" in text]
        if known:
            columns = [self.column(name) for name in dict.fromkeys(known)]
            return exp.Anonymous(this=UNREAD, expressions=[*columns, exp.Placeholder()])
        return exp.Placeholder() if names and not self.whole else exp.Literal.string(text)

    def _unread(self, position: int, stops: tuple[str, ...]) -> Iterator[Found]:
        """What no rule reads, from ``position`` to one of the ``stops`` outside of its brackets."""
        depth = 0
        for end in range(position, len(self.text)):
            if (end - position) % SCANNED == 0:
                self.spend()
            if depth == 0 and self.text.startswith(stops, end):
                self.spend()
                node = self.told(self.text[position:end])
                if not isinstance(node, exp.Literal):
                    yield node, end
            depth += NESTING.get(self.text[end], 0)
            if depth < 0:
                return

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
        for left, end in self._left(position + 1):
            for symbol, kind in OPERATORS.items():
                if not self.text.startswith(f" {symbol} ", end):
                    continue
                start = end + len(symbol) + 2
                logical = kind in (exp.And, exp.Or)
                for right, stop in self._operand(start, "" if logical else self.type_of(left), ")", logical=logical):
                    if self.text.startswith(")", stop):
                        yield exp.Paren(this=kind(this=left, expression=right)), stop + 1

    def _left(self, position: int) -> Iterator[Found]:
        yield from self.expression(position)
        if (token := _TOKEN.match(self.text, position)) is not None:  # ``(5 < b#1)``: of what type, the other side says
            for right, _ in self.expression(token.end()):
                for node, end in self.literal(position, self.type_of(right), " "):
                    if isinstance(node, exp.Literal | exp.Cast | exp.Neg | exp.Boolean) and end == token.end(1):
                        yield node, end
        yield from self._unread(position, tuple(f" {symbol} " for symbol in OPERATORS))

    def _operand(self, position: int, kind: str, stops: str, logical: bool = False) -> Iterator[Found]:
        for node, end in self.expression(position):
            told = self._of_text(node, self.text[position:end], kind) if kind in ("", "string") else node
            if not isinstance(told, exp.Literal):
                yield told, end
        if not logical:
            yield from self.literal(position, kind, stops)
        if logical or is_numeric(kind) or kind == "boolean":
            yield from self._unread(position, tuple(stops))

    def _of_text(self, node: exp.Expr, text: str, kind: str) -> exp.Expr:
        """What looks like an attribute or a call where a text may stand: attributes are known, constant calls gone."""
        if _SUBQUERY.match(text) or text.endswith("()") or is_option(node) or (not kind and "#" not in text):
            return node
        told = self.told(text)
        return node if isinstance(told, exp.Anonymous) else told

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
                    yield matched(kind, node, pattern), stop
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
        texts: list[str] = []
        while end < len(self.text):
            if (cut := CUT.match(self.text, end)) is not None:
                yield exp.In(this=node, expressions=[*values, exp.Literal.string(cut.group())]), cut.end()
                return
            item = next(iter(self.literal(end, kind, ",)]")), None)
            if item is None or (values and self._ends_before(end)):
                end -= 2
                break
            values.append(item[0])
            texts.append(self.text[end : item[1]])
            end = item[1]
            if not self.text.startswith(", ", end):
                break
            end += 2
        if kind in ("", "string") and texts != sorted(texts):
            values.append(exp.Placeholder())  # Spark sorts them: a text with a comma in it was taken for two
        if values:
            yield exp.In(this=node, expressions=values), end

    def _ends_before(self, position: int) -> bool:
        """Whether what follows in a list without brackets is a filter: something with a column of the table."""
        if "#" not in self.text[position:]:
            return False
        following = self.next_item(position, len(self.text))
        end = following - 2 if following is not None else len(self.text) - self.text.endswith("]")
        told = self.told(self.text[position:end])
        if isinstance(told, exp.Placeholder):  # a text, or a column that is not known
            found = self.expression(position)
            return any(stop == end and not isinstance(node, exp.Column) for node, stop in found)
        return isinstance(told, exp.Anonymous)

    def _call(self, name: str, position: int) -> Iterator[Found]:
        if name.lower() == "dynamicpruningexpression":  # by what a join finds: nothing that the query has written
            following = next((end for _, end in self._unread(position, (")",))), None)
            if following is not None:
                yield exp.true(), following + 1
            return
        if name.lower() in ("cast", "try_cast", "ansi_cast"):
            for inner, end in self._operand(position, "", " "):
                kind = _TYPE.match(self.text, end + 4) if self.text.startswith(" as ", end) else None
                if kind is not None and self.text.startswith(")", kind.end()):
                    yield exp.cast(inner, kind.group(), dialect="spark"), kind.end() + 1
            return
        for arguments, end in self._arguments(position, []):
            given = [a for a in arguments if not (is_option(a) and self._is_usual(a))]
            if any(map(is_option, given)):
                yield exp.Anonymous(this=UNREAD, expressions=[*given, exp.Placeholder()]), end
            else:
                yield function(name, given), end

    def _is_usual(self, option: exp.Expr) -> bool:
        """Whether an option is none, or the session's time zone: others mean what the call's SQL text does not say."""
        told = option.expressions[0].name if option.expressions else ""
        same = told == self.zone or {told, self.zone} <= _UTC or (not self.zone and _ZONE.fullmatch(told) is not None)
        return not told or same

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
