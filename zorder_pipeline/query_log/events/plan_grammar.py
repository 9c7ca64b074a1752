"""A backtracking grammar over the text of a list of filters, as Spark prints them in plans.

Spark prints strings without quotes, so the text is ambiguous where a string holds a bracket or a comma: the shortest
literal is taken with which everything after it still can be read. A filter that cannot be read, or that Spark cut off,
is left out and reported as missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from sqlglot import exp

__all__ = ["CUT", "NAME", "NESTING", "Filters", "Found", "Grammar", "SpentError", "is_numeric", "number_of"]

Found = tuple[exp.Expr, int]
BUDGET = 20_000
"""Alternatives tried before a text is given up."""
MAX_TEXT = 200_000
CUT = re.compile(r"\.\.\. \d+ more fields?|\.\.\.(?=[\])]|$)")
NAME = re.compile(r"[A-Za-z_]\w*(?=\()")
NESTING = {"(": 1, "[": 1, ")": -1, "]": -1}
"""How much deeper in brackets a character leads."""
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:BD|[LDFSY])?(?![\w.:-])")
_NUMERIC = re.compile(r"tinyint|smallint|int|integer|bigint|float|double|decimal.*|byte|short|long")


_COUNTED = {"date": timedelta(days=1), "timestamp": timedelta(microseconds=1)}
"""What Spark before 3.2 counts from 1970 on where it prints a date or a timestamp; later it prints them as such."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class Filters:
    """Filters read from a plan.

    Attributes:
        conditions: all of them held.
        partial: at least one more filter was there that could not be read.
    """

    conditions: list[exp.Expr] = field(default_factory=list)
    partial: bool = False


class SpentError(Exception):
    """Too many alternatives."""


class Grammar:
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
                if found.conditions and _ends_in_a_pattern(found.conditions[-1]):
                    found.conditions.pop()  # the pattern may go on: nothing shows where it ends
                following = self.next_item(position, end) if listed else None
                if following is None:
                    break
                position = following
                continue
            node, position = best
            if CUT.search(node.sql()) or (isinstance(node, exp.Column) and self.type_of(node) not in ("", "boolean")):
                found.partial = True
            elif not isinstance(node, exp.Boolean):
                found.conditions.append(node)
            position += 2 if text.startswith(", ", position) else 1
        found.partial = found.partial or (listed and not text.endswith("]"))
        return found

    def next_item(self, position: int, end: int) -> int | None:
        """Where the list goes on behind an item that cannot be read; None where its brackets do not tell."""
        depth = 0
        for at in range(position, end):
            depth += NESTING.get(self.text[at], 0)
            if depth < 0:
                return None
            if depth == 0 and self.text.startswith(", ", at):
                return at + 2
        return None

    def _item(self, position: int, end: int) -> Found | None:
        """The shortest reading of the next filter after which another one, or the end, follows."""
        try:
            for node, stop in self.expression(position):
                self.spend()
                if stop == end or self.text.startswith(", ", stop):
                    return node, stop
        except (SpentError, RecursionError):
            return None
        return None

    def spend(self, tries: int = 1) -> None:
        """Count what was tried.

        Raises:
            SpentError: it is too much.
        """
        self.tries += tries
        if self.tries > BUDGET:
            raise SpentError

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
            yield _read_number(number.group(), kind), number.end()
        if kind and _NUMERIC.fullmatch(kind):
            for word in ("NaN", "Infinity", "-Infinity"):
                if text.startswith(word, position):
                    yield exp.Literal.string(word), position + len(word)
            return
        for end in range(position, len(text) + 1):
            if end == len(text) or text[end] in stops:
                self.spend()
                counted = kind in _COUNTED and re.fullmatch(r"-?[0-9]+", text[position:end]) is not None
                yield _moment(text[position:end], kind) if counted else self.told(text[position:end]), end

    def told(self, text: str) -> exp.Expr:
        """What stands where a text may: that text."""
        return exp.Literal.string(text)


def _ends_in_a_pattern(node: exp.Expr) -> bool:
    while isinstance(node, exp.Not | exp.Paren):
        node = node.this
    return isinstance(node, exp.Like | exp.RegexpLike | exp.Escape)


def is_numeric(kind: str) -> bool:
    """Whether a Spark type, as the log names it, is of numbers."""
    return _NUMERIC.fullmatch(kind) is not None


def number_of(text: str, kind: str) -> exp.Expr | None:
    """A number of a type as Spark prints it, ``5L`` or ``1.50BD`` among them; None when the text is none."""
    return _read_number(text, kind) if _NUMBER.fullmatch(text) else None


def _moment(count: str, kind: str) -> exp.Expr:
    """The date of so many days, or the timestamp of so many microseconds; a value unknown where a year has five digits.

    >>> _moment("8766", "date").sql("spark"), _moment("-1", "timestamp").sql("spark")
    ("CAST('1994-01-01' AS DATE)", "CAST('1969-12-31T23:59:59.999999Z' AS TIMESTAMP)")
    """
    try:
        moment = _EPOCH + int(count) * _COUNTED[kind]
    except (OverflowError, ValueError):
        return exp.Placeholder()
    text = moment.date().isoformat() if kind == "date" else moment.replace(tzinfo=None).isoformat() + "Z"
    return exp.cast(exp.Literal.string(text), kind, dialect="spark")


def _read_number(text: str, kind: str) -> exp.Expr:
    digits = re.sub(r"(BD|[LDFSY])$", "", text)
    plain = exp.Literal.number(digits.lstrip("+-"))
    told = exp.Neg(this=plain) if digits.startswith("-") else plain
    return exp.cast(told, "float", dialect="spark") if kind == "float" else told
