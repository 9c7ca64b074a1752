"""What a configuration assumes of costs before any were measured, and its price."""

from __future__ import annotations

from zorder_pipeline.gate.cost import CostModel
from zorder_pipeline.model.places import is_same_place

from .models import GateConfig, PipelineConfig

__all__ = ["assumed_costs", "costs_of"]


def assumed_costs(gate: GateConfig) -> CostModel:
    """What ``gate`` of a table says of costs."""
    return CostModel(
        base=gate.rewrite_core_seconds_per_gb,
        per_feature=gate.rewrite_core_seconds_per_gb_and_column,
        scan=gate.scan_core_seconds_per_gb,
        price_per_core_hour=gate.price_per_core_hour,
    )


def costs_of(config: PipelineConfig, table: str | None = None) -> CostModel | None:
    """What is assumed of a table; without one, what all tables agree on, and else as usual; None of no configured one.

    Args:
        table: its name, path or catalog name.
    """
    meant = (one for one in config.tables if table is None or table == one.name or is_same_place(one.table, table))
    found = [assumed_costs(one.gate) for one in meant]
    if not found:
        return None
    told = [vars(costs) for costs in found]
    return CostModel(**{name: value for name, value in told[0].items() if all(value == each[name] for each in told)})
