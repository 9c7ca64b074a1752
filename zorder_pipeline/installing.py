"""``python -m zorder_pipeline.installing``, a step of ``make setup``: what sessions need besides Python's packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from .errors import ZorderError
from .java import reason_of
from .layout.blocks import split_log
from .layout.draft import SampledTable
from .layout.evidence import KnownTable, WeighedLog
from .layout.learn import learn_layout
from .layout.search import SearchSettings
from .layout.skipping import Estimator
from .layout.virtual_files import times_asked
from .model.predicate import And, Comparison, Literal
from .model.ranges import to_boxes
from .model.schema import Column, TableSchema
from .spark import VARIABLE, class_archive, jar_folder, java_home, session
from .versions import delta_package

__all__ = ["archive_classes", "compile_kernels", "resolve_jars", "train"]

FOREIGN = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH", "SPARK_SUBMIT_OPTS")
"""Variables that put more on Java's class path, of which an archive can hold no folders, or that give it options."""
STATEMENTS = """
CREATE TABLE {0} (id BIGINT, day DATE, name STRING, price DOUBLE, at TIMESTAMP, part INT) USING delta
    PARTITIONED BY (part) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')
INSERT INTO {0} SELECT id, date_add(DATE'2026-01-01', int(id % 90)), concat('n', id), id / 7,
    timestamp_seconds(id), int(id % 2) FROM range(0, 2000, 1, 2)
DELETE FROM {0} WHERE id % 50 = 3
UPDATE {0} SET price = price + 1 WHERE id < 10
OPTIMIZE {0}
SELECT day, count(*), sum(price), min(name), max(at), approx_count_distinct(name) FROM {0}
    WHERE part = 1 AND day BETWEEN DATE'2026-01-05' AND DATE'2026-02-01' AND (name LIKE 'n1%' OR id IN (1, 2, 3))
    GROUP BY day ORDER BY 2 DESC LIMIT 5
SELECT a.name, row_number() OVER (PARTITION BY a.part ORDER BY a.id) AS place
    FROM {0} a LEFT JOIN {0} b ON a.id = b.id + 1 WHERE b.price IS NULL
DESCRIBE HISTORY {0}
DESCRIBE DETAIL {0}
"""
"""What the archive is learned from: it holds the classes that these load; a statement begins at a line's beginning."""


def resolve_jars() -> int:
    """Fetch Delta's jars once into the virtual environment, for starts without a network; returns how many.

    Raises:
        ZorderError: they could not be fetched.
    """
    folder = jar_folder()
    if found := len(list(folder.glob("*.jar"))):
        return found
    scratch = folder.with_name(folder.name + ".tmp")
    shutil.rmtree(scratch, ignore_errors=True)
    code = (
        "from pyspark.sql import SparkSession as S;"
        f"S.builder.master('local[1]').config('spark.jars.packages', '{delta_package()}')"
        f".config('spark.jars.ivy', {str(scratch / 'ivy')!r}).config('spark.ui.enabled', 'false')"
        ".config('spark.driver.bindAddress', '127.0.0.1').config('spark.driver.host', '127.0.0.1').getOrCreate().stop()"
    )
    scratch.mkdir(parents=True)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    jars = list((scratch / "ivy" / "jars").glob("*.jar"))
    if done.returncode or not jars:
        shutil.rmtree(scratch, ignore_errors=True)
        problem = [line.strip() for line in done.stderr.splitlines() if "not found" in line or "Exception" in line]
        raise ZorderError(
            f"{delta_package()} could not be resolved from Maven Central: {(problem or ['no reason'])[-1]}"
        )
    ready = scratch / "jars"
    ready.mkdir()
    for jar in jars:
        shutil.move(jar, ready / jar.name)
    ready.replace(folder)
    shutil.rmtree(scratch, ignore_errors=True)
    return len(jars)


def archive_classes() -> Path:
    """Have Java archive the classes that a small piece of work loads, so that later starts take less time.

    Java's dynamic archive of class data (JEP 350). It is made once for each Java; everything works without it.

    Raises:
        ZorderError: there is no Java, or it wrote no archive.
    """
    archive = class_archive(java_home())
    if archive.is_file():
        return archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        fresh = Path(folder) / archive.name
        environment = {
            name: value for name, value in os.environ.items() if name not in (*FOREIGN, VARIABLE, "SPARK_REMOTE")
        }
        code = f"from zorder_pipeline.installing import train; train({folder!r}, {str(fresh)!r})"
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode or not fresh.is_file():
            said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
            raise ZorderError((said or ["Java wrote none"])[-1].removeprefix(f"{ZorderError.__module__}.ZorderError: "))
        fresh.replace(archive)
    return archive


def train(folder: str, archive: str) -> None:
    """Work in ``folder`` as sessions do, in a session whose Java writes ``archive`` when it ends; returns then."""
    from pyspark import SparkContext

    conf = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.driver.defaultJavaOptions": f'-XX:ArchiveClassesAtExit="{archive}" -XX:TieredStopAtLevel=1',
        "spark.sql.warehouse.dir": folder,
    }
    spark = session(conf)
    for statement in STATEMENTS.strip().replace("\n    ", " ").splitlines():
        spark.sql(statement.format(f"delta.`{folder}/table`")).toPandas()
    spark.stop()
    gateway = SparkContext._gateway
    assert gateway is not None, "the session has started it"
    gateway.proc.stdin.close()
    gateway.proc.wait()


def compile_kernels() -> None:
    """Learn a layout of made-up rows: what numba compiles for it is kept, and the first real one need not wait.

    See `zorder_pipeline.model.kernel` for where it is kept.
    """
    rows, files, statements = 2_000, 8, 60
    rng = np.random.default_rng(0)
    schema = TableSchema((Column("a", "int"), Column("b", "int")))
    columns = {column.name: (rng.integers(0, 1_000, rows), np.ones(rows, dtype=bool)) for column in schema.columns}
    queries = [
        to_boxes(And(tuple(Comparison(name, "<", (Literal("number", str(limit)),)) for name in columns)), schema)
        for limit in rng.integers(20, 400, statements)
    ]
    log = WeighedLog(queries, np.ones(statements), split_log([str(i) for i in range(statements)], [None] * statements))
    stored = np.arange(rows, dtype=np.int32) * files // rows
    sample = SampledTable.build(columns, dict.fromkeys(columns, "int"), list(columns), stored, files)
    learn_layout(KnownTable(sample, columns, schema), log, SearchSettings(50, 1))
    times_asked(Estimator.build(columns, schema, queries, rows), stored, files, np.ones((1, statements)))


def main() -> None:
    """Fetch the jars, make the archive, compile, and say what was done; jars are needed, the rest saves time."""
    try:
        print(f"{resolve_jars()} jars of {delta_package()} are in {jar_folder()}", flush=True)
    except ZorderError as error:
        sys.exit(str(error))
    with ThreadPoolExecutor(1) as apart:  # Java works for a minute
        archived = apart.submit(archive_classes)
        try:
            compile_kernels()
            print("the search is compiled")
        except Exception as error:
            print(f"the search is not compiled ({reason_of(error)}): the first one takes longer, all else is the same")
    try:
        archive = archived.result()
        print(f"Spark's classes are in {archive}, {archive.stat().st_size >> 20} MB")
    except ZorderError as error:
        print(f"Spark's classes are not archived ({error}): Spark starts slower, all else is the same")


if __name__ == "__main__":
    main()
