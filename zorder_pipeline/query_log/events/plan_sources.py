"""Data source filters (``PushedFilters``) as Spark prints them in plans, read back as SQL trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from .plan_grammar import NAME, Filters, Found, Grammar, is_numeric, number_of

__all__ = ["source_filters"]

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


def source_filters(text: str, types: Mapping[str, str]) -> Filters:
    r"""A list of data source filters (``PushedFilters``).

    >>> found = source_filters("[IsNotNull(b), Or(LessThan(b,5),In(c, [x,y]))]", {"b": "int", "c": "string"})
    >>> [condition.sql() for condition in found.conditions]
    ['NOT "b" IS NULL', '("b" < 5 OR "c" IN (\'x\', \'y\'))']
    """
    return _Source(text, types).filters()


class _Source(Grammar):
    """``toString`` of ``org.apache.spark.sql.sources.Filter``."""

    def expression(self, position: int) -> Iterator[Found]:
        self.spend()
        if self.text.startswith("*", position):  # Spark 2 marks what the source handles alone
            position += 1
        name = NAME.match(self.text, position)
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
                    values = self.text[opening + 1 : close].split(",") if close > 0 else []
                    split = any(item.startswith(" ") for item in values)  # a text with a comma in it
                    if values and not split:
                        items = [self._value(item, self.type_of(column)) for item in values]
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
        number = number_of(text.strip(), kind) if is_numeric(kind) else None
        return number if number is not None else exp.Literal.string(text)
