"""The stored query log as sensors read it: by delta-rs, without Spark."""

from __future__ import annotations

import json
from collections.abc import Set
from typing import TYPE_CHECKING

from zorder_pipeline.errors import LogError
from zorder_pipeline.model.predicate import comparisons, predicate_from_json
from zorder_pipeline.model.values import DAY

from .stored import RECORD, names_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["current_runs", "filtered_columns"]


def filtered_columns(state: str, table: str, days: float) -> list[tuple[int, Set[str]]]:
    """When each stored query of a table was asked, and the columns that it filters by, oldest first.

    Those that count (see `zorder_pipeline.query_log.intake.known.current`) of so many days before the newest; queries
    without a time are left out.

    Returns:
        Times in microseconds since 1970 UTC.

    Raises:
        LogError: delta-rs cannot read the state.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    folder = state.rstrip("/")
    try:
        files = DeltaTable(f"{folder}/log_files").to_pyarrow_table().to_pandas()
        rows = DeltaTable(f"{folder}/query_log").to_pyarrow_dataset()
        wanted = ds.field("table_name").isin(names_of([table])) & ds.field("query_timestamp").is_valid()
        found = rows.to_table(["run", "source", "predicate", "query_timestamp"], filter=wanted)
    except TableNotFoundError:
        return []
    except (DeltaError, OSError, pa.ArrowException) as error:
        why = (str(error).splitlines() or ["unknown"])[0]
        raise LogError(f"delta-rs cannot read the query log in {folder} ({why})") from error
    counted = current_runs(files)
    kept = [row for row in found.to_pylist() if (row["run"], row["source"]) in counted]
    oldest = max((row["query_timestamp"] for row in kept), default=0) - days * DAY
    recent = sorted((row for row in kept if row["query_timestamp"] >= oldest), key=lambda row: row["query_timestamp"])
    return [(int(row["query_timestamp"]), _columns(row["predicate"])) for row in recent]


def current_runs(files: pd.DataFrame) -> set[tuple[str, str]]:
    """Run and source of the rows of ``log_files`` that count: `known.current` in pandas, and compared with it."""
    import pandas as pd

    for column in RECORD:
        if column not in files:  # of an older state
            files = files.assign(**{column: None})
    old = files["log"].isna()
    newest = files[old].sort_values("batch").groupby("name")["generation"].last()
    files = files[~old | (files["generation"] == files["name"].map(newest))]
    tables = sorted(set(files.loc[files["log"].isna() & files["delta_version"].notna(), "name"]))

    def log_of(name: str) -> str:
        return next((table for table in tables if name.startswith(f"{table}/")), name)

    logs = files["log"].where(files["log"].notna(), files["name"].map(log_of))
    kept = files[~logs.isin(set(files["replaces"].dropna()))]
    return set(pd.MultiIndex.from_frame(kept[["run", "source"]]))


def _columns(predicate: str) -> Set[str]:
    return {item.column for item in comparisons(predicate_from_json(json.loads(predicate)))}
