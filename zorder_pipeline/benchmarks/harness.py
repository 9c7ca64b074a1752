"""What a workload is and finds, and by how much ours is better, with the spread.

A workload turns `Options` into `Outcome` values: what each unseen query read under each contender's layout. How it gets
them is its own affair (Spark and real tables, or numpy on a sample); all ratios and intervals are made here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zorder_pipeline.errors import ZorderError
from zorder_pipeline.model.progress import Progress

from .vocabulary import contenders_named

__all__ = ["BOUND", "COUNTS", "OURS", "RAW", "Options", "Outcome", "Progress", "Ratio", "Workload", "bound", "ratio"]
__all__ += ["summarise"]

Floats: TypeAlias = npt.NDArray[np.float64]
Key: TypeAlias = tuple[str, str, int]
"""Case, table and seed, by which the outcomes of two contenders pair."""
OURS = "ours"
RESAMPLES = 2000
BOUND = "bound"
COUNTS = ("files", "row_groups")
"""Of an outcome's figures those that say how many pieces its table was written in."""
RAW = "outcomes.jsonl"
"""File in the scratch folder that outcomes are noted in as they come."""


@dataclass(frozen=True)
class Options:
    """What a workload is to do.

    Attributes:
        seeds: one repetition each: own train and unseen logs, own search.
        quick: the small version.
        scale: size of the data, None for the workload's own choice.
        against: the workload's contenders that run beside ours, None for its own choice.
        work: scratch folder for tables.
        files: of each contender's table (or its row groups), None for the workload's own choice.
        tables: names of the tables that are measured, empty for the workload's own choice.
    """

    seeds: tuple[int, ...]
    work: Path
    quick: bool = False
    scale: float | None = None
    against: tuple[str, ...] | None = None
    files: int | None = None
    tables: tuple[str, ...] = ()

    def wants(self, contender: str) -> bool:
        """Whether a contender is to run; ours always is."""
        return contender == OURS or self.against is None or contender in self.against

    def noted(self, outcomes: Iterable[Outcome]) -> list[Outcome]:
        """The outcomes, each also a line of `RAW` once it is there: a later failure does not take it along."""
        found = []
        self.work.mkdir(parents=True, exist_ok=True)
        with (self.work / RAW).open("a", encoding="utf-8") as raw:
            for outcome in outcomes:
                raw.write(json.dumps(outcome.to_json()) + "\n")
                raw.flush()
                found.append(outcome)
        return found


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
        table: which of a case's tables, where a case is told over several.
    """

    contender: str
    label: str
    seed: int
    per_query: Mapping[str, Floats]
    seconds: Mapping[str, float] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)
    case: str = ""
    table: str = ""

    def to_json(self) -> dict[str, Any]:
        """As it stands among a report's ``outcomes``."""
        return {
            "contender": self.contender,
            "case": self.case,
            "table": self.table,
            "seed": self.seed,
            "seconds": dict(self.seconds),
            "figures": dict(self.figures),
            "per_query": {measure: values.tolist() for measure, values in self.per_query.items()},
        }


@dataclass(frozen=True)
class Workload:
    """A benchmark: ``run`` yields an outcome for each seed and contender, ours among them.

    Attributes:
        peers: contenders beside ours by their names in `vocabulary.NAMES`; those that no name leads to always run.
        tables: names of its tables, if it can be told to measure some of them.
        sized: whether it can be told how many files (or row groups) a table has.
        scaled: whether it can be told how large its data are.
    """

    name: str
    summary: str
    run: Callable[[Options, Progress], Sequence[Outcome]]
    peers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tables: tuple[str, ...] = ()
    sized: bool = False
    scaled: bool = True

    def options(
        self,
        seeds: int,
        work: Path,
        *,
        quick: bool = False,
        scale: float | None = None,
        against: Sequence[str] = (),
        files: int | None = None,
        tables: Sequence[str] = (),
    ) -> tuple[Options, dict[str, str]]:
        """What `run` is to do, and the names of ``against`` that are none of its contenders, each with that reason.

        Raises:
            ZorderError: an option is out of range, or means nothing to this workload.
        """
        if seeds < 1:
            raise ZorderError(f"--seeds is {seeds}; at least 1 is needed")
        named, missing = contenders_named(against, self.peers)
        for option, given, known, why in (
            ("--files", files is not None, self.sized, "which has a number of files of its own"),
            ("--scale", scale is not None, self.scaled, "whose data have one size"),
            ("--against", bool(against), bool(self.peers), "which has no peers to choose from"),
            ("--tables", bool(tables), bool(self.tables), "which has no tables to choose from"),
        ):
            if given and not known:
                raise ZorderError(f"{option} means nothing to workload {self.name}, {why}; leave it out")
        if unknown := [table for table in tables if table not in self.tables]:
            raise ZorderError(f"--tables knows no {unknown[0]!r}; it may be any of {', '.join(self.tables)}")
        chosen = Options(tuple(range(seeds)), work, quick, scale, named if against else None, files, tuple(tables))
        return chosen, {name: f"this workload has no such contender, only {', '.join(self.peers)}" for name in missing}


