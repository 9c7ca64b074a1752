"""Statements on TPC-H lineitem: reports after TPC-H's own queries, and the look-ups that surround them.

Every statement reads ``lineitem`` alone and runs unchanged in Spark SQL and in DuckDB; its result is the same for any
order of the rows (decimals are exact, nothing is cut off by LIMIT). The reports take the filters of TPC-H's Q1, Q4, Q6,
Q12, Q14, Q15, Q17, Q19 and Q20, conditions on other tables replaced by ones on lineitem of about the same selectivity
(a part's brand and container by a range of part keys, an order's date by the commit date). Literals are substituted by
the rules of the TPC-H specification, dates to the day instead of to the month and Q1's DELTA from a wider range,
so that there are enough of them for two logs without a common statement. Key domains grow with the scale factor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

__all__ = ["INSTRUCTIONS", "LINEITEM_TEMPLATES", "MODES", "Draw", "Template", "cents"]

MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
INSTRUCTIONS = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")


@dataclass(frozen=True)
class Draw:
    """Draws literals from TPC-H's domains.

    Attributes:
        rng: source of randomness.
        scale: scale factor of the table the statements are for.
    """

    rng: np.random.Generator
    scale: float

    def integer(self, low: int, high: int) -> int:
        """Uniform, both ends included."""
        return int(self.rng.integers(low, high + 1))

    def day(self, first: str, last: str) -> date:
        """A uniform day between two ISO days."""
        start = date.fromisoformat(first)
        return start + timedelta(days=self.integer(0, (date.fromisoformat(last) - start).days))

    def key(self, per_scale: int) -> int:
        """A key of a table with ``per_scale`` keys at scale 1."""
        return self.integer(1, max(1, round(per_scale * self.scale)))

    def order_key(self) -> int:
        """A used order key: dbgen uses 8 of every 32, as it numbers order i by i // 8 * 32 + i % 8."""
        number = self.key(1_500_000)
        return number // 8 * 32 + number % 8

    def pick(self, items: Sequence[str], count: int = 1) -> list[str]:
        """Distinct items, uniform."""
        return [items[i] for i in self.rng.choice(len(items), count, replace=False)]


@dataclass(frozen=True)
class Template:
    """One kind of statement.

    Attributes:
        name: short name.
        weight: relative frequency.
        make: writes one statement with literals from a `Draw`.
        duration_ms: median duration to state in the log.
    """

    name: str
    weight: float
    make: Callable[[Draw], str]
    duration_ms: float = 400.0


def _pricing_summary(d: Draw) -> str:  # TPC-H Q1
    return (
        "SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price, "
        "sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price, count(*) AS count_order FROM lineitem "
        f"WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL '{d.integer(60, 480)}' DAY "
        "GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus"
    )


def _late_items(d: Draw) -> str:  # TPC-H Q4: a quarter, by commit date in place of order date
    start = d.day("1993-01-01", "1997-10-31")
    return (
        "SELECT l_shipmode, count(DISTINCT l_orderkey) AS late_orders FROM lineitem "
        f"WHERE l_commitdate >= DATE '{start}' AND l_commitdate < DATE '{start}' + INTERVAL '3' MONTH "
        "AND l_commitdate < l_receiptdate GROUP BY l_shipmode ORDER BY l_shipmode"
    )


def _revenue_forecast(d: Draw) -> str:  # TPC-H Q6
    start, discount = d.day("1993-01-01", "1997-12-01"), d.integer(2, 9)
    return (
        f"SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem WHERE l_shipdate >= DATE '{start}' "
        f"AND l_shipdate < DATE '{start}' + INTERVAL '1' YEAR "
        f"AND l_discount BETWEEN 0.{discount - 1:02d} AND 0.{discount + 1:02d} AND l_quantity < {d.integer(24, 25)}"
    )


def _shipping_modes(d: Draw) -> str:  # TPC-H Q12
    (first, second), start = d.pick(MODES, 2), d.day("1993-01-01", "1997-12-01")
    return (
        "SELECT l_shipmode, count(*) AS late, sum(l_extendedprice) AS amount FROM lineitem "
        f"WHERE l_shipmode IN ('{first}', '{second}') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate "
        f"AND l_receiptdate >= DATE '{start}' AND l_receiptdate < DATE '{start}' + INTERVAL '1' YEAR "
        "GROUP BY l_shipmode ORDER BY l_shipmode"
    )


