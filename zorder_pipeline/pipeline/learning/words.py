"""A plan as the commands print it: one JSON object, or sentences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from zorder_pipeline.layout.explain import explain, uses
from zorder_pipeline.model.file_stats import shown
from zorder_pipeline.model.key_spec import PARTITION_INDEX, FeatureCodes, KeySpec
from zorder_pipeline.model.plan import Plan

__all__ = ["bit_order", "describe", "in_words", "without_literals"]


def bit_order(spec: KeySpec) -> tuple[str, ...]:
    """The column of each bit of an interleaved key, most significant first, without spare ones; empty for other curves.

    It is what a search starts from, which looks for the bits that tell files apart.
    """
    if spec.curve not in ("interleave", "gray"):
        return ()
    return tuple(spec.features[i].column for i in spec.telling)


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
            "spare_bits": spec.spare,
            "clock": spec.clock or None,
        }
    if spec is not None and spec.tree is not None:
        cells = len(spec.tree.leaf_keys)
        shares = uses(spec)
        layout |= {"cells": cells, "cuts": cells - 1, "depth": spec.tree.depth}
        layout["file_sizes"] = [min(spec.tree.leaf_sizes), max(spec.tree.leaf_sizes)] if spec.tree.size else None
        layout["cuts_per_cell"] = {name: round(count, 3) for name, count in shares.items()}
    return {
        "plan_id": plan.plan_id,
        "layout": layout,
        "predicted": dict(plan.predicted),
        "promise": vars(plan.promise),
        "baselines": dict(plan.baselines),
        "trials": plan.trials,
        "seconds": round(plan.seconds, 3),
        "target_file_rows": plan.target_file_rows,
        "notes": list(plan.notes),
    }


def in_words(plan: Plan, redact_key: str | None = None) -> tuple[str, ...]:
    """The plan in plain sentences.

    Args:
        redact_key: with it neither the values where it cuts are told, nor the constants of expressions and predicates.
    """
    if plan.spec is None:
        beaten = "no layout surely beat it on the queries that choose" if plan.trials else "there is no other to try"
        why = "" if plan.unsought else f": {beaten}"
        return (f"the table should stay as it lies{why}", *plan.notes)
    if redact_key is None:
        return (*explain(plan.spec), *plan.notes)
    spec = without_literals(plan, redact_key).spec
    assert spec is not None
    unit = "cuts that make a cell" if spec.tree is not None else "bits"
    shares = ", ".join(f"{name} {count:.3g}" for name, count in uses(spec).items())
    return (f"{unit[:1].upper()}{unit[1:]} by column: {shares}.", *plan.notes)


def without_literals(plan: Plan, key: str | None) -> Plan:
    """The plan with names for its expressions and predicates that tell no literal; to be shown, not carried out.

    Args:
        key: see `zorder_pipeline.model.file_stats.shown`; None leaves the plan as it is.
    """
    if plan.spec is None or key is None:
        return plan
    kinds = {feature.name: feature for feature in plan.statistics}

    def named(codes: FeatureCodes) -> FeatureCodes:
        if not codes.expression or codes.column.startswith((PARTITION_INDEX, "<")):
            return codes
        name = codes.column.rstrip()
        known = kinds.get(name)
        kind, columns = (known.kind, known.columns) if known is not None else ("expression", ())
        return replace(codes, column=shown(name, kind, columns, key), expression="")

    return replace(plan, spec=replace(plan.spec, features=tuple(map(named, plan.spec.features))))
