"""The third stage: which column owns which bits of the sort key."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dagster import AssetExecutionContext, AssetIn, AssetsDefinition, MetadataValue, Output

from zorder_pipeline.model.places import shown_place
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.progress import seldom
from zorder_pipeline.model.wording import counted, queries_a_day

from .budget import BEFORE
from .common import DeltaSparkResource, Shelf, opened, stage_asset, told
from .metadata import bullets, md, md_table, percent, picture
from .records import AnalysedTable, SelectedFeatures
from .settings import gate_settings, learn_settings, redact_key

if TYPE_CHECKING:
    from zorder_pipeline.layout.learn import Learned
    from zorder_pipeline.pipeline import TableAnalysis

__all__ = ["FORMER_NAMES", "NEWEST_QUERY", "bit_allocation"]

BIT_ORDER, NEWEST_QUERY, FORMER_NAMES = "order of the bits", "newest query used", "former names of columns"


def bit_allocation(shelf: Shelf) -> AssetsDefinition:
    """The asset ``bit_allocation``: a `Plan`, learned or pinned in the configuration."""
    table = shelf.table

    @stage_asset(
        shelf,
        "bit_allocation",
        {"optuna"},
        table.search.model_dump() | table.layout.model_dump(),
        op_tags=BEFORE,
        ins={
            "analysed": AssetIn(key=shelf.key("feature_candidates")),
            "features": AssetIn(key=shelf.key("correlation_graph")),
        },
        description=(
            "**In which order should the rows lie?** An Optuna search over the order of the sort key's bits, started "
            "from what a person would pick and from the orders that earlier nights have found (a tree leaves none), "
            "against a tree that cuts each region by the column that helps its own queries most. It learns on the "
            "older half of the queries, chooses on the next quarter, and promises by all that was asked in the newest "
            "quarter."
        ),
    )
    def _bit_allocation(
        context: AssetExecutionContext,
        zorder_spark: DeltaSparkResource,
        analysed: AnalysedTable,
        features: SelectedFeatures,
    ) -> Iterator[Output[Plan]]:
        from zorder_pipeline import pipeline

        with told(context, table.name):
            key = redact_key(zorder_spark.session, shelf.config)
            settings = learn_settings(table, key)
            snapshot = opened(zorder_spark.session, shelf)
            found = replace(analysed, features=features.analysis).analysis(snapshot)
            if bits := table.layout.pinned_bits:
                present = pipeline.present_plan(zorder_spark.session, snapshot, shelf.config.state)
                plan = pipeline.layout_by_hand(
                    zorder_spark.session,
                    table.table,
                    bits,
                    settings=replace(settings, bloom_filters=()),
                    present=present,
                    committer=table.layout.committer,
                )
                plan = pipeline.with_bloom_filters(found, plan, settings)
                facts = _plan_facts(plan, key)
            else:

                def progress(done: int, planned: int, cost: float) -> None:
                    if done % 100 == 0:
                        context.log.info(
                            f"trial {done} of {planned} for {table.name}: training queries read {percent(cost)} "
                            "of the rows"
                        )

                earlier = _earlier(context, shelf)
                plan, learned = pipeline.learn_tonight(
                    zorder_spark.session,
                    found,
                    shelf.config.state,
                    settings,
                    progress,
                    earlier,
                    gate_settings(table),
                    seldom(shelf.saying(context)),
                )
                facts = _plan_facts(plan, key) | _plane_facts(found, plan, learned, key)
                facts |= _search_facts(plan, learned)
                if former := dict(snapshot.asked_schema.former):
                    facts[FORMER_NAMES] = MetadataValue.json(former)
                if learned.study is not None:
                    seen = shelf.command("study", "--state", shown_place(shelf.config.state))
                    facts["all trials"] = MetadataValue.text(seen)
                # the next search starts from it, unless it is of expressions, whose names may tell literals
                if plan.unsought and earlier and all(snapshot.schema.find(name) for name in earlier[0]):
                    facts.setdefault(BIT_ORDER, MetadataValue.json(earlier[0]))
            say = shelf.saying(context)
            if plan.trials:
                say(f"searched for {plan.seconds:,.0f} s, {counted(plan.trials, 'trial')}")
            sentences = pipeline.in_words(plan, key)
            for sentence in sentences:
                say(sentence)
        yield Output(plan, metadata={"in words": bullets(sentences), **facts})

    return _bit_allocation


def _plan_facts(plan: Plan, redact_key: str | None) -> dict[str, Any]:
    from zorder_pipeline.pipeline.learning.words import without_literals

    facts: dict[str, Any] = {"rows per file": plan.target_file_rows, "origin": plan.origin}
    spec = without_literals(plan, redact_key).spec
    if plan.spec is None or spec is None:
        return facts
    from zorder_pipeline.layout.explain import uses
    from zorder_pipeline.pipeline.learning import drawing
    from zorder_pipeline.pipeline.learning.words import bit_order

    if spec.tree is not None:
        alt, header, figures = "cuts of the tree by level", "cuts that make a cell", list(uses(spec).items())
    else:
        alt, header, figures = "bits of the sort key", "bits", list(spec.allocation().items())
    facts["layout"] = picture(drawing.layout(spec), alt, md_table(["column", header], figures))
    if order_of_bits := bit_order(spec):
        facts[BIT_ORDER] = MetadataValue.json(list(order_of_bits))
    facts["layout id"] = plan.spec.layout_id
    return facts


def _earlier(context: AssetExecutionContext, shelf: Shelf) -> list[list[str]]:
    """The order of bits that was learned last, from that run's own metadata; none after a tree."""
    event = context.instance.get_latest_materialization_event(shelf.key("bit_allocation"))
    noted = event.asset_materialization.metadata.get(BIT_ORDER) if event and event.asset_materialization else None
    order = noted.value if noted is not None else None
    return [order] if isinstance(order, list) and all(isinstance(name, str) for name in order) else []


