"""Runs by itself in an environment with another pyspark: Parquet files become an Iceberg table that is then rewritten.

Usage: ``python iceberg_job.py job.json``, where the file holds an object with

- ``jar``: Maven coordinates of Iceberg's runtime;
- ``paths``: the Parquet files; ``warehouse``: a folder for the Iceberg table;
- ``sort_order``: as in the procedure ``rewrite_data_files``; ``files``: how many it should make.

The last line of standard output is an object with the rewrite's ``seconds`` and the ``paths`` of the table's files.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

TABLE = "bench.db.t"
LOOSE = 100
"""A file may be so many times the target. While it is written, its size is that of the rows in memory, several times
what is stored; a limit near the target would cut each file in two.
"""


def main() -> None:
    """See the module."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.jars.packages", job["jar"])
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config("spark.sql.catalog.bench", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.bench.type", "hadoop")
        .config("spark.sql.catalog.bench.warehouse", job["warehouse"])
        # its zorder casts dates to numbers, which ANSI mode, the default since Spark 4.0, refuses
        .config("spark.sql.ansi.enabled", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    rows = spark.read.parquet(*job["paths"])
    # Spark's own codec, so that bytes compare
    rows.writeTo(TABLE).using("iceberg").tableProperty("write.parquet.compression-codec", "snappy").create()
    size = max(1, sum(row["file_size_in_bytes"] for row in _files(spark)) // job["files"])
    options = {
        "rewrite-all": "true",
        "target-file-size-bytes": str(size),
        "max-file-size-bytes": str(LOOSE * size),
        "min-file-size-bytes": str(size // 2),
    }
    told = ", ".join(f"'{key}', '{value}'" for key, value in options.items())
    start = time.perf_counter()
    spark.sql(
        "CALL bench.system.rewrite_data_files(table => 'db.t', strategy => 'sort', "
        f"sort_order => '{job['sort_order']}', options => map({told}))"
    ).collect()
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "paths": [row["file_path"] for row in _files(spark)]}))


def _files(spark: SparkSession) -> list[Any]:
    return spark.sql(f"SELECT file_path, file_size_in_bytes FROM {TABLE}.files").collect()


if __name__ == "__main__":
    main()
