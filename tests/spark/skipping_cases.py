"""A Delta table with every kind of column, file and statistics, and SQL conditions over it, for test_skipping.py."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

__all__ = ["FIXED", "KINDS", "Case", "Conditions", "make_table"]

ARROW = pa.schema(
    [
        ("k", pa.int64()), ("i", pa.int32()), ("tiny", pa.int8()), ("f", pa.float32()), ("d", pa.float64()),
        ("dec", pa.decimal128(12, 2)), ("wide", pa.decimal128(30, 4)), ("s", pa.string()), ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us")), ("flag", pa.bool_()), ("bin", pa.binary()),
        ("st", pa.struct([("a", pa.int32()), ("t", pa.string())])),
        ("beyond", pa.int64()), ("p", pa.string()), ("q", pa.date32()),
    ]
)  # fmt: skip
INDEXED = 15
"""Leaf columns before ``beyond``, which has no statistics."""
KINDS = {
    "k": "integer", "i": "integer", "late": "integer", "tiny": "integer", "f": "float", "d": "float", "dec": "decimal",
    "wide": "decimal", "s": "string", "day": "date", "at": "moment", "local": "moment", "flag": "boolean",
    "bin": "binary", "st.a": "integer", "st.t": "string", "beyond": "integer", "p": "string", "q": "date",
}  # fmt: skip
PARTITION = ("p", "q")
SPECIAL = "b c/=%\u00e9\"'\\"
EMOJI = "\U0001f600"
LAST = "\U0010ffff"
MOMENT = 1_700_000_000_123_456  # microseconds, not whole milliseconds

Row = dict[str, Any]
EXTREMES: tuple[Row, ...] = (
    {"k": 2**63 - 1, "i": 2**31 - 1, "tiny": 127, "f": math.nan, "d": math.nan, "dec": Decimal("9999999999.99"),
     "s": "", "day": dt.date(9999, 12, 31), "at": -1, "local": -1, "st": {"a": -1, "t": EMOJI * 20}},
    {"k": -(2**63), "i": -(2**31), "tiny": -128, "f": math.inf, "d": math.inf, "dec": Decimal("-9999999999.99"),
     "s": EMOJI * 20 + "tail", "day": dt.date(1, 1, 1), "at": -(10**15) - 1, "local": -(10**15) - 1},
    {"k": 0, "f": -0.0, "d": -0.0, "dec": Decimal("0.00"), "s": "a" * 32 + "\x7f" + "b", "at": 0},
    {"f": 0.0, "d": -math.inf, "s": "a" * 32 + LAST * 2 + "c", "at": 999, "local": 999},
    {"d": 5e-324, "s": "a" * 33}, {"s": "a" * 32}, {"s": "its \\ \" \n"},
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------- the table


def make_table(spark: SparkSession, path: str, seed: int = 0) -> None:
    """Write the table: 16 files over four values of ``p`` and of ``q``, null among them.

    One file is all null, one holds one row many times, one extreme values, one a string that has no maximum, one NaN
    only, one no statistics, one a deletion vector over its own bounds, and two a column added later.
    """
    rng = random.Random(seed)
    day = [None, *(dt.date(2024, 1, n) for n in (1, 2, 3))]
    repeated = _row(rng, 4) | {"s": "it's"}
    blocks: list[tuple[list[Row], str | None, dt.date | None]] = [
        (_rows(rng, 0), "a", day[1]),
        (_rows(rng, 1), SPECIAL, day[2]),
        (_rows(rng, 2), None, None),
        *((_rows(rng, 3, 12), p, day[1]) for p in ("a", "\u0416", SPECIAL)),
        ([repeated] * 5, "a", day[2]),
        ([{}] * 6, "\u0416", day[3]),
        ([_row(rng, 5) | extreme for extreme in EXTREMES], "a", day[1]),
        ([{"k": 7, "i": 7, "s": LAST * 70}, {"s": "x"}], "\u0416", None),
        (_rows(rng, 7, 60), "c", day[3]),
        ([{"i": 75, "f": math.nan, "d": math.nan, "s": "a" * 32 + "bcd", "flag": True}] * 3, "c", day[1]),
        ([_row(rng, 8) | {"flag": None, "s": None}] * 3, "c", day[2]),
    ]
    partitions = ["p", "q"]
    frame = _frame(spark, blocks).repartitionById(len(blocks), "block").drop("block")
    writer = frame.write.format("delta").partitionBy(*partitions).option("delta.enableDeletionVectors", "true")
    writer.option("delta.dataSkippingNumIndexedCols", str(INDEXED)).save(path)
    spark.conf.set("spark.databricks.delta.stats.collect", "false")
    _append(_frame(spark, [(_rows(rng, 6), "a", day[2])]), path)
    spark.conf.unset("spark.databricks.delta.stats.collect")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE p = 'c' AND q = DATE'2024-01-03' AND i IN (70, 71, 79)")
    spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN late INT AFTER i")
    indexed = f"'delta.dataSkippingNumIndexedCols' = '{INDEXED + 1}'"
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({indexed})")
    late = _frame(spark, [(_rows(rng, 9), "a", day[1]), (_rows(rng, 9), "\u0416", day[2])])
    _append(late.selectExpr("*", "IF(p = 'a', IF(i % 4 = 0, NULL, i), 100 + i) AS late"), path)


def _append(frame: Any, path: str) -> None:
    frame.drop("block").coalesce(1).write.format("delta").mode("append").save(path)


def _frame(spark: SparkSession, blocks: list[tuple[list[Row], str | None, dt.date | None]]) -> Any:
    full = [row | {"p": p, "q": q, "block": n} for n, (rows, p, q) in enumerate(blocks) for row in rows]
    schema = ARROW.append(pa.field("block", pa.int32()))
    arrays = [pa.array([row.get(item.name) for row in full], item.type) for item in schema]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=schema))


def _rows(rng: random.Random, block: int, count: int = 20, nulls: float = 0.15) -> list[Row]:
    rows = []
    for row in (_row(rng, block) for _ in range(count)):
        inner = {name: None if rng.random() < nulls else value for name, value in row.pop("st").items()}
        kept = {name: None if rng.random() < nulls else value for name, value in row.items()}
        rows.append(kept | {"st": None if rng.random() < nulls / 2 else inner})
    return rows


def _row(rng: random.Random, block: int) -> Row:
    n = block * 10 + rng.randrange(10)
    odd = rng.choice([0, 1, 999])
    return {
        "k": 2**53 - 60 + n, "i": n, "tiny": n % 128 - 64, "f": n / 10, "d": n / 8, "dec": Decimal(n).scaleb(-1),
        "wide": Decimal(n * 10**21 + 7).scaleb(-4),
        "s": rng.choice("\u00e4bcDz") + chr(0x61 + block) + "x" * rng.randrange(40) + str(n),
        "day": dt.date(2024, 1, 1) + dt.timedelta(days=n), "at": MOMENT + n * 1_000_000 + odd,
        "local": MOMENT + n * 3_600_000_000 + odd, "flag": n % 3 == 0, "bin": bytes([n, 0]),
        "st": {"a": n, "t": f"t{n:03}"}, "beyond": n,
    }  # fmt: skip


# --------------------------------------------------------------------------------------------------- the conditions


@dataclass(frozen=True)
class Case:
    """A condition in SQL.

    Attributes:
        sql: the condition.
        columns: the columns it names, once per time it names them.
        traits: what in it may make our selection larger than Delta's; keys of ``REASONS`` in test_skipping.py.
    """

    sql: str
    columns: tuple[str, ...]
    traits: frozenset[str] = frozenset()


# Conditions that the generator does not make, or not often.
FIXED = (
    Case("p = 'a' OR i = 5", ("p", "i")),
    Case("(p = 'a' AND i = 1) OR (p = 'c' AND i = 75)", ("p", "i")),
    Case("(p = 'a' OR i > 60) AND (q > '2024-01-01' OR k < 0)", ("p", "i", "q", "k")),
    Case("p IN ('a', 'z')", ("p",)),
    Case("p NOT IN ('a', 'c')", ("p",)),
    Case("p NOT IN ('a', NULL)", ("p",)),
    Case("p <> 'a' AND i IS NULL", ("p", "i")),
    Case("i IN (1, 95)", ("i",)),
    Case("i IN (1, 95) AND i > 50 AND i < 60", ("i",)),
    Case("i IN (1, 2) OR i = 95 OR i IN (93, NULL)", ("i",)),
    Case("i NOT IN (1, 2)", ("i",)),
    Case("i NOT IN (44, 44)", ("i",)),
    Case("i NOT IN (1, NULL)", ("i",)),
    Case("i > 90 AND i < 3", ("i",)),
    Case("d IN (double('NaN'), 1)", ("d",)),
    Case("d IN (1, double('NaN'))", ("d",)),
    Case("d >= double('NaN') AND d <= 5", ("d",)),
    Case("d <= 5 AND d >= double('NaN')", ("d",)),
    Case("d = -0e0 OR d = '-0.0'", ("d",)),
    Case("f = 0.1", ("f",), frozenset({"folded"})),
    Case("f = '0.1'", ("f",), frozenset({"folded"})),
    Case("f >= 0.1 AND f < 0.3", ("f",)),
    Case("f NOT IN (0.1, 0.5)", ("f",)),
    Case("dec = 99999999999999", ("dec",), frozenset({"unread"})),
    Case("dec IN (1.1, '1.2')", ("dec",), frozenset({"unread"})),
    Case("dec BETWEEN '1.5' AND 3.25", ("dec",)),
    Case("day IN (TIMESTAMP '2024-01-05 00:00:00', DATE '2024-03-02')", ("day",)),
    Case("day IN (TIMESTAMP '2024-01-05 00:00:00')", ("day",)),
    Case("CAST(i AS BIGINT) = 5 AND CAST(day AS TIMESTAMP) > TIMESTAMP '2024-01-02 10:00:00'", ("i", "day")),
    Case("CAST(at AS DATE) = DATE '1969-12-31'", ("at",)),
    Case("to_date(at) >= '2023-11-15'", ("at",)),
    Case("year(day) = 2024 AND substr(s, 1, 2) = 'ba'", ("day", "s"), frozenset({"unread"})),
    Case("tiny + 1 = 5 AND i = tiny + 64", ("tiny", "i"), frozenset({"unread"})),
    Case("year(day) = 1 OR i = 5", ("day", "i"), frozenset({"unread"})),
    Case("upper(p) = 'A'", ("p",), frozenset({"partition"})),
    Case("late = 5 AND i < 20", ("late", "i")),
    Case("late > 100 OR i < 5", ("late", "i")),
    Case("late IS NULL AND i = 3", ("late", "i")),
    Case("late IS NOT NULL", ("late",)),
    Case("st IS NULL", ("st.a",), frozenset({"unread"})),
    Case("s LIKE '%'", ("s",), frozenset({"unread"})),
    Case("startswith(s, '') OR i = 3", ("s", "i")),
    Case(f"s LIKE '{'a' * 32}%' AND s > '{'a' * 32}'", ("s",)),
    Case(f"s > '{'a' * 32}\x7f'", ("s",)),
    Case(f"s > '{'a' * 32}{LAST}'", ("s",)),
    Case(f"s >= '{EMOJI * 16}' AND s < '{EMOJI * 17}'", ("s",)),
    Case("i = 5 OR NULL", ("i",)),
    Case("true", ()),
    Case("1 = 2", (), frozenset({"folded"})),
)


class Conditions:
    """Random conditions over the table, with literals at its values and next to them."""

    def __init__(self, rows: pa.Table, seed: int) -> None:
        self._rng = random.Random(seed)
        self._pool = {name: [v for v in self._values(rows, name) if v is not None] for name in KINDS}

    @staticmethod
    def _values(rows: pa.Table, name: str) -> list[Any]:
        top, _, inner = name.partition(".")
        column = pc.struct_field(rows.column(top), inner) if inner else rows.column(top)
        if KINDS[name] == "moment":
            return column.cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
        return column.to_pylist()

    def every_pair(self) -> Iterator[Case]:
        """Every operator over every column, in random order, over and over."""
        pairs = [pair for pair in product(KINDS, OPERATORS) if pair[1] != "like" or KINDS[pair[0]] == "string"]
        while True:
            self._rng.shuffle(pairs)
            yield from (self.atom(*pair) for pair in pairs)

    def tree(self, depth: int = 2) -> Case:
        """A combination by AND, OR and NOT."""
        rng = self._rng
        if depth == 0 or rng.random() < 0.25:
            return self.atom(rng.choice(list(KINDS)), rng.choice(OPERATORS))
        word = rng.choice(["AND", "AND", "OR", "NOT"])
        if word == "NOT":
            inner = self.tree(depth - 1)
            return Case(f"NOT ({inner.sql})", inner.columns, inner.traits)
        parts = [self.tree(depth - 1) for _ in range(rng.choice([2, 2, 3]))]
        columns = tuple(name for part in parts for name in part.columns)
        traits = frozenset[str]().union(*(part.traits for part in parts))
        if len(columns) > len(set(columns)):
            traits |= {"folded"}  # x = 3 AND x > 5
        return Case("(" + f" {word} ".join(part.sql for part in parts) + ")", columns, traits)

    def atom(self, name: str, operator: str) -> Case:
        """One comparison of one column."""
        rng, kind, traits = self._rng, KINDS[name], set[str]()

        def literal() -> str:
            text, trait = getattr(self, f"_{kind}")(self._near(kind, rng.choice(self._pool[name])), name)
            traits.update({trait} - {""})
            return str(text)

        if kind in ("boolean", "binary"):
            traits.add("unread")
        match operator:
            case "like" if kind == "string":
                sql = self._like(name, traits)
            case "is null" | "is not null":
                traits.clear()
                sql = f"{name} {operator.upper()}"
            case "null":
                sql = rng.choice([f"{name} = NULL", f"{name} <=> NULL", f"{name} IN (NULL)"])
            case "between":
                sql = f"{name} BETWEEN {literal()} AND {literal()}"
            case "in" | "not in":
                items = [literal() for _ in range(rng.choice([1, 2, 3, 12]))]
                if rng.random() < 0.15:
                    items.append("NULL")
                    traits |= {"folded"} if traits else set()  # NOT IN (..., NULL) is never true
                sql = f"{name} {operator.upper()} ({', '.join(items)})"
            case "flipped":
                sql = f"{literal()} {rng.choice(['<', '>=', '='])} {name}"
            case "not <=>":
                traits.add("null_safe")
                sql = f"NOT ({name} <=> {literal()})"
            case "bare" if kind == "boolean":
                sql = rng.choice(["flag", "NOT flag", "flag IS TRUE", "flag IS NOT FALSE", "flag = 'true'"])
            case _:
                sql = f"{name} {operator if operator in COMPARISONS else '='} {literal()}"
        if name in PARTITION:
            traits = {"partition"} if traits else set()
        return Case(sql, (name,), frozenset(traits))

    def _like(self, name: str, traits: set[str]) -> str:
        value = str(self._near("string", self._rng.choice(self._pool[name])))
        text = "".join(c for c in value[: self._rng.randrange(1, 40)] if c not in "\\%_\n'") or "a"
        pattern = self._rng.choice(["{}%", "{}%", "{}%{}", "{}_%", "%{}", "starts"])
        if pattern == "starts":
            return f"startswith({name}, '{text}')"
        if pattern != "{}%":
            traits.add("unread")
        return f"{name} LIKE '{pattern.format(text, text[-1])}'"

    def _near(self, kind: str, value: Any) -> Any:
        """The value, or one beside it."""
        rng = self._rng
        step = rng.choice([-1, 1])
        if rng.random() < 0.5:
            return value
        match kind:
            case "integer":
                return value + step
            case "float" if math.isfinite(value):
                return rng.choice([np.nextafter(value, math.inf * step).item(), value + step / 16])
            case "decimal":
                return value + step * rng.choice([Decimal("0.01"), Decimal("0.005"), Decimal("0.1")])
            case "date" if 1 < value.year < 9999:
                return value + dt.timedelta(days=step)
            case "moment":
                return value + step * rng.choice([1, 999, 1000, 1001, 10**6])
            case "string":
                cut = rng.choice([1, 3, 31, 32, 33])
                return rng.choice([value[:-1], value + "a", value[:cut], value[:32] + "\x7f", value[:32] + LAST])
        return value

    def _pick(self, forms: dict[str, Callable[[], str]]) -> str:
        return forms[self._rng.choice(list(forms))]()

    def _integer(self, value: int, name: str) -> tuple[str, str]:
        form = self._rng.choice(["plain"] * 6 + ["half", "string", "long", "exponent", "outside"])
        if form == "outside":
            return str(self._rng.choice([2**31, -(2**31) - 1, 3 * 10**9, 2**63, 10**20])), "folded"
        if form == "exponent":
            return f"{value}e0", "unread" if name in ("k", "beyond") else ""
        if form == "long" and not -(2**63) < value < 2**63:
            form = "plain"
        outside = not -(2**63) <= value < 2**63 or (name == "tiny" and not -128 <= value < 128)
        text = {"plain": f"{value}", "half": f"{value}.5", "string": f"'{value}'", "long": f"{value}L"}[form]
        if form == "string" and outside and name != "tiny":
            text = f"{value}"  # Spark refuses it
        return text, "folded" if outside or name == "tiny" or abs(value) >= 2**31 - 2 else ""

    def _float(self, value: float, name: str) -> tuple[str, str]:
        if not math.isfinite(value):
            text = str(value).replace("inf", "Infinity").replace("nan", "NaN")
            form = self._rng.choice(["double('{}')", "CAST('{}' AS DOUBLE)", "'{}'"])
            return form.format(text), "folded" if name == "f" else ""
        forms: dict[str, Callable[[], str]] = {
            "decimal": lambda: f"{Decimal(value):.6f}" if abs(value) < 1e20 else repr(value),
            "double": lambda: f"{value!r}D",
            "string": lambda: f"'{value!r}'",
            "int": lambda: str(int(value)),
        }
        return self._pick(forms), "folded" if name == "f" else ""

    def _decimal(self, value: Decimal, name: str) -> tuple[str, str]:
        form = self._rng.choice(["plain"] * 5 + ["string", "exponent", "int", "finer"])
        outside = "unread" if abs(value) >= Decimal(10) ** (10 if name == "dec" else 26) else ""
        text = f"{value:f}"
        match form:
            case "string":
                return f"'{text}'", "unread"
            case "exponent":
                return f"{text}e0", "unread"
            case "int":
                return str(int(value)), outside
            case "finer":
                return text + ("5" if "." in text else ".005"), outside
        return text, outside

    def _string(self, value: str, name: str) -> tuple[str, str]:
        return "'" + value.replace("\\", "\\\\").replace("\n", "\\n").replace("'", "\\'") + "'", ""

    def _date(self, value: dt.date, name: str) -> tuple[str, str]:
        text, forms = value.isoformat(), ["DATE '{}'", "'{}'", "CAST('{}' AS DATE)"]
        if 1 < value.year < 9999:
            forms += ["TIMESTAMP_NTZ '{} 00:00:00'", "TIMESTAMP_NTZ '{} 12:00:00'", "TIMESTAMP '{} 12:00:00.5'"]
        return self._rng.choice(forms).format(text), ""

    def _moment(self, value: int, name: str) -> tuple[str, str]:
        text = (dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=value)).isoformat(sep=" ")
        forms = ["TIMESTAMP '{}'", "TIMESTAMP_NTZ '{}'", "'{}'", "TIMESTAMP '{}+02:00'", "DATE '{:.10}'"]
        return self._rng.choice(forms).format(text), ""

    def _boolean(self, value: bool, name: str) -> tuple[str, str]:
        return str(value).lower(), ""

    def _binary(self, value: bytes, name: str) -> tuple[str, str]:
        return f"X'{value.hex()}'", ""


COMPARISONS = ("=", "<=>", "<>", "<", "<=", ">", ">=")
OPERATORS = (*COMPARISONS, "between", "in", "not in", "is null", "is not null", "null", "flipped", "not <=>", "like")
OPERATORS += ("bare",)
