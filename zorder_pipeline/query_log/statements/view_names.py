"""Which temporary views the statements of a line create, change and drop, told by their tokens: also of those that no
grammar here can parse, and not by what stands in texts and comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from .dialects import tokens_of
from .views import GLOBAL, ViewName

__all__ = ["OF_VIEWS", "Change", "changes_of"]

OF_VIEWS = re.compile(rb"(?:temp(?:orary)?|cache|drop|alter)[^a-z0-9_]", re.IGNORECASE)
"""What a line of a log has that creates, changes or drops such a view, also as JSON text."""
_OF_VIEWS = re.compile(OF_VIEWS.pattern.decode(), OF_VIEWS.flags)
_MODIFIERS = {"OR", "REPLACE", "GLOBAL", "LOCAL", "TEMP", "TEMPORARY", "MATERIALIZED", "RECURSIVE", "LAZY"}
_QUERIES = {"AS", "SELECT", "WITH", "VALUES", "FROM"}


@dataclass(frozen=True)
class Change:
    """A temporary view is created, changed or dropped.

    Attributes:
        place: number of the statement in its line, of those that are not empty.
        is_there: whether the view is there afterwards.
        if_new: only where there is none of that name yet.
        if_there: only where there is one.
    """

    place: int
    name: ViewName
    is_there: bool
    if_new: bool = False
    if_there: bool = False


def changes_of(statement: str, dialect: str) -> tuple[list[Change], int]:
    """What the statements of a line create, change and drop, in their order, and how many statements there are.

    A temporary table counts as a view: its name means no other table, either.

    >>> line = "CREATE TEMP VIEW v AS SELECT 'drop view w'; DROP VIEW IF EXISTS V; DROP VIEW global_temp.w"
    >>> [(change.name, change.is_there) for change in changes_of(line, "spark")[0]]
    [(('v',), True), (('v',), False), (('global_temp', 'w'), False)]
    """
    if not _OF_VIEWS.search(statement):
        return [], 0
    parts: list[list[Token]] = [[]]
    for token in tokens_of(statement, dialect) or ():
        if token.token_type == TokenType.SEMICOLON:
            parts.append([])
        else:
            parts[-1].append(token)
    parts = [part for part in parts if part]
    return [change for place, part in enumerate(parts) for change in _changes(place, part)], len(parts)


def _changes(place: int, tokens: Sequence[Token]) -> Iterator[Change]:
    words = [_word(token) for token in tokens]
    start = words.index("SQL") + 1 if words[0] == "%" and "SQL" in words[:3] else 0  # a notebook's cell
    if start >= len(words):
        return
    verb, modifiers, at = words[start], set[str](), start + 1
    while at < len(words) and words[at] in _MODIFIERS:
        modifiers.add(words[at])
        at += 1
    if at >= len(words) or words[at] not in ("VIEW", "TABLE") or verb not in ("CREATE", "CACHE", "DROP", "ALTER"):
        return
    kind, at = words[at], at + 1
    if has_condition := words[at : at + 1] == ["IF"]:
        at += 3 if "NOT" in words[at + 1 : at + 2] else 2
    if verb == "DROP":
        while at < len(tokens):
            name, at = _name_at(tokens, words, at)
            if len(name) == 1 or (len(name) == 2 and name[0] == GLOBAL):
                yield Change(place, name, False)
            if words[at : at + 1] != [","]:
                return
            at += 1
        return
    name, at = _name_at(tokens, words, at)
    if verb == "ALTER":
        if kind == "TABLE" or not name:
            return
        if words[at : at + 2] == ["RENAME", "TO"]:
            yield Change(place, name, False)
            yield Change(place, (*name[:-1], *_name_at(tokens, words, at + 2)[0][-1:]), True)
        elif _QUERIES & {*words[at:]}:
            yield Change(place, name, True, if_there=True)
        return
    created = {"TEMP", "TEMPORARY"} & modifiers if verb == "CREATE" else kind == "TABLE" and _QUERIES & {*words[at:]}
    if created and name:
        own = (GLOBAL, name[-1]) if "GLOBAL" in modifiers and kind == "VIEW" else name[-1:]
        yield Change(place, own, True, has_condition)


def _word(token: Token) -> str:
    return "" if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) else token.text.upper()


def _name_at(tokens: Sequence[Token], words: Sequence[str], at: int) -> tuple[ViewName, int]:
    """The name that begins at a token, and where it ends."""
    parts: list[str] = []
    while at < len(tokens) and (not words[at] or re.fullmatch(r"\w+", words[at])):
        parts.append(tokens[at].text.lower())
        at += 1
        if words[at : at + 1] != ["."]:
            break
        at += 1
    return tuple(parts), at
