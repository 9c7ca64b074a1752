"""What of a log is new, while logs are renamed, compressed, begun anew and written over."""

from __future__ import annotations

import bz2
import gzip
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from zorder_pipeline.errors import LogError
from zorder_pipeline.query_log.intake import marks
from zorder_pipeline.query_log.intake.files import list_logs
from zorder_pipeline.query_log.intake.intake import find_new
from zorder_pipeline.query_log.intake.known import Known, KnownLogs, name_of
from zorder_pipeline.query_log.intake.marks import SPAN, Mark, goes_on, mark_of
from zorder_pipeline.query_log.intake.parts import MOVED, Part, rows_of
from zorder_pipeline.query_log.statements.catalog import Catalog

MANY = SPAN // 16
"""Lines that make a log much longer than what is looked at of it."""


def lines(first: int, count: int, timed: bool = True) -> str:
    """So many lines, from the ``first`` on; each has its number and, later with it, its time."""
    numbers = range(first, first + count)
    return "".join(json.dumps({"n": i, "time": i * 1000 if timed else None}) + "\n" for i in numbers)


class Store:
    """What the state knows of the logs in a folder; their lines are read, as many times as they are, and not parsed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.records: list[Known] = []
        self.read: list[int] = []
        self.replaced: list[str | None] = []

    def night(self, batches: int = 1000, folder: str = "", without: Sequence[str] = ()) -> list[str]:
        """Reads what is new, as many files as said; returns the files in which something was looked for."""
        known = KnownLogs.of(self.records)
        found = find_new(str(self.folder / folder), "auto", "UTC", known, [str(self.folder / one) for one in without])
        parts = [part for part in found.parts if part.share[0] == 0][:batches]
        self.replaced = [part.replaces for part in parts]
        for part in parts:
            self.records = [one for one in self.records if one.log != part.replaces]
            self.records.append(self._read(part))
        return [part.log.source.rsplit("/", 1)[-1] for part in parts]

    def _read(self, part: Part) -> Known:
        path = Path(part.log.source)
        content = path.read_bytes()
        plain = gzip.decompress(content) if path.suffix == ".gz" else content
        told = [json.loads(line) for line in plain.decode().splitlines() if line.startswith("{")]
        since = -1 if part.since is None else part.since
        new = [item for item in told[part.after :] if item["time"] is None or item["time"] > since]
        self.read += [item["n"] for item in new]
        times = [item["time"] for item in new if item["time"] is not None]
        times += [one.watermark for one in self.records if one.log == part.name and one.watermark is not None]
        return Known(
            part.name,
            name_of(part.log.source),
            len(content),
            len(told),
            watermark=max(times, default=None),
            mark=mark_of(part.log),
            since=part.since,
            modified=part.log.modified,
        )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def _packed(folder: Path, name: str, target: str) -> None:
    (folder / target).write_bytes(gzip.compress((folder / name).read_bytes()))
    (folder / name).unlink()


def _renamed(folder: Path, name: str, target: str) -> None:
    (folder / name).rename(folder / target)


def _copied(folder: Path, name: str, target: str) -> None:
    (folder / target).write_bytes((folder / name).read_bytes())
    (folder / name).write_text("")


@pytest.mark.parametrize("rotate", [_renamed, _copied, _packed])
@pytest.mark.parametrize("count", [3, MANY])
def test_a_rotated_log_is_read_once(store: Store, count: int, rotate: Callable[[Path, str, str], None]) -> None:
    """As logrotate does it: a night's log gets a number, older ones the next, and is compressed at once or later."""
    log, written = store.folder / "queries.log", 0
    last = ".gz" if rotate is _packed else ""
    for night in range(6):
        with log.open("a") as stream:  # after the reading of the night before, and before the rotation
            stream.write(lines(written, 2))
        written += 2
        for age in range(night, 1, -1):
            (before,) = store.folder.glob(f"queries.log.{age - 1}*")
            (_renamed if before.suffix == ".gz" else _packed)(store.folder, before.name, f"queries.log.{age}.gz")
        if night:
            rotate(store.folder, "queries.log", f"queries.log.1{last}")
        log.open("a").write(lines(written, count + night))
        written += count + night
        store.night()
        assert sorted(store.read) == list(range(written))
        assert store.night() == []


