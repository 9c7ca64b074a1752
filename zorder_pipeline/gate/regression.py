"""Costs as a sum of positive terms, fitted to few noisy measurements and an assumption, with prediction intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.bootstrap import student_quantile

__all__ = ["Estimate", "Measurement", "Prior", "Regression"]

Floats = npt.NDArray[np.float64]

LEVEL = 0.9
TABLE_SPREAD = 0.35
"""Log standard deviation of what sets one table's costs apart (types, compression, width) from another's."""
NOISE, NOISE_WEIGHT = 0.12, 4.0
"""Log standard deviation of the same work done again before anything was measured, and how many runs that is worth."""
OUTLIER = 2.0
"""Measurements further off than so many standard deviations count less (Huber's weights): a cluster may be busy."""
ROUNDS = 60


@dataclass(frozen=True)
class Estimate:
    """A figure that is not known exactly, with its 90% interval."""

    low: float
    expected: float
    high: float

    def times(self, factor: float) -> Estimate:
        """All three multiplied; a factor below zero is not allowed.

        >>> Estimate(1.0, 2.0, 4.0).times(2)
        Estimate(low=2.0, expected=4.0, high=8.0)
        """
        return Estimate(self.low * factor, self.expected * factor, self.high * factor)


@dataclass(frozen=True)
class Measurement:
    """Something that was done and timed.

    Attributes:
        amounts: of each term, in the prior's order.
        cost: what it took, positive.
        table: which table it was done to.
    """

    amounts: tuple[float, ...]
    cost: float
    table: str = ""


@dataclass(frozen=True)
class Prior:
    """What is assumed before anything was measured: a unit cost per term, and by what factor it may be wrong.

    Attributes:
        units: cost of one unit of each term, positive.
        doubt: log standard deviation of each; 0.7 is a factor of three either way.
    """

    units: tuple[float, ...]
    doubt: tuple[float, ...]


@dataclass(frozen=True)
class Regression:
    """Cost = sum of amount x unit cost, times a factor per table, times noise; see `fit`.

    Attributes:
        units: fitted unit cost per term.
        tables: log factor of each table that was measured.
        covariance: of the logs of ``units`` and of ``tables``, in that order.
        noise: log standard deviation of the same work done again.
        freedom: degrees of freedom of the intervals.
        measurements: how many the fit rests on.
    """

    units: tuple[float, ...]
    tables: dict[str, float]
    covariance: Floats
    noise: float
    freedom: float
    measurements: int

    @staticmethod
    def fit(prior: Prior, measurements: Sequence[Measurement]) -> Regression:
        """Most probable unit costs given the prior and the measurements (Gauss-Newton on their logarithms).

        The seed fits lines by least squares (004, section 5.1); here unit costs stay positive, errors are relative, a
        term that no measurement varies keeps its assumption with its doubt, tables may differ by a factor, and
        outliers count less. The noise is estimated from the residuals together with an assumed one, so that three
        measurements that happen to agree are not taken for certainty.
        """
        names = sorted({item.table for item in measurements})
        terms, n = len(prior.units), len(measurements)
        start = np.concatenate([np.log(prior.units), np.zeros(len(names))])
        precision = np.diag(np.concatenate([np.array(prior.doubt) ** -2.0, np.full(len(names), TABLE_SPREAD**-2.0)]))
        amounts = np.array([item.amounts for item in measurements]).reshape(n, terms)
        logs = np.log([item.cost for item in measurements])
        member = np.array([[item.table == name for name in names] for item in measurements], dtype=np.float64)
        place, variance, freedom = start.copy(), NOISE**2, NOISE_WEIGHT
        covariance = np.linalg.inv(precision)
        for _ in range(ROUNDS if n else 0):
            parts = amounts * np.exp(place[:terms])
            total = parts.sum(axis=1)
            slopes = np.hstack([parts / total[:, None], member.reshape(n, len(names))])
            residuals = logs - np.log(total) - slopes[:, terms:] @ place[terms:]
            weights = np.minimum(1.0, OUTLIER * math.sqrt(variance) / np.maximum(np.abs(residuals), 1e-12))
            weighted = slopes * (weights / variance)[:, None]
            covariance = np.linalg.inv(precision + slopes.T @ weighted)
            step = covariance @ (weighted.T @ residuals - precision @ (place - start))
            place = place + np.clip(step, -1.0, 1.0)
            used = float(np.sum(weighted.T * (covariance @ slopes.T)))
            freedom = NOISE_WEIGHT + max(0.0, float(weights.sum()) - used)
            variance = (NOISE_WEIGHT * NOISE**2 + float(weights @ residuals**2)) / freedom
        factors = dict(zip(names, place[terms:].tolist(), strict=True))
        units = tuple(np.exp(place[:terms]).tolist())
        return Regression(units, factors, covariance, math.sqrt(variance), freedom, n)

    def estimate(self, amounts: Sequence[float], table: str = "", noise: bool = True) -> Estimate:
        """Cost of some work, with the interval in which nine of ten measurements are to be expected.

        Args:
            amounts: of each term.
            table: which table; one that was never measured may cost more or less, so its interval is wider.
            noise: False for the mean of many such works instead of a single one.

        >>> unmeasured = Regression.fit(Prior((10.0,), (0.7,)), [])
        >>> told = Regression.fit(Prior((10.0,), (0.7,)), [Measurement((x,), 20 * x, "t") for x in (1.0, 2.0, 3.0)])
        >>> [round(e.high / e.low, 1) for e in (unmeasured.estimate([2.0]), told.estimate([2.0], "t"))]
        [29.2, 1.6]
        """
        terms = len(self.units)
        parts = np.array(amounts, dtype=np.float64) * np.array(self.units)
        total = float(parts.sum())
        if total <= 0:
            return Estimate(0.0, 0.0, 0.0)
        names = list(self.tables)
        slopes = np.concatenate([parts / total, [float(name == table) for name in names]])
        variance = float(slopes @ self.covariance[: terms + len(names), : terms + len(names)] @ slopes)
        variance += self.noise**2 * noise + TABLE_SPREAD**2 * (table not in self.tables)
        expected = total * math.exp(self.tables.get(table, 0.0))
        spread = math.exp(student_quantile((1 + LEVEL) / 2, self.freedom) * math.sqrt(variance))
        return Estimate(expected / spread, expected, expected * spread)
