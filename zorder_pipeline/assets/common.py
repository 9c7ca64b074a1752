"""What every asset needs: the Spark resource, keys and names, and errors as one sentence in the run's page."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dagster import AssetExecutionContext, AssetKey, AssetsDefinition, BackfillPolicy, Failure, RetryRequested, asset
from dagster_pyspark import LazyPySparkResource

from zorder_pipeline import __version__
from zorder_pipeline.config import PipelineConfig, TableConfig
from zorder_pipeline.errors import LostRaceError, ZorderError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["QUERY_LOG", "DeltaSparkResource", "Shelf", "stage_asset", "told"]

QUERY_LOG = AssetKey("query_log")
LOST_RACE_RETRIES = 3


class DeltaSparkResource(LazyPySparkResource):
    """dagster-pyspark's lazy session, started as the command line starts it: with Delta's jars and our errors."""

    def _init_session(self) -> None:
        if self._spark_session is None:
            from zorder_pipeline.spark import session

            self._spark_session = session(self.spark_config, "zorder dagster")

    @property
    def session(self) -> SparkSession:
        """The Spark session; the first use starts it."""
        found: SparkSession = self.spark_session
        return found


@dataclass(frozen=True)
class Shelf:
    """One table's place among the assets: its configuration and the keys of its stages."""

    config: PipelineConfig
    table: TableConfig

    def key(self, stage: str) -> AssetKey:
        """``[table, stage]``."""
        return AssetKey([self.table.name, stage])


def stage_asset(
    shelf: Shelf, stage: str, kinds: set[str], code: Mapping[str, Any], **options: Any
) -> Callable[[Callable[..., Any]], AssetsDefinition]:
    """Dagster's ``@asset`` with what all of a table's assets have in common.

    Args:
        code: what of the configuration decides the result; a change makes Dagster show the asset as stale.
        options: further arguments of ``@asset``.
    """
    settings = hashlib.blake2b(repr(sorted(code.items())).encode(), digest_size=4).hexdigest()
    decorate: Callable[[Callable[..., Any]], AssetsDefinition] = asset(
        key=shelf.key(stage),
        group_name=shelf.table.name,
        kinds=kinds,
        owners=list(shelf.table.owners) or None,
        code_version=f"{__version__}-{settings}",
        pool="spark",
        backfill_policy=BackfillPolicy.single_run(),
        **options,
    )
    return decorate


@contextlib.contextmanager
def told(context: AssetExecutionContext, about: str) -> Iterator[None]:
    """Turn an expected error into the run's failure sentence; a lost race is tried again, nothing else is."""
    try:
        yield
    except LostRaceError as error:
        if context.retry_number < LOST_RACE_RETRIES:
            wait = 30 * 2**context.retry_number
            context.log.warning(f"{about}: {error}; trying again in {wait} s")
            raise RetryRequested(LOST_RACE_RETRIES, wait) from error
        raise Failure(f"{about}: {error}", allow_retries=False) from error
    except ZorderError as error:
        raise Failure(f"{about}: {error}", allow_retries=False) from error
