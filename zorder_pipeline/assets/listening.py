"""What a run says on a terminal of what its assets log, and how its failures are told apart."""

from __future__ import annotations

import logging
import re

from dagster import DagsterEvent, InitLoggerContext, LoggerDefinition

from zorder_pipeline.model.progress import Progress

from .events import sentence_of

__all__ = ["LISTENER", "interruption", "is_of_a_check", "listener"]

LISTENER = "progress"
DAGSTERS_OWN = ("Skipping step ", "Dependencies for step ")
"""How the lines begin that Dagster itself logs of steps that are not done; why they are not, their table's own say."""
DECIDED = re.compile(r"(?P<table>[^:]+: )(?P<decision>declined|postponed|nothing to do): (?P<reason>.*)", re.DOTALL)
"""How a decision is told with a reason for it."""
INTERRUPTIONS = ("KeyboardInterrupt", "DagsterExecutionInterruptedError")
CHECK_FAILED = "DagsterAssetCheckFailedError"


def interruption(event: DagsterEvent) -> KeyboardInterrupt | None:
    """What ended a step or the run, if that was an interruption; with what the step noted of itself."""
    failed = event.step_failure_data if event.is_step_failure else event.job_failure_data if event.is_failure else None
    error = failed.error if failed is not None else None
    while error is not None:
        if error.cls_name in INTERRUPTIONS:
            found = KeyboardInterrupt()
            for note in error.message.splitlines()[1:]:
                found.add_note(note)
            return found
        error = error.cause
    return None


def is_of_a_check(event: DagsterEvent) -> bool:
    """Whether a step failed as a check that blocks did not pass, which the check itself has told."""
    error = event.step_failure_data.error
    return error is not None and error.cls_name == CHECK_FAILED


class _Once:
    """Sentences for a terminal, each once: the gate, the budget and the last asset each give a decision's reasons, as
    each has a page of its own in the UI.

    >>> once = _Once()
    >>> [once(said) for said in ("t: not worth it", "t: declined: not worth it", "t: declined: not worth it", "ready")]
    ['t: not worth it', 't: declined', '', 'ready']
    """

    def __init__(self) -> None:
        self._told: set[str] = set()

    def __call__(self, said: str) -> str:
        """What is to be told of it; "" for nothing."""
        found = DECIDED.fullmatch(said)
        if found is not None and (table := found["table"]) + found["reason"] in self._told:
            said = f"{table}{found['decision']}"
            if said in self._told:
                return ""
        elif found is not None:
            self._told.add(found["table"] + found["reason"])
        self._told.add(said)
        return said


def listener(progress: Progress | None) -> LoggerDefinition:
    """Dagster's logger `LISTENER`: what assets log, and failures at once, go to ``progress``."""
    once = _Once()

    class _Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            facts = getattr(record, "dagster_meta", {})
            said, event = facts.get("orig_message") or record.getMessage(), facts.get("dagster_event")
            if progress is None:
                return
            if event is None and not said.startswith(DAGSTERS_OWN):
                if told := once(said):
                    progress(told)
            elif event is not None and event.is_step_failure and not (interruption(event) or is_of_a_check(event)):
                progress(f"failed: {sentence_of(event)}")  # the night goes on for hours

    def make(_: InitLoggerContext) -> logging.Logger:
        made = logging.Logger(LISTENER, logging.INFO)
        made.addHandler(_Handler())
        return made

    return LoggerDefinition(make, description="what the assets say, for the command line")
