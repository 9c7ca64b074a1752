"""What a backfill notes of its partitions when it is tried again after lost races."""

from collections.abc import Iterator

import pytest
from dagster import (
    AssetExecutionContext,
    AssetKey,
    AssetMaterialization,
    AssetRecordsFilter,
    BackfillPolicy,
    DagsterInstance,
    StaticPartitionsDefinition,
    asset,
    materialize,
)

from zorder_pipeline.assets import common
from zorder_pipeline.assets.common import Shelf
from zorder_pipeline.assets.partitions import _recorded
from zorder_pipeline.config import PipelineConfig, TableConfig
from zorder_pipeline.errors import LostRaceError
from zorder_pipeline.model.results import ApplyResult
from zorder_pipeline.pipeline import PartitionOutcome

pytestmark = pytest.mark.dagster

KEYS = ("p=1", "p=2", "p=3", "p=4")
KEY = AssetKey(["t", "clustered_partitions"])
TABLE = TableConfig(name="t", location="/t")
SHELF = Shelf(PipelineConfig(tables=(TABLE,), state="/state"), TABLE)
WHOLE_RANGE = {"dagster/asset_partition_range_start": KEYS[0], "dagster/asset_partition_range_end": KEYS[-1]}


def backfilled(instance: DagsterInstance, attempts: list[dict[str, str]]) -> dict[str, list[str]]:
    """The decisions noted of each partition by runs, oldest first.

    Args:
        attempts: what becomes of each partition by attempt; it loses a race where that is "lost".
    """

    def outcomes(decisions: dict[str, str]) -> Iterator[PartitionOutcome]:
        for key, decision in decisions.items():
            if decision == "lost":
                yield PartitionOutcome(key, error=LostRaceError("another writer was faster"))
            else:
                yield PartitionOutcome(key, result=ApplyResult(3, decision, ("so it is",)))

    @asset(
        key=KEY,
        partitions_def=StaticPartitionsDefinition(KEYS),
        backfill_policy=BackfillPolicy.single_run(),
        output_required=False,
    )
    def partitions(context: AssetExecutionContext) -> Iterator[AssetMaterialization]:
        yield from _recorded(context, SHELF, outcomes(attempts[context.retry_number]), {})

    assert materialize([partitions], instance=instance, tags=WHOLE_RANGE).success
    found: dict[str, list[str]] = {key: [] for key in KEYS}
    for record in reversed(instance.fetch_materializations(AssetRecordsFilter(KEY), limit=100).records):
        assert record.asset_materialization is not None
        decision = str(record.asset_materialization.metadata["decision"].value)
        found[str(record.asset_materialization.partition)].append(decision)
    return found


def test_a_retry_leaves_what_the_run_did_the_newest_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "backoff", lambda *_: 0)
    attempts = [
        dict(zip(KEYS, ("applied", "lost", "applied", "declined"), strict=True)),
        dict(zip(KEYS, ("nothing_to_do", "lost", "applied", "postponed"), strict=True)),
        dict(zip(KEYS, ("nothing_to_do", "nothing_to_do", "nothing_to_do", "postponed"), strict=True)),
    ]
    with DagsterInstance.ephemeral() as instance:
        assert backfilled(instance, attempts) == {
            "p=1": ["applied"],
            "p=2": ["nothing to do"],
            "p=3": ["applied", "applied"],
            "p=4": ["declined", "postponed", "postponed"],
        }
        later = backfilled(instance, [dict.fromkeys(KEYS, "nothing_to_do")])
        assert {notes[-1] for notes in later.values()} == {"nothing to do"}, "another run's are its own"
