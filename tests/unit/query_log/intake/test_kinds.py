"""Which files of a folder are logs, of which kind, what they are called, and what is said of the others."""

from __future__ import annotations

import gzip
import io
import json
import lzma
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyarrow import fs

from zorder_pipeline.errors import LogError
from zorder_pipeline.query_log.intake import delta_table, files, kinds
from zorder_pipeline.query_log.intake.files import LogFile, list_logs
from zorder_pipeline.query_log.intake.ingest import ingest
from zorder_pipeline.query_log.intake.intake import find_new
from zorder_pipeline.query_log.intake.known import Known, KnownLogs, known_of, name_of
from zorder_pipeline.query_log.intake.marks import mark_of
from zorder_pipeline.query_log.intake.stored import version_of

STATEMENT = "SELECT * FROM t WHERE a = 1"
LINE = json.dumps({"statement": STATEMENT}) + "\n"
EVENT = '{"Event": "SparkListenerLogStart"}\n'
AZURE = "abfss://c@account.dfs.core.windows.net"


@pytest.mark.parametrize("suffix", ["", ".1", ".2026-11-30", ".2026-11-30_10", ".2026-11-30T10", ".old", ".bak", "~"])
@pytest.mark.parametrize(
    ("name", "text"), [("q.csv", f"statement\n{STATEMENT}\n"), ("q.sql", f"{STATEMENT};\n"), ("q.jsonl", LINE)]
)
def test_a_log_is_one_by_whatever_name_its_rotation_gives_it(tmp_path: Path, name: str, text: str, suffix: str) -> None:
    (tmp_path / f"{name}{suffix}").write_text(text)
    (tmp_path / f"{name}.gz{suffix}").write_bytes(gzip.compress(text.encode()))
    assert ingest([str(tmp_path / f"{name}{suffix}")]).used == 1
    assert len(list_logs(str(tmp_path))) == 2


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    (tmp_path / "a.jsonl").write_text(LINE)
    (tmp_path / "b.jsonl.xz").write_bytes(lzma.compress(LINE.encode()))
    (tmp_path / "c.xml").write_text("<a/>")
    (tmp_path / "d").write_text("")
    (tmp_path / "_SUCCESS").write_text("x")
    (tmp_path / "e").write_text(LINE)
    Path(bytes(tmp_path).decode() + "/f\udcff.jsonl").write_text(LINE)
    assert [log.source[-7:] for log in list_logs(str(tmp_path), progress=told.append)] == [
        "a.jsonl",
        f"{tmp_path}/e"[-7:],
    ]
    assert told == [
        f"2 files in {tmp_path} left out as no query log of a known form, such as b.jsonl.xz",
        f"1 name in {tmp_path} left out as no UTF-8; rename what is called so",
    ]
    with pytest.raises(LogError, match=r"b\.jsonl\.xz is an archive of a kind that is not read here; unpack it"):
        list_logs(str(tmp_path / "b.jsonl.xz"))


def test_a_file_without_a_telling_name_that_may_not_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("app-1", "app-2"):
        (tmp_path / name).write_text(EVENT)
    opened = kinds.opened

    def refused(stream: Any) -> Any:
        if not told:
            told.append("app-1")
            raise PermissionError(13, "Permission denied")
        return opened(stream)

    told: list[str] = []
    monkeypatch.setattr(kinds, "opened", refused)
    assert [log.kind for log in list_logs(str(tmp_path))] == ["events", "events"]


