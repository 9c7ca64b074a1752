"""What is remembered of a table from night to night: what its layout has lost, and which other ones there were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from zorder_pipeline.gate.drift import Drift
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.plan import Plan

__all__ = ["Memory", "Rival", "since_then"]


@dataclass(frozen=True)
class Rival:
    """A layout that was once learned: its key and the rows per file it was meant for."""

    spec: KeySpec
    target_file_rows: int


@dataclass(frozen=True)
class Memory:
    """What is remembered of a table.

    Attributes:
        drift: what was lost against which layout; None while the table lies by none of ours.
        rivals: layouts by their id, the present one among them.
        watermark: newest query that was counted, microseconds since 1970 UTC; None when none had a time.
        counted: queries of the log that were counted, for logs without times.
        batch: newest ingestion whose queries were counted; None of a log that was read by itself.
        learned_until: newest query that the present layout was learned from, microseconds since 1970 UTC.
        columns: Spark type by column, as seen last.
        former: names that columns had before they were renamed, with the name of today.
    """

    drift: Drift | None = None
    rivals: Mapping[str, Rival] = field(default_factory=dict)
    watermark: int | None = None
    counted: int = 0
    columns: Mapping[str, str] = field(default_factory=dict)
    former: Mapping[str, str] = field(default_factory=dict)
    batch: int | None = None
    learned_until: int | None = None

    def to_json(self) -> dict[str, Any]:
        """JSON-ready form."""
        rivals = {
            name: {"spec": rival.spec.to_json(), "target_file_rows": rival.target_file_rows}
            for name, rival in self.rivals.items()
        }
        known = {"columns": dict(self.columns), "former": dict(self.former)}
        return {**vars(self), **known, "drift": self.drift.to_json() if self.drift else None, "rivals": rivals}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Memory:
        """What `to_json` wrote.

        Raises:
            KeyError, TypeError, PlanError: another version of the code wrote it.
        """
        rivals = {
            name: Rival(KeySpec.from_json(rival["spec"]), rival["target_file_rows"])
            for name, rival in data["rivals"].items()
        }
        return Memory(**{**data, "drift": Drift.from_json(data["drift"]) if data["drift"] else None, "rivals": rivals})


def since_then(memory: Memory, present: Plan) -> tuple[Drift, int | None]:
    """What was lost since the present layout is in force, and until which moment its queries are counted."""
    assert present.spec is not None
    here = present.spec.layout_id
    if memory.drift is None:
        return Drift.begin(here), present.log_watermark
    return memory.drift if memory.drift.real.present == here else memory.drift.changed(here, 0.0), memory.watermark
