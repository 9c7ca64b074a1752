"""What breaks during a relayout (tasks, executors, disk, log) and who runs beside it (streams, MERGEs)."""

import contextlib
import json
import os
import resource
import select
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import delta.exceptions  # noqa: F401 - Delta's conflicts arrive as Python exceptions
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.spark.writers import (
    COLUMNS,
    commits,
    create,
    is_conflict,
    log_folder,
    orphans,
    relayout,
    rows_at,
    spec_for,
    versions,
)
from zorder_pipeline.errors import PlanError, ZorderError
from zorder_pipeline.relayout.commit import Transaction
from zorder_pipeline.relayout.snapshot import open_table

ROOT = str(Path(__file__).resolve().parents[2])


def refused(spark: SparkSession, path: str, clean: bool = True) -> str:
    """The one sentence of a relayout that has to fail and to leave the table as it was.

    Files of a write that fails midway bear random names, so only VACUUM can tell them from those of other writers, and
    those of a commit that fails may become part of the table yet: then ``clean`` is False.
    """
    before, version = rows_at(spark, path), versions(path)
    with pytest.raises(ZorderError) as caught:
        relayout(spark, path, spec_for("k"), verify="hash")
    assert versions(path) == version
    assert rows_at(spark, path) == before
    assert not clean or orphans(path) == set()
    sentence = str(caught.value)
    assert path in sentence
    assert "\n" not in sentence
    assert len(sentence) < 500
    return sentence


