"""Random statements of every shape over a table with columns of many kinds and a small one, for test_statements.py."""

from __future__ import annotations

import random
import re

from pyspark.sql import SparkSession

from zorder_pipeline.model.file_stats import Feature

__all__ = ["Statements", "features", "make_tables"]

EXPRESSIONS = {
    "month(dt)": "int", "upper(s)": "text", "length(s)": "int", "i % 10": "int", "left(s, 1)": "text",
    "m['a']": "int", "a[0]": "int", "size(a)": "int", "st.x + 1": "int", "st.y.z": "text", "sa[0].k": "int",
    "hour(ts)": "int", "CAST(ts AS DATE)": "day", "date_trunc('DAY', ts)": "moment", "ts + INTERVAL 3 HOURS": "moment",
    "ts - INTERVAL '1 02:03:04' DAY TO SECOND": "moment", "dt + INTERVAL 1 MONTH": "day", "trim(c)": "text",
    "length(c)": "int", "concat(v, c)": "text", "greatest(i, p)": "int", "coalesce(i, 5)": "int", "dec * 2": "int",
    "CAST(n AS STRING)": "text", "array_max(a)": "int", "try_cast(right(s, 1) AS INT)": "int",
}  # fmt: skip
PREDICATES = (
    *("s LIKE '%7'", "i > id", "month(dt) = 3", "m['a'] = 3", "array_contains(a, 4)", "exists(a, x -> x > 10)"),
    *("lc COLLATE UTF8_LCASE = 'k4'", "contains(lc COLLATE UTF8_LCASE, 'K4')", "c = 'c3'", "trim(c) = 'c3'", "f <> f"),
    *("i = 5 OR p = 1", "st.x = 4 AND st.y.z LIKE 'z%'", "sa[0].w = 'w1'", "map_contains_key(m, 'k1')", "v > c"),
    *("dt > CAST(ts AS DATE)", "ts > n", "gl = 'A1'", "dec % 1 = 0.125", "s IS NULL AND i IS NOT NULL"),
    *("coalesce(f, 1.0D) = 1.0D", "c COLLATE UTF8_BINARY_RTRIM = 'c3'", "CAST(ts AS DATE) = DATE'2024-04-03'"),
)
SHAPES = """
SELECT * EXCEPT (m) FROM {big} WHERE {where} AND {where};
SELECT id, m, a, sa, st FROM {big} WHERE {where};
SELECT p, count(*), sum(i), min(s), count(DISTINCT v) FROM {big} WHERE {where} GROUP BY p HAVING count(*) > {20};
SELECT count(*) FILTER (WHERE {where}), sum(i) FILTER (WHERE {where}) FROM {big};
SELECT p, i % 4 z, grouping_id(), count(*) FROM {big} WHERE {where} GROUP BY {ROLLUP|CUBE} (p, i % 4);
SELECT * FROM (SELECT p, gl, count(*) FROM {big} GROUP BY GROUPING SETS ((p), (gl))) WHERE p = {3} OR gl = 'A{9}';
SELECT i, max(id) FROM {big} GROUP BY i HAVING i = {60} OR max(id) > {600};
WITH rows_view AS (SELECT k id, name s FROM {few} WHERE lim > {15}) SELECT * FROM rows_view WHERE id < {60};
WITH x AS (SELECT id, i, p FROM {big} WHERE {where})
  SELECT a.id, b.i FROM x a JOIN x b ON a.id = b.id + {3} WHERE a.i < {60} AND b.id > {500};
WITH RECURSIVE r(x) AS (SELECT {60} UNION ALL SELECT x + 7 FROM r WHERE x < 100)
  SELECT id, x FROM {big} JOIN r ON id = x WHERE {where};
SELECT id FROM {big} WHERE i {IN|NOT IN} (SELECT k FROM {few} WHERE name > 'n{9}') AND {where};
SELECT id FROM {big} WHERE id IN (SELECT id + {5} FROM {big} WHERE {where}) AND {where};
SELECT id FROM {big} WHERE (i, p) IN (SELECT * FROM VALUES ({60}, 0), ({60}, 1), (NULL, 1)) OR {where};
SELECT id FROM {big} x WHERE {EXISTS|NOT EXISTS} (SELECT 1 FROM {few} y WHERE y.k = x.i AND y.lim < {20}) AND {where};
SELECT id, (SELECT max(lim) FROM {few} y WHERE y.k = x.i) FROM {big} x
  WHERE {where} AND x.id > (SELECT avg(id) - {300} FROM {big} WHERE {where});
SELECT (SELECT count(*) FROM {big} WHERE {where}), (SELECT max(id) FROM {big} WHERE {where});
SELECT id, s FROM {big} WHERE {where} {UNION|EXCEPT|EXCEPT ALL|INTERSECT} SELECT id, s FROM {big} WHERE {where};
SELECT x.id, z.* FROM {big} x, LATERAL (SELECT sum(lim) FROM {few} y WHERE y.k >= x.i) z WHERE {where};
SELECT k, z.id FROM {few} y JOIN LATERAL (SELECT id FROM {big} WHERE id = y.k * {9} AND {where}) z;
SELECT id, e FROM {big} LATERAL VIEW {explode|OUTER explode}(a) q AS e WHERE {where} AND e > {9};
SELECT id, mk FROM {big} LATERAL VIEW explode(m) q AS mk, mv WHERE {where} AND mv > {20};
SELECT * FROM (SELECT p, i % 3 r, id FROM {big} WHERE {where}) PIVOT (count(id) FOR r IN (0, 1, 2));
SELECT * FROM (SELECT id, i, p FROM {big} WHERE {where}) UNPIVOT (val FOR name IN (i, p)) WHERE val > {30};
SELECT id, s FROM {big} WHERE {where} ORDER BY id {ASC|DESC} LIMIT {30} OFFSET {5};
SELECT count(*) FROM (SELECT * FROM {big} WHERE {where} LIMIT {80});
SELECT * FROM (SELECT id, p, row_number() OVER (PARTITION BY p ORDER BY id) r, lag(i) OVER (ORDER BY id) l
  FROM {big} WHERE {where}) WHERE r <= {30} AND p = {3};
SELECT id FROM (SELECT *, sum(id) OVER (PARTITION BY i, s) w FROM {big}) WHERE {where} AND w > {900};
SELECT x.id, y.k FROM {big} x {LEFT|RIGHT|FULL} JOIN {few} y ON x.i = y.k AND {where}
  WHERE {x.id IS NULL|x.id > 100 OR x.s IS NULL|y.lim < 9|coalesce(x.id, 0) < 200};
SELECT id FROM {big} x LEFT {ANTI|SEMI} JOIN {few} y ON x.i = y.k AND y.lim > {20} WHERE {where};
SELECT x.id, y.i FROM {big} x JOIN {big} y ON x.id = y.id WHERE x.id < {600} AND y.i > {60};
FROM {big} |> WHERE {where} |> SELECT id, p |> WHERE id > {600} |> AGGREGATE count(*) GROUP BY p;
SELECT count(DISTINCT _metadata.file_path) < 99, count(*) FROM {table} WHERE {where};
SELECT count(*) FROM IDENTIFIER('rows_view') WHERE {where}
"""
"""Statements with names of tables, conditions, numbers below one, and choices to be filled in."""
_ROWS = """
SELECT id, IF(id % 11 = 0, NULL, CAST(id % 60 AS INT)) i,
 CASE WHEN id % 17 = 0 THEN DOUBLE('NaN') WHEN id % 13 = 0 THEN NULL ELSE id / 7 - 20 END f,
 CASE WHEN id % 19 = 0 THEN NULL WHEN id < 250 THEN concat('a common beginning longer than 32 characters ', id DIV 25)
  ELSE concat(char(CAST(65 + id % 6 + 32 * (id % 2) AS INT)), id DIV 40) END s,
 concat(IF(id % 2 = 0, 'K', 'k'), id DIV 50) lc, CAST(concat('v', id DIV 30) AS VARCHAR(12)) v,
 CAST(concat('c', id DIV 70) AS CHAR(6)) c, date_add(DATE'2024-01-01', CAST(id DIV 2 AS INT)) dt,
 timestamp_micros(1711800000000000 + id * 1800000000) ts,
 TIMESTAMP_NTZ'2024-10-27 00:00:00' + make_dt_interval(0, 0, CAST(id * 10 AS INT)) n,
 IF(id % 9 = 0, NULL, map('a', CAST(id DIV 20 AS INT), concat('k', id % 3), 1)) m,
 IF(id % 8 = 0, NULL, array(CAST(id DIV 40 AS INT), NULL, CAST(id % 4 AS INT))) a,
 named_struct('x', CAST(id DIV 30 AS INT), 'y', named_struct('z', concat('z', id DIV 60))) st,
 array(named_struct('k', CAST(id DIV 45 AS INT), 'w', concat('w', id % 3))) sa,
 CAST((id - 300) / 8 AS DECIMAL(12, 3)) dec, CAST(id DIV 200 AS INT) p FROM range({first}, {last})
"""


