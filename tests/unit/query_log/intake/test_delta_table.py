"""A Delta table as a query log: each query counts once, whatever is done with the table between two nights."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from zorder_pipeline.model.predicate import predicate_from_json
from zorder_pipeline.query_log.intake.ingest import ingest
from zorder_pipeline.query_log.intake.intake import find_new
from zorder_pipeline.query_log.intake.known import Known, KnownLogs, name_of
from zorder_pipeline.query_log.intake.parts import rows_of
from zorder_pipeline.query_log.statements.catalog import Catalog

SECOND = 1_000_000
START = 1_705_312_800 * SECOND


class Log:
    """A table of queries, each with a number, and what a state knows of it."""

    def __init__(self, folder: Path, timed: bool) -> None:
        self.path, self.timed = str(folder / "the history"), timed
        self.records: list[Known] = []
        self.said: list[str] = []
        self.rows: list[tuple[str, int]] = []
        self.lines = 0

    def write(self, first: int, count: int, mode: str = "append") -> None:
        write_deltalake(self.path, self.table(first, count), mode=mode, partition_by=["user"])  # type: ignore[call-overload]

    def table(self, first: int, count: int) -> pa.Table:
        numbers = range(first, first + count)
        times = [START + i * SECOND if self.timed else None for i in numbers]
        columns = {
            "statement": [f"SELECT a FROM t WHERE a = {i}" for i in numbers],
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "user": ["1 May 8%"] * count,
        }
        return pa.table(columns)

    @property
    def delta(self) -> DeltaTable:
        return DeltaTable(self.path)

    def night(self, files: int = 1000) -> int:
        """Reads what is new, of so many files, and returns how many files that was."""
        found = find_new(self.path, "auto", "UTC", KnownLogs.of(self.records), [], self.said.append)
        for part in found.parts[:files]:
            rows = [row for batch in rows_of([part], Catalog({"t": "t"})) for row in batch.to_pylist()]
            self.lines += json.loads(rows[-1]["counts"])["lines"]
            assert {row["user"] for row in rows[:-1]} <= {"1 May 8%"}
            dead = [one.log for one in self.records if one.log == part.replaces]
            self.records = [one for one in self.records if one.log not in dead]
            self.rows = [row for row in self.rows if row[0] not in dead]
            asked = [predicate_from_json(json.loads(row["predicate"])).to_sql() for row in rows[:-1]]
            self.rows += [(part.name, int(text.removeprefix("a = "))) for text in asked]
            newest = max((row["query_timestamp"] or 0 for row in rows), default=0)
            newest = max([newest, *(one.watermark or 0 for one in self.records if one.log == part.name)]) or None
            name, size = name_of(part.log.source), part.log.size
            self.records.append(Known(part.name, name, size, rows[-1]["position"], watermark=newest, since=part.since))
        if found.version is not None and files >= len(found.parts):
            newest = max((one.watermark or 0 for one in self.records if one.log == found.table), default=0) or None
            version = {"delta_version": found.version.number, "table_id": found.version.table_id}
            self.records.append(Known(found.table, name_of(self.path), 0, 0, watermark=newest, **version))  # type: ignore[arg-type]
        return len(found.parts)

    @property
    def read(self) -> list[int]:
        return sorted(number for _, number in self.rows)


@pytest.fixture(params=[True, False], ids=["timed", "timeless"])
def log(tmp_path: Path, request: pytest.FixtureRequest) -> Log:
    found = Log(tmp_path, request.param)
    for first in (0, 5):
        found.write(first, 5)
    assert found.night() == 2
    assert found.night() == 0
    return found


def merged(log: Log) -> None:
    """A history that is brought up to date: some rows change, some are new."""
    merge = log.delta.merge(log.table(8, 4), "s.statement = t.statement", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


CHANGES: dict[str, tuple[Callable[[Log], object], set[int], set[int]]] = {
    "delete": (lambda log: log.delta.delete("statement LIKE '%= 3'"), set(), {3}),
    "delete of all": (lambda log: log.delta.delete(), set(), set()),
    "update": (lambda log: log.delta.update(updates={"user": "'1 May 8%'"}), set(), set()),
    "merge": (merged, {10, 11}, set()),
    "overwrite": (lambda log: log.write(5, 7, "overwrite"), {10, 11}, {0, 1, 2, 3, 4}),
    "restore": (lambda log: (log.delta.delete(), log.delta.restore(1)), set(), set()),
    "made anew": (lambda log: (shutil.rmtree(log.path), log.write(5, 7)), {10, 11}, {0, 1, 2, 3, 4}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_rewritten_counts_once(log: Log, change: str) -> None:
    """Of a log without times all counts anew, so that what it has no more is gone, too, as of a .sql file."""
    made, new, gone = CHANGES[change]
    made(log)
    log.night()
    assert log.read == sorted((set(range(10)) | new) - (set() if log.timed else gone))
    assert log.night() == 0
    log.write(20, 2)
    assert log.night() == 1, "what is appended is all that is read"
    assert log.read[-2:] == [20, 21]


def test_what_was_added_and_rewritten_in_one_night_counts_once(log: Log) -> None:
    log.write(10, 5)
    log.delta.delete("statement LIKE '%= 3' OR statement LIKE '%= 12'")
    log.write(15, 2)
    log.delta.optimize.compact()
    log.delta.update(updates={"user": "'1 May 8%'"}, predicate="statement LIKE '%= 16'")
    log.night()
    assert log.read == [i for i in range(17) if i != 12 and (log.timed or i != 3)]


def test_what_optimize_writes_is_not_read(log: Log) -> None:
    log.write(10, 5)
    log.delta.optimize.compact()
    assert log.night() == 1
    log.delta.optimize.compact()
    assert log.night() == 0
    assert log.read == list(range(15))
    assert log.lines == 15


@pytest.mark.parametrize("rearranged", [True, False])
def test_a_first_reading_that_was_cut_off(tmp_path: Path, rearranged: bool) -> None:
    log = Log(tmp_path, True)
    for first in (0, 5, 10):
        log.write(first, 5)
    log.night(1)
    if rearranged:
        log.delta.optimize.compact()
    assert log.night() == (1 if rearranged else 2)
    assert log.read == list(range(15))


def test_a_table_that_was_made_anew_is_known_by_its_id(tmp_path: Path) -> None:
    log = Log(tmp_path, True)
    log.write(0, 5)
    log.night()
    shutil.rmtree(log.path)
    log.write(3, 5)
    log.night()
    assert log.read == list(range(8))


@pytest.mark.parametrize("compacted", [True, False])
def test_where_commits_are_gone_what_is_later_counts_and_the_next_night_goes_on(log: Log, compacted: bool) -> None:
    """Delta removes them after `delta.logRetentionDuration`: nights that paused longer never read the log again."""
    for first in (10, -1, 11):
        log.write(first, 1)
    if compacted:
        log.delta.optimize.compact()
    log.delta.create_checkpoint()
    Path(log.path, "_delta_log", f"{2:020d}.json").unlink()
    assert log.said == []
    log.night()
    assert log.read == [*([] if log.timed else [-1]), *range(12)], "what is late cannot be told from what was read"
    (said,) = log.said
    what = "with a time before that, is left out" if log.timed else "all that it holds counts instead"
    assert "no longer goes back to version 1" in said
    assert what in said
    assert log.night() == 0
    log.write(20, 2)
    assert log.night() == 1
    assert (log.read[-2:], len(log.said)) == ([20, 21], 1)


@pytest.mark.parametrize("deleting", [False, True])
def test_what_optimize_merged_before_vacuum_took_it_away_is_read_in_what_it_was_merged_into(
    log: Log, deleting: bool
) -> None:
    """Both run between two nights, as OPTIMIZE and VACUUM of a schedule do."""
    log.write(10, 2)
    log.write(12, 2)
    if deleting:
        log.delta.delete("statement LIKE '%= 3'")
    log.delta.optimize.compact()
    log.write(14, 2)
    log.delta.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    log.night()
    assert log.read == [i for i in range(16) if i != 3 or log.timed or not deleting]
    what = "with a time before that, is left out" if log.timed else "all that it holds counts instead"
    assert [("VACUUM" in said, what in said) for said in log.said] == [(True, True)] * (not deleting)
    assert log.night() == 0
    log.write(20, 2)
    assert log.night() == 1
    assert log.read[-2:] == [20, 21]


def test_of_files_that_vacuum_left_all_is_read_also_what_was_added_late(tmp_path: Path) -> None:
    log = Log(tmp_path, True)
    log.write(5, 5)
    log.night()
    log.write(10, 2)
    log.delta.optimize.compact()
    log.write(0, 2)
    log.delta.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    log.night()
    assert log.read == [0, 1, *range(5, 12)]


def test_in_memory_a_table_is_what_it_is_now(log: Log) -> None:
    log.delta.delete("statement LIKE '%= 3'")
    found = ingest([log.path])
    assert (found.used, {query.user for query in found.queries}) == (9, {"1 May 8%"})
