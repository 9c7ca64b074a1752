"""Names in double quotes, which Spark, Hive and BigQuery read as texts: a sign that a log is of another dialect.

Read in the wrong dialect ``WHERE "a" = 7`` compares two constants, and the query would count as one that reads the
whole table. Nothing of that fails to parse, so it has to be looked for: what is in double quotes is read as names, and
it is seen whether a statement with names there makes sense and one with texts does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from .dialects import dialect_of
from .parsing import BROKEN, deeply, parsed

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
_OF_SESSION = (exp.Anonymous, exp.CurrentUser, exp.SessionUser, exp.CurrentSchema, exp.CurrentCatalog)
"""Functions that conditions call with texts alone, as ``is_account_group_member("admins")`` or of the user."""


def has_quoted_names(statement: str, dialect: str, tokens: Sequence[Token] | None = None) -> bool:
    """Whether names stand in double quotes where ``dialect`` reads texts, so that the statement would be misread.

    They do where a condition has no column unless it is one of them. They also do where one of them is in a condition
    and a table, a part of a dotted name or what rows are grouped or ordered by is one, too. Not if one of
    them cannot be a name: a statement's double quotes mean one thing. Outside of conditions nothing is misread that
    matters.

    Args:
        tokens: of the statement, if they are known.

    >>> [has_quoted_names(text, "spark") for text in ('SELECT * FROM t WHERE "a" = 7', 'SELECT * FROM t WHERE a = "x"')]
    [True, False]
    >>> [has_quoted_names('SELECT 1 FROM "t" WHERE b = "a"', dialect) for dialect in ("spark", "trino")]
    [True, False]
    """
    if '"' not in statement:
        return False
    if tokens is None:
        try:
            tokens = dialect_of(dialect).tokenize(statement)
        except (sqlglot.errors.SqlglotError, ValueError, RecursionError):
            return False
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
        if any(isinstance(tree, exp.Command) for tree in trees):
            return False
        sure, misread, are_texts = False, False, False
        compared, alone = set[int](), list[set[int]]()
        for tree in trees:
            for node in tree.find_all(exp.Identifier):
                if (number := self._number(node)) is None:
                    continue
                parent = node.parent
                if isinstance(parent, exp.Column):
                    sure |= number != _NO_NAME and (len(parent.parts) > 1 or isinstance(parent.parent, _NEVER_TEXTS))
                    are_texts |= len(parent.parts) == 1 and number == _NO_NAME
                elif isinstance(parent, exp.Table | exp.TableAlias | exp.Join):
                    sure |= number != _NO_NAME
            for condition in _conditions(tree):
                columns = (node for node in _of_condition(condition) if isinstance(node, exp.Column))
                misread |= any(self._number(column.parts[0]) for column in columns)
                names, with_others = self._compared(condition)
                if with_others:
                    compared |= names
                elif names:
                    alone.append(names)
        return misread and (sure or (not are_texts and any(not names & compared for names in alone)))

    def _number(self, name: exp.Expr | str | None) -> int | None:
        found = _MARK.fullmatch(name.name) if isinstance(name, exp.Identifier) else None
        return int(found[1]) if found is not None and int(found[1]) in self.texts else None

    def _compared(self, condition: exp.Expr) -> tuple[set[int], bool]:
        """What is read as a name in a condition, and whether columns are there that they may be texts for.

        Nothing where a text is compared with itself, as a parameter's value may be, and where a function takes texts.
        """
        names, literals, with_others = set[int](), set[str](), False
        for node in _of_condition(condition):
            if isinstance(node, exp.Column):
                number = self._number(node.this) if len(node.parts) == 1 else None
                with_others |= number is None or node.arg_key in _NEVER_COLUMNS
                names |= {number} if number is not None else set()
            elif isinstance(node, exp.Literal) and node.is_string:
                literals.add(node.name)
        if with_others:
            return names, True
        same = isinstance(condition, exp.Binary) and condition.left == condition.right
        if (
            same
            or any(isinstance(node, _OF_SESSION) for node in _of_condition(condition))
            or literals & {self.texts[number] for number in names}
        ):
            return set(), False
        return names, False


def _conditions(tree: exp.Expr) -> Iterator[exp.Expr]:
    """What is joined by AND and OR wherever rows are chosen."""
    for node in tree.find_all(exp.Where, exp.Having, exp.Qualify, exp.Join, exp.Merge, exp.When):
        where = node.args.get(_PLACES.get(type(node), "this"))
        if isinstance(where, exp.Expr):
            yield from (leaf for leaf in where.walk(prune=_is_leaf) if _is_leaf(leaf))


def _of_condition(condition: exp.Expr) -> Iterator[exp.Expr]:
    """What a condition is made of but for queries in it, which have conditions of their own."""
    return condition.walk(prune=lambda node: isinstance(node, exp.Query))


def _is_leaf(node: exp.Expr) -> bool:
    return not isinstance(node, _CONNECTORS)
