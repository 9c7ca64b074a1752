"""Conditions that may be evaluated later: rebuilt in Spark SQL from an allow-list of deterministic functions.

Query logs are untrusted. Nothing of a statement is ever executed as given; what becomes an expression feature is
written anew from its parsed tree, and only when every node of it is known here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from itertools import islice

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from zorder_pipeline.model.predicate import REPEATED_GROUP, VARIABLE
from zorder_pipeline.model.schema import Column
from zorder_pipeline.model.spark_sql import column_sql

from .bounded import one_in
from .dialects import dialect_of
from .formats import FORMAT, python_form
from .qualified import path_of

__all__ = ["MAX_EXPRESSION", "depth_of", "means_another", "rebuilt", "too_deep", "with_names"]

MAX_EXPRESSION = 2_000
"""Characters of a rebuilt expression; longer ones are not kept."""
MAX_NODES = 200
MAX_BRACKETS = 20
"""What is kept is parsed again, under Python's usual limit of calls in calls."""

_SYNTAX = """Column Identifier Literal Boolean Null Paren Tuple DataType DataTypeParam Var Interval"""
_OPERATORS = """And Or Not Neg EQ NEQ NullSafeEQ NullSafeNEQ LT LTE GT GTE Is In Between Add Sub Mul Div Mod IntDiv
    BitwiseAnd BitwiseOr BitwiseXor DPipe Like ILike Escape RegexpLike Cast TryCast If Case Bracket Dot"""
_FUNCTIONS = """Abs Ceil Floor Round Sign Sqrt Pow Ln Greatest Least Coalesce Nullif
    Lower Upper Trim Length Left Right Substring SubstringIndex Concat ConcatWs Replace Reverse Initcap
    StartsWith EndsWith Contains StrPosition RegexpExtract RegexpReplace SplitPart MD5 SHA SHA2
    Year Quarter Month Week WeekOfYear Day DayOfWeek DayOfMonth DayOfYear Hour Minute Second Extract
    DateTrunc TimestampTrunc DateAdd DateSub DateDiff AddMonths MonthsBetween LastDay TsOrDsAdd TsOrDsToDate Date
    TimeToStr TimeStrToTime
    ArrayContains ArraySize JSONExtract JSONExtractScalar JSONPath JSONPathRoot JSONPathKey JSONPathSubscript"""
ALLOWED = frozenset(
    found
    for name in (_SYNTAX + " " + _OPERATORS + " " + _FUNCTIONS).split()
    if (found := getattr(exp, name, None)) is not None
)


_VALUES = {"current_time", "current_timestamp", "localtimestamp", "session_user", "user"}
"""Words that Spark takes for a value, and not for a column, besides those that its grammar here knows as such."""
_RELATIVE = re.compile(r"[\x00-\x20]*(epoch|now|today|tomorrow|yesterday)(?![a-z])", re.IGNORECASE)
"""Texts that a cast to a date or an instant makes of the time at which it is evaluated."""
_WORD = re.compile(r"[A-Za-z]\w*", re.ASCII)
_BRACKET = re.compile(r"[()\[\]]")
MAX_DEPTH = 300
"""Brackets in brackets of a statement that is parsed."""
_TYPES = re.compile(r"(?:\b(?:array|map|struct)\s{0,9}<[^<>]{0,200}){64}", re.IGNORECASE)
"""Types in types so deep take the parser a time that grows with the cube of their number: 400 of them seconds."""
_PATTERNS = (exp.RegexpLike, exp.RegexpExtract, exp.RegexpReplace)
_ELSEWHERE = (
    *(exp.Div, exp.DayOfWeek, exp.Week, exp.WeekOfYear, exp.Bracket, exp.Greatest, exp.Least, exp.DateDiff),
    *(exp.AddMonths, exp.DateAdd, exp.DateSub, exp.TsOrDsAdd, exp.TimestampAdd, exp.TimestampSub),
    *(exp.DatetimeAdd, exp.DatetimeSub),
)
"""What Spark means otherwise than other dialects: divisions of whole numbers, numbers of days and weeks, places in
lists, nulls among the greatest, months between days, ends of months, hours and the like that are added to a time."""
_ROUNDED = exp.DataType.INTEGER_TYPES | exp.DataType.TEXT_TYPES
"""Types to which other dialects cast otherwise: they round numbers, and write them and times in forms of their own."""
_PARTS = ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE")
_PLACED = (exp.Left, exp.Right, exp.Substring, exp.SplitPart)
_CASTS = (exp.Cast, exp.TryCast, exp.Date, exp.TsOrDsToDate)


