"""What Java prints while Spark starts: the reason is found, the rest shown nowhere, and later lines are passed on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import pytest
from pyspark import SparkConf
from pyspark.core import context
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from zorder_pipeline import spark
from zorder_pipeline.errors import ZorderError
from zorder_pipeline.launch import JavaErrors, launching, why_java_ended
from zorder_pipeline.launch_conf import on_command_line

REFUSED = """WARNING: Using incubator modules: jdk.incubator.vector
Exception in thread "main" org.apache.spark.SparkException: Master must either be yarn or start with spark
\tat org.apache.spark.deploy.SparkSubmit.error(SparkSubmit.scala:1068)
"""
UNRESOLVED = """:: loading settings :: url = jar:file:/x/ivy-2.5.3.jar!/org/apache/ivy/core/settings/ivysettings.xml
Ivy Default Cache set to: /root/.ivy2.5.2/cache
\t\tmodule not found: org.apache.hadoop#hadoop-aws;9.9.9
Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: org.apache.hadoop#hadoop-aws;9.9.9: not \
found]
\tat org.apache.spark.util.MavenUtils$.resolveMavenCoordinates(MavenUtils.scala:522)
"""


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (REFUSED, "Master must either be yarn or start with spark"),
        (UNRESOLVED, "[unresolved dependency: org.apache.hadoop#hadoop-aws;9.9.9: not found]"),
        (
            "Picked up JAVA_TOOL_OPTIONS: x\nInvalid maximum heap size: -Xmxlots\nError: No\n",
            "Invalid maximum heap size: -Xmxlots",
        ),
        ("Error occurred during initialization of VM\nToo small maximum heap\n", "Too small maximum heap"),
        (
            "Error: LinkageError\n\tjava.lang.UnsupportedClassVersionError: a/B has been compiled\n",
            "a/B has been compiled",
        ),
        ('Exception in thread "main" a.b.YException\nCaused by: java.io.IOException: No space\n', "No space"),
        ("WARNING: x\n\n", None),
    ],
)
def test_the_reason_is_found_in_what_java_printed(printed: str, reason: str | None) -> None:
    assert why_java_ended(printed) == reason


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not done() and time.monotonic() < end:
        time.sleep(0.01)
    assert done()


def test_what_comes_before_a_session_is_kept_and_what_comes_after_is_passed_on(
    capfd: pytest.CaptureFixture[str],
) -> None:
    errors, seen = JavaErrors(), [""]

    def passed(text: str) -> bool:
        seen[0] += capfd.readouterr().err
        return text in seen[0]

    os.write(errors.end, b"before\n")
    until(lambda: b"before" in errors._kept)
    errors.ready()
    os.write(errors.end, b"after\n")
    until(lambda: passed("after\n"))
    assert "before" not in seen[0]
    os.close(errors.end)
    errors._reader.join(20)
    assert not errors._reader.is_alive()


def test_java_never_waits_for_us_and_the_newest_of_it_is_kept(capfd: pytest.CaptureFixture[str]) -> None:
    errors = JavaErrors()
    for _ in range(40):
        os.write(errors.end, b"x" * 65_536)
    os.write(errors.end, REFUSED.encode())
    os.close(errors.end)
    assert why_java_ended(errors.ended()) == "Master must either be yarn or start with spark"
    assert capfd.readouterr().err == ""


def test_a_jvm_that_is_not_ours_to_launch_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = context.launch_gateway  # type: ignore[attr-defined]
    with launching() as printed:
        assert context.launch_gateway is not launch  # type: ignore[attr-defined]
    assert not printed
    assert context.launch_gateway is launch  # type: ignore[attr-defined]


def test_why_java_ended_stands_in_the_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def launch(conf: Any, popen_kwargs: dict[str, int]) -> None:
        os.write(popen_kwargs["stderr"], REFUSED.encode())
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    monkeypatch.setattr(context, "launch_gateway", launch)
    monkeypatch.setattr(SparkSession, "getActiveSession", staticmethod(lambda: None))
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda _: context.launch_gateway(None))
    with pytest.raises(ZorderError) as error:
        spark.session({"spark.master": "nope"})
    sentence = (
        "Spark could not be started (Master must either be yarn or start with spark); check JAVA_HOME and spark.conf"
    )
    assert str(error.value) == sentence
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "name",
    [
        "spark.hadoop.fs.s3a.secret.key",
        "spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net",
        "spark.hadoop.fs.azure.sas.fixed.token.lake.dfs.core.windows.net",
        "spark.hadoop.fs.some.userinfo",
        "spark.hadoop.google.cloud.auth.service.account.private.key",
        "spark.hadoop.javax.jdo.option.ConnectionPassword",
        "spark.executorEnv.AWS_ACCESS_KEY_ID",
        "spark.sql.catalog.polaris.credential",
    ],
)
def test_what_may_be_a_secret_is_not_on_java_s_command_line(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    launched: list[Any] = []
    monkeypatch.setattr(context, "launch_gateway", lambda conf, popen_kwargs: launched.append(conf))
    kept = {"spark.master": "local[1]", "spark.hadoop.hadoop.security.authentication": "kerberos"}
    whole = SparkConf(loadDefaults=False).setAll([*kept.items(), (name, "of nobody's concern")])
    with launching():
        context.launch_gateway(whole)  # type: ignore[attr-defined]
    assert dict(launched[0].getAll()) == kept


@pytest.mark.parametrize(
    ("jars", "fetched"),
    [("s3a://lake/b.jar", True), ("/a.jar, HDFS://b.jar", True), ("/a.jar", False), ("https://b/c.jar,file:/d", False)],
)
def test_java_is_launched_with_the_settings_of_the_store_that_its_jars_are_fetched_from(
    jars: str, fetched: bool
) -> None:
    conf = {"spark.jars": jars, "spark.hadoop.fs.s3a.secret.key": "x"}
    assert (on_command_line(conf) == conf) is fetched
