"""Ctrl-C while Spark works: its jobs end, and one sentence is all that is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

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


def test_an_interruption_stops_spark_and_is_told_in_a_sentence() -> None:
    words = [sys.executable, "-c", PROGRAM]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        assert process.stderr is not None
        try:
            while "at work" not in (line := process.stderr.readline()):
                assert line, "it ended before it was interrupted"
            time.sleep(3)
            os.killpg(process.pid, signal.SIGINT)  # to all of the group, as a terminal does
            shown, told = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert (
        told.lstrip() == "zorder: interrupted; what was not committed by then is undone, and the same command goes on\n"
    )
    assert shown == "idle\n"
