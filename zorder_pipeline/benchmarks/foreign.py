"""Peers that have no build for this project's Spark: each runs as a job in an environment of its own.

A job is a program beside this module. It reads the source's Parquet files, makes a table of its own format, and says
which Parquet files that has after the rewrite. These then become a Delta table as they are: all contenders are
measured by the same reader of min/max statistics.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from zorder_pipeline.errors import ZorderError

from .data import session_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Foreign", "PeerError"]

SIGNS = ("Caused by", "not found]", "Exception", "Error")
"""What the line of a job's error output that tells the cause holds, the surest first."""
MAX_REASON = 240


EVERY_COLUMN = {"spark.databricks.delta.properties.defaults.dataSkippingNumIndexedCols": "-1"}
"""Statistics of all columns: a format's own come first in its files, and would take some of the 32 that others get."""


class PeerError(ZorderError):
    """A peer cannot be run here; the report says why and goes on without it."""


@dataclass(frozen=True)
class Foreign:
    """A table format with a rewrite of its own.

    Attributes:
        name: what it is called in sentences.
        job: file name of its program, beside this module.
        jar: Maven coordinates of its runtime for Spark.
        pyspark: version of pyspark that the runtime is for.
        variable: environment variable that may name a Python with that pyspark; without it an environment is made
            beside this one.
    """

    name: str
    job: str
    jar: str
    pyspark: str
    variable: str

    def rewritten(
        self, spark: SparkSession, source: str, dest: str, files: int, how: Mapping[str, Any], meaning: str
    ) -> float:
        """A Delta table at ``dest`` of the files that the rewrite made; returns the seconds of the rewrite.

        Args:
            files: how many files it should make.
            how: what else the job is told.
            meaning: the rewrite in words, for errors.

        Raises:
            PeerError: the environment cannot be made, or the job fails.
        """
        from deltalake import DeltaTable
        from pyspark.errors import PySparkException

        target = Path(dest)
        warehouse = target.parent / f"{target.name}-{self.name.lower()}"
        for folder in (target, warehouse):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        table = {"jar": self.jar, "paths": DeltaTable(source).file_uris(), "warehouse": str(warehouse), "files": files}
        try:
            done = self.run({**table, **how}, warehouse, meaning)
            for uri in done["paths"]:
                path = Path(unquote(urlsplit(uri).path))
                shutil.move(path, target / path.name)
            with session_conf(spark, EVERY_COLUMN):
                spark.sql(f"CONVERT TO DELTA parquet.`{dest}`")
        except PySparkException as error:
            raise PeerError(f"{self.name}'s files did not become a Delta table: {_reason(str(error))}") from error
        finally:
            shutil.rmtree(warehouse, ignore_errors=True)
        return float(done["seconds"])

    def run(self, job: Mapping[str, Any], folder: Path, meaning: str) -> dict[str, Any]:
        """What the job says when it has run in its own environment.

        Raises:
            PeerError: the environment cannot be made, or the job fails, or ends without saying what it did.
        """
        note = folder / "job.json"
        note.write_text(json.dumps(job), encoding="utf-8")
        python = self.python()
        # what points to this environment's Spark would start it in the other one
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYSPARK", "SPARK_"))}
        command = [python, str(Path(__file__).with_name(self.job)), str(note)]
        done = _called(command, f"{self.name}'s rewrite by {meaning} failed", clean | {"PYSPARK_PYTHON": python})
        try:
            found: dict[str, Any] = json.loads(done.strip().splitlines()[-1])
            return {"seconds": float(found["seconds"]), "paths": list(found["paths"])}
        except (IndexError, KeyError, TypeError, ValueError) as error:
            said = _reason(done)
            raise PeerError(f"{self.name}'s rewrite by {meaning} ended without saying what it did: {said}") from error

    def python(self) -> str:
        """A Python with the pyspark that the format supports; the environment is made once.

        Raises:
            PeerError: it cannot be made.
        """
        if given := os.environ.get(self.variable):
            return given
        folder = Path(sys.prefix) / "share" / "zorder_pipeline" / f"pyspark-{self.pyspark}"
        python = str(folder / "bin" / "python")
        if not (folder / "ready").is_file():
            problem = f"pyspark {self.pyspark}, which {self.name}'s peers need, could not be installed"
            shutil.rmtree(folder, ignore_errors=True)
            try:
                venv.create(folder, with_pip=True)
            except (OSError, subprocess.SubprocessError) as error:
                way_out = f"{self.variable} may name a Python that has it"
                raise PeerError(f"{problem}: {_reason(str(error))}; {way_out}") from error
            _called([python, "-m", "pip", "install", "--quiet", f"pyspark=={self.pyspark}"], problem)
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
