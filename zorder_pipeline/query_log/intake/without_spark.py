"""The stored query log as sensors read it: by delta-rs, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Set
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from zorder_pipeline.errors import LogError
from zorder_pipeline.model.moments import FIRST, latest
from zorder_pipeline.model.predicate import comparisons, predicate_from_json
from zorder_pipeline.model.values import DAY

from .stored import RECORD, names_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = ["StoredQueries", "current_runs"]


class StoredQueries:
    """The stored queries as they are now, for one table after another: what tells which of them count is read once.

    Args:
        state: folder of the state.

    Raises:
        LogError: delta-rs cannot read the state; so do the methods.
    """

    def __init__(self, state: str) -> None:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        self._folder = state.rstrip("/")
        self._rows, self._counted, self._latest = None, list[tuple[str, str]](), latest()
        with self._reading():
            try:
                files = DeltaTable(f"{self._folder}/log_files").to_pyarrow_table().to_pandas()
                self._rows = DeltaTable(f"{self._folder}/query_log").to_pyarrow_dataset()
            except TableNotFoundError:  # no log was read yet
                return
        self._counted = list(current_runs(files))

    def moments(self, table: str, days: float) -> npt.NDArray[np.int64]:
        """When each of a table's queries was asked, microseconds since 1970 UTC, oldest first, shape (queries,).

        Those that count (see `zorder_pipeline.query_log.intake.known.current`) of so many days before the newest;
        queries without a time are left out, and those of a time at which none can have run, as older states hold.
        """
        asked = self._read(table)["query_timestamp"].to_numpy(np.int64)
        return np.sort(asked[asked >= asked.max(initial=0) - days * DAY])

    def filtered_columns(self, table: str, since: int) -> list[Set[str]]:
        """Columns that each of a table's queries from a moment of `moments` on filters by, oldest first."""
        found = self._read(table, since).sort_values("query_timestamp", kind="stable")
        known = {text: _columns(text) for text in found["predicate"].unique()}
        return [known[text] for text in found["predicate"]]

    def _read(self, table: str, since: int | None = None) -> pd.DataFrame:
        """Times of a table's queries that count; from a moment on, with the predicates, which are most of the bytes."""
        import pandas as pd
        import pyarrow.dataset as ds

        if self._rows is None:
            return pd.DataFrame({"query_timestamp": np.empty(0, np.int64), "predicate": np.empty(0, object)})
        moment, place, more = ds.field("query_timestamp"), ["run", "source"], [] if since is None else ["predicate"]
        wanted = (moment >= max(FIRST, since or 0)) & (moment <= self._latest)
        wanted &= ds.field("table_name").isin(names_of([table]))
        with self._reading():
            rows: pa.Table = self._rows.to_table([*place, "query_timestamp", *more], filter=wanted)
        found: pd.DataFrame = rows.to_pandas(categories=place)
        return found.loc[pd.MultiIndex.from_frame(found[place]).isin(self._counted)]

    @contextmanager
    def _reading(self) -> Iterator[None]:
        import pyarrow as pa
        from deltalake.exceptions import DeltaError

        try:
            yield
        except (DeltaError, OSError, pa.ArrowException) as error:
            why = (str(error).splitlines() or ["unknown"])[0]
            raise LogError(f"delta-rs cannot read the query log in {self._folder} ({why})") from error


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
