"""The names of ``--against``: one vocabulary, and what each workload makes of the contract's line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from zorder_pipeline.benchmarks import (
    WORKLOADS,
    cases,
    drift,
    find_workload,
    layout,
    pages,
    peers,
    protocol,
    relayout,
    running,
    tables,
)
from zorder_pipeline.benchmarks.chosen import CONTENDERS
from zorder_pipeline.benchmarks.harness import OURS
from zorder_pipeline.benchmarks.vocabulary import NAMES, canonical
from zorder_pipeline.errors import ZorderError

CONTRACT = ["default", "sort", "zorder", "liquid", "seed"]
"""Section 4 of the design."""
SHIPPED = ["stored", "sort", "zorder", "liquid"]
SIMULATED = ["stored", "sort", "seed", *(f"{kind}-{k}" for kind in ("zorder", "liquid") for k in (2, 3, 4, "chosen"))]
CHOSEN: dict[str, list[str]] = {
    "demo": SHIPPED,
    "layout": SIMULATED,
    "real": SIMULATED,
    "sop": SIMULATED,
    "onward": SIMULATED,
    "guard": ["stored"],
    "drift": ["stored"],
    "relayout": SHIPPED,
    "predicates": ["stored", "zorder"],
    "protocol": ["default", "range", "equal", "seed"],
    "seconds": SHIPPED,
    "pages": ["stored", "lexical", "zorder"],
    "replay": ["none", "manual", "nightly"],
}
"""What the contract's line makes each workload run beside ours; the others have no peers to choose from."""
OWN: dict[str, set[str]] = {
    "demo": {peer.name for peer in peers.PEERS},
    "seconds": {peer.name for peer in peers.PEERS},
    "layout": {"stored", *(baseline.name for baseline in CONTENDERS)},
    "real": {"stored", *(baseline.name for baseline in CONTENDERS)},
    "sop": {"stored", *(baseline.name for baseline in CONTENDERS), "sop"},
    "onward": {"stored", *(baseline.name for baseline in CONTENDERS)},
    "drift": {*drift.LABELS} - {OURS},
    "protocol": {*protocol.LABELS} - {OURS},
    "pages": {*pages.LABELS} - {OURS},
}
"""All contenders, where a workload lists them."""


@pytest.mark.parametrize("name", [name for name, _ in WORKLOADS])
def test_the_contracts_line_is_understood_or_refused(name: str, tmp_path: Path) -> None:
    workload = find_workload(name)
    if name not in CHOSEN:
        assert not workload.peers
        with pytest.raises(ZorderError, match=f"--against means nothing to workload {name}, which has no peers"):
            running.bench(name, out=tmp_path, against=CONTRACT)
        return
    options, missing = workload.options(1, tmp_path, against=CONTRACT)
    assert options.against is not None
    assert sorted(options.against) == sorted(CHOSEN[name])
    assert set(missing) == set(CONTRACT) - set(workload.peers)
    assert all(why.endswith(f"only {', '.join(workload.peers)}") for why in missing.values())
    assert options.wants(OURS)
    assert workload.options(1, tmp_path)[0].against is None
    with pytest.raises(ZorderError, match="--against knows no 'zordr'; it may be any of default, sort, "):
        running.bench(name, out=tmp_path, against=["sort", "zordr"])


@pytest.mark.parametrize("name", [name for name, _ in WORKLOADS])
def test_every_contender_that_a_workload_names_is_one_it_has(name: str) -> None:
    workload = find_workload(name)
    assert set(workload.peers) <= set(NAMES)
    assert all(workload.peers.values())
    named = {own for found in workload.peers.values() for own in found}
    if name in OWN:
        assert named == OWN[name]


def test_the_rewrite_makes_the_contenders_that_it_names(tmp_path: Path) -> None:
    base: Any = relayout._Base(tmp_path, None, ["a"], ("", ""), None)  # type: ignore[arg-type]
    made = {name for name, _, _ in relayout._contenders(None, base)} - {OURS}  # type: ignore[arg-type]
    assert made | {"stored", "appends", "larger"} == {own for found in relayout.PEERS.values() for own in found}


def test_spellings_lead_to_one_name() -> None:
    every = [spelling for name, known in NAMES.items() for spelling in (name, *known.aliases)]
    assert len(set(every)) == len(every)
    assert canonical(["none", "Stored", "default"]) == ("default",)


def test_layouts_are_simulated_for_the_named_peers_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = cases.Case("skewed", lambda _, __: tables.skewed(4_000, 7), layout.CASES[2].logs)
    monkeypatch.setattr(cases, "CASES", (small, cases.CASES[0]))
    monkeypatch.setattr(layout, "QUERIES", 40)
    monkeypatch.setattr(layout, "TRIALS", 20)

    def contenders(*against: str) -> set[str]:
        options, _ = layout.WORKLOAD.options(1, tmp_path, against=against, files=16, tables=["skewed"])
        return {outcome.contender for outcome in layout.run(options, lambda _: None)} - {OURS, layout.HINDSIGHT}

    assert contenders("sort", "default") == {"sort", "stored"}
    assert contenders("zorder2") == {"zorder-2", layout.DELTA, layout.FREQUENT}
    assert contenders("zorder-chosen") == {"zorder-chosen", layout.DELTA}
    assert contenders("hudi") == set()


def test_the_page_on_benchmarks_lists_the_names_and_who_has_them() -> None:
    page = (Path(__file__).parents[3] / "docs/benchmarks.md").read_text()
    rows = re.findall(r"^\| `([\w-]+)`((?:, `[\w-]+`)*) \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)
    told = {name: (re.findall(r"`([\w-]+)`", more), meaning, who.split(", ")) for name, more, meaning, who in rows}
    assert told == {
        name: (list(known.aliases), known.meaning, [w for w, _ in WORKLOADS if name in find_workload(w).peers])
        for name, known in NAMES.items()
    }
