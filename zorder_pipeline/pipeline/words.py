"""A plan as the commands print it: one JSON object, or sentences."""

from __future__ import annotations

from typing import Any

from zorder_pipeline.layout.explain import explain
from zorder_pipeline.model.plan import Plan

__all__ = ["describe", "in_words"]


def describe(plan: Plan) -> dict[str, Any]:
    """The object ``zorder learn --json`` and ``zorder layout --json`` print."""
    spec = plan.spec
    layout: dict[str, Any] = {"columns": [], "bits": {}, "order": [], "layout_id": None, "curve": None}
    if spec is not None:
        layout = {
            "columns": list(spec.columns),
            "bits": spec.allocation(),
            "order": [spec.features[i].column for i in spec.order],
            "layout_id": spec.layout_id,
            "curve": spec.curve,
        }
    return {
        "layout": layout,
        "predicted": dict(plan.predicted),
        "promise": vars(plan.promise),
        "baselines": dict(plan.baselines),
        "trials": plan.trials,
        "seconds": round(plan.seconds, 3),
        "target_file_rows": plan.target_file_rows,
        "notes": list(plan.notes),
    }


def in_words(plan: Plan) -> tuple[str, ...]:
    """The plan in plain sentences."""
    if plan.spec is None:
        return ("the table should stay as it lies: no layout beat it on the select queries", *plan.notes)
    return (*explain(plan.spec), *plan.notes)
