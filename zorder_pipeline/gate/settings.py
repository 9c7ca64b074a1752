"""What the gate assumes and demands of a rewrite."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from zorder_pipeline.model.choices import HORIZON_DAYS

from .accounts import BROKEN
from .cost import CostModel

__all__ = ["KEEPS", "GateSettings"]

KEEPS = "the table keeps its layout: layout.keep is set"


@dataclass(frozen=True)
class GateSettings:
    """What the gate assumes and demands.

    Attributes:
        enabled: False approves every plan that has a layout, unless ``change_layout`` forbids it; of several choices
            the first one.
        horizon_days: days over which a rewrite must pay for itself.
        queries_per_day: expected rate; None takes the rate observed in the log.
        min_new_data_share, min_new_data_bytes: a table that stays with its layout waits until so much of its bytes is
            new, the larger of the two.
        payback_days: it does not wait where a rewrite that surely pays within the horizon is expected to have paid
            for itself after so many days; 0 always waits.
        costs: the cost model.
        enriched_share: share of the queries that are asked through `reading/`, 0 to 1.
        broken_promise_factor: a promise that was missed by more widens the interval of later ones, downwards.
        widening: how much, see `zorder_pipeline.gate.accounts.widening`; follows from the table's history.
        page_skipping: whether the queries' engine skips Parquet's pages by their index, as Spark does: then rows inside
            large files are skipped, too.
        change_layout: False stays with the layout that the table has, whatever another would save (`KEEPS`).
        life_days: how long relayouts of the table stood on average until others wrote its rows anew; None where they
            stand. It follows from the table's history, too.
    """

    enabled: bool = True
    horizon_days: float = HORIZON_DAYS
    queries_per_day: float | None = None
    min_new_data_share: float = 0.05
    min_new_data_bytes: float = 256e6
    payback_days: float = 1.0
    costs: CostModel = field(default_factory=CostModel)
    enriched_share: float = 0.0
    broken_promise_factor: float = BROKEN
    widening: float = 1.0
    page_skipping: bool = True
    change_layout: bool = True
    life_days: float | None = None

    @property
    def credited_days(self) -> float:
        """Days of the horizon for which a relayout is expected to stand; it may be undone on any day alike.

        >>> GateSettings(horizon_days=30.0).credited_days, round(GateSettings(life_days=1.0).credited_days, 3)
        (30.0, 1.0)
        """
        if self.life_days is None:
            return self.horizon_days
        return self.life_days * -math.expm1(-self.horizon_days / self.life_days)
