"""Searches kept in the state: what a night tried, to be looked at from wherever the state can be read."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from zorder_pipeline.errors import ZorderError
from zorder_pipeline.layout.learn import Learned
from zorder_pipeline.layout.study import OBJECTIVE, RUN
from zorder_pipeline.layout.study_json import from_json, to_json
from zorder_pipeline.model.choices import Cost
from zorder_pipeline.model.file_stats import shown
from zorder_pipeline.model.places import shown_place
from zorder_pipeline.relayout.snapshot import TableSnapshot
from zorder_pipeline.state.studies import KeptStudy, Studies

if TYPE_CHECKING:
    import optuna
    from pyspark.sql import SparkSession

__all__ = ["keep_study", "kept_studies", "kept_study"]


def keep_study(spark: SparkSession, state: str, snapshot: TableSnapshot, learned: Learned, cost: Cost) -> None:
    """Add a search's trials to the state; nothing where none was made, or where the same one is kept already."""
    study = learned.study
    if study is None or not study.get_trials(deepcopy=False):
        return
    told, known = to_json(study), study.user_attrs
    told["columns"] = [name for name in told["features"] if snapshot.schema.find(name) is not None]
    now, best = round(time.time() * 1e6), study.best_value
    found = KeptStudy(study.study_name, now, cost, len(told["trials"]), best, learned.seconds)
    search = f"{known[OBJECTIVE]}-{known[RUN]['id']}"
    Studies(spark, state).keep(snapshot.table_id, snapshot.location, search, found, told)


def kept_studies(spark: SparkSession, state: str, table_id: str, day: date | None = None) -> list[KeptStudy]:
    """The searches of a table that the state keeps, the newest first.

    Args:
        day: of this day in UTC alone.

    Raises:
        ZorderError: there is none.
    """
    found = Studies(spark, state).kept(table_id, day)
    if not found:
        when = "" if day is None else f" of {day}"
        way_out = "zorder learn --study keeps one that is made by hand" if day is None else "name another day"
        raise ZorderError(
            f"{shown_place(state)} keeps no search{when} for this table: nights add those that they make; {way_out}"
        )
    return found


def kept_study(
    spark: SparkSession, state: str, table_id: str, which: KeptStudy, redact_key: str | None = None
) -> optuna.Study:
    """A kept search as an Optuna study in memory, as `zorder_pipeline.layout.search.Found` has it.

    Args:
        which: one of `kept_studies`.
        redact_key: with it features that were no column of the table have names that tell no literal, see
            `zorder_pipeline.model.file_stats.shown`.
    """
    told = Studies(spark, state).history(table_id, which.searched_at)
    return from_json(told, {} if redact_key is None else _without_literals(told, redact_key))


def _without_literals(told: Mapping[str, Any], key: str) -> dict[str, str]:
    names: dict[str, str] = {}
    for feature in told["features"]:
        if feature not in told["columns"] and not feature.startswith("<"):
            name = shown(feature.rstrip(), "expression", (), key)
            while name in names.values():  # one of four hex digits may be another's, too
                name += " "
            names[feature] = name
    return names
