"""The first two stages of a table: by what is it filtered, and which of these columns follow each other?"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dagster import AssetExecutionContext, AssetIn, AssetObservation, AssetsDefinition, Output

from zorder_pipeline.errors import NothingToLearnError
from zorder_pipeline.java import reason_of
from zorder_pipeline.model.wording import counted
from zorder_pipeline.model.workload import LoggedQuery, QueryLog

from .budget import BEFORE
from .common import QUERY_LOG, DeltaSparkResource, Shelf, opened, stage_asset, told
from .metadata import bullets, md, md_table, percent, picture, predicates, table_facts, workload_facts
from .records import AnalysedTable, SelectedFeatures
from .repeated import refuse_repeated
from .settings import learn_settings, redact_key

if TYPE_CHECKING:
    from zorder_pipeline.features.select import Analysis
    from zorder_pipeline.model.triage import TableTriage
    from zorder_pipeline.pipeline.records import TableAnalysis
    from zorder_pipeline.relayout.snapshot import TableSnapshot

__all__ = ["correlation_graph", "feature_candidates"]

GONE = (
    "is no longer in tables.yaml and stays as it is; press Reload in Dagster's UI (Deployment), so that no run is "
    "planned for it"
)


def feature_candidates(shelf: Shelf) -> AssetsDefinition:
    """The asset ``feature_candidates``: an `AnalysedTable`, or nothing when no query can be used."""
    table, config = shelf.table, shelf.config

    @stage_asset(
        shelf,
        "feature_candidates",
        {"pyspark", "deltalake"},
        table.search.model_dump(),
        op_tags=BEFORE,
        ins={"log": AssetIn(key=QUERY_LOG)},
        deps=[shelf.key("data")],
        output_required=False,
        description=(
            "**By what is the table filtered?** The columns that its queries compare, how often and with how many "
            "different values, on a sample of its rows. Skipped when the log has no usable query of the table."
        ),
    )
    def _feature_candidates(
        context: AssetExecutionContext, zorder_spark: DeltaSparkResource, log: QueryLog
    ) -> Iterator[Output[AnalysedTable]]:
        from zorder_pipeline.pipeline.learning import drawing
        from zorder_pipeline.pipeline.renames import queries_of

        if shelf.gone:
            _skipped(context, shelf, f"{table.name} {GONE}", {})
            return
        with told(context, table.name):
            snapshot = opened(zorder_spark.session, shelf)
            refuse_repeated(context, shelf, snapshot)
            queries = queries_of(log, [table.name], snapshot)
            analysis = _analysed(context, shelf, snapshot, log, queries)
            if analysis is None:
                _books_kept(context, shelf, snapshot)
                return
            found = AnalysedTable.of(analysis)
            facts = {
                "queries": len(queries),
                "sampled rows": found.sample.rows,
                **_candidate_facts(found.features, config.redact_literals),
                "queries by form": md(predicates(queries, config.redact_literals)),
                "asked over time": picture(drawing.asked_over_time(queries), "queries over time"),
                "workload": workload_facts(queries, snapshot.schema),
                **table_facts(table, snapshot),
            }
        yield Output(found, metadata=facts)

    return _feature_candidates


def _analysed(
    context: AssetExecutionContext,
    shelf: Shelf,
    snapshot: "TableSnapshot",
    log: QueryLog,
    queries: Sequence[LoggedQuery],
) -> "TableAnalysis | None":
    """What the later stages go by; None where they have nothing to do, which is told with its reason."""
    from zorder_pipeline import pipeline

    table, spark = shelf.table, snapshot.spark
    settings = learn_settings(table, redact_key(spark, shelf.config))
    scans = settings.enriched_share > 0 and pipeline.statistics_features(snapshot, queries)
    if not scans and not any(query.usable for query in queries):
        _nothing_asked(context, shelf, log, queries)
        return None
    try:
        if snapshot.unsupported() is not None:
            _advised(context, shelf, pipeline.advise(spark, table.table, snapshot, log, table.name), snapshot.version)
            return None
        layouts = pipeline.layouts_in_use(spark, snapshot, shelf.config.state, shelf.saying(context))
        return pipeline.analyse(spark, snapshot, log, [table.name], settings, layouts=layouts)
    except NothingToLearnError as error:  # such as a table that is emptied before it is loaded anew
        empty = not snapshot.files().rows.sum()
        facts = _emptiness(snapshot.version) if empty else _asked(log, len(queries))
        _skipped(context, shelf, f"{error}; the table stays as it is", facts)
        return None


def _nothing_asked(context: AssetExecutionContext, shelf: Shelf, log: QueryLog, queries: Sequence[LoggedQuery]) -> None:
    from zorder_pipeline.pipeline.learning.nothing_asked import why_nothing

    name = shelf.table.name
    why = f"no usable query of {name} among {counted(log.lines, 'statement')}"
    if queries:
        why += f": {why_nothing(log, queries)}"
    why += "; the table stays as it is"
    if shelf.table.layout.pinned_bits:
        why += ", its pinned_bits wait for one"
    if not queries and log.unmatched:
        why += f"; {log.read}: if that is this table, name it so under aliases in tables.yaml"
    _skipped(context, shelf, why, _asked(log, len(queries)))


def _books_kept(context: AssetExecutionContext, shelf: Shelf, snapshot: "TableSnapshot") -> None:
    """Note which relayouts of a table were undone that no later stage looks at tonight: none of them would be, else."""
    from zorder_pipeline import pipeline

    try:
        pipeline.note_undone(snapshot, shelf.config.state)
    except Exception as error:  # the books are no reason for a night to fail
        context.log.warning(f"{shelf.table.name}: the books could not be kept: {reason_of(error)}")


def _advised(context: AssetExecutionContext, shelf: Shelf, found: "TableTriage", version: int) -> None:
    """Of a table that may not be rewritten, such as a liquid one: what to do instead. That is an answer, no failure."""
    reasons = [*([found.problem] if found.problem else ()), *found.advice, *found.statements]
    say = shelf.saying(context)
    for reason in reasons:
        say(f"declined: {reason}")
    facts: dict[str, Any] = {"decision": "declined", "cause": "unsupported", "Delta version": version}
    facts["reasons"] = bullets(reasons)
    key = shelf.key("feature_candidates")
    context.log_event(AssetObservation(key, description=f"declined: {reasons[0]}", metadata=facts))


def _asked(log: QueryLog, scans: int) -> dict[str, Any]:
    return {"statements": log.lines, "scans of the table": scans}


def _emptiness(version: int) -> dict[str, Any]:
    """Of a table without rows: nothing is wrong with it, and people ask for it all the same."""
    return {"decision": "nothing to do", "cause": "nothing_new", "Delta version": version}


def _skipped(context: AssetExecutionContext, shelf: Shelf, why: str, facts: dict[str, Any]) -> None:
    context.log.warning(why)
    context.log_event(AssetObservation(shelf.key("feature_candidates"), description=why, metadata=facts))


def _candidate_facts(features: "Analysis", redact: bool) -> dict[str, Any]:
    header = ["column", "type", "queries", "share of queries", "compared with", "values in sample", "nulls"]
    header += ["files per value", "skipped by", "in the key", "why"]
    rows = [
        (
            c.column,
            c.type,
            c.queries,
            percent(c.share),
            c.comparison_points,
            c.distinct,
            percent(c.null_share),
            round(c.overlap_depth, 1),
            c.level,
            c.chosen,
            c.reason,
        )
        for c in features.candidates
    ]
    others = [(c.predicate.to_sql(redact), c.queries, percent(c.share)) for c in features.predicate_candidates]
    told = [candidate.to_json(redact) for candidate in features.expression_candidates]
    functions = [(c["expression"], c["queries"], c["comparison_points"], c["chosen"], c["reason"]) for c in told]
    header_of_functions = ["expression", "queries", "compared with", "worth statistics", "why"]
    return {
        "candidates": md(md_table(header, rows)),
        "expressions": md(md_table(header_of_functions, functions)),
        "predicates that no order serves": md(md_table(["predicate", "queries", "share of queries"], others)),
    }


def correlation_graph(shelf: Shelf) -> AssetsDefinition:
    """The asset ``correlation_graph``: the `SelectedFeatures` with the columns that the search may use."""
    table = shelf.table

    @stage_asset(
        shelf,
        "correlation_graph",
        {"python"},
        {},
        op_tags=BEFORE,
        ins={"analysed": AssetIn(key=shelf.key("feature_candidates"))},
        description=(
            "**Which columns follow each other?** Sorting by one column also sorts those it is correlated with, so one "
            "of them is enough in the key (seed 004, algorithms 2 and 3). Measured on the sample of the candidates."
        ),
    )
    def _correlation_graph(
        context: AssetExecutionContext, analysed: AnalysedTable
    ) -> Iterator[Output[SelectedFeatures]]:
        features = analysed.features
        context.log.info(f"{table.name}: the key may use {', '.join(features.ranked) or 'no column'}")
        yield Output(SelectedFeatures(features), metadata=_graph_facts(features))

    return _correlation_graph


def _graph_facts(features: "Analysis") -> dict[str, Any]:
    from zorder_pipeline.pipeline.learning import drawing

    png = drawing.graph(features)
    edges = sorted(features.edges, key=lambda edge: -edge[2])
    return {
        "graph": picture(png, "correlation graph", md_table(["column", "and", "strength", "kind"], edges)),
        "primary columns": ", ".join(features.primary) or "none",
        "columns that others stand for": ", ".join(features.followers) or "none",
    }
