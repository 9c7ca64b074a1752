"""Peers in an environment of their own that cannot be run: the reason is one sentence. Nothing is installed here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from zorder_pipeline.benchmarks import foreign
from zorder_pipeline.benchmarks.foreign import PeerError
from zorder_pipeline.benchmarks.hudi import HUDI
from zorder_pipeline.benchmarks.iceberg import ICEBERG

JOB = {"sort_order": "day ASC", "paths": []}


def _program(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_job_in_a_clean_environment_says_what_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = '{"seconds": 1.5, "paths": ["\'$PYTHONPATH$SPARK_HOME$PYSPARK_GATEWAY_PORT\'"]}'
    monkeypatch.setenv(ICEBERG.variable, _program(tmp_path / "python", f"echo noise; echo '{told}'"))
    for name in ("PYTHONPATH", "SPARK_HOME", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.setenv(name, "/elsewhere")
    assert ICEBERG.run(JOB, tmp_path, "day ASC") == {"seconds": 1.5, "paths": [""]}
    assert json.loads((tmp_path / "job.json").read_text()) == JOB


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("Caused by: java.lang.Exception: first\\nCaused by: java.io.IOException: disk full\\nError: 1", "disk full"),
        ("java.lang.RuntimeException: [unresolved dependency: a#b;1: not found]\\nGatewayError: x", "unresolved"),
        ("ModuleNotFoundError: No module named pyspark", "No module named pyspark"),
        ("killed", "killed"),
        ("", "no reason given"),
    ],
)
def test_a_job_that_fails_is_told_with_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, reason: str
) -> None:
    monkeypatch.setenv(ICEBERG.variable, _program(tmp_path / "python", f"printf '{said}' >&2; exit 1"))
    with pytest.raises(PeerError, match=f"rewrite by day ASC failed: .*{reason}"):
        ICEBERG.run(JOB, tmp_path, "day ASC")


@pytest.mark.parametrize("said", ["", "done", "[1]", "5", '{"seconds": 1.5}', '{"seconds": null, "paths": []}'])
def test_a_job_that_does_not_say_what_it_did_is_a_peer_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setenv(ICEBERG.variable, _program(tmp_path / "python", f"echo '{said}'"))
    with pytest.raises(PeerError, match=r"^Iceberg's rewrite by day ASC ended without saying what it did: "):
        ICEBERG.run(JOB, tmp_path, "day ASC")


def test_a_python_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ICEBERG.variable, "/nowhere/python")
    with pytest.raises(PeerError, match="/nowhere/python"):
        ICEBERG.run(JOB, tmp_path, "day ASC")


def test_an_environment_that_cannot_be_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ICEBERG.variable, raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))

    def refused(folder: Path, with_pip: bool) -> None:
        raise subprocess.CalledProcessError(1, ["ensurepip"])

    monkeypatch.setattr(foreign.venv, "create", refused)
    with pytest.raises(
        PeerError, match=r"pyspark 4\.0\.4.* could not be installed: .*ensurepip.*ZORDER_ICEBERG_PYTHON"
    ):
        ICEBERG.python()


def test_formats_have_environments_of_their_own() -> None:
    assert ICEBERG.pyspark != HUDI.pyspark
    assert ICEBERG.variable != HUDI.variable
    folder = Path(foreign.__file__).parent
    assert all((folder / format_.job).is_file() for format_ in (ICEBERG, HUDI))


def test_the_environment_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ICEBERG.variable, raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    made: list[Path] = []

    def create(folder: Path, with_pip: bool) -> None:
        made.append(folder)
        (folder / "bin").mkdir(parents=True)
        _program(folder / "bin" / "python", 'echo "$@" >> "$0.log"')

    monkeypatch.setattr(foreign.venv, "create", create)
    assert ICEBERG.python() == ICEBERG.python() == str(made[0] / "bin" / "python")
    assert (made[0] / "bin" / "python.log").read_text() == "-m pip install --quiet pyspark==4.0.4\n"
