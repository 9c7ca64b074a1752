"""The fourth stage: does the rewrite pay for itself?"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dagster import AssetExecutionContext, AssetIn, AssetsDefinition, Output

from zorder_pipeline.model.decision import assumptions_told
from zorder_pipeline.model.plan import Plan

from .approval import HOW
from .budget import BEFORE
from .common import DeltaSparkResource, Shelf, freshness, stage_asset, told
from .events import spoken
from .metadata import bullets, gigabytes, md, md_table, picture
from .records import Judged
from .settings import gate_settings, rules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zorder_pipeline.model.decision import Option
    from zorder_pipeline.pipeline import Judgement

__all__ = ["cost_benefit", "judged_now"]

OPTIONS = ["action", "files", "cost, core-seconds", "saving", "saving at least", "why not"]


def cost_benefit(shelf: Shelf) -> AssetsDefinition:
    """The asset ``cost_benefit``: what the gate `Judged` of the table."""
    table = shelf.table

    @stage_asset(
        shelf,
        "cost_benefit",
        {"python", "deltalake"},
        table.gate.model_dump(),
        ins={"plan": AssetIn(key=shelf.key("bit_allocation"))},
        freshness_policy=freshness(shelf.config),
        op_tags=BEFORE,
        description=(
            "**Does the rewrite pay for itself?** What later queries would save within the horizon, against what the "
            "rewrite of the files that need it costs. Declining is a normal answer: the reason stands in the metadata."
        ),
    )
    def _cost_benefit(
        context: AssetExecutionContext, zorder_spark: DeltaSparkResource, plan: Plan
    ) -> Iterator[Output[Judged]]:
        with told(context, table.name):
            judged = judged_now(zorder_spark.session, shelf, plan)
        say = shelf.saying(context)
        for reason in judged.decision.reasons:
            say(reason)
        yield Output(Judged(judged), metadata=_facts(judged))

    return _cost_benefit


def judged_now(spark: "SparkSession", shelf: Shelf, plan: Plan) -> "Judgement":
    """What the gate says of a plan for the table as it is now, by the table's configuration."""
    from zorder_pipeline import pipeline

    table = shelf.table
    return pipeline.judge_table(
        spark,
        table.table,
        plan,
        name=table.name,
        gate=gate_settings(table),
        rules=rules(shelf.config, table),
        state=shelf.config.state,
        verify=table.layout.verify,
        committer=table.layout.committer,
    )


def _facts(judged: "Judgement") -> dict[str, Any]:
    from zorder_pipeline import pictures

    decision, would = judged.decision, judged.preview
    figures = [
        ("saving", decision.saving_core_seconds, decision.saving_low, decision.saving_high),
        ("cost", decision.cost_core_seconds, decision.cost_low, decision.cost_high),
    ]
    facts: dict[str, Any] = {
        "decision": spoken(judged.outcome),
        "cause": decision.cause,
        "reasons": bullets(decision.reasons),
        "what could be done": md(md_table(OPTIONS, [_option(option) for option in decision.options])),
        "assumptions": md(md_table(["assumption", "value"], assumptions_told(decision.assumptions))),
        "files to rewrite": would.files_removed,
        "files left alone": would.skipped_files,
        "to rewrite": gigabytes(would.bytes_rewritten),
    }
    if decision.cost_core_seconds and decision.saving_high:
        cost, saving = ((middle, low, high) for _, middle, low, high in (figures[1], figures[0]))
        drawn = pictures.cost_and_benefit(cost, saving, "core-seconds")
        header = ["core-seconds", "expected", "at least", "at most"]
        facts["saving and cost"] = picture(drawn, "saving and cost", md_table(header, figures))
    if judged.request is not None:
        facts["approval"] = md(f"plan {judged.request.plan_id}: **{judged.request.status}**; answer {HOW}")
    return facts


def _option(option: "Option") -> tuple[object, ...]:
    why = option.why_not or ""
    return option.label, option.files, option.cost, option.saving, option.saving_low, why