def test_a_log_with_a_date_in_its_name_is_read_once_when_it_is_compressed(store: Store) -> None:
    for day in range(3):
        (store.folder / f"day-{day}.jsonl").write_text(lines(day * MANY, MANY))
        if day:
            _packed(store.folder, f"day-{day - 1}.jsonl", f"day-{day - 1}.jsonl.gz")
        store.night()
    assert store.read == list(range(3 * MANY))


def test_an_export_that_is_written_over_counts_each_query_once(store: Store) -> None:
    """The last days' history, every night under the same name; also when it has become shorter."""
    for first, count in ((0, 300), (100, 300), (250, 400), (600, 60), (640, 40)):
        (store.folder / "history.jsonl").write_text(lines(first, count))
        store.night()
    assert store.read == list(range(680))


def test_statements_by_hand_count_instead_of_those_that_they_replace(store: Store) -> None:
    (store.folder / "a.sql").write_text(lines(0, 5, timed=False))
    store.night()
    (store.folder / "a.sql").write_text(lines(1, 7, timed=False))
    assert (store.night(), store.replaced) == (["a.sql"], [f"{store.folder}/a.sql"])
    _renamed(store.folder, "a.sql", "a.sql.1")
    (store.folder / "a.sql").write_text(lines(9, 2, timed=False))
    assert sorted(store.night()) == ["a.sql", "a.sql.1"]
    assert store.replaced == [None, None], "what was renamed is still there"


@pytest.mark.parametrize("kept", [True, False])
def test_logs_of_the_same_size_are_told_from_each_other(store: Store, kept: bool) -> None:
    """Lines of one width, as many each day: rotated, or written over."""
    log = store.folder / "queries.log"
    for night in range(4):
        if night and kept:
            for age in range(night, 0, -1):
                _renamed(store.folder, f"queries.log{f'.{age - 1}' if age > 1 else ''}", f"queries.log.{age}")
        log.write_text(lines(1000 + 5 * night, 5))
        os.utime(log, (night * 1000, night * 1000))
        store.night()
    assert sorted(store.read) == list(range(1000, 1020))


def test_queries_that_began_before_a_rotation_count(store: Store) -> None:
    """They are written when they end, with the time at which they began; of a renamed log nothing is read twice."""
    log = store.folder / "queries.log"
    log.write_text(lines(0, 3) + lines(10, 1))
    store.night()
    _renamed(store.folder, "queries.log", "queries.log.1")
    log.write_text(lines(8, 2) + lines(11, 1))
    store.night()
    assert sorted(store.read) == [0, 1, 2, 8, 9, 10, 11]


def test_a_night_that_is_cut_off_between_the_logs_of_a_rotation_goes_on(store: Store) -> None:
    log = store.folder / "queries.log"
    log.write_text(lines(0, 3))
    store.night()
    _renamed(store.folder, "queries.log", "queries.log.1")
    log.write_text(lines(3, 20))
    for _ in range(2):
        assert len(store.night(batches=1)) == 1
    assert store.night() == []
    assert sorted(store.read) == list(range(23))


def test_a_header_tells_nothing(store: Store) -> None:
    """All CSV files of one kind begin with it."""
    for day in range(4):
        (store.folder / f"{day}.csv").write_text("n,time\n" + ("" if day in (0, 2) else lines(day * 10, 3)))
        store.night()
        (store.folder / f"{day}.csv").unlink()
        (store.folder / "other.jsonl").touch()
    assert store.read == [10, 11, 12, 30, 31, 32]
    assert len({one.log for one in store.records if one.name.endswith("csv")}) == 4


