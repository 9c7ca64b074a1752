"""Which conditions restrict which scan, where sqlglot's scopes and Spark's rules part."""

from __future__ import annotations

import pytest

from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.query_log.statements.sql import Unusable, parse_statement

FLIGHTS = TableSchema(
    (
        *(Column("id", "int"), Column("x", "int"), Column("c", "string"), Column("amount", "int")),
        *(Column("day", "date"), Column("address.city", "string")),
    )
)
OTHER = TableSchema((Column("x", "int"), Column("id", "int")))
KNOWN = {"t": "F", "flights": "F", "prod.flights": "F", "other": "O"}


def _scans(statement: str) -> list[str]:
    found = parse_statement(statement, aliases=KNOWN, schemas={"F": FLIGHTS, "O": OTHER})
    return [] if isinstance(found, Unusable) else [scan.predicate.to_sql() for scan in found]


CASES = [
    # names of common table expressions in any case
    ("WITH Flights AS (SELECT * FROM t WHERE x = 1) SELECT * FROM flights WHERE c = 'x'", ["x = 1 AND c = 'x'"]),
    ("WITH flights AS (SELECT * FROM Flights WHERE x = 1) SELECT * FROM FLIGHTS WHERE c = 'x'", ["x = 1 AND c = 'x'"]),
    # the right side of SEMI and ANTI joins is not seen by WHERE, nor by later joins
    ("SELECT * FROM v LEFT ANTI JOIN flights f ON v.id = f.id WHERE c = 'x'", ["TRUE"]),
    ("SELECT * FROM v SEMI JOIN flights f ON v.id = f.id AND f.x = 3 WHERE c = 'x'", ["x = 3"]),
    ("SELECT * FROM v LEFT ANTI JOIN flights f USING (id) WHERE id = 5 AND c = 'x'", ["TRUE"]),
    ("SELECT * FROM flights f LEFT SEMI JOIN v USING (id) WHERE id = 5 AND c = 'x'", ["id = 5 AND c = 'x'"]),
    ("SELECT * FROM v LEFT SEMI JOIN flights f ON v.id = f.id JOIN w ON c = 'x'", ["TRUE"]),
    (
        "SELECT * FROM t LEFT SEMI JOIN flights f ON t.id = f.id AND f.x = 3 WHERE t.id = 5 AND c = 'a'",
        ["id = 5 AND c = 'a'", "x = 3 AND id = 5"],
    ),
    (
        "SELECT * FROM w f WHERE EXISTS (SELECT 1 FROM v SEMI JOIN flights f ON v.id = f.id WHERE f.c = 'x')",
        ["TRUE"],
    ),
    # what an inner join asks is asked of no row that a later outer one adds
    ("SELECT * FROM a JOIN b ON 1 = 0 JOIN flights f ON f.id = a.id", ["FALSE"]),
    ("SELECT * FROM a JOIN b ON 1 = 0 RIGHT JOIN v ON true JOIN flights f ON f.id = v.id", ["TRUE"]),
    ("SELECT * FROM a JOIN b ON 1 = 0 FULL JOIN v ON true JOIN flights f ON f.id = v.id", ["TRUE"]),
    # joins in parentheses
    ("SELECT * FROM a LEFT JOIN (flights f JOIN b USING (id)) ON a.x = f.x WHERE ifnull(f.c, 'n') = 'n'", ["TRUE"]),
    ("SELECT * FROM a LEFT JOIN (flights f JOIN b ON f.id = b.id) ON a.id = f.id WHERE f.c = 'n'", ["c = 'n'"]),
    ("SELECT * FROM (a LEFT JOIN flights f ON a.id = f.id) WHERE ifnull(f.c, 'n') = 'n'", ["TRUE"]),
    ("SELECT * FROM ((a LEFT JOIN flights f ON a.id = f.id)) JOIN b ON true WHERE f.c IS NULL", ["TRUE"]),
    # what is reshaped or sampled after it was read
    ("SELECT * FROM (SELECT * FROM t) UNPIVOT (amount FOR kind IN (amount, x)) WHERE amount > 100", ["TRUE"]),
    ("SELECT * FROM (SELECT * FROM t) PIVOT (sum(x) AS x FOR c IN ('a' AS amount)) AS p WHERE amount > 1", ["TRUE"]),
    ("WITH s AS (SELECT * FROM t) SELECT * FROM s PIVOT (sum(x) FOR c IN ('a' AS amount)) WHERE amount > 1", ["TRUE"]),
    ("SELECT * FROM (SELECT * FROM t WHERE x = 1) TABLESAMPLE (5 ROWS) WHERE amount > 100", ["x = 1"]),
    ("SELECT * FROM t TABLESAMPLE (10 PERCENT) WHERE x = 1", ["TRUE"]),
    ("SELECT * FROM t WHERE c = 'x' START WITH x = 1 CONNECT BY PRIOR x = id", ["TRUE"]),
    ("SELECT * FROM (SELECT * FROM t START WITH x = 1 CONNECT BY PRIOR x = id) WHERE c = 'x'", ["TRUE"]),
    # what is cut off in parentheses
    ("SELECT * FROM ((SELECT x FROM t) LIMIT 10) q WHERE x = 5", ["TRUE"]),
    ("SELECT * FROM (((SELECT x FROM t) OFFSET 10)) q WHERE x = 5", ["TRUE"]),
    ("WITH q AS ((SELECT x FROM t WHERE id = 1) LIMIT 10) SELECT * FROM q WHERE x = 5", ["id = 1"]),
    ("SELECT * FROM ((SELECT x FROM t UNION ALL SELECT x FROM other) LIMIT 3) q WHERE x = 5", ["TRUE", "TRUE"]),
    ("SELECT * FROM (((SELECT x FROM t) LIMIT 3) UNION ALL SELECT x FROM other) q WHERE x = 5", ["x = 5", "TRUE"]),
    ("SELECT * FROM ((SELECT x FROM t LIMIT 3) UNION ALL (SELECT x FROM other)) q WHERE x = 5", ["x = 5", "TRUE"]),
    ("SELECT * FROM ((SELECT x FROM t)) q WHERE x = 5 LIMIT 10", ["x = 5"]),
    ("SELECT * FROM ((SELECT x FROM t UNION ALL SELECT x FROM other)) q WHERE x = 5 LIMIT 3", ["x = 5", "x = 5"]),
    # right sides that Spark reads whole: nothing is inferred from its <=>
    ("SELECT * FROM (SELECT x FROM t EXCEPT SELECT x FROM other WHERE id = 1) q WHERE x = 5", ["id = 1", "x = 5"]),
    ("SELECT * FROM (SELECT x FROM t INTERSECT SELECT x FROM other) q WHERE x = 5", ["TRUE", "x = 5"]),
    ("SELECT * FROM (SELECT x FROM t MINUS SELECT id FROM other) q WHERE x = 5", ["TRUE", "x = 5"]),
    ("SELECT * FROM (SELECT x FROM t EXCEPT ALL SELECT x FROM other) q WHERE x = 5", ["x = 5", "x = 5"]),
    ("SELECT * FROM (SELECT x FROM t INTERSECT ALL SELECT x FROM other) q WHERE x = 5", ["x = 5", "x = 5"]),
    ("SELECT * FROM (SELECT x FROM t EXCEPT (SELECT x FROM t UNION ALL SELECT x FROM other)) q WHERE x = 5",
     ["TRUE", "TRUE", "x = 5"]),
    # equalities pass nothing on to outputs of another type, or of a type that is not known
    ("WITH q AS (SELECT x, c FROM t) SELECT * FROM other o JOIN q ON o.id = q.c WHERE o.id IN (5, 6)",
     ["id IN (5, 6)", "TRUE"]),
    ("SELECT * FROM other o JOIN (SELECT day FROM t) q ON o.id = q.day WHERE q.day = '2024-01-01'",
     ["TRUE", "day = '2024-01-01'"]),
    ("WITH q AS (SELECT x + 1 AS k, c FROM t) SELECT * FROM other o JOIN q ON o.id = q.k WHERE o.id IN (5, 6)",
     ["id IN (5, 6)", "TRUE"]),
    ("SELECT * FROM w JOIN (SELECT x FROM t) q ON w.id = q.x WHERE w.id = 5", ["TRUE"]),
    ("SELECT * FROM other o JOIN (SELECT x FROM w) q ON o.id = q.x WHERE q.x = 5", ["TRUE"]),
    ("SELECT * FROM t JOIN (SELECT c AS id FROM flights) q USING (id) WHERE id = 5", ["id = 5", "TRUE"]),
    ("SELECT * FROM t JOIN (SELECT c AS x FROM flights UNION ALL SELECT x FROM other) q ON t.x = q.x WHERE t.x = 5",
     ["x = 5", "TRUE", "TRUE"]),
    # of one type they do, in both directions
    ("WITH q AS (SELECT x FROM t), r AS (SELECT * FROM q) SELECT * FROM other o JOIN r ON o.id = r.x WHERE o.id = 5",
     ["id = 5", "x = 5"]),
    ("SELECT * FROM other o JOIN (SELECT x FROM t) AS q (k) ON o.id = q.k WHERE q.k = 5", ["id = 5", "x = 5"]),
    ("SELECT * FROM (SELECT x FROM t) q JOIN (SELECT id FROM other) r ON q.x = r.id WHERE r.id = 5",
     ["id = 5", "x = 5"]),
    ("SELECT * FROM t JOIN (SELECT x FROM flights UNION ALL SELECT x FROM other) q ON t.x = q.x WHERE t.x = 5",
     ["x = 5", "x = 5", "x = 5"]),
    ("SELECT * FROM dates d JOIN (SELECT day FROM t) q ON q.day = d.day WHERE d.day >= DATE '2024-01-01'",
     ["day >= DATE '2024-01-01'"]),
    # nor do set operations to branches of which they cast a column to a type of another family
    ("SELECT * FROM (SELECT day AS k FROM t UNION ALL SELECT c FROM flights) q WHERE k >= '2024-01-01'",
     ["TRUE", "TRUE"]),
    ("SELECT * FROM (SELECT c AS k, x FROM t UNION ALL SELECT x, id FROM other) q WHERE k = '5' AND x = 5",
     ["id = 5", "x = 5"]),
    ("SELECT * FROM (SELECT c AS k FROM t EXCEPT ALL SELECT x FROM other) q WHERE k = '5'", ["TRUE", "TRUE"]),
    ("SELECT * FROM (SELECT x AS k FROM t UNION SELECT x FROM other UNION SELECT c FROM flights) q WHERE k = 5",
     ["TRUE", "TRUE", "TRUE"]),
    ("SELECT * FROM (SELECT x AS k FROM t UNION ALL SELECT id FROM other UNION ALL SELECT z FROM w) q WHERE k = 5",
     ["id = 5", "x = 5"]),
    ("SELECT * FROM (SELECT day AS k FROM t UNION ALL SELECT k FROM (SELECT c AS k FROM flights)) q WHERE k = 'a'",
     ["TRUE", "TRUE"]),
    ("SELECT * FROM (SELECT x AS k FROM t UNION ALL SELECT '5') q WHERE k = 5", ["x = 5"]),
    # names that an alias gives
    ("SELECT * FROM (SELECT x, id FROM t) AS o (id, x) WHERE id = 5", ["x = 5"]),
    ("WITH o (id, x) AS (SELECT x, id FROM t) SELECT * FROM o WHERE o.id = 5", ["x = 5"]),
    ("WITH o (id, x) AS (SELECT x, id FROM t) SELECT * FROM o AS p (amount, c) WHERE amount = 5", ["x = 5"]),
    ("SELECT * FROM t AS o (x, id) WHERE id = 5", ["TRUE"]),
    # what USING makes equal is no column of a table that is joined later: so DuckDB, others refuse it
    ("SELECT * FROM t JOIN flights f USING (id) JOIN other o ON t.x = o.x WHERE id = 5", ["id = 5", "id = 5", "TRUE"]),
    ("SELECT * FROM t JOIN flights f USING (id) ANTI JOIN other o ON id = 5", ["TRUE", "TRUE", "TRUE"]),
    ("SELECT * FROM t JOIN v USING (id) JOIN other o USING (id) WHERE id = 5", ["id = 5", "id = 5"]),
    # what a FULL join makes of both sides' columns is none of theirs: Spark reads both whole
    ("SELECT * FROM t FULL JOIN other o USING (id) WHERE id = 5 AND c = 'x'", ["c = 'x'", "TRUE"]),
    ("SELECT * FROM t FULL OUTER JOIN v USING (id) WHERE id IN (5, 6)", ["TRUE"]),
    ("SELECT * FROM (t FULL JOIN v USING (id)) WHERE id = 5", ["TRUE"]),
    ("SELECT * FROM (SELECT * FROM t FULL JOIN other USING (id)) WHERE id = 5", ["TRUE", "TRUE"]),
    ("SELECT * FROM (SELECT id FROM t) a FULL JOIN (SELECT * FROM v) b USING (id) WHERE id = 5", ["TRUE"]),
    ("SELECT * FROM t FULL JOIN v USING (id) JOIN other o ON id = o.x WHERE o.x = 5", ["TRUE", "x = 5"]),
    ("SELECT * FROM t FULL JOIN v USING (id) JOIN other o USING (id) WHERE o.id = 5", ["TRUE", "id = 5"]),
    ("SELECT * FROM t FULL JOIN other o USING (id) WHERE t.id = 5", ["id = 5", "id = 5"]),
    # two outputs of one name: DuckDB takes the first, others refuse it
    ("SELECT q.x FROM (SELECT id AS x, x FROM t) q WHERE x < 3", ["TRUE"]),
    ("SELECT q.x FROM (SELECT id AS x, amount AS x, * FROM t) q WHERE q.x < 3", ["TRUE"]),
    ("SELECT * FROM (SELECT * FROM t) AS o (x, id) WHERE id = 5", ["TRUE"]),
    ("SELECT * FROM (SELECT x, id FROM t UNION ALL SELECT x, id FROM t) AS o (id, x) WHERE id = 5", ["x = 5", "x = 5"]),
    ("SELECT * FROM v SEMI JOIN flights AS o (x, id) ON v.id = o.id AND o.x = 3", ["TRUE"]),
    # qualified by the table's own name, and by an alias before a struct
    ("SELECT * FROM prod.flights WHERE prod.flights.x = 1 AND flights.c = 'x'", ["x = 1 AND c = 'x'"]),
    ("SELECT * FROM prod.flights f WHERE f.address.city = 'x'", ["address.city = 'x'"]),
    ("SELECT * FROM prod.flights WHERE address.city = 'x'", ["address.city = 'x'"]),
    ("SELECT * FROM (SELECT f.address AS a FROM flights f) q WHERE q.a.city = 'x'", ["address.city = 'x'"]),
    ("WITH q AS (SELECT * FROM flights) SELECT * FROM q WHERE q.address.city = 'x'", ["address.city = 'x'"]),
    ("DELETE FROM prod.flights WHERE prod.flights.x = 1 AND address.city = 'x'", ["x = 1 AND address.city = 'x'"]),
    ("UPDATE flights f SET x = 2 WHERE f.address.city = 'x'", ["address.city = 'x'"]),
    (
        "MERGE INTO flights t USING u ON t.id = u.id AND t.address.city = 'x' WHEN MATCHED THEN DELETE",
        ["address.city = 'x'"],
    ),
    # stars over joins
    ("SELECT * FROM (SELECT f.*, d.name FROM flights f JOIN dim d ON f.id = d.k) q WHERE q.x = 1", ["x = 1"]),
    ("SELECT * FROM (SELECT f.*, d.name AS x FROM flights f JOIN dim d ON f.id = d.k) q WHERE q.x = 1", ["TRUE"]),
    ("SELECT * FROM (SELECT * FROM flights f LEFT SEMI JOIN v ON f.id = v.id) q WHERE q.x = 1", ["x = 1"]),
    ("SELECT * FROM (SELECT * FROM flights f JOIN v ON f.id = v.id) q WHERE q.x = 1", ["x = 1"]),  # or ambiguous
    ("SELECT * FROM (SELECT * FROM flights f NATURAL JOIN v) q WHERE q.x = 1", ["TRUE"]),
    ("SELECT * FROM (SELECT * EXCEPT (x) FROM flights) q WHERE q.x = 1", ["TRUE"]),
    # windows keep or drop whole partitions
    (
        ("SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY day) AS n FROM t) "
        "WHERE n = 1 AND id = 5 AND x = 2"),
        ["id = 5"],
    ),
    (
        ("SELECT * FROM (SELECT * FROM t QUALIFY row_number() OVER (PARTITION BY t.id, x ORDER BY "
        "day) = 1) WHERE id = 5"),
        ["id = 5"],
    ),
    (
        ("SELECT * FROM (SELECT *, sum(x) OVER (PARTITION BY id) AS a, sum(x) OVER (PARTITION BY "
        "c) AS b FROM t) WHERE id = 5"),
        ["TRUE"],
    ),
    ("SELECT * FROM (SELECT *, sum(x) OVER () AS a FROM t) WHERE id = 5", ["TRUE"]),
    ("SELECT * FROM (SELECT x, row_number() OVER (PARTITION BY s.x ORDER BY id) n FROM t) q WHERE q.x = 1", ["TRUE"]),
    # and Spark takes a column under its own name alone for one that they are partitioned by
    (
        ("SELECT * FROM (SELECT id, date(day) AS d, rank() OVER (PARTITION BY id, date(day) ORDER BY x) AS n FROM t) "
        "WHERE d = DATE '2024-01-01' AND id = 5"),
        ["id = 5"],
    ),
    ("SELECT * FROM (SELECT id AS k, row_number() OVER (PARTITION BY id) AS n FROM t) WHERE k = 5", ["TRUE"]),
    ("SELECT * FROM (SELECT id, lag(x) OVER (PARTITION BY id) AS n FROM t) AS q (k, n) WHERE k = 5", ["id = 5"]),
    (
        ("SELECT * FROM (SELECT address.city, sum(x) OVER (PARTITION BY address.city) AS n FROM t) "
        "WHERE city = 'x'"),
        ["TRUE"],
    ),
    (
        ("SELECT * FROM (SELECT *, max(x) OVER (PARTITION BY k ORDER BY x) AS n FROM (SELECT id AS k, x FROM t)) "
        "WHERE k = 5"),
        ["id = 5"],
    ),
    ("SELECT * FROM (SELECT id, sum(sum(x)) OVER (PARTITION BY id) AS n FROM t) WHERE id = 5", ["TRUE"]),
    ("SELECT id AS k, rank() OVER (ORDER BY id) FROM t GROUP BY id HAVING k = 5", ["id = 5"]),
    # a column of a statement around this one is none of a derived table's
    (
        "SELECT * FROM w t WHERE EXISTS (SELECT 1 FROM (SELECT * FROM flights AS t) q WHERE q.x = 2 AND t.id = 1)",
        ["x = 2"],
    ),
    # of nothing that is asked for nothing is needed
    ("SELECT * FROM t WHERE 1 = 0", ["FALSE"]),
    ("SELECT * FROM (SELECT * FROM t) q WHERE 0 = 1", ["FALSE"]),
    ("SELECT * FROM t WHERE 1 = 1 AND x = 1", ["x = 1"]),
    ("SELECT * FROM t WHERE ('EU' IS NULL OR c = 'EU') AND (x = 1 OR 1 = 0)", ["c = 'EU' AND x = 1"]),
    ("SELECT * FROM t WHERE NULL = 1", ["FALSE"]),
    ("SELECT * FROM t LIMIT 0", ["FALSE"]),
    ("SELECT * FROM t LIMIT 10", ["TRUE"]),
    ("SELECT * FROM (SELECT * FROM t WHERE x = 1) q LIMIT 0", ["x = 1 AND FALSE"]),
    # every output that is no aggregate is a key
    ("SELECT id, sum(x) AS s FROM t GROUP BY ALL HAVING id = 5 AND s > 1", ["id = 5"]),
    ("SELECT * FROM (SELECT id AS k, sum(x) AS s FROM t GROUP BY ALL) WHERE k = 5", ["id = 5"]),
    # tables of the same columns
    ("SELECT * FROM (SELECT * FROM t UNION ALL SELECT * FROM flights) q WHERE x = 1", ["x = 1", "x = 1"]),
    ("SELECT * FROM (SELECT * FROM t UNION ALL SELECT * FROM other) q WHERE x = 1", ["TRUE", "x = 1"]),
    # days of a calendar whose columns are not known
    ("SELECT * FROM t JOIN dates d ON t.day = d.day WHERE d.day >= DATE '2024-01-01'", ["day >= DATE '2024-01-01'"]),
    ("SELECT * FROM t JOIN dates d ON t.day = d.day WHERE d.day >= '2024-01-01'", ["TRUE"]),
    # the same in fewer words
    ("SELECT * FROM t WHERE isnull(x) OR NOT isnotnull(c)", ["x IS NULL OR c IS NULL"]),
    (
        "SELECT * FROM t WHERE c LIKE concat('EU', '%') AND c LIKE 'a!%b%' ESCAPE '!'",
        ["startswith(c, 'EU') AND startswith(c, 'a%b') AND c LIKE 'a!%b%' ESCAPE '!'"],
    ),
    (
        "SELECT * FROM t WHERE c LIKE 'a!!b' ESCAPE '!' AND x = ANY(ARRAY(1, 2))",
        ["c = 'a!b' AND c LIKE 'a!!b' ESCAPE '!' AND x IN (1, 2)"],
    ),
    # a name of a group key and of another output
    ("SELECT x AS day, count(*) FROM t GROUP BY x, day HAVING day > DATE '2024-01-01'", ["TRUE"]),
    ("SELECT day AS d, count(*) FROM t GROUP BY day HAVING d > DATE '2024-01-01'", ["day > DATE '2024-01-01'"]),
    ("SELECT f.x AS id, f.id AS r FROM flights f GROUP BY f.x, f.id HAVING id = 5", ["TRUE"]),
    ("SELECT X AS id, Id AS r FROM t GROUP BY X, Id HAVING id = 5", ["TRUE"]),
    ("SELECT year(day) AS day FROM t GROUP BY year(day) HAVING year(day) = 2024", ["TRUE"]),
    # keys in other words
    ("SELECT * FROM (SELECT f.c, count(*) n FROM flights f GROUP BY c) WHERE c = 'a'", ["c = 'a'"]),
    ("SELECT * FROM (SELECT c, count(*) n FROM flights f GROUP BY f.c) WHERE c = 'a'", ["c = 'a'"]),
    ("SELECT * FROM (SELECT C, count(*) n FROM t GROUP BY c) WHERE c = 'a'", ["c = 'a'"]),
    ("SELECT * FROM (SELECT c AS s, count(*) n FROM t GROUP BY s) WHERE s = 'a'", ["c = 'a'"]),
    ("SELECT count(*) FROM flights f GROUP BY f.c HAVING C = 'a'", ["c = 'a'"]),
    ("SELECT c, count(*) FROM t GROUP BY 1 HAVING c = 'a'", ["c = 'a'"]),
    (
        "SELECT * FROM (SELECT year(day) AS y, count(*) n FROM t GROUP BY y) WHERE y = 2024",
        ["day >= DATE '2024-01-01' AND day < DATE '2025-01-01'"],
    ),
    ("SELECT * FROM (SELECT c, id, count(*) FROM t GROUP BY ROLLUP (c, id)) WHERE c IS NULL", ["TRUE"]),
    ("SELECT * FROM (SELECT c, id, count(*) FROM t GROUP BY c, CUBE (id)) WHERE id IS NULL", ["TRUE"]),
    # of what may be an aggregate, or is made of one, nothing is known
    ("SELECT * FROM (SELECT my_sum(x) AS s, c FROM t GROUP BY c) WHERE s > 5 AND c = 'a'", ["c = 'a'"]),
    ("SELECT * FROM (SELECT max(x) AS s, s + 1 AS id, c FROM t GROUP BY c) WHERE id > 5 AND c = 'a'", ["c = 'a'"]),
    ("SELECT count(*) FROM t GROUP BY c HAVING my_max(x) > 5 AND c = 'a'", ["c = 'a'"]),
    # what inner joins before say of both of their sides
    (
        "SELECT * FROM t a JOIN t b ON a.id = b.id JOIN t c ON c.id = b.id WHERE a.id = 5",
        ["id = 5", "id = 5", "id = 5"],
    ),
    ("SELECT * FROM v a LEFT JOIN w b ON a.id = b.id JOIN t c ON c.id = b.id WHERE a.id = 5", ["TRUE"]),
    ("SELECT * FROM v a JOIN w b ON a.id = b.id RIGHT JOIN t c ON c.id = b.id WHERE a.id = 5", ["TRUE"]),
    ("SELECT * FROM v a JOIN w b ON a.id = b.id AND x = 5 JOIN t c ON c.id = b.id", ["TRUE"]),  # x is v's or w's
    # tables of one name
    ("SELECT * FROM prod.flights JOIN dev.flights ON prod.flights.id = dev.flights.id WHERE prod.flights.x = 1",
     ["x = 1", "TRUE"]),
    ("SELECT * FROM prod.flights, dev.flights WHERE flights.x = 1 AND dev.flights.c = 'x'", ["TRUE", "c = 'x'"]),
    ("SELECT * FROM a.prod.flights JOIN b.prod.flights ON prod.flights.x = 1 WHERE a.prod.flights.x = 2",
     ["x = 2", "TRUE"]),
    # files of other formats, and what is no data
    ("SELECT * FROM csv.`/landing/flights` WHERE x = 1", []),
    ("SELECT * FROM PARQUET.`s3://lake/flights` WHERE x = 1", []),
    ("SELECT * FROM information_schema.flights WHERE x = 1", []),
    ("SELECT * FROM delta.`/lake/flights` WHERE x = 1", ["x = 1"]),
    # sources of changes: of a MERGE that inserts all rows
    ("MERGE INTO w USING t ON w.id = t.id AND t.x = 1 WHEN MATCHED THEN DELETE", ["x = 1"]),
    ("MERGE INTO w USING t ON w.id = t.id AND t.x = 1 WHEN NOT MATCHED THEN INSERT *", ["TRUE"]),
    ("MERGE INTO w USING t ON w.id = t.id AND t.x = 1 WHEN NOT MATCHED BY SOURCE THEN DELETE", ["x = 1"]),
    ("MERGE INTO t USING flights f ON t.id = f.id AND f.x = 1 AND t.c = 'a' WHEN MATCHED THEN DELETE",
     ["c = 'a'", "x = 1"]),
    ("UPDATE w SET a = 1 FROM t WHERE w.id = t.id AND t.x = 1", ["x = 1"]),
    ("DELETE FROM w USING t WHERE w.id = t.id AND t.x = 1", ["x = 1"]),
    # fields of what the branches of a UNION hand out are no other columns of that name
    ("SELECT * FROM (SELECT address, c AS city FROM t UNION ALL SELECT address, c FROM t) q WHERE q.address.city = 'x'",
     ["address.city = 'x'"] * 2),
    (("SELECT * FROM (SELECT address a FROM v UNION ALL (SELECT c FROM w UNION ALL SELECT address FROM t)) "
     "WHERE a.city = 'x'"), ["address.city = 'x'"]),
    ("SELECT * FROM (SELECT upper(c) AS a, c AS city FROM t UNION ALL SELECT c, c FROM t) q WHERE a.city = 'x'",
     ["TRUE", "TRUE"]),
    # Spark filters nothing before an output that is another each time
    ("SELECT * FROM (SELECT x, uuid() AS n FROM t) WHERE x = 5", ["TRUE"]),
    ("SELECT * FROM (SELECT *, monotonically_increasing_id() AS n FROM t WHERE id = 1) WHERE x = 5", ["id = 1"]),
    ("SELECT x FROM (SELECT x, rand() AS n FROM t UNION ALL SELECT x, 1 FROM t) WHERE x = 5", ["x = 5", "TRUE"]),
    ("SELECT x, rand() FROM t WHERE id = 1 GROUP BY x HAVING x = 5", ["id = 1"]),
    ("SELECT x, rand() FROM t WHERE x = 5", ["x = 5"]),
    # fields behind a star
    ("WITH b AS (SELECT * FROM t) SELECT * FROM b WHERE address.city = 'x' AND x = 3",
     ["address.city = 'x' AND x = 3"]),
    ("SELECT * FROM (SELECT * FROM t) WHERE address.city = 'x'", ["address.city = 'x'"]),
    ("SELECT * FROM (SELECT * FROM (SELECT *, 1 AS one FROM t) a) b WHERE address.city = 'x'", ["address.city = 'x'"]),
    ("SELECT * FROM (SELECT * FROM t AS address) WHERE address.c = 'x'", ["TRUE"]),
    ("SELECT * FROM (SELECT x AS id FROM t) WHERE address.city = 'x'", ["TRUE"]),
    ("SELECT * FROM (SELECT * FROM t) b JOIN w ON b.id = w.id WHERE address.city = 'x'", ["TRUE"]),
    ("WITH b AS (SELECT * FROM t) SELECT * FROM w address WHERE EXISTS (SELECT 1 FROM b WHERE address.city = 'x')",
     ["TRUE"]),
    ("WITH b AS (SELECT * FROM t) FROM w address WHERE EXISTS (SELECT 1 FROM b WHERE address.city = 1 UNION SELECT 1)",
     ["TRUE"]),
    ("DELETE FROM address WHERE EXISTS (SELECT 1 FROM (SELECT * FROM t) b WHERE address.city = 'x')", ["TRUE"]),
    ("WITH b AS (SELECT * FROM t) DELETE FROM address WHERE EXISTS (SELECT 1 FROM b WHERE address.city = 'x')",
     ["TRUE"]),
    # common table expressions of changes, each read once for all that name it
    (("WITH other AS (SELECT 1 AS id) MERGE INTO t USING other ON t.id = other.id AND other.x > 3 "
      "WHEN MATCHED THEN DELETE"), ["TRUE"]),
    (("WITH s AS (SELECT * FROM t WHERE x = 1) MERGE INTO w USING s ON w.id = s.id AND s.c = 'a' "
      "WHEN MATCHED THEN DELETE"), ["x = 1 AND c = 'a'"]),
    ("WITH other AS (SELECT 1 AS id) UPDATE t SET x = (SELECT max(id) FROM other) WHERE c = 'a'", ["c = 'a'"]),
    (("WITH s AS (SELECT * FROM t WHERE x = 1) DELETE FROM w WHERE id IN (SELECT id FROM s WHERE c = 'a') "
      "AND EXISTS (SELECT 1 FROM s WHERE s.x = w.x AND c = 'b')"), ["x = 1 AND (c = 'b' OR c = 'a')"]),
    ("WITH s AS (SELECT * FROM t WHERE x = 1) DELETE FROM w WHERE id = 5", ["x = 1"]),
    # what Delta and Databricks add to statements
    ("MERGE WITH SCHEMA EVOLUTION INTO t USING v ON t.id = v.id AND t.x = 1 WHEN MATCHED THEN DELETE", ["x = 1"]),
    ("INSERT WITH SCHEMA EVOLUTION INTO w SELECT 'with schema evolution' FROM t WHERE x = 1", ["x = 1"]),
    ("INSERT OVERWRITE w PARTITION (d) IF NOT EXISTS SELECT * FROM t WHERE x = 1", ["x = 1"]),
    ("INSERT OVERWRITE DIRECTORY '/x' USING parquet OPTIONS (a = 'b') SELECT * FROM t WHERE x = 1", ["x = 1"]),
    ("CREATE TABLE w CLUSTER BY AUTO AS SELECT * FROM t WHERE x = 1", ["x = 1"]),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "expected"), CASES)
