"""Writers of all kinds, and SIGKILL, during relayouts: the rows equal a serial replay of the commits every time."""

import contextlib
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import IO

import delta.exceptions  # noqa: F401 - Delta's conflicts arrive as Python exceptions
import pytest
from pyspark.sql import SparkSession

from tests.spark.writers import (
    RUST_KINDS,
    Model,
    Race,
    commits,
    create,
    log_folder,
    relayout,
    rows_at,
    rows_of,
    spec_for,
)

pytestmark = [
    pytest.mark.usefixtures("interpreted"),  # a thousand commits of plans that are new each time
    pytest.mark.matrix,
]
ROOT = str(Path(__file__).resolve().parents[2])
PLAIN: dict[str, str] = {}
VECTORS = {"delta.enableDeletionVectors": "true"}


def check(race: Race, samples: int) -> Counter[str]:
    """The table against the replay; returns how many versions each kind made.

    Every version's number of rows is compared, and all rows of the last one and of ``samples`` others.
    """
    kinds: Counter[str] = Counter()
    tokens: set[str] = set()
    last = len(list(commits(race.path))) - 1
    sampled = {last, *random.Random(race.seed).sample(range(last), min(samples, last))}
    model: Model = {}
    for commit, model in race.replay():
        assert commit.rows == len(model), commit
        assert commit.operation != "OPTIMIZE" or not commit.data_changes, "streams would see these rows again"
        if commit.version in sampled:
            assert rows_at(race.spark, race.path, commit.version) == rows_of(model), commit
        known = race.succeeded.get(commit.token) or race.failed.get(commit.token)
        assert not (known and known.token in tokens), f"{known} was committed twice"
        assert commit.token not in race.failed, f"{known} was reported as failed and is committed"
        tokens.add(commit.token)
        kinds[known.kind if known else commit.operation] += 1
    # Delta's log store for local files renames over an entry that delta-rs made since it looked: no fault of a relayout
    gone = [op for token, op in race.succeeded.items() if token not in tokens and op.kind not in ("optimize",)]
    assert all(op.kind in RUST_KINDS for op in gone), f"lost: {gone}"
    assert len(gone) <= last // 200, gone
    assert rows_at(race.spark, race.path) == rows_of(model)
    assert all("\n" not in sentence and "nothing was committed" in sentence for sentence in race.lost)
    return kinds


def run(spark: SparkSession, path: str, seed: int, count: int, patience: float, rust: int) -> Race:
    race = Race(spark, path, seed, count, patience=patience)
    race.run(2, rust, [(spec_for("k"), spec_for("id", "k")), (spec_for("v", "id"),)])
    return race


@pytest.mark.parametrize(
    ("properties", "partitioned", "count"), [(PLAIN, False, 10), pytest.param(VECTORS, True, 8, marks=pytest.mark.slow)]
)
def test_concurrent_writers_and_relayouts_lose_and_double_no_row(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str], partitioned: bool, count: int
) -> None:
    path = create(spark, tmp_path / "t", properties, partitioned=partitioned, files=2 if partitioned else 5)
    race = run(spark, path, 1, count, 120, 0 if properties else 1)
    kinds = check(race, samples=2)
    assert kinds["OPTIMIZE"] + sum(race.relayouts.values()) > 0


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    ("properties", "partitioned", "count"),
    [(PLAIN, False, 400), (PLAIN, True, 300), (VECTORS, False, 150), (VECTORS, True, 150)],
)
def test_a_thousand_commits_by_writers_of_all_kinds_equal_their_serial_replay(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str], partitioned: bool, count: int
) -> None:
    path = create(spark, tmp_path / "t", properties, partitioned=partitioned, files=2 if partitioned else 5)
    race = run(spark, path, count, count, 7000, 0 if properties else 2)
    kinds = check(race, samples=20)
    assert sum(kinds.values()) > count
    assert race.relayouts["committed"] > 0
    assert {"append", "delete", "update", "merge"} <= kinds.keys()
    assert properties or set(RUST_KINDS) <= kinds.keys()


# ---------------------------------------------------------------------------------------------------------- kills

