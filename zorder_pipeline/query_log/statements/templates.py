"""Statements that differ only in literals are parsed once: a cache by template.

Parsing takes milliseconds, reading the literals of a known template a tenth of that. A statement's template is its
token sequence without literals. The second statement of a template is parsed with a marker in the place of each
literal; the markers that come back as literals of conditions are the places where later statements only put their own.
A template that gives another result for its first two statements than parsing did is parsed every time.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from .called import CALLS
from .catalog import Catalog
from .dialects import tokens_of
from .parsing import Parameters
from .quotes import has_quoted_names, quoted
from .recipe import Recipe, Scan
from .sql import MAX_LENGTH, OTHER_DIALECT, TOO_MUCH, Unusable, read_statement, scans_of

__all__ = ["Parser", "Template"]

CACHED = 5_000
TEXTS = (TokenType.STRING, TokenType.RAW_STRING, TokenType.HEREDOC_STRING, TokenType.NATIONAL_STRING)
LITERAL = (*TEXTS, TokenType.NUMBER)
_STRING, _NUMBER = f"zqx{secrets.token_hex(6)}x{{}}xqz", 918_273_000_000 + secrets.randbelow(10**11)
"""Markers, which no statement and no view that is written by somebody else holds."""
UNITS = frozenset(
    {
        *("year", "years", "yyyy", "yy", "quarter", "quarters", "month", "months", "mon", "mm", "week", "weeks"),
        *("day", "days", "dd", "hour", "hours", "minute", "minutes", "second", "seconds"),
        *("millisecond", "milliseconds", "microsecond", "microseconds"),
    }
)
OF_TABLES = frozenset(
    {
        *(TokenType.FROM, TokenType.JOIN, TokenType.STRAIGHT_JOIN, TokenType.USING, TokenType.INTO, TokenType.TABLE),
        *(TokenType.UPDATE, TokenType.DELETE, TokenType.MERGE, TokenType.LATERAL, TokenType.APPLY),
        *(TokenType.ONLY, TokenType.PIVOT, TokenType.UNPIVOT, TokenType.SUMMARIZE, TokenType.DESCRIBE),
    }
)
"""Words that a table may follow, also as a text."""
OF_VALUES = frozenset(
    {
        *(TokenType.SELECT, TokenType.WHERE, TokenType.SET, TokenType.VALUES, TokenType.SEMICOLON),
        *(TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.HAVING, TokenType.QUALIFY, TokenType.LIMIT),
    }
)
"""Words that end a list of tables; behind the ON of a join it goes on."""


@dataclass
class Template:
    """A template's recipes with the literal nodes to fill in.

    Attributes:
        slots: literal nodes by the number of the literal token whose text they take; a literal can be needed twice.
    """

    recipes: tuple[Recipe, ...]
    slots: dict[int, list[exp.Literal]]

    def scans(self, literals: list[Token], timestamp: int | None, zone: str) -> tuple[Scan, ...] | Unusable:
        """The scans of a statement of this template, or why there are none."""
        for number, nodes in self.slots.items():
            for node in nodes:
                node.set("this", literals[number].text)
        return scans_of(self.recipes, timestamp, zone)


@dataclass(frozen=True)
class First:
    """The first statement of a template, to check the template by."""

    literals: list[Token]
    scans: tuple[Scan, ...]
    timestamp: int | None
    zone: str


class Parser:
    """Takes statements apart, remembering templates. Not thread-safe.

    >>> parser = Parser(Catalog())
    >>> [parser.scans(f"SELECT a FROM t WHERE b > {i}")[0].predicate.to_sql() for i in (1, 2, 3)]
    ['b > 1', 'b > 2', 'b > 3']
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._known: OrderedDict[str, Template | Unusable | First | None] = OrderedDict()
        self._quoted: OrderedDict[str, bool] = OrderedDict()
        self.template = ""

    def scans(
        self, statement: str, timestamp: int | None = None, zone: str = "UTC", parameters: Parameters | None = None
    ) -> tuple[Scan, ...] | Unusable:
        """As `parse_statement`; ``template`` holds the statement's template hash afterwards."""
        tokens = tokens_of(statement, self.catalog.dialect) if len(statement) <= MAX_LENGTH else None
        if not tokens:
            self.template = ""
            return self._parsed(statement, timestamp, zone, parameters)
        key = _key(tokens)
        self.template = _hash(key)
        if self._has_quoted_names(statement, tokens, key):
            return OTHER_DIALECT
        if parameters:
            return self._parsed(statement, timestamp, zone, parameters)
        known = self._known.get(key)
        if isinstance(known, Unusable):
            return known
        literals = [token for token in tokens if token.token_type in LITERAL]
        if isinstance(known, First):
            found, template = self._parsed(statement, timestamp, zone), self._template(statement, tokens, known)
            if template is not None and template.scans(literals, timestamp, zone) != found:
                template = None
            self._remember(key, template)
            return found
        if isinstance(known, Template):
            self._known.move_to_end(key)
            return known.scans(literals, timestamp, zone)
        found = self._parsed(statement, timestamp, zone)
        if isinstance(found, Unusable):
            self._remember(key, found if found.ignored or found in TOO_MUCH else None)
        elif key not in self._known:
            self._remember(key, First(literals, found, timestamp, zone))
        return found

    def _has_quoted_names(self, statement: str, tokens: list[Token], key: str) -> bool:
        """Whether it has; a template's key does not tell names in double quotes from texts."""
        found = quoted(statement, self.catalog.dialect, tokens)
        if not any(found):
            return False
        short = _hash(f"{key}\x1f{found}")
        if (answer := self._quoted.get(short)) is None:
            answer = self._quoted[short] = has_quoted_names(statement, self.catalog.dialect, tokens)
            if len(self._quoted) > CACHED:
                self._quoted.popitem(last=False)
        self._quoted.move_to_end(short)
        return answer

    def _parsed(
        self, statement: str, timestamp: int | None, zone: str, parameters: Parameters | None = None
    ) -> tuple[Scan, ...] | Unusable:
        recipes = read_statement(statement, self.catalog, parameters)
        return recipes if isinstance(recipes, Unusable) else scans_of(recipes, timestamp, zone)

    def _remember(self, key: str, value: Template | Unusable | First | None) -> None:
        self._known[key] = value
        if len(self._known) > CACHED:
            self._known.popitem(last=False)

    def _template(self, statement: str, tokens: list[Token], first: First) -> Template | None:
        """The statement's template, or None when its literals cannot be told apart from its structure."""
        marked, end, number = [], 0, 0
        markers, shaping = dict[str, int](), _shaping(tokens)
        for place, token in enumerate(tokens):
            if token.token_type not in LITERAL:
                continue
            if place not in shaping:
                text = _STRING.format(number) if token.token_type in TEXTS else str(_NUMBER + number)
                markers[text] = number
                marker = f"'{text}'" if token.token_type in TEXTS else text
                marked += [statement[end : token.start], marker]
                end = token.end + 1
            number += 1
        recipes = read_statement("".join([*marked, statement[end:]]), self.catalog)
        if isinstance(recipes, Unusable):
            return None
        slots: dict[int, list[exp.Literal]] = {}
        for recipe in recipes:
            for condition in (*recipe.conditions, *recipe.implied):
                for node in condition.find_all(exp.Literal):
                    if (slot := markers.get(str(node.this))) is not None:
                        if node.arg_key == "format":
                            return None  # another one would stand there in its own dialect's letters
                        slots.setdefault(slot, []).append(node)
        lost = [marker for marker, number in markers.items() if number not in slots]
        if lost and any(marker in text for text in _texts(recipes) for marker in lost):
            return None  # such as a format, which the tree holds in another dialect's letters, or a unit in capitals
        template = Template(recipes, slots)
        return template if template.scans(first.literals, first.timestamp, first.zone) == first.scans else None


