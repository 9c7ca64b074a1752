"""From the configuration's models to the settings that the stages take."""

from __future__ import annotations

from datetime import time
from typing import TYPE_CHECKING

from zorder_pipeline.config import BlackoutConfig, PipelineConfig, TableConfig
from zorder_pipeline.config.costs import assumed_costs
from zorder_pipeline.gate.holds import Blackout
from zorder_pipeline.gate.settings import GateSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zorder_pipeline.pipeline import LearnSettings, Rules

__all__ = ["gate_settings", "learn_settings", "redact_key", "rules"]

NEW_DATA = {"standard": (GateSettings.min_new_data_share, GateSettings.min_new_data_bytes), "seed": (0.0, 10e9)}
"""Share of the table and bytes that must be new, by preset; the seed (004, section 3.2) waits for 10 GB."""


def learn_settings(table: TableConfig, redact_key: str | None = None) -> LearnSettings:
    """What ``search``, ``layout`` and ``gate`` of a table say about learning.

    Args:
        redact_key: with the configuration's ``redact_literals``, see `zorder_pipeline.pipeline.redact_key`.
    """
    from zorder_pipeline.pipeline import LearnSettings

    search, layout = table.search, table.layout
    return LearnSettings(
        trials=search.trials,
        seed=search.seed,
        seconds=search.seconds,
        sampler=search.sampler,
        cost=search.cost,
        half_life_days=search.half_life_days,
        confirm=search.confirm,
        always_search=search.always,
        workers=search.workers,
        study=search.study,
        sample_rows=search.sample_rows,
        target_file_rows=layout.target_file_rows,
        target_file_bytes=layout.target_file_bytes,
        smaller_files=layout.smaller_files,
        max_features=search.max_features,
        queries_per_day=table.gate.queries_per_day,
        row_group_bytes=layout.row_group_bytes,
        bloom_filters=layout.bloom_filters,
        enriched_share=table.gate.enriched_reader_share,
        redact_key=redact_key,
    )


def redact_key(spark: SparkSession, config: PipelineConfig) -> str | None:
    """What names are made from that must tell no literal; None without ``redact_literals``."""
    from zorder_pipeline import pipeline

    return pipeline.redact_key(spark, config.state) if config.redact_literals else None


def gate_settings(table: TableConfig) -> GateSettings:
    """What ``gate`` of a table says; a pinned layout is the user's own decision, so the gate does not ask again."""
    gate = table.gate
    share, least = NEW_DATA[gate.preset]
    chosen = gate.preset == "seed" or gate.min_new_data_share is not None or gate.min_new_data_bytes is not None
    payback_days = gate.payback_days
    if payback_days is None:  # whoever says how much has to be new means it
        payback_days = 0.0 if chosen else GateSettings.payback_days
    return GateSettings(
        enabled=gate.enabled and not table.layout.pinned_bits,
        horizon_days=gate.horizon_days,
        queries_per_day=gate.queries_per_day,
        min_new_data_share=share if gate.min_new_data_share is None else gate.min_new_data_share,
        min_new_data_bytes=least if gate.min_new_data_bytes is None else gate.min_new_data_bytes,
        payback_days=payback_days,
        change_layout=not table.layout.keep,
        enriched_share=gate.enriched_reader_share,
        page_skipping=gate.page_skipping,
        broken_promise_factor=gate.broken_promise_factor,
        costs=assumed_costs(gate),
    )


def rules(config: PipelineConfig, table: TableConfig) -> Rules:
    """What stands above cost and benefit: kill switch, blackout windows, approvals."""
    from zorder_pipeline.pipeline import Rules

    windows = tuple(map(_blackout, (*config.blackouts, *table.gate.blackouts)))
    return Rules(config.stop, windows, table.gate.approval, table.gate.approval_days)


def _blackout(window: BlackoutConfig) -> Blackout:
    return Blackout(time.fromisoformat(window.start), time.fromisoformat(window.end), window.days, window.time_zone)