CHILD = """
import itertools, sys
from tests.spark.writers import relayout, spec_for
from zorder_pipeline.spark import session

spark = session({"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"})
specs = itertools.cycle([spec_for("k"), spec_for("id", "k")])
print(spark._jvm.java.lang.ProcessHandle.current().pid(), flush=True)
while True:
    for path in sys.argv[1:]:
        relayout(spark, path, next(specs), full=True)
"""


class Victim:
    """A process that relayouts tables for ever; it and its JVM are one process group."""

    def __init__(self, paths: list[str], log: IO[str]) -> None:
        environment = {**os.environ, "PYTHONPATH": ROOT}
        command = [sys.executable, "-c", CHILD, *paths]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, env=environment, start_new_session=True, cwd=ROOT
        )
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], 240)
        line = self.process.stdout.readline() if ready else b""
        if not line:
            self.kill()
        assert line, "the child did not start"
        self._jvm = os.pidfd_open(int(line))

    def kill(self, only_python: bool = False) -> None:
        """SIGKILL to both processes, or to Python alone, whose JVM then ends by itself; return when both are gone."""
        if only_python:
            self.process.kill()
        else:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        assert self.process.wait(60) == -signal.SIGKILL, "the child had ended before"
        if (jvm := getattr(self, "_jvm", None)) is not None:
            gone, _, _ = select.select([jvm], [], [], 120)
            os.close(jvm)
            assert gone, "the JVM outlived its Python process"


def names(paths: list[str], logs: bool) -> set[str]:
    """Files, also temporary ones, of the tables: log entries or data."""
    folders = [log_folder(path) if logs else Path(path) for path in paths]
    return {entry.name for folder in folders for entry in os.scandir(folder) if entry.is_file()}


def wait_for_moment(moment: str, seconds: float, paths: list[str], victim: Victim) -> None:
    """Until some seconds are over, or the next file appears in a table or its log."""
    if moment == "time":
        with contextlib.suppress(subprocess.TimeoutExpired):
            victim.process.wait(seconds)
        return
    before, deadline = names(paths, moment == "log"), time.monotonic() + 120
    while names(paths, moment == "log") <= before and time.monotonic() < deadline:
        os.sched_yield()  # the moment is shorter than any sleep


def kills(spark: SparkSession, folder: Path, count: int, seed: int) -> Counter[str]:
    """Kill a child ``count`` times and look at its tables after each; returns what the kills left."""
    rng, left = random.Random(seed), Counter[str]()
    paths = [
        create(spark, folder / "plain", rows=900, files=4),
        create(spark, folder / "vectors", VECTORS, rows=900, files=2, partitioned=True),
    ]
    spark.sql(f"DELETE FROM delta.`{paths[1]}` WHERE id % 9 = 4")  # its version 1
    before = {path: rows_at(spark, path) for path in paths}
    with (folder / "stderr").open("w+") as log:
        for number in range(count):
            was = {path: len(list(commits(path))) for path in paths}
            files = names(paths, logs=False)
            victim = Victim(paths, log)
            moment = ("time", "log", "data")[number % 3]
            wait_for_moment(moment, rng.uniform(0, 8), paths, victim)
            victim.kill(only_python=number % 4 == 3)
            left[moment] += 1
            for path in paths:
                history = list(commits(path))  # whole versions without a gap
                assert {commit.rows for commit in history[1:]} <= {len(before[path])}
                assert rows_at(spark, path) == before[path], (number, moment)
                left["committed"] += len(history) - was[path]
            left["with files of no version"] += names(paths, logs=False) > files
            if number % 10 == 0 or number == count - 1:
                for path in paths:
                    assert relayout(spark, path, spec_for("k"), full=True).committed
                    assert rows_at(spark, path) == before[path]
    return left


@pytest.mark.slow
def test_sigkill_leaves_a_whole_table_that_the_next_relayout_takes_up(spark: SparkSession, tmp_path: Path) -> None:
    left = kills(spark, tmp_path, 3, seed=3)
    assert sum(left[moment] for moment in ("time", "log", "data")) == 3


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_hundred_sigkills_at_random_moments_leave_a_whole_table(spark: SparkSession, tmp_path: Path) -> None:
    left = kills(spark, tmp_path, 100, seed=100)
    assert sum(left[moment] for moment in ("time", "log", "data")) == 100
    assert left["committed"] > 0
