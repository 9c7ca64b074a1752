from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from zorder_pipeline import pipeline, spark
from zorder_pipeline.benchmarks import seconds
from zorder_pipeline.benchmarks.harness import Options, Outcome


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


def test_columns_are_chosen_once_and_again_by_other_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = {"zorder2": 3.0, "zorder": 2.0, "zorder4": 5.0, "liquid2": 1.0, "liquid": 2.0, "liquid4": 4.0}
    made: list[str] = []

    def prepare(name: str) -> Any:
        return lambda *given: made.append(name)

    found = [seconds.Peer(name, prepare(name), 2, name) for name in read]
    monkeypatch.setattr(seconds, "PEERS", tuple(found))
    monkeypatch.setattr(seconds, "peers_named", lambda names: [peer for peer in found if peer.name in names])
    monkeypatch.setattr(seconds, "lineitem_table", lambda *given: None)
    monkeypatch.setattr(seconds, "asked_columns", lambda *given: {"a": "int", "b": "int"})

    def evaluate(_: object, path: str, *__: object, **___: object) -> SimpleNamespace:
        return SimpleNamespace(rows_per_query=np.array([read[Path(path).parent.name]]))

    monkeypatch.setattr(pipeline, "evaluate", evaluate)

    def strongest() -> list[str]:
        chosen = seconds._strongest(None, 0.01, 0, tmp_path / "small", lambda _: None)  # type: ignore[arg-type]
        return [peer.name for _, _, peer in chosen]

    assert strongest() == strongest() == ["zorder", "liquid2"]
    assert sorted(made) == sorted(read)
    read["zorder4"] = 0.5
    monkeypatch.setattr(seconds, "_code", lambda: "another version")
    assert strongest() == ["zorder4", "liquid2"]
    assert json.loads((tmp_path / "chosen.json").read_text())["code"] == "another version"


SORT = "best sort by one of the 3 most frequent columns"


@pytest.mark.parametrize(
    ("against", "why"), [(None, "takes part only where --against names it"), (("liquid",), "not named by --against")]
)
def test_who_does_not_run_is_told_with_the_reason(
    against: tuple[str, ...] | None, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[str, str] = {}

    def one_seed(*given: Any) -> list[Outcome]:
        given[5].mkdir(parents=True)
        told.update(given[7])
        return []

    monkeypatch.setattr(spark, "session", lambda *given: None)
    monkeypatch.setattr(seconds, "lineitem_table", lambda *given: given[1].mkdir(parents=True))
    monkeypatch.setattr(seconds, "_one_seed", one_seed)
    seconds.run(Options((0,), tmp_path, against=against), lambda _: None)
    assert told["Hudi z-order, 2 columns"] == told["Iceberg sort, 2 columns"] == told[SORT] == why
    assert "Delta liquid, 3 columns" not in told
