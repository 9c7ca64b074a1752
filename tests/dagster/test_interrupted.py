"""A run that somebody stops: by hand, or with "terminate" in Dagster's UI."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from dagster import AssetKey, DagsterInstance, Definitions, Failure, asset

from zorder_pipeline.assets.run import _execute

pytestmark = pytest.mark.dagster

PROGRAM = """
import sys, time
from dagster import AssetKey, DagsterInstance, Definitions, asset
from zorder_pipeline.assets.common import DeltaSparkResource
from zorder_pipeline.assets.run import _execute

@asset
def first(spark: DeltaSparkResource) -> None:
    spark.session.range(1).count()

@asset(deps=[first])
def second(spark: DeltaSparkResource) -> None:
    session = spark.session
    try:
        print("at work", flush=True)
        session.range(0, 10**15, 1, 2).selectExpr("sum(hash(id) % 7)").collect()
    except BaseException as error:
        waited = 0
        while session.sparkContext.statusTracker().getActiveJobsIds() and waited < 100:
            waited += 1
            time.sleep(0.1)
        idle, answers = waited < 100, [session.range(n).count() for n in (3, 5, 8)]
        print(type(error).__name__, "idle" if idle else "busy", answers, flush=True)
        raise

conf = {"spark.master": "local[2]", "spark.ui.enabled": "false"}
definitions = Definitions([first, second], resources={"spark": DeltaSparkResource(spark_config=conf)})
with DagsterInstance.ephemeral() as instance:
    try:
        _execute(definitions, None, [AssetKey(["first"]), AssetKey(["second"])], instance, None)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_terminated_step_stops_its_jobs_and_cleans_up_with_answers_of_its_own(number: signal.Signals) -> None:
    """Dagster puts its handlers in the place of the session's in each step after the one that started it."""
    words = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "at work\n"
            time.sleep(3)
            process.send_signal(number)
            shown, _ = process.communicate(timeout=90)
        finally:
            process.kill()
    assert shown == "DagsterExecutionInterruptedError idle [3, 5, 8]\ninterrupted\n"


def test_an_interrupted_run_is_no_failed_table() -> None:
    @asset
    def interrupted() -> None:
        raise KeyboardInterrupt

    @asset
    def wrapped() -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            error.add_note("version 3 was committed and not verified")
            raise Failure("it stopped") from error

    @asset
    def failed() -> None:
        raise Failure("no such table")

    definitions = Definitions([interrupted, wrapped, failed])
    with DagsterInstance.ephemeral() as instance:
        noted: dict[str, list[str]] = {"interrupted": [], "wrapped": ["version 3 was committed and not verified"]}
        for name, notes in noted.items():
            with pytest.raises(KeyboardInterrupt) as caught:
                _execute(definitions, None, [AssetKey([name])], instance, None)
            assert getattr(caught.value, "__notes__", []) == notes
        assert not _execute(definitions, None, [AssetKey(["failed"])], instance, None).success