def _texts(recipes: Iterable[Recipe]) -> Iterator[str]:
    """The conditions of recipes in Spark's SQL, in lower case."""
    for recipe in recipes:
        yield from (condition.sql("spark").lower() for condition in (*recipe.conditions, *recipe.implied))


def _key(tokens: list[Token]) -> str:
    """Token texts with literals as ``?``, those that shape the tree spelled out."""
    parts, shaping = [], _shaping(tokens)
    for number, token in enumerate(tokens):
        kind = token.token_type
        if kind in LITERAL:
            parts.append("?" + shaping[number] if number in shaping else "?s" if kind in TEXTS else "?n")
        else:
            parts.append("`" + token.text if kind == TokenType.IDENTIFIER else token.text.lower())
    return "\x1f".join(parts)


def _shaping(tokens: list[Token]) -> dict[int, str]:
    """How texts are spelled out that are no values, by the numbers of their tokens: units, and names of tables.

    >>> statement = "SELECT 'a' FROM 'b', 'c' JOIN delta_scan('d') ON x IN ('e', 'f') WHERE y = INTERVAL 1 'day'"
    >>> list(_shaping(tokens_of(statement, "duckdb") or []).values())
    ["'b'", "'c'", "'d'", 'day']
    """
    found: dict[int, str] = {}
    if not any(token.token_type == TokenType.STRING for token in tokens):
        return found
    if tokens[0].token_type == TokenType.COPY and [token.token_type for token in tokens[1:2]] != [TokenType.L_PAREN]:
        return found  # it reads ever new files, and is no query
    outside: list[tuple[bool, bool]] = []
    among, may = False, False  # whether this clause is a list of tables, and one may stand here
    clauses = True  # not in the brackets of a function, as in trim('x' FROM 'y')
    last, before = "", TokenType.SEMICOLON
    for number, token in enumerate(tokens):
        kind = token.token_type
        if kind == TokenType.STRING:
            if token.text.lower() in UNITS:
                found[number] = token.text.lower()
            elif may:
                found[number] = repr(token.text)
        if kind == TokenType.L_PAREN:
            outside.append((among, clauses))
            among = may = may or last in CALLS
            clauses = False
        elif kind == TokenType.R_PAREN:
            (among, clauses), may = outside.pop() if outside else (False, True), False
        elif kind == TokenType.FROM and (before == TokenType.DISTINCT or not (clauses or before == TokenType.L_PAREN)):
            may = False
        elif kind in OF_TABLES:
            among = may = True
        else:
            clauses = clauses or kind == TokenType.SELECT
            among = among and kind not in OF_VALUES
            may = among and kind in (TokenType.COMMA, TokenType.DOT)
        last, before = token.text.lower(), kind
    return found


def _hash(key: str) -> str:
    return hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=8).hexdigest()
