"""Promises proved on all rows of a table, where the gate may accept them, instead of by a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from zorder_pipeline.layout.learn import Learned
from zorder_pipeline.model.candidate import ANOTHER, Candidate
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.ranges import Boxes

from .candidates import Unseen
from .confirming import confirmed, confirmed_in
from .sizes import other_targets

__all__ = ["MayPay", "earlier_ones_proved", "proved"]

MayPay = Callable[[Plan], bool]
"""Whether the gate may approve a rewrite by a plan (`zorder_pipeline.pipeline.learning.worth.may_pay`)."""


def proved(
    plan: Plan,
    learned: Learned,
    proof: Unseen,
    queries: Sequence[Boxes],
    may_pay: MayPay | None,
    kept: npt.NDArray[np.int32] | None = None,
) -> tuple[Plan, Learned, Unseen]:
    """The plan with its promise, and what was learned and the proof by all rows where these were asked.

    Args:
        queries: those of the promise, as boxes.
        may_pay: None proves every promise.
        kept: see `Unseen.promise`.
    """
    settings, promised = proof.settings, None
    if settings.confirm and learned.spec is not None and queries:
        if may_pay is not None and not settings.enriched_share:
            promised = proof.promise(plan, learned.after)
        if promised is None or may_pay is None or may_pay(replace(plan, promise=promised)):
            snapshot, usual = proof.analysis.snapshot, plan.target_file_rows
            sizes = (usual, *other_targets(snapshot, settings, usual))
            if exact := confirmed_in(snapshot, learned.spec, sizes, queries):
                before, after = exact[usual]
                learned, proof = replace(learned, before=before, after=after), replace(proof, exact=exact)
                promised = None
    return replace(plan, promise=promised or proof.promise(plan, learned.after, kept, learned.before)), learned, proof


def earlier_ones_proved(plan: Plan, proof: Unseen, queries: Sequence[Boxes], may_pay: MayPay) -> Plan:
    """The plan with what layouts of earlier nights promise by all rows, where the gate may accept it."""

    def told(one: Candidate) -> Candidate:
        own = plan.choosing(one)
        if one.action != ANOTHER or one.spec is None or one.spec == plan.spec or not may_pay(own):
            return one
        exact = confirmed(proof.analysis.snapshot, one.spec, one.target_file_rows, queries)
        return one if exact is None else replace(one, promise=proof.promise(own, exact[1], before=exact[0]))

    return replace(plan, candidates=tuple(map(told, plan.candidates)))
