"""The demo's statements: a shipping department's dashboards, and the look-ups that its applications do.

The dashboards take the conditions that TPC-H's Q1, Q4, Q6, Q12, Q14, Q15, Q19 and Q20 put on lineitem, over weeks and
months instead of years. Most of them ask for days of shipping, commitment or receipt, so that the three dates are the
most frequent columns of the log. As they follow each other, a layout by all three is hardly better than one by one of
them, and it leaves nothing for the look-ups by part and supplier: what a person reads off the frequencies is not what
the table needs. For a log in which frequency is a good guide see `templates` and ``zorder bench --workload demo``.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from .templates import LINEITEM_TEMPLATES, MODES, Draw, Template

__all__ = ["DASHBOARD_TEMPLATES"]


def _window(d: Draw, column: str, shortest: int, longest: int) -> str:
    start = d.day("1992-03-01", "1998-07-01")
    end = start + timedelta(days=d.integer(shortest, longest))
    return f"{column} >= DATE '{start}' AND {column} < DATE '{end}'"


def _late_items(d: Draw) -> str:  # TPC-H Q4
    return (
        "SELECT l_shipmode, count(DISTINCT l_orderkey) AS late_orders FROM lineitem "
        f"WHERE {_window(d, 'l_commitdate', 7, 60)} AND l_commitdate < l_receiptdate "
        "GROUP BY l_shipmode ORDER BY l_shipmode"
    )


def _committed(d: Draw) -> str:
    return (
        "SELECT l_commitdate, count(*) AS items, sum(l_quantity) AS quantity FROM lineitem "
        f"WHERE {_window(d, 'l_commitdate', 3, 30)} GROUP BY l_commitdate ORDER BY l_commitdate"
    )


def _received(d: Draw) -> str:
    return (
        "SELECT l_receiptdate, count(*) AS items, sum(l_extendedprice) AS amount FROM lineitem "
        f"WHERE {_window(d, 'l_receiptdate', 3, 30)} GROUP BY l_receiptdate ORDER BY l_receiptdate"
    )


def _revenue_forecast(d: Draw) -> str:  # TPC-H Q6
    discount = d.integer(2, 9)
    return (
        f"SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem WHERE {_window(d, 'l_shipdate', 7, 60)} "
        f"AND l_discount BETWEEN 0.{discount - 1:02d} AND 0.{discount + 1:02d} AND l_quantity < {d.integer(24, 25)}"
    )


def _shipping_modes(d: Draw) -> str:  # TPC-H Q12
    first, second = d.pick(MODES, 2)
    return (
        "SELECT l_shipmode, count(*) AS late, sum(l_extendedprice) AS amount FROM lineitem "
        f"WHERE l_shipmode IN ('{first}', '{second}') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate "
        f"AND {_window(d, 'l_receiptdate', 7, 60)} GROUP BY l_shipmode ORDER BY l_shipmode"
    )


def _promotion_effect(d: Draw) -> str:  # TPC-H Q14
    parts = max(6, round(200_000 * d.scale))
    return (
        f"SELECT sum(CASE WHEN l_partkey <= {parts // 6} THEN l_extendedprice * (1 - l_discount) ELSE 0 END) AS promo, "
        f"sum(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem WHERE {_window(d, 'l_shipdate', 7, 31)}"
    )


def _top_supplier(d: Draw) -> str:  # TPC-H Q15
    revenue = (
        "SELECT l_suppkey AS supplier_no, sum(l_extendedprice * (1 - l_discount)) AS total_revenue FROM lineitem "
        f"WHERE {_window(d, 'l_shipdate', 30, 92)} GROUP BY l_suppkey"
    )
    return (
        f"WITH revenue AS ({revenue}) SELECT supplier_no, total_revenue FROM revenue "
        "WHERE total_revenue = (SELECT max(total_revenue) FROM revenue) ORDER BY supplier_no"
    )


def _discounted_revenue(d: Draw) -> str:  # TPC-H Q19, what it asks of lineitem itself
    low = d.integer(1, 40)
    return (
        "SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem "
        f"WHERE l_quantity BETWEEN {low} AND {low + 10} AND l_shipmode IN ('AIR', 'REG AIR') "
        f"AND l_shipinstruct = 'DELIVER IN PERSON' AND {_window(d, 'l_shipdate', 30, 120)}"
    )


def _excess_stock(d: Draw) -> str:  # TPC-H Q20
    part = d.key(200_000)
    return (
        "SELECT l_partkey, l_suppkey, sum(l_quantity) AS shipped FROM lineitem "
        f"WHERE l_partkey BETWEEN {part} AND {part + max(1, round(2_000 * d.scale))} "
        f"AND {_window(d, 'l_shipdate', 60, 365)} GROUP BY l_partkey, l_suppkey "
        "HAVING sum(l_quantity) > 40 ORDER BY l_partkey, l_suppkey"
    )


def _taken(name: str, weight: float) -> Template:
    return next(replace(template, weight=weight) for template in LINEITEM_TEMPLATES if template.name == name)


DASHBOARD_TEMPLATES: tuple[Template, ...] = (
    _taken("pricing_summary", 0.5),  # TPC-H Q1 reads nearly everything: a monthly report
    Template("late_items", 9, _late_items, 700),
    Template("committed", 8, _committed, 300),
    Template("shipping_modes", 9, _shipping_modes, 700),
    Template("received", 8, _received, 300),
    Template("revenue_forecast", 3, _revenue_forecast, 500),
    Template("discounted_revenue", 3, _discounted_revenue, 700),
    Template("promotion_effect", 5, _promotion_effect, 500),
    Template("top_supplier", 5, _top_supplier, 900),
    Template("excess_stock", 2, _excess_stock, 500),
    _taken("part", 11),
    _taken("supplier", 11),
    _taken("order", 1.5),
    _taken("price_band", 1.5),
)
"""Fourteen templates; a third of the statements are look-ups."""
