"""Logs that move while they are listed and read: linked, grown, emptied, gone, or not to be read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from zorder_pipeline.errors import LogError
from zorder_pipeline.pipeline.logs import ingest as logs_of
from zorder_pipeline.query_log.intake import files, opening, reader
from zorder_pipeline.query_log.intake.delta_table import DeltaFile
from zorder_pipeline.query_log.intake.files import LogFile, list_logs
from zorder_pipeline.query_log.intake.ingest import ingest
from zorder_pipeline.query_log.intake.intake import find_new
from zorder_pipeline.query_log.intake.known import Known, KnownLogs, name_of
from zorder_pipeline.query_log.intake.marks import Mark, mark_of
from zorder_pipeline.query_log.intake.parts import MOVED, Part, rows_of
from zorder_pipeline.query_log.statements.catalog import Catalog


def lines(first: int, count: int) -> str:
    return "".join(
        json.dumps({"statement": f"SELECT a FROM t WHERE a = {i}"}) + "\n" for i in range(first, first + count)
    )


def told(*parts: Part) -> Iterator[dict[str, Any]]:
    """What the rows of kind ``file`` say."""
    for batch in rows_of(parts, Catalog()):
        for row in batch.to_pylist():
            if row["kind"] == "file":
                yield row | {"counts": json.loads(row["counts"])}


def names(folder: Path) -> list[str]:
    return [log.source.removeprefix(f"{folder}/") for log in list_logs(str(folder))]


def test_a_file_is_read_once_whatever_links_lead_to_it(tmp_path: Path) -> None:
    folder, beside = tmp_path / "logs", tmp_path / "beside"
    (folder / "days").mkdir(parents=True)
    beside.mkdir()
    (folder / "days" / "monday.jsonl").write_text(lines(0, 3))
    (folder / "a_link.jsonl").symlink_to("days/monday.jsonl")
    (folder / "a_folder").symlink_to("days")
    (folder / "days" / "up").symlink_to("..")
    (folder / "nowhere.jsonl").symlink_to("gone.jsonl")
    assert names(folder) == ["days/monday.jsonl"]
    (beside / "tuesday.jsonl").write_text(lines(3, 2))
    (beside / "back").symlink_to(folder)
    (folder / "beside").symlink_to(beside)
    (folder / "again").symlink_to(beside)
    assert names(folder) == ["days/monday.jsonl", "again/tuesday.jsonl"]
    assert ingest([str(folder)]).used == 5


@pytest.mark.parametrize("alone", ["q-2026.jsonl", "current.jsonl", "days"])
def test_a_link_to_what_is_named_besides_is_not_read_twice(tmp_path: Path, alone: str) -> None:
    folder = tmp_path / "logs"
    (folder / "days").mkdir(parents=True)
    (folder / "days" / "monday.jsonl").write_text(lines(3, 2))
    (folder / "monday").symlink_to("days/monday.jsonl")
    (folder / "q-2026.jsonl").write_text(lines(0, 3))
    (folder / "current.jsonl").symlink_to("q-2026.jsonl")
    assert logs_of([str(folder), str(folder / alone)]).used == 5
    (found,) = (find_new(str(folder), "auto", "UTC", KnownLogs(), [str(folder / alone)]),)
    assert len({part.log.source for part in found.parts}) == 1


@pytest.mark.parametrize(
    "named", [("a", "b"), ("a", "b/x.jsonl"), ("link", "b"), ("link", "b/x.jsonl"), ("b/x.jsonl", "a/x.jsonl")]
)
def test_links_from_one_log_to_another_are_read_once(tmp_path: Path, named: tuple[str, ...]) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "b" / "x.jsonl").write_text(lines(0, 3))
    (tmp_path / "a" / "x.jsonl").symlink_to("../b/x.jsonl")
    (tmp_path / "link").symlink_to("b")
    for order in (named, named[::-1]):
        assert logs_of([str(tmp_path / name) for name in order]).used == 3


@pytest.mark.parametrize("place", ["a\udcff.sql", "\udcff/a.sql"])
def test_a_name_that_is_no_utf_8_is_told_in_a_sentence(tmp_path: Path, place: str) -> None:
    with pytest.raises(LogError, match=r"has a name that is no UTF-8; rename what is called so"):
        ingest([str(tmp_path / place)])


def test_a_file_in_a_hidden_folder_is_found_by_its_link(tmp_path: Path) -> None:
    (tmp_path / "..2024").mkdir()
    (tmp_path / "..2024" / "queries.jsonl").write_text(lines(0, 3))
    (tmp_path / "..data").symlink_to("..2024")
    (tmp_path / "queries.jsonl").symlink_to("..data/queries.jsonl")
    assert names(tmp_path) == ["queries.jsonl"]


def test_the_shares_of_a_log_that_grows_end_where_it_ended_when_it_was_listed(tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    log.write_text(lines(0, 10) + '{"statement": "SEL')
    (listed,) = list_logs(str(log))
    shares = [Part(listed, "UTC", "a", share=(i, 2)) for i in range(2)]
    (first,) = told(shares[0])
    with log.open("a") as stream:
        stream.write('ECT a FROM t WHERE a = 10"}\n' + lines(11, 6))
    (second,) = told(shares[1])
    assert max(first["position"], second["position"]) == 10
    assert first["counts"]["used"] + second["counts"]["used"] == 10
    (grown,) = list_logs(str(log))
    (rest,) = told(Part(grown, "UTC", "a", after=10, mark=mark_of(listed)))
    assert (rest["counts"]["used"], rest["position"]) == (7, 17)


def _emptied(log: Path) -> None:
    log.with_suffix(".1").write_text(log.read_text())
    log.write_text("")


def _renamed(log: Path) -> None:
    log.rename(log.with_suffix(".1"))
    log.write_text(lines(90, 40))


@pytest.mark.parametrize("move", [_emptied, _renamed])
def test_a_log_that_is_rotated_while_it_is_read_is_left_to_the_next_night(
    tmp_path: Path, move: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "a.jsonl"
    log.write_text(lines(0, 20))
    opened = reader.open_log

    def rotated(one: LogFile, part: str) -> BinaryIO:
        found = opened(one, part)
        if (tmp_path / "a.1").exists():
            return found
        move(log)
        return found

    (listed,) = list_logs(str(log))
    monkeypatch.setattr(reader, "open_log", rotated)
    assert [row["counts"] for row in told(Part(listed, "UTC", "a"))] == [MOVED]


def test_a_file_that_vanishes_or_cannot_be_read_costs_no_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        (tmp_path / f"{name}.jsonl").write_text(lines(0, 3))
    opened = opening.opened

    class Forbidden:
        def read(self, size: int = -1) -> bytes:
            raise PermissionError(13, "Permission denied")

    def refused(stream: opening._Stored) -> BinaryIO:
        if stream.part.endswith("b.jsonl"):
            stream.stream = Forbidden()
        return opened(stream)

    monkeypatch.setattr(opening, "opened", refused)
    parts = find_new(str(tmp_path), "auto", "UTC", KnownLogs()).parts
    (tmp_path / "c.jsonl").unlink()
    a, b, c = told(*parts)
    assert (a["counts"]["used"], b["counts"]["used"], c["counts"]) == (3, 0, MOVED)
    assert (b["counts"]["quarantined"], b["counts"]["moved"]) == ({"unreadable_file": 1}, True)
    assert b["text"] == f"query log {tmp_path}/b.jsonl cannot be read: [Errno 13] Permission denied"
    found = ingest([str(tmp_path)])
    assert (found.used, found.quarantined) == (3, {"unreadable_file": 1})
    with pytest.raises(LogError, match=r"b\.jsonl cannot be read"):
        ingest([str(tmp_path / "b.jsonl")])


def test_a_folder_that_vanishes_while_its_neighbours_are_listed_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.jsonl").write_text(lines(0, 3))
    made = files._Walk.file

    def vanishing(*given: Any) -> LogFile:
        (tmp_path / "b" / "x.jsonl").unlink(missing_ok=True)
        if (tmp_path / "b").exists():
            (tmp_path / "b").rmdir()
        return made(*given)

    monkeypatch.setattr(files._Walk, "file", vanishing)
    assert names(tmp_path) == ["a/x.jsonl"]


@pytest.mark.parametrize(
    ("name", "whole", "cut"),
    [
        ("log.csv", 'time,statement\n1,"SELECT a FROM t WHERE a = 1"\n2,"SELECT a FROM t\nWHERE a = 22"\n', 12),
        ("log.csv", 'time,statement\n1,"SELECT a FROM t WHERE a = 1"\n2,"SELECT a FROM t\nWHERE a = 22"\n', 14),
        ("log.csv", "statement,user\nSELECT a FROM t WHERE a = 1,ann\nSELECT a FROM t WHERE a = 22,ann\n", 6),
        ("log.csv", "time,statement\n1,SELECT a FROM t WHERE a = 1\n2,SELECT a FROM t WHERE a = 22\n", 4),
        ("log.sql", "SELECT a FROM t WHERE a = 1;\nSELECT a FROM t WHERE a = 22;\n", 5),
    ],
)
def test_a_record_that_is_cut_off_is_read_when_it_is_whole(tmp_path: Path, name: str, whole: str, cut: int) -> None:
    log = tmp_path / name
    log.write_text(whole[:-cut])
    (listed,) = list_logs(str(log))
    (first,) = told(Part(listed, "UTC", "a"))
    assert (first["counts"]["used"], first["position"]) == (1, 1)
    log.write_text(whole)
    (grown,) = list_logs(str(log))
    (rest,) = told(Part(grown, "UTC", "a", after=1, mark=mark_of(listed)))
    assert (rest["counts"]["used"], rest["counts"]["quarantined"], rest["position"]) == (1, {}, 2)


def test_a_filesystem_that_fails_is_no_end_of_a_file(tmp_path: Path) -> None:
    class Failing:
        def __init__(self) -> None:
            self.left = [lines(0, 3).encode()]

        def read(self, size: int | None = None) -> bytes:
            if self.left:
                return self.left.pop()
            raise OSError(5, "Input/output error")

    stream = opening._Stored(Failing(), "/logs/a.jsonl", None)
    assert stream.read(10)
    with pytest.raises(LogError, match=r"query log /logs/a\.jsonl cannot be read: .*Input/output error"):
        stream.read(10)


def test_parquet_that_cannot_be_opened_is_told_from_damaged_one(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="cannot be read"):
        list(reader.lines_of(LogFile(str(tmp_path / "no.parquet"), "parquet", (str(tmp_path / "no.parquet"),), 5)))
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and no more")
    assert ingest([str(tmp_path / "bad.parquet")]).quarantined == {"damaged_file": 1}


@pytest.mark.parametrize("kind", ["parquet", "delta"])
@pytest.mark.parametrize("fine", range(4))
def test_a_filesystem_that_fails_is_no_damage_of_parquet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, fine: int
) -> None:
    """Such a file was recorded as read, with its first rows alone."""
    made = pa.table({"statement": [f"SELECT a FROM t WHERE a = {i}" for i in range(6_000)]})
    log = tmp_path / "a.parquet"
    pq.write_table(made, log, row_group_size=2_000)
    reads = iter(range(1_000))

    class Failing:
        def __init__(self, part: str) -> None:
            self.file = fs.LocalFileSystem().open_input_file(part)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

        def read_at(self, size: int, place: int) -> bytes:
            if next(reads) >= fine:
                raise OSError("When reading information for key: AWS Error NETWORK_CONNECTION: timeout")
            return self.file.read_at(size, place)

    monkeypatch.setattr(opening, "open_anywhere", lambda log, part: Failing(part))
    read = LogFile(str(log), kind, (str(log),), log.stat().st_size, delta=DeltaFile(str(log), 1))
    (row,) = told(Part(read, "UTC", "a"))
    assert (row["counts"]["moved"], row["counts"]["quarantined"]) == (True, {"unreadable_file": 1})
    assert "NETWORK_CONNECTION" in row["text"]


def test_a_place_that_damaged_parquet_names_is_no_failure_of_its_filesystem(tmp_path: Path) -> None:
    log = tmp_path / "a.parquet"
    log.write_bytes(b"0123456789")
    stored = opening.Watched(LogFile(str(log), "parquet", (str(log),), 10), str(log))
    assert (stored.seek(-3, 2), stored.read(), stored.tell()) == (7, b"789", 10)
    assert (stored.seek(-1, 1), stored.read(1)) == (9, b"9")
    assert (stored.seek(10**15), stored.read(5), stored.failure) == (10**15, b"", None)
    with pytest.raises(ValueError, match="no byte -1"):
        stored.seek(-1)


def executions(first: int, count: int) -> str:
    """Events of so many executions, each of one scan, a second apart."""
    name, found = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecution", []
    for i in range(first, first + count):
        facts = {"Location": "PreparedDeltaFileIndex(1 paths)[file:/lake/t]", "ReadSchema": "struct<a:int>"}
        facts |= {"DataFilters": f"[(a#1 = {i})]", "PartitionFilters": "[]", "Format": "Parquet"}
        plan = {"nodeName": "Scan parquet ", "simpleString": "", "children": [], "metadata": facts, "metrics": []}
        start = {"Event": f"{name}Start", "executionId": i, "time": 1_705_312_800_000 + i * 1000, "description": "q"}
        end = {"Event": f"{name}End", "executionId": i, "time": 1_705_312_800_500 + i * 1000}
        found += [start | {"sparkPlanInfo": plan}, end]
    return "".join(json.dumps(event) + "\n" for event in found)


def test_event_logs_that_change_their_names_are_read_once(tmp_path: Path) -> None:
    """Of a fixed name that is rotated, or written over, lines were lost, and those of the renamed one counted twice."""
    records: list[Known] = []

    def night() -> dict[str, int]:
        counts = {}
        for part in find_new(str(tmp_path), "auto", "UTC", KnownLogs.of(records)).parts:
            (row,) = told(part)
            counts[part.log.source.rsplit("/", 1)[-1]] = row["counts"]["used"]
            mark, seen = row["counts"]["mark"], row["query_timestamp"]
            record = Known(part.name, name_of(part.log.source), part.log.size, row["position"], watermark=seen)
            records.append(replace(record, mark=Mark(**mark), since=part.since, modified=part.log.modified))
        return counts

    log = tmp_path / "eventlog"
    log.write_text(executions(0, 5))
    assert night() == {"eventlog": 5}
    with log.open("a") as stream:
        stream.write(executions(5, 2))
    assert night() == {"eventlog": 2}
    log.rename(tmp_path / "eventlog-2024-06-10--10-00")
    log.write_text(executions(7, 4))
    assert night() == {"eventlog": 4, "eventlog-2024-06-10--10-00": 0}
    log.write_text(executions(11, 7))
    assert night() == {"eventlog": 7}
    assert night() == {}


def test_an_event_log_keeps_its_mark_when_its_application_ends(tmp_path: Path) -> None:
    running = tmp_path / "app-1.inprogress"
    running.write_text(executions(0, 3))
    (listed,) = list_logs(str(tmp_path))
    mark = mark_of(listed)
    assert mark is not None
    known = Known(name_of(listed.source), name_of(listed.source), listed.size, 6, mark=mark)
    with running.open("a") as stream:
        stream.write(executions(3, 2))
    running.rename(tmp_path / "app-1")
    (part,) = find_new(str(tmp_path), "auto", "UTC", KnownLogs.of([known])).parts
    assert (part.after, part.name) == (6, known.log)


def test_a_rolling_event_log_has_no_mark(tmp_path: Path) -> None:
    (tmp_path / "eventlog_v2_app").mkdir()
    (tmp_path / "eventlog_v2_app" / "events_1_app").write_text(executions(0, 1))
    (listed,) = list_logs(str(tmp_path))
    assert mark_of(listed) is None


def test_a_log_that_is_listed_without_bytes_tells_of_no_other_one(tmp_path: Path) -> None:
    """As HDFS lists one that is written: all logs begin with no bytes, and their first executions were left out."""
    (tmp_path / "app-1").write_text(executions(0, 3))
    (listed,) = list_logs(str(tmp_path))
    assert mark_of(replace(listed, size=0)) is None
    older = Mark("", "", 0)  # as a state may have it
    for mark in (None, older):
        known = Known(name_of(listed.source), name_of(listed.source), 0, 6, mark=mark)
        (tmp_path / "app-1").unlink(missing_ok=True)
        (tmp_path / "app-2").write_text(executions(10, 3))
        (part,) = find_new(str(tmp_path), "auto", "UTC", KnownLogs.of([known])).parts
        assert (part.after, part.name) == (0, f"{tmp_path}/app-2")


def test_an_execution_that_has_not_ended_is_none_until_it_has(tmp_path: Path) -> None:
    """It was quarantined each night in which it ran, and lowered the share of what could be read."""
    log, events = tmp_path / "app-1.inprogress", executions(0, 3).splitlines(keepends=True)
    log.write_text("".join(events[:-1]))
    (first,) = told(*find_new(str(tmp_path), "auto", "UTC", KnownLogs()).parts)
    assert (first["counts"]["used"], first["counts"]["ignored"]) == (2, {"unfinished": 1})
    assert not first["counts"]["quarantined"]
    (listed,) = list_logs(str(tmp_path))
    known = Known(name_of(listed.source), name_of(listed.source), listed.size, first["position"], mark=mark_of(listed))
    log.write_text("".join(events))
    (second,) = told(*find_new(str(tmp_path), "auto", "UTC", KnownLogs.of([known])).parts)
    assert (second["counts"]["used"], second["counts"]["ignored"]) == (1, {})


def test_a_log_that_an_older_state_calls_by_its_password_is_read_anew(tmp_path: Path) -> None:
    """Else each night's record had it again."""
    (tmp_path / "a.jsonl").write_text(lines(0, 4))
    (listed,) = list_logs(str(tmp_path))
    name = name_of(listed.source)
    for log, after in ((name, 2), ("s3://user:secret@lake/a.jsonl", 0)):
        known = Known(log, name, listed.size - 1, 2, mark=None, modified=1)
        (part,) = find_new(str(tmp_path), "auto", "UTC", KnownLogs.of([known])).parts
        assert (part.after, "secret" in part.name) == (after, False)
        assert part.replaces == (log if after == 0 else None)
