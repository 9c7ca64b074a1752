"""Runs of a Dagster instance that have not ended, asked for once."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

from dagster import AssetKey, DagsterInstance, DagsterRun, RunsFilter
from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES

from .common import TABLES

__all__ = ["TAG_LENGTH", "Unfinished"]

TAG_LENGTH = 200
"""At most, of the names of a job's tables in its tag."""


@dataclass(frozen=True, eq=False)
class Unfinished:
    """Those of one moment: of an instance with a thousand queued runs they take a while to read."""

    instance: DagsterInstance

    @cached_property
    def _runs(self) -> list[DagsterRun]:
        return list(self.instance.get_runs(RunsFilter(statuses=NOT_FINISHED_STATUSES)))

    def making(self, asset: AssetKey, jobs: Collection[str] = ()) -> Iterator[DagsterRun]:
        """Runs that make an asset of a table: chosen for it, or all of one of ``jobs`` that is about the table."""
        for run in self._runs:
            if asset in run.asset_selection if run.asset_selection else run.job_name in jobs and _about(run, asset):
                yield run


def _about(run: DagsterRun, asset: AssetKey) -> bool:
    """Whether a job's tag names the asset's table, or no table, or may have been cut short."""
    named = run.tags.get(TABLES, "")
    return not named or len(named) >= TAG_LENGTH or asset.path[0] in named.split(",")
