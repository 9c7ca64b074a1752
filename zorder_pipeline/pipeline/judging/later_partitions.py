"""Partitions that came after a plan: nothing was measured of them, so they are credited as the others were measured."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from zorder_pipeline.errors import TableError
from zorder_pipeline.model.lasting import Lasting
from zorder_pipeline.model.partition_key import partition_key
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.values import DAY
from zorder_pipeline.relayout.snapshot import TableSnapshot

__all__ = ["LaterPartitions", "later_partitions"]

Values = tuple[str | None, ...]


@dataclass(frozen=True)
class LaterPartitions:
    """What is credited of the partitions that came after a plan.

    Attributes:
        there: their values; empty where none that counts came, or that is not known.
        logged: share of the plan's promise that its logged queries save in a byte of them.
        lasting: what that comes to as queries move on to them; None where none does.
    """

    there: Collection[Values] = field(default_factory=frozenset)
    logged: float = 0.0
    lasting: Lasting | None = None

    def credited(self, values: Values, size: float) -> float:
        """Share of the promise that so many bytes of a partition bring, if it came after the plan; else 0."""
        return self.logged * size if values in self.there else 0.0

    def lasts(self, values: Values, size: float) -> Lasting | None:
        """What that share comes to; None where no query moves on, or it did not come after the plan."""
        return self.lasting.times(size) if self.lasting is not None and values in self.there else None


def later_partitions(
    snapshot: TableSnapshot, plan: Plan, wanted: Collection[Values], *, pages: bool = False
) -> LaterPartitions:
    """What is credited of those partitions that came after ``plan``, by what it measured of the others.

    What queries save on all days alike is saved in a byte of them as in one of the table. What moves on from the
    partitions that the plan knew moves on to them: a byte of them has what a byte of these has from the beginning of
    the day of the newest logged query on, and all of them together no more than all of these.

    Args:
        wanted: values of the partitions that would be rewritten: unless one of them is unknown to the plan, the table
            is not looked at as it was.
        pages: see `Plan.saving_by_partition`.
    """
    columns, known = snapshot.partition_columns, plan.saving_by_partition(pages=pages)
    if not (columns and known) or snapshot.version <= plan.delta_version:
        return LaterPartitions()
    if all(partition_key(columns, values) in known for values in wanted):
        return LaterPartitions()
    try:
        then = set(snapshot.at(plan.delta_version).files().partitions)
    except TableError:  # Delta's log does not hold it any more
        return LaterPartitions()
    sizes: dict[Values, int] = {}
    files = snapshot.files()
    for values, size in zip(files.partitions, files.bytes.tolist(), strict=True):
        sizes[values] = sizes.get(values, 0) + size
    keys = {values: partition_key(columns, values) for values in sizes}
    there = {values for values in sizes if values not in then and keys[values] not in known}
    measured = {keys[values]: size for values, size in sizes.items() if keys[values] in known}
    whole, later = max(1, sum(sizes.values())), sum(sizes[values] for values in there)
    lasting = plan.lasting_by_partition(pages=pages)
    if not lasting:
        return LaterPartitions(there, sum(known[key] for key in measured) / whole)
    logged, told = _moved_on(lasting, measured, whole, later, (plan.log_watermark or 0) % DAY / DAY)
    return LaterPartitions(there, logged, told)


def _moved_on(
    lasting: Mapping[str, Lasting], measured: Mapping[str, int], whole: int, later: int, hour: float
) -> tuple[float, Lasting]:
    """Per byte that came later the share of the promise that stays, and with what moves on to it.

    Args:
        measured: bytes of each partition that the plan knew.
        whole, later: bytes of the table, and of all that came later.
        hour: part of its day that had passed when the newest query was asked, 0 to 1.
    """
    told = next(iter(lasting.values()))
    own = [key for key in measured if key in lasting]
    days, sizes = np.array(told.days), np.array([measured[key] for key in own], dtype=np.int64)
    shares = np.array([lasting[key].shares for key in own]).reshape(len(own), len(days))
    stays = shares.min(axis=1)
    moves = shares - stays[:, None]
    left = int(sizes[moves.any(axis=1)].sum())
    logged = float(stays.sum()) / whole
    moving = Lasting(told.days, tuple((moves.sum(axis=0) / max(1, left, later)).tolist()))
    edges = [days[0], *((days[1:] + days[:-1]) / 2), days[-1]]  # told on the same days, so that over many it is as much
    begins = told.since + hour  # what is told begins with that query, and not with its day
    moved = [moving.over(float(last - first), since=float(first - begins)) for first, last in pairwise(edges)]
    return logged, Lasting(told.days, tuple(logged + share for share in moved), told.since)
