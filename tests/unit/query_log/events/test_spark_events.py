"""Event logs of Spark 3.5 and 4.2 give the predicates of the SQL text that was asked (see ``cases/spark_events``)."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from zorder_pipeline.model.ranges import to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.query_log.events.plan_scans import no_types
from zorder_pipeline.query_log.events.spark_events import Execution, _Reader, executions
from zorder_pipeline.query_log.intake import event_lines
from zorder_pipeline.query_log.intake.files import list_logs
from zorder_pipeline.query_log.intake.ingest import ingest
from zorder_pipeline.query_log.intake.parts import Part, rows_of
from zorder_pipeline.query_log.intake.reader import lines_of
from zorder_pipeline.query_log.intake.stored import DAMAGED, record_of
from zorder_pipeline.query_log.statements.catalog import Catalog
from zorder_pipeline.query_log.statements.sql import Unusable, parse_statement

LOGS = Path(__file__).parents[3] / "cases" / "spark_events"
COLUMNS = {"id": "bigint", "b": "int", "c": "string", "d": "date", "ts": "timestamp", "ntz": "timestamp_ntz"}
COLUMNS |= {"f": "double", "flag": "boolean", "price": "decimal(12,2)", "odd name": "string"}
COLUMNS |= {"s.x": "int", "s.y": "string"}
EVENTS = TableSchema((*(Column(name, kind) for name, kind in COLUMNS.items()), Column("region", "string", True)))
SCHEMAS = {"events": EVENTS, "dims": TableSchema((Column("id", "bigint"), Column("name", "string")))}
ALIASES = {"events": "events", "my events": "events", "shop.dims": "dims", "dims": "dims"}
DIFFERENT = {
    "in_one": "the optimizer makes an equality of an IN list of one",
    "date_in": "Spark 3.5 casts the date column to a string here, so nothing can skip by it",
    "in_strings": "two adjacent strings are one string in Spark 3.5, a quoted quote in Spark 4",
    "str_quote": "the same",
    "str_nasty_mix": "a string that looks like a further filter is left out, and the scan is partial",
    "str_in_nasty": "a string with brackets in an IN list",
    "tuple_in": "a comparison of tuples is printed as structs",
    "many_ands": "IS NOT NULL is left out where the column is compared, too",
    "cte_twice": "the optimizer pushes a join's filter into one of two reads of an expression",
}


def _executions(path: Path) -> list[Execution]:
    lines = [line for log in list_logs(str(path), "spark-events") for line in lines_of(log)]
    return [line.execution for line in lines if line.execution is not None and line.execution.scans]


def _log(scan: dict[str, Any], description: str = "x") -> list[bytes]:
    """An event log of one execution, which is one scan."""
    plan = {"nodeName": "Scan parquet ", "simpleString": "FileScan", "children": [], "metadata": scan, "metrics": []}
    name = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecution"
    start = {"Event": f"{name}Start", "description": description, "time": 1_705_312_800_000, "sparkPlanInfo": plan}
    start |= {"executionId": 1, "details": "", "physicalPlanDescription": "", "modifiedConfigs": {}}
    end = {"Event": f"{name}End", "executionId": 1, "time": 1_705_312_801_000}
    return [json.dumps(event).encode() + b"\n" for event in (start, end)]


@pytest.mark.parametrize(("kind", "expected"), [("string", "region = '2024'"), ("int", "region = 2024")])
def test_a_partition_that_looks_like_a_number_is_what_the_table_says(tmp_path: Path, kind: str, expected: str) -> None:
    scan = {"Location": "PreparedDeltaFileIndex(1 paths)[file:/lake/sales]", "Format": "Parquet"}
    scan |= {"ReadSchema": "struct<id:int>", "DataFilters": "[]", "PartitionFilters": "[(region#2 = 2024)]"}
    (tmp_path / "app-1").write_bytes(b"".join(_log(scan)))
    schemas = {"sales": TableSchema((Column("id", "int"), Column("region", kind, partition=True)))}
    found = ingest([str(tmp_path / "app-1")], log_format="spark-events", aliases={"sales": "sales"}, schemas=schemas)
    assert [query.predicate.to_sql() for query in found.queries] == [expected]


def _planned(executions: list[Execution], statement: dict[str, Any], table: str) -> set[str]:
    start, end = statement["start"] * 1000, statement["end"] * 1000
    endings = (f".{table}", "/my events" if table == "events" else f"/{table}")
    return {
        str(to_boxes(scan.predicate, SCHEMAS[table], execution.zone or "UTC"))  # as text NaN equals itself
        for execution in executions
        if execution.timestamp is not None and start <= execution.timestamp <= end
        for scan in execution.scans
        if any(name.endswith(endings) for name in scan.names)
    }


@pytest.mark.parametrize("log", sorted(LOGS.glob("spark-*.gz")), ids=lambda path: path.stem)
def test_plans_say_what_the_statements_say(log: Path) -> None:
    executions = _executions(log)
    told = json.loads(log.with_suffix(".statements.json").read_text(encoding="utf-8"))
    zones = {execution.zone for execution in executions}
    compared, different = 0, []
    for statement in told["statements"]:
        zone = next((e.zone for e in executions if e.zone), "UTC") if len(zones) == 1 else "UTC"
        scans = parse_statement(
            statement["sql"], aliases=ALIASES, schemas=SCHEMAS, timestamp=statement["start"] * 1000, zone=zone or "UTC"
        )
        if isinstance(scans, Unusable):
            continue
        for table in SCHEMAS:
            wanted = {str(to_boxes(s.predicate, SCHEMAS[table], zone or "UTC")) for s in scans if s.table == table}
            found = _planned(executions, statement, table)
            if found and wanted:
                compared += 1
                if found != wanted and statement["name"] not in DIFFERENT:
                    different.append((statement["name"], statement["sql"], wanted, found))
    assert different == []
    assert compared >= (150 if "full" in log.name else 15)


@pytest.mark.parametrize(
    ("name", "used", "quarantined"),
    [
        ("3.5.9.lz4", 3, {}),
        ("compressed_lz4", 3, {}),
        ("compressed_lzf", 3, {}),
        ("compressed_snappy", 3, {}),
        ("compressed_zstd", 3, {}),
        ("gzip", 3, {}),
        ("rolling", 3, {}),
        ("rolling_zstd", 3, {}),
        ("compacted", 1, {}),
        ("inprogress", 3, {}),
        ("truncated", 2, {"truncated": 1}),
        ("truncated_zstd", 1, {"damaged_file": 1}),
    ],
)
def test_logs_as_a_history_server_finds_them(name: str, used: int, quarantined: dict[str, int]) -> None:
    found = ingest([str(LOGS / name)], log_format="spark-events")
    assert (found.used, found.quarantined) == (used, quarantined)
    assert found.lines == used + sum(found.ignored.values()) + sum(quarantined.values())


def test_a_history_server_folder(tmp_path: Path) -> None:
    """A rolling log, one in progress and cut off, a compacted one, and what Spark puts beside them."""
    lines = gzip.decompress((LOGS / "spark-4.2.0-full.gz").read_bytes()).splitlines(keepends=True)
    rolling = tmp_path / "eventlog_v2_local-1"
    rolling.mkdir()
    (rolling / "appstatus_local-1").write_bytes(b"")
    (rolling / ".appstatus_local-1.crc").write_bytes(b"crc")
    for number, part in enumerate((lines[:100], lines[100:101], lines[101:]), 1):
        name = f"events_{number if number < 3 else 10}_local-1"
        (rolling / name).write_bytes(b"".join(part))
    whole = ingest([str(LOGS / "spark-4.2.0-full.gz")], log_format="spark-events")
    rolled = ingest([str(tmp_path)])
    assert (rolled.lines, rolled.used) == (whole.lines, whole.used)
    (tmp_path / "app-2.inprogress").write_bytes(b"".join(lines)[:-7_000])
    cut = ingest([str(tmp_path / "app-2.inprogress")])
    assert whole.used - 20 < cut.used < whole.used
    assert cut.quarantined.keys() <= {"truncated"}
    assert {**cut.quarantined, **cut.ignored}.keys() & {"unfinished", "truncated"}
    compacted = tmp_path / "eventlog_v2_local-3"
    compacted.mkdir()
    (compacted / "events_1_local-3").write_bytes(b"".join(lines[:100]))
    (compacted / "events_1_local-3.compact").write_bytes(b"".join(lines[:3]))
    (compacted / "events_2_local-3").write_bytes(b"".join(lines[100:]))
    assert ingest([str(compacted)]).used < whole.used


def _broken(folder: Path) -> list[bytes]:
    """A rolling log of 120 executions in three files, the second of which breaks off; the first ends in the last.

    Returns:
        The whole files.
    """
    scan = {"Location": "PreparedDeltaFileIndex(1 paths)[file:/lake/t]", "Format": "Parquet"}
    scan |= {"ReadSchema": "struct<a:int>", "PartitionFilters": "[]"}
    events = []
    for i in range(120):
        pair = _log(scan | {"DataFilters": f"[(a#1 = {i})]"}, random.Random(i).randbytes(50).hex())
        events += [event.replace(b'"executionId": 1', b'"executionId": %d' % i) for event in pair]
    events.insert(200, events.pop(1))  # the first one ends in the last file
    log = folder / "eventlog_v2_app"
    log.mkdir()
    whole = [gzip.compress(b"".join(events[part * 80 : part * 80 + 80])) for part in range(3)]
    for part, packed in enumerate(whole):
        (log / f"events_{part + 1}_app").write_bytes(packed if part != 1 else packed[:-1_500])
    return whole


def test_a_damaged_file_of_a_rolling_log_costs_no_later_one(tmp_path: Path) -> None:
    """Nor an execution that began before the damage and ended behind it."""
    _broken(tmp_path)
    (listed,) = list_logs(str(tmp_path))
    lines = list(lines_of(listed))
    (damage,) = (line for line in lines if line.reason == "damaged_file")
    assert 20_000_000_030 < damage.position < 20_000_000_081
    read = {line.execution.scans[0].predicate.to_sql() for line in lines if line.execution and line.reason is None}
    assert {"a = 0", *(f"a = {i}" for i in (*range(1, 40), *range(81, 120)))} <= read
    assert len(read) < 115
    behind = [line for line in lines_of(listed, after=damage.position) if line.reason is None]
    assert all(line.position > 30_000_000_000 for line in behind)
    assert len({line.position for line in lines}) == len(lines)


def test_a_damaged_file_that_was_copied_anew_is_read_on_from_where_it_broke_off(tmp_path: Path) -> None:
    """What its line says to do; as later files had been read, nothing of it was."""
    whole, name = _broken(tmp_path), tmp_path / "eventlog_v2_app" / "events_2_app"
    told, after, damaged = list[str](), 0, frozenset[int]()
    for night, (size, broken) in enumerate([(-1_500, 1), (-1_500, 1), (-600, 1), (None, 0), (None, 0)]):
        name.write_bytes(whole[1][:size])
        (listed,) = list_logs(str(tmp_path))
        part = Part(listed, "UTC", "log", after, damaged=damaged)
        rows = [row for batch in rows_of([part], Catalog()) for row in batch.to_pylist()]
        told += [row["predicate"] for row in rows if row["kind"] == "query"]
        file = record_of(part, [{**row, "counts": json.loads(row["counts"])} for row in rows if row["kind"] == "file"])
        damaged = frozenset(json.loads(file["counts"]).get(DAMAGED, ()))
        assert (len(damaged), len(told) == len(set(told))) == (broken, True)
        assert file["position"] >= after
        if night == 1:
            assert not [row for row in rows if row["kind"] != "file"]
        after = file["position"]
    assert len(told) == 119, "all but the one of which the end had been read, in the third file, without its beginning"


@pytest.mark.parametrize("old_state", [False, True])
def test_what_comes_after_a_compaction_is_read(tmp_path: Path, old_state: bool) -> None:
    """A compacted log has fewer lines, and what was added to it is none that was read."""
    lines = gzip.decompress((LOGS / "spark-4.2.0-full.gz").read_bytes()).splitlines(keepends=True)
    log = tmp_path / "eventlog_v2_local-1"
    log.mkdir()
    (log / "events_1_local-1").write_bytes(b"".join(lines[:100]))
    (log / "events_2_local-1").write_bytes(b"".join(lines[100:120]))
    (listed,) = list_logs(str(tmp_path))
    first = list(lines_of(listed))
    last = max(line.position for line in first if line.reason is None)
    (log / "events_3_local-1").write_bytes(b"".join(lines[120:]))
    (grown,) = list_logs(str(tmp_path))
    rest = [line.timestamp for line in lines_of(grown, after=last)]
    if old_state:  # its positions were lines of all files together
        last = last - 20_000_000_000 + 100
        assert [line.timestamp for line in lines_of(grown, after=last)] == rest
        return
    (log / "events_1_local-1").unlink()
    (log / "events_2_local-1").rename(log / "events_2_local-1.compact")
    (log / "events_2_local-1.compact").write_bytes(b"".join(lines[:3]))
    (compacted,) = list_logs(str(tmp_path))
    found = [line.timestamp for line in lines_of(compacted, after=last)]
    assert found == [line.timestamp for line in lines_of(compacted) if line.position > 30_000_000_000]
    assert len(found) > 20
    assert found == rest[-len(found) :]


def test_what_was_read_is_known_where_the_log_says_it() -> None:
    found = ingest([str(LOGS / "default")])
    assert found.used == 3
    assert all(query.rows_read and query.bytes_read and query.duration_ms for query in found.queries)
    assert all(query.rows_read is None for query in ingest([str(LOGS / "spark-4.2.0-tz.gz")]).queries)


def test_damage_is_counted_and_nothing_crashes(tmp_path: Path) -> None:
    lines = gzip.decompress((LOGS / "spark-3.5.9-full.gz").read_bytes()).splitlines(keepends=True)
    broken = [line[: len(line) // 2] + b"\n" if i % 7 == 3 else line for i, line in enumerate(lines)]
    broken[5:5] = [b"\xff\xfe\x00garbage\n", b"{}\n", b"null\n", b"[1]\n", b'{"Event": 5}\n', b"\n"]
    (tmp_path / "app-1").write_bytes(b"".join(broken))
    found = ingest([str(tmp_path / "app-1")], log_format="spark-events")
    assert found.lines == found.used + sum(found.ignored.values()) + sum(found.quarantined.values())
    assert found.used > 100
    assert found.quarantined["malformed_json"] > 20


def test_tables_match_by_location_and_by_catalog_name() -> None:
    log = str(LOGS / "spark-4.2.0-full.gz")
    by_name = ingest([log], log_format="spark-events", aliases={"default.events": "e"}, schemas={"e": EVENTS})
    by_path = ingest([log], log_format="spark-events", aliases={"/tmp/ev/data/4.2.0/my events": "e"})
    unknown = ingest([log], log_format="spark-events", aliases={"elsewhere": "e"})
    assert by_name.used > 100
    assert by_path.used >= by_name.used
    assert unknown.used == 0
    assert unknown.ignored["other_table"] >= by_name.used
    assert Counter(query.table for query in by_name.queries).keys() == {"e"}
    assert all(query.zone and query.timestamp and query.duration_ms is not None for query in by_name.queries)


@pytest.mark.parametrize(
    ("location", "kind", "filters", "ignored"),
    [
        ("TahoeBatchFileIndex(1 paths)[file:/lake/events]", "Parquet", "[(id#1 = 5)]", None),
        ("TahoeBatchFileIndex(1 paths)[file:/lake/events]", "Parquet", "[((id#1 % 3) = 1)]", None),  # a scan of ours
        ("TahoeBatchFileIndex(1 paths)[file:/lake/events]", "Parquet", "[isnotnull(id#1), (id#1 > id#2)]", None),
        ("TahoeBatchFileIndex(1 paths)[file:/lake/events]", "Parquet", "[]", "maintenance"),
        ("TahoeBatchFileIndex(1 paths)[file:/lake/events]", "Parquet", "[(__delta_internal_is_row_deleted#2 = 0)]",
         "maintenance"),
        ("PreparedDeltaFileIndex(1 paths)[file:/lake/events]", "Parquet", "[(id#1 = 5)]", None),
        ("PreparedDeltaFileIndex(1 paths)[file:/lake/events]", "Parquet", "[]", None),
        ("InMemoryFileIndex(1 paths)[file:/lake/events]", "Parquet", "[(id#1 = 5)]", "other_table"),
        ("InMemoryFileIndex(1 paths)[file:/landing/events]", "CSV", "[(id#1 = 5)]", "other_table"),
        ("CatalogFileIndex(1 paths)[file:/lake/events]", "ORC", "[(id#1 = 5)]", "other_table"),
    ],
)  # fmt: skip
def test_reads_of_other_files_and_of_files_that_a_command_chose_count_for_none(
    location: str, kind: str, filters: str, ignored: str | None, tmp_path: Path
) -> None:
    scan = {
        "Location": location,
        "Format": kind,
        "ReadSchema": "struct<id:int>",
        "DataFilters": filters,
        "PushedFilters": "[]",
        "PartitionFilters": "[]",
    }
    (tmp_path / "app-1").write_bytes(b"".join(_log(scan)))
    found = ingest([str(tmp_path / "app-1")], log_format="spark-events", aliases={"events": "e"}, schemas={"e": EVENTS})
    assert found.used == (ignored is None)
    assert found.ignored == ({} if ignored is None else {ignored: 1})


@pytest.mark.parametrize(
    ("description", "kind"),
    [
        ("SELECT id FROM t WHERE kind = 'VACUUM'", None),
        ("SELECT id FROM t -- before zorder by kind", None),
        ("SELECT * FROM t /* Optimizing 3 files */ WHERE text = 'Delta: Writing x'", None),
        ("SELECT 'Compute snapshot for version: 3' FROM vacuum_runs", None),
        ("Delta: SELECT 'Delta: x: Writing y' FROM t: Finding files to rewrite for UPDATE operation", None),
        ("vacuumed(t)", None),
        ("/lake/t<br/>Optimizing 3 files", "maintenance"),
        ("file:/lake/my t<br/>Optimizing 3 files in partition (d=2024-01-01)", "maintenance"),
        ("Delta: Rewriting 3 files for DELETE operation", "maintenance"),
        ("Delta: DELETE FROM t WHERE a = ': x': Rewriting 3 files for DELETE operation", "maintenance"),
        ("Delta: Writing merged data", "maintenance"),
        ("Delta: MERGE operation - Rewriting 3 files", "maintenance"),
        ("Delta: MERGE INTO t USING s: MERGE operation - Rewriting Deletion Vectors to 3 files", "maintenance"),
        ("Delta: MERGE INTO t USING s: MERGE operation - scanning files for matches", None),
        ("Delta: Compute snapshot for version: 3", "maintenance"),
        ("Delta: SELECT id\nFROM t: Compute snapshot for version: 3", "maintenance"),
        ("VACUUM t RETAIN 200 HOURS", "maintenance"),
        ("-- nightly\n/* all */ vacuum t", "maintenance"),
        ("zorder: sales", "maintenance"),
    ],
)
def test_a_statement_that_holds_a_word_of_upkeep_is_none(description: str, kind: str | None) -> None:
    scan = {"Location": "PreparedDeltaFileIndex(1 paths)[file:/lake/t]", "Format": "Parquet"}
    scan |= {"ReadSchema": "struct<id:int>", "DataFilters": "[(id#1 = 5)]", "PartitionFilters": "[]"}
    (found,) = executions(_log(scan, description))
    assert [each.predicate.to_sql() for each in found.scans] == ([] if kind else ["id = 5"])
    assert found.kind == (kind or "no_scan")


def test_counts_are_kept_of_open_executions_alone() -> None:
    """Those of upkeep, and of what could not be read, stayed: the log of a server grows for months."""
    scan = {"Location": "PreparedDeltaFileIndex(1 paths)[file:/lake/t]", "Format": "Parquet"}
    scan |= {"ReadSchema": "struct<id:int>", "DataFilters": "[(id#1 = 5)]", "PartitionFilters": "[]"}
    events_of, found = _Reader(no_types), list[Execution]()
    for i in range(30):
        start, end = map(json.loads, _log(scan, "VACUUM t" if i % 3 else "SELECT 1"))
        metrics = [{"name": "number of output rows", "accumulatorId": 2 * i, "metricType": "sum"}]
        metrics += [{"name": "size of files read", "accumulatorId": 2 * i + 1, "metricType": "size"}]
        start["sparkPlanInfo"]["metrics"] = metrics
        rows = {"Event": "org.apache.spark.sql.execution.ui.SparkListenerDriverAccumUpdates", "executionId": 1}
        events = [start, rows | {"accumUpdates": [[2 * i, 100 + i], [2 * i + 1, 9]]}, end]
        for event in events:
            found += events_of.line(1, json.dumps(event).encode() + b"\n")
        assert (events_of.counts, events_of.expected) == ({}, Counter())
    assert [one.rows_read for one in found if one.scans] == [100 + i for i in range(0, 30, 3)]
    for event in events[:1] * 2:  # begun twice under one number
        list(events_of.line(1, json.dumps(event).encode() + b"\n"))
    assert events_of.expected == Counter({58: 1, 59: 1})


def test_an_event_without_end_is_not_held_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file that is packed may be one line of gigabytes."""
    monkeypatch.setattr(event_lines, "MAX_EVENT", 100_000)
    monkeypatch.setattr(event_lines, "SKIPPED", 10_000)
    scan = {"Location": "PreparedDeltaFileIndex(1 paths)[file:/lake/t]", "Format": "Parquet"}
    scan |= {"ReadSchema": "struct<id:int>", "DataFilters": "[(id#1 = 5)]", "PartitionFilters": "[]"}
    other, begun = b'{"Event": "Other"', _log(scan)[0][:-2]
    filled = b', "x": "' + b"x" * 350_000 + b'"}'
    for long, told in (
        (b"[" * 350_000, ["malformed_json"]),
        (other + filled, []),
        (begun + filled, ["malformed_json"]),
    ):
        (tmp_path / "app-1.gz").write_bytes(gzip.compress(long + b"\n" + b"".join(_log(scan))))
        (log,) = list_logs(str(tmp_path), "spark-events")
        lines = list(lines_of(log))
        assert [line.reason for line in lines] == [*told, None]
        assert lines[-1].position == 3
