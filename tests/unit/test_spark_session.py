"""What a session of ours sees to, as far as no Spark has to be started for it."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from zorder_pipeline import installing, spark
from zorder_pipeline.errors import ZorderError


def test_a_statement_that_fails_prints_no_stack_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pyspark logs each to stderr as JSON, besides raising it."""
    there = SimpleNamespace()
    monkeypatch.setattr(SparkSession, "getActiveSession", staticmethod(lambda: there))
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    monkeypatch.setattr(logger, "propagate", False)  # as pyspark does
    seen: list[logging.LogRecord] = []
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", seen.append)
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING)
    try:
        assert spark.session() is there  # type: ignore[comparison-overlap]
        logger.exception("no such column", errorClass="UNRESOLVED_COLUMN")
    finally:
        logger.removeHandler(handler)
    assert not seen
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("text", ["", ";", "spark.a=1", " spark.a = 1 ; spark.b=x=y;"])
def test_settings_of_the_environment_may_have_blanks(text: str) -> None:
    known = {"spark.a": "1", "spark.b": "x=y"}
    assert spark.environment_conf(text) == {name: known[name] for name in known if name in text}


@pytest.mark.parametrize("text", ["spark.a=1;secret", "=1"])
def test_what_is_no_setting_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ZorderError, match=r"^ZORDER_SPARK_CONF: part \d is no key=value") as error:
        spark.environment_conf(text)
    assert "secret" not in str(error.value)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The settings that a session is asked for, of which none is made."""
    found: dict[str, str] = {}

    def config(self: SparkSession.Builder, key: str, value: str) -> SparkSession.Builder:
        found[key] = value
        return self

    monkeypatch.setattr(SparkSession, "getActiveSession", staticmethod(lambda: None))
    monkeypatch.setattr(SparkSession.Builder, "config", config)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda _: None)
    return found


def test_every_session_hears_of_the_environment_s_settings(
    asked: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZORDER_SPARK_CONF", "spark.driver.memory=1g; spark.master=local[3]")
    spark.session({"spark.driver.memory": "2g", "spark.ui.enabled": "true"})
    wanted = {"spark.driver.memory": "1g", "spark.master": "local[3]", "spark.ui.enabled": "true"}
    assert {name: asked[name] for name in wanted} == wanted


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An environment without jars and archive, and a Java in it."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "an environment"))
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text('JAVA_VERSION="17.0.15"\n')
    return home


def test_an_archive_of_classes_is_used_by_the_java_that_it_was_made_by(installed: Path) -> None:
    archive = spark.class_archive(installed)
    assert spark._archive_options(installed) == ""
    archive.parent.mkdir(parents=True)
    archive.touch()
    assert f'-XX:SharedArchiveFile="{archive}"' in spark._archive_options(installed)
    (installed / "release").write_text('JAVA_VERSION="17.0.16"\n')
    assert spark._archive_options(installed) == ""


@pytest.mark.parametrize("given", [{}, {"spark.driver.defaultJavaOptions": "-Dmine=1"}])
def test_java_options_of_the_configuration_stand_before_ours(
    asked: dict[str, str], installed: Path, given: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark, "java_home", lambda: installed)
    archive = spark.class_archive(installed)
    archive.parent.mkdir(parents=True)
    archive.touch()
    spark.session(given)
    told = asked["spark.driver.defaultJavaOptions"]
    assert told == (given["spark.driver.defaultJavaOptions"] if given else spark._archive_options(installed))


def test_a_java_that_makes_no_archive_is_told(
    installed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`false` is such a Java: all it does is to end."""
    jars = spark.jar_folder()
    jars.mkdir(parents=True)
    (jars / "delta.jar").touch()
    monkeypatch.setattr(installing, "java_home", lambda: installed)
    monkeypatch.setattr(sys, "executable", "false")
    installing.main()
    assert capsys.readouterr().out.splitlines()[-1].startswith("Spark's classes are not archived (Java wrote none): ")
    assert os.listdir(jars.parent) == [jars.name]
