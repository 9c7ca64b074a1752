"""Drill-downs on TPC-H lineitem: every query filters two or three columns and keeps at most about 1% of the rows.

The second mix beside `LINEITEM_TEMPLATES`, after the protocol of seed 000's table 1 (selectivity up
to 1%). All templates have equal weights.
"""

from __future__ import annotations

from datetime import timedelta

from .templates import LINEITEM_TEMPLATES, MODES, Draw, Template, cents

__all__ = ["SELECTIVE_TEMPLATES"]

FROM_REPORTS = ("discounted_revenue", "excess_stock", "part_recent", "supplier_month", "bulk_instructions")


def _days(d: Draw, low: int, high: int) -> str:
    start = d.day("1992-02-01", "1998-06-01")
    return f"BETWEEN DATE '{start}' AND DATE '{start + timedelta(days=d.integer(low, high))}'"


def _keys(d: Draw, per_scale: int, share: float) -> str:
    start = d.key(per_scale)
    return f"BETWEEN {start} AND {start + max(1, round(per_scale * d.scale * share * d.rng.uniform(0.3, 1.7)))}"


def _price(d: Draw, low: int, high: int) -> str:
    start = d.integer(90_100, 7_500_000)
    return f"BETWEEN {cents(start)} AND {cents(start + d.integer(low, high))}"


def _stock_of_nation(d: Draw) -> str:  # TPC-H Q20 with its condition on the supplier's nation: one in 25
    return (
        "SELECT count(*) AS items, sum(l_quantity) AS quantity FROM lineitem "
        f"WHERE l_partkey {_keys(d, 200_000, 0.02)} AND l_suppkey {_keys(d, 10_000, 0.04)} "
        f"AND l_shipdate {_days(d, 300, 365)}"
    )


def _supplier_prices(d: Draw) -> str:
    return (
        "SELECT l_returnflag, count(*) AS items, sum(l_extendedprice) AS amount FROM lineitem "
        f"WHERE l_suppkey {_keys(d, 10_000, 0.01)} AND l_extendedprice {_price(d, 500_000, 2_000_000)} "
        "GROUP BY l_returnflag"
    )


def _price_month(d: Draw) -> str:
    return (
        "SELECT count(*) AS items, sum(l_extendedprice * l_discount) AS discount FROM lineitem "
        f"WHERE l_extendedprice {_price(d, 100_000, 600_000)} AND l_shipdate {_days(d, 14, 60)}"
    )


def _part_prices(d: Draw) -> str:
    return (
        "SELECT count(*) AS items, max(l_quantity) AS quantity FROM lineitem "
        f"WHERE l_partkey {_keys(d, 200_000, 0.02)} AND l_extendedprice {_price(d, 500_000, 2_000_000)}"
    )


def _received_bulk(d: Draw) -> str:
    return (
        "SELECT count(*) AS items, sum(l_quantity) AS quantity FROM lineitem "
        f"WHERE l_receiptdate {_days(d, 7, 30)} AND l_quantity >= {d.integer(30, 45)} "
        f"AND l_shipmode = '{d.pick(MODES)[0]}'"
    )


def _orders_shipped(d: Draw) -> str:
    return (
        "SELECT count(*) AS items, sum(l_extendedprice * (1 + l_tax)) AS charged FROM lineitem "
        f"WHERE l_orderkey {_keys(d, 6_000_000, 0.02)} AND l_shipdate {_days(d, 60, 365)}"
    )


SELECTIVE_TEMPLATES: tuple[Template, ...] = (
    *(Template(t.name, 1, t.make, t.duration_ms) for t in LINEITEM_TEMPLATES if t.name in FROM_REPORTS),
    Template("stock_of_nation", 1, _stock_of_nation),
    Template("supplier_prices", 1, _supplier_prices),
    Template("price_month", 1, _price_month),
    Template("part_prices", 1, _part_prices),
    Template("received_bulk", 1, _received_bulk),
    Template("orders_shipped", 1, _orders_shipped),
)
"""11 templates over ten columns."""
