"""A log that tells nothing of a table: the sentence names the cause."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from zorder_pipeline.pipeline.learning.nothing_asked import why_nothing
from zorder_pipeline.query_log.intake.ingest import ingest


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["SELECT * FROM t;", "SELECT a FROM t;"], "2 queries scan it and none has a condition"),
        (["SELECT * FROM t WHERE a LIKE '%x%';"], "1 query scans it and none has a condition that compares a column"),
        (["SELECT * FROM u WHERE a = 1;"], "they read u 1 time; if the log calls the table otherwise, .* --alias"),
        (["SELECT * FROM t WHERE a !> 7;"], r"1 line cannot be used \(1: no SQL of the dialect.*another --dialect\)"),
        (["SELECT * FROM u;", "SELECT FROM (;"], r"they read u 1 time.*; 1 line cannot be used \(1: no SQL"),
        (["SET a = 1;"], "they read no table"),
        ([], "the log is empty"),
    ],
)
def test_the_cause_is_told(tmp_path: Path, lines: list[str], told: str) -> None:
    (tmp_path / "log.sql").write_text("\n".join(lines) + "\n")
    log = ingest([str(tmp_path)], aliases={"t": "t"})
    sentence = why_nothing(log, log.of_table(["t"]))
    assert re.match(told, sentence), sentence
    assert ("--alias" in sentence) == ("--alias" in told or " u " in told)


def test_lines_that_are_no_log_are_told(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b"\xff\xfe\x00garbage\n{no JSON\n")
    log = ingest([str(tmp_path)], aliases={"t": "t"})
    assert why_nothing(log, []).startswith("2 lines cannot be used (1: ")
