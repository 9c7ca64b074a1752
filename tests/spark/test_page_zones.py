"""What is skipped inside files by Parquet's page index, told from the files, against what Spark skips."""

import json
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from zorder_pipeline.benchmarks.engines import rows_scanned
from zorder_pipeline.model.ranges import to_boxes
from zorder_pipeline.pipeline.learning.volumes import present_volumes
from zorder_pipeline.pipeline.logs import ingest
from zorder_pipeline.relayout.snapshot import open_table

pytestmark = pytest.mark.matrix

CONDITIONS = (
    *("id BETWEEN 100 AND 30000", "t < TIMESTAMP '1970-01-01 10:00:00'", "n < TIMESTAMP_NTZ '2020-01-01 00:01:00'"),
    *(
        "d BETWEEN 3 AND 5000",
        "wide > 150000",
        "f < 25000.5",
        "s = '100'",
        "s BETWEEN '100' AND '1000'",
        "odd AND part < 2",
    ),
    *(
        "day < DATE '2020-02-05'",
        "id IN (5, 199999)",
        f"id IN ({', '.join(str(i * 15000) for i in range(12))})",
        "id = 3 OR id = 150000",
        "added = 7",
        "added IS NULL",
        "id < 0",
    ),
    *("holes IS NULL", "holes > 120000", "holes < 100 AND id < 100000", "part = 1 AND f < 25000.5"),
)


def test_pages_are_those_that_spark_skips(spark: SparkSession, tmp_path: Path) -> None:
    """Against the rows that Spark's reader hands on, by its own metric."""
    path, log = str(tmp_path / "t"), tmp_path / "log.jsonl"
    rows = spark.range(0, 200_000, 1, 2).selectExpr(
        *("id", "timestamp_micros(id * 1000000) AS t", "CAST(id / 7 AS DECIMAL(10, 2)) AS d"),
        *(
            "TIMESTAMP_NTZ '2020-01-01' + make_interval(0, 0, 0, 0, 0, 0, id) AS n",
            "CAST(id AS DECIMAL(30, 2)) AS wide",
        ),
        *("CAST(id AS DOUBLE) AS f", "CAST(id AS STRING) AS s", "id % 2 = 0 AS odd", "id DIV 100000 AS part"),
        *("date_add(DATE '2020-01-01', CAST(id DIV 1000 AS INT)) AS day", "IF(id % 100000 < 50000, id, NULL) AS holes"),
    )
    rows.write.format("delta").partitionBy("part").save(path)
    spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS (added INT)")
    more = spark.range(45_000).selectExpr("id", "CAST(id AS INT) AS added", "CAST(2 AS BIGINT) AS part").coalesce(1)
    more.write.format("delta").mode("append").option("mergeSchema", "true").save(path)
    log.write_text("".join(json.dumps({"statement": f"SELECT * FROM t WHERE {where}"}) + "\n" for where in CONDITIONS))
    snapshot = open_table(spark, path)
    found = ingest([str(log)], {snapshot.location: (snapshot, ["t"])})
    queries = found.of_table([snapshot.location])
    assert len(queries) == len(CONDITIONS)
    boxes = [to_boxes(query.predicate, snapshot.schema, query.zone) for query in queries]
    told = present_volumes(snapshot, queries, boxes, pages=True)
    assert told.pages is not None
    share, files = told.pages / np.maximum(1e-9, told.bytes), spark.read.format("delta").load(path)
    for where, part, opened in zip(CONDITIONS, share, told.groups * 245_000, strict=True):
        done = files.where(where)
        done._jdf.queryExecution().toRdd().count()  # as no row has to come to Python
        assert part * opened == pytest.approx(rows_scanned(done), abs=1), where