def before_commit(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Run ``act`` once, when the files of the first attempt are written."""
    write, pending = Transaction.write, [act]

    def interrupted(self: Transaction, *args: Any, **options: Any) -> Any:
        result = write(self, *args, **options)
        if pending:
            pending.pop()()
        return result

    monkeypatch.setattr(Transaction, "write", interrupted)


# ------------------------------------------------------------------------------------------------ tasks, executors


def arm(spark: SparkSession) -> None:
    """Let the next task that meets `failing_once` fail."""
    spark._jvm.java.lang.System.setProperty("zorder.fault", "armed")  # type: ignore[union-attr]


def failing_once(rows: DataFrame) -> DataFrame:
    """``rows``, of which one fails its task on the first try; tasks run in the JVM of the session here."""
    spent = "reflect('java.lang.System', 'setProperty', 'zorder.fault', 'spent') = 'armed'"
    value = F.expr(f"IF(id = 777 AND {spent}, CAST(raise_error('injected') AS BIGINT), v)")
    return rows.select(*(value.alias("v") if name == "v" else F.col(name) for name in rows.columns))


def inject(monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    """Put `failing_once` into the stage that reads or the one that writes."""
    read, write = Transaction.input_rows, Transaction.write
    if stage == "read":
        monkeypatch.setattr(Transaction, "input_rows", lambda self: failing_once(read(self)))
    else:
        monkeypatch.setattr(
            Transaction, "write", lambda self, rows, *rest, **more: write(self, failing_once(rows), *rest, **more)
        )


@pytest.mark.parametrize("stage", ["read", "write"])
def test_a_task_that_fails_for_good_changes_nothing_and_is_told_in_one_sentence(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    path = create(spark, tmp_path / "t")
    inject(monkeypatch, stage)
    arm(spark)  # local[2] tries a task once
    assert "injected" in refused(spark, path, clean=stage == "read")


RETRIED = """
import json, sys
import pytest
from tests.spark.test_faults import arm, inject
from tests.spark.writers import orphans, relayout, rows_at, spec_for
from zorder_pipeline.spark import session

spark = session({"spark.master": "local[2,4]", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"})
for stage, column in (("read", "k"), ("write", "id")):
    with pytest.MonkeyPatch.context() as patch:
        inject(patch, stage)
        arm(spark)
        done = relayout(spark, sys.argv[1], spec_for(column), verify="hash")
    spent = spark._jvm.java.lang.System.getProperty("zorder.fault")
    print(json.dumps([stage, spent, done.committed, done.rows]), flush=True)
"""


def in_child(code: str, *arguments: str) -> list[list[Any]]:
    """The JSON lines that a program prints."""
    environment = {**os.environ, "PYTHONPATH": ROOT}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=ROOT, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]


@pytest.mark.slow
def test_a_task_that_fails_once_is_retried_and_no_row_is_lost_or_doubled(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark, tmp_path / "t")
    before = rows_at(spark, path)
    assert in_child(RETRIED, path) == [["read", "spent", True, 2000], ["write", "spent", True, 2000]]
    assert [commit.rows for commit in commits(path)] == [2000] * 3
    assert rows_at(spark, path) == before


EXECUTOR_LOST = """
import json, os, signal, sys, time
from pathlib import Path
from tests.spark.writers import relayout, spec_for
from zorder_pipeline.relayout.commit import Transaction
from zorder_pipeline.spark import session

spark = session({
    "spark.master": "local-cluster[2,1,1024]", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g",
    "spark.executor.memory": "512m", "spark.sql.adaptive.enabled": "false",
})
driver = spark._jvm.java.lang.ProcessHandle.current().pid()

def executors():
    threads = Path(f"/proc/{driver}/task").iterdir()  # each may have started one of them, or a command of Hadoop's
    children = [p for t in threads for p in (t / "children").read_text().split()]
    return [int(p) for p in children if "CoarseGrainedExecutor" in told(p)]

def told(process):
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:  # it has ended
        return ""

spark.range(100).repartition(4).count()
end = time.monotonic() + 120  # on a slow machine the second one is still starting
while len(before := executors()) < 2 and time.monotonic() < end:
    time.sleep(0.2)
write, pending = Transaction.write, [True]

def losing_one(self, rows, *rest, **more):
    if pending and pending.pop():  # the histogram's shuffle files go with it, and running tasks
        os.kill(before[0], signal.SIGKILL)
    return write(self, rows, *rest, **more)

Transaction.write = losing_one
done = relayout(spark, sys.argv[1], spec_for("k"), verify="hash")
print(json.dumps([len(before), done.committed, done.rows]), flush=True)
"""


@pytest.mark.slow
def test_the_loss_of_an_executor_costs_no_row(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark, tmp_path / "t")
    before = rows_at(spark, path)
    assert in_child(EXECUTOR_LOST, path) == [[2, True, 2000]]
    assert rows_at(spark, path) == before


# -------------------------------------------------------------------------------------------------------- the disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("may not mount a file system here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path, leave: int) -> Path:
    """A file that takes all but ``leave`` bytes of the disk."""
    filler, free = folder / "filler", os.statvfs(folder)
    filler.write_bytes(b"\0" * (free.f_bavail * free.f_frsize - leave))
    return filler


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["writing", "committing"])
def test_a_full_disk_leaves_the_table_as_it_was(
    spark: SparkSession, small_disk: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    path = create(spark, small_disk / "t")
    if moment == "writing":
        fill(small_disk, 12 << 10)
    else:
        before_commit(monkeypatch, lambda: fill(small_disk, 0))
    assert "No space left" in refused(spark, path, clean=False)
    (small_disk / "filler").unlink()
    assert relayout(spark, path, spec_for("k")).committed


@contextlib.contextmanager
def file_size_limit(spark: SparkSession, size: int) -> Iterator[None]:
    """No file that the JVM writes may be longer; works without being root, but shuffle files are meant, too."""
    process = int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    before = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.prlimit(process, resource.RLIMIT_FSIZE, before)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["writing", "committing"])
def test_a_file_that_may_not_grow_leaves_the_table_as_it_was(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    path = create(spark, tmp_path / "t", rows=4000)
    before, version = rows_at(spark, path), versions(path)
    with contextlib.ExitStack() as stack:
        if moment == "writing":
            stack.enter_context(file_size_limit(spark, 2000))
        else:
            before_commit(monkeypatch, lambda: stack.enter_context(file_size_limit(spark, 200)))
        with pytest.raises(ZorderError, match="could not be") as caught:
            relayout(spark, path, spec_for("k"))
    assert "\n" not in str(caught.value)
    assert (rows_at(spark, path), versions(path)) == (before, version)
    assert relayout(spark, path, spec_for("k")).committed


# --------------------------------------------------------------------------------------------------------- the log


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """No new file in the folder; a mode does not bind root, an attribute of ext4 and others does."""
    root = os.geteuid() == 0
    if root:
        attribute = ["chattr", "+i", str(folder)]
        if not shutil.which("chattr") or subprocess.run(attribute, capture_output=True, check=False).returncode:
            pytest.skip("root, and the file system has no immutable folders")
    else:
        folder.chmod(0o555)
    try:
        yield
    finally:
        if root:
            subprocess.run(["chattr", "-i", str(folder)], check=True)
        else:
            folder.chmod(0o755)


def test_a_read_only_log_leaves_the_table_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark, tmp_path / "t")
    with read_only(log_folder(path)):
        assert "left to VACUUM" in refused(spark, path, clean=False)
    assert relayout(spark, path, spec_for("k")).committed


def test_a_read_only_table_leaves_the_table_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark, tmp_path / "t")
    with read_only(Path(path)):
        refused(spark, path)
    assert relayout(spark, path, spec_for("k")).committed


@pytest.mark.slow
def test_a_listing_that_is_many_versions_late_is_caught_up(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark, tmp_path / "t")
    late = open_table(spark, path)
    assert len(late.files())
    for number in range(6):  # past a checkpoint
        spark.sql(f"INSERT INTO delta.`{path}` SELECT id, {COLUMNS['k']}, 7, {COLUMNS['p']} FROM range(9000, 9020)")
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 9000 OR id = {number}")
    before = rows_at(spark, path)
    done = relayout(spark, path, spec_for("k"), snapshot=late, verify="hash")
    assert done.committed
    assert rows_at(spark, path) == before


def test_an_interruption_after_the_commit_removes_no_file_of_the_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = create(spark, tmp_path / "t")
    before, commit = rows_at(spark, path), Transaction.commit

    def interrupted(self: Transaction, *args: Any, **options: Any) -> int:
        commit(self, *args, **options)
        raise KeyboardInterrupt  # Ctrl-C while Python waits: the JVM has committed, or will

    monkeypatch.setattr(Transaction, "commit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        relayout(spark, path, spec_for("k"))
    assert versions(path) == [0, 1]
    assert rows_at(spark, path) == before


class Unanswered:
    """Delta's transaction, whose commit gets no answer: the log entry is written when somebody asks for it."""

    def __init__(self, spark: SparkSession, txn: Any, late: list[Callable[[], object]]) -> None:
        self._spark, self._txn, self._late = spark, txn, late

    def __getattr__(self, name: str) -> Any:
        return getattr(self._txn, name)

    def commit(self, *given: Any) -> None:
        self._late.append(lambda: self._txn.commit(*given))
        java = self._spark._jvm.java  # type: ignore[union-attr]
        java.io.RandomAccessFile("/the/answer/is/lost", "r")


def test_a_log_entry_that_comes_late_finds_its_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = create(spark, tmp_path / "t")
    late: list[Callable[[], object]] = []
    begin: Callable[..., None] = Transaction.__init__

    def unanswered(self: Transaction, *given: Any) -> None:
        begin(self, *given)
        self.txn = Unanswered(spark, self.txn, late)

    monkeypatch.setattr(Transaction, "__init__", unanswered)
    before = rows_at(spark, path)
    told = refused(spark, path, clean=False)
    assert "could not be committed (/the/answer/is/lost (No such file or directory)); its log shows nothing" in told
    assert "the new files are left to VACUUM" in told
    assert len(late) == 1, "it is not tried again"
    late[0]()
    assert versions(path) == [0, 1]
    assert rows_at(spark, path) == before
    assert orphans(path) == set()


# ---------------------------------------------------------------------------------------------- those who run beside


@pytest.mark.slow
def test_a_streaming_reader_sees_every_row_once(spark: SparkSession, tmp_path: Path) -> None:
    path, sink = create(spark, tmp_path / "t", rows=600, files=6), str(tmp_path / "sink")
    source = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(path)
    query = source.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "c")).start(sink)
    try:
        for number in range(3):  # the first while the stream is still in its first snapshot
            assert relayout(spark, path, spec_for("k" if number % 2 else "id"), full=True).committed
            ids = f"range({600 + number * 10}, {610 + number * 10})"
            spark.sql(f"INSERT INTO delta.`{path}` SELECT id, {COLUMNS['k']}, 7, {COLUMNS['p']} FROM {ids}")
        assert query.isActive, query.exception()
        query.processAllAvailable()
    finally:
        query.stop()
    assert rows_at(spark, sink) == rows_at(spark, path)
    assert len(rows_at(spark, sink)) == 630


@pytest.mark.slow
def test_a_stream_into_the_table_is_not_aborted(spark: SparkSession, tmp_path: Path) -> None:
    path, origin = create(spark, tmp_path / "t", rows=600), create(spark, tmp_path / "origin", rows=400, files=8)
    rows = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(origin)
    moved = rows.selectExpr("id + 9000 AS id", "k", "v", "p").writeStream.format("delta")
    query = moved.option("checkpointLocation", str(tmp_path / "c")).start(path)
    try:
        for number in range(3):
            assert relayout(spark, path, spec_for("k" if number % 2 else "id"), full=True).committed
        query.processAllAvailable()
        assert query.exception() is None
    finally:
        query.stop()
    expected = {*range(600), *range(9000, 9400)}
    found = [row[0] for row in rows_at(spark, path)]
    assert (len(found), set(found)) == (1000, expected)


class Gate:
    """Stops a statement of another thread where it has read its version and not yet committed."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._token, arrived, go = folder / "token", folder / "arrived", folder / "go"
        self._token.touch()
        os.mkfifo(arrived)
        os.mkfifo(go)
        self._arrived, self._go = os.open(arrived, os.O_RDWR), os.open(go, os.O_RDWR)
        names = str(self._token), str(arrived), str(go)

        def wait(value: int) -> int:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(names[0])  # only one call waits
                with open(names[1], "w") as reached:
                    reached.write("x")
                with open(names[2]) as released:
                    released.read(1)
            return value

        self.function = F.udf(wait, "bigint")

    def meanwhile(self, statement: Callable[[], object], act: Callable[[], object]) -> BaseException | None:
        """Run ``act`` while ``statement`` stands at the gate; how the statement failed, if it did."""
        failures: list[BaseException] = []

        def run() -> None:
            try:
                statement()
            except Exception as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            reached, _, _ = select.select([self._arrived], [], [], 120)
            assert reached, failures
            act()
        finally:
            os.write(self._go, b"x")
            thread.join()
            os.close(self._arrived)
            os.close(self._go)
        return failures[0] if failures else None


def merge(condition: str, clauses: str) -> Callable[[SparkSession, str], Callable[[], object]]:
    def start(spark: SparkSession, path: str) -> Callable[[], object]:
        source = (
            f"(SELECT at_gate(id) AS id, {COLUMNS['k']} AS k, 5L AS v, {COLUMNS['p']} AS p FROM range(0, 400, 1, 1))"
        )
        text = f"MERGE INTO delta.`{path}` t USING {source} s ON t.id = s.id {condition} {clauses}"
        return lambda: spark.sql(text).collect()

    return start


def update(spark: SparkSession, path: str) -> Callable[[], object]:
    return lambda: spark.sql(f"UPDATE delta.`{path}` SET v = at_gate(v + 5) WHERE id < 400 AND p = 0").collect()


def append(spark: SparkSession, path: str) -> Callable[[], object]:
    text = f"SELECT at_gate(id), {COLUMNS['k']}, 5, {COLUMNS['p']} FROM range(9000, 9400, 1, 1)"
    return lambda: spark.sql(f"INSERT INTO delta.`{path}` {text}").collect()


UPDATE_MATCHED = "WHEN MATCHED THEN UPDATE SET v = s.v"
STATEMENTS: dict[str, Callable[[SparkSession, str], Callable[[], object]]] = {
    "merge": merge("", f"{UPDATE_MATCHED} WHEN NOT MATCHED THEN INSERT *"),
    "merge in a partition": merge("AND t.p = 0 AND s.p = 0", UPDATE_MATCHED),
    "insert-only merge": merge("", "WHEN NOT MATCHED THEN INSERT *"),
    "update": update,
    "append": append,
}


def aborts(spark: SparkSession, folder: Path, name: str, where: str, ours: bool) -> int:
    """Whether a statement is aborted by maintenance of the table that commits in its middle."""
    folder.mkdir()
    path = create(spark, folder / "t", rows=600, files=2, partitioned=True)
    gate = Gate(folder / "gate")
    # Spark takes no nondeterministic function in an UPDATE; elsewhere a deterministic one may be called while planning
    spark.udf.register("at_gate", gate.function if name == "update" else gate.function.asNondeterministic())

    def maintain() -> None:
        if ours:
            assert relayout(spark, path, spec_for("k"), where=where or None).committed
        else:
            spark.sql(f"OPTIMIZE delta.`{path}` {'WHERE ' + where if where else ''} ZORDER BY (k)").collect()
        assert versions(path) == [0, 1]

    failure = gate.meanwhile(STATEMENTS[name](spark, path), maintain)
    assert failure is None or is_conflict(failure) or "CONCURRENT" in str(failure), failure
    history = list(commits(path))
    assert history[1].rows == 600
    assert len(history) == (2 if failure else 3) or name == "insert-only merge"
    return int(failure is not None)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["", "p = 1"])
@pytest.mark.parametrize("name", STATEMENTS)
def test_others_are_aborted_no_more_often_than_by_optimize(
    spark: SparkSession, tmp_path: Path, name: str, where: str
) -> None:
    by_us = aborts(spark, tmp_path / "us", name, where, ours=True)
    by_optimize = aborts(spark, tmp_path / "optimize", name, where, ours=False)
    assert by_us <= by_optimize
    if name == "append" or (name in ("update", "merge in a partition") and where):
        assert by_us == 0


@pytest.mark.parametrize(
    ("change", "ending"),
    [
        ("ADD COLUMN extra INT", None),
        ("DROP COLUMN k", "column|schema"),
        pytest.param("RENAME COLUMN k TO c", "column|schema", marks=pytest.mark.slow),
    ],
)
def test_a_change_of_the_schema_in_between_is_followed_or_told_in_one_sentence(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, ending: str | None
) -> None:
    path = create(spark, tmp_path / "t", {"delta.columnMapping.mode": "name"})
    ids = spark.read.format("delta").load(path).orderBy("id").select("id", "v").collect()
    before_commit(monkeypatch, lambda: spark.sql(f"ALTER TABLE delta.`{path}` {change}"))
    if ending is None:
        assert relayout(spark, path, spec_for("k")).committed
    else:
        with pytest.raises(ZorderError, match=ending):
            relayout(spark, path, spec_for("k"))
        assert versions(path) == [0, 1]
    assert orphans(path) == set()
    assert spark.read.format("delta").load(path).orderBy("id").select("id", "v").collect() == ids


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (("DROP COLUMN k", "ADD COLUMN k STRING"), "column k of the plan's layout is now string; learn a new plan"),
        (("DROP COLUMN v",), "column v, by which the plan's layout breaks ties, is gone; learn a new plan"),
    ],
)
def test_another_attempt_is_refused_as_the_first_one_would_be(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: tuple[str, ...], said: str
) -> None:
    """By the old breakpoints all rows of a column of another type would have one key."""
    path = create(spark, tmp_path / "t", {"delta.columnMapping.mode": "name"}, rows=300, files=2)

    def changed() -> None:
        for change in changes:
            spark.sql(f"ALTER TABLE delta.`{path}` {change}")

    before_commit(monkeypatch, changed)
    with pytest.raises(PlanError) as refused:
        relayout(spark, path, replace(spec_for("k"), tie_break=("k", "v")))
    assert str(refused.value) == said
    assert versions(path) == list(range(1 + len(changes)))
    assert orphans(path) == set()
