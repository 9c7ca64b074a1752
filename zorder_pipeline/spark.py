"""Spark sessions with Delta Lake, from configuration alone; the same for the command line, Dagster and the tests."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import signal
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import ZorderError
from .interrupts import stop_jobs_on
from .java import has_jvm, reason_of
from .launch import launching, why_java_ended
from .versions import delta_package

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "VARIABLE",
    "brief_conf",
    "class_archive",
    "environment_conf",
    "jar_folder",
    "java_home",
    "quiet_conf",
    "session",
    "spark_conf",
]

VARIABLE = "ZORDER_SPARK_CONF"
"""Environment variable of settings that go before all others, see `environment_conf`."""
DELTA = re.compile(r"\bdelta-(spark|core)_")
"""A Delta among jars or packages; other artifacts of its, such as a log store, need one besides."""


def jar_folder() -> Path:
    """Where ``make setup`` puts Delta's jars."""
    _, artifact, release = delta_package().split(":")
    return Path(sys.prefix) / "share" / "zorder_pipeline" / f"{artifact}-{release}"


def class_archive(home: Path) -> Path:
    """Where ``make setup`` puts the archive of Spark's classes for one Java: no other could read it.

    Args:
        home: that Java's folder; its file ``release`` says which one it is.
    """
    release = home / "release"
    named = f"{version('pyspark')} {home.resolve()} {release.read_text() if release.is_file() else ''}"
    return jar_folder().with_name(f"classes-{hashlib.sha256(named.encode()).hexdigest()[:12]}.jsa")


