"""A Spark standalone cluster of this machine: a master and two workers that have no Python."""

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pyspark
import pytest
from pyspark.sql import SparkSession

from tests.spark.test_faults import in_child
from tests.spark.writers import commits, create, rows_at
from zorder_pipeline.relayout.snapshot import open_table

SPARK_HOME = Path(pyspark.__file__).parent
NO_PYTHON = "/nonexistent/python"

ON_CLUSTER = """
import json, os, sys
os.environ["PYSPARK_PYTHON"] = "/nonexistent/python"  # what executors would start for Python code
from tests.spark.writers import relayout, spec_for
from zorder_pipeline import pipeline
from zorder_pipeline.layout.extend import extended
from zorder_pipeline.pipeline import LearnSettings
from zorder_pipeline.spark import session

spark = session({
    "spark.master": sys.argv[1], "spark.driver.host": "127.0.0.1", "spark.driver.memory": "1g",
    "spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.sql.shuffle.partitions": "2",
})
spark.range(1000).repartition(8).count()
print(json.dumps(["executors", spark._jsc.sc().getExecutorMemoryStatus().size() - 1]), flush=True)
for path in sys.argv[2:]:
    done = relayout(spark, path, spec_for("k"), verify="hash", extend=extended)
    print(json.dumps([done.committed, done.rows]), flush=True)
    settings = LearnSettings(target_file_rows=2000)
    merged = pipeline.compact(spark, path, settings=settings, verify="hash")
    print(json.dumps([merged.decision, merged.rows]), flush=True)
try:
    spark.range(2).rdd.map(lambda row: row).collect()
except Exception:
    print(json.dumps(["executors have no Python"]), flush=True)
"""


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """The URL of a master with two workers of one core each."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    place = ["--host", "127.0.0.1", "--webui-port", "0"]
    worker = ["worker.Worker", *place, "--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work"), url]
    with contextlib.ExitStack() as stack:
        log = stack.enter_context((folder / "cluster.log").open("w"))
        for words in (["master.Master", *place, "--port", str(port)], worker, worker):
            stack.enter_context(daemon(words, log))
        deadline = time.monotonic() + 120
        text = ""
        while text.count("Registering worker") < 2 and time.monotonic() < deadline:
            time.sleep(0.5)
            text = (folder / "cluster.log").read_text()
        assert text.count("Registering worker") == 2, text[-2000:]
        yield url


@contextlib.contextmanager
def daemon(words: list[str], log: IO[str]) -> Iterator[None]:
    """One of Spark's own deploy classes as a process."""
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": NO_PYTHON,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
    }
    environment["SPARK_HOME"] = str(SPARK_HOME)
    command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{words[0]}", *words[1:]]
    process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_standalone_cluster_without_python_on_its_workers(spark: SparkSession, tmp_path: Path) -> None:
    paths = [
        create(spark, tmp_path / "plain"),
        create(spark, tmp_path / "parts", {"delta.enableDeletionVectors": "true"}, partitioned=True, files=2),
    ]
    spark.sql(f"DELETE FROM delta.`{paths[1]}` WHERE id % 9 = 4")
    before = {path: rows_at(spark, path) for path in paths}
    with cluster(tmp_path) as url:
        told = in_child(ON_CLUSTER, url, *paths)
    assert told[0] == ["executors", 2]
    assert told[-1] == ["executors have no Python"]
    for path, relaid, merged in zip(paths, told[1:-1:2], told[2:-1:2], strict=True):
        rows = len(before[path])
        assert (relaid, merged) == ([True, rows], ["applied", rows])
        assert rows_at(spark, path) == before[path]
        assert set(open_table(spark, path).files().layout) != {""}
        assert [commit.rows for commit in commits(path)][-2:] == [rows, rows]
