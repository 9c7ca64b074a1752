"""What a run says in the end: sentences as a list, figures by the names of ``zorder apply --json``, causes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from dagster import AssetMaterialization, DagsterEvent, MetadataValue

from zorder_pipeline.assets.events import figures_of, reasons_of, sentence_of
from zorder_pipeline.assets.run import TableOutcome
from zorder_pipeline.cli.runs import _told


def test_reasons_are_sentences_however_short_they_are() -> None:
    facts = {"decision": "declined", "reasons": MetadataValue.md("- not worth it\n- too small"), "files left alone": 2}
    note = AssetMaterialization("t", metadata=facts)
    outcome = TableOutcome("t", "declined", reasons_of(note), figures_of(note))
    told = _told(outcome)
    assert told["reasons"] == ["not worth it", "too small"]
    assert told["skipped_files"] == 2


def test_a_step_that_failed_in_java_tells_the_cause() -> None:
    said = "py4j.protocol.Py4JJavaError: An error occurred while calling o55.collect.\n: java.io.IOError: full\n\tat x"
    failed = SimpleNamespace(user_failure_data=None, error=SimpleNamespace(message=said, cause=None))
    assert sentence_of(cast("DagsterEvent", SimpleNamespace(step_failure_data=failed))) == "full"
