"""TPC-H's Q3, Q5, Q6, Q8, Q10, Q12, Q14 and Q19 on one denormalised table, by which SOP is evaluated.

The conditions are TPC-H's own on columns of `data.denormalised_lineitem`, with its substitution parameters: joins have
become columns, and as a result is not to depend on the order of rows, nothing is cut off by LIMIT. Most parameters have
few values (Q14 has 60 months), so a log asks some statements again, as it does in SOP's own evaluation.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from .templates import MODES, Draw, Template
from .workloads import Record, tpch_statements

__all__ = ["SOP_TEMPLATES", "TABLE", "denormalised_logs"]

TABLE = "denormalised"
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
NATIONS = {
    "AFRICA": ("ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"),
    "AMERICA": ("ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"),
    "ASIA": ("CHINA", "INDIA", "INDONESIA", "JAPAN", "VIETNAM"),
    "EUROPE": ("FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"),
    "MIDDLE EAST": ("EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"),
}
TYPES = (
    ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
    ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
    ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
)
PACKED = (
    ("SM", "CASE", "BOX", "PACK", "PKG"),
    ("MED", "BAG", "BOX", "PKG", "PACK"),
    ("LG", "CASE", "BOX", "PACK", "PKG"),
)
SIZES, QUANTITIES = (5, 10, 15), ((1, 10), (10, 20), (20, 30))
REVENUE = "sum(l_extendedprice * (1 - l_discount))"


def _within(column: str, start: str, months: int) -> str:
    return f"{column} >= DATE '{start}' AND {column} < DATE '{start}' + INTERVAL '{months}' MONTH"


def _month(d: Draw, first: int, last: int) -> str:
    """The first day of a month, both given as months since January 1992."""
    month = d.integer(first, last)
    return f"{1992 + month // 12}-{month % 12 + 1:02d}-01"


def _year(d: Draw) -> str:
    return f"{d.integer(1993, 1997)}-01-01"


def _shipping_priority(d: Draw) -> str:  # Q3
    day = d.day("1995-03-01", "1995-03-31")
    return (
        f"SELECT l_orderkey, {REVENUE} AS revenue, o_orderdate, o_shippriority FROM {TABLE} "
        f"WHERE c_mktsegment = '{d.pick(SEGMENTS)[0]}' AND o_orderdate < DATE '{day}' AND l_shipdate > DATE '{day}' "
        "GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate, l_orderkey"
    )


def _local_supplier(d: Draw) -> str:  # Q5
    return (
        f"SELECT s_nation, {REVENUE} AS revenue FROM {TABLE} WHERE c_nation = s_nation "
        f"AND s_region = '{d.pick(tuple(NATIONS))[0]}' AND {_within('o_orderdate', _year(d), 12)} "
        "GROUP BY s_nation ORDER BY revenue DESC, s_nation"
    )


def _revenue_forecast(d: Draw) -> str:  # Q6
    discount = d.integer(2, 9)
    return (
        f"SELECT sum(l_extendedprice * l_discount) AS revenue FROM {TABLE} WHERE {_within('l_shipdate', _year(d), 12)} "
        f"AND l_discount BETWEEN 0.{discount - 1:02d} AND 0.{discount + 1:02d} AND l_quantity < {d.integer(24, 25)}"
    )


def _market_share(d: Draw) -> str:  # Q8
    region = d.pick(tuple(NATIONS))[0]
    return (
        f"SELECT year(o_orderdate) AS o_year, sum(CASE WHEN s_nation = '{d.pick(NATIONS[region])[0]}' THEN "
        f"l_extendedprice * (1 - l_discount) ELSE 0 END) AS national, {REVENUE} AS volume FROM {TABLE} "
        f"WHERE c_region = '{region}' AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31' "
        f"AND p_type = '{' '.join(d.pick(words)[0] for words in TYPES)}' GROUP BY year(o_orderdate) ORDER BY o_year"
    )


def _returned_items(d: Draw) -> str:  # Q10: from February 1993 to January 1995
    return (
        f"SELECT o_custkey, c_nation, {REVENUE} AS revenue FROM {TABLE} "
        f"WHERE {_within('o_orderdate', _month(d, 13, 36), 3)} AND l_returnflag = 'R' "
        "GROUP BY o_custkey, c_nation ORDER BY revenue DESC, o_custkey"
    )


def _shipping_modes(d: Draw) -> str:  # Q12
    first, second = d.pick(MODES, 2)
    urgent = "o_orderpriority IN ('1-URGENT', '2-HIGH')"
    return (
        f"SELECT l_shipmode, sum(CASE WHEN {urgent} THEN 1 ELSE 0 END) AS high, count(*) AS lines FROM {TABLE} "
        f"WHERE l_shipmode IN ('{first}', '{second}') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate "
        f"AND {_within('l_receiptdate', _year(d), 12)} GROUP BY l_shipmode ORDER BY l_shipmode"
    )


def _promotion_effect(d: Draw) -> str:  # Q14
    return (
        "SELECT sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END) AS promo, "
        f"{REVENUE} AS revenue FROM {TABLE} WHERE {_within('l_shipdate', _month(d, 12, 71), 1)}"
    )


def _discounted_revenue(d: Draw) -> str:  # Q19
    branches = []
    for (kind, *forms), size, (least, most) in zip(PACKED, SIZES, QUANTITIES, strict=True):
        low = d.integer(least, most)
        packed = ", ".join(f"'{kind} {form}'" for form in forms)
        branches.append(
            f"(p_brand = 'Brand#{d.integer(1, 5)}{d.integer(1, 5)}' AND p_container IN ({packed}) "
            f"AND l_quantity >= {low} AND l_quantity <= {low + 10} AND p_size BETWEEN 1 AND {size} "
            "AND l_shipmode IN ('AIR', 'REG AIR') AND l_shipinstruct = 'DELIVER IN PERSON')"
        )
    return f"SELECT {REVENUE} AS revenue FROM {TABLE} WHERE {' OR '.join(branches)}"


SOP_TEMPLATES: tuple[Template, ...] = (
    Template("q3", 1, _shipping_priority, 1200),
    Template("q5", 1, _local_supplier, 1200),
    Template("q6", 1, _revenue_forecast, 1100),
    Template("q8", 1, _market_share, 900),
    Template("q10", 1, _returned_items, 900),
    Template("q12", 1, _shipping_modes, 1300),
    Template("q14", 1, _promotion_effect, 700),
    Template("q19", 1, _discounted_revenue, 700),
)
"""Eight templates of equal weights."""


def denormalised_logs(train: int, unseen: int, seed: int) -> tuple[list[Record], list[Record]]:
    """A training log and a later one, drawn independently of each other.

    >>> first, later = denormalised_logs(20, 20, seed=1)
    >>> first[-1]["timestamp"] < later[0]["timestamp"]
    True
    """
    first = tpch_statements(train, 2 * seed, templates=SOP_TEMPLATES)
    begin = datetime.fromisoformat(first[-1]["timestamp"]) + timedelta(hours=1)
    return first, tpch_statements(unseen, 2 * seed + 1, begin, templates=SOP_TEMPLATES)
