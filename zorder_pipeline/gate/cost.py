"""What a relayout and what a scan cost, in core-seconds (seed 004, section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GIGABYTE", "CostModel"]

GIGABYTE = 1e9


@dataclass(frozen=True)
class CostModel:
    """Linear cost per gigabyte of Parquet, as the seed's OPTIMIZE_COST.

    The defaults were measured on TPC-H lineitem with two cores and local disk; `zorder calibrate` will fit them to an
    installation.

    Attributes:
        base: core-seconds to read, route, sort and write one GB by a one-column key.
        per_feature: further core-seconds per GB and column of the key.
        scan: core-seconds a query needs to read one GB.
        price_per_core_hour: to state results in money; 0 leaves it out.
    """

    base: float = 130.0
    per_feature: float = 6.0
    scan: float = 14.0
    price_per_core_hour: float = 0.0

    def relayout(self, size_bytes: float, features: int) -> float:
        """Core-seconds to rewrite ``size_bytes`` by a key of ``features`` columns.

        >>> CostModel(base=100, per_feature=10).relayout(2e9, 3)
        240.0
        """
        return size_bytes / GIGABYTE * (self.base + self.per_feature * max(0, features - 1))

    def scans(self, size_bytes: float) -> float:
        """Core-seconds queries spend on reading ``size_bytes``."""
        return size_bytes / GIGABYTE * self.scan

    def money(self, core_seconds: float) -> float:
        """Core-seconds at the configured price."""
        return core_seconds / 3600 * self.price_per_core_hour
