"""What a materialization shows: Markdown tables, pictures, and the table metadata that Dagster itself renders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dagster import MetadataValue, TableColumn, TableColumnConstraints, TableSchema

from zorder_pipeline.config import PipelineConfig, TableConfig
from zorder_pipeline.model.places import uri_of
from zorder_pipeline.model.results import ApplyResult
from zorder_pipeline.model.schema import TableSchema as Schema
from zorder_pipeline.model.wording import SHOWN
from zorder_pipeline.model.workload import LoggedQuery, QueryLog
from zorder_pipeline.query_log.insight import FORMS, filter_forms, filters_of, insight

if TYPE_CHECKING:
    from zorder_pipeline.relayout.snapshot import TableSnapshot

__all__ = ["column_schema", "gigabytes", "md", "md_table", "percent", "picture", "predicates", "table_facts"]
__all__ += ["bullets", "cause_of", "counts", "escaped", "log_facts", "unescaped", "workload_facts"]

MARKS = re.compile(r"[\\|`<>\[\]*_!&~#]")
"""Characters by which Markdown marks something up, or writes another one."""
LINKED = re.compile(r"(?:https?|ftp):(?=//)|www(?=\.)|@(?=[\w-])", re.IGNORECASE)
"""Where GitHub's Markdown, which is Dagster's, sees a link in plain text; behind a backslash it does, too."""
JOINER = "\u2060"
"""A character that nobody sees, by which there is no link."""
MAX_ROWS = 40
MAX_TEXT = 160


def md(text: str) -> MetadataValue[Any]:
    """Markdown; above 1000 characters Dagster opens it in a dialog."""
    return MetadataValue.md(text)


def bullets(sentences: Iterable[str]) -> MetadataValue[Any]:
    """Sentences one below the other; `zorder_pipeline.assets.events.reasons_of` reads them again."""
    return md("\n".join(f"- {escaped(sentence)}" for sentence in sentences))


def escaped(text: str) -> str:
    """Text as Markdown shows it: a log is untrusted, and nothing in it may become markup, nor a link.

    >>> escaped("a_b < `c`")
    'a\\\\_b \\\\< \\\\`c\\\\`'
    """
    return LINKED.sub(rf"\g<0>{JOINER}", MARKS.sub(r"\\\g<0>", text))


def unescaped(text: str) -> str:
    """The text that was `escaped`.

    >>> unescaped(escaped("a_b < `c` of https://example.org"))
    'a_b < `c` of https://example.org'
    """
    return re.sub(rf"\\({MARKS.pattern})", r"\1", text.replace(JOINER, ""))


def md_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table, or "none"; numbers are right-aligned, at most 40 rows are shown.

    >>> print(md_table(["column", "queries"], [("a|b", 1200)]))
    | column | queries |
    | --- | ---: |
    | a\\|b | 1,200 |
    """
    listed = [tuple(row) for row in rows]
    if not listed:
        return "none"
    numeric = [all(isinstance(row[i], int | float) for row in listed) for i in range(len(header))]
    lines = [header, ["---:" if right else "---" for right in numeric]]
    lines += [[_cell(value) for value in row] for row in listed[:MAX_ROWS]]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    left = len(listed) - MAX_ROWS
    return text + (f"\n\nand {left:,} more" if left > 0 else "")


def _cell(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: ""}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    text = " ".join(str(value).split()).translate(SHOWN)
    text = text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
    return escaped(text)


def counts(items: Mapping[str, int], what: str, number: str) -> MetadataValue[Any]:
    """A Markdown table of counts, the largest first."""
    return md(md_table([what, number], [(name, items[name]) for name in sorted(items, key=lambda name: -items[name])]))


def picture(png: bytes, alt: str, text: str = "") -> MetadataValue[Any]:
    """A picture, with text under it."""
    from zorder_pipeline import pictures  # matplotlib: not needed to load the definitions

    return md(pictures.markdown(png, alt) + (f"\n\n{text}" if text else ""))


