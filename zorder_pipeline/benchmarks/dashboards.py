"""The demo's statements: the conditions TPC-H's reports put on lineitem, over weeks and months, and some look-ups.

TPC-H's own Q6, Q12 and Q20 read whole years, which no order of the rows can help much; dashboards ask the same
questions of a week or a quarter. The look-ups by part, supplier, order and price are `templates`' own. For the same
comparison on a look-up-heavy log, where every layout has to share its bits among independent columns, see the
workload ``demo`` of ``zorder bench``.
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
    _taken("pricing_summary", 1),  # TPC-H Q1 reads nearly everything: a monthly report
    Template("late_items", 10, _late_items, 700),
    Template("revenue_forecast", 15, _revenue_forecast, 500),
    Template("shipping_modes", 10, _shipping_modes, 700),
    Template("promotion_effect", 10, _promotion_effect, 500),
    Template("top_supplier", 10, _top_supplier, 900),
    Template("discounted_revenue", 10, _discounted_revenue, 700),
    Template("excess_stock", 10, _excess_stock, 500),
    _taken("part", 3),
    _taken("supplier", 3),
    _taken("order", 3),
    _taken("price_band", 3),
)
"""Twelve templates; about one statement in seven is a look-up."""