PathOf = Callable[[exp.Column], tuple[str, ...] | None]


def rebuilt(node: exp.Expr, path_in_table: PathOf) -> str:
    """The condition in Spark SQL over the table's own column names; "" unless every node of it is allow-listed.

    A text in which Spark would substitute variables is none, whatever it was in the log.

    Args:
        path_in_table: path of the table's column that a node is, or None.

    >>> from sqlglot import parse_one
    >>> rebuilt(parse_one("MONTH(q.ts) = 3 AND C <> 'x'", read="spark"), lambda node: (node.name.lower(),))
    "MONTH(ts) = 3 AND c <> 'x'"
    >>> def told(text, read="spark"):
    ...     return rebuilt(parse_one(text, read=read), path_of)
    >>> told("`null` = 'x' AND s.x = `s.x`")
    "`null` = 'x' AND s.x = `s.x`"
    >>> told("`desc` LIKE 'x_'"), told("f(`desc`) = 1"), told("datediff(d, CAST('today' AS DATE)) = 0")
    ("`desc` LIKE 'x_'", '', '')
    >>> told('EXTRACT("year FROM ts) = 1 OR f(1) = EXTRACT(year" FROM ts) = 5', read="snowflake")
    ''
    >>> told("c RLIKE '^a+$'"), told("c RLIKE '(a+)+$'"), told("reflect('java.lang.System', 'exit') = 0")
    ("c RLIKE '^a+$'", '', '')
    """
    if not _allowed(node):
        return ""
    return _written(node, path_in_table, _is_plain) or _written(node, path_in_table, _is_plain_anywhere)


def _written(node: exp.Expr, path_in_table: PathOf, is_plain: Callable[[str], bool]) -> str:
    """Its text, names that are not plain in quotes; "" where it is another one once it is read again."""
    copy = node.copy()
    for column in list(copy.find_all(exp.Column)):
        found = path_in_table(column)
        if found is None:
            return ""
        path = [exp.to_identifier(part, quoted=not is_plain(part)) for part in found]
        plain = exp.column(*reversed(path)) if len(path) <= 4 else exp.Dot.build(path)
        if column is copy:
            copy = plain
        else:
            column.replace(plain)
    try:
        text = copy.sql(dialect="spark", comments=False)
        # some nodes are written as they came, e.g. units of time: what is kept has to be harmless once it is read again
        again = one_in(text, "spark")
    except (SqlglotError, ValueError, RecursionError):
        return ""
    kept = len(text) <= MAX_EXPRESSION and VARIABLE not in text and depth_of(text) <= MAX_BRACKETS
    return text if kept and _allowed(again) else ""


def with_names(expression: str, called: Mapping[str, Column | None]) -> str:
    """What `rebuilt` gave, with other names of columns; "" where one of them has none.

    Args:
        called: the column to name by the name in use, in lower case; names that are not in it stay.

    >>> named = {"cust": Column("customer", "string"), "s.x": Column("s.y z", "int")}
    >>> with_names("lower(Cust) LIKE '%cust%' AND s.x > 1", named)
    "LOWER(customer) LIKE '%cust%' AND s.`y z` > 1"
    """
    if not expression:
        return ""
    try:
        node = one_in(expression, "spark")
    except (SqlglotError, ValueError, RecursionError):
        return ""

    def path_in_table(column: exp.Column) -> tuple[str, ...] | None:
        path = path_of(column)
        for name in (column_sql(path), ".".join(path)):  # in quotes, where that with dots is another one's
            if name.lower() in called:
                return None if (found := called[name.lower()]) is None else found.parts
        return path

    return rebuilt(node, path_in_table)


def means_another(node: exp.Expr) -> bool:
    """Whether a condition of another dialect than Spark's may mean something else once it is written in Spark SQL.

    >>> from sqlglot import parse_one
    >>> [
    ...     means_another(parse_one(text, read="trino"))
    ...     for text in ("a / 2 = 3", "lower(c) = 'x'", "substr(c, 0, 2) = 'x'")
    ... ]
    [True, False, True]
    """
    return any(_means_another(item) for item in node.walk())


def _means_another(item: exp.Expr) -> bool:
    match item:
        case exp.Extract():
            return str(item.this).upper() not in _PARTS
        case exp.Cast():
            return item.to.this in _ROUNDED and item.this.find(exp.Column) is not None
        case exp.DateTrunc() | exp.TimestampTrunc():  # a week begins on a day of its own
            return "WEEK" in str(item.args.get("unit")).upper()
        case exp.Like() | exp.ILike():  # a backslash escapes in Spark
            return not isinstance(item.expression, exp.Literal) or "\\" in item.expression.name
    if isinstance(item, _PLACED):  # counted from the end, or from 0
        numbers = (given for name, given in item.args.items() if name != "this" and isinstance(given, exp.Expr))
        return not all(_is_place(given) for given in numbers)
    return isinstance(item, _ELSEWHERE)


