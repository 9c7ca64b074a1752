"""The demo's own configuration, and what it takes for its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from zorder_pipeline.benchmarks import data
from zorder_pipeline.config import load_config
from zorder_pipeline.demo import MADE, STAMP, _home, example_home, run_demo
from zorder_pipeline.errors import ZorderError


def test_the_demo_keeps_as_many_files_as_it_writes(tmp_path: Path) -> None:
    """Without that the gate merges its small files into one, and there is no layout to be seen."""
    example = load_config(example_home() / "tables.yaml", check_paths=False).tables[0].layout
    assert example.target_file_rows == 600_572 // 256  # of scale 0.1, the default
    own = load_config(_home(tmp_path, 17) / "tables.yaml", check_paths=False).tables[0]
    assert own.layout.target_file_rows == 17
    assert str(tmp_path) in str(own.location)


class CutOffError(Exception):
    pass


@pytest.fixture
def cut_off(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The demo ends while it writes its first table; the places where it has begun to."""
    begun: list[Path] = []

    def lineitem(_: object, place: Path, *__: object) -> None:
        place.mkdir(parents=True)
        begun.append(place)
        raise CutOffError

    monkeypatch.setattr("zorder_pipeline.spark.session", lambda *_: None)
    monkeypatch.setattr(data, "lineitem_table", lineitem)
    return begun


def begin(place: Path, scale: float = 0.001) -> None:
    run_demo(place, scale, 20, lambda _: None)


@pytest.mark.parametrize("name", [*MADE, "tables.yaml"])
def test_what_the_demo_did_not_make_is_left_alone(name: str, tmp_path: Path, cut_off: list[Path]) -> None:
    """A home of ``zorder init`` lost its state and its table, and the folder around a checkout lost that."""
    others = tmp_path / name / "kept" if "." not in name else tmp_path / name
    others.parent.mkdir(exist_ok=True)
    others.touch()
    with pytest.raises(ZorderError, match=f"^--workdir: {tmp_path} holds {name} of something else, .*; name a folder"):
        begin(tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [others]
    assert not cut_off


def test_a_demo_that_was_cut_off_is_begun_anew(tmp_path: Path, cut_off: list[Path]) -> None:
    for scale in (0.001, 0.001, 0.002):
        with pytest.raises(CutOffError):
            begin(tmp_path, scale)
        for name in ("zorder", "state"):
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / "half").touch()
    assert len(cut_off) == 3
    with pytest.raises(CutOffError):
        begin(tmp_path)
    assert not (tmp_path / "state").exists()
    (tmp_path / "tables.yaml").touch()
    with pytest.raises(ZorderError, match=r"holds tables\.yaml of something else"):  # whose state would be the demo's
        begin(tmp_path)


@pytest.mark.parametrize("text", ["[1]", "{}", "no JSON", '{"scale": 1}'])
def test_a_stamp_of_something_else_is_no_stamp(text: str, tmp_path: Path, cut_off: list[Path]) -> None:
    (tmp_path / STAMP).write_text(text)
    with pytest.raises(ZorderError, match=f"^--workdir: {tmp_path}/{STAMP} was not written by zorder demo"):
        begin(tmp_path)
    assert (tmp_path / STAMP).read_text() == text
    assert not cut_off
