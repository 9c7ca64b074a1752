"""The plan: a layout for one table together with what was promised of it. It is plain data, ``plan.json`` on disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from zorder_pipeline.errors import PlanError

from .candidate import ANOTHER, COMPACTION, FULL, INCREMENTAL, Candidate
from .file_stats import Feature
from .key_spec import KeySpec
from .lasting import Lasting
from .plain import MALFORMED, checked, what_is_wrong
from .promise import Promise
from .schema import TableSchema
from .values import DAY
from .whole_file import write_whole

__all__ = ["KEPT", "PLAN_VERSION", "Plan", "Promise", "read_plan", "write_plan"]

PLAN_VERSION = 1
MAX_ROWS = 1 << 63
KEPT = "kept"
"""Origin of a plan that stays with the layout the table has."""


@dataclass(frozen=True)
class Plan:
    """A layout, for which table it was made, and what it promises.

    Attributes:
        table: location of the table.
        table_id: Delta's id of the table.
        schema_hash: `TableSchema.fingerprint` when the plan was made.
        delta_version: table version the sample was taken from.
        spec: the key; None when the table should stay as it is (no layout beat the present one).
        origin: ``learned``, ``kept`` (the table's present layout, for what is new) or ``manual``.
        action: what is done with the table by it, see `Candidate`; "" leaves that to what the files need.
        candidates: what else could be done, this plan's own choice included; the gate decides between them.
        partitions: keys of the partitions that are rewritten; empty for all.
        lost, patience: see `Candidate`.
        target_file_rows: rows per file to aim for.
        promise: see `Promise`.
        predicted: shares of rows read on the training and the validation (select) queries.
        baselines: the same share on the select queries for each baseline layout, by name.
        trials: evaluated layouts.
        seconds: time the search took.
        log_watermark: time of the newest query used, microseconds since 1970 UTC, or None.
        bloom_filters: columns of which each row group of the new files gets Parquet's Bloom filter; one that the table
            does not have any more has none.
        learned_at: when it was learned, microseconds since 1970 UTC; None of plans by hand, and of earlier versions.
        code_version: version of zorder_pipeline.
        notes: sentences worth showing to a person.
        unsought: why no other layout was sought; "" when one was.
        statistics: what statistics of the new files are kept of, for readers through ``reading/``.
        reading: what such readers were measured to read, by figure; empty when no layout was sought for them.
    """

    table: str
    table_id: str
    schema_hash: str
    delta_version: int
    spec: KeySpec | None
    origin: str
    target_file_rows: int
    promise: Promise = field(default_factory=Promise)
    predicted: Mapping[str, float] = field(default_factory=dict)
    baselines: Mapping[str, float] = field(default_factory=dict)
    trials: int = 0
    seconds: float = 0.0
    log_watermark: int | None = None
    code_version: str = ""
    notes: tuple[str, ...] = ()
    statistics: tuple[Feature, ...] = ()
    reading: Mapping[str, float] = field(default_factory=dict)
    action: str = ""
    candidates: tuple[Candidate, ...] = ()
    lost: float | None = None
    patience: float = 1.0
    unsought: str = ""
    partitions: tuple[str, ...] = ()
    learned_at: int | None = None
    bloom_filters: tuple[str, ...] = ()

    @property
    def plan_id(self) -> str:
        """What an approval is for: equal for plans that would do the same with the same table."""
        layout = self.spec.layout_id if self.spec else None
        text = json.dumps([self.table_id, layout, self.effective_action, self.target_file_rows])
        return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()

    @property
    def effective_action(self) -> str:
        """What is done by it, see `Candidate`, also where that was left to what the files need."""
        return self.action or (INCREMENTAL if self.origin == KEPT else ANOTHER)

    @property
    def alone(self) -> Plan:
        """The plan without other choices than its own, with what was measured of that one."""
        chosen = self._chosen
        return replace(self, candidates=() if chosen is None else (replace(chosen, action=self.action),))

    @property
    def promises_part(self) -> bool:
        """Whether the promise is of the files that need the rewrite, and not of the whole table laid out anew."""
        return self.origin == KEPT or self.action == COMPACTION

    def saving_by_partition(self, *, pages: bool = False) -> Mapping[str, float]:
        """Share of the promised saving by partition, see `Candidate`; empty when it is not known.

        Args:
            pages: of readers that skip Parquet's pages by their index, too.
        """
        chosen = self._chosen
        return {} if chosen is None else (chosen.page_partitions if pages else {}) or chosen.partitions

    def lasting_by_partition(self, *, pages: bool = False) -> Mapping[str, Lasting]:
        """What the promised saving comes to as queries move on, by partition, see `Candidate`; empty where none does.

        Args:
            pages: see `saving_by_partition`.
        """
        chosen = self._chosen
        return {} if chosen is None else (chosen.page_lasting if pages else {}) or chosen.lasting

    @property
    def _chosen(self) -> Candidate | None:
        """The candidate that is this plan's choice; another one of its layout where that is for all of the table."""
        same = [c for c in self.candidates if (c.spec, c.target_file_rows) == (self.spec, self.target_file_rows)]
        return next((c for c in same if c.action == self.action), same[0] if self.action == FULL and same else None)

    def choosing(self, candidate: Candidate) -> Plan:
        """This plan with ``candidate`` as its choice."""
        return replace(
            self,
            spec=candidate.spec,
            action=candidate.action,
            target_file_rows=candidate.target_file_rows,
            promise=candidate.promise,
            lost=candidate.lost,
            patience=candidate.patience,
            origin=KEPT if candidate.action in (INCREMENTAL, FULL) else "learned",
        )

    def at(self, now: datetime) -> Plan:
        """The plan as it is some time after it was learned, see `Candidate.later`."""
        moment, told = int(now.timestamp() * 1e6), any(one.lasting or one.page_lasting for one in self.candidates)
        if not told or self.learned_at is None or moment <= self.learned_at:
            return self
        days = (moment - self.learned_at) / DAY
        return replace(self, learned_at=moment, candidates=tuple(one.later(days) for one in self.candidates))

    def as_called(self, schema: TableSchema) -> Plan:
        """The plan by the names that the table's columns have now, see `KeySpec.as_called`."""

        def called(spec: KeySpec | None) -> KeySpec | None:
            return spec.as_called(schema) if spec is not None else None

        spec, candidates = called(self.spec), tuple(replace(c, spec=called(c.spec)) for c in self.candidates)
        return (
            self
            if (spec, candidates) == (self.spec, self.candidates)
            else replace(self, spec=spec, candidates=candidates)
        )

    def refuse_unless_fits(self, table_id: str, schema: TableSchema) -> None:
        """Check that the plan was made for this table with this schema.

        Raises:
            PlanError: it was not; the sentence says why.
        """
        if table_id != self.table_id:
            raise PlanError(
                f"the plan was made for another table ({self.table}; one that was replaced is another since); learn a "
                "new one for this table"
            )
        if self.spec is not None:
            self.spec.refuse_unless_fits(schema, changed=schema.fingerprint != self.schema_hash)

    def to_json(self) -> dict[str, Any]:
        """JSON-ready form, as in plan.json."""
        plain = asdict(replace(self, candidates=()))
        plain["spec"] = self.spec.to_json() if self.spec else None
        plain["candidates"] = [candidate.to_json() for candidate in self.candidates]
        return {"schema_version": PLAN_VERSION, **plain}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Plan:
        """The plan that `to_json` wrote.

        Raises:
            PlanError: it is malformed or of a version this code does not read.
        """
        fields = dict(data)
        if (version := fields.pop("schema_version", None)) != PLAN_VERSION:
            if version is None:
                raise PlanError("it is no plan; give the file that zorder learn or zorder layout wrote with --out")
            raise PlanError(
                f"the plan has schema_version {version!r} and this code reads {PLAN_VERSION}; learn it again"
            )
        try:
            fields["spec"] = KeySpec.from_json(fields["spec"]) if fields["spec"] else None
            fields["promise"] = checked(Promise(**fields["promise"]))
            fields["notes"] = tuple(fields["notes"])
            fields["statistics"] = tuple(Feature.from_json(item) for item in fields.get("statistics", ()))
            fields["partitions"] = tuple(fields.get("partitions", ()))
            fields["bloom_filters"] = tuple(fields.get("bloom_filters", ()))
            fields["candidates"] = tuple(map(Candidate.from_json, fields.get("candidates", ())))
            plan = checked(Plan(**fields))
            targets = [plan.target_file_rows, *(candidate.target_file_rows for candidate in plan.candidates)]
            if not all(0 < rows < MAX_ROWS for rows in targets):
                raise ValueError("target_file_rows is no number of rows")
        except MALFORMED as error:
            raise PlanError(f"the plan is malformed: {what_is_wrong(error)}; learn it again") from error
        return plan


TOO_DEEP = "its values are nested too deeply"
OURS_ONLY = "give the file that zorder learn or zorder layout wrote with --out"


def read_plan(path: str | Path) -> Plan:
    """The plan in a JSON file.

    Raises:
        PlanError: the file is missing, no JSON, or no plan.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise PlanError(f"there is no plan {path}; write one with zorder learn --out {path}") from error
    except OSError as error:
        raise PlanError(f"cannot read plan {path}: {error.strerror or error}; {OURS_ONLY}") from error
    except ValueError as error:
        raise PlanError(f"{path} is no plan, it is no JSON ({error}); {OURS_ONLY}") from error
    except RecursionError as error:
        raise PlanError(f"{path} is no plan, {TOO_DEEP}; {OURS_ONLY}") from error
    if not isinstance(data, dict):
        raise PlanError(f"{path} is no plan, it holds no JSON object; {OURS_ONLY}")
    try:
        return Plan.from_json(data)
    except PlanError as error:
        raise PlanError(f"{path}: {error}") from error
    except RecursionError as error:
        raise PlanError(f"{path} is no plan, {TOO_DEEP}; {OURS_ONLY}") from error


def write_plan(plan: Plan, path: str | Path) -> None:
    """Write ``plan`` to a JSON file, whole or not at all.

    Raises:
        PlanError: the file cannot be written.
    """
    try:
        write_whole(path, json.dumps(plan.to_json(), indent=2) + "\n")
    except OSError as error:
        raise PlanError(f"cannot write plan {path}: {error.strerror}") from error
