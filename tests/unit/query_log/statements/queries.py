"""Random statements over three small tables with nulls, of every shape that restricts, or must not restrict, a scan."""

from __future__ import annotations

import random
from collections.abc import Callable

import duckdb

from zorder_pipeline.model.schema import Column, TableSchema

TABLES = {
    "t": {
        "a": "int",
        "b": "int",
        "c": "string",
        "d": "date",
        "ts": "timestamp_ntz",
        "p": "decimal(8,2)",
        "g": "boolean",
    },
    "u": {"id": "int", "a": "int", "x": "int", "y": "string", "e": "date"},
    "v": {"k": "int", "z": "int", "w": "string"},
}
SCHEMAS = {
    name: TableSchema(tuple(Column(column, kind) for column, kind in columns.items()))
    for name, columns in TABLES.items()
}
ESCAPED = ("a!_%", "a!_c", "a!%%", "ab%", "a!!", "!%b", "a!_%c")
WORDS = ("ab", "abc", "b", "abd", "zz", "", "a_c", "a%c", "Ab")


def database(seed: int) -> duckdb.DuckDBPyConnection:
    """The tables with random rows; about one value in eight is null."""
    draw = random.Random(seed)
    connection = duckdb.connect()
    types = {"int": "INTEGER", "string": "VARCHAR", "date": "DATE", "timestamp_ntz": "TIMESTAMP", "boolean": "BOOLEAN"}
    for name, columns in TABLES.items():
        kinds = ", ".join(f"{c} {types.get(k, k)}" for c, k in columns.items())
        connection.execute(f"CREATE TABLE {name}_all ({kinds}, row_id INTEGER)")
        rows = [[*(_value(draw, kind) for kind in columns.values()), i] for i in range(36)]
        marks = ", ".join("?" * (len(columns) + 1))
        connection.executemany(f"INSERT INTO {name}_all VALUES ({marks})", rows)
    return connection


def _value(draw: random.Random, kind: str) -> object:
    if draw.random() < 0.12:
        return None
    return {
        "int": lambda: draw.randint(-2, 9),
        "string": lambda: draw.choice(WORDS),
        "date": lambda: f"202{draw.randint(3, 5)}-0{draw.randint(1, 9)}-{draw.choice(['01', '15', '28'])}",
        "timestamp_ntz": lambda: f"202{draw.randint(3, 5)}-0{draw.randint(1, 9)}-15 {draw.choice(['00', '12'])}:00:00",
        "boolean": lambda: draw.random() < 0.5,
    }.get(kind, lambda: draw.randint(-200, 900) / 100)()


