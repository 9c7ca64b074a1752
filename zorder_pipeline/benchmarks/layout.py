"""How well layouts are learned: ours against every layout a person or another system would pick, on unseen queries.

Tables are simulated whole and exactly, as arrays: every contender orders the same rows into the same number of files,
and a query reads the files whose zone maps, by Delta's rules, it may match. What real commands make of real tables is
the affair of workload ``demo``. Beside the contenders a tree is grown from the unseen queries themselves: no contender,
but a measure of how much more there is to be had by tables of files with zone maps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from zorder_pipeline.features.sample import Sample, SampleColumn
from zorder_pipeline.features.select import analyse
from zorder_pipeline.layout.baselines import Training
from zorder_pipeline.layout.blocks import blocks_of
from zorder_pipeline.layout.draft import AnyDraft, SampledTable
from zorder_pipeline.layout.evidence import KnownTable, WeighedLog
from zorder_pipeline.layout.grow import grow_tree
from zorder_pipeline.layout.learn import Learned, learn_layout
from zorder_pipeline.layout.placement import files_under
from zorder_pipeline.layout.search import SearchSettings
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.model.key_spec import KeySpec

from .cases import CASES, Case, Loaded, as_stored, cases_named, load, made
from .chosen import CHOSEN, CONTENDERS
from .harness import OURS, Options, Outcome, Progress, Workload
from .vocabulary import NAMES

__all__ = ["FILES", "PEERS", "WORKLOAD", "Beside", "Read", "applied", "learn", "simulated"]

FILES = 500
QUERIES = 500
TRIALS = 600
DELTA, FREQUENT, HINDSIGHT = "delta", "delta-frequent", "hindsight"
PEERS: dict[str, tuple[str, ...]] = {
    "default": ("stored",),
    **{
        name: tuple(b.name for b in CONTENDERS if b.name.removesuffix("-chosen").rstrip("-234") == name)
        for name in ("sort", "lexicographic", "equal", "zorder", "liquid", "seed", "qd-tree", "piecewise")
    },
    **{f"{kind}{k}": (f"{kind}-{k}",) for kind in ("zorder", "liquid") for k in (2, 3, 4)},
    **{baseline.name: (baseline.name,) for baseline in CHOSEN},
}

Floats = npt.NDArray[np.float64]


class Read(NamedTuple):
    """What a table is read of under a layout.

    Attributes:
        shares: of the rows, by query.
        files: that the layout makes of the table.
    """

    shares: Floats
    files: int

    @staticmethod
    def under(draft: AnyDraft | None, table: SampledTable, estimator: Estimator) -> Read:
        """Of a table under ``draft`` (None: as stored), by the estimator's queries."""
        file, files = table.blocks(draft)
        return Read(estimator.rows_read(file, files) / table.rows, int(files))


Beside = Callable[[Loaded, npt.NDArray[np.int64], int], Iterator[tuple[str, str, Read]]]
"""Further contenders' names, labels and what they read, from the sample's rows and a number of files."""


def run(options: Options, progress: Progress) -> list[Outcome]:
    """See `Workload`; each case counts as much as any other in the ratios."""
    return simulated(cases_named(options.tables, CASES), options, progress)


def simulated(
    cases: Sequence[Case],
    options: Options,
    progress: Progress,
    beside: Beside | None = None,
    order: Callable[[Loaded], Loaded] | None = None,
    usual: int = FILES,
) -> list[Outcome]:
    """What unseen queries read of each case's table under each contender's layout, seed by seed.

    Args:
        order: tells which of a case's queries are logged, and when.
        usual: files of each table at scale 1, where ``options`` names no number.
    """
    scale = options.scale or (0.25 if options.quick else 1.0)
    files = options.files or max(16, int(usual * scale))
    outcomes: list[Outcome] = []
    for case, rows, seed in made(cases, options.work, scale, options.seeds, progress):
        loaded = load(case, rows, QUERIES, QUERIES, seed, scale)
        loaded = loaded if order is None else order(loaded)
        outcomes += options.noted(_one(case.name, loaded, files, seed, options, progress, beside))
    return outcomes