def test_a_condition_restricts_what_it_does_in_spark(statement: str, expected: list[str]) -> None:
    assert _scans(statement) == expected


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("WITH s AS (SELECT * FROM t) SELECT id, x FROM s WHERE c = 'x'", ("id", "x", "c")),
        ("WITH s AS (SELECT * FROM t), r AS (SELECT * FROM s WHERE c = 'x') SELECT r.x FROM r", ("c", "x")),
        ("SELECT count(*) FROM (SELECT * FROM t) WHERE x = 1", ("x",)),
        ("SELECT z, day FROM (SELECT *, x + 1 AS z FROM t)", ("x", "day")),
        ("SELECT q.x FROM (SELECT f.*, d.name FROM flights f JOIN dim d ON f.id = d.k) q", ("id", "x")),
        ("SELECT x FROM (SELECT * FROM t UNION ALL SELECT * FROM t WHERE c = 'x')", ("c", "x")),
        ("SELECT a.x FROM (SELECT * FROM t) a JOIN (SELECT * FROM t) b ON a.id = b.id", ("id",)),
        ("WITH s AS (SELECT * FROM t) SELECT id FROM s UNION ALL SELECT x FROM s", ("id", "x")),
        ("WITH s AS (SELECT * FROM t) SELECT id FROM s UNION ALL SELECT * FROM s", ()),
        ("SELECT x FROM (SELECT DISTINCT * FROM t)", ()),
        ("SELECT x FROM (SELECT * FROM t UNION SELECT * FROM t)", ()),
        ("SELECT x FROM (SELECT * FROM t EXCEPT ALL SELECT * FROM t)", ()),
        ("SELECT x FROM (SELECT * FROM t INTERSECT ALL SELECT * FROM t)", ()),
        ("SELECT * FROM (SELECT * FROM t)", ()),
    ],
)
def test_of_a_star_the_columns_are_read_that_somebody_asks_for(statement: str, expected: tuple[str, ...]) -> None:
    found = parse_statement(statement, aliases=KNOWN, schemas={"F": FLIGHTS, "O": OTHER})
    assert not isinstance(found, Unusable)
    assert tuple(sorted(found[0].columns)) == tuple(sorted(expected))


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT * FROM dim JOIN flights USING (id) WHERE id = 5", "id = 5"),
        ("SELECT * FROM flights JOIN dim USING (id) WHERE id = 5", "id = 5"),
        ("SELECT * FROM dim NATURAL JOIN flights WHERE x = 5", "x = 5"),
        ("SELECT * FROM dim JOIN flights ON dim.k = flights.id WHERE x = 5", "x = 5"),
        ("SELECT * FROM (SELECT id FROM flights UNION ALL SELECT k FROM dim) WHERE id = 5", "id = 5"),
        ("SELECT id FROM flights WHERE x = 5 INTERSECT SELECT k FROM dim", "x = 5"),
    ],
)
def test_of_a_table_without_schema_the_likely_is_presumed(statement: str, expected: str) -> None:
    assert _scans(statement) == [expected]