class Statements:
    """Draws statements; the same seed draws the same ones."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def statement(self) -> str:
        """One statement whose result is a multiset that does not depend on the order of rows."""
        shapes: tuple[Callable[[], str], ...] = (
            self._plain,
            self._plain,
            self._join,
            self._join,
            self._using,
            self._derived,
            self._derived,
            self._cte,
            self._union,
            self._semi,
            self._grouped,
            self._windowed,
            self._three,
            self._correlated,
            self._star,
            self._renamed,
            self._starred,
            self._nearest,
            self._constant,
        )
        return self.draw.choice(shapes)()

    def _atom(self, q: str, table: str) -> str:
        d, name = self.draw, {"t": "b", "u": "x", "v": "z"}[table]
        n, low = d.randint(-2, 9), d.randint(-2, 5)
        key = {"t": "a", "u": "a", "v": "k"}[table]
        op = d.choice(["=", "<", "<=", ">", ">=", "<>"])
        any_table = [
            f"{q}{name} {op} {n}",
            f"{q}{key} {op} {n}",
            f"{n} {op} {q}{name}",
            f"{q}{name} BETWEEN {low} AND {low + d.randint(-1, 5)}",
            f"{q}{name} NOT BETWEEN {low} AND {low + 2}",
            f"{q}{name} IN ({n}, {low}, {d.choice(['NULL', '7'])})",
            f"{q}{name} NOT IN ({n}, {low})",
            f"{q}{key} IS {d.choice(['', 'NOT '])}NULL",
            f"{q}{name} IS {d.choice(['', 'NOT '])}DISTINCT FROM {n}",
            f"{q}{name} + {d.randint(-2, 3)} {op} {n}",
            f"{d.randint(-2, 3)} - {q}{name} {op} {n}",
            f"{q}{name} * {d.choice([-2, 2, 3])} {op} {n}",
            f"CAST({q}{name} AS BIGINT) {op} {n}",
            f"COALESCE({q}{name}, {n}) {op} {low}",
            f"NOT COALESCE({q}{name}, {n}) {op} {low}",
            f"COALESCE({q}{name}, {n}) {d.choice(['', 'NOT '])}BETWEEN {low} AND {low + 2}",
            f"COALESCE({q}{name}, {n}) {d.choice(['', 'NOT '])}IN ({low}, {n})",
            f"{q}{name} {op} {q}{key}",
            f"({q}{name}, {q}{key}) IN (({n}, {low}), ({low}, {n}))",
            f"({q}{name} {op} {n}) IS NOT TRUE",
        ]
        word, year = d.choice(WORDS), d.randint(2023, 2025)
        day = f"{year}-0{d.randint(1, 9)}-{d.choice(['01', '15'])}"
        text, date = {"t": ("c", "d"), "u": ("y", "e"), "v": ("w", "")}[table]
        any_table += [
            f"{q}{text} {op} '{word}'",
            f"{q}{text} {d.choice(['', 'NOT '])}LIKE '{word.replace('_', '')}{d.choice(['%', '', '%c', '_', '%b%'])}'",
            f"{q}{text} {d.choice(['', 'NOT '])}LIKE '{d.choice(ESCAPED)}' ESCAPE '!'",
            f"substr({q}{text}, {d.choice([0, 1, 1, -1, 2])}, {d.randint(1, 3)}) = '{word}'",
            f"left({q}{text}, 2) {d.choice(['=', '<>'])} '{word}'",
            f"upper({q}{text}) = '{word.upper()}'",
            f"coalesce({q}{text}, '{d.choice(WORDS)}') {op} '{word}'",
            f"starts_with({q}{text}, '{word}')",
        ]
        if date:
            any_table += [
                f"{q}{date} {op} DATE '{day}'",
                f"{q}{date} {op} '{day}'",
                f"year({q}{date}) {op} {year}",
                f"EXTRACT(YEAR FROM {q}{date}) {op} {year}",
                f"date_trunc('month', {q}{date}) {op} DATE '{day[:8]}01'",
                f"date_trunc('{d.choice(['year', 'quarter', 'week'])}', {q}{date}) {op} DATE '{year}-01-01'",
                f"{q}{date} {op} DATE '{day}' + INTERVAL {d.randint(0, 9)} MONTH",
                f"{q}{date} {op} DATE '{day}' - INTERVAL '{d.randint(0, 40)}' DAY",
                f"month({q}{date}) = {d.randint(1, 9)}",
                f"year({q}{date}) = {year} AND month({q}{date}) IN ({d.randint(1, 9)}, {d.randint(1, 13)})",
                f"month({q}{date}) BETWEEN 2 AND 5 AND year({q}{date}) IN ({year}, 2024)",
                f"(quarter({q}{date}) = {d.randint(1, 4)} AND year({q}{date}) = {year} OR {q}{name} = {n})",
                f"strftime({q}{date}, '%Y-%m') {op} '{day[:7]}'",
                f"strftime({q}{date}, '%Y%m%d') {op} '{day.replace('-', '')}'",
                f"strftime({q}{date}, '%Y-%m-%d') {op} '{day[:7]}'",
                f"strftime({q}{date}, '%m-%Y') {op} '{day[5:7]}-{year}'",
                f"NOT strftime({q}{date}, '%Y') {op} '{year}'",
                f"strftime({q}{date}, '%Y-%m-%d') LIKE '{day[:7]}%'",
                f"date_diff('day', {q}{date}, DATE '{day}') {op} {d.randint(-90, 90)}",
                f"date_diff('day', DATE '{day}', {q}{date}) {op} {d.randint(-90, 90)}",
                f"date_diff('month', DATE '{day}', {q}{date}) {op} {d.randint(-3, 3)}",
                f"{q}{date} + INTERVAL {d.randint(0, 40)} DAY {op} DATE '{day}'",
                f"{q}{date} - INTERVAL {d.randint(0, 40)} DAY {op} TIMESTAMP '{day} 06:00:00'",
                f"coalesce({q}{date}, DATE '{year}-03-01') {op} DATE '{day}'",
            ]
        if table == "t":
            any_table += [
                f"{q}ts {op} TIMESTAMP '{day} 12:00:00'",
                f"strftime({q}ts, '%Y-%m-%d %H') {op} '{day[:8]}15 {d.choice(['00', '06', '12'])}'",
                f"strftime({q}ts, '%Y-%m') {op} '{day[:7]}'",
                f"NOT strftime({q}ts, '%Y-%m-%d %H:%M') {op} '{day[:8]}15 {d.choice(['00', '12'])}'",
                f"strftime({q}ts, '%Y-%m-%d %H:%M') {op} '{day[:8]}15 {d.choice(['00', '12'])}'",
                f"{q}ts {d.choice(['', 'NOT '])}BETWEEN '{day}' AND '{day} 12:00'",
                f"strftime({q}ts, '%Y-%m-%d %H:%M') NOT BETWEEN '{day[:8]}15 00:00' AND '{day[:8]}15 12:00'",
                f"date_diff('day', {q}ts, TIMESTAMP '{day} 06:00:00') {op} {d.randint(-60, 60)}",
                f"{d.choice(['', 'NOT '])}COALESCE({q}g, {d.choice(['TRUE', 'FALSE'])})",
                f"COALESCE({q}g, {d.choice(['TRUE', 'FALSE'])}) {d.choice(['=', '<>'])} {d.choice(['TRUE', 'FALSE'])}",
                f"CAST({q}ts AS DATE) {op} DATE '{day}'",
                f"year({q}ts) = {year}",
                f"{q}p {op} {n}.25",
                f"{q}p * 2 {op} {n}.5",
                f"{q}p - 0.5 {op} {n}",
                f"{d.choice(['', 'NOT '])}{q}g",
                f"{q}g = {d.choice(['true', 'false'])}",
                f"{q}g IS {d.choice(['', 'NOT '])}TRUE",
            ]
        return d.choice(any_table)

    def _where(self, q: str, table: str, depth: int = 2) -> str:
        kind = self.draw.random()
        if depth == 0 or kind < 0.45:
            return self._atom(q, table)
        if kind < 0.55:
            return f"NOT ({self._where(q, table, depth - 1)})"
        word = "AND" if kind < 0.8 else "OR"
        return f"({self._where(q, table, depth - 1)} {word} {self._where(q, table, depth - 1)})"

    def _mixed(self, *sources: tuple[str, str]) -> str:
        """A condition over several sources."""
        parts = [self._where(q, table, 1) for q, table in sources if self.draw.random() < 0.75]
        if len(sources) > 1 and self.draw.random() < 0.3:
            parts.append(f"({self._atom(*sources[0])} OR {self._atom(*sources[1])})")
        return " AND ".join(parts) or "1 = 1"

    def _plain(self) -> str:
        table = self.draw.choice("tuv")
        return f"SELECT * FROM {table} WHERE {self._where('', table, 3)}"

    def _join(self) -> str:
        kind = self.draw.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", ","])
        on = "" if kind in ("CROSS JOIN", ",") else f" ON t.a = u.a AND {self._mixed(('t.', 't'), ('u.', 'u'))}"
        where = self._mixed(("t.", "t"), ("u.", "u"))
        extra = " AND t.a = u.a" if not on and self.draw.random() < 0.7 else ""
        return f"SELECT t.row_id, u.row_id FROM t {kind} u{on} WHERE {where}{extra}"

    def _using(self) -> str:
        kind = self.draw.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        return (
            f"SELECT * FROM t {kind} u USING (a) WHERE a {self.draw.choice(['=', '<', '>'])} {self.draw.randint(0, 5)}"
            f" AND {self._mixed(('t.', 't'), ('u.', 'u'))}"
        )

    def _three(self) -> str:
        first, second = (self.draw.choice(["JOIN", "LEFT JOIN", "FULL JOIN"]) for _ in range(2))
        second_on = self.draw.choice(["v.k = u.a", "v.k = t.a", "v.k = u.x AND v.z > 1"])
        where = self._mixed(("t.", "t"), ("u.", "u"), ("v.", "v"))
        if self.draw.random() < 0.3:  # what equals what by way of others
            where = f"t.a {self.draw.choice(['=', '<', '>='])} {self.draw.randint(0, 6)} AND {where}"
        return (
            f"SELECT t.row_id, u.row_id, v.row_id FROM t {first} u ON t.a = u.a {second} v ON {second_on} WHERE {where}"
        )

    def _derived(self) -> str:
        inner = self.draw.choice(
            [
                f"SELECT a, b AS x, row_id FROM t WHERE {self._where('', 't', 1)}",
                "SELECT a + 1 AS a, b * 2 AS x, row_id FROM t",
                "SELECT DISTINCT a, b AS x, 0 AS row_id FROM t",
                "SELECT a, count(*) AS x, 0 AS row_id FROM t GROUP BY a",
                "SELECT a, max(b) AS x, 0 AS row_id FROM t GROUP BY a, c",
                "SELECT year(d) AS a, b AS x, row_id FROM t",
                "SELECT a, x, row_id FROM u ORDER BY row_id LIMIT 7",
                "SELECT t.a, u.x, t.row_id FROM t LEFT JOIN u ON t.a = u.a",
                "SELECT u.a, t.b AS x, u.row_id FROM t FULL JOIN u ON t.a = u.a",
            ]
        )
        condition = f"q.a {self.draw.choice(['=', '>', '<='])} {self.draw.randint(0, 6)}"
        if self.draw.random() < 0.2:
            told = self.draw.choice(
                ["greatest(q.a, 1) < 3", "least(q.a, 3) = 3", "concat(q.a, 'x') = 'x'", "q.a + 1 > 3"]
            )
            return f"SELECT q.row_id, v.row_id FROM v LEFT JOIN ({inner}) q ON q.a = v.k WHERE {told}"
        more = self.draw.choice(["", f" AND x > {self.draw.randint(0, 5)}", " AND q.x IS NULL", f" OR q.x = {3}"])
        if self.draw.random() < 0.5:
            return f"SELECT * FROM ({inner}) q WHERE {condition}{more}"
        kind = self.draw.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN"])
        where = f"{self._mixed(('v.', 'v'))} AND ({condition}{more})"
        return f"SELECT q.row_id, v.row_id FROM v {kind} ({inner}) q ON q.a = v.k WHERE {where}"

    def _cte(self) -> str:
        body = f"SELECT a, b, c, d, ts, p, g, row_id FROM t WHERE {self._where('', 't', 1)}"
        one, other = self._atom("", "t"), self._atom("", "t")
        uses = self.draw.choice(
            [
                f"SELECT * FROM w WHERE {self._where('', 't', 1)}",
                f"SELECT w.row_id, o.row_id FROM w JOIN w o ON w.a = o.b WHERE w.a > 1 AND {self._where('o.', 't', 1)}",
                f"SELECT row_id FROM w WHERE {one} UNION ALL SELECT row_id FROM w WHERE {other}",
                f"SELECT row_id FROM u WHERE a IN (SELECT a FROM w WHERE b > 2) AND {self._where('', 'u', 1)}",
                f"SELECT w.row_id FROM w LEFT JOIN u ON w.a = u.a WHERE {self._mixed(('w.', 't'), ('u.', 'u'))}",
            ]
        )
        return f"WITH w AS ({body}) {uses}"

    def _star(self) -> str:
        """A derived table over two tables that is joined to further ones by a column of each."""
        first, second = (self.draw.choice(["JOIN", "LEFT JOIN"]) for _ in range(2))
        inner = f"SELECT t.a AS m, u.x AS n, t.row_id FROM t {first} u ON t.a = u.a WHERE {self._where('t.', 't', 1)}"
        joined = self.draw.choice(
            [
                f"q JOIN v ON q.m = v.k {second} v w ON q.n = w.k",
                f"q {second} v ON q.m = v.k AND q.n = v.z",
                "q, v, u w WHERE q.m = v.k AND q.n = w.a",
            ]
        )
        word = "AND" if "WHERE" in joined else "WHERE"
        told = f"{self.draw.choice('mn')} {self.draw.choice(['=', '=', '<', '>='])} {self.draw.randint(0, 6)}"
        if self.draw.random() < 0.5:
            return f"WITH q AS ({inner}) SELECT q.row_id FROM {joined} {word} q.{told}"
        return f"SELECT q.row_id FROM ({inner}) {joined} {word} {self._mixed(('v.', 'v'))} AND q.{told}"

    def _union(self) -> str:
        word = self.draw.choice(["UNION ALL", "UNION", "EXCEPT", "INTERSECT"])
        inner = f"SELECT a, b FROM t WHERE {self._atom('', 't')} {word} SELECT a, x FROM u"
        if self.draw.random() < 0.3:
            inner += " UNION ALL SELECT k, z FROM v"
        op = self.draw.choice(["=", "<", ">="])
        return f"SELECT * FROM ({inner}) q WHERE q.a {op} {self.draw.randint(0, 6)} AND b > 0"

    def _semi(self) -> str:
        negated = self.draw.choice(["", "NOT "])
        inner = self._where("u.", "u", 1)
        shapes = [
            f"t.a {negated}IN (SELECT u.a FROM u WHERE {inner})",
            f"{negated}EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND {inner})",
            f"t.b > (SELECT min(u.x) FROM u WHERE {inner})",
            f"t.b > ALL (SELECT u.x FROM u WHERE {inner})",
            f"(t.a = 1 OR EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND {inner}))",
        ]
        if self.draw.random() < 0.35:
            kind = self.draw.choice(["SEMI JOIN", "ANTI JOIN"])
            return f"SELECT t.row_id FROM t {kind} u ON t.a = u.a AND {inner} WHERE {self._where('t.', 't', 1)}"
        return f"SELECT t.row_id FROM t WHERE {self.draw.choice(shapes)} AND {self._where('t.', 't', 1)}"

    def _grouped(self) -> str:
        having = self.draw.choice(["a > 2", "count(*) > 1", "a = 3 AND max(b) > 1", "min(b) < 4 OR a = 2"])
        rolled = self.draw.choice(["a", "a", "ROLLUP (a)", "a, c"])
        if self.draw.random() < 0.5:
            where = f"k {self.draw.choice(['=', '<', 'IS NULL OR k >'])} {self.draw.randint(0, 6)}"
            item, key = self.draw.choice(
                [
                    *(("a", "g.a"), ("g.a", "a"), ("G.A", "a, b"), ("a", "1"), ("a + b - b", "k"), ("a % 3", "a % 3")),
                    *(("a % 3", "a, c"), ("b", "ALL"), ("g.a", "k"), ("a", "ROLLUP (g.a)"), ("g.a", "CUBE (a, b)")),
                    *(("a", "A, g.b"), ("a", "b, ROLLUP (a)"), ("b - a", "a, b"), ("3", "a")),
                ]
            )
            ranked = "" if key == "ALL" else f", count(*) OVER (PARTITION BY {item}) AS r"
            more = self.draw.choice(["", "", ", n + 1 AS m", ranked])
            return f"SELECT * FROM (SELECT {item} AS k, count(*) AS n{more} FROM t g GROUP BY {key}) q WHERE {where}"
        if self.draw.random() < 0.2:
            return f"SELECT b AS a, a AS k, count(*) FROM t GROUP BY t.b, t.a HAVING {having.replace('b', 't.b')}"
        return f"SELECT a, count(*), min(b) FROM t WHERE {self._where('', 't', 1)} GROUP BY {rolled} HAVING {having}"

    def _windowed(self) -> str:
        keys = self.draw.choice(["PARTITION BY a", "PARTITION BY t.a, c", "PARTITION BY a + 1", ""])
        more = self.draw.choice(["sum(b) OVER () AS s", "sum(b) OVER (PARTITION BY a, d) AS s", "1 AS s"])
        ranked = f"row_number() OVER ({keys} ORDER BY b, row_id) AS n, {more}"
        where = f"q.a = {self.draw.randint(0, 5)} AND n < 4 AND b > {self.draw.randint(-1, 3)}"
        columns = self.draw.choice(["a, b, row_id", "*", "t.*", "a + 1 AS a, b, row_id", "b AS a, a AS b, row_id"])
        kept = self.draw.choice(["", " QUALIFY row_number() OVER (PARTITION BY a ORDER BY row_id) < 3"])
        return f"SELECT * FROM (SELECT {columns}, {ranked} FROM t{kept}) q WHERE {where}"

    def _renamed(self) -> str:
        """Columns by names that an alias gives them."""
        shape = self.draw.choice(
            [
                "SELECT * FROM (SELECT a, b, row_id FROM t) AS q (b, a, k) WHERE {0}",
                "WITH q (b, a, k) AS (SELECT a, b, row_id FROM t) SELECT * FROM q WHERE {0}",
                "SELECT * FROM u AS q (k, b, a) WHERE {0}",
                "SELECT q.a, v.z FROM u AS q (k, b, a) JOIN v ON q.b = v.k WHERE {0} AND v.z > 1",
                "SELECT q.a, v.z FROM (SELECT a, b FROM t) AS q (b, a) LEFT JOIN v ON q.b = v.k WHERE {0}",
                "SELECT * FROM (SELECT a, b FROM t UNION ALL SELECT x, a FROM u) AS q (b, a) WHERE {0}",
                "SELECT * FROM (SELECT a, a FROM t UNION ALL SELECT a, x FROM u) AS q (a, r) WHERE {0}",
                "SELECT * FROM (SELECT a + 1, b * 2 FROM t UNION ALL SELECT a, x FROM u) AS q (a, r) WHERE {0}",
            ]
        )
        return shape.format(f"q.a {self.draw.choice(['=', '>'])} {self.draw.randint(0, 6)}")

    def _starred(self) -> str:
        """Stars over one source and several, with columns replaced, renamed and left out."""
        inner = self.draw.choice(
            [
                "SELECT * REPLACE (b AS a) FROM t",
                "SELECT * REPLACE (a + 1 AS a) FROM t",
                "SELECT * RENAME (a AS old, b AS a) FROM t",
                "SELECT * EXCLUDE (a), b AS a FROM t",
                "SELECT t.*, u.x FROM t JOIN u ON t.b = u.x",
                "SELECT t.* REPLACE (u.x AS a), u.y FROM t JOIN u ON t.b = u.x",
                "SELECT t.*, v.* FROM t LEFT JOIN v ON t.b = v.k",
                "SELECT v.*, t.* FROM v FULL JOIN t ON t.b = v.k",
                "SELECT * FROM t SEMI JOIN u ON t.b = u.x",
                "SELECT * EXCLUDE (y) FROM u ANTI JOIN v ON u.x = v.k",
            ]
        )
        count = "count(*)" if "t." in inner or "v." in inner else "sum(a)"
        return f"SELECT {count} FROM ({inner}) q WHERE q.a {self.draw.choice(['=', '<'])} {self.draw.randint(0, 6)}"

    def _nearest(self) -> str:
        """Joins that look at all rows of a side before WHERE does."""
        where = f"{self._atom('t.', 't')} AND {self._atom('u.', 'u')}"
        kind = self.draw.choice(["ASOF JOIN", "ASOF LEFT JOIN"])
        if self.draw.random() < 0.3:
            return f"SELECT t.row_id, u.row_id FROM t POSITIONAL JOIN u WHERE {where}"
        return f"SELECT t.row_id, u.e, u.x FROM t {kind} u ON t.a = u.a AND t.d >= u.e WHERE t.row_id >= 0 AND {where}"

    def _constant(self) -> str:
        """Conditions that are about no column, and nothing asked for."""
        told = self.draw.choice(["1 = 0", "1 < 2", "NULL = 1", "'a' IS NULL OR 'a' = 'b'", "NOT (1 = 1)", "2 >= 2.5"])
        where = self._where("", "t", 1)
        shape = self.draw.choice(
            [
                "SELECT * FROM t WHERE {0} AND {1}",
                "SELECT * FROM t WHERE ({0}) OR {1}",
                "SELECT count(*) FROM t WHERE {0}",
                "SELECT * FROM (SELECT * FROM t WHERE {1}) q WHERE {0}",
                "SELECT a, count(*) FROM t WHERE {1} GROUP BY ALL HAVING {0}",
                "SELECT t.row_id, u.row_id FROM t LEFT JOIN u ON {0}",
                "SELECT row_id FROM t WHERE {0} UNION ALL SELECT row_id FROM u",
                "SELECT count(*) FROM (SELECT * FROM t LIMIT 0)",
            ]
        )
        return shape.format(told, where)

    def _correlated(self) -> str:
        inner = f"SELECT count(*) FROM u WHERE u.a = t.a AND {self._where('u.', 'u', 1)}"
        return f"SELECT t.row_id, ({inner}) FROM t WHERE {self._where('t.', 't', 1)}"