def quiet_conf() -> dict[str, str]:
    """Settings under which Spark prints errors only: progress and results are printed by us."""
    properties = Path(__file__).with_name("log4j2.properties")
    return {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={properties.as_uri()}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def brief_conf() -> dict[str, str]:
    """Settings for seconds of work on Delta's log and the state, without any rows of tables.

    Java compiles what runs often a second time, better and slowly: here that takes half of its time and pays for
    nothing.
    """
    options = "spark.driver.extraJavaOptions"
    return {options: f"{quiet_conf()[options]} -XX:+IgnoreUnrecognizedVMOptions -XX:TieredStopAtLevel=1"}


def spark_conf(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Complete configuration of a session: ours, overridden by ``extra`` (the ``spark.conf`` of tables.yaml).

    Delta's jars come from the folder that ``make setup`` filled, else they are resolved as a package, beside those that
    ``spark.jars`` and ``spark.jars.packages`` name. One that names a Delta itself, or ``spark.driver.extraClassPath``
    (a cluster that ships Delta), is left alone.

    >>> spark_conf({"spark.jars.packages": "io.delta:delta-spark_2.13:4.0.0"})["spark.jars.packages"]
    'io.delta:delta-spark_2.13:4.0.0'
    >>> found = spark_conf({"spark.jars": "/opt/mine.jar", "spark.jars.packages": "org.apache.hadoop:hadoop-aws:3.5.0"})
    >>> (
    ...     found["spark.jars"].startswith("/opt/mine.jar"),
    ...     "delta-spark" in found["spark.jars"] + found["spark.jars.packages"],
    ... )
    (True, True)
    """
    conf = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "8",
        # reads of the Delta log itself: 50 tasks, the default, cost seconds on small tables and two cores
        "spark.databricks.delta.snapshotPartitions": "4",
        # 100, the default, are fewer than Delta's own plans take: they would be compiled again and again
        "spark.sql.codegen.cache.maxEntries": "1000",
        # INT96, Spark's default, has no Parquet statistics: neither row groups nor pages could be skipped
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.driver.memory": "4g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        **quiet_conf(),
    }
    given = dict(extra or {})
    named = given.get("spark.jars", ""), given.get("spark.jars.packages", "")
    if "spark.driver.extraClassPath" not in given and not DELTA.search(" ".join(named)):
        jars = sorted(str(path) for path in jar_folder().glob("*.jar"))
        key, ours = ("spark.jars", jars) if jars else ("spark.jars.packages", [delta_package()])
        given[key] = ",".join([*filter(None, [given.get(key)]), *ours])
    if "spark.master" in given and not given["spark.master"].startswith("local"):
        del conf["spark.driver.host"], conf["spark.driver.bindAddress"]
    return conf | given


def environment_conf(text: str | None = None) -> dict[str, str]:
    """The settings in ``ZORDER_SPARK_CONF``.

    Args:
        text: ``key=value;key=value``; what the environment says when None.

    Raises:
        ZorderError: it is of another form.

    >>> environment_conf("spark.master=local[2]; spark.driver.memory = 2g;")
    {'spark.master': 'local[2]', 'spark.driver.memory': '2g'}
    """
    text = os.environ.get(VARIABLE, "") if text is None else text
    conf = {}
    for number, pair in enumerate(text.split(";"), 1):
        name, given, value = (part.strip() for part in pair.partition("="))
        if pair.strip() and not (name and given):  # not shown: it may be the end of a password
            raise ZorderError(
                f"{VARIABLE}: part {number} is no key=value; write spark.master=local[2];spark.driver.memory=4g"
            )
        if name:
            conf[name] = value
    return conf


def java_home() -> Path:
    """The folder of the Java that a session starts: of ``JAVA_HOME``, of ``make setup``, or of the one on ``PATH``.

    Sets ``JAVA_HOME`` to the second where it is not set.

    Raises:
        ZorderError: there is none.
    """
    chosen = Path(sys.prefix) / "java_home"  # written by make setup
    if "JAVA_HOME" not in os.environ and chosen.is_file():
        os.environ["JAVA_HOME"] = chosen.read_text().strip()
    home = os.environ.get("JAVA_HOME")
    if home and shutil.which("java", path=os.path.join(home, "bin")) is None:
        raise ZorderError(f"JAVA_HOME={home} holds no bin/java; set it to a Java 17 or newer, or unset it")
    if home:
        return Path(home)
    if (found := shutil.which("java")) is None:
        raise ZorderError("Spark needs Java 17 or newer and none was found; run make setup or set JAVA_HOME")
    return Path(found).resolve().parent.parent


def _archive_options(home: Path) -> str:
    """What makes Java read Spark's classes from their archive, if there is one, else load and verify them one by one.

    An archive that no longer fits (other jars, another class path) is passed over by Java, but it would say so on
    stdout, where `--json` has to stand alone.
    """
    archive = class_archive(home)
    if not archive.is_file():
        return ""
    return f'-XX:SharedArchiveFile="{archive}" -Xshare:auto -Xlog:cds*=off'


def session(extra: Mapping[str, str] | None = None, app_name: str = "zorder_pipeline") -> SparkSession:
    """The running session, or a new one with `spark_conf`; ``ZORDER_SPARK_CONF`` overrides ``extra``.

    Raises:
        ZorderError: Spark cannot be started (no Java, no jars, a setting that it refuses).
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    _quiet_queries()
    _quiet_calls()
    if (active := SparkSession.getActiveSession()) is not None:
        return active
    conf = {"spark.master": "local[*]"} | spark_conf(dict(extra or {}) | environment_conf())
    if options := _archive_options(java_home()):
        conf.setdefault("spark.driver.defaultJavaOptions", options)
    if conf["spark.master"].startswith("local"):  # logs are read by Python workers, which need this environment
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app_name)
    for key, value in conf.items():
        builder = builder.config(key, value)
    handler = signal.getsignal(signal.SIGINT)
    with launching() as printed:
        try:
            found = builder.getOrCreate()
        except (PySparkException, Py4JError) as error:
            ended = getattr(error, "getCondition", lambda: None)() == "JAVA_GATEWAY_EXITED"
            told = why_java_ended(printed[-1].ended()) if ended and printed else None
            reason = (told or reason_of(error)).rstrip(".")
            raise ZorderError(f"Spark could not be started ({reason}); check JAVA_HOME and spark.conf") from error
    if signal.getsignal(signal.SIGINT) is not handler and has_jvm(found):  # pyspark has set its own
        stop_jobs_on(signal.SIGINT, found, handler)
    return found


def _quiet_queries() -> None:
    """Keep pyspark from printing a JSON stack trace of every statement that fails: what is wrong is raised as well."""
    from pyspark.logger import PySparkLogger

    # by its own class: pyspark calls it with arguments that a plain logger of this name would refuse
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)


class _OfCalls(logging.Filter):
    """Passes what does not come from py4j."""

    def filter(self, record: logging.LogRecord) -> bool:
        return Path(record.pathname).parent.name != "py4j"


_OF_CALLS = _OfCalls()


def _quiet_calls() -> None:
    """Keep py4j from printing a stack trace of each call that is interrupted or finds Java gone: it raises as well.

    It logs these to the root logger as well as to its own; the filter is added once, however often it is asked for.
    """
    logging.getLogger().addFilter(_OF_CALLS)
    if (own := logging.getLogger("py4j")).level == logging.NOTSET:
        own.setLevel(logging.CRITICAL)
