"""Logs as lines: every format, every compression, and whatever is damaged."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import random
import re
import struct
import time
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyarrow import fs

from zorder_pipeline.errors import LogError
from zorder_pipeline.query_log.intake.files import LogFile, list_logs
from zorder_pipeline.query_log.intake.ingest import Interpreter, ingest
from zorder_pipeline.query_log.intake.parts import Part, rows_of
from zorder_pipeline.query_log.intake.reader import lines_of
from zorder_pipeline.query_log.intake.records import line_of
from zorder_pipeline.query_log.statements.catalog import Catalog
from zorder_pipeline.query_log.statements.sql import Unusable

RECORDS = [
    {"statement": "SELECT a FROM t WHERE a = 1", "timestamp": "2024-01-15T10:00:00Z", "user": "ann"},
    {"statement": "SELECT a FROM t WHERE a = 2", "timestamp": 1_705_312_800, "duration_ms": 12.5},
    {"statement": "INSERT INTO t VALUES (1)", "timestamp": 1_705_312_800_000},
]
LINES = "".join(json.dumps(record) + "\n" for record in RECORDS).encode()


def _lz4_java(data: bytes) -> bytes:
    packed = pa.Codec("lz4_raw").compress(data, asbytes=True)
    block = b"LZ4Block" + struct.pack("<BiiI", 0x25, len(packed), len(data), 0) + packed
    plain = b"LZ4Block" + struct.pack("<BiiI", 0x15, len(data), len(data), 0) + data
    return block + plain + b"LZ4Block" + struct.pack("<BiiI", 0x15, 0, 0, 0)


def _snappy_java(data: bytes) -> bytes:
    packed = pa.Codec("snappy").compress(data, asbytes=True)
    head = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    return head + struct.pack(">i", len(packed)) + packed + head + struct.pack(">i", len(packed)) + packed


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("log.jsonl", LINES),
        ("log.json.gz", gzip.compress(LINES)),
        ("log.jsonl.zst", pa.Codec("zstd").compress(LINES, asbytes=True)),
        ("log.jsonl.bz2", bz2.compress(LINES)),
        ("log.jsonl.lz4", pa.Codec("lz4").compress(LINES, asbytes=True)),
        ("log.ndjson", LINES.replace(b"\n", b"\r\n") + b"\n\n"),
        ("log", LINES),
        ("log.jsonl", "\ufeff".encode() + LINES),
    ],
)
def test_json_lines_in_every_compression(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    log = ingest([str(tmp_path / name)])
    assert (log.lines, log.used, log.ignored) == (3, 2, {"insert": 1})
    assert [query.timestamp for query in log.queries] == [1_705_312_800_000_000] * 2
    assert (log.queries[0].user, log.queries[1].duration_ms) == ("ann", 12.5)


@pytest.mark.parametrize(
    "data",
    [
        json.dumps(RECORDS).encode(),
        json.dumps(RECORDS, indent=2).encode(),
        "\ufeff".encode() + json.dumps(RECORDS).encode(),
        json.dumps({"res": RECORDS, "has_next_page": True}).encode(),
        json.dumps({"next": None, "items": RECORDS}, indent=1).encode(),
        json.dumps({"next_page_token": "x", "res": RECORDS}).encode(),
        json.dumps({"next": None, "warnings": [], "statements": RECORDS}).encode(),
    ],
    ids=["a list", "printed", "marked", "an answer", "an answer printed", "an answer that begins otherwise", "another"],
)
def test_a_file_that_is_one_document(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "log.json").write_bytes(data)
    log = ingest([str(tmp_path / "log.json")])
    assert (log.lines, log.used, log.ignored) == (3, 2, {"insert": 1})
    (tmp_path / "log.json").write_bytes(data[:-9])
    assert ingest([str(tmp_path / "log.json")]).quarantined == {"truncated": 1}


@pytest.mark.parametrize("second", [b"\n", b"\r\n", b"begun anew\n", b'{"statement": "SEL'])
@pytest.mark.parametrize("more", [{"params": []}, {"tables": [{"n": "t"}]}, {"queries": [[1], [2]]}])
def test_lines_of_records_that_have_lists_are_no_document(tmp_path: Path, more: dict[str, Any], second: bytes) -> None:
    """One line that is none after the first made a bad line of the whole file, and what came later was passed over."""
    records = [json.dumps({"statement": f"SELECT a FROM t WHERE a = {i}", **more}).encode() for i in range(9)]
    lines = b"\n".join(records[1:]) + b"\n" if second.endswith(b"\n") else b""
    (tmp_path / "log.jsonl").write_bytes(records[0] + b"\n" + second + lines)
    assert ingest([str(tmp_path / "log.jsonl")]).used == (9 if lines else 1)


def test_an_event_with_a_list_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(json.dumps({"id": 1, "params": [{"name": "a"}, {"name": "b"}]}))
    log = ingest([str(tmp_path / "log.json")])
    assert (log.lines, log.quarantined) == (1, {"no_statement": 1})


@pytest.mark.parametrize("indent", [None, 2])
def test_a_page_without_a_row_is_no_line(tmp_path: Path, indent: int | None) -> None:
    (tmp_path / "log.json").write_text(json.dumps({"next": None, "statements": []}, indent=indent))
    assert ingest([str(tmp_path / "log.json")]).lines == 0


def test_a_record_that_has_a_list_is_no_document(tmp_path: Path) -> None:
    record = {"statement": "SELECT a FROM t WHERE a = 1", "queries": [{"statement": "SELECT 1"}]}
    (tmp_path / "log.json").write_text(json.dumps(record))
    assert ingest([str(tmp_path / "log.json")]).used == 1


@pytest.mark.parametrize(
    ("record", "failed"),
    [
        *(
            ({"status": status}, False)
            for status in ("SUCCESSFUL", "executed", "SUCCESS_WITH_INFO", "Successfully run")
        ),
        *(({"status": status}, False) for status in ("FINISHED_WITH_WARNINGS", "completion", "Finished.", "SUCCESS")),
        *(
            ({"status": status}, True)
            for status in (
                *("EXECUTION_FAILED", "finished with errors", "unsuccessful", "BROKEN"),
                *("EXECUTION_REJECTED", "execution denied", "COMPLETED_UNSUCCESSFULLY"),
            )
        ),
        *(({"state": state}, True) for state in ("Exception", "ERR", "ERROR")),
        *(({"state": state}, False) for state in ("CA", "Erie", "executed")),
    ],
)
def test_a_state_is_a_failure_by_its_words(record: dict[str, str], failed: bool) -> None:
    assert line_of("log", 1, {"query": "SELECT 1", **record}).failed == failed


@pytest.mark.parametrize(
    ("record", "failed", "parameters", "moment"),
    [
        ({"start_time": "2024-01-15 02:00:00.000 -0800", "state": "FINISHED"}, False, None, True),
        ({"start_time": "2024-01-15 10:00:00 +0000 UTC", "Status": {"State": "SUCCEEDED"}}, False, None, True),
        ({"creationTime": "x", "createTime": "2024-01-15 11:00:00 Europe/Berlin", "state": "DONE"}, False, None, True),
        ({"start_time": "Mon, 15 Jan 2024 10:00:00 GMT", "state": "DONE", "error_result": {"m": 1}}, True, None, True),
        ({"time": "01/02/2024 10:00", "Status": {"State": "CANCELLED"}}, True, None, False),
        ({"time": "10:00", "state": "FAILED"}, True, None, False),
        ({"time": "2024-01-15 02:00:00 PST", "state": "CA", "error_message": "NULL"}, False, None, False),
        ({"time": "2024-01-15 12:00:00 +0200 EET", "status": 0, "error_message": "None"}, False, None, True),
        ({"time": "2024-01-15 10:00:00 Etc/GMT+0", "error_message": "out of memory"}, True, None, True),
        ({"parameters": "[" * 200_000}, False, None, False),
        ({"query_parameters": {"named_parameters": {"p": "5"}, "pos_parameters": None}}, False, {"p": "5"}, False),
        ({"query_parameters": {"named_parameters": {}, "pos_parameters": ["5"]}}, False, ("5",), False),
        ({"parameters": [{"name": "p", "value": "5.0", "type": "DECIMAL(3,1)"}]}, False, {"p": Decimal("5.0")}, False),
        ({"parameters": [{"value": "5", "type": "STRING"}, {"value": "x"}]}, False, ("5", "x"), False),
        ({"parameters": [{"key": "p", "value": 5}]}, False, {"p": 5}, False),
        ({"parameters": [("p", 5)]}, False, {"p": 5}, False),
    ],
)
def test_records_as_many_systems_write_them(
    record: dict[str, object], failed: bool, parameters: object, moment: bool
) -> None:
    line = line_of("log", 1, {"query": "SELECT 1", **record})
    assert (line.failed, line.parameters) == (failed, parameters)
    assert line.timestamp == (1_705_312_800_000_000 if moment else None)


@pytest.mark.parametrize(
    ("record", "cached"),
    [
        ({"from_result_cache": True, "execution_status": "FINISHED"}, True),  # system.query.history
        ({"from_result_cache": False, "read_rows": 5}, False),
        ({"metrics": {"result_from_cache": True, "read_bytes": 0}}, True),  # the API of the same
        ({"metrics": {"result_from_cache": False, "read_bytes": 0}}, False),
        ({"cache_hit": "true"}, True),  # BigQuery's JOBS, as CSV
        ({"cache_hit": None, "total_bytes_processed": 0}, False),
        ({"result_cache_hit": "t", "status": "success"}, True),  # Redshift's SYS_QUERY_HISTORY
        ({"result_cache_hit": "f"}, False),
        ({"Statistics": {"ResultReuseInformation": {"ReusedPreviousResult": True}}}, True),  # Athena
        ({"Statistics": {"ResultReuseInformation": {"ReusedPreviousResult": False}}}, False),
        ({"parameters": {"cache_hit": True}}, False),
        ({"BYTES_SCANNED": 0, "PERCENTAGE_SCANNED_FROM_CACHE": 1}, False),  # Snowflake's, of files that were read
    ],
)
def test_an_answer_of_a_cache_of_results_read_nothing(tmp_path: Path, record: dict[str, object], cached: bool) -> None:
    (tmp_path / "log.jsonl").write_text(json.dumps({"query": "SELECT a FROM t WHERE a = 1", **record}))
    log = ingest([str(tmp_path)])
    assert (log.used, log.ignored) == ((0, {"from_cache": 1}) if cached else (1, {}))


@pytest.mark.parametrize(("suffix", "pack"), [("lz4", _lz4_java), ("snappy", _snappy_java)])
def test_the_java_framings_of_sparks_event_logs(tmp_path: Path, suffix: str, pack: object) -> None:
    (tmp_path / f"log.jsonl.{suffix}").write_bytes(pack(LINES))  # type: ignore[operator]
    assert ingest([str(tmp_path / f"log.jsonl.{suffix}")]).lines == 6


@pytest.mark.parametrize("suffix", ["gz", "lz4", "snappy", "zst"])
def test_a_truncated_stream_gives_what_can_be_read_and_says_so(tmp_path: Path, suffix: str) -> None:
    many = b"".join(
        json.dumps({"statement": f"SELECT a FROM t WHERE a = {i} AND c = '{i * 7919 % 1000003:x}'"}).encode() + b"\n"
        for i in range(6_000)
    )
    pack = {
        "gz": gzip.compress,
        "lz4": lambda data: b"".join(_lz4_java(data[i : i + 30_000])[:-21] for i in range(0, len(data), 30_000)),
        "snappy": lambda data: b"".join(_snappy_java(data[i : i + 30_000]) for i in range(0, len(data), 30_000)),
        "zst": lambda data: pa.Codec("zstd").compress(data, asbytes=True),
    }[suffix]
    whole = pack(many)
    (tmp_path / f"log.jsonl.{suffix}").write_bytes(whole[: len(whole) // 2])
    log = ingest([str(tmp_path / f"log.jsonl.{suffix}")])
    assert log.lines == log.used + sum(log.ignored.values()) + sum(log.quarantined.values())
    assert log.quarantined.keys() & {"damaged_file", "truncated", "malformed_json"}
    if suffix != "zst":  # one block: all or nothing
        assert log.used > 1000


def _lzf(data: bytes) -> bytes:
    blocks = [data[i : i + 1_000] for i in range(0, len(data), 1_000)]
    runs = [b"".join(bytes([len(b[j : j + 32]) - 1]) + b[j : j + 32] for j in range(0, len(b), 32)) for b in blocks]
    return b"".join(b"ZV\x01" + struct.pack(">HH", len(r), len(b)) + r for b, r in zip(blocks, runs, strict=True))


def _parquet(data: bytes) -> bytes:
    page = io.BytesIO()
    rows = [json.loads(line)["statement"] for line in data.splitlines()]
    pq.write_table(pa.table({"statement": rows}), page, row_group_size=50)
    return page.getvalue()


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "jsonl": bytes,
    "jsonl.gz": gzip.compress,
    "jsonl.bz2": bz2.compress,
    "jsonl.zst": lambda data: bytes(pa.Codec("zstd").compress(data, asbytes=True)),
    "jsonl.lz4": lambda data: bytes(pa.Codec("lz4").compress(data, asbytes=True)),
    "jsonl.lz4.inprogress": _lz4_java,
    "jsonl.snappy": _snappy_java,
    "jsonl.lzf": _lzf,
    "parquet": _parquet,
}


@pytest.mark.parametrize("log_format", ["auto", "spark-events"])
@pytest.mark.parametrize("suffix", PACKED)
def test_a_damaged_file_is_told_and_takes_no_other_with_it(tmp_path: Path, suffix: str, log_format: str) -> None:
    many = [{"statement": f"SELECT a FROM t WHERE a = {i} AND c = '{i * 7919 % 1000003:x}'"} for i in range(100)]
    data = b"".join(json.dumps(record).encode() + b"\n" for record in many)
    if log_format == "spark-events":
        data = b'{"Event": "SparkListenerLogStart"}\n' + data
        if suffix == "parquet":
            pytest.skip("event logs are text")
    whole = PACKED[suffix](data)
    (tmp_path / "b.jsonl").write_bytes(LINES)
    chance = random.Random(suffix)
    told = 0
    for _ in range(30):
        damaged = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(8, len(damaged))] = chance.randrange(256)
        (tmp_path / f"a.{suffix}").write_bytes(damaged)
        log = ingest([str(tmp_path)], log_format=log_format)
        assert log.lines == log.used + sum(log.ignored.values()) + sum(log.quarantined.values())
        assert log_format != "auto" or log.used >= 2  # of the other file
        told += bool(log.quarantined)
    assert told > (5 if log_format == "auto" else 0)


def test_a_form_of_block_that_lz4_java_does_not_have_is_damage(tmp_path: Path) -> None:
    packed = bytearray(_lz4_java(LINES))
    packed[8] = 0x35
    (tmp_path / "log.jsonl.lz4").write_bytes(packed)
    assert ingest([str(tmp_path / "log.jsonl.lz4")]).quarantined == {"damaged_file": 1}


def test_rows_of_parquet_that_python_cannot_hold_cost_no_others(tmp_path: Path) -> None:
    texts = pa.array([b"SELECT a FROM t WHERE a = 1", b"\xff\xfe", b"SELECT a FROM t WHERE a = 2"])
    offsets, data = texts.buffers()[1:]
    moments = pa.array([2**62, 0, 1_705_312_800_000_000], pa.timestamp("us"))
    rows = pa.table({"statement": pa.Array.from_buffers(pa.string(), 3, [None, offsets, data]), "ts": moments})
    pq.write_table(rows, tmp_path / "log.parquet")
    log = ingest([str(tmp_path / "log.parquet")])
    assert (log.lines, log.used, log.quarantined) == (3, 2, {"invalid_utf8": 1})
    assert [query.timestamp for query in log.queries] == [None, 1_705_312_800_000_000]


@pytest.mark.parametrize(
    "moment",
    [
        "9999-12-31T23:59:59Z",
        "0001-01-01T00:00:00Z",
        "1900-01-01",
        0,
        "0",
        "1970-01-01T10:00:00-02:00",
        1e21,
        "1" * 22,
        -9.9e13,
        32_503_680_000_000,
        "soon",
    ],
)
def test_a_time_at_which_no_query_can_have_run_is_an_unknown_one(tmp_path: Path, moment: object) -> None:
    records = [*RECORDS, {"statement": "SELECT a FROM t WHERE a = 3", "timestamp": moment}]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    part = Part(LogFile(str(tmp_path / "log.jsonl"), "json", (str(tmp_path / "log.jsonl"),), 0), "UTC")
    rows = [row for batch in rows_of([part], Catalog()) for row in batch.to_pylist()]
    assert [row["query_timestamp"] for row in rows if row["kind"] == "query"][-1] is None
    (file,) = (row for row in rows if row["kind"] == "file")
    assert file["query_timestamp"] == 1_705_312_800_000_000
    counts = json.loads(file["counts"])
    assert (counts["lines"], counts["used"], counts["ignored"], counts["quarantined"]) == (4, 3, {"insert": 1}, {})


@pytest.mark.parametrize(
    ("moments", "expected"),
    [
        (pa.array([Decimal(1_705_312_800)], pa.decimal128(38, 0)), 1_705_312_800_000_000),
        (pa.array([Decimal(1_705_312_800_000)], pa.decimal128(38, 0)), 1_705_312_800_000_000),
        (pa.array([Decimal("1705312800.25")], pa.decimal128(20, 6)), 1_705_312_800_250_000),
        (pa.array([date(2024, 1, 15)]), 1_705_276_800_000_000),
        (pa.array(["2024-01-15"]), 1_705_276_800_000_000),
        (pa.array(["1.7053128E12"]), 1_705_312_800_000_000),
        (pa.array(["1.7053128e+09"]), 1_705_312_800_000_000),
        (pa.array(["1e999"]), None),
    ],
)
def test_times_as_numbers_and_days_of_any_type(tmp_path: Path, moments: pa.Array, expected: int | None) -> None:
    rows = pa.table({"statement": pa.array(["SELECT a FROM t WHERE a = 1"]), "ts": moments})
    pq.write_table(rows, tmp_path / "log.parquet")
    assert ingest([str(tmp_path / "log.parquet")]).queries[0].timestamp == expected
    assert line_of("log", 1, {"sql": "SELECT 1", "ts": str(moments[0])}).timestamp == expected


@pytest.mark.parametrize("moment", ["NaN", "sNaN", "Infinity", "-Infinity", "1e400"])
def test_a_decimal_that_is_no_number_is_no_time(moment: str) -> None:
    assert line_of("log", 1, {"sql": "SELECT 1", "ts": Decimal(moment)}).timestamp is None


def test_the_clock_of_another_machine_may_be_ahead_by_hours(tmp_path: Path) -> None:
    ahead = round(time.time()) + 3600
    (tmp_path / "log.jsonl").write_text(json.dumps({"statement": "SELECT a FROM t", "timestamp": ahead}))
    assert ingest([str(tmp_path)]).queries[0].timestamp == ahead * 1_000_000


def test_csv_parquet_and_scripts(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        'statement_text,start_time,read_rows,read_bytes,execution_status\n"SELECT a\nFROM t WHERE a = 1",'
        "2024-01-15 10:00:00,100,2000,FINISHED\nSELECT a FROM t,2024-01-15 10:00:01,1,1,FAILED\n,,,,\n"
    )
    table = pa.table({"query_text": ["SELECT a FROM t WHERE a = 2"], "start_time": [pa.scalar(1_705_312_800_000_000)]})
    pq.write_table(table, tmp_path / "b.parquet")
    (tmp_path / "c.sql").write_text("-- first\nSELECT a FROM t WHERE a = ';';\n\n/* ; */ SELECT 1; ;\n-- nothing")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".hidden.jsonl").write_text("{")
    log = ingest([str(tmp_path)])
    assert (log.lines, log.used) == (6, 3)
    assert log.ignored == {"failed": 1, "no_table": 1}
    assert log.quarantined == {"no_statement": 1}
    assert (log.queries[0].rows_read, log.queries[0].bytes_read) == (100, 2000)


SCRIPT = "SELECT a FROM t WHERE a = 1;\r\nSELECT a FROM t WHERE a = 2;\r\n"
TABLE = "time,statement\n" + "".join(f"{i},SELECT a FROM t WHERE a = {i}\n" for i in range(2))
TEXTS = [("a.jsonl", LINES.decode()), ("a.csv", TABLE), ("a.sql", SCRIPT)]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
@pytest.mark.parametrize(("name", "text"), [*TEXTS, ("a", LINES.decode())])
def test_texts_as_windows_writes_them(tmp_path: Path, encoding: str, name: str, text: str) -> None:
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    (tmp_path / name).write_bytes((mark + text).encode(encoding))
    log = ingest([str(tmp_path)])
    assert (log.used, log.quarantined) == (2, {})


@pytest.mark.parametrize(("name", "text"), [("a.jsonl", LINES.decode()), ("a.sql", SCRIPT)])
def test_texts_that_were_put_together_have_a_mark_of_order_in_their_midst(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(text.encode("utf-8-sig") * 2)
    log = ingest([str(tmp_path / name)])
    assert (log.used, log.quarantined) == (4, {})


@pytest.mark.parametrize("nuls", [1, 10_000, 9_000_001])
@pytest.mark.parametrize(("name", "text"), TEXTS)
def test_nuls_before_and_after_the_text_are_no_part_of_it(tmp_path: Path, name: str, text: str, nuls: int) -> None:
    """What was emptied while its writer kept its place, and what a machine that stopped had reserved."""
    (tmp_path / name).write_bytes(b"\0" * nuls + text.encode() + b"\0" * (nuls if name != "a.csv" else 0))
    log = ingest([str(tmp_path / name)])
    assert (log.used, log.quarantined) == (2, {})


def test_bad_lines_are_quarantined_with_their_position_and_nothing_after_them_is_lost(tmp_path: Path) -> None:
    good = json.dumps({"statement": "SELECT a FROM t WHERE a = 1"}).encode()
    bad = [b"{", b"[1, 2]", b'{"statement": 5}', b'{"x": "\xff\xfe"}', b'"SELECT a FROM t"', b"[" * 100_000, b"null"]
    (tmp_path / "log.jsonl").write_bytes(b"\n".join([*bad, good]) + b"\n" + good[:20])
    log = ingest([str(tmp_path / "log.jsonl")])
    assert (log.lines, log.used) == (9, 2)
    assert log.quarantined == {"malformed_json": 2, "no_statement": 3, "invalid_utf8": 1, "truncated": 1}
    (file,) = list_logs(str(tmp_path / "log.jsonl"))
    told = Interpreter(Catalog.of({}, {}, {}, "spark")).log(file)
    assert {line.position for line, found in told if isinstance(found, Unusable)} == {1, 2, 3, 4, 6, 7, 9}


def test_a_line_beyond_all_measure_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b'{"statement": "' + b"x" * 9_000_000 + b'"}\n' + LINES)
    log = ingest([str(tmp_path / "log.jsonl")])
    assert (log.lines, log.used, log.quarantined) == (4, 2, {"too_long": 1})


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_no_log_is_one_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(LogError, match=name):
        [list(lines_of(log)) for log in list_logs(str(tmp_path / name), "auto")]


def test_a_pipe_is_no_log_as_it_can_be_read_once_only(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path, what in ((str(tmp_path / "fifo"), "a pipe"), ("-", "a pipe"), ("/dev/null", "a device or a socket")):
        told = f"query log {path} is {what}, and a log is read more than once; write it to a file, and give that"
        with pytest.raises(LogError, match=f"^{re.escape(told)}$"):
            list_logs(path)


def test_a_folder_that_cannot_be_listed_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class _Closed(fs.FileSelector):  # type: ignore[misc]
        """As if this user might not read the folder ``closed``; the tests may run as root, who may."""

        def __init__(self, base_dir: str, **options: bool) -> None:
            if base_dir.endswith("closed"):
                raise PermissionError(13, f"Cannot list directory '{base_dir}'")
            super().__init__(base_dir, **options)

    (tmp_path / "a.sql").write_text("SELECT 1;")
    (tmp_path / "closed").mkdir()
    monkeypatch.setattr(fs, "FileSelector", _Closed)
    with pytest.raises(LogError, match=f"^query log folder {tmp_path}/closed cannot be listed .*; let this user read"):
        ingest([str(tmp_path)])


@pytest.mark.parametrize("folder", ["my logs", "my%20logs"])
@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_a_folder_is_meant_as_it_is_written(tmp_path: Path, folder: str, form: str) -> None:
    place = tmp_path / folder / "q.sql"
    place.parent.mkdir()
    place.write_text("SELECT 1 FROM t WHERE a = 1;", encoding="utf-8")
    assert ingest([form.format(place.parent)]).used == 1


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_parquet_and_delta_logs_in_a_folder_with_a_blank(tmp_path: Path, form: str) -> None:
    rows = pa.table({"statement": ["SELECT 1 FROM t WHERE a = 1"]})
    (tmp_path / "my logs").mkdir()
    pq.write_table(rows, tmp_path / "my logs" / "q.parquet")
    assert ingest([form.format(tmp_path / "my logs")]).used == 1
    write_deltalake(tmp_path / "my table", rows)
    assert ingest([form.format(tmp_path / "my table")]).used == 1


def test_parameters_of_prepared_statements(tmp_path: Path) -> None:
    records = [
        {"statement": "SELECT a FROM t WHERE a = ?", "parameters": [5]},
        {"statement": "SELECT a FROM t WHERE a = :x", "parameters": '{"x": "v"}'},
        {"statement": "SELECT a FROM t WHERE a = :x", "query_parameters": [{"name": "x", "value": 7}]},
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    log = ingest([str(tmp_path / "log.jsonl")])
    assert [query.predicate.to_sql() for query in log.queries] == ["a = 5", "a = 'v'", "a = 7"]


def test_hadoop_s_names_of_object_stores_reach_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "log.sql").write_text("SELECT 1;")
    asked: list[str] = []

    def reached(uri: str) -> tuple[fs.FileSystem, str]:
        asked.append(uri)
        return fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), uri.partition("://bucket/")[2]

    monkeypatch.setattr(fs, "FileSystem", SimpleNamespace(from_uri=reached))
    (found,) = list_logs("s3a://bucket/log.sql")
    assert asked[0] == "s3://bucket/log.sql"
    assert found.size == 9


@pytest.mark.parametrize("dialect", ["trino", "duckdb"])
def test_a_script_is_split_by_the_dialect_of_its_log(tmp_path: Path, dialect: str) -> None:
    script = r"SELECT a FROM t WHERE c = 'C:\'; SELECT a FROM t WHERE c = 'x;y'; SELECT a FROM t WHERE a = 1"
    (tmp_path / "q.sql").write_text(script)
    log = ingest([str(tmp_path / "q.sql")], dialect=dialect)
    assert [query.predicate.to_sql() for query in log.queries] == [r"c = 'C:\'", "c = 'x;y'", "a = 1"]
