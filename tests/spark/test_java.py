"""What Python and a session's JVM hand each other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import SparkSession

from zorder_pipeline.java import beside, items, java_class, sequence


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