def _plane_facts(analysis: "TableAnalysis", plan: Plan, learned: "Learned", redact_key: str | None) -> dict[str, Any]:
    """The sample's rows and files in the plane of the layout's two most used columns, as ranks: no value is told.

    Nothing where ``redact_key`` hides a column of the layout, whose name was given before literals were redacted.
    """
    from zorder_pipeline.pipeline.learning import drawing
    from zorder_pipeline.pipeline.learning.words import without_literals

    drawn = drawing.plane(analysis.with_computed(learned.computed), without_literals(plan, redact_key))
    return {"files in the plane of two columns": picture(drawn, "files before and after")} if drawn is not None else {}


def _search_facts(plan: Plan, learned: "Learned") -> dict[str, Any]:
    from zorder_pipeline import pictures
    from zorder_pipeline.layout.importance import column_importance
    from zorder_pipeline.pipeline.learning import drawing

    shares = learned.compared
    ranked = sorted(shares, key=shares.__getitem__)
    facts: dict[str, Any] = {
        "trials": plan.trials,
        "seconds": round(plan.seconds, 1),
        "winner": learned.name,
        "promise": md(_promise_text(plan)),
    }
    if len(shares) > 1:  # where no layout was sought there is nothing to compare
        facts["share of rows read by layout"] = picture(
            drawing.layouts_compared(learned),
            "share of rows read by layout",
            md_table(["layout", "share of rows"], [(name, shares[name]) for name in ranked]),
        )
    if len(learned.before):
        facts["rows read by later queries"] = picture(
            pictures.rows_per_query(*learned.per_query), "rows read per query now and under the new layout"
        )
    if learned.study is not None:
        baselines = {name: share for name, share in learned.baselines.items() if name != "stored"}
        facts["search"] = picture(
            drawing.search(learned.study),
            "trials of the search",
            f"best baseline: {min(baselines, key=baselines.__getitem__)}" if baselines else "",
        )
        if (drawn := drawing.tried(learned.study)) is not None:
            facts["bits that were tried"] = picture(drawn, "parallel coordinates of the bits that were tried")
        if importance := column_importance(learned.study):
            facts["importance"] = picture(
                pictures.column_importance(importance),
                "importance of each column's bits",
                md_table(["column", "importance"], list(importance.items())),
            )
    if len(plan.notes):
        facts["notes"] = bullets(plan.notes)
    if plan.log_watermark is not None:
        facts[NEWEST_QUERY] = MetadataValue.timestamp(plan.log_watermark / 1e6)
    return facts


def _promise_text(plan: Plan) -> str:
    promise = plan.promise
    if not promise.queries:
        return "nothing is promised: there were no queries to prove it on"
    return (
        f"{promise.queries:,} later queries read **{percent(promise.after)}** of the rows instead of "
        f"**{percent(promise.before)}** (95% interval of the saved share: {percent(promise.low)} to "
        f"{percent(promise.high)}), at {queries_a_day(promise.queries_per_day)} ({promise.rate_source})"
    )
