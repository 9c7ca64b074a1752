"""Files are written whole or not at all, wherever their names lead."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from zorder_pipeline.model.whole_file import is_replaced, write_whole


def test_a_link_stays_one_and_its_file_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "plan.json").write_text("old")
    (tmp_path / "far" / "plan.json").chmod(0o640)
    (tmp_path / "plan.json").symlink_to("far/plan.json")
    write_whole(tmp_path / "plan.json", "new")
    assert (tmp_path / "plan.json").is_symlink()
    assert (tmp_path / "far" / "plan.json").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "far" / "plan.json").stat().st_mode) == 0o640
    assert sorted(path.name for path in (tmp_path / "far").iterdir()) == ["plan.json"]


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    """A file took its place; as root that was /dev/null's."""
    os.mkfifo(tmp_path / "pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_whole(tmp_path / "pipe", "told")
    reader.join(10)
    assert read == ["told"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert not is_replaced("/dev/null")


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "a").write_text("old")
    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "a", "new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "old")]
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path, "new")


def test_two_who_write_at_once_do_not_meet(tmp_path: Path) -> None:
    """Both took one name for the file before it was renamed, and one of them failed after its search."""
    failed: list[OSError] = []

    def write(text: str) -> None:
        for _ in range(200):
            try:
                write_whole(tmp_path / "plan.json", text)
            except OSError as error:
                failed.append(error)

    threads = [threading.Thread(target=write, args=(text * 1000,)) for text in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert (tmp_path / "plan.json").read_text() in ("a" * 1000, "b" * 1000)
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]
