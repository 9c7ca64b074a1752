"""The recorder: what a session asks arrives in the state's query log, once, and nothing of it disturbs the session."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Literal

import pytest
from pyspark.sql import SparkSession

import zorder_pipeline
from tests.spark.gathering import gathered
from zorder_pipeline.errors import UnsupportedTableError, ZorderError
from zorder_pipeline.pipeline import stored_log
from zorder_pipeline.pipeline.reading.recording import Recording
from zorder_pipeline.query_log import recorder
from zorder_pipeline.query_log.intake.store import LogStore
from zorder_pipeline.query_log.spool import moved_to


@pytest.mark.parametrize("form", ["{}", pytest.param("file://{}", marks=pytest.mark.slow)])
def test_executions_become_queries_of_the_state(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(recorder, "MOST_QUERIES", 2)  # so that the queue is spilled on the way
    path, state = str(tmp_path / "t"), form.format(tmp_path / "state")
    spark.range(100).selectExpr("id", "concat('c', id) AS c").write.format("delta").save(path)
    with zorder_pipeline.record(spark, state=state, tables={"mine": path}, spool=str(tmp_path / "spool")) as recording:
        frame = spark.read.format("delta").load(path)
        frame.where("id > 90").collect()
        frame.where("c LIKE '%7%' AND id < 5").count()
        spark.sql(f"SELECT max(id) FROM delta.`{path}` WHERE id IN (1, 2)").collect()
        recording.recorder.wait()
        assert (recording.recorder.noted, recording.recorder.dropped) == (3, 0)
        assert len(list((tmp_path / "spool").glob("*.jsonl"))) == 1
        assert recording.flush() == 3
        assert recording.flush() == 0  # nothing twice, and its own work is not recorded
        with pytest.raises(Exception, match="zero"):
            spark.sql(f"SELECT raise_error('zero') FROM delta.`{path}` WHERE id = 3").collect()
    spark.read.format("delta").load(path).where("id = 77").collect()  # after the end
    queries = stored_log(spark, state).of_table(["mine"])
    assert sorted(query.predicate.to_sql() for query in queries) == [
        "CONTAINS(c, '7') AND id < 5",
        "id > 90",
        "id IN (1, 2)",
    ]
    assert all(query.timestamp and query.duration_ms is not None and query.user for query in queries)
    assert not list((tmp_path / "spool").iterdir())


def test_what_is_lost_is_told_once_at_the_end(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "LARGEST_PLAN", 10)
    path, state, spool = (str(tmp_path / name) for name in ("t", "state", "spool"))
    spark.range(5).write.format("delta").save(path)
    recording = zorder_pipeline.record(spark, state=state, tables={"t": path}, spool=spool, every=None)
    assert repr(recording) == f"<Recording into {state}: 0 executions noted, 0 lost>"
    for _ in range(2):
        spark.read.format("delta").load(path).where("id = 1").collect()
    with pytest.warns(UserWarning, match="^2 executions were not recorded: 2 with plans of more .*eventLog") as told:
        recording.stop()
    assert [one.filename for one in told] == [__file__]
    assert repr(recording).endswith("0 executions noted, 2 lost>")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recording.stop()  # it has been told


@pytest.mark.parametrize("action", ["always", "error"])
def test_what_is_lost_hides_neither_the_work_s_failure_nor_what_was_noted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: Literal["always", "error"]
) -> None:
    path, state, spool = (str(tmp_path / name) for name in ("t", "state", "spool"))
    spark.range(5).write.format("delta").save(path)

    def work() -> None:
        with zorder_pipeline.record(spark, state=state, tables={"t": path}, spool=spool, every=None) as recording:
            spark.read.format("delta").load(path).where("id = 1").collect()
            recording.recorder.wait()
            monkeypatch.setattr(recorder, "LARGEST_PLAN", 10)
            spark.read.format("delta").load(path).where("id = 2").collect()
            raise ValueError("the user's own")

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter(action)
        with pytest.raises(ValueError, match="the user's own"):
            work()
    ours = [str(one.message)[:31] for one in told if one.category is UserWarning]  # py4j's sockets warn, too
    assert ours == ["1 execution was not recorded: 1"] * (action == "always")
    assert [query.predicate.to_sql() for query in stored_log(spark, state).queries] == ["id = 1"]


def test_a_recording_that_was_stopped_notes_nothing_more_and_the_next_one_nothing_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, state, spool = (str(tmp_path / name) for name in ("t", "state", "spool"))
    spark.range(50).write.format("delta").save(path)

    def ask(id: int, session: SparkSession = spark) -> None:
        session.read.format("delta").load(path).where(f"id = {id}").collect()
        session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()

    def listening() -> int:
        return len(spark._jsparkSession.listenerManager().listListeners())

    before = listening()
    first = zorder_pipeline.record(spark, state=state, tables={"t": path}, spool=spool, every=None)
    assert listening() == before + 1
    ask(1)
    clone = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    first.stop()
    assert listening() == before
    ask(2)
    ask(3, clone)  # which has the listeners that there were
    with zorder_pipeline.record(spark, state=state, tables={"t": path}, spool=spool, every=None) as second:
        ask(4)
    ask(5)
    assert (first.recorder.noted, second.recorder.noted) == (1, 1)
    log = stored_log(spark, state)
    assert [query.predicate.to_sql() for query in log.queries] == ["id = 1", "id = 4"]
    assert not list((tmp_path / "spool").iterdir())


@pytest.mark.matrix
def test_scans_by_statistics_of_ours_are_queries_and_rewrites_are_none(spark: SparkSession, tmp_path: Path) -> None:
    path, state, late = str(tmp_path / "t"), str(tmp_path / "state"), "c LIKE '%late%'"
    rows = spark.range(20).selectExpr("id", "IF(id < 5, 'late', 'x') AS c").repartitionByRange(4, "id")
    rows.write.format("delta").option("delta.enableDeletionVectors", "false").save(path)
    gathered(spark, path, state, late)
    with zorder_pipeline.record(spark, state=state, tables={"mine": path}, spool=str(tmp_path / "spool")):
        assert len(zorder_pipeline.scan(spark, path, late, state=state).inputFiles()) < 4
        assert zorder_pipeline.scan(spark, path, late, state=state).count() == 5
        spark.sql(f"DELETE FROM delta.`{path}` WHERE c LIKE '%ate' AND id < 3")
    queries = stored_log(spark, state).of_table(["mine"])
    assert sorted(query.predicate.to_sql() for query in queries) == [
        "CONTAINS(c, 'late')",
        "ENDSWITH(c, 'ate') AND id < 3",
    ]


@pytest.mark.matrix
def test_a_recording_of_other_tables_takes_nothing_of_another(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    state, tables = str(tmp_path / "state"), {name: str(tmp_path / name) for name in "ab"}
    for path in tables.values():
        spark.range(5).write.format("delta").save(path)
    both = [zorder_pipeline.record(spark, state=state, tables={n: path}, every=None) for n, path in tables.items()]
    for path in tables.values():
        spark.read.format("delta").load(path).where("id = 3").collect()
    both[1].recorder.wait()
    both[1].recorder.spill()
    for recording in both:
        recording.stop()
    log = stored_log(spark, state)
    assert [len(log.of_table([name])) for name in tables] == [1, 1]


def test_a_cell_that_is_run_again_goes_on_with_the_recording(spark: SparkSession, tmp_path: Path) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    spark.range(5).write.format("delta").save(path)

    def begun(tables: dict[str, str], spool: str = "spool", every: float | None = None, end: str = "") -> Recording:
        return zorder_pipeline.record(spark, state=state + end, tables=tables, spool=str(tmp_path / spool), every=every)

    first = begun({"t": path})
    assert begun({"t": path}) is begun({"t": path}, end="/") is first
    refused = r"recorded into .*/state already \(tables: t; every: None; spool: .*/spool\), .* stop\(\) that recording"
    for tables in ({"t": path, "u": "u"}, {"u": path}, {}):
        with pytest.raises(ZorderError, match=refused):
            begun(tables)
    with pytest.raises(ZorderError, match=refused):
        begun({"t": path}, every=60.0)
    beside = begun({"u": str(tmp_path / "u")}, "another")
    assert beside is not first
    spark.read.format("delta").load(path).where("id = 3").collect()
    first.recorder.wait()
    assert first.recorder.noted == 1
    for recording in (first, beside):
        recording.recorder.stop()
    (spilled,) = (tmp_path / "spool").iterdir()
    assert len(spilled.read_text().splitlines()) == 3, "who asked, and the begin and end of one execution"
    again = begun({"t": path})
    assert again is not first
    again.recorder.stop()


@pytest.mark.parametrize("name", ["x/../state", "my state"])
def test_its_own_state_is_not_recorded_however_it_is_named(spark: SparkSession, tmp_path: Path, name: str) -> None:
    state, other = f"{tmp_path}/{name}", str(tmp_path / "state_of_the_art")
    for path in (f"{state}/query_log", other):
        spark.range(3).write.format("delta").save(path)
    recording = zorder_pipeline.record(spark, state=state, spool=str(tmp_path / "spool"), every=None)
    for path in (f"{state}/query_log", other):
        spark.read.format("delta").load(path).where("id = 1").collect()
    spark.read.parquet(f"{state}/query_log").where("id = 1").collect()
    recording.recorder.stop()
    assert recording.recorder.noted == 1


def test_a_folder_for_spilled_files_may_be_relative(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = recorder.Recorder(spark, "spool")
    found._lines = ["{}"]
    found.spill()
    assert moved_to(spark, found.spool, str(tmp_path / "moved")) == 1
    assert len(list((tmp_path / "moved").glob("*.jsonl"))) == 1


def test_a_block_within_a_block_does_not_end_the_recording(spark: SparkSession, tmp_path: Path) -> None:
    state, spool = str(tmp_path / "state"), str(tmp_path / "spool")
    with zorder_pipeline.record(spark, state=state, spool=spool, every=None) as outer:
        with zorder_pipeline.record(spark, state=state, spool=spool, every=None) as inner:
            assert inner is outer
        assert outer.recorder.listening
    assert not outer.recorder.listening


@pytest.mark.slow
def test_what_an_ended_process_left_is_taken_up(spark: SparkSession, tmp_path: Path) -> None:
    path, state, spool = str(tmp_path / "t"), str(tmp_path / "state"), str(tmp_path / "spool")
    spark.range(10).write.format("delta").save(path)
    first = zorder_pipeline.record(spark, state=state, tables={"t": path}, spool=spool, every=None)
    spark.read.format("delta").load(path).where("id = 1").collect()
    first.recorder.stop()  # as at the exit of a process: on the disk, not in the state
    assert not stored_log(spark, state).queries
    with zorder_pipeline.record(spark, state=state, tables={"t": path}, spool=spool, every=None):
        pass
    assert [query.predicate.to_sql() for query in stored_log(spark, state).queries] == ["id = 1"]


@pytest.mark.matrix
def test_what_cannot_be_written_waits_and_costs_the_work_nothing(spark: SparkSession, tmp_path: Path) -> None:
    state, spool = str(tmp_path / "state"), tmp_path / "spool"
    path = str(tmp_path / "state_of_the_art" / "t")  # is not in the state, and so is recorded
    spark.range(10).write.format("delta").save(path)
    recording = zorder_pipeline.record(spark, state=state, tables={"t": path}, spool=str(spool), every=None)
    spark.read.format("delta").load(path).where("id = 1").collect()
    recording.recorder.wait()
    spool.rmdir()
    spool.touch()  # where a folder was
    with pytest.raises(FileExistsError):
        recording.recorder.spill()
    with pytest.warns(UserWarning, match="spool and the next recording takes it up"):
        recording.__exit__(None, None, None)
    assert (recording.recorder.noted, recording.recorder.dropped) == (1, 0)
    spool.unlink()  # nor does it mind that the folder is gone
    recording.stop()
    assert [query.predicate.to_sql() for query in stored_log(spark, state).queries] == ["id = 1"]


@pytest.mark.filterwarnings("ignore:queries of a are recorded without its columns")
@pytest.mark.parametrize("named", ["{}/a", pytest.param("default.out_of_reach", marks=pytest.mark.matrix)])
def test_a_table_that_is_out_of_reach_for_a_while_costs_nothing_of_what_was_recorded(
    spark: SparkSession, tmp_path: Path, named: str
) -> None:
    """All was read again, without it and then once more with it, and its queries counted for nothing meanwhile."""
    paths = {name: tmp_path / name for name in ("a", "b")}
    for path in paths.values():
        spark.range(10).write.format("delta").save(str(path))
    catalog = f"out_of_reach_{tmp_path.name}".replace("-", "_")
    a = named.format(tmp_path if "{}/" in named else catalog)
    if "/" not in a:
        spark.sql(f"CREATE TABLE {a} USING delta LOCATION '{paths['a']}'")
    state, spool = str(tmp_path / "state"), str(tmp_path / "spool")

    def begun() -> Recording:
        return zorder_pipeline.record(
            spark, state=state, tables={"a": a, "b": str(paths["b"])}, spool=spool, every=None
        )

    def flushed(recording: Recording, *asked: str, id: int) -> tuple[int, list[int]]:
        for name in asked:
            spark.read.format("delta").load(str(paths[name])).where(f"id = {id}").collect()
        added = recording.flush()
        log = stored_log(spark, state)
        return added, [len(log.of_table([name])) for name in paths]

    recording = begun()
    assert flushed(recording, "a", "b", id=1) == (2, [1, 1])
    paths["a"].rename(tmp_path / "elsewhere")
    assert flushed(recording, "b", id=2) == (1, [1, 2])
    recording.stop()
    recording = begun()  # as the next process, which has not opened it yet
    assert flushed(recording, "b", id=3) == (1, [1, 3])
    (tmp_path / "elsewhere").rename(paths["a"])
    assert flushed(recording, "a", id=4) == (1, [2, 3])
    recording.stop()
    if "/" not in named:
        spark.sql(f"DROP TABLE {named}")
    assert LogStore(spark, state).read("log_files").where("replaces IS NOT NULL").count() == 0


@pytest.mark.slow
def test_a_table_that_is_gone_stops_no_other_s_recording(spark: SparkSession, tmp_path: Path) -> None:
    state, tables = str(tmp_path / "state"), {name: str(tmp_path / name) for name in ("a", "b")}
    for path in tables.values():
        spark.range(10).write.format("delta").save(path)
    spool = str(tmp_path / "spool")
    with zorder_pipeline.record(spark, state=state, tables=tables, spool=spool, every=None) as recording:
        for path in tables.values():
            spark.read.format("delta").load(path).where("id = 1").collect()
        shutil.rmtree(tables["a"])
        with pytest.warns(UserWarning, match="queries of a are recorded without its columns until .*/a is no Delta t"):
            assert recording.flush() == 2
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for id in (2, 3):
                spark.read.format("delta").load(tables["b"]).where(f"id = {id}").collect()
                assert recording.flush() == 1
    assert len(stored_log(spark, state).of_table(["b"])) == 3


@pytest.mark.parametrize("action", ["always", "error"])
def test_a_session_that_was_stopped_costs_a_warning(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: Literal["always", "error"]
) -> None:
    state, spool = str(tmp_path / "state"), str(tmp_path / "spool")

    def work() -> None:
        with zorder_pipeline.record(spark, state=state, spool=spool, every=None):
            stopped.setattr(spark.sparkContext, "_jsc", None)
            raise ValueError("the user's own")

    with monkeypatch.context() as stopped, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter(action)
        with pytest.raises(ValueError, match="the user's own"):
            work()
    assert len(told) == (action == "always")
    assert all("the session has been stopped" in str(one.message) for one in told)


def test_of_what_cannot_be_written_the_oldest_is_dropped_in_the_end(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spool").touch()
    found = recorder.Recorder(spark, tmp_path / "spool")
    monkeypatch.setattr(recorder, "MOST_CHARACTERS", 10)
    for i in range(20):
        found._lines += [f"start{i:02d}", f"end{i:02d}"]
        with pytest.raises(FileExistsError):
            found.spill()
    assert found.dropped == 14  # of 12 characters each, 6 are 80 at most
    assert found._lines[0] == "start14"
    assert found._characters == 72


def test_where_it_cannot_record_it_says_so(spark: SparkSession) -> None:
    with pytest.raises(ZorderError, match=r"spark\.zorder\.state"):
        zorder_pipeline.record(spark)

    class Connect:
        """A session without a JVM."""

    with pytest.raises(UnsupportedTableError, match="Spark Connect"):
        zorder_pipeline.record(Connect(), state="/tmp/none")  # type: ignore[arg-type]
    for every in (0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ZorderError, match=r"^every is .*; give seconds above 0, or None to append only on flush"):
            zorder_pipeline.record(spark, state="/tmp/none", every=every)


@pytest.mark.slow
def test_a_recording_in_which_nothing_happened_is_no_problem(spark: SparkSession, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()  # of what other tests asked
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with zorder_pipeline.record(spark, state=str(tmp_path / "state"), spool=str(spool), every=None) as recording:
            assert recording.flush() == 0
    assert not (tmp_path / "state").exists()
    recording.recorder._lines = ["{}"]
    written = recording.recorder.spill()
    assert written is not None
    assert written.stat().st_mode & 0o777 == 0o600, "plans hold literals"
