"""The layouts that are learned from the training queries to choose from: ours, and what others would pick.

A time budget is shared out between them. The search for an order of bits and the trees stop where their part ends;
so do baselines that search for themselves, which are then left out. The other ones are made whatever the time: without
them nobody could say that a layout is better than what a person would pick.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.key_spec import MAX_HILBERT_BITS
from zorder_pipeline.model.progress import Progress as Say

from .baselines import BASELINES, Training, warm_starts
from .choosing import LEARNED, TREE, UNEVEN
from .deadline import Deadline
from .draft import AnyDraft, Draft, SampledTable, useful
from .evidence import BlockQueries
from .grow import Grower, GrowSettings, uneven
from .search import MAX_BITS, Found, Progress, SearchSettings, search
from .similar import with_similar
from .tree import TreeDraft

__all__ = ["Options", "applicable", "baseline_of", "growers", "learned_options", "stopped_early"]

SEARCHED_SHARE = 4
"""Baselines that search get a quarter of our trials here: they are a safeguard, and all of them in ``zorder bench``."""
SLOW_ROWS = 400_000
"""Sample rows above which baselines that search for themselves are left out."""
TRIALS_PART = 0.25
"""Part of a time budget that the search for an order of bits may take."""
FIRST_TREE_PART = 0.6
"""Part of what is left then that the first tree may take; nothing is set aside for learning the winner again.

Unseen queries of skewed (100,000 rows, 300 files, 5 s of processor time) read 0.158 of the rows so, as without a
budget, and 0.165 to 0.168 where a third to a half was set aside. Of taxi and flights shares made little difference
(0.069; 0.088 to 0.091), nor in 2 s, which no tree was grown in: there the search decides."""
SAFEGUARDS_PART = 0.5
"""Part of what is left after the trees that baselines which search for themselves may take."""

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Options:
    """The layouts that a search leaves to choose from.

    Attributes:
        drafts: layouts by name: ours, then baselines as they can be laid out.
        own: baselines by name as they are by themselves.
        growers: what grew our trees, by their names.
        took: seconds that each tree took.
        left_out: baselines that were not compared with, because they take as long as a search.
        late: those that there was no time for.
        shortened: what the time budget cut short besides.
    """

    drafts: Mapping[str, AnyDraft] = field(default_factory=dict)
    own: Mapping[str, AnyDraft] = field(default_factory=dict)
    growers: Mapping[str, Grower] = field(default_factory=dict)
    took: Mapping[str, float] = field(default_factory=dict)
    search: Found | None = None
    left_out: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    shortened: tuple[str, ...] = ()


def learned_options(
    sample: SampledTable,
    train: BlockQueries,
    settings: SearchSettings,
    warm: Sequence[Draft],
    deadline: Deadline,
    searched: bool,
    progress: Progress | None,
    say: Say,
) -> Options:
    """Ours and the baselines, learned from the training block.

    Args:
        warm: layouts that the search starts from, besides the baselines.
        deadline: when the time budget ends.
        searched: whether to compare with baselines that search for themselves, as far as there is time.
        say: told what is done beyond the search.
    """
    part = deadline.part(TRIALS_PART)
    budget = replace(settings, seconds=part.seconds)
    found = search(sample, train.estimator, train.weights, [*warm, *warm_starts(sample)], budget, progress)
    shortened = list(stopped_early(found, settings, part))
    grow = growers(sample, train) if not deadline.over else {}
    trees, took = _trees(grow, deadline, settings.workers, say)
    until = deadline.part(SAFEGUARDS_PART)
    shortened += [f"{name} was not grown" for name in (TREE, UNEVEN) if name not in trees]
    shortened += [f"{name} was grown in part" for name, tree in trees.items() if tree.hurried]
    training = _training(sample, train, settings, until)
    own: dict[str, AnyDraft] = {}
    left_out: list[str] = []
    late: list[str] = []
    for number, baseline in enumerate(BASELINES, 1):
        if baseline.searched and (not searched or sample.rows > SLOW_ROWS):
            left_out.append(baseline.name)
            continue
        if baseline.searched and not until.over:
            say(f"comparing with {baseline.name}, layout {number} of {len(BASELINES)}")
        draft = baseline.make(training) if not (baseline.searched and until.over) else None
        if baseline.searched and until.over:
            late.append(baseline.name)
        elif draft is not None:
            own[baseline.name] = draft
    drafts = {LEARNED: found.draft, **trees, **{name: applicable(draft, sample) for name, draft in own.items()}}
    return Options(drafts, own, grow, took, found, tuple(left_out), tuple(late), tuple(shortened))


def _training(sample: SampledTable, known: BlockQueries, settings: SearchSettings, until: Deadline) -> Training:
    less = replace(settings, trials=max(1, settings.trials // SEARCHED_SHARE))
    return Training(sample, known.estimator, known.boxes, known.weights, less, until)


def baseline_of(
    name: str, sample: SampledTable, known: BlockQueries, settings: SearchSettings, until: Deadline
) -> AnyDraft | None:
    """The baseline of that name, made of other queries; None where there is none, or not until then."""
    made = next((baseline.make for baseline in BASELINES if baseline.name == name), None)
    draft = None if made is None else made(_training(sample, known, settings, until))
    return None if until.over else draft


def stopped_early(found: Found, settings: SearchSettings, deadline: Deadline) -> Iterator[str]:
    """What there is to say of a search that time ended, nothing of another one."""
    if deadline.over and len(found.history) < settings.trials:
        yield f"the search was ended after {len(found.history)} of {settings.trials:,} trials"


def growers(sample: SampledTable, known: BlockQueries) -> dict[str, Grower]:
    """What grows our trees from some statements, by their names."""
    similar, shares = with_similar(known.estimator, known.weights, known.asked.times)
    settings = {TREE: GrowSettings(), UNEVEN: uneven(known.boxes, sample.encodings)}
    return {name: Grower(sample, similar, shares, how) for name, how in settings.items()}


def _trees(
    grow: Mapping[str, Grower], deadline: Deadline, workers: int, say: Say
) -> tuple[dict[str, TreeDraft], dict[str, float]]:
    """The trees, as far as they grow until then, and the seconds that each took.

    The one whose files differ in size is grown first: it makes the cuts that save most before others, so that it is of
    more use where it is stopped.
    """

    def grown(name: str) -> tuple[TreeDraft, float]:
        begun = time.monotonic()
        until = deadline.part(FIRST_TREE_PART) if name == UNEVEN and workers == 1 else deadline
        say(f"growing {name}")
        tree = grow[name].tree(deadline=until, say=lambda text: say(f"growing {name}: {text}"))
        return tree, time.monotonic() - begun

    order = [name for name in (UNEVEN, TREE) if name in grow]
    with ThreadPoolExecutor(workers) as pool:
        found = dict(zip(order, pool.map(grown, order), strict=True))
    return {name: found[name][0] for name in grow}, {name: found[name][1] for name in grow}


def applicable(draft: AnyDraft, sample: SampledTable) -> AnyDraft:
    """The baseline with files that end at cells, its Hilbert curve as fine as a table of cells allows.

    Of other keys the bits that tell no values apart are left out: else those of the first column would be all.
    """
    if isinstance(draft, TreeDraft):
        return replace(draft, leaves_are_files=False)
    if draft.curve == "hilbert":
        dimensions = len(set(draft.order))
        return Draft(draft.order[: MAX_HILBERT_BITS // dimensions * dimensions], "hilbert")
    return Draft(useful(draft.order, [encoding.useful_bits for encoding in sample.encodings])[:MAX_BITS])
