"""What Python and a session's JVM hand each other."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import SparkSession

from zorder_pipeline.java import beside, items, java_class, sequence

SECRET = """
from pathlib import Path
from zorder_pipeline.spark import session

key = "spark.hadoop.fs.s3a.secret.key"
spark = session({"spark.master": "local[1]", "spark.driver.memory": "1g", key: "of nobody's concern"})
java = spark._jvm.java.lang.ProcessHandle.current().pid()
print("nobody" in Path(f"/proc/{java}/cmdline").read_text(), "local[1]" in Path(f"/proc/{java}/cmdline").read_text())
print(spark.conf.get(key), "|", spark.sparkContext._jsc.hadoopConfiguration().get(key.removeprefix("spark.hadoop.")))
spark.stop()
"""


def test_a_session_has_its_secrets_and_ps_shows_none() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "ZORDER_SPARK_CONF"}
    command = [sys.executable, "-c", SECRET]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "False True\nof nobody's concern | of nobody's concern\n"


@pytest.mark.parametrize(
    "texts",
    [
        [],
        [""],
        ["one"],
        ["", ""],
        ["a", "", "b", ""],
        ["p=a%20b/c.parquet", "café/ß 🦆", "tab\tand\rreturn", "back\\slash", "'quoted\"", "\x01\x1f"],
        ["two\nlines", "one"],
        [f"part-{i:05d}.parquet" for i in range(2_000)],
    ],
)
def test_a_list_of_texts_becomes_a_sequence_of_the_same(spark: SparkSession, texts: list[str]) -> None:
    assert items(sequence(spark, texts)) == texts


def test_many_texts_are_carried_over_in_few_calls(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    client = spark._jvm._gateway_client
    usual = client.send_command
    monkeypatch.setattr(client, "send_command", lambda *args, **kwargs: calls.append(args) or usual(*args, **kwargs))
    assert sequence(spark, [str(i) for i in range(5_000)]).size() == 5_000
    assert len(calls) < 50


def test_what_runs_beside_runs_in_the_same_session(spark: SparkSession) -> None:
    own = spark.newSession()
    own.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")

    def zone() -> str:
        active = java_class(own, "org.apache.spark.sql.classic.SparkSession").active()
        return str(active.conf().get("spark.sql.session.timeZone"))

    own.sparkContext.setLocalProperty("of.this", "thread")
    try:
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(beside(own, zone)).result() == "Asia/Tokyo"
            told = beside(own, lambda: own.sparkContext.getLocalProperty("of.this"))
            assert pool.submit(told).result() == "thread"
    finally:
        own.sparkContext.setLocalProperty("of.this", None)


def test_what_java_prints_later_reaches_the_stderr_of_the_moment(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    """Pytest puts a file of its own in the place of descriptor 2, long after the JVM was launched, as Dagster does."""
    java_class(spark, "java.lang.System").err.println("a line of Java's log")
    seen, end = "", time.monotonic() + 20
    while "a line of Java's log" not in seen and time.monotonic() < end:
        time.sleep(0.01)
        seen += capfd.readouterr().err
    assert "a line of Java's log" in seen
