"""When learning should decline: few queries, templates that change, queries without any pattern; and logs that repeat.

Tables and layouts are arrays, as in workload ``layout``. The learned layout is taken where the lower end of what it
promises to save of the rows is above zero, else the table as stored. What else the gate asks for, such as that it
pays, is not weighed. Of what is taken, queries that come after the log should never read more than of the stored table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from zorder_pipeline.gate.benefit import promise

from .cases import CASES, Case, as_stored, drill_downs, load
from .harness import OURS, Options, Outcome, Progress, Workload
from .layout import FILES, applied, learn
from .lookups import Shape, table_logs
from .workloads import Record

__all__ = ["WORKLOAD"]

QUERIES = 300
FEW, DASHBOARDS = 20, 20
SCALE, QUICK_SCALE = 0.5, 0.1


def run(options: Options, progress: Progress) -> list[Outcome]:
    """See `Workload`; a case is a table together with the kind of its log."""
    scale = options.scale or (QUICK_SCALE if options.quick else SCALE)
    outcomes: list[Outcome] = []
    for case in CASES:
        rows = case.rows(options.work, scale)
        for seed in options.seeds:
            for kind, make in KINDS:
                outcomes += options.noted(_one(case, rows, seed, kind, make, scale, options, progress))
    return outcomes


def _one(
    case: Case,
    rows: pa.Table,
    seed: int,
    kind: str,
    make: Callable[[Case, pa.Table, int], Case],
    scale: float,
    options: Options,
    progress: Progress,
) -> Iterator[Outcome]:
    loaded = load(make(case, rows, seed), rows, FEW if kind == "few" else QUERIES, QUERIES, seed, scale)
    files = max(16, int(FILES * scale))
    learned, _, _ = learn(loaded, files, seed)
    alike = np.ones(len(learned.before))
    proof = promise(learned.before, learned.after, alike, (1.0, "assumed"), seed, asked=learned.unseen)
    estimator = loaded.estimator(loaded.unseen_boxes)
    stored = as_stored(loaded.rows, files)
    before = estimator.rows_read(stored, files) / loaded.rows
    rewritten = learned.spec is not None and proof.low > 0
    after = applied(loaded, learned.spec, files, estimator).shares if rewritten and learned.spec is not None else before
    progress(f"{case.name}, {kind}, seed {seed}: {before.mean():.3f} -> {after.mean():.3f}")
    name = f"{case.name}: {kind}"
    figures: dict[str, float] = {"rewritten": rewritten}
    if rewritten:
        figures["read as promised"] = float(after.mean() / proof.after)
    yield Outcome(OURS, "ours", seed, {"share": after}, figures=figures, case=name)
    if options.wants("stored"):
        yield Outcome("stored", "as stored", seed, {"share": before}, case=name)


def _few(case: Case, _: pa.Table, __: int) -> Case:
    return case


def _moved(case: Case, rows: pa.Table, seed: int) -> Case:
    """The log's first half asks one kind of thing, its second half and what comes after it another."""

    def logs(table: pa.Table, train: int, unseen: int, number: int, scale: float) -> tuple[list[Record], list[Record]]:
        del scale
        old, _ = table_logs(table, case.name, train // 2, 1, number, drill_downs(rows, seed + 500))
        new, later = table_logs(
            table, case.name, train - train // 2, unseen, number + 50, drill_downs(rows, seed + 900)
        )
        shift = max(record["timestamp"] for record in old)
        return [*old, *(record | {"timestamp": max(shift, record["timestamp"])} for record in new)], later

    return replace(case, logs=logs)


def _random(case: Case, rows: pa.Table, seed: int) -> Case:
    """Every query a kind of its own, in the log and after it: no two filter the same columns in the same ways."""

    def logs(table: pa.Table, train: int, unseen: int, number: int, scale: float) -> tuple[list[Record], list[Record]]:
        del scale
        shapes: dict[frozenset[tuple[str, str]], Shape] = {}
        drawn = 10_000 * (seed + 1)
        while len(shapes) < train + unseen:
            for shape in drill_downs(rows, drawn):
                shapes.setdefault(frozenset((item.column, item.op) for item in shape.filters), shape)
            drawn += 1
        return table_logs(table, case.name, train, unseen, number, tuple(shapes.values()), once=True)

    return replace(case, logs=logs)


def _repeated(case: Case, _: pa.Table, __: int) -> Case:
    """Three of four queries are one of twenty dashboards, word for word, in the log and after it."""

    def logs(table: pa.Table, train: int, unseen: int, number: int, scale: float) -> tuple[list[Record], list[Record]]:
        draws = np.random.default_rng(number)
        fixed, _ = case.logs(table, DASHBOARDS, 1, number + 70, scale)

        def mixed(new: list[Record], wanted: int) -> list[Record]:
            again = draws.integers((len(fixed), len(new)), size=(wanted - len(new), 2)).tolist()
            found = new + [fixed[which] | {"timestamp": new[when]["timestamp"]} for which, when in again]
            return sorted(found, key=lambda record: record["timestamp"])

        new, later = case.logs(table, train // 4, unseen // 4, number, scale)
        return mixed(new, train), mixed(later, unseen)

    return replace(case, logs=logs)


KINDS: tuple[tuple[str, Callable[[Case, pa.Table, int], Case]], ...] = (
    ("few", _few),
    ("moved", _moved),
    ("random", _random),
    ("repeated", _repeated),
)
"""Logs of twenty queries; whose templates change half-way; in which no template comes twice; most of it dashboards."""

WORKLOAD = Workload(
    "guard",
    "what later queries read when a log proves little, beside the table as stored",
    run,
    peers={"default": ("stored",)},
)