def _promotion_effect(d: Draw) -> str:  # TPC-H Q14: promoted parts are a sixth of all
    start, parts = d.day("1993-01-01", "1997-12-01"), max(6, round(200_000 * d.scale))
    return (
        f"SELECT sum(CASE WHEN l_partkey <= {parts // 6} THEN l_extendedprice * (1 - l_discount) ELSE 0 END) AS promo, "
        "sum(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem "
        f"WHERE l_shipdate >= DATE '{start}' AND l_shipdate < DATE '{start}' + INTERVAL '1' MONTH"
    )


def _top_supplier(d: Draw) -> str:  # TPC-H Q15
    start = d.day("1993-01-01", "1997-10-31")
    revenue = (
        "SELECT l_suppkey AS supplier_no, sum(l_extendedprice * (1 - l_discount)) AS total_revenue FROM lineitem "
        f"WHERE l_shipdate >= DATE '{start}' AND l_shipdate < DATE '{start}' + INTERVAL '3' MONTH GROUP BY l_suppkey"
    )
    return (
        f"WITH revenue AS ({revenue}) SELECT supplier_no, total_revenue FROM revenue "
        "WHERE total_revenue = (SELECT max(total_revenue) FROM revenue) ORDER BY supplier_no"
    )


def _small_quantity(d: Draw) -> str:  # TPC-H Q17 for one part
    part = d.key(200_000)
    return (
        f"SELECT sum(l_extendedprice) AS loss FROM lineitem WHERE l_partkey = {part} AND l_quantity < "
        f"(SELECT 0.6 * avg(l_quantity) FROM lineitem WHERE l_partkey = {part})"
    )


def _discounted_revenue(d: Draw) -> str:  # TPC-H Q19: brand and container pick about one part in a thousand
    width = max(1, round(200 * d.scale))
    branches = []
    for low in (d.integer(1, 10), d.integer(10, 20), d.integer(20, 30)):
        part = d.key(200_000)
        branches.append(
            f"(l_partkey BETWEEN {part} AND {part + width} AND l_quantity >= {low} AND l_quantity <= {low + 10} "
            "AND l_shipmode IN ('AIR', 'REG AIR') AND l_shipinstruct = 'DELIVER IN PERSON')"
        )
    return "SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem WHERE " + " OR ".join(branches)


def _excess_stock(d: Draw) -> str:  # TPC-H Q20: a colour picks about one part in a hundred
    part, start = d.key(200_000), d.day("1993-01-01", "1997-12-01")
    return (
        "SELECT l_partkey, l_suppkey, sum(l_quantity) AS shipped FROM lineitem "
        f"WHERE l_partkey BETWEEN {part} AND {part + max(1, round(2_000 * d.scale))} AND l_shipdate >= DATE '{start}' "
        f"AND l_shipdate < DATE '{start}' + INTERVAL '1' YEAR GROUP BY l_partkey, l_suppkey "
        "HAVING sum(l_quantity) > 40 ORDER BY l_partkey, l_suppkey"
    )


def _part(d: Draw) -> str:
    return (
        "SELECT l_orderkey, l_linenumber, l_quantity, l_extendedprice FROM lineitem "
        f"WHERE l_partkey = {d.key(200_000)} ORDER BY l_orderkey, l_linenumber"
    )


def _part_recent(d: Draw) -> str:
    part, start = d.key(200_000), d.day("1992-02-01", "1998-08-01")
    return (
        "SELECT count(*) AS items, sum(l_quantity) AS quantity, max(l_shipdate) AS last FROM lineitem "
        f"WHERE l_partkey BETWEEN {part} AND {part + max(1, round(4_000 * d.scale))} "
        f"AND l_shipdate BETWEEN DATE '{start}' AND DATE '{start + timedelta(days=d.integer(30, 120))}'"
    )


def _supplier_month(d: Draw) -> str:
    start = d.day("1992-02-01", "1998-10-01")
    return (
        "SELECT l_orderkey, l_partkey, l_quantity, l_shipdate FROM lineitem "
        f"WHERE l_suppkey = {d.key(10_000)} AND l_shipdate BETWEEN DATE '{start}' AND "
        f"DATE '{start + timedelta(days=d.integer(14, 60))}' ORDER BY l_orderkey, l_partkey, l_linenumber"
    )


def _supplier(d: Draw) -> str:
    return (
        "SELECT l_returnflag, count(*) AS items, sum(l_extendedprice) AS amount FROM lineitem "
        f"WHERE l_suppkey = {d.key(10_000)} GROUP BY l_returnflag"
    )


