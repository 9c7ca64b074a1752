"""The points of a search and its trials: what has been evaluated, at what cost, and how it is recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cached_property
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import optuna
from optuna.trial import FrozenTrial

from .draft import Draft, SampledTable, useful
from .encoding import FINE_BITS
from .skipping import Estimator
from .study import FORM, ORDER, StudyStore, objective_hash

__all__ = ["Progress", "Space", "Trials", "features_of"]

STRIDES = (0.05, 8.0)
PROGRESS_TRIALS = 20

Progress = Callable[[int, int, float], None]
"""Called with trials done, trials planned, and the best cost so far."""


class Space:
    """Start and stride per feature, and the way between them and bit orders.

    Args:
        names: of the features.
        limits: bits beyond which a feature's values are told apart no better.
        bits: of the key.
    """

    def __init__(self, names: Sequence[str], limits: Sequence[int], bits: int) -> None:
        self.bits, self.names, self.limits = bits, list(names), list(limits)
        low, high = STRIDES
        self.distributions: dict[str, optuna.distributions.BaseDistribution] = {}
        for name in self.names:
            self.distributions[f"start {name}"] = optuna.distributions.FloatDistribution(0.0, float(2 * bits))
            self.distributions[f"stride {name}"] = optuna.distributions.FloatDistribution(low, high)

    @staticmethod
    def of(table: SampledTable, bits: int) -> Space:
        """That of a sample's features."""
        limits = [min(encoding.useful_bits, FINE_BITS, bits) for encoding in table.encodings]
        return Space([encoding.column for encoding in table.encodings], limits, bits)

    def trial(self, draft: Draft, cost: float, phase: str) -> FrozenTrial:
        """A finished trial."""
        return optuna.trial.create_trial(
            params=self.params(draft),
            distributions=self.distributions,
            value=cost,
            user_attrs={ORDER: list(draft.order), "phase": phase, **_form(draft)},
        )

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

    def holds(self, order: Sequence[int]) -> bool:
        """Whether no feature has more bits than tell its values apart."""
        return all(order.count(i) <= limit for i, limit in enumerate(self.limits))

    def cut(self, order: Sequence[int]) -> tuple[int, ...]:
        """``order`` without the bits that tell no values apart, and no longer than a key may be."""
        return useful(order, self.limits)[: self.bits]


def features_of(trial: FrozenTrial) -> list[str]:
    """The features of a search, in the order by which its bits number them."""
    return [name.removeprefix("start ") for name in trial.params if name.startswith("start ")]


class Trials(AbstractContextManager["Trials"]):
    """The trials of one search: evaluates layouts once each, on several threads, and records them in order.

    Attributes:
        known: cost of every layout evaluated.
        best: lowest cost and its layout, None before the first trial.
        history: best cost after each trial.
        phases: trials by what proposed them.
        finished: every trial, for the study.
        evaluation_seconds: wall time spent on costs.
    """

    def __init__(
        self,
        table: SampledTable,
        estimator: Estimator,
        weights: npt.NDArray[np.float64],
        space: Space,
        limit: int,
        seconds: float | None = None,
        workers: int = 1,
        progress: Progress | None = None,
    ) -> None:
        self._table, self._estimator, self._weights = table, estimator, weights / weights.sum()
        self._space, self.limit, self._seconds, self._progress = space, max(1, limit), seconds, progress
        self._pool = ThreadPoolExecutor(workers)  # of one thread, too: a signal would be lost in compiled code
        self._store: StudyStore | None = None
        self._started = time.monotonic()
        self.known: dict[Draft, float] = {}
        self.best: tuple[float, Draft] | None = None
        self.history: list[float] = []
        self.phases: dict[str, int] = {}
        self.finished: list[FrozenTrial] = []
        self.evaluation_seconds = 0.0

    def open(self, storage: str, study: str, run: str) -> list[Draft]:
        """Keep the trials in a storage, and use the costs found there; returns layouts to begin with.

        Raises:
            ConfigError: the storage cannot be written.
        """
        self._store = StudyStore(storage, study, self.objective, run)
        return [Draft(order) for order in self._store.warm]

    @cached_property
    def objective(self) -> str:
        """What `objective_hash` gives."""
        probe = Draft(tuple(i % len(self._space.names) for i in range(self._space.bits)))
        return objective_hash(self._table, self._estimator, self._weights, probe, self._space.bits)

    @property
    def spent(self) -> bool:
        """Whether the budget of trials or of time is used up; never before the first trial."""
        late = self._seconds is not None and time.monotonic() - self._started > self._seconds
        return self.best is not None and (late or len(self.history) >= self.limit)

    @property
    def seconds(self) -> float:
        """Wall time since the beginning."""
        return time.monotonic() - self._started

    @property
    def storage_seconds(self) -> float:
        """Wall time spent on the storage."""
        return self._store.seconds if self._store else 0.0

    def evaluate(self, drafts: Sequence[Draft], phase: str) -> list[float]:
        """Cost of each layout; the new ones become trials, in their order, as far as the budget goes (then infinity).

        Raises:
            ConfigError: the storage cannot be written.
        """
        new = [draft for draft in dict.fromkeys(drafts) if draft not in self.known]
        new = [] if self.spent else new[: self.limit - len(self.history)]
        started = time.perf_counter()
        costs = list(self._pool.map(self._cost, new))
        self.evaluation_seconds += time.perf_counter() - started
        for draft, cost in zip(new, costs, strict=True):
            self._record(draft, cost, phase)
        return [self.known.get(draft, float("inf")) for draft in drafts]

    def study(self, name: str, sampler: optuna.samplers.BaseSampler | None = None) -> optuna.Study:
        """Every trial so far, as a study in memory."""
        study = optuna.create_study(study_name=name, sampler=sampler)
        study.add_trials(self.finished)
        return study

    def _cost(self, draft: Draft) -> float:
        if self._store and not _form(draft) and draft.order in self._store.earlier:
            return self._store.earlier[draft.order]
        return float(self._weights @ self._table.rows_read(draft, self._estimator))

    def _record(self, draft: Draft, cost: float, phase: str) -> None:
        self.known[draft] = cost
        if self.best is None or cost < self.best[0]:
            self.best = (cost, draft)
        self.history.append(self.best[0])
        self.phases[phase] = self.phases.get(phase, 0) + 1
        trial = self._space.trial(draft, cost, phase)
        self.finished.append(trial)
        if self._store:
            self._store.add(trial)
        if self._progress and len(self.history) % PROGRESS_TRIALS == 0:
            self._progress(len(self.history), self.limit, self.best[0])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()
        if self._store:
            self._store.close()
        told = len(self.history) % PROGRESS_TRIALS == 0
        if error is None and self._progress and self.best and not told:
            self._progress(len(self.history), self.limit, self.best[0])


def _form(draft: Draft) -> dict[str, Any]:
    """What there is to the layout beside its order, as a trial's attribute; nothing where the order says all."""
    usual = vars(Draft(draft.order))
    form = {name: value for name, value in vars(draft).items() if value != usual[name]}
    return {FORM: form} if form else {}
