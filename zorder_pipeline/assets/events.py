"""What the events of a run say, as plain sentences and figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dagster import AssetMaterialization, AssetObservation, DagsterEvent, MarkdownMetadataValue

from zorder_pipeline.java import reason_in

from .metadata import unescaped

__all__ = ["decided", "figures_of", "note_of", "reasons_of", "scripted", "sentence_of", "spoken"]

DAGSTERS_FILE = "path"
"""Under this name Dagster tells in which file it keeps an asset's value."""
_AS_APPLY = {"delta_version": "version", "rows_rewritten": "rows", "files_left_alone": "skipped_files"}


def note_of(event: DagsterEvent) -> AssetMaterialization | AssetObservation | None:
    """What an event says of an asset: that it was made, or what was noticed; None for any other event."""
    if event.event_type_value == "ASSET_MATERIALIZATION":
        return event.step_materialization_data.materialization
    if event.event_type_value == "ASSET_OBSERVATION":
        return event.asset_observation_data.asset_observation
    return None


def sentence_of(event: DagsterEvent) -> str:
    """Why a step failed."""
    failure = event.step_failure_data
    if failure.user_failure_data is not None and failure.user_failure_data.description:
        return str(failure.user_failure_data.description)
    error = failure.error
    while error is not None and error.cause is not None:
        error = error.cause
    return reason_in(error.message, 600) if error else "unknown failure"


def reasons_of(note: AssetMaterialization | AssetObservation) -> tuple[str, ...]:
    """The sentences of a note, the deciding one first."""
    listed = note.metadata.get("reasons")
    lines = str(listed.value).splitlines() if listed is not None else [note.description or ""]
    return tuple(unescaped(line.removeprefix("- ")) if listed is not None else line for line in lines)


def figures_of(note: AssetMaterialization | AssetObservation) -> dict[str, Any]:
    """Its single figures and names: no pictures, no tables, not the sentences of `reasons_of`, no file of Dagster's."""
    plain = {name: entry for name, entry in note.metadata.items() if name not in ("reasons", DAGSTERS_FILE)}
    values = {name: entry.value for name, entry in plain.items() if not isinstance(entry, MarkdownMetadataValue)}
    return {name: value for name, value in values.items() if isinstance(value, int | float | str)}


def spoken(decision: str) -> str:
    """A decision as notes tell it to people; `decided` is the way back.

    >>> spoken("nothing_to_do")
    'nothing to do'
    """
    return decision.replace("_", " ")


def decided(told: Any) -> str:
    """A decision for scripts, as notes tell it to people.

    >>> decided("nothing to do")
    'nothing_to_do'
    """
    return str(told).replace(" ", "_")


def scripted(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Figures by names for scripts, those of ``zorder apply --json`` where it has them.

    >>> scripted({"Delta version": 3, "files left alone": 2, "dagster/row_count": 9})
    {'version': 3, 'skipped_files': 2, 'row_count': 9}
    """
    names = {name: name.removeprefix("dagster/").lower().replace(" ", "_") for name in figures}
    return {_AS_APPLY.get(names[name], names[name]): value for name, value in figures.items()}
