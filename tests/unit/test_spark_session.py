"""What a session of ours sees to, as far as no Spark has to be started for it."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from zorder_pipeline import spark


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