def _one(
    name: str,
    loaded: Loaded,
    files: int,
    seed: int,
    options: Options,
    progress: Progress,
    beside: Beside | None,
) -> Iterator[Outcome]:
    unseen = loaded.estimator(loaded.unseen_boxes)
    learned, sampled, chosen = learn(loaded, files, seed)
    whole = loaded.whole(sampled, files)
    stored = Read.under(None, whole, unseen)
    read = {"stored": stored} if options.wants("stored") else {}
    training = Training(
        sampled,
        Estimator.build(loaded.part(chosen), loaded.schema, loaded.train_boxes, sampled.rows),
        loaded.train_boxes,
        np.ones(len(loaded.train)),
        SearchSettings(TRIALS, seed),
    )
    labels = {
        DELTA: "best of ZORDER and liquid",
        FREQUENT: "best of ZORDER and liquid by the most frequent columns",
        "stored": "as stored",
        "seed": NAMES["seed"].meaning,
        HINDSIGHT: "a tree of the unseen queries",
    }
    for baseline in CONTENDERS:
        if options.wants(baseline.name) and (draft := baseline.make(training)) is not None:
            read[baseline.name] = Read.under(draft, whole, unseen)
    delta = [own for own in read if own.startswith(("zorder", "liquid"))]
    frequent = [own for own in delta if not own.endswith("-chosen")]
    for best, among in ((DELTA, delta), (FREQUENT, frequent)):
        if among:  # the best of them in hindsight: nobody knows beforehand which it is
            read[best] = min((read[own] for own in among), key=lambda each: float(each.shares.mean()))
    for own, label, each in beside(loaded, chosen, files) if beside is not None else ():
        if options.wants(own):
            read[own], labels[own] = each, label
    read[HINDSIGHT] = Read.under(_in_hindsight(loaded, sampled, chosen), whole, unseen)
    ours = stored if learned.spec is None else applied(loaded, learned.spec, files, unseen)
    figures = _kept(loaded, learned, files) | {
        "layout": learned.name,
        "matched by statistics": _matched_by_statistics(loaded),
        "files": ours.files,
    }
    progress(
        f"{name}, seed {seed}: {learned.name} reads {ours.shares.mean():.4f}, promise kept {figures['promise']:.3f}"
    )
    yield Outcome(OURS, "ours", seed, {"share": ours.shares}, {"learn": learned.seconds}, figures, name)
    for own, each in read.items():
        yield Outcome(own, labels.get(own, own), seed, {"share": each.shares}, figures={"files": each.files}, case=name)


def learn(
    loaded: Loaded, files: int, seed: int, queries: int | None = None
) -> tuple[Learned, SampledTable, npt.NDArray[np.int64]]:
    """The chain's own steps from a log to a layout, on a random sample; also that sample in codes, and its rows."""
    from zorder_pipeline.pipeline.learning.analysing import MIN_ROWS_SAMPLED_PER_FILE
    from zorder_pipeline.pipeline.records import LearnSettings

    log, boxes = loaded.train[:queries], loaded.train_boxes[:queries]
    rng = np.random.default_rng(seed)
    wanted = max(LearnSettings.sample_rows, MIN_ROWS_SAMPLED_PER_FILE * files)
    chosen = np.sort(rng.choice(loaded.rows, min(wanted, loaded.rows), replace=False))
    columns = loaded.part(chosen)
    stored = (chosen * files // loaded.rows).astype(np.int32)
    sample = Sample(
        {name: SampleColumn(*column) for name, column in columns.items()}, stored, len(chosen), loaded.rows, seed
    )
    features = [name for name in analyse(log, loaded.schema, sample).ranked if name in columns]
    types = {column.name: column.type for column in loaded.schema.columns}
    coded = SampledTable.build(columns, types, features, stored, files)
    table = KnownTable(coded, columns, loaded.schema, stands_for=loaded.rows / len(chosen))
    learned = learn_layout(table, WeighedLog(boxes, np.ones(len(log)), blocks_of(log)), SearchSettings(TRIALS, seed))
    return learned, coded, chosen


def _in_hindsight(loaded: Loaded, sampled: SampledTable, chosen: npt.NDArray[np.int64]) -> AnyDraft:
    """A tree grown from the very queries that are measured: what learning could gain by knowing what will be asked."""
    estimator = Estimator.build(loaded.part(chosen), loaded.schema, loaded.unseen_boxes, sampled.rows)
    return grow_tree(sampled.fine, estimator, np.ones(len(loaded.unseen_boxes)), sampled.rows_per_file)


def applied(loaded: Loaded, spec: KeySpec, files: int, estimator: Estimator) -> Read:
    """What is read of the whole table laid out as ``zorder apply`` does."""
    file = files_under(spec, loaded.columns, loaded.rows / files)
    made = int(file.max()) + 1
    return Read(estimator.rows_read(file.astype(np.int32), made) / loaded.rows, made)


def _kept(loaded: Loaded, learned: Learned, files: int) -> dict[str, float]:
    """What the promise block's queries really read, after and before, as a multiple of what was promised."""
    unseen = blocks_of(loaded.train).promise
    estimator = loaded.estimator(unseen.each(loaded.train_boxes))
    stored = as_stored(loaded.rows, files)
    before = estimator.rows_read(stored, files) / loaded.rows
    after = before if learned.spec is None else applied(loaded, learned.spec, files, estimator).shares
    return {
        "promise": float(unseen.times @ after / (unseen.times @ learned.after)),
        "before": float(unseen.times @ before / (unseen.times @ learned.before)),
    }


def _matched_by_statistics(loaded: Loaded) -> float:
    """Mean share of the rows that an unseen query may match by statistics of single rows, more than it does match.

    Strings that agree in the characters that Delta keeps look alike, which no order of rows can help.
    """
    every = np.arange(0, loaded.rows, max(1, loaded.rows // 20_000))
    estimator = Estimator.build(loaded.part(every), loaded.schema, loaded.unseen_boxes, len(every))
    return float(estimator.rows_read(np.arange(len(every), dtype=np.int32), len(every)).mean() / len(every))


WORKLOAD = Workload(
    "layout",
    "rows read by unseen queries under layouts learned and chosen",
    run,
    peers=PEERS,
    tables=tuple(case.name for case in CASES),
    sized=True,
)