@pytest.mark.parametrize(
    ("log_format", "found"),
    [
        ("auto", {"app-1": "events", "plain": None, "p.log": "json", "r": "json", "q.log": "json", "n.csv": "csv"}),
        ("sql", {"app-1": None, "plain": "sql", "p.log": "sql", "r": "json", "q.log": "json", "n.csv": "csv"}),
        (
            "query-history",
            {"app-1": None, "plain": None, "p.log": "json", "r": "json", "q.log": "json", "n.csv": "csv"},
        ),
    ],
)
def test_a_format_says_what_files_are_whose_names_do_not(
    tmp_path: Path, log_format: str, found: dict[str, str | None]
) -> None:
    texts = {"app-1": EVENT, "plain": STATEMENT, "p.log": STATEMENT, "r": LINE, "q.log": LINE, "n.csv": "statement\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    logs = list_logs(str(tmp_path), log_format)
    assert {log.source.rsplit("/", 1)[-1]: log.kind for log in logs} == {k: v for k, v in found.items() if v}


@pytest.mark.parametrize(
    ("log_format", "text", "kind"),
    [
        ("query-history", STATEMENT, "sql"),
        ("query-history", f"[{LINE}]", "json"),
        ("query-history", EVENT, "json"),
        ("auto", STATEMENT, "sql"),
        ("sql", f"[{LINE}]", "json"),
    ],
)
def test_a_file_named_alone_is_a_script_unless_it_is_json(
    tmp_path: Path, log_format: str, text: str, kind: str
) -> None:
    (tmp_path / "plain").write_text(text)
    assert [log.kind for log in list_logs(str(tmp_path / "plain"), log_format)] == [kind]


def test_texts_are_scripts_by_name(tmp_path: Path) -> None:
    for name, text in (("a.txt", STATEMENT), ("b.txt", LINE)):
        (tmp_path / name).write_text(text)
    assert [log.kind for log in list_logs(str(tmp_path), "sql")] == ["sql", "json"]


def _azure(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """pyarrow's path of a place in a container begins with the container, which the URI has before its host."""
    real = files.filesystem_of

    def reached(place: str) -> tuple[fs.FileSystem, str]:
        if not place.startswith(AZURE):
            return real(place)
        inside = place.removeprefix(AZURE).partition("?")[0].replace("%20", " ")
        return fs.SubTreeFileSystem(str(root), fs.LocalFileSystem()), f"c{inside}"

    monkeypatch.setattr(files, "filesystem_of", reached)
    monkeypatch.setattr(delta_table, "filesystem_of", reached)


@pytest.mark.parametrize("place", ["/logs", "/my%20logs/", "/logs?account_key=x"])
def test_logs_in_azure_are_told_apart_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    _azure(monkeypatch, tmp_path)
    folder = tmp_path / "c" / ("my logs" if "%" in place else "logs")
    (folder / "sub").mkdir(parents=True)
    (folder / "a b.jsonl").write_text(LINE)
    (folder / "sub" / "b.jsonl").write_text(LINE)
    called = AZURE + place.partition("?")[0].rstrip("/")
    (log,) = find_new(AZURE + place, "auto", "UTC", KnownLogs(), [f"{called}/sub"]).parts
    assert log.log.source == f"{called}/a b.jsonl"
    known = Known("a", name_of(log.log.source), len(LINE), 1, mark=mark_of(log.log), modified=log.log.modified)
    assert known.mark is not None
    (folder / "a b.jsonl").rename(folder / "a b.jsonl.1")
    (folder / "a b.jsonl").write_text(LINE.replace("1", "2"))
    (first, second) = find_new(AZURE + place, "auto", "UTC", KnownLogs.of([known]), [f"{called}/sub"]).parts
    assert (first.name, first.after, second.after) == (name_of(f"{called}/a b.jsonl") + first.name[-9:], 0, 1)


def _record(name: str, kind: str | None) -> str:
    row = {"log": "x", "size": 1, "position": 1, "generation": "", "delta_version": None, "watermark": None}
    row |= {"mark": None, "since": None, "modified": None, "table_id": None, "places": None, "counts": "{}"}
    return known_of({**row, "name": name, "kind": kind}, "").name  # type: ignore[arg-type]


def test_a_record_of_an_older_state_is_known_by_its_name_now() -> None:
    def known(name: str) -> str:
        return _record(name, None)

    assert known(f"{AZURE}/logs/mec/logs/me/q.jsonl") == name_of(f"{AZURE}/logs/me/q.jsonl")
    assert known(f"{AZURE}/logs/q.jsonlc/logs/q.jsonl") == name_of(f"{AZURE}/logs/q.jsonl")
    assert known(f"{AZURE}/logs?k=xc/logs/q.jsonl") == name_of(f"{AZURE}/logs/q.jsonl")
    assert known(f"{AZURE}/logs/q.jsonl") == name_of(f"{AZURE}/logs/q.jsonl")
    assert known("s3a://b/l/q.jsonl") == known("s3://b/l/q.jsonl") == name_of("s3n://b/l/q.jsonl")
    assert known("s3a://b/l?region=xb/l/q.jsonl") == name_of("s3://b/l/q.jsonl")
    assert known("s3a://b/l/what?1.jsonl") == name_of("s3://b/l/what?1.jsonl")


@pytest.mark.parametrize("place", ["data@h/rawdata/raw/x", "logs@h/querylogs/query/x", "s@h/logs/sslogs/ss/x"])
def test_a_name_that_is_right_is_not_mended(place: str) -> None:
    assert _record(name_of(f"abfss://{place}"), "json") == name_of(f"abfss://{place}")


def test_options_are_those_of_the_place_that_was_given_and_none_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _azure(monkeypatch, tmp_path)
    (tmp_path / "c" / "logs").mkdir(parents=True)
    for number in (1, 2):
        (tmp_path / "c" / "logs" / f"what?{number}.jsonl").write_text(LINE)
    parts = find_new(f"{AZURE}/logs?account_key=x", "auto", "UTC", KnownLogs()).parts
    assert {part.name for part in parts} == {name_of(f"{AZURE}/logs/what?{number}.jsonl") for number in (1, 2)}
    assert ingest([f"{AZURE}/logs?account_key=x"]).lines == 2


def test_options_behind_a_delta_table_are_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[str, dict[str, str] | None]] = []

    def opened(place: str, storage_options: dict[str, str] | None = None) -> None:
        given.append((place, storage_options))
        raise OSError("enough")

    _azure(monkeypatch, tmp_path)
    monkeypatch.setattr(deltalake, "DeltaTable", opened)
    for place in (f"{AZURE}/t/?account_key=a%2Bb", f"{AZURE}/t"):
        with pytest.raises(LogError, match="enough"):
            delta_table.files_at(place)
    assert given == [(f"{AZURE}/t", {"account_key": "a+b"}), (f"{AZURE}/t", None)]


def test_a_secret_behind_a_place_is_not_kept() -> None:
    told = version_of(f"{AZURE}/t?account_key=SECRET", "t", delta_table.Version("id", 1))
    assert told["source"] == f"{AZURE}/t"


def test_a_file_that_several_names_lead_to_is_read_once(tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    log.write_text(LINE)
    assert ingest([str(log), f"file:{log}", str(tmp_path)]).lines == 1


def _zstd(text: bytes) -> bytes:
    class Kept(io.BytesIO):
        def close(self) -> None:
            """What was written is still wanted."""

    kept = Kept()
    with pa.CompressedOutputStream(kept, "zstd") as stream:
        stream.write(text)
    return kept.getvalue()


@pytest.mark.parametrize("first", [0x50, 0x5F])
def test_frames_that_hold_no_text_are_skipped(tmp_path: Path, first: int) -> None:
    frame = bytes([first]) + b"\x2a\x4d\x18\x04\x00\x00\x00abcd"
    (tmp_path / "a.jsonl.zst").write_bytes(frame * 2 + _zstd(LINE.encode()) + frame + _zstd(LINE.encode()))
    assert ingest([str(tmp_path)]).used == 2


def _night(path: Path, known: Known | None) -> Any:
    return find_new(str(path), "auto", "UTC", KnownLogs.of([known] if known else ())).parts[0]


def _read(log: LogFile, position: int) -> Known:
    return Known(log.source, name_of(log.source), log.size, position, mark=mark_of(log), modified=0)


@pytest.mark.parametrize(("end", "is_open"), [("", True), (";", False), (" ;\n\n", False), ("; -- x", True)])
def test_a_script_that_ended_in_a_statement_without_an_end_is_read_again(
    tmp_path: Path, end: str, is_open: bool
) -> None:
    log = tmp_path / "a.sql"
    log.write_text(f"SELECT 1;\nSELECT * FROM t WHERE a = 2{end}")
    known = _read(list_logs(str(log))[0], 2)
    log.write_text(log.read_text() + "3;\nSELECT 4;\n")
    part = _night(log, known)
    assert (part.after, part.replaces) == ((0, known.log) if is_open else (2, None))


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.sql"])
def test_an_export_without_times_that_is_written_over_counts_instead_of_what_was_read(
    tmp_path: Path, name: str
) -> None:
    log = tmp_path / name
    log.write_text(LINE * 3)
    known = _read(list_logs(str(log))[0], 3)
    log.write_text(LINE.replace("1", "2") * 4)
    assert _night(log, known).replaces == known.log


@pytest.mark.parametrize("packed", [False, True])
def test_a_log_without_times_that_is_named_alone_keeps_what_was_rotated_away(tmp_path: Path, packed: bool) -> None:
    log, rotated = tmp_path / "q.jsonl", tmp_path / "q.jsonl.1"
    log.write_text(LINE * 3)
    known = _read(list_logs(str(log))[0], 3)
    log.rename(rotated)
    if packed:
        rotated.write_bytes(gzip.compress(rotated.read_bytes()))
    log.write_text(LINE.replace("1", "2"))
    part = _night(log, known)
    assert (part.after, part.replaces) == (0, None)
    rotated.write_text(LINE.replace("1", "3") * 9)
    assert _night(log, known).replaces == known.log, "its copy does not lie beside it"


@pytest.mark.parametrize(("kind", "again"), [("", True), ("json", True), ("sql", False)])
def test_what_was_read_as_another_kind_is_read_again(tmp_path: Path, kind: str, again: bool) -> None:
    log = tmp_path / "p.log"
    log.write_text(f"{STATEMENT};\n\n{STATEMENT};\n")
    (listed,) = list_logs(str(log), "sql")
    known = replace(_read(listed, 3), kind=kind, modified=listed.modified)
    same = find_new(str(log), "sql", "UTC", KnownLogs.of([known]))
    assert ([part.replaces for part in same.parts], same.unchanged) == (([known.log], 0) if again else ([], 1))
    log.write_text(f"{log.read_text()}{STATEMENT};\n")
    (part,) = find_new(str(log), "sql", "UTC", KnownLogs.of([known])).parts
    assert (part.after, part.replaces) == ((0, known.log) if again else (3, None))


def test_what_an_older_state_has_read_by_its_name_is_not_read_again(tmp_path: Path) -> None:
    for name, text in (("a.jsonl", LINE), ("b", LINE), ("c.txt", STATEMENT), ("d.log", LINE)):
        (tmp_path / name).write_text(text)
    known = [replace(_read(log, 1), modified=log.modified) for log in list_logs(str(tmp_path), "sql")]
    assert find_new(str(tmp_path), "sql", "UTC", KnownLogs.of(known)).unchanged == 4
    (tmp_path / "e.log").write_text(EVENT)
    (events,) = list_logs(str(tmp_path / "e.log"), "spark-events")
    known = [replace(_read(events, 1), modified=events.modified)]
    assert find_new(str(tmp_path / "e.log"), "spark-events", "UTC", KnownLogs.of(known)).unchanged == 1


def test_a_file_named_alone_whose_kind_its_name_does_not_tell_is_read_once_more(tmp_path: Path) -> None:
    log = tmp_path / "history"
    log.write_text(f"[{LINE.strip()}]")
    (listed,) = list_logs(str(log))
    known = replace(_read(listed, 1), modified=listed.modified)
    (part,) = find_new(str(log), "auto", "UTC", KnownLogs.of([known])).parts
    assert (part.log.kind, part.after, part.replaces) == ("json", 0, known.log)
    assert find_new(str(log), "auto", "UTC", KnownLogs.of([replace(known, kind="json")])).unchanged == 1


def test_a_log_that_cannot_be_opened_while_it_is_listed_is_what_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it is then is a guess, by which it was read as something else, and nothing of it counted."""
    (tmp_path / "q.log").write_text(f"{STATEMENT};\n")
    (tmp_path / "hist").write_text(LINE)
    logs = list_logs(str(tmp_path), "sql")
    known = KnownLogs.of([replace(_read(log, 1), modified=log.modified, kind=log.kind) for log in logs])

    def slow(*_: object) -> bytes:
        raise OSError("SlowDown")

    monkeypatch.setattr(kinds, "_head", slow)
    assert {log.kind for log in list_logs(str(tmp_path), "sql")} == {"json", "events"}
    found = find_new(str(tmp_path), "sql", "UTC", known)
    assert (found.parts, found.unchanged) == ((), 2)


@pytest.mark.parametrize("watermark", [0, -62_135_596_800_000_000])
def test_a_time_that_an_older_state_took_for_real_is_none(tmp_path: Path, watermark: int) -> None:
    log = tmp_path / "q.jsonl"
    log.write_text(LINE * 3)
    read = _read(list_logs(str(log))[0], 3)
    row = {"log": "x", "name": name_of(str(log)), "size": read.size, "position": 3, "generation": "", "places": None}
    row |= {"delta_version": None, "watermark": watermark, "since": watermark, "modified": None, "table_id": None}
    known = replace(known_of({**row, "mark": None, "kind": None, "counts": "{}"}, ""), mark=read.mark)  # type: ignore[arg-type]
    log.write_text(LINE.replace("1", "2") * 4)
    (part,) = find_new(str(log), "auto", "UTC", KnownLogs.of([known])).parts
    assert (part.since, part.replaces) == (None, "x")


SECRET = "s3://AKIA:of%2Fnobodys@lake"


@pytest.mark.parametrize(
    "given", ["AKIA:of%2Fnobodys@lake/logs", "AKIA:of/nobodys@lake/logs", "c:of-nobodys@lake/logs"]
)
def test_a_password_in_a_log_s_uri_is_in_no_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    """Not in what pyarrow says of the URI either."""

    def refused(uri: str) -> None:
        raise pa.ArrowInvalid(f"Cannot parse URI: '{uri}'")

    def empty(uri: str) -> tuple[fs.FileSystem, str]:
        return fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), "logs"

    for from_uri in (refused, empty):
        monkeypatch.setattr(fs, "FileSystem", SimpleNamespace(from_uri=from_uri))
        with pytest.raises(LogError) as error:
            list_logs(f"s3a://{given}?session_token=of-nobodys")
        user = given.partition(":")[0]
        assert "nobodys" not in str(error.value)
        assert f"{user}@lake/logs" in str(error.value)


def test_a_log_is_stored_without_its_password_and_known_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reached(uri: str) -> tuple[fs.FileSystem, str]:
        return fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), uri.partition("@")[2]

    (tmp_path / "lake" / "logs").mkdir(parents=True)
    (tmp_path / "lake" / "logs" / "a.jsonl").write_text(LINE)
    monkeypatch.setattr(fs, "FileSystem", SimpleNamespace(from_uri=reached))
    (part,) = find_new(f"{SECRET}/logs", "auto", "UTC", KnownLogs()).parts
    assert part.log.source == "s3://AKIA@lake/logs/a.jsonl"
    assert "nobodys" not in part.name
    older = _record(f"{SECRET}/logs/a.jsonl", "json")  # of a state that holds the password in the name
    assert older == name_of(part.log.source)
    known = Known("a", older, len(LINE), 1, mark=mark_of(part.log), modified=part.log.modified)
    found = find_new("s3://AKIA:another@lake/logs", "auto", "UTC", KnownLogs.of([known]))
    assert (found.parts, found.unchanged) == ((), 1)
