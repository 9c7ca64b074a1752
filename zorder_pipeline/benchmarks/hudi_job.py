"""Runs by itself in an environment with another pyspark: Parquet files become a Hudi table that is then clustered.

Usage: ``python hudi_job.py job.json``, where the file holds an object with

- ``jar``: Maven coordinates of Hudi's bundle for Spark;
- ``paths``: the Parquet files; ``warehouse``: a folder for the Hudi table;
- ``columns``: what it is clustered by; ``curve``: z-order or hilbert; ``files``: how many it should make.

The last line of standard output is an object with the clustering's ``seconds`` and the ``paths`` of the table's files.
"""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

TABLE = "t"
NO_LIMIT = 1 << 40
"""Bytes: more than any table here, so that all files are clustered, and in one group."""
ATTEMPTS, TOLERANCE = 4, 0.05
"""Hudi ends a file by the size of the rows in memory, several times what is stored: the size is sought, and only the
last clustering's time is told. The number of files may be off by this share."""
FILES: dict[str, bool | float | int | str | None] = {
    "hoodie.parquet.compression.codec": "snappy",  # Spark's own codec, so that bytes compare
    "hoodie.index.bloom.num_entries": 100,  # nobody looks up keys here, and the default takes 100 KB of every file
}


def main() -> None:
    """See the module."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.jars.packages", job["jar"])
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
        .config("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar")
        .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.hudi.catalog.HoodieCatalog")
        .config("spark.sql.warehouse.dir", job["warehouse"])
        .config("spark.driver.memory", "6g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    rows = spark.read.parquet(*job["paths"])
    options = {
        "hoodie.table.name": TABLE,
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
        "hoodie.bulkinsert.sort.mode": "NONE",
        **FILES,
    }
    size = 0
    for attempt in range(ATTEMPTS):
        path = str(Path(job["warehouse"]) / f"{TABLE}{attempt}")
        rows.write.format("hudi").options(**options).mode("overwrite").save(path)
        size = size or max(1, sum(file.stat().st_size for file in Path(path).glob("*.parquet")) // job["files"])
        seconds, made = _clustered(spark, path, job["columns"], job["curve"], size)
        if abs(len(made) - job["files"]) <= TOLERANCE * job["files"]:
            break
        size = max(1, size * len(made) // job["files"])
    print(json.dumps({"seconds": seconds, "paths": made}))


def _clustered(spark: SparkSession, path: str, columns: list[str], curve: str, size: int) -> tuple[float, list[str]]:
    """Seconds of a clustering to files of about ``size`` bytes, and the files that it made."""
    options = {
        "hoodie.clustering.plan.strategy.target.file.max.bytes": size,
        "hoodie.clustering.plan.strategy.max.bytes.per.group": NO_LIMIT,
        "hoodie.clustering.plan.strategy.small.file.limit": NO_LIMIT,
        "hoodie.layout.optimize.curve.build.method": "sample",  # the better layout of the two, Hudi's manual says
        **FILES,
    }
    told = ",".join(f"{key}={value}" for key, value in options.items())
    before = _files(spark, path)
    start = time.perf_counter()
    spark.sql(
        f"CALL run_clustering(path => '{path}', op => 'scheduleAndExecute', order => '{','.join(columns)}', "
        f"order_strategy => '{curve}', options => '{told}')"
    ).collect()
    seconds = time.perf_counter() - start
    after = _files(spark, path)
    if not after or set(before) & set(after):
        raise RuntimeError("Error: Hudi's clustering rewrote no file, or not all")
    return seconds, after


def _files(spark: SparkSession, path: str) -> list[str]:
    """Paths of the files that a read of the table opens."""
    return sorted(spark.read.format("hudi").load(path).inputFiles())


if __name__ == "__main__":
    main()
