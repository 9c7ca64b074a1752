"""The search for a bit order: a greedy start, then moves on bits and on runs of bits; CMA-ES or TPE on request.

Seed 000 searches shares of 64 bits with Bayesian optimisation. Here the *order* of the bits is searched (its open
question), of about ``log2(files) + 3`` bits. Moves are the default because samplers were no better when they were
compared: from the same warm starts and greedy order, neither CMA-ES nor TPE, alone or for half of the trials, led to
orders of less training cost in the mean, and moves ended after fewer trials. No workload of ``zorder bench`` repeats
that comparison; ``kernel`` tells the seconds that each sampler takes.

The samplers see start and stride per column: bit t of column i gets priority ``start_i + t * stride_i`` and the bits
with the smallest priorities form the key. Every allocation of the seed and every plain sort is such a point. Whoever
proposes a trial, it is recorded as such a point.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import optuna

from zorder_pipeline.model.choices import TRIALS, Sampler

from .draft import Draft, SampledTable
from .encoding import FINE_BITS
from .skipping import Estimator
from .study import OBJECTIVE, RUN
from .trials import Progress, Space, Trials

__all__ = ["Found", "Progress", "SearchSettings", "key_bits", "search"]

EXTRA_BITS = 3
MAX_BITS = 16
PLATEAU = 200
"""Moves without a gain after which the search stops."""
BATCH = 4
"""Moves evaluated together, whatever the number of workers, so that it does not change the result."""
HEAT = 0.005
"""A move that costs this share more than the best is accepted with probability 1/e when moves begin, later less."""
DRAWS = 2000
"""Moves drawn without a new layout among them after which the search stops: its neighbourhood is exhausted."""
STUDY = "bit_allocation"


@dataclass(frozen=True)
class SearchSettings:
    """How long and how to search.

    Attributes:
        trials: layouts evaluated at most.
        seed: everything random follows from it, whatever ``workers`` is.
        seconds: time budget, or None; `learn_layout` shares it out between the search, the trees, the baselines that
            search for themselves, and learning the winner again.
        sampler: ``cma-es`` and ``tpe`` get half of the trials that the greedy start leaves; ``moves`` needs none.
        workers: threads that evaluate layouts.
        storage: where the study is kept, see `StudyStore`; None for memory only. A new study, or one of the same
            search, changes nothing of what is found; a search with other settings begins with its best layouts.
        study: name of the study there.
    """

    trials: int = TRIALS
    seed: int = 0
    seconds: float | None = None
    sampler: Sampler = "moves"
    workers: int = 1
    storage: str | None = None
    study: str = STUDY


@dataclass(frozen=True)
class Found:
    """The outcome of a search.

    Attributes:
        draft: the best layout.
        cost: its mean cost on the training queries.
        history: best cost after each trial, shape (trials,).
        study: the Optuna study with every trial.
        phases: trials spent per phase.
        seconds: time taken.
        evaluation_seconds, storage_seconds: the part of it that went into costs, and into the storage.
    """

    draft: Draft
    cost: float
    history: npt.NDArray[np.float64]
    study: optuna.Study = field(repr=False)
    phases: dict[str, int]
    seconds: float
    evaluation_seconds: float = 0.0
    storage_seconds: float = 0.0


def key_bits(files: int) -> int:
    """Bits a key needs for a table of so many files: each file is then about eight cells.

    >>> key_bits(500)
    12
    """
    return max(2, min(MAX_BITS, math.ceil(math.log2(max(2, files))) + EXTRA_BITS))


def search(
    table: SampledTable,
    estimator: Estimator,
    weights: npt.NDArray[np.float64],
    warm: Sequence[Draft],
    settings: SearchSettings,
    progress: Progress | None = None,
) -> Found:
    """The best layout found for the estimator's queries.

    Args:
        weights: weight of each query, shape (queries,), positive.
        warm: orders of bits to begin with: the baselines, last night's.

    The trial budget goes to the warm starts, a greedy order (bit by bit, at most about a quarter), the sampler if one
    is asked for, and annealed moves from the best; these end early on a plateau.

    Raises:
        ConfigError: the storage cannot be written.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    bits = min(key_bits(table.files), sum(min(e.useful_bits, FINE_BITS) for e in table.encodings))
    space = Space.of(table, bits)
    with Trials(
        table, estimator, weights, space, settings.trials, settings.seconds, settings.workers, progress
    ) as trials:
        resumed: list[Draft] = []
        run = f"{settings.seed} {settings.trials} {settings.sampler} {[draft.order for draft in warm]}"
        known = {"id": hashlib.blake2b(run.encode()).hexdigest()[:32]}
        if settings.storage is not None:
            resumed = trials.open(settings.storage, settings.study, known["id"])
        trials.evaluate([*warm, *resumed], "warm start")
        _greedy(trials, space)
        if settings.sampler != "moves":
            _sample(trials, space, settings)
        _anneal(trials, space, np.random.default_rng(settings.seed))
    assert trials.best is not None
    cost, draft = trials.best
    study = trials.study(settings.study)
    study.set_user_attr(OBJECTIVE, trials.objective)
    study.set_user_attr(RUN, known)
    return Found(
        draft, cost, np.array(trials.history), study, trials.phases, trials.seconds, trials.evaluation_seconds,
        trials.storage_seconds,
    )  # fmt: skip


