"""A relayout in the state's books: noted when it begins, and recorded when it is committed."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from zorder_pipeline.java import reason_of
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.progress import Progress
from zorder_pipeline.pipeline.costs import relayout_work
from zorder_pipeline.pipeline.judging.judgements import Judgement
from zorder_pipeline.pipeline.records import Preview
from zorder_pipeline.relayout.job import RelayoutResult
from zorder_pipeline.relayout.snapshot import TableSnapshot
from zorder_pipeline.state.begun import Beginnings, Begun
from zorder_pipeline.state.ledger import Ledger

__all__ = ["Booking"]


@dataclass
class Booking:
    """What the state is told of one relayout.

    Who is killed after a commit records nothing, and the plan would be lost: so the next run has to find it noted.

    Attributes:
        state: its folder.
        snapshot: the table before it.
        would: what it is to rewrite.
        judged: what was decided, of which an attempt that lost a race may have done a part already.
        verify: see `zorder_pipeline.pipeline.costs.relayout_work`.
        progress: is told what could not be written.
    """

    state: str
    snapshot: TableSnapshot
    plan: Plan
    would: Preview
    judged: Judgement
    verify: str
    progress: Progress
    _begun: Begun | None = field(default=None, init=False)
    _noted: bool = field(default=False, init=False)
    _behind: bool = field(default=False, init=False)

    def begin(self, run: str) -> None:
        """Note what would be recorded, for the next run if this one does not live to do it."""
        size, gate = self.would.bytes_rewritten, self.judged.said
        known = {**self._work, "credited": self.judged.credited_by(size, size)}
        self._begun = Begun(run, self.snapshot.version, time.time(), self.plan, size, gate, known)
        try:
            self._noted = Beginnings(self.snapshot.spark, self.state).note(self._begun)
        except Exception as error:  # what follows from a state that cannot be written is told after the commit
            self.progress(f"{self.state} cannot be written ({reason_of(error)})")

    def record(self, done: RelayoutResult) -> str:
        """Record what was committed so far; why that failed, "" when it did not."""
        layout = self.plan.spec.layout_id if self.plan.spec else ""
        known = {**self._work, "credited": self.judged.credited_by(done.bytes_rewritten, self.would.bytes_rewritten)}
        self._behind = True
        try:
            ledger = Ledger(self.snapshot.spark, self.state)
            ledger.record(self.plan, layout, done.version, vars(done), self.judged.said, known)
        except Exception as error:
            why = f"could not be recorded in {self.state} ({reason_of(error)})"
            why += "; the next run does it" if self._noted else ", so its promise will not be checked"
            return f"version {done.version} of {self.snapshot.location} is committed, but {why}"
        self._behind = False
        return ""

    def keep(self, done: RelayoutResult) -> None:
        """`record` while it goes on; that it failed is only told."""
        if failed := self.record(done):
            self.progress(failed)

    def close(self) -> None:
        """Forget that it was begun, as it has ended; not where a bin of it could not be recorded."""
        if self._begun is not None and not self._behind:
            with contextlib.suppress(Exception):  # one that stays is recorded once all the same
                Beginnings(self.snapshot.spark, self.state).forget(self._begun)

    @cached_property
    def _work(self) -> dict[str, Any]:
        work = relayout_work(self.snapshot, self.plan, self.would, self.verify)
        names = ("additional", "predicates", "hashed")
        return {name: getattr(work, name) for name in names} | {"replaced_version": self.snapshot.version}