RENAMED = TableSchema((Column("customer", "int"), Column("s.g", "int")), (("cust", "customer"), ("s.f", "s.g")))


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("SELECT * FROM t WHERE CUST = 5", "customer = 5"),
        ("SELECT * FROM t o WHERE o.cust = 5 AND s.f = 2 AND o.s.f < 9", "customer = 5 AND s.g = 2 AND s.g < 9"),
        ("SELECT * FROM t JOIN other o ON t.cust = o.id WHERE o.id = 7", "customer = 7"),
        ("DELETE FROM t WHERE cust = 5", "customer = 5"),
        # where it may be another source's, it is
        ("SELECT * FROM t JOIN other o ON true WHERE cust = 5", "TRUE"),
        ("SELECT * FROM v WHERE EXISTS (SELECT 1 FROM t WHERE cust = 5)", "TRUE"),
    ],
)
def test_earlier_statements_call_a_renamed_column_as_it_was_called(statement: str, told: str) -> None:
    schemas = {"F": RENAMED, "O": TableSchema((Column("id", "int"),))}
    found = parse_statement(statement, aliases=KNOWN, schemas=schemas)
    assert not isinstance(found, Unusable)
    (scan,) = (scan for scan in found if scan.table == "F")
    assert (scan.predicate.to_sql(), scan.partial) == (told, False)


