"""What could be done with a table: one choice of a plan, with what it promises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from .key_spec import KeySpec
from .lasting import Lasting
from .plain import checked
from .promise import Promise

__all__ = ["ANOTHER", "COMPACTION", "FULL", "INCREMENTAL", "Candidate"]

COMPACTION = "compaction only"
"""Small files become larger ones; rows keep about their order."""
INCREMENTAL = "incremental"
"""What does not lie by the present layout is laid out by it."""
FULL = "full"
"""The present layout again, for all of the table."""
ANOTHER = "another layout"
"""All of the table by a layout that it does not have yet."""


@dataclass(frozen=True)
class Candidate:
    """One of the things that could be done with a table; leaving it alone is always another.

    Attributes:
        action: `COMPACTION`, `INCREMENTAL`, `FULL` or `ANOTHER`.
        spec: the key; None for `COMPACTION`.
        target_file_rows: rows per file to aim for.
        promise: what it saves against leaving the table alone.
        partitions: share of the saving by partition (`zorder_pipeline.model.partition_key`); empty when not known.
        page_partitions: the same of readers that skip Parquet's pages by their index, too; empty where it is as that
            of others, or not known.
        lasting, page_lasting: what the saving comes to as queries move on to newer data, by partition, of which one
            that is missing brings nothing then; "" where the table has none. Empty where no query moves on.
        lost: core-seconds that queries have cost more than they would have under this layout, since the table lies by
            its present one; None when it lies by none of ours.
        patience: the present layout must have lost so many times what the change costs, see
            `zorder_pipeline.gate.drift`.
    """

    action: str
    spec: KeySpec | None
    target_file_rows: int
    promise: Promise
    partitions: Mapping[str, float] = field(default_factory=dict)
    page_partitions: Mapping[str, float] = field(default_factory=dict)
    lasting: Mapping[str, Lasting] = field(default_factory=dict)
    page_lasting: Mapping[str, Lasting] = field(default_factory=dict)
    lost: float | None = None
    patience: float = 1.0

    def later(self, days: float) -> Candidate:
        """The same after some days: queries have moved on meanwhile."""

        def aged(parts: Mapping[str, Lasting]) -> dict[str, Lasting]:
            return {name: replace(part, since=part.since + days) for name, part in parts.items()}

        return replace(self, lasting=aged(self.lasting), page_lasting=aged(self.page_lasting))

    def to_json(self) -> dict[str, Any]:
        """JSON-ready form."""
        return asdict(self) | {"spec": self.spec.to_json() if self.spec else None}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Candidate:
        """The candidate that `to_json` wrote.

        Raises:
            PlanError: its layout is malformed.
            MALFORMED: the rest is, see `zorder_pipeline.model.plain`.
        """
        spec = KeySpec.from_json(data["spec"]) if data["spec"] else None
        lasting = {
            name: {key: Lasting.from_json(each) for key, each in data.get(name, {}).items()}
            for name in ("lasting", "page_lasting")
        }
        promise = checked(Promise(**data["promise"]))
        return checked(Candidate(**{**data, **lasting, "spec": spec, "promise": promise}))
