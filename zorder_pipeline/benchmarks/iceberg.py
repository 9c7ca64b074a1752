"""Apache Iceberg's ``rewrite_data_files`` as a peer, by zorder and by sort, in an environment of its own.

Iceberg has no build for this project's Spark, so its job runs as a process with the newest pyspark that it has one for.
Its files then become a Delta table as they are: all contenders are measured by the same reader of min/max statistics.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from zorder_pipeline.errors import ZorderError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["NOT_INTERLEAVED", "PeerError", "iceberg_sort", "iceberg_zorder"]

PYSPARK = "4.0.4"
JAR = "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0"
PYTHON = "ZORDER_ICEBERG_PYTHON"
"""Environment variable: a Python that has `PYSPARK` already; without it an environment is made beside this one."""
NOT_INTERLEAVED = ("decimal",)
"""Types that Iceberg's zorder refuses."""
SIGNS = ("Caused by", "not found]", "Exception", "Error")
"""What the line of a job's error output that tells the cause holds, the surest first."""
MAX_REASON = 240


class PeerError(ZorderError):
    """A peer cannot be run here; the report says why and goes on without it."""


def iceberg_zorder(
    spark: SparkSession, source: str, dest: str, columns: Sequence[str], files: int, measure: object = None
) -> float:
    """``rewrite_data_files`` by zorder(columns).

    Raises:
        PeerError: there is no column, the environment cannot be made, or the job fails.
    """
    del measure
    if not columns:
        raise PeerError("the log filters by no column of a type that Iceberg's zorder takes")
    return _rewritten(spark, source, dest, f"zorder({','.join(columns)})", files)


def iceberg_sort(
    spark: SparkSession, source: str, dest: str, columns: Sequence[str], files: int, measure: object = None
) -> float:
    """``rewrite_data_files`` by sort order: the columns one after the other.

    Raises:
        PeerError: the environment cannot be made, or the job fails.
    """
    del measure
    return _rewritten(spark, source, dest, ",".join(f"{name} ASC NULLS FIRST" for name in columns), files)


def _rewritten(spark: SparkSession, source: str, dest: str, sort_order: str, files: int) -> float:
    from deltalake import DeltaTable
    from pyspark.errors import PySparkException

    target = Path(dest)
    warehouse = target.parent / f"{target.name}-iceberg"
    for folder in (target, warehouse):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    job = {
        "jar": JAR,
        "paths": DeltaTable(source).file_uris(),
        "warehouse": str(warehouse),
        "sort_order": sort_order,
        "files": files,
    }
    try:
        done = _run(job, warehouse)
        for uri in done["paths"]:
            path = Path(unquote(urlsplit(uri).path))
            shutil.move(path, target / path.name)
        spark.sql(f"CONVERT TO DELTA parquet.`{dest}`")
    except PySparkException as error:
        raise PeerError(f"Iceberg's files did not become a Delta table: {_reason(str(error))}") from error
    finally:
        shutil.rmtree(warehouse, ignore_errors=True)
    return float(done["seconds"])


def _run(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What the job says when it has run in its own environment.

    Raises:
        PeerError: the environment cannot be made, or the job fails.
    """
    note = folder / "job.json"
    note.write_text(json.dumps(job), encoding="utf-8")
    python = _python()
    # what points to this environment's Spark would start it in the other one
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYSPARK", "SPARK_"))}
    command = [python, str(Path(__file__).with_name("iceberg_job.py")), str(note)]
    done = _called(command, f"Iceberg's rewrite by {job['sort_order']} failed", clean | {"PYSPARK_PYTHON": python})
    found: dict[str, Any] = json.loads(done.strip().splitlines()[-1])
    return found


def _python() -> str:
    """A Python with the pyspark that Iceberg supports; the environment is made once.

    Raises:
        PeerError: it cannot be made.
    """
    if given := os.environ.get(PYTHON):
        return given
    folder = Path(sys.prefix) / "share" / "zorder_pipeline" / f"pyspark-{PYSPARK}"
    python = str(folder / "bin" / "python")
    if not (folder / "ready").is_file():
        problem = f"pyspark {PYSPARK}, which Iceberg's peers need, could not be installed"
        shutil.rmtree(folder, ignore_errors=True)
        try:
            venv.create(folder, with_pip=True)
        except (OSError, subprocess.SubprocessError) as error:
            raise PeerError(f"{problem}: {_reason(str(error))}; {PYTHON} may name a Python that has it") from error
        _called([python, "-m", "pip", "install", "--quiet", f"pyspark=={PYSPARK}"], problem)
        (folder / "ready").touch()
    return python


def _called(command: Sequence[str], problem: str, environment: dict[str, str] | None = None) -> str:
    """What a command prints.

    Raises:
        PeerError: it cannot be started, or fails.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    except OSError as error:
        raise PeerError(f"{problem}: {error}") from error
    if done.returncode:
        raise PeerError(f"{problem}: {_reason(done.stderr)}")
    return done.stdout


def _reason(text: str) -> str:
    """The line that tells the cause, of what a program said before it failed.

    >>> _reason(
    ...     "Traceback: ...\\nCaused by: java.io.IOException: No space left\\n\\tat org.example.Main\\nError: exit 1"
    ... )
    'java.io.IOException: No space left'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for sign in SIGNS:
        if told := [line for line in lines if sign in line]:
            return told[-1].removeprefix("Caused by: ")[:MAX_REASON]
    return lines[-1][:MAX_REASON] if lines else "no reason given"