def _order(d: Draw) -> str:
    return f"SELECT * FROM lineitem WHERE l_orderkey = {d.order_key()}"


def _order_list(d: Draw) -> str:
    keys = ", ".join(str(d.order_key()) for _ in range(d.integer(2, 6)))
    return (
        "SELECT l_orderkey, count(*) AS items, sum(l_extendedprice) AS amount FROM lineitem "
        f"WHERE l_orderkey IN ({keys}) GROUP BY l_orderkey"
    )


def _order_range(d: Draw) -> str:
    key = d.order_key()
    return (
        "SELECT count(*) AS items, sum(l_extendedprice * (1 + l_tax)) AS charged FROM lineitem "
        f"WHERE l_orderkey BETWEEN {key} AND {key + max(32, round(12_000 * d.scale))}"
    )


def _price_band(d: Draw) -> str:
    low = d.integer(90_100, 7_500_000)
    return (
        "SELECT count(*) AS items, min(l_shipdate) AS earliest, max(l_discount) AS discount FROM lineitem "
        f"WHERE l_extendedprice BETWEEN {cents(low)} AND {cents(low + d.integer(1_000, 60_000))}"
    )


def _expensive(d: Draw) -> str:
    return (
        "SELECT l_orderkey, l_linenumber, l_extendedprice FROM lineitem "
        f"WHERE l_extendedprice > {cents(d.integer(9_000_000, 9_450_000))} AND l_discount >= 0.0{d.integer(5, 9)} "
        "ORDER BY l_extendedprice DESC, l_orderkey, l_linenumber"
    )


def _shipped_days(d: Draw) -> str:
    start = d.day("1992-02-01", "1998-11-01")
    return (
        "SELECT l_shipmode, count(*) AS items, sum(l_extendedprice) AS amount FROM lineitem WHERE l_shipdate "
        f"BETWEEN DATE '{start}' AND DATE '{start + timedelta(days=d.integer(0, 7))}' GROUP BY l_shipmode"
    )


def _received_days(d: Draw) -> str:
    start = d.day("1992-02-01", "1998-12-01")
    return (
        "SELECT l_suppkey, count(*) AS items FROM lineitem WHERE l_receiptdate >= "
        f"DATE '{start}' AND l_receiptdate < DATE '{start + timedelta(days=d.integer(1, 5))}' "
        f"AND l_returnflag = '{d.pick(('A', 'N', 'R'))[0]}' GROUP BY l_suppkey"
    )


def _bulk_instructions(d: Draw) -> str:
    start = d.day("1992-03-01", "1998-10-01")
    return (
        "SELECT count(*) AS items, sum(l_quantity) AS quantity FROM lineitem "
        f"WHERE l_shipinstruct = '{d.pick(INSTRUCTIONS)[0]}' AND l_quantity >= {d.integer(40, 48)} "
        f"AND l_commitdate BETWEEN DATE '{start}' AND DATE '{start + timedelta(days=d.integer(5, 30))}'"
    )


LINEITEM_TEMPLATES: tuple[Template, ...] = (
    Template("pricing_summary", 1, _pricing_summary, 2500),
    Template("late_items", 2, _late_items, 1200),
    Template("revenue_forecast", 3, _revenue_forecast, 1100),
    Template("shipping_modes", 2, _shipping_modes, 1300),
    Template("promotion_effect", 4, _promotion_effect, 700),
    Template("top_supplier", 2, _top_supplier, 1600),
    Template("small_quantity", 4, _small_quantity, 600),
    Template("discounted_revenue", 4, _discounted_revenue, 700),
    Template("excess_stock", 5, _excess_stock, 600),
    Template("part", 11, _part, 300),
    Template("part_recent", 7, _part_recent),
    Template("supplier_month", 9, _supplier_month),
    Template("supplier", 4, _supplier),
    Template("order", 9, _order, 200),
    Template("order_list", 3, _order_list, 250),
    Template("order_range", 3, _order_range, 250),
    Template("price_band", 6, _price_band),
    Template("expensive", 2, _expensive),
    Template("shipped_days", 9, _shipped_days, 350),
    Template("received_days", 6, _received_days, 350),
    Template("bulk_instructions", 4, _bulk_instructions),
)
"""21 templates; nine are reports (27% of the statements), the others look-ups."""


def cents(value: int) -> str:
    """An amount of money as a decimal literal.

    >>> cents(90105)
    '901.05'
    """
    return f"{value // 100}.{value % 100:02d}"
