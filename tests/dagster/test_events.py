"""What a run says in the end: sentences as a list, figures by the names of ``zorder apply --json``."""

from __future__ import annotations

from dagster import AssetMaterialization, MetadataValue

from zorder_pipeline.assets.events import figures_of, reasons_of
from zorder_pipeline.assets.run import TableOutcome
from zorder_pipeline.cli.runs import _told


def test_reasons_are_sentences_however_short_they_are() -> None:
    facts = {"decision": "declined", "reasons": MetadataValue.md("- not worth it\n- too small"), "files left alone": 2}
    note = AssetMaterialization("t", metadata=facts)
    outcome = TableOutcome("t", "declined", reasons_of(note), figures_of(note))
    told = _told(outcome)
    assert told["reasons"] == ["not worth it", "too small"]
    assert told["skipped_files"] == 2
