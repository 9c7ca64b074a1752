"""How relayouts of a table are carried out, whatever is decided about each."""

from __future__ import annotations

from dataclasses import dataclass, field

from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.pipeline.judging.judgements import Rules
from zorder_pipeline.relayout.snapshot import AUTO

__all__ = ["RelayoutSettings"]


@dataclass(frozen=True)
class RelayoutSettings:
    """How a relayout is checked, written, recorded and stopped.

    Attributes:
        rules: kill switch, blackout windows and approvals.
        verify: ``counts`` or ``hash``, see `zorder_pipeline.relayout.job.Safety`.
        row_group_bytes: size of the new files' Parquet row groups; None leaves it to the session and the table.
        committer: how the table is opened and rewritten, see `zorder_pipeline.relayout.snapshot.COMMITTERS`.
        state: folder of the state, where the relayout is recorded, statistics of its files are kept and what it costs
            is known from; None records nothing and asks the gate with its assumptions.
        progress: is told what is being done.
        name: what people call the table, as a request for approval does; its location when empty.
    """

    rules: Rules = field(default_factory=Rules)
    verify: str = "counts"
    row_group_bytes: int | None = None
    committer: str = AUTO
    state: str | None = None
    progress: Progress = silent
    name: str = ""
