"""When the workload moves: regret accumulates, and a rewrite follows when it exceeds what the rewrite costs.

Layouts are the states of a metrical task system and queries its tasks, as in OReO (Rong et al., Dynamic Data Layout
Optimization with Worst-case Guarantees, 2024). For every rival of the present layout the regret is kept: what queries
have read more than they would have under it, since the present layout is in force, by queries that the rival was not
learned from. It decays, and never falls below zero. A rival is due when its regret exceeds a multiple of the cost of
going over to it: the patience.

With a patience of one a workload that alternates costs a rewrite at each turn that hardly pays. So several patiences
are followed on paper, each as if it alone had decided from the start, and the one whose queries and rewrites together
would have cost least until now decides: while changes have not paid back what they cost, it waits longer. To where
that one lies on paper the table goes as soon as one cost is lost: else it would wait out a large patience on the way
back from a change that a small one had made in vain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

__all__ = ["PATIENCES", "Course", "Drift", "remembered", "schema_changes"]

PATIENCES = (1.0, 10.0, 100.0)


@dataclass(frozen=True)
class Course:
    """A table's way with one patience. Costs are in any one unit, such as bytes read or core-seconds.

    Attributes:
        patience: how many times the cost of a change must have been lost before it is made.
        present: the layout in force; "" for the table as it was written, which is left as soon as one cost is lost.
        regret: by rival, what was lost against it so far.
        spent: what its queries and its changes have cost.
        changes: how many changes were made.
    """

    patience: float
    present: str
    regret: Mapping[str, float] = field(default_factory=dict)
    spent: float = 0.0
    changes: int = 0

    def after(
        self, read: Mapping[str, float], fresh: Mapping[str, Mapping[str, float]] | None = None, decay: float = 1.0
    ) -> Course:
        """The course after some queries.

        Args:
            read: what they cost under each layout known before they were asked, the present one included.
            fresh: layouts learned from some of them, each with what the others cost under the layouts in force and
                under itself, extrapolated to all of these queries.
            decay: part of the earlier regret that still counts.

        >>> Course(1.0, "a", {"b": 2.0}).after({"a": 5.0, "b": 4.0, "c": 6.0}, {"d": {"a": 5.0, "d": 1.0}}).regret
        {'b': 3.0, 'c': 0.0, 'd': 4.0}
        """
        mine = read[self.present]
        regret = {
            name: max(0.0, decay * self.regret.get(name, 0.0) + mine - cost)
            for name, cost in read.items()
            if name != self.present
        }
        for name, part in (fresh or {}).items():
            if name not in read:
                regret[name] = max(0.0, part[self.present] - part[name])
        return replace(self, regret=regret, spent=self.spent + mine)

    def due(self, costs: Mapping[str, float], leader: str = "") -> str | None:
        """The rival to go over to, by the cost of doing so; None to stay.

        Args:
            leader: see `Drift`.

        >>> course = Course(2.0, "a", {"b": 5.0, "c": 6.0})
        >>> course.due({"b": 2.0, "c": 4.0}), course.due({"b": 3.0, "c": 5.0}), course.due({"b": 3.0, "c": 5.0}, "c")
        ('b', None, 'c')
        """
        ripe = {
            name: lost - self.patience_for(name, leader) * costs[name]
            for name, lost in self.regret.items()
            if name in costs
        }
        best = max(ripe, key=ripe.__getitem__, default=None)
        return best if best is not None and ripe[best] >= 0 else None

    def patience_for(self, rival: str, leader: str = "") -> float:
        """How many times the cost of going over to ``rival`` must have been lost before it is made."""
        return min(1.0, self.patience) if not self.present or rival == leader else self.patience

    def changed(self, to: str, cost: float) -> Course:
        """The course after going over to another layout: all regret begins anew."""
        return replace(self, present=to, regret={}, spent=self.spent + cost, changes=self.changes + 1)


@dataclass(frozen=True)
class Drift:
    """What is remembered of a table between nights.

    Attributes:
        real: the table's own way.
        paper: the same with each patience, on paper.
        leader: the layout in force on paper with the patience that decides.
    """

    real: Course
    paper: tuple[Course, ...]
    leader: str = ""

    @staticmethod
    def begin(present: str) -> Drift:
        """Nothing was asked yet."""
        return Drift(Course(1.0, present), tuple(Course(patience, present) for patience in PATIENCES))

    def after(
        self,
        read: Mapping[str, float],
        costs: Mapping[str, float],
        fresh: Mapping[str, Mapping[str, float]] | None = None,
        decay: float = 1.0,
    ) -> Drift:
        """After some queries: the table's regret grows, and on paper changes are made.

        Args:
            read, fresh, decay: see `Course.after`; the layouts in force on paper are wanted, too, and one that is not
                known any more gives way to the table's own.
            costs: of going over to each layout.
        """
        here = self.real.present
        known = [c if c.present in read else replace(c, present=here, regret={}) for c in self.paper]
        later = [course.after(read, fresh, decay) for course in known]
        # before tonight's changes: what one costs is behind at once, what it saves is not seen yet
        best = min(later, key=lambda course: (course.spent, course.patience), default=self.real)
        dues = [course.due(costs) for course in later]
        paper = tuple(c if to is None else c.changed(to, costs[to]) for c, to in zip(later, dues, strict=True))
        leader = paper[later.index(best)].present if paper else ""
        return Drift(replace(self.real.after(read, fresh, decay), patience=best.patience), paper, leader)

    def due(self, costs: Mapping[str, float]) -> str | None:
        """The layout that the table is to go over to, by the cost of doing so; None to stay."""
        return self.real.due(costs, self.leader)

    def patience_for(self, rival: str) -> float:
        """How many times the cost of going over to ``rival`` the table must have lost before it does."""
        return self.real.patience_for(rival, self.leader)

    def changed(self, to: str, cost: float) -> Drift:
        """After the table went over to another layout."""
        return replace(self, real=self.real.changed(to, cost))

    @property
    def in_use(self) -> frozenset[str]:
        """Layouts that are in force, really or on paper: the ones that must not be forgotten."""
        return frozenset({self.real.present, *(course.present for course in self.paper)})

    def to_json(self) -> dict[str, Any]:
        """JSON-ready form."""
        paper = [asdict(course) for course in self.paper]
        return {"real": asdict(self.real), "paper": paper, "leader": self.leader}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Drift:
        """What `to_json` wrote."""
        paper = tuple(Course(**course) for course in data["paper"])
        return Drift(Course(**data["real"]), paper, data.get("leader", ""))  # earlier nights told none


def remembered(drift: Drift, known: Sequence[str], fresh: Sequence[str], most: int) -> list[str]:
    """The layouts worth remembering: those in force, the newest, and of the others the ones most missed.

    Args:
        known: layouts that could be remembered, ``fresh`` among them or not.
        most: how many besides those in force.

    >>> drift = Drift(Course(1.0, "a", {"b": 1.0, "c": 2.0}), ())
    >>> remembered(drift, ["a", "b", "c"], ["d"], 2)
    ['a', 'd', 'c']
    """
    courses = (drift.real, *drift.paper)
    used = [name for name in known if name in drift.in_use]
    rest = [name for name in known if name not in drift.in_use and name not in fresh]
    rest.sort(key=lambda name: -max(course.regret.get(name, 0.0) for course in courses))
    return list(dict.fromkeys([*used, *fresh, *rest[: max(0, most - len(fresh))]]))


def schema_changes(
    before: Mapping[str, str], now: Mapping[str, str], former: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """What happened to a table's columns, in sentences; nothing when nothing is known of before.

    Args:
        before, now: Spark type by column.
        former: names that columns had before they were renamed, with the name of today.

    >>> schema_changes({"a": "int", "b": "int"}, {"b": "bigint", "c": "date"})
    ('column a was dropped', 'column b is now bigint, it was int', 'column c is new (date)')
    >>> schema_changes({"a": "int"}, {"c": "int"}, {"a": "c"})
    ('column a is now called c',)
    """
    if not before:
        return ()
    renamed = {old: (former or {}).get(old) for old in before if old not in now}
    called = tuple(f"column {old} is now called {name}" for old, name in renamed.items() if name in now)
    before = {renamed.get(name) or name: kind for name, kind in before.items()}
    gone = [f"column {name} was dropped" for name in before if name not in now]
    other = [
        f"column {name} is now {now[name]}, it was {kind}"
        for name, kind in before.items()
        if name in now and now[name] != kind
    ]
    new = [f"column {name} is new ({kind})" for name, kind in now.items() if name not in before]
    return (*called, *gone, *other, *new)