def _greedy(trials: Trials, space: Space) -> None:
    """Append, bit after bit, the feature whose next bit helps most."""
    order: tuple[int, ...] = ()
    left = list(space.limits)
    tried = 0
    while len(order) < space.bits and any(left) and not trials.spent and tried < trials.limit // 4 + len(left):
        options = [Draft((*order, i)) for i, count in enumerate(left) if count]
        costs = trials.evaluate(options, "greedy")
        tried += len(options)
        order = options[int(np.argmin(costs))].order
        left[order[-1]] -= 1


def _sample(trials: Trials, space: Space, settings: SearchSettings) -> None:
    """Optuna's sampler on starts and strides, in generations that do not depend on the number of workers."""
    sampler: optuna.samplers.BaseSampler
    if settings.sampler == "cma-es":
        sampler = optuna.samplers.CmaEsSampler(seed=settings.seed)
    else:
        sampler = optuna.samplers.TPESampler(seed=settings.seed, multivariate=True)
    study = trials.study(settings.study, sampler)
    if trials.best is not None:
        study.enqueue_trial(space.params(trials.best[1]))
    budget = (trials.limit - len(trials.history)) // 2
    while budget > 0 and not trials.spent:
        asked = [study.ask(space.distributions) for _ in range(min(budget, BATCH))]
        budget -= len(asked)
        costs = trials.evaluate([space.draft(trial.params) for trial in asked], settings.sampler)
        for trial, cost in zip(asked, costs, strict=True):
            study.tell(trial, cost)


def _anneal(trials: Trials, space: Space, rng: np.random.Generator) -> None:
    """Moves from the best order, uphill ones ever more rarely, until the budget is spent or nothing has helped."""
    if trials.best is None:
        return
    cost, order = trials.best[0], space.cut(trials.best[1].order)
    begun, idle = len(trials.history), 0
    while not trials.spent and idle < PLATEAU:
        best = trials.best[0]
        batch = _neighbours(order, trials, space, rng)
        if not batch:
            return
        costs = trials.evaluate(batch, "moves")
        heat = HEAT * best * (1 - (len(trials.history) - begun) / max(1, trials.limit - begun))
        for draft, value in zip(batch, costs, strict=True):
            if value <= cost or rng.random() < math.exp((cost - value) / max(heat, 1e-12)):
                cost, order = value, draft.order
        idle = 0 if trials.best[0] < best else idle + len(batch)
        if cost > trials.best[0] + 3 * heat:
            cost, order = trials.best[0], space.cut(trials.best[1].order)


def _neighbours(order: tuple[int, ...], trials: Trials, space: Space, rng: np.random.Generator) -> list[Draft]:
    """Orders a move away that were not tried yet, `BATCH` of them if `DRAWS` draws find so many."""
    found: dict[Draft, None] = {}
    for _ in range(DRAWS):
        draft = Draft(tuple(_moved(list(order), len(space.names), rng)[: space.bits]))
        if draft not in trials.known and space.holds(draft.order):
            found[draft] = None
            if len(found) == BATCH:
                break
    return list(found)


def _moved(order: list[int], features: int, rng: np.random.Generator) -> list[int]:
    """The order after one random move; it may be longer than before.

    Runs of bits move too, and features change places: on orders of a dozen bits single bits alone stay in local optima.
    """
    place, other = (int(i) for i in rng.integers(len(order), size=2))
    feature = int(rng.integers(features))
    end = place + int(rng.integers(2, 5))
    run = order[place:end]
    match int(rng.integers(9)):
        case 0:
            order[place] = feature
        case 1:
            order.insert(place, feature)
        case 2:
            order.insert(other, order.pop(place))
        case 3:
            order[place], order[other] = order[other], order[place]
        case 4:  # a run goes elsewhere
            rest = order[:place] + order[end:]
            to = int(rng.integers(len(rest) + 1))
            order = rest[:to] + run + rest[to:]
        case 5:  # a run becomes one feature's
            order[place:end] = [feature] * len(run)
        case 6:  # two features change places from here on
            swapped = {order[place]: feature, feature: order[place]}
            order[place:] = [swapped.get(i, i) for i in order[place:]]
        case 7:  # a feature ends here, another fills up
            gone, filler = order[place], order[other]
            kept = order[:place] + [i for i in order[place:] if i != gone]
            order = kept + [filler] * (len(order) - len(kept))
        case _:
            order.insert(place, feature)
            order.insert(other, feature)
    return order