def make_tables(spark: SparkSession, big: str, small: str) -> None:
    """A table of 600 rows in three versions, with deletion vectors and generated columns; and one of 60 rows."""
    spark.sql(
        f"CREATE TABLE delta.`{big}` (id BIGINT, i INT, f DOUBLE, s STRING, lc STRING, v VARCHAR(12), c CHAR(6),"
        " dt DATE, ts TIMESTAMP, n TIMESTAMP_NTZ, m MAP<STRING, INT>, a ARRAY<INT>,"
        " st STRUCT<x INT, y STRUCT<z STRING>>, sa ARRAY<STRUCT<k INT, w STRING>>, dec DECIMAL(12, 3),"
        " g DATE GENERATED ALWAYS AS (CAST(ts AS DATE)),"
        " gl STRING GENERATED ALWAYS AS (left(s, 2)), p INT) USING delta PARTITIONED BY (p) TBLPROPERTIES"
        " ('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name',"
        " 'delta.dataSkippingNumIndexedCols' = '7')"
    )
    for first, last, files in ((0, 400, 8), (400, 600, 4)):
        rows = spark.sql(_ROWS.format(first=first, last=last)).selectExpr("*", "CAST(ts AS DATE) g", "left(s, 2) gl")
        rows = rows.repartitionByRange(files, "id").sortWithinPartitions("id")
        rows.write.format("delta").mode("append").save(big)
        if first == 0:
            spark.sql(f"DELETE FROM delta.`{big}` WHERE id % 10 = 3 AND id < 200")
    names = "CAST(id AS INT) k", "concat('n', id DIV 4) name", "CAST(id % 20 AS INT) lim"
    spark.range(60).selectExpr(*names).repartitionByRange(4, "k").write.format("delta").save(small)


