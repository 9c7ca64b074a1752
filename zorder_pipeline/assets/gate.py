"""The fourth stage: does the rewrite pay for itself?"""

from collections.abc import Iterator
from typing import Any

from dagster import AssetExecutionContext, AssetIn, AssetsDefinition, Output

from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.results import ApplyResult

from .common import DeltaSparkResource, Shelf, freshness, stage_asset, told
from .metadata import gigabytes, md, md_table
from .settings import gate_settings

__all__ = ["cost_benefit"]


def cost_benefit(shelf: Shelf) -> AssetsDefinition:
    """The asset ``cost_benefit``: the `ApplyResult` of a dry run, with the gate's reasons."""
    table = shelf.table

    @stage_asset(
        shelf,
        "cost_benefit",
        {"python", "deltalake"},
        table.gate.model_dump(),
        ins={"plan": AssetIn(key=shelf.key("bit_allocation"))},
        freshness_policy=freshness(shelf.config),
        description=(
            "**Does the rewrite pay for itself?** What unseen queries would save within the horizon, against what the "
            "rewrite of the files that need it costs. Declining is a normal answer: the reason stands in the metadata."
        ),
    )
    def _cost_benefit(
        context: AssetExecutionContext, spark: DeltaSparkResource, plan: Plan
    ) -> Iterator[Output[ApplyResult]]:
        from zorder_pipeline import pipeline

        with told(context, table.name):
            preview = pipeline.apply(
                spark.session,
                table.table,
                plan,
                dry_run=True,
                gate=gate_settings(table),
                verify=table.layout.verify,
                state=shelf.config.state,
            )
        for reason in preview.reasons:
            context.log.info(reason)
        yield Output(preview, metadata=_facts(preview))

    return _cost_benefit


def _facts(preview: ApplyResult) -> dict[str, Any]:
    gate = preview.gate
    figures = [
        ("saving expected, core-seconds", float(gate.get("saving_core_seconds", 0.0))),
        ("saving at least, core-seconds", float(gate.get("saving_low", 0.0))),
        ("saving at most, core-seconds", float(gate.get("saving_high", 0.0))),
        ("cost of the rewrite, core-seconds", float(gate.get("cost_core_seconds", 0.0))),
    ]
    assumptions = [(name.replace("_", " "), value) for name, value in gate.get("assumptions", {}).items()]
    return {
        "decision": {"applied": "approved"}.get(preview.decision, preview.decision.replace("_", " ")),
        "reasons": md("\n".join(f"- {reason}" for reason in preview.reasons)),
        "saving and cost": md(md_table(["", "figure"], figures)),
        "assumptions": md(md_table(["assumption", "value"], assumptions)),
        "files to rewrite": preview.files_removed,
        "files left alone": preview.skipped_files,
        "to rewrite": gigabytes(preview.bytes_rewritten),
    }
