"""The facts of a table's report: from the state, the table itself, and a fresh look at its newest queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from zorder_pipeline import pictures, pipeline
from zorder_pipeline.layout.importance import column_importance
from zorder_pipeline.model.wording import counted
from zorder_pipeline.model.workload import QueryLog
from zorder_pipeline.pipeline import LearnSettings, LogSource, TableAnalysis
from zorder_pipeline.pipeline.learning import drawing
from zorder_pipeline.pipeline.learning.words import without_literals
from zorder_pipeline.pipeline.table_log import table_log
from zorder_pipeline.query_log.insight import FORMS, SKIPPING, filter_forms, filters_of, insight
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table

from . import books
from .facts import Facts, gather
from .page import Card, Picture, Report, Section, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zorder_pipeline.gate.cost import CostModel

__all__ = ["collect"]

MOST_FORMS = 12
ZONES = "How much of each column every file spans: the fainter, the more queries skip it."
LEVELS = {
    "delta": "whole files, by Delta's statistics",
    "row_group": "row groups, by Parquet's",
    "page": "pages, by Parquet's",
    "enriched": "files, by readers through zorder_pipeline.reading",
    "none": "nothing",
}


def collect(
    spark: SparkSession,
    table: str,
    sources: Sequence[LogSource] = (),
    *,
    state: str | None = None,
    aliases: Sequence[str] = (),
    settings: LearnSettings | None = None,
    literals: bool = False,
    assumed: CostModel | None = None,
    days: float | None = None,
    progress: pipeline.Progress | None = None,
) -> Report:
    """All there is to say about a table; nothing is written.

    Args:
        table: path or catalog name.
        sources: query logs besides the stored one.
        state: folder of the state, for stored queries and past relayouts.
        aliases: further names that statements, or the configuration, call the table by.
        settings: of the search, which is made anew.
        literals: show values of queries and of the table; they can be personal data.
        assumed: what is believed of costs before any were measured, and the price of savings in money.
        days: only stored queries of so many days before the newest.

    Raises:
        TableError: there is no such table.
        LogError: a log cannot be read.
    """
    say = progress or pipeline.silent
    snapshot = open_table(spark, table)
    say("reading the queries")
    log = table_log(spark, table, snapshot, sources, state=state, aliases=aliases, days=days)
    key = None if literals else pipeline.redact_key(spark, state)
    settings = replace(settings or LearnSettings(), redact_key=key)
    facts = gather(spark, snapshot, log, [snapshot.location], state, settings, say, assumed)
    say("drawing")
    read, then = facts.read_now(), facts.read_before()
    sections = [
        _asked(facts, log, literals),
        *([_columns(facts.analysis)] if facts.analysis is not None else []),
        *_layout(facts, key),
        *_effect(facts, read, then),
        *books.money(facts),
        *books.nights(facts),
    ]
    files = snapshot.files()
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    name = table.rstrip("/").rsplit("/", 1)[-1]
    cards = [Card("rows", f"{int(files.rows.sum()):,}"), Card("files", f"{len(files):,}")]
    cards += [Card("of the bytes lie by a layout of ours", f"{_ours(snapshot):.0%}")]
    if len(read):
        cards.append(Card("of the rows are read by a query, on average", f"{read.mean():.1%}"))
    if then is not None and len(then):
        cards.append(Card("were read before the last relayout", f"{then.mean():.1%}"))
    return Report(
        name,
        _lead(
            facts,
            float(read.mean()) if len(read) else None,
            float(then.mean()) if then is not None and len(then) else None,
        ),
        f"{snapshot.location} at version {snapshot.version}, {counted(len(facts.queries), 'query')}, {made}",
        cards,
        sections,
    )


def _lead(facts: Facts, now: float | None, before: float | None) -> str:
    if now is None:
        return f"Nothing is known of what is asked: {facts.why_not or 'there is no query of the table'}"
    if before is not None and now < before:
        return f"Queries read {now:.1%} of the rows; before the last relayout they read {before:.1%}"
    learned = facts.learned
    if learned is not None and learned.spec is not None and learned.select < 0.8 * learned.stored_select:
        then = learned.select / learned.stored_select * now
        return f"Queries read {now:.1%} of the rows; a learned layout would read about {then:.1%}"
    if learned is None and facts.why_not:
        return f"Queries read {now:.1%} of the rows; no layout was sought: {facts.why_not}"
    return f"Queries read {now:.1%} of the rows, and no layout reads clearly less"


def _asked(facts: Facts, log: QueryLog, literals: bool) -> Section:
    found = insight(facts.queries, facts.now.schema)
    sentences = [f"{log.lines:,} statements were logged; {sum(log.quarantined.values()):,} could not be used."]
    if found["unfiltered"]:
        sentences.append(f"{found['unfiltered']:,} of the table's {found['queries']:,} queries filter by nothing.")
    rows = [
        (len(members), filters_of(members[0], not literals)[:200])
        for members in filter_forms(facts.queries)[:MOST_FORMS]
    ]
    parts: list[Picture | Table] = [
        Picture(
            drawing.asked_over_time(facts.queries), "When queries were asked, by the first column that they filter by."
        )
    ]
    if found["forms"]:
        told = {FORMS[form]: count for form, count in found["forms"].items()}
        drawn = pictures.condition_forms(told, [FORMS[form] for form in SKIPPING])
        parts.append(
            Picture(drawn, "Forms of the conditions: those in colour can skip files by smallest and largest values.")
        )
        levels = [(LEVELS[level], count) for level, count in found["levels"].items()]
        parts.append(Table(("what its filters can skip at best", "queries"), levels))
    if rows:
        parts.append(Table(("queries", "filters of the most frequent forms"), rows))
    return Section("What was asked", sentences, parts)


def _columns(analysis: TableAnalysis) -> Section:
    features = analysis.features
    may = {
        c.column: "no" if c.column not in features.ranked else "yes" if c.chosen else "yes, after the others"
        for c in features.candidates
    }
    rows = [
        (c.column, c.type, c.queries, f"{c.share:.1%}", c.distinct, may[c.column], c.reason)
        for c in features.candidates
    ]
    chosen = ", ".join(features.ranked) or "no column"
    header = ("column", "type", "queries", "share", "values in the sample", "may be in the key", "why")
    return Section(
        "Which columns matter",
        [f"The key may use {chosen}: seen on a sample of {analysis.sample.rows:,} rows."],
        [
            Picture(
                drawing.graph(features),
                "Columns that queries filter by; where two follow each other, sorting by one also sorts the other.",
            ),
            Table(header, rows),
        ],
    )


def _layout(facts: Facts, redact_key: str | None) -> list[Section]:
    sections, applied = [], facts.applied
    if applied is not None:
        applied = without_literals(applied, redact_key)
    if applied is not None and applied.spec is not None:
        shown = [Picture(drawing.layout(applied.spec), "Whose bits the key has, or by which columns its tree cuts.")]
        if facts.analysis is not None and (now := drawing.plane(facts.analysis, applied, after=False)) is not None:
            shown.append(Picture(now, "Files as rectangles in the plane of the two most used columns, as they lie."))
        sections.append(Section("The layout", list(pipeline.in_words(applied, redact_key)), shown))
    plan, learned, analysis = facts.plan, facts.learned, facts.analysis
    if plan is None or learned is None or analysis is None:
        return sections
    plan = without_literals(plan, redact_key)
    parts: list[Picture | Table] = []
    if learned.baselines:
        compared = drawing.layouts_compared(learned)
        parts.append(Picture(compared, "What queries asked after those of the search would read under each layout."))
    if plan.spec is not None:
        parts.append(Picture(drawing.layout(plan.spec), "The layout that a search finds now."))
        if (drawn := drawing.plane(analysis.with_computed(learned.computed), plan)) is not None:
            parts.append(
                Picture(
                    drawn, "Files as rectangles in the plane of the two most used columns: small ones can be skipped."
                )
            )
    if plan.spec is not None and facts.before is None:
        drawn = drawing.zones({"now": facts.now}, analysis.sample, plan.spec.columns)
        if drawn is not None:
            parts.append(Picture(drawn, ZONES))
    if len(learned.before):
        drawn = pictures.rows_per_query(*learned.per_query)
        parts.append(Picture(drawn, "Rows that later queries read, as the table lies and under that layout."))
    if learned.study is not None:
        parts.append(Picture(drawing.search(learned.study), "The history of the search (Optuna)."))
        if (drawn := drawing.tried(learned.study)) is not None:
            parts.append(
                Picture(
                    drawn, "Parallel coordinates: a line is a layout, its height at a column the bits that it gave it."
                )
            )
        if importance := column_importance(learned.study):
            drawn = pictures.column_importance(importance)
            parts.append(Picture(drawn, "Which columns' numbers of bits decided how much a layout reads."))
    sections.append(Section("What a search finds now", list(pipeline.in_words(plan, redact_key)), parts))
    return sections


def _effect(facts: Facts, now: npt.NDArray[np.float64], before: npt.NDArray[np.float64] | None) -> list[Section]:
    """The last relayout, and the share of the rows that each query reads now and read before it."""
    entry = facts.laid_out
    if entry is None or facts.before is None or facts.applied is None or facts.applied.spec is None:
        return []
    parts: list[Picture | Table] = []
    snapshots = {"before": facts.before, "now": facts.now}
    if facts.analysis is not None:
        drawn = drawing.zones(snapshots, facts.analysis.sample, facts.applied.spec.columns)
        if drawn is not None:
            parts.append(Picture(drawn, ZONES))
    if before is not None and len(before):
        drawn = pictures.rows_per_query(before, now, labels=("before", "now"))
        parts.append(Picture(drawn, "Rows that each query reads, by the files' own statistics."))
    size = f"{counted(entry.rows, 'row')} in {entry.bytes_rewritten / 1e6:,.1f} MB"
    sentence = f"The last relayout made version {entry.version} on {_day(entry.committed_at)}: it rewrote {size}."
    return [Section("Before and after the last relayout", [sentence], parts)] if parts else []


def _ours(snapshot: TableSnapshot) -> float:
    files = snapshot.files()
    ours = sum(int(size) for size, layout in zip(files.bytes, files.layout, strict=True) if layout)
    return ours / max(1, int(files.bytes.sum()))


def _day(moment: int) -> str:
    return datetime.fromtimestamp(moment / 1e6, UTC).strftime("%Y-%m-%d %H:%M")