def _is_place(given: exp.Expr) -> bool:
    """Whether it is a text, or a whole number above 0."""
    return isinstance(given, exp.Literal) and (given.is_string or (given.name.isdecimal() and int(given.name) > 0))


def depth_of(text: str) -> int:
    """Brackets in brackets, at most.

    >>> depth_of("f(a[1]) = (2)")
    2
    """
    depth = deepest = 0
    for found in _BRACKET.finditer(text):
        depth += 1 if found.group() in "([" else -1
        deepest = max(deepest, depth)
    return deepest


def too_deep(statement: str) -> bool:
    """Whether a statement is nested more deeply than is parsed.

    >>> [too_deep("(" * depth + ")" * depth) for depth in (300, 301)], too_deep("array<" * 64 + "int" + ">" * 64)
    ([False, True], True)
    """
    return depth_of(statement) > MAX_DEPTH or _TYPES.search(statement) is not None


def _allowed(node: exp.Expr) -> bool:
    """Whether the condition is made of what is known here alone, and means the same at any time."""
    items = list(islice(node.walk(), MAX_NODES + 1))
    if len(items) > MAX_NODES:
        return False
    for item in items:
        if type(item) not in ALLOWED:
            return False
        if isinstance(item, exp.Var) and not _WORD.fullmatch(item.name):
            return False
        if isinstance(item, exp.Literal) and item.is_string and _RELATIVE.match(item.this):
            return False
        if item.args.get("zone") or item.args.get("full_match"):  # which Spark has no word for, and would lose
            return False
        if isinstance(item, exp.TimeToStr) and not _of_digits(item.args.get("format")):
            return False
        if isinstance(item, _PATTERNS) and _may_explode(item.args.get("expression")):
            return False
        # of a text that is put together Spark would make a time, too, if it turned out to be "now"
        made = isinstance(item, (exp.Func, exp.DPipe, *_CASTS)) and not isinstance(item, exp.Connector)
        if made and not _is_branch(item) and _of_no_column(item):
            return False
    return True


def _is_branch(item: exp.Expr) -> bool:
    """Whether it is a WHEN of a CASE, whose parts count each by itself."""
    return isinstance(item, exp.If) and isinstance(item.parent, exp.Case)


def _may_explode(pattern: exp.Expr | None) -> bool:
    """Whether a pattern may take Java for ever, or is not written down."""
    return not isinstance(pattern, exp.Literal) or REPEATED_GROUP.search(pattern.name) is not None


def _of_digits(form: exp.Expr | None) -> bool:
    """Whether a time is written in digits, which no language and no setting makes others of."""
    return isinstance(form, exp.Literal) and form.is_string and FORMAT.fullmatch(python_form(form)) is not None


def _of_no_column(item: exp.Expr) -> bool:
    """Whether it is computed from constants, and not a number or a time written down."""
    operand = item.this if isinstance(item, _CASTS) else None
    if isinstance(operand, exp.Literal) and (not operand.is_string or operand.this[:1].isdigit()):
        return False
    return item.find(exp.Column) is None


@cache
def _is_plain(name: str) -> bool:
    """Whether a name is a column's without quotes: one may be called ``null`` or ``current_date``."""
    if not name.isidentifier() or name.lower() in _VALUES:
        return False
    try:
        found = sqlglot.parse_one(f"SELECT 1 = {name} AND {name} = 1", read=dialect_of("spark")).expressions[0]
    except SqlglotError:
        return False
    sides = (found.this.expression, found.expression.this) if isinstance(found, exp.And) else ()
    return bool(sides) and all(isinstance(side, exp.Column) and side.name == name for side in sides)


@cache
def _is_plain_anywhere(name: str) -> bool:
    """Whether it is also where a text, or what is in brackets, begins with it: ``comment`` begins a command there."""
    try:
        found = sqlglot.parse_one(f"{name} = LOWER({name})", read=dialect_of("spark"))
    except SqlglotError:
        return False
    sides = (found.this, found.expression.this) if isinstance(found, exp.EQ) else ()
    return _is_plain(name) and bool(sides) and all(isinstance(side, exp.Column) and side.name == name for side in sides)
