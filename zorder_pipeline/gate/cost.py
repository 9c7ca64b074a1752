"""What a relayout and what a scan cost, in core-seconds (seed 004, section 5.1), fitted to what was measured here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from .regression import Estimate, Measurement, Prior, Regression

__all__ = ["GIGABYTE", "CostModel", "RelayoutWork", "ScanWork"]

GIGABYTE = 1e9
DOUBT = 0.7
"""Log standard deviation of an assumed cost: a factor of three either way is no surprise."""


@dataclass(frozen=True)
class RelayoutWork:
    """What decides what a relayout costs: OPTIMIZE_COST's arguments in the seed, and the files that are opened.

    Attributes:
        bytes: of the files that are replaced.
        features: columns of the key (the seed's Z features).
        additional: further columns that get statistics (its additional features).
        predicates: predicates or expressions that take part as one-bit features (its SOP features).
        files: read and written.
        hashed: whether every row's content is compared before the commit (``verify: hash``).
    """

    bytes: float
    features: int = 1
    additional: int = 0
    predicates: int = 0
    files: int = 0
    hashed: bool = False

    @property
    def amounts(self) -> tuple[float, ...]:
        """Of the terms of `CostModel`: a job, files, GB, and GB per feature of each kind."""
        size = self.bytes / GIGABYTE
        further = (max(0, self.features - 1), self.additional, self.predicates, self.hashed)
        return (1.0, float(self.files), size, *(size * count for count in further))


@dataclass(frozen=True)
class ScanWork:
    """What decides what a query's scan costs.

    Attributes:
        bytes: of the columns it reads, in the files it reads.
        files: that it opens.
        queries: how many such queries; 0 for what is paid per byte and file alone.
    """

    bytes: float
    files: float = 0.0
    queries: float = 0.0

    @property
    def amounts(self) -> tuple[float, ...]:
        """Queries, files, GB."""
        return (self.queries, self.files, self.bytes / GIGABYTE)


@dataclass(frozen=True)
class CostModel:
    """Costs in core-seconds (seconds times the session's cores), as a sum over GB, features, files and jobs.

    The seed's OPTIMIZE_COST = GB x (base + m_Z x Z + m_add x additional + m_SOP x SOP), with a fixed part per job and
    one per file, which small tables feel. The figures below are assumptions until there are measurements (`measured`):
    taken on TPC-H lineitem with two cores and a local disk, and doubted by a factor of about three.

    Attributes:
        base: core-seconds to read, route, sort and write one GB by a one-column key.
        per_feature, per_additional, per_predicate: further core-seconds per GB and feature, see `RelayoutWork`.
        per_hash: further core-seconds per GB to compare every row's content.
        per_job, per_written_file: core-seconds that a relayout takes however small it is, and per file.
        scan: core-seconds a query needs to read one GB.
        per_opened_file: core-seconds to open a file and read its footer.
        per_query: core-seconds that a query takes however little it reads.
        price_per_core_hour: to state results in money; 0 leaves it out.
        relayouts, scans_measured: what was measured, see `measured`.
    """

    base: float = 100.0
    per_feature: float = 6.0
    scan: float = 14.0
    price_per_core_hour: float = 0.0
    per_additional: float = 3.0
    per_predicate: float = 6.0
    per_hash: float = 60.0
    per_job: float = 6.0
    per_written_file: float = 0.04
    per_opened_file: float = 0.01
    per_query: float = 0.3
    relayouts: tuple[Measurement, ...] = field(default=(), repr=False)
    scans_measured: tuple[Measurement, ...] = field(default=(), repr=False)

    def measured(
        self,
        relayouts: Sequence[tuple[str, RelayoutWork, float]],
        scans: Sequence[tuple[str, ScanWork, float]] = (),
    ) -> CostModel:
        """The model fitted to measurements, each a table's id, what was done, and its core-seconds."""
        return replace(
            self,
            relayouts=tuple(Measurement(work.amounts, cost, table) for table, work, cost in relayouts if cost > 0),
            scans_measured=tuple(Measurement(work.amounts, cost, table) for table, work, cost in scans if cost > 0),
        )

    def relayout(self, work: RelayoutWork, table: str = "") -> Estimate:
        """Core-seconds of a relayout, with the interval that nine of ten such relayouts fall into.

        Args:
            table: id of the table; what was measured on it counts most.

        >>> round(CostModel(base=100, per_feature=10, per_job=1e-9).relayout(RelayoutWork(2e9, 3)).expected)
        240
        """
        return self.relayout_fit.estimate(work.amounts, table)

    def scans(self, work: ScanWork, table: str = "") -> Estimate:
        """Core-seconds of many scans that read so much together, with the interval of their mean."""
        return self.scan_fit.estimate(work.amounts, table, noise=False)

    def saved(self, size: float, files: float, table: str = "") -> float:
        """Core-seconds expected of reading so many bytes and opening so many files less; negative for more of them.

        >>> model = CostModel(scan=10, per_opened_file=0.1)
        >>> round(model.saved(1e9, 0), 6), round(model.saved(1e9, -150), 6)
        (10.0, -5.0)
        """
        less, more = ScanWork(max(0.0, size), max(0.0, files)), ScanWork(max(0.0, -size), max(0.0, -files))
        return self.scans(less, table).expected - self.scans(more, table).expected

    def money(self, core_seconds: float) -> float:
        """Core-seconds at the configured price."""
        return core_seconds / 3600 * self.price_per_core_hour

    @cached_property
    def relayout_fit(self) -> Regression:
        """The fit behind `relayout`."""
        further = (self.per_feature, self.per_additional, self.per_predicate, self.per_hash)
        return _fit((self.per_job, self.per_written_file, self.base, *further), self.relayouts)

    @cached_property
    def scan_fit(self) -> Regression:
        """The fit behind `scans`."""
        return _fit((self.per_query, self.per_opened_file, self.scan), self.scans_measured)

    def to_json(self) -> dict[str, float | int]:
        """Fitted unit costs by name, in core-seconds, and how many measurements they rest on."""
        relayout, scan = self.relayout_fit, self.scan_fit
        names = ("per_job", "per_written_file", "base", "per_feature", "per_additional", "per_predicate", "per_hash")
        units = dict(zip(names, relayout.units, strict=True))
        units |= dict(zip(("per_query", "per_opened_file", "scan"), scan.units, strict=True))
        return {**units, "relayouts_measured": relayout.measurements, "scans_measured": scan.measurements}


def _fit(units: tuple[float, ...], measurements: Sequence[Measurement]) -> Regression:
    assumed = tuple(max(unit, 1e-9) for unit in units)  # a cost set to 0 is a very small one
    return Regression.fit(Prior(assumed, (DOUBT,) * len(assumed)), measurements)
