"""Why a log tells nothing of a table: the cause, in words, with the way out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from zorder_pipeline.model.predicate import And, comparisons
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.wording import counted
from zorder_pipeline.model.workload import LoggedQuery, QueryLog
from zorder_pipeline.query_log.insight import REASONS

__all__ = ["why_nothing", "why_unfiltered"]

TOLD = 3


def why_nothing(log: QueryLog, queries: Sequence[LoggedQuery]) -> str:
    """Why nothing can be learned from a log about a table.

    Args:
        queries: those of the log that scan the table; none of them is usable.

    >>> why_nothing(QueryLog((), 2, 0, quarantined={"malformed_json": 2}), [])
    '2 lines cannot be used (2: the line is no JSON)'
    """
    causes = []
    if queries:
        scans = counted(len(queries), "query") + (" scans it" if len(queries) == 1 else " scan it")
        if untold := sum(query.partial for query in queries):
            causes.append(
                f"{scans}, and what {untold:,} of them filter by cannot be told: columns that the table does not have "
                "(were they renamed or dropped?), or a time that the log does not tell"
            )
        elif all(query.predicate == And(()) for query in queries):
            causes.append(f"{scans} and none has a condition, so that each reads all of it in any order")
        else:
            causes.append(f"{scans} and none has a condition that compares a column with values")
    elif log.queries or log.unmatched:
        causes.append(f"{log.read}; if the log calls the table otherwise, name it with --alias")
    elif log.used:  # of a state, whose queries of this table alone were loaded
        kept = f"of the {log.used:,} that could be used none that is kept scans it"
        causes.append(
            f"{kept}: they ask for other tables, or were deleted, by zorder purge or as older than retention_days; if "
            "the log calls the table otherwise, name it with --alias"
        )
    if lost := sum(log.quarantined.values()):
        ranked = sorted(log.quarantined.items(), key=lambda item: -item[1])[:TOLD]
        told = ", ".join(f"{count:,}: {REASONS.get(reason, reason)}" for reason, count in ranked)
        causes.append(f"{counted(lost, 'line')} cannot be used ({told})")
    return "; ".join(causes) or log.read


def why_unfiltered(location: str, queries: Sequence[LoggedQuery], schema: TableSchema, solved: Collection[str]) -> str:
    """Why readers skip nothing by what the queries of a table filter by, in a sentence with the way out.

    Args:
        solved: the columns that they filter by through functions that scans through ``reading/`` alone skip by.

    >>> from zorder_pipeline.model.predicate import Comparison, Literal
    >>> asked = LoggedQuery("t", Comparison("cust", "=", (Literal("number", "7"),)))
    >>> why_unfiltered("t", [asked], TableSchema(()), [])
    'no query of t filters by a column that the table has: they filter by cust; was it renamed or dropped?'
    """
    if solved:
        return (
            f"queries of {location} filter by {_listed(sorted(solved))} only through functions (year(ts) = 2024 and "
            "the like), by which ordinary readers skip nothing: tell what share of the scans goes through "
            "zorder_pipeline.scan, which skips by them (--enriched-share, gate.enriched_reader_share), or write such "
            "conditions as ranges of the column"
        )
    named = Counter(leaf.column for query in queries for leaf in comparisons(query.predicate))
    lost = [name for name, _ in named.most_common() if not schema.holds(name)]
    if not lost:
        return f"no query of {location} compares a column with values in a way that statistics of files answer"
    were = "was it" if len(lost) == 1 else "were these"
    return (
        f"no query of {location} filters by a column that the table has: they filter by {_listed(lost)}; "
        f"{were} renamed or dropped?"
    )


def _listed(names: Sequence[str]) -> str:
    """The first of some names, and how many others there are."""
    return ", ".join(names[:TOLD]) + (f" and {len(names) - TOLD} others" if len(names) > TOLD else "")