def features(columns: dict[str, str]) -> list[Feature]:
    """Everything that the statements may be answered by; ``columns`` are the table's, with their types."""

    def looked_at(sql: str) -> tuple[str, ...]:
        return tuple(sorted(set(re.findall(r"\b[a-z]+\b", re.sub(r"'[^']*'", "", sql))) & set(columns)))

    found = [Feature(sql, "predicate", "boolean", sql, looked_at(sql)) for sql in PREDICATES]
    found += [Feature(sql, "expression", "", sql, looked_at(sql), True) for sql in EXPRESSIONS]
    return found + [Feature(n, "column", columns[n], n, (n,), True) for n in ("id", "i", "s", "v", "dt", "ts")]


class Statements:
    """Statements from a seed.

    Args:
        big, small: folders of `make_tables`; the view ``rows_view`` reads the one, ``few_view`` the other.
    """

    def __init__(self, seed: int, big: str, small: str) -> None:
        self.random, self.big, self.small = random.Random(seed), big, small

    def _condition(self, depth: int = 1) -> str:
        pick, number = self.random.choice, self.random.randrange
        kind = number(12)
        if depth and kind < 3:
            return f"({self._condition(0)} {pick(['AND', 'OR'])} {self._condition(0)})"
        if depth and kind < 4:
            return f"NOT ({self._condition(0)})"
        if kind < 7:
            return pick(PREDICATES)
        op = pick(["=", "=", "<", "<=", ">", ">=", "<>", "<=>"])
        if kind < 9:
            sql, of = pick(list(EXPRESSIONS.items()))
            return f"{sql} {op} {self._constant(of)}"
        return pick(
            [
                *(f"id {op} {number(600)}", f"id BETWEEN {number(500)} AND {number(600)}", f"p = {number(3)}"),
                *(
                    f"i IN ({number(60)}, {number(60)})",
                    "s > 'C'",
                    f"v = 'v{number(20)}'",
                    f"c IN ('c{number(9)}', 'c2  ')",
                ),
                *(f"lc COLLATE UTF8_LCASE IN ('k{number(12)}', 'x')", f"lc COLLATE UTF8_LCASE LIKE 'K{number(9)}%'"),
                *(f"dt > {self._constant('day')}", f"ts < {self._constant('moment')}", f"g = {self._constant('day')}"),
                *(f"n >= '2024-10-27 {number(24):02d}:00:00'", f"f > {number(-20, 60)}", f"dec > {number(-30, 30)}.5"),
                *(f"ts > current_timestamp() - INTERVAL {number(1, 1200)} DAYS", "dt < current_date()"),
            ]
        )

    def _constant(self, of: str) -> str:
        number = self.random.randrange
        if of == "int":
            return str(number(30))
        if of == "day":
            return f"DATE'2024-0{number(3, 7)}-{number(1, 28):02d}'"
        if of == "moment":
            return f"TIMESTAMP'2024-04-{number(1, 14):02d} {number(24):02d}:00:00'"
        return f"'{self.random.choice('AKcvz')}{number(20)}'"

    def _filled(self, place: re.Match[str]) -> str:
        """What stands in the place of a template's name, number or choice."""
        name, few = place[1], [f"delta.`{self.small}`", "few_view"]
        if name == "table":
            return f"delta.`{self.big}`"
        if name.isdecimal():
            return str(self.random.randrange(int(name)))
        if name not in ("big", "few", "where"):
            return self.random.choice(name.split("|"))
        if name != "big":
            return self._condition() if name == "where" else self.random.choice(few)
        old, whole = self.random.choice([1, 2, 3]), f"delta.`{self.big}`"
        former = [f"delta.`{self.big}` VERSION AS OF {old}", f"delta.`{self.big}@v{old}`"]
        return self.random.choice(["rows_view", "rows_view", whole, whole, *former])

    def every_shape(self) -> list[str]:
        """A statement of each shape."""
        templates = [" ".join(one.split()) for one in SHAPES.split(";")]
        return [re.sub(r"\{([^{}]+)\}", self._filled, one) for one in templates if one]