def test_a_log_that_is_being_compressed_is_left_until_it_is_through(store: Store) -> None:
    log = store.folder / "queries.log"
    log.write_text(lines(0, MANY))
    store.night()
    _renamed(store.folder, "queries.log", "queries.log.1")
    log.write_text(lines(MANY, 3))
    packed = gzip.compress((store.folder / "queries.log.1").read_bytes())
    (store.folder / "queries.log.1.gz").write_bytes(packed[: len(packed) // 2])
    assert sorted(store.night()) == ["queries.log", "queries.log.1"]
    (store.folder / "queries.log.1.gz").write_bytes(packed)
    (store.folder / "queries.log.1").unlink()
    store.night()
    assert sorted(store.read) == list(range(MANY + 3))


def test_a_log_that_is_compressed_under_its_own_name_and_begun_anew_loses_nothing(store: Store) -> None:
    """Nothing but the content tells it from one that is compressed and kept."""
    log, packed = store.folder / "queries.jsonl", store.folder / "queries.jsonl.gz"
    log.write_text(lines(0, MANY))
    packed.write_bytes(gzip.compress(log.read_bytes()))  # and kept
    assert store.night() == ["queries.jsonl"]
    packed.write_bytes(gzip.compress((lines(0, MANY + 5)).encode()))
    log.write_text("")
    assert "queries.jsonl.gz" in store.night()
    log.write_text(lines(MANY + 5, 7))
    store.night()
    assert sorted(store.read) == list(range(MANY + 12))


@pytest.mark.parametrize("name", ["q.sql.1", "q.csv-20261127", "q.sql.2.gz", "q.jsonl.2026-11-27", "app.log.1"])
def test_rotated_logs_of_every_kind_are_listed(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("SELECT 1;")
    (log,) = list_logs(str(tmp_path))
    assert log.kind == {"q.s": "sql", "q.c": "csv"}.get(name[:3], "json")


def test_a_log_inside_another_that_is_read_on_its_own_is_no_part_of_it(store: Store) -> None:
    (store.folder / "sub").mkdir()
    (store.folder / "a.jsonl").write_text(lines(0, 2))
    (store.folder / "sub" / "b.jsonl").write_text(lines(2, 2))
    (store.folder / "sub.jsonl").write_text(lines(4, 2))
    assert store.night(without=["sub"]) == ["a.jsonl", "sub.jsonl"]
    assert store.night(folder="sub") == ["b.jsonl"]


def test_a_log_that_is_renamed_after_it_was_listed_is_left_to_the_next_night(tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    log.write_text(lines(0, 5))
    (listed,) = list_logs(str(log))
    mark = mark_of(listed)
    with log.open("a") as stream:
        stream.write(lines(5, 2))
    (listed,) = list_logs(str(log))
    part = Part(listed, "UTC", "a", after=5, mark=mark)

    def told() -> list[dict[str, Any]]:
        return [json.loads(row["counts"]) for batch in rows_of([part], Catalog()) for row in batch.to_pylist()
                if row["kind"] == "file"]  # fmt: skip

    assert [counts["lines"] for counts in told()] == [2]
    _renamed(tmp_path, "a.jsonl", "a.jsonl.1")
    log.write_text(lines(7, 9))
    assert told() == [MOVED]


def test_a_copy_of_a_log_is_a_log_of_its_own(store: Store) -> None:
    """Two applications may ask the same; only what has lost its name is looked for elsewhere."""
    (store.folder / "a.jsonl").write_text(lines(0, 3))
    store.night()
    (store.folder / "b.jsonl").write_text(lines(0, 3))
    store.night()
    assert store.read == [0, 1, 2] * 2


def test_another_log_that_begins_alike_is_no_renamed_one(store: Store) -> None:
    (store.folder / "a.jsonl").write_text(lines(0, MANY))
    store.night()
    (store.folder / "a.jsonl").unlink()
    (store.folder / "b.jsonl").write_text(lines(0, MANY - 1) + lines(MANY, 1))
    store.night()
    assert len(store.read) == 2 * MANY


def test_logs_of_another_configuration_are_read_again_from_the_beginning(store: Store) -> None:
    (store.folder / "a.jsonl").write_text(lines(0, 5))
    (store.folder / "b.jsonl").write_text(lines(5, 5))
    store.night()
    store.records = [replace(one, current=False) for one in store.records]
    _renamed(store.folder, "b.jsonl", "c.jsonl")
    assert store.night() == ["a.jsonl", "c.jsonl"]
    assert store.read == [*range(10), *range(10)]
    assert store.replaced == [f"{store.folder}/a.jsonl", f"{store.folder}/b.jsonl"]
    assert store.night() == []


def test_each_new_log_is_looked_at_once_however_many_are_gone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(50):
        (store.folder / f"{i}.jsonl").write_text(lines(i * 10, i % 10 + 1))
    store.night()
    for i in range(50):
        (store.folder / f"{i}.jsonl").unlink()
    (store.folder / "new.jsonl").write_text(lines(1000, 5))
    (store.folder / "renamed.jsonl").write_text(lines(440, 5) + lines(2000, 1))
    looked: list[str] = []
    opened = marks.open_anywhere
    monkeypatch.setattr(marks, "open_anywhere", lambda log, part: looked.append(log.source) or opened(log, part))
    store.read.clear()
    store.night()
    assert sorted(store.read) == [*range(1000, 1005), 2000]
    assert len(looked) <= 6


def test_a_mark_is_that_of_the_first_bytes(tmp_path: Path) -> None:
    text = lines(0, MANY)
    (tmp_path / "a.jsonl").write_text(text)
    (log,) = list_logs(str(tmp_path / "a.jsonl"))
    mark = mark_of(log)
    assert mark is not None
    assert (mark.size, Mark(**mark.to_json())) == (len(text), mark)
    for name, content, same in (
        ("longer.jsonl", (text + lines(MANY, 1)).encode(), True),
        ("packed.jsonl.bz2", bz2.compress((text + "x").encode()), True),
        ("cut.jsonl.gz", gzip.compress((text + "x" * 100_000).encode())[:-9], True),
        ("shorter.jsonl", text[:-1].encode(), False),
        ("packed_shorter.jsonl.gz", gzip.compress(text[:-1].encode()), False),
        ("empty.jsonl", b"", False),
        ("other.jsonl", text.replace('"n": 0', '"n": 9').encode(), False),
    ):
        (tmp_path / name).write_bytes(content)
        assert goes_on(list_logs(str(tmp_path / name))[0], mark) is same, name
    (tmp_path / "a.jsonl").unlink()
    assert mark_of(log) is None
    assert not goes_on(log, mark)


def test_a_delta_table_among_other_logs_is_named_as_one_of_its_own(tmp_path: Path) -> None:
    """By its files alone, rows would count again whenever OPTIMIZE or an UPDATE writes them anew."""
    table = tmp_path / "all" / "history"
    write_deltalake(str(table), pa.table({"statement": ["SELECT a FROM t"]}))
    with pytest.raises(LogError, match=f"^{table} is a Delta table among other query logs, .* as a log of its own$"):
        find_new(str(tmp_path / "all"), "auto", "UTC", KnownLogs())
    assert find_new(str(tmp_path / "all"), "auto", "UTC", KnownLogs(), [str(table)]).parts == ()
    (tmp_path / "all" / "a.sql").write_text("SELECT a FROM t;")
    (part,) = find_new(str(tmp_path / "all"), "auto", "UTC", KnownLogs(), [str(table)]).parts
    assert part.log.source.endswith("a.sql")
    (tmp_path / "none").mkdir()
    with pytest.raises(LogError, match="holds no query log"):
        find_new(str(tmp_path / "none"), "auto", "UTC", KnownLogs(), [str(table)])
