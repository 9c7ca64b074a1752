"""The search for a bit order: Optuna's CMA-ES over start and stride per column, between a greedy start and local moves.

Seed 000 searches shares of 64 bits with Bayesian optimisation. Here the *order* of the bits is searched (its open
question), of about ``log2(files) + 3`` bits: bit t of column i gets priority ``start_i + t * stride_i`` and the bits
with the smallest priorities form the key. Every allocation of the seed and every plain sort is such a point.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import optuna

from .draft import Draft, SampledTable
from .encoding import FINE_BITS
from .skipping import Estimator

__all__ = ["Found", "SearchSettings", "key_bits", "search"]

EXTRA_BITS = 3
MAX_BITS = 16
STRIDES = (0.05, 8.0)
PLATEAU = 150
"""Local moves without a gain after which the search stops."""

Progress = Callable[[int, int, float], None]
"""Called with trials done, trials planned, and the best cost so far."""


@dataclass(frozen=True)
class SearchSettings:
    """How long and how to search.

    Attributes:
        trials: layouts evaluated at most.
        seed: everything random follows from it.
        seconds: time budget, or None.
    """

    trials: int = 600
    seed: int = 0
    seconds: float | None = None


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
    """

    draft: Draft
    cost: float
    history: npt.NDArray[np.float64]
    study: optuna.Study = field(repr=False)
    phases: dict[str, int]
    seconds: float


def key_bits(files: int) -> int:
    """Bits a key needs for a table of so many files: each file is then about eight cells.

    >>> key_bits(500)
    12
    """
    return max(2, min(MAX_BITS, math.ceil(math.log2(max(2, files))) + EXTRA_BITS))


class _Objective:
    """Mean cost per draft; counts, remembers and records every evaluation."""

    def __init__(
        self,
        table: SampledTable,
        estimator: Estimator,
        weights: npt.NDArray[np.float64],
        settings: SearchSettings,
        progress: Progress | None,
    ) -> None:
        self.table, self.estimator, self.settings, self.progress = table, estimator, settings, progress
        self.weights = weights / weights.sum()
        self.known: dict[Draft, float] = {}
        self.best: tuple[float, Draft] | None = None
        self.history: list[float] = []
        self.trials: list[optuna.trial.FrozenTrial] = []
        self.started = time.monotonic()

    def __call__(self, draft: Draft) -> float:
        if draft not in self.known:
            cost = float(self.weights @ self.table.rows_read(draft, self.estimator))
            self.known[draft] = cost
            if self.best is None or cost < self.best[0]:
                self.best = (cost, draft)
        return self.known[draft]

    def note(self) -> None:
        assert self.best is not None
        self.history.append(self.best[0])
        if self.progress and len(self.history) % 20 == 0:
            self.progress(len(self.history), self.settings.trials, self.best[0])

    @property
    def spent(self) -> bool:
        late = self.settings.seconds is not None and time.monotonic() - self.started > self.settings.seconds
        return late or len(self.history) >= self.settings.trials


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
        warm: layouts to begin with: the baselines, last night's layout.

    The trial budget goes to the warm starts, a greedy order (bit by bit), CMA-ES, and local moves from the best, about
    a fifth, two fifths and the rest; local moves end early on a plateau.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    bits = min(key_bits(table.files), sum(min(e.useful_bits, FINE_BITS) for e in table.encodings))
    objective = _Objective(table, estimator, weights, settings, progress)
    space = _Space(table, bits)
    study = optuna.create_study(study_name="bit_allocation", sampler=optuna.samplers.CmaEsSampler(seed=settings.seed))
    phases: dict[str, int] = {}
    for draft in warm:
        if objective.spent:
            break
        objective(draft)
        _record(study, space, draft, objective, "warm start")
    phases["warm start"] = len(objective.history)
    for draft in _greedy(objective, space, bits):
        _record(study, space, draft, objective, "greedy")
        if objective.spent:
            break
    phases["greedy"] = len(objective.history) - sum(phases.values())
    budget = (settings.trials - len(objective.history)) // 2
    _cma_es(study, space, objective, budget)
    phases["cma-es"] = len(objective.history) - sum(phases.values())
    _local_moves(study, space, objective, np.random.default_rng(settings.seed))
    phases["local"] = len(objective.history) - sum(phases.values())
    assert objective.best is not None
    cost, draft = objective.best
    taken = time.monotonic() - objective.started
    return Found(draft, cost, np.array(objective.history), study, phases, taken)


