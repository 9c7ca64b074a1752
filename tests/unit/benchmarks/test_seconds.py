from __future__ import annotations

from pathlib import Path

import pytest

from zorder_pipeline.benchmarks import seconds


def test_a_table_is_made_once_and_again_by_other_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[float] = []
    table = tmp_path / "ours" / "lineitem"

    def make() -> dict[str, float]:
        assert not table.exists()
        table.mkdir(parents=True)
        made.append(1.0 + len(made))
        return {"rewrite": made[-1]}

    assert seconds._once(table, make) == seconds._once(table, make) == {"rewrite": 1.0}
    monkeypatch.setattr(seconds, "_code", lambda: "another version")
    assert seconds._once(table, make) == {"rewrite": 2.0}
    assert made == [1.0, 2.0]


def test_a_table_that_was_cut_off_is_made_anew(tmp_path: Path) -> None:
    table = tmp_path / "ours" / "lineitem"

    def cut_off() -> dict[str, float]:
        table.mkdir(parents=True)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        seconds._once(table, cut_off)
    assert seconds._once(table, lambda: {"left": float(table.exists())}) == {"left": 0.0}
