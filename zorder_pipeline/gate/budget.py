"""One budget for a night: what gains most per core-hour is done first, over all tables and partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Choice", "allot", "worthwhile"]

Step: TypeAlias = "tuple[float, str, int, Choice, float]"
"""Falling with the gain per core-second, its unit, its place among that one's choices, the choice, and what it costs
more than the one before."""


@dataclass(frozen=True)
class Choice:
    """One way to treat a table or a partition.

    Attributes:
        name: tells the choices of a unit apart.
        cost: core-seconds, positive.
        gain: what it saves at least, less its cost, in core-seconds.
    """

    name: str
    cost: float
    gain: float


def worthwhile(choices: Sequence[Choice]) -> list[Choice]:
    """The choices that can be best at some price, cheapest first: each dearer one gains more, at a falling rate.

    What costs no less and gains no more than another one is dominated; what lies below the line between two others is
    never the best use of the next core-second.

    >>> [
    ...     c.name
    ...     for c in worthwhile([Choice("a", 1, 5), Choice("dearer", 2, 5), Choice("b", 4, 8), Choice("loss", 1, -1)])
    ... ]
    ['a', 'b']
    """
    kept: list[Choice] = []
    for choice in sorted(choices, key=lambda choice: (choice.cost, -choice.gain)):
        if choice.gain <= (kept[-1].gain if kept else 0.0):
            continue
        while kept and _rate(choice, kept[-1]) >= _rate(kept[-1], kept[-2] if len(kept) > 1 else None):
            kept.pop()
        kept.append(choice)
    return kept


def allot(units: Mapping[str, Sequence[Choice]], budget: float | None) -> dict[str, Choice]:
    """At most one choice per unit, together within ``budget`` core-seconds; None is no limit.

    Steps from one choice of a unit to its next better one are taken in the order of gain per core-second, as long as
    they fit (the greedy solution of a multiple-choice knapsack). If the single choice that gains most and fits gains
    more than all of that, it is taken first, so that the gain is never less than half of what is possible.

    >>> units = {"a": [Choice("full", 10, 20)], "b": [Choice("full", 4, 16)], "c": [Choice("full", 8, 12)]}
    >>> sorted(allot(units, 15))
    ['a', 'b']
    """
    left = float("inf") if budget is None else budget
    units = {unit: [choice for choice in choices if choice.cost <= left] for unit, choices in units.items()}
    steps: list[Step] = []
    for unit, choices in units.items():
        before: Choice | None = None
        for place, choice in enumerate(worthwhile(choices)):
            more = choice.cost - (before.cost if before else 0.0)
            steps.append((-_rate(choice, before), unit, place, choice, more))
            before = choice
    steps.sort(key=lambda step: step[:3])
    taken = _filled(steps, left)
    best = _best_alone(units, left)
    if best is not None and best[1].gain > sum(choice.gain for choice in taken.values()):
        unit, choice = best
        return {unit: choice} | _filled([step for step in steps if step[1] != unit], left - choice.cost)
    return taken


def _filled(steps: Sequence[Step], left: float) -> dict[str, Choice]:
    """What fits of some steps, one after the other."""
    taken: dict[str, Choice] = {}
    reached: dict[str, int] = {}
    for _, unit, place, choice, more in steps:
        if reached.get(unit, 0) == place and more <= left:  # a step builds on the one before it
            taken[unit], reached[unit] = choice, place + 1
            left -= more
    return taken


def _best_alone(units: Mapping[str, Sequence[Choice]], budget: float) -> tuple[str, Choice] | None:
    fitting = [(unit, choice) for unit, choices in units.items() for choice in choices if choice.cost <= budget]
    gaining = [item for item in fitting if item[1].gain > 0]
    return max(gaining, key=lambda item: (item[1].gain, -item[1].cost), default=None)


def _rate(choice: Choice, before: Choice | None) -> float:
    """Gain per core-second of going from one choice to the next."""
    gain = choice.gain - (before.gain if before else 0.0)
    return gain / max(choice.cost - (before.cost if before else 0.0), 1e-12)