class _Space:
    """Start and stride per feature, and the way between them and bit orders."""

    def __init__(self, table: SampledTable, bits: int) -> None:
        self.bits = bits
        self.names = [encoding.column for encoding in table.encodings]
        self.limits = [min(encoding.useful_bits, FINE_BITS, bits) for encoding in table.encodings]
        low, high = STRIDES
        self.distributions: dict[str, optuna.distributions.BaseDistribution] = {}
        for name in self.names:
            self.distributions[f"start {name}"] = optuna.distributions.FloatDistribution(0.0, float(2 * bits))
            self.distributions[f"stride {name}"] = optuna.distributions.FloatDistribution(low, high)

    def draft(self, params: dict[str, float]) -> Draft:
        priorities = [
            (params[f"start {name}"] + t * params[f"stride {name}"], t, i)
            for i, name in enumerate(self.names)
            for t in range(self.limits[i])
        ]
        return Draft(tuple(i for _, _, i in sorted(priorities)[: self.bits]))

    def params(self, draft: Draft) -> dict[str, float]:
        """The point whose order comes closest to ``draft``'s; features without bits start behind the last one."""
        result: dict[str, float] = {}
        low, high = STRIDES
        for i, name in enumerate(self.names):
            places = [place for place, feature in enumerate(draft.order) if feature == i]
            stride = (places[-1] - places[0]) / (len(places) - 1) if len(places) > 1 else float(self.bits)
            result[f"start {name}"] = float(min(places[0], 2 * self.bits)) if places else 1.5 * self.bits
            result[f"stride {name}"] = min(max(stride * 0.999, low), high)
        return result


def _record(study: optuna.Study, space: _Space, draft: Draft, objective: _Objective, phase: str) -> None:
    study.add_trial(
        optuna.trial.create_trial(
            params=space.params(draft),
            distributions=space.distributions,
            value=objective(draft),
            user_attrs={"order": list(draft.order), "phase": phase},
        )
    )
    objective.note()


def _greedy(objective: _Objective, space: _Space, bits: int) -> list[Draft]:
    """Append, bit after bit, the feature whose next bit helps most; returns every draft evaluated."""
    tried: list[Draft] = []
    order: tuple[int, ...] = ()
    left = list(space.limits)
    while len(order) < bits and any(left) and len(tried) < objective.settings.trials // 4 + len(left):
        options = [Draft((*order, i)) for i, count in enumerate(left) if count]
        tried.extend(options)
        best = min(options, key=objective)
        order = best.order
        left[order[-1]] -= 1
    return tried


def _cma_es(study: optuna.Study, space: _Space, objective: _Objective, budget: int) -> None:
    assert objective.best is not None
    study.enqueue_trial(space.params(objective.best[1]))
    for _ in range(budget):
        if objective.spent:
            return
        trial = study.ask(space.distributions)
        draft = space.draft(trial.params)
        trial.set_user_attr("order", list(draft.order))
        trial.set_user_attr("phase", "cma-es")
        study.tell(trial, objective(draft))
        objective.note()


def _local_moves(study: optuna.Study, space: _Space, objective: _Objective, rng: np.random.Generator) -> None:
    """Insert, replace, swap on the best order until the budget is spent or nothing has helped for a while."""
    idle = 0
    while not objective.spent and idle < PLATEAU:
        assert objective.best is not None
        before, best = objective.best
        order = _moved(list(best.order), len(space.names), rng)
        draft = Draft(tuple(order[: space.bits]))
        if draft in objective.known or any(order.count(i) > limit for i, limit in enumerate(space.limits)):
            idle += 1 if draft in objective.known else 0
            continue
        _record(study, space, draft, objective, "local")
        idle = 0 if objective.best[0] < before else idle + 1


def _moved(order: list[int], features: int, rng: np.random.Generator) -> list[int]:
    place, other = (int(i) for i in rng.integers(len(order), size=2))
    match int(rng.integers(4)):
        case 0:
            order[place] = int(rng.integers(features))
        case 1:
            order.insert(place, int(rng.integers(features)))
        case 2:
            order.insert(other, order.pop(place))
        case _:
            order[place], order[other] = order[other], order[place]
    return order