@dataclass(frozen=True)
class Ratio:
    """Ours divided by a peer: the geometric mean over seeds of the ratio of means, and its 95% interval.

    The interval is over queries of these logs; another log may lie outside. It is None where no seed has more than one
    figure, as a seed's time is one.
    """

    mean: float
    low: float | None
    high: float | None


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
    mean = float(np.exp(np.mean([_log_ratio(*sides) for sides in zip(ours, peer, strict=True)])))
    if all(len(x) == 1 for x in ours):
        return Ratio(mean, None, None)
    resampled = np.zeros(RESAMPLES)
    for mine, theirs in zip(ours, peer, strict=True):
        draws = rng.integers(len(mine), size=(RESAMPLES, len(mine)))
        resampled += _log_ratio(mine[draws], theirs[draws])
    low, high = np.exp(np.percentile(resampled / len(ours), [2.5, 97.5]))
    return Ratio(mean, float(low), float(high))


def bound(matched: Floats, rows: int, files: int, seed: int, case: str = "") -> Outcome:
    """What no layout in files (or row groups) of equal size can beat: the rows that match each query, rounded up to
    whole files. Ours may have files of other sizes, of which a query can read fewer rows.

    Args:
        matched: rows that match each query, shape (queries,).
        rows, files: of the table.
    """
    size = rows / files
    return Outcome(BOUND, "bound of files of equal size", seed, {"rows": np.ceil(matched / size) * size}, case=case)


def summarise(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Means, ratios and raw figures of a benchmark, JSON-ready.

    Raises:
        ValueError: there is no outcome of ours, or a contender lacks a seed.
    """
    by_contender: dict[str, dict[Key, Outcome]] = {}
    for outcome in outcomes:
        by_contender.setdefault(outcome.contender, {})[outcome.case, outcome.table, outcome.seed] = outcome
    if OURS not in by_contender:
        raise ValueError("no outcome of ours")
    mine = by_contender[OURS]
    if odd := [name for name, theirs in by_contender.items() if theirs.keys() != mine.keys()]:
        raise ValueError(f"contender {odd[0]} has other seeds than ours")
    cases = list(dict.fromkeys(case for case, *_ in mine))
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
    left_out = [outcome.figures.get("not_run", {}) for outcome in outcomes]
    report: dict[str, Any] = {
        "seeds": sorted({seed for *_, seed in mine}),
        "not_run": {peer: why for found in left_out for peer, why in found.items()},
        "contenders": {name: _compared(theirs, mine) for name, theirs in by_contender.items()},
        "outcomes": [outcome.to_json() for outcome in outcomes],
    }
    return report | ({"cases": by_case} if len(cases) > 1 else {})


def _compared(theirs: Mapping[Key, Outcome], mine: Mapping[Key, Outcome]) -> dict[str, Any]:
    """A contender's means, and ours as a share of them."""
    first = next(iter(theirs.values()))
    measures = [measure for measure in first.per_query if measure in next(iter(mine.values())).per_query]
    found: dict[str, Any] = {
        "label": first.label,
        "mean": {m: float(np.mean([x.per_query[m].mean() for x in theirs.values()])) for m in measures},
        "seconds": {s: float(np.mean([x.seconds[s] for x in theirs.values()])) for s in first.seconds},
        "ours_to_it": {
            m: _ratios([(k[-1], mine[k].per_query[m], theirs[k].per_query[m]) for k in mine]) for m in measures
        },
    }
    for count in COUNTS:
        if all(count in x.figures for x in theirs.values()):
            found[count] = float(np.mean([x.figures[count] for x in theirs.values()]))
    return found


def _ratios(sides: Sequence[tuple[int, Floats, Floats]]) -> dict[str, float | None]:
    """Ours to a peer, and from the least to the most of any seed where there are several.

    Args:
        sides: seed, ours and the peer's of each case, table and seed.
    """
    found: dict[str, float | None] = {**vars(ratio([ours for _, ours, _ in sides], [peer for *_, peer in sides]))}
    by_seed: dict[int, list[float]] = {}
    for seed, ours, peer in sides:
        by_seed.setdefault(seed, []).append(float(_log_ratio(ours, peer)))
    if len(by_seed) > 1:
        each = [float(np.exp(np.mean(logs))) for logs in by_seed.values()]
        found |= {"smallest": min(each), "largest": max(each)}
    return found


def _log_ratio(ours: Floats, peer: Floats) -> Any:
    """Of the means over the last axis."""
    tiny = 1e-9  # a sample of queries that read nothing at all
    return np.log(np.maximum(ours.mean(axis=-1), tiny) / np.maximum(peer.mean(axis=-1), tiny))
