"""Ctrl-C, or SIGTERM, while Spark works: its jobs end, and one sentence is all that is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

PROGRAM = """
import sys, time
from zorder_pipeline.cli import common, entry

@common.command
def work():
    "Works for hours, and tells whether Spark has stopped when it is interrupted."
    spark = common.start_spark("work")
    try:
        print("at work", file=sys.stderr, flush=True)
        spark.range(0, 10**15, 1, 2).selectExpr("sum(hash(id) % 7)").collect()
    except KeyboardInterrupt:
        for _ in range(100):
            if not spark.sparkContext.statusTracker().getActiveJobsIds():
                print("idle", flush=True)
                break
            time.sleep(0.1)
        raise

entry.zorder.add_command(work)
sys.argv = ["zorder", "work"]
entry.main()
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)]
)
def test_an_interruption_stops_spark_and_is_told_in_a_sentence(number: signal.Signals, code: int) -> None:
    words = [sys.executable, "-c", PROGRAM]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        assert process.stderr is not None
        try:
            while "at work" not in (line := process.stderr.readline()):
                assert line, "it ended before it was interrupted"
            time.sleep(3)
            # a terminal interrupts all of the group, a service manager ends its one process
            (os.killpg if number is signal.SIGINT else os.kill)(process.pid, number)
            shown, told = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == code
    assert (
        told.lstrip()
        == "zorder: interrupted; what was not committed by then is no part of any table, and the same command goes on\n"
    )
    assert shown == "idle\n"
