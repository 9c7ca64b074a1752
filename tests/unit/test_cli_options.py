"""What the command line refuses before it starts Spark, in one sentence."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from zorder_pipeline.cli import common, main


def refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    """What a command says on stderr when it stops with an error."""
    monkeypatch.setattr(sys, "argv", ["zorder", *words])
    monkeypatch.setattr(common.err, "file", sys.stderr)
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code in (1, 2)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Traceback" not in shown.err
    return shown.err


@pytest.mark.parametrize(
    ("out", "sentence"),
    [
        ("nowhere/plan.json", "nowhere does not exist; make that folder first"),
        (".", ". is a folder; name a file in it"),
    ],
)
def test_a_plan_that_cannot_be_written_is_refused_before_it_is_learned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, out: str, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    told = refused(capsys, monkeypatch, "layout", "--table", "/t", "--bits", "a:1", "--out", out)
    assert told.startswith(f"zorder: --out {out} cannot be written: ")
    assert sentence in told


def test_an_unknown_time_zone_is_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    told = refused(capsys, monkeypatch, "ingest", "--log", "x.sql", "--time-zone", "Europe/Berlln")
    assert told == "zorder: --time-zone must be a time zone name such as Europe/Berlin, not Europe/Berlln\n"


def test_a_java_home_without_java_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", staticmethod(lambda: None))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    told = refused(capsys, monkeypatch, "inspect", "--table", "/t")
    assert f"JAVA_HOME={tmp_path} holds no bin/java; set it to a Java 17 or newer" in told


def test_without_a_command_the_help_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = refused(capsys, monkeypatch)
    assert told.startswith("Usage: zorder")
    assert "\n  learn " in told
