"""From the configuration's models to the settings that the stages take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zorder_pipeline.config import TableConfig
from zorder_pipeline.gate.cost import CostModel
from zorder_pipeline.gate.decision import GateSettings

if TYPE_CHECKING:
    from zorder_pipeline.pipeline import LearnSettings

__all__ = ["gate_settings", "learn_settings"]


def learn_settings(table: TableConfig) -> LearnSettings:
    """What ``search``, ``layout`` and ``gate`` of a table say about learning."""
    from zorder_pipeline.pipeline import LearnSettings

    search, layout = table.search, table.layout
    return LearnSettings(
        trials=search.trials,
        seed=search.seed,
        seconds=search.seconds,
        sampler=search.sampler,
        cost=search.cost,
        half_life_days=search.half_life_days,
        workers=search.workers,
        study=search.study,
        sample_rows=search.sample_rows,
        target_file_rows=layout.target_file_rows,
        target_file_bytes=layout.target_file_bytes,
        max_features=search.max_features,
        queries_per_day=table.gate.queries_per_day,
    )


def gate_settings(table: TableConfig) -> GateSettings:
    """What ``gate`` of a table says; a pinned layout is the user's own decision, so the gate does not ask again."""
    gate = table.gate
    return GateSettings(
        enabled=gate.enabled and not table.layout.pinned_bits,
        horizon_days=gate.horizon_days,
        queries_per_day=gate.queries_per_day,
        min_new_data_share=gate.min_new_data_share,
        costs=CostModel(
            base=gate.rewrite_core_seconds_per_gb,
            per_feature=gate.rewrite_core_seconds_per_gb_and_column,
            scan=gate.scan_core_seconds_per_gb,
            price_per_core_hour=gate.price_per_core_hour,
        ),
    )