def test_others_than_spark_filter_before_an_output_that_is_another_each_time() -> None:
    found = parse_statement("SELECT * FROM (SELECT x, uuid() FROM t) WHERE x = 1", dialect="trino", aliases=KNOWN)
    assert not isinstance(found, Unusable)
    assert [scan.predicate.to_sql() for scan in found] == ["x = 1"]


def test_others_than_spark_filter_both_sides_of_a_difference() -> None:
    statement = "SELECT * FROM (SELECT x FROM t EXCEPT SELECT x FROM other) q WHERE x = 1"
    found = parse_statement(statement, dialect="trino", aliases=KNOWN)
    assert not isinstance(found, Unusable)
    assert [scan.predicate.to_sql() for scan in found] == ["x = 1", "x = 1"]


@pytest.mark.parametrize(
    ("column", "other", "expected"),
    [
        ("n", "m", ["n > 5", "m > 5"]),
        ("n", "x", ["TRUE", "x > 5"]),
        ("ts", "d", ["ts > 5", "TRUE"]),
        ("ts", "ntz", ["ts > 5", "TRUE"]),
        ("d", "n", ["TRUE", "TRUE"]),
    ],
)
def test_a_branch_of_the_widest_type_alone_is_asked(column: str, other: str, expected: list[str]) -> None:
    kinds = {"n": "bigint", "m": "decimal(10,2)", "x": "double", "d": "date", "ts": "timestamp", "ntz": "timestamp_ntz"}
    table = TableSchema(tuple(Column(name, kind) for name, kind in kinds.items()))
    statement = f"SELECT * FROM (SELECT {column} AS k FROM a UNION ALL SELECT {other} FROM b) q WHERE k > 5"
    found = parse_statement(statement, aliases={"a": "a", "b": "b"}, schemas={"a": table, "b": table})
    assert not isinstance(found, Unusable)
    assert [scan.predicate.to_sql() for scan in reversed(found)] == expected


def test_nothing_is_asked_of_stars_of_the_same_names_and_other_types() -> None:
    schemas = {"a": TableSchema((Column("k", "date"),)), "b": TableSchema((Column("k", "string"),))}
    statement = "SELECT * FROM (SELECT * FROM a UNION ALL SELECT * FROM b) q WHERE k > '2024-01-01'"
    found = parse_statement(statement, aliases={"a": "a", "b": "b"}, schemas=schemas)
    assert not isinstance(found, Unusable)
    assert [scan.predicate.to_sql() for scan in found] == ["TRUE", "TRUE"]


def test_a_condition_on_matched_patterns_is_none_on_the_rows_that_they_are_found_in() -> None:
    pattern = "MATCH_RECOGNIZE (ORDER BY day MEASURES FIRST(x) AS x PATTERN (A B) DEFINE A AS x > 5)"
    found = parse_statement(f"SELECT * FROM t {pattern} WHERE x = 1", dialect="snowflake", schemas={"t": FLIGHTS})
    assert not isinstance(found, Unusable)
    assert [scan.predicate.to_sql() for scan in found] == ["TRUE"]
