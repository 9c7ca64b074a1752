"""A table's workload in figures: forms of predicates, and at which level they can skip (seed 004, chapter 2)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from typing import Any

from zorder_pipeline.model.predicate import And, Comparison, Opaque, Or, Predicate
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.workload import LoggedQuery

__all__ = ["FORMS", "LEVELS", "REASONS", "SKIPPING", "alike", "filter_forms", "filters_of", "insight", "levels_of"]
__all__ += ["query_level"]

LEVELS = ("delta", "row_group", "page", "enriched")
"""From the file statistics in Delta's log over Parquet's row groups and pages to scans through ``reading/``."""
FORMS = {
    "P1": "column = value",
    "P2": "column < value, between",
    "P3": "column IN (values)",
    "P4": "column starts with a text",
    "P5": "column IS [NOT] NULL",
    "P6": "column <> value, NOT IN",
    "P7": "function(columns) compared with a value",
    "P8": "other conditions: patterns, column against column, OR across columns",
}
SKIPPING = ("P1", "P2", "P3", "P4", "P5", "P6")
"""Forms by which files can be skipped by min/max statistics."""
REASONS = {
    "damaged_file": "the file ends or breaks here: copy it anew",
    "empty": "no statement, only blanks or comments",
    "failed": "the log says that the query failed",
    "from_cache": "the log says that a cache of results answered it, so that no table was read",
    "invalid_utf8": "the line is no UTF-8 text",
    "malformed_csv": "the line is no CSV with the header's columns",
    "malformed_json": "the line is no JSON",
    "no_event": "no event of Spark's: it is no Spark event log, try another --log-format",
    "no_scan": "Spark ran it without reading a table",
    "no_statement": "no text in a column called statement, query_text, sql, …",
    "no_table": "it reads no table",
    "nul_character": "it holds a NUL character",
    "other_dialect": "names in double quotes, which are texts in this dialect: try another --dialect",
    "other_table": "it reads other tables: name yours with --table or --alias",
    "parse_error": "no SQL of the dialect: try another --dialect",
    "tokenize_error": "no SQL of the dialect, e.g. an open quote: try another --dialect",
    "too_ambiguous": "more ways to read it than are tried, as of a dozen JOINs without ON, or a few before a long list",
    "too_deeply_nested": "more levels of brackets than are read",
    "too_long": "longer than is read",
    "too_many_statements": "more statements in one line than are read",
    "too_many_tables": "more tables in one FROM than are read",
    "truncated": "the last line, cut off: it is read again when it is whole",
    "unknown_statement": "no statement that is known to read a table; misspelt ones are among them",
    "unfinished": "the query had not ended when the log did",
    "unreadable_file": "the file cannot be read by this user, or its filesystem fails; it is read once it can be",
    "unreadable_plan": "Spark's plan has a form that is not known",
    "unsupported": "SQL that is not supported",
}
"""Why a line was quarantined or ignored, in words; an ignored statement may also go by its kind, e.g. ``insert``."""
_FORM = {"=": "P1", "<=>": "P1", "in": "P3", "starts_with": "P4", "is_null": "P5", "is_not_null": "P5"}
_FORM |= {"<>": "P6", "not_in": "P6"}
TOP = 10


def filter_forms(queries: Sequence[LoggedQuery]) -> list[list[LoggedQuery]]:
    """Queries of a table that filter alike but for their literals, whatever they select; the most frequent form first.

    Conditions that are kept by their kind alone, such as those with functions, are alike where the statements are.
    """
    forms: dict[tuple[str, ...], list[LoggedQuery]] = {}
    for query in queries:
        opaque = any(isinstance(leaf, Opaque) for leaf in _leaves(query.predicate))
        form = query.table, query.predicate.to_sql(redact=True), query.template if opaque else ""
        forms.setdefault(form, []).append(query)
    return sorted(forms.values(), key=len, reverse=True)


def filters_of(query: LoggedQuery, redact: bool) -> str:
    """What a query filters by, in SQL.

    >>> filters_of(LoggedQuery("orders", And(())), redact=False)
    'nothing'
    """
    return query.predicate.to_sql(redact) if query.predicate != And(()) else "nothing"


def levels_of(leaf: Comparison | Opaque, schema: TableSchema | None = None) -> tuple[str, ...]:
    """The levels at which a condition can skip, coarsest first; empty when none can.

    Args:
        schema: of the table, to know which columns have statistics; without one every column is taken to have them.

    >>> levels_of(Comparison("a", "<>", ())), levels_of(Opaque("like", ("a",), "a LIKE '%x'"))
    (('delta', 'row_group', 'page'), ('enriched',))
    """
    if isinstance(leaf, Opaque):
        return ("enriched",) if leaf.expression else ()
    if leaf.solved:
        return ("enriched",)
    column = schema.find(leaf.column) if schema is not None else None
    if schema is not None and column is None:
        return ()
    if column is not None and not column.value_type.orderable and leaf.op not in ("is_null", "is_not_null"):
        return ()
    if leaf.op == "not_in":
        return ()
    return LEVELS[:3] if column is None or column.delta_stats else LEVELS[1:3]


def query_level(query: LoggedQuery, schema: TableSchema | None = None) -> str:
    """The coarsest level at which the query can skip, or ``none``."""
    found = {level for leaf in _leaves(query.predicate) for level in levels_of(leaf, schema)[:1]}
    return next((level for level in LEVELS if level in found), "none")


def insight(queries: Sequence[LoggedQuery], schema: TableSchema | None = None) -> dict[str, Any]:
    """Figures about the queries of one table; no literal is among them.

    Returns:
        ``queries``, and how many of them are ``unfiltered``, ``partial`` or ``untimed``, of which no time is known;
        ``forms``: conditions by form, see `FORMS`;
        ``levels``: queries by the coarsest level at which they can skip;
        ``expressions``: distinct columns and expressions filtered by;
        ``comparison_points``: distinct literals of the most used columns;
        ``top4_share``: share of the queries that filter by one of the four most used columns;
        ``partition_filters``: share of the queries that filter by a partition column, None without such columns;
        ``constancy``: how alike the columns of the earlier and the later half are, 0 to 1;
        ``read_share_median``: rows read in relation to the most that a query read, where the log says it.
    """
    forms: Counter[str] = Counter()
    used: Counter[str] = Counter()
    points: dict[str, set[Any]] = defaultdict(set)
    expressions: set[str] = set()
    partitioned = unfiltered = 0
    columns_of: list[set[str]] = []
    partitions = {name.lower() for name in schema.partition_columns} if schema is not None else set()
    for query in queries:
        columns, leaves = set(), list(_leaves(query.predicate))
        unfiltered += not leaves
        for leaf in leaves:
            forms[_form(leaf)] += 1
            if isinstance(leaf, Comparison):
                columns.add(leaf.column)
                points[leaf.column].update(leaf.literals)
                expressions.add(leaf.column)
            else:
                expressions.add(f"{leaf.form}:{','.join(leaf.columns)}")
        used.update(columns)
        columns_of.append(columns)
        partitioned += any(column.lower() in partitions for column in columns)
    top = [name for name, _ in used.most_common(4)]
    count = len(queries)
    read = sorted(query.rows_read for query in queries if query.rows_read is not None)
    return {
        "queries": count,
        "unfiltered": unfiltered,
        "partial": sum(query.partial for query in queries),
        "untimed": sum(query.timestamp is None for query in queries),
        "forms": {form: forms[form] for form in FORMS if forms[form]},
        "levels": dict(Counter(query_level(query, schema) for query in queries)),
        "expressions": len(expressions),
        "comparison_points": {name: len(points[name]) for name, _ in used.most_common(TOP)},
        "top4_share": _share(sum(any(name in columns for name in top) for columns in columns_of), count),
        "partition_filters": _share(partitioned, count) if partitions else None,
        "constancy": _constancy(queries, columns_of),
        "read_share_median": read[len(read) // 2] / read[-1] if read and read[-1] else None,
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _constancy(queries: Sequence[LoggedQuery], columns_of: list[set[str]]) -> float | None:
    """Overlap of the columns' shares in the earlier and the later half of the queries that have a time."""
    timed = sorted((query.timestamp, i) for i, query in enumerate(queries) if query.timestamp is not None)
    if len(timed) < 20:
        return None
    half = len(timed) // 2
    return alike(*([columns_of[i] for _, i in part] for part in (timed[:half], timed[half:])))


def alike(earlier: Sequence[Set[str]], later: Sequence[Set[str]]) -> float:
    """How alike the columns are that two groups of queries filter by, from 0 to 1: the overlap of their shares.

    >>> alike([{"a"}, {"a", "b"}], [{"a"}, {"c"}])
    0.5
    """
    shares = []
    for part in (earlier, later):
        counted = Counter(name for columns in part for name in columns)
        whole = counted.total() or 1
        shares.append({name: number / whole for name, number in counted.items()})
    return sum(min(share, shares[1].get(name, 0.0)) for name, share in shares[0].items())


def _form(leaf: Comparison | Opaque) -> str:
    if isinstance(leaf, Comparison):
        return "P7" if leaf.solved else _FORM.get(leaf.op, "P2")
    return "P7" if leaf.form == "function" else "P8"


def _leaves(predicate: Predicate) -> Iterator[Comparison | Opaque]:
    """Conditions as written: implied ones are left out, ones that were solved count once."""
    match predicate:
        case And(children) | Or(children):
            for child in children:
                yield from _leaves(child)
        case Comparison(derived=True, solved=False):
            return
        case _:
            yield predicate