def workload_facts(queries: Sequence[LoggedQuery], schema: Schema) -> MetadataValue[Any]:
    """What is asked of a table, in figures without any literal (seed 004, chapter 2)."""
    found = insight(queries, schema)
    forms = md_table(["form of condition", "times"], [(FORMS[form], count) for form, count in found["forms"].items()])
    levels = md_table(["can skip at level", "queries"], list(found["levels"].items()))
    points = md_table(["column", "different values compared with"], list(found["comparison_points"].items()))
    shares = [
        ("without any filter", found["unfiltered"] / max(1, found["queries"])),
        ("without a time that could be read", found["untimed"] / max(1, found["queries"])),
        ("filter by one of the four most used columns", found["top4_share"]),
        ("filter by a partition column", found["partition_filters"]),
        ("columns alike in both halves of the log", found["constancy"]),
    ]
    rows = [(name, percent(share)) for name, share in shares if share is not None]
    return md("\n\n".join([forms, levels, points, md_table(["share of the queries", ""], rows)]))


def percent(share: float) -> str:
    """A share for a person.

    >>> percent(0.1214), percent(0.0004)
    ('12.1%', '0.04%')
    """
    return f"{share:.1%}" if share >= 0.01 or share <= 0 else f"{100 * share:.2g}%"


def gigabytes(size: float) -> str:
    """Bytes for a person.

    >>> gigabytes(2_340_000), gigabytes(1.2e9)
    ('2.34 MB', '1.2 GB')
    """
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:.0f} bytes"


def predicates(queries: Sequence[LoggedQuery], redact: bool) -> str:
    """The forms of the queries, most frequent first, each with an example of what it filters by; of several tables with
    theirs.
    """
    several = len({query.table for query in queries}) > 1
    rows = []
    for members in filter_forms(queries):
        users = {query.user for query in members if query.user}
        of, example = [members[0].table] if several else [], filters_of(members[0], redact)
        rows.append((*of, len(members), len({q.fingerprint for q in members}), len(users), example))
    return md_table([*(["table"] if several else []), "queries", "different", "users", "filters, e.g."], rows)


def log_facts(log: QueryLog, config: PipelineConfig) -> dict[str, Any]:
    """Materialization metadata of the query log."""
    scans: dict[str, int] = {}
    for query in log.queries:
        scans[query.table] = scans.get(query.table, 0) + 1
    times = [query.timestamp for query in log.queries if query.timestamp is not None]
    facts: dict[str, Any] = {
        "statements": log.lines,
        "used": log.used,
        "ignored": sum(log.ignored.values()),
        "quarantined": sum(log.quarantined.values()),
        "scans by table": counts(scans, "table", "scans"),
        "statements of tables that are not configured": counts(log.unmatched, "table", "statements"),
        "ignored by kind": counts(log.ignored, "kind", "statements"),
        "quarantined by reason": counts(log.quarantined, "reason", "statements"),
        "queries by form": md(predicates(log.queries, config.redact_literals)),
    }
    if times:
        facts["oldest query"] = MetadataValue.timestamp(min(times) / 1e6)
        facts["newest query"] = MetadataValue.timestamp(max(times) / 1e6)
    return facts


def column_schema(snapshot: TableSnapshot) -> TableSchema:
    """The table's columns as Dagster renders them."""
    return TableSchema(
        [
            TableColumn(
                column.name,
                column.type,
                tags={"partition": ""} if column.partition else {},
                description=None if column.delta_stats else "no min/max statistics: files cannot be skipped by it",
                constraints=TableColumnConstraints(),
            )
            for column in snapshot.schema.columns
        ]
    )


def table_facts(table: TableConfig, snapshot: TableSnapshot) -> dict[str, Any]:
    """Row count, schema, URI and name of a Delta table under the keys that Dagster renders itself."""
    files = snapshot.files()
    return {
        "dagster/row_count": int(files.rows.sum()),
        "dagster/column_schema": column_schema(snapshot),
        "dagster/uri": uri_of(snapshot.location),
        "dagster/table_name": table.catalog or table.name,
        "files": len(files),
        "size": gigabytes(float(files.bytes.sum())),
        "Delta version": snapshot.version,
    }


def cause_of(result: ApplyResult) -> dict[str, Any]:
    """The gate's reason as one word (docs/decisions.md), as metadata; nothing where no gate was asked."""
    return {"cause": str(result.gate["cause"])} if result.gate.get("cause") else {}
