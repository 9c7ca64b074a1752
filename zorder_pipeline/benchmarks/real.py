"""How well layouts are learned on real tables: as workload ``layout``, on rows that nobody made up.

Real columns lie unevenly, follow one another, and hold what somebody typed; made-up ones, however careful, do not. The
tables are small, so they are cut into fewer files, and every tenth of a percent of a file weighs more.
"""

from __future__ import annotations

from .cases import cases_named, drilled
from .harness import Options, Outcome, Progress, Workload
from .layout import PEERS, simulated
from .real_tables import REAL_TABLES

__all__ = ["CASES", "WORKLOAD"]

FILES = 100
CASES = tuple(drilled(table.name, table.rows) for table in REAL_TABLES)


def run(options: Options, progress: Progress) -> list[Outcome]:
    """See `Workload`; each table counts as much as any other in the ratios."""
    return simulated(cases_named(options.tables, CASES), options, progress, usual=FILES)


WORKLOAD = Workload(
    "real",
    "rows read by unseen queries of real tables under layouts learned and chosen",
    run,
    peers=PEERS,
    tables=tuple(case.name for case in CASES),
    sized=True,
    scaled=False,
)
