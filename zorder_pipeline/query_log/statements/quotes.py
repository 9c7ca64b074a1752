"""Names in double quotes, which Spark, Hive and BigQuery read as texts: a sign that a log is of another dialect.

Read in the wrong dialect ``WHERE "a" = 7`` compares two constants, and the query would count as one that reads the
whole table. Nothing of that fails to parse, so it has to be looked for: what is in double quotes is read as names, and
it is seen whether a statement with names there makes sense and one with texts does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from .dialects import dialect_of, tokens_of
from .expressions import too_deep
from .parsing import BROKEN, deeply, parsed
from .qualified import of_condition

__all__ = ["has_quoted_names", "quoted"]

_NAME = "zq{}qz"
_MARK = re.compile(r"zq(\d+)qz")
_IMPLAUSIBLE = re.compile(r"[\d\s.,:/+\-TZe]*|%.*|.*%", re.DOTALL)
"""As names: nothing, numbers, dates and patterns of LIKE."""
_NO_NAME = 1
_CONNECTORS = (exp.And, exp.Or, exp.Not, exp.Paren)
_PLACES = {exp.Join: "on", exp.Merge: "on", exp.When: "condition"}
_NEVER_COLUMNS = ("format", "unit", "zone")
_NEVER_TEXTS = (exp.Group, exp.Ordered)
_OF_SESSION = (
    *(exp.Anonymous, exp.CurrentUser, exp.CurrentUserId, exp.SessionUser, exp.CurrentRole, exp.CurrentVersion),
    *(exp.CurrentCatalog, exp.CurrentDatabase, exp.CurrentSchema, exp.CurrentTimezone),
)
"""Functions that conditions call with texts alone, as ``is_account_group_member("admins")`` or of the user."""


def has_quoted_names(statement: str, dialect: str, tokens: Sequence[Token] | None = None) -> bool:
    """Whether names stand in double quotes where ``dialect`` reads texts, so that the statement would be misread.

    They do where a condition has no column unless it is one of them, or is one on what a derived table hands out under
    a name and is none of its texts. They also do where one of them is in such a condition and a table, a part of a
    dotted name or what rows are grouped or ordered by is one, too. Not if one of them cannot be a name: a statement's
    double quotes mean one thing. Elsewhere nothing is misread that matters.

    Args:
        tokens: of the statement, if they are known.

    >>> [has_quoted_names(text, "spark") for text in ('SELECT * FROM t WHERE "a" = 7', 'SELECT * FROM t WHERE a = "x"')]
    [True, False]
    >>> [has_quoted_names('SELECT 1 FROM "t" WHERE b = "a"', dialect) for dialect in ("spark", "trino")]
    [True, False]
    """
    if '"' not in statement or too_deep(statement):
        return False
    if tokens is None:
        tokens = tokens_of(statement, dialect) or ()
    numbers = quoted(statement, dialect, tokens)
    if not any(numbers):
        return False
    parts, end = list[str](), 0
    for token, number in zip(tokens, numbers, strict=True):
        if number > 0:
            parts += [statement[end : token.start], f"`{_NAME.format(number)}`"]
            end = token.end + 1
    texts = {number: token.text for token, number in zip(tokens, numbers, strict=True) if number > 0}
    try:
        with deeply():
            return _Names(texts).are_misread(parsed("".join([*parts, statement[end:]]), dialect))
    except (*BROKEN, RecursionError):
        return False  # where these names would stand only texts may


def quoted(statement: str, dialect: str, tokens: Sequence[Token]) -> tuple[int, ...]:
    """Of each text in double quotes a number that tells it from others, 1 where it cannot be a name.

    Minus that number of the same text in other quotes, and 0 of other tokens; nothing where there is none of them.
    Statements of one template and the same numbers are answered alike by `has_quoted_names`.

    >>> text = "b IN ('x', 'y', '7', 'x', `x`, `z`)".replace("'", '"').replace("`", "'")
    >>> quoted(text, "spark", dialect_of("spark").tokenize(text))
    (0, 0, 0, 2, 0, 3, 0, 1, 0, 2, 0, -2, 0, 0, 0)
    """
    if '"' not in statement or '"' not in dialect_of(dialect).tokenizer_class.QUOTES:
        return ()
    is_text = [token.token_type == TokenType.STRING for token in tokens]
    known: dict[str, int] = {}
    for token, text in zip(tokens, is_text, strict=True):
        if text and statement[token.start] == '"':
            known.setdefault(token.text, _NO_NAME if _IMPLAUSIBLE.fullmatch(token.text) else len(known) + 2)
    if not known:
        return ()
    numbers = (known.get(token.text, 0) if text else 0 for token, text in zip(tokens, is_text, strict=True))
    return tuple(n if statement[token.start] == '"' else -n for token, n in zip(tokens, numbers, strict=True))


@dataclass(frozen=True)
class _Names:
    """Texts in double quotes by their numbers, read as names."""

    texts: Mapping[int, str]

    def are_misread(self, trees: Sequence[exp.Expr]) -> bool:
        """Whether they are names, and conditions on some of them would be read as ones on texts."""
        sure, misread, are_texts = False, False, False
        conditions = list[_Condition]()
        for tree in (tree for tree in trees if not isinstance(tree, exp.Command)):
            for node in tree.find_all(exp.Identifier):
                if (number := self._number(node)) is None:
                    continue
                parent = node.parent
                if isinstance(parent, exp.Column):
                    sure |= number != _NO_NAME and (len(parent.parts) > 1 or isinstance(parent.parent, _NEVER_TEXTS))
                    are_texts |= len(parent.parts) == 1 and number == _NO_NAME
                elif isinstance(parent, exp.Table | exp.TableAlias | exp.Join):
                    sure |= number != _NO_NAME
            outputs = self._outputs(tree)
            for condition in _conditions(tree):
                columns = (node for node in of_condition(condition) if isinstance(node, exp.Column))
                misread |= any(self._number(column.parts[0]) for column in columns)
                conditions.append(self._compared(condition))
                if outputs and (names := self._of_outputs(condition, outputs)):
                    misread = True
                    conditions.append(_Condition(names, set(), False, False))
        with_columns = [condition for condition in conditions if condition.has_columns]
        compared = set[int]().union(*(condition.names for condition in with_columns))
        parameters = set[str]().union(*(condition.parameters for condition in with_columns))
        alone = [c for c in conditions if c.names and not c.has_columns and not c.parameters & parameters]
        return misread and (sure or (not are_texts and any(c.has_values or not c.names & compared for c in alone)))

    def _number(self, name: exp.Expr | str | None) -> int | None:
        found = _MARK.fullmatch(name.name) if isinstance(name, exp.Identifier) else None
        return int(found[1]) if found is not None and int(found[1]) in self.texts else None

    def _compared(self, condition: exp.Expr) -> _Condition:
        """What is read as a name in a condition, and what else is there.

        Nothing where a text is compared with itself, as a parameter's value may be, and where a function takes texts.
        """
        names, literals, parameters = set[int](), set[str](), set[str]()
        has_columns = has_values = has_session = False
        for node in of_condition(condition):
            if isinstance(node, exp.Column):
                number = self._number(node.this) if len(node.parts) == 1 else None
                has_columns |= number is None or node.arg_key in _NEVER_COLUMNS
                names |= {number} if number is not None else set()
            elif isinstance(node, exp.Literal):
                has_values |= not node.is_string
                literals |= {node.name} if node.is_string else set()
            elif isinstance(node, exp.Placeholder | exp.Parameter):
                parameters.add(node.name.lower())
            else:
                has_values |= isinstance(node, exp.Cast | exp.Date | exp.Boolean)
                has_session |= isinstance(node, _OF_SESSION)
        if not has_columns:
            is_same = isinstance(condition, exp.Binary) and condition.left == condition.right
            is_same = is_same and isinstance(condition.this, exp.Column)
            if is_same or has_session or literals & {self.texts[number] for number in names}:
                names = set()
        return _Condition(names, parameters - {""}, has_columns, has_values)

    def _outputs(self, tree: exp.Expr) -> dict[str, list[_Output]]:
        """What SELECTs hand out by name, of names under which one of them hands out a name or text in double quotes."""
        found: dict[str, list[_Output]] = {}
        for select in tree.find_all(exp.Select):
            for item in select.expressions:
                plain = item.unalias()
                number = self._number(plain.this) if isinstance(plain, exp.Column) and len(plain.parts) == 1 else None
                found.setdefault(item.alias_or_name.lower(), []).append(_Output(select, number))
        return {name: items for name, items in found.items() if any(item.number is not None for item in items)}

    def _of_outputs(self, condition: exp.Expr, outputs: Mapping[str, Sequence[_Output]]) -> set[int]:
        """Names among the outputs that a condition is on, if it is on nothing else and none of their texts is in it.

        ``SELECT * FROM (SELECT "eu" AS region, … UNION ALL SELECT "us", …) WHERE region = 'us'`` has texts.
        """
        clause = condition.find_ancestor(exp.Where, exp.Having, exp.Qualify, exp.Join)
        around = {id(node) for node in _above(condition) if isinstance(node, exp.Select)}
        own = clause.parent if isinstance(clause, exp.Having | exp.Qualify) else None
        names, literals = set[int](), set[str]()
        for node in of_condition(condition):
            if isinstance(node, exp.Literal):
                literals.add(node.name)
            elif isinstance(node, exp.Column):
                items = [o for o in outputs.get(node.name.lower(), ()) if id(o.select) not in around or o.select is own]
                numbers = {item.number for item in items}
                if not numbers or None in numbers:
                    return set()
                names |= {number for number in numbers if number is not None}
        texts = {self.texts[number] for number in names}
        return names - {_NO_NAME} if literals and not literals & texts else set()


@dataclass(frozen=True)
class _Condition:
    """What a condition is on.

    Attributes:
        names: numbers of what is read as a name.
        parameters: that are named.
        has_columns: whether there are others, which ``names`` may be texts for.
        has_values: whether there are numbers, dates or the like, with which no text is compared.
    """

    names: set[int]
    parameters: set[str]
    has_columns: bool
    has_values: bool


@dataclass(frozen=True)
class _Output:
    """What a SELECT hands out under a name.

    Attributes:
        number: of a text in double quotes, None of all else.
    """

    select: exp.Select
    number: int | None


def _above(node: exp.Expr) -> Iterator[exp.Expr]:
    above = node.parent
    while above is not None:
        yield above
        above = above.parent


def _conditions(tree: exp.Expr) -> Iterator[exp.Expr]:
    """What is joined by AND and OR wherever rows are chosen."""
    for node in tree.find_all(exp.Where, exp.Having, exp.Qualify, exp.Join, exp.Merge, exp.When):
        where = node.args.get(_PLACES.get(type(node), "this"))
        if isinstance(where, exp.Expr):
            yield from (leaf for leaf in where.walk(prune=_is_leaf) if _is_leaf(leaf))


def _is_leaf(node: exp.Expr) -> bool:
    return not isinstance(node, _CONNECTORS)
