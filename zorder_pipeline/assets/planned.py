"""The tables of each job as a code location loaded them, for the runs that it starts.

Dagster plans a run by the definitions that the code location has loaded, and carries it out in a process that reads
``tables.yaml`` anew. So what stops relayouts counts at once; but a step that is no longer there, as its table was
taken out, given another name or a schedule of its own, ended the night of all tables. So jobs stay as they were loaded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from dagster._core.definitions.definitions_load_context import DefinitionsLoadContext, DefinitionsLoadType

from zorder_pipeline.config import PipelineConfig

from .common import NIGHTLY_JOB, chain_job
from .triggers import triggered

__all__ = ["planned_jobs"]


def planned_jobs(config: PipelineConfig) -> Mapping[str, Sequence[str]]:
    """Names of tables by job: as the configuration has them, in a run's process as the code location had them."""
    loading, key = DefinitionsLoadContext.get(), f"zorder jobs of {config.state}"
    if loading.load_type == DefinitionsLoadType.RECONSTRUCTION and key in loading.reconstruction_metadata:
        loaded: dict[str, list[str]] = json.loads(loading.reconstruction_metadata[key])
        return loaded
    jobs = {NIGHTLY_JOB: [table.name for table in config.tables if table.schedule is None]}
    own = [table.name for table in config.tables if table.schedule is not None or triggered(table)]
    jobs |= {chain_job(name): [name] for name in own}
    loading.add_to_pending_reconstruction_metadata(key, json.dumps(jobs))
    return jobs
