"""Runs a workload over seeds and contenders and says by how much ours is better, with the spread.

A workload turns `Options` into `Outcome` values: what each unseen query read under each contender's layout. How it gets
them is its own affair (Spark and real tables, or numpy on a sample); all ratios, intervals and reports are made here.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zorder_pipeline.errors import ZorderError

from . import find_workload

__all__ = ["BOUND", "OURS", "Options", "Outcome", "Progress", "Ratio", "Workload", "bench", "bound", "ratio"]
__all__ += ["summarise"]

Floats: TypeAlias = npt.NDArray[np.float64]
Progress: TypeAlias = Callable[[str], None]
OURS = "ours"
RESAMPLES = 2000
PACKAGES = ("pyspark", "delta-spark", "numpy", "optuna", "duckdb")
BOUND = "bound"


@dataclass(frozen=True)
class Options:
    """What a workload is to do.

    Attributes:
        seeds: one repetition each: own train and unseen logs, own search.
        quick: the small version.
        scale: size of the data, None for the workload's own choice.
        against: names of the peers, empty for the workload's own choice.
        work: scratch folder for tables.
        files: of each contender's table (or its row groups), None for the workload's own choice.
    """

    seeds: tuple[int, ...]
    work: Path
    quick: bool = False
    scale: float | None = None
    against: tuple[str, ...] = ()
    files: int | None = None


@dataclass(frozen=True)
class Outcome:
    """What the unseen queries of one seed read under one contender's layout.

    Attributes:
        contender: name, `OURS` for the project's own.
        label: for tables that people read.
        seed: which repetition.
        per_query: by measure (``rows``, ``files``, ``bytes``), one figure per query, the same queries in the same order
            for all contenders of a seed.
        seconds: by step (``rewrite``, ``learn``).
        figures: whatever else is worth keeping, JSON-ready; ``not_run`` names peers that were left out, with reasons.
        case: which of a workload's tables and logs; ratios are means over cases and seeds.
    """

    contender: str
    label: str
    seed: int
    per_query: Mapping[str, Floats]
    seconds: Mapping[str, float] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)
    case: str = ""


@dataclass(frozen=True)
class Workload:
    """A benchmark: ``run`` yields an outcome for each seed and contender, ours among them.

    Attributes:
        sized: whether it can be told how many files (or row groups) a table has.
    """

    name: str
    summary: str
    run: Callable[[Options, Progress], Sequence[Outcome]]
    sized: bool = False


@dataclass(frozen=True)
class Ratio:
    """Ours divided by a peer: the geometric mean over seeds of the ratio of means, and its 95% interval."""

    mean: float
    low: float
    high: float


def ratio(ours: Sequence[Floats], peer: Sequence[Floats], seed: int = 0) -> Ratio:
    """How much ours reads of what a peer reads.

    The interval is a paired bootstrap: within each seed queries are drawn with replacement, the same for both sides.

    Args:
        ours, peer: per seed one figure per query, in the same order.
        seed: of the resampling.

    Raises:
        ValueError: the sides do not pair up.

    >>> ratio([np.array([1.0, 2.0])], [np.array([2.0, 4.0])])
    Ratio(mean=0.5, low=0.5, high=0.5)
    """
    if not ours or [len(x) for x in ours] != [len(x) for x in peer] or not all(len(x) for x in ours):
        raise ValueError("ours and peer need the same seeds and the same queries")
    rng = np.random.default_rng(seed)
    logs, resampled = [], np.zeros(RESAMPLES)
    for mine, theirs in zip(ours, peer, strict=True):
        logs.append(_log_ratio(mine.mean(), theirs.mean()))
        draws = rng.integers(len(mine), size=(RESAMPLES, len(mine)))
        resampled += _log_ratio(mine[draws].mean(axis=1), theirs[draws].mean(axis=1))
    low, high = np.exp(np.percentile(resampled / len(ours), [2.5, 97.5]))
    return Ratio(float(np.exp(np.mean(logs))), float(low), float(high))


def bench(
    name: str,
    *,
    out: str | Path,
    quick: bool = False,
    seeds: int | None = None,
    scale: float | None = None,
    against: Sequence[str] = (),
    files: int | None = None,
    work: str | Path | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run one workload; write ``<out>/<name>.json``, ``.md`` and ``.png``; return what the JSON file holds.

    Args:
        seeds: how many repetitions; 2 when quick, else 5.
        files: see `Options`.
        work: scratch folder, ``<out>/work`` when None.

    Raises:
        ZorderError: the workload is unknown, or an option is out of range.
    """
    from .reports import markdown, plot

    workload = find_workload(name)
    count = seeds if seeds is not None else (2 if quick else 5)
    if count < 1:
        raise ZorderError(f"--seeds is {count}; at least 1 is needed")
    if files is not None and not workload.sized:
        raise ZorderError(
            f"--files means nothing to workload {name}, which has a number of files of its own; leave it out"
        )
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    place = (Path(work) if work else folder / "work").absolute()  # in SQL Delta takes no other path for a table
    options = Options(tuple(range(count)), place, quick, scale, tuple(against), files)
    started = datetime.now(UTC)
    with _alone(options.work):
        outcomes = workload.run(options, progress or (lambda _: None))
    report = {"workload": name, "summary": workload.summary} | summarise(outcomes)
    report |= {
        "quick": quick,
        "scale": scale,
        "files": files,
        "started": started.isoformat(timespec="seconds"),
        "seconds": round((datetime.now(UTC) - started).total_seconds(), 1),
        "machine": {"cores": os.cpu_count(), "platform": platform.platform(), "python": platform.python_version()},
        "versions": {package: version(package) for package in PACKAGES},
    }
    (folder / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    (folder / f"{name}.md").write_text(markdown(report), encoding="utf-8")
    if (png := plot(report)) is not None:
        (folder / f"{name}.png").write_bytes(png)
    return report


@contextlib.contextmanager
def _alone(work: Path) -> Iterator[None]:
    """Hold a scratch folder: two benchmarks in one would measure each other's tables. The system frees a dead one's."""
    work.mkdir(parents=True, exist_ok=True)
    held = os.open(work, os.O_RDONLY)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ZorderError(f"another benchmark is at work in {work}; give this one another --out") from error
        yield
    finally:
        os.close(held)


def bound(matched: Floats, rows: int, files: int, seed: int, case: str = "") -> Outcome:
    """What no layout can beat: the rows that match each query, rounded up to whole files (or row groups).

    Args:
        matched: rows that match each query, shape (queries,).
        rows, files: of the table.
    """
    size = rows / files
    return Outcome(BOUND, "bound no layout can beat", seed, {"rows": np.ceil(matched / size) * size}, case=case)


def summarise(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Means, ratios and raw figures of a benchmark, JSON-ready.

    Raises:
        ValueError: there is no outcome of ours, or a contender lacks a seed.
    """
    by_contender: dict[str, dict[tuple[str, int], Outcome]] = {}
    for outcome in outcomes:
        by_contender.setdefault(outcome.contender, {})[outcome.case, outcome.seed] = outcome
    if OURS not in by_contender:
        raise ValueError("no outcome of ours")
    mine = by_contender[OURS]
    if odd := [name for name, theirs in by_contender.items() if theirs.keys() != mine.keys()]:
        raise ValueError(f"contender {odd[0]} has other seeds than ours")
    cases = list(dict.fromkeys(case for case, _ in mine))
    by_case = {
        case: {
            name: _compared(
                {key: outcome for key, outcome in theirs.items() if key[0] == case},
                {key: outcome for key, outcome in mine.items() if key[0] == case},
            )
            for name, theirs in by_contender.items()
        }
        for case in cases
    }
    raw = [
        {
            "contender": outcome.contender,
            "case": outcome.case,
            "seed": outcome.seed,
            "seconds": dict(outcome.seconds),
            "figures": dict(outcome.figures),
            "per_query": {measure: values.tolist() for measure, values in outcome.per_query.items()},
        }
        for outcome in outcomes
    ]
    left_out = [outcome.figures.get("not_run", {}) for outcome in outcomes]
    report: dict[str, Any] = {
        "seeds": sorted({seed for _, seed in mine}),
        "not_run": {peer: why for found in left_out for peer, why in found.items()},
        "contenders": {name: _compared(theirs, mine) for name, theirs in by_contender.items()},
        "outcomes": raw,
    }
    return report | ({"cases": by_case} if len(cases) > 1 else {})


def _compared(theirs: Mapping[tuple[str, int], Outcome], mine: Mapping[tuple[str, int], Outcome]) -> dict[str, Any]:
    """A contender's means, and ours as a share of them."""
    first = next(iter(theirs.values()))
    measures = [measure for measure in first.per_query if measure in next(iter(mine.values())).per_query]
    return {
        "label": first.label,
        "mean": {m: float(np.mean([x.per_query[m].mean() for x in theirs.values()])) for m in measures},
        "seconds": {s: float(np.mean([x.seconds[s] for x in theirs.values()])) for s in first.seconds},
        "ours_to_it": {
            m: vars(ratio([mine[k].per_query[m] for k in mine], [theirs[k].per_query[m] for k in mine]))
            for m in measures
        },
    }


def _log_ratio(a: Any, b: Any) -> Any:
    tiny = 1e-9  # a sample of queries that read nothing at all
    return np.log(np.maximum(a, tiny) / np.maximum(b, tiny))
