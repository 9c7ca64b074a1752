"""The Dagster instance that the command line works with."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import yaml
from dagster import BetaWarning, DagsterInstance, DagsterInvalidConfigError
from sqlalchemy.exc import ArgumentError

from zorder_pipeline.errors import ConfigError
from zorder_pipeline.java import reason_of

__all__ = ["instance_at_hand", "quiet_dagster"]


@contextlib.contextmanager
def instance_at_hand() -> Iterator[DagsterInstance]:
    """The instance of DAGSTER_HOME, whose UI then shows the run; a temporary one without it.

    Raises:
        ConfigError: DAGSTER_HOME is no folder, or it cannot be opened: Dagster refuses it, or its dagster.yaml, or a
            database is not there.
    """
    with _instance(os.environ.get("DAGSTER_HOME")) as instance:
        yield instance


def _instance(home: str | None) -> DagsterInstance:
    if not home:
        return DagsterInstance.ephemeral()
    if not os.path.isdir(place := os.path.expanduser(home)):
        raise ConfigError(f"DAGSTER_HOME={home} is no folder; make it with zorder init, or unset DAGSTER_HOME")
    if not os.path.isabs(place):
        raise ConfigError(f"DAGSTER_HOME={home} must be an absolute path: set it to {os.path.abspath(place)}")
    try:
        return DagsterInstance.get()
    except Exception as error:  # of YAML, of a database or of what else dagster.yaml names, which may be any class
        file = Path(place) / "dagster.yaml"
        way_out = f"correct {file}, or see that what it names is there"
        if not file.exists():
            way_out = "mend what lies there, or name another folder"
        raise ConfigError(f"DAGSTER_HOME={home} cannot be opened: {_reason(error)}; {way_out}") from error


def _reason(error: BaseException) -> str:
    """Why an instance cannot be opened, in one line, and without values that may be passwords."""
    if isinstance(error, DagsterInvalidConfigError) and error.errors:
        # of one that says what went wrong while a value was read, that; what it says itself is the trace
        told = [getattr(one.error_data, "message", one.message) for one in error.errors]
        return "; ".join(text.split("Error: ")[-1].partition(". ")[0].strip() for text in told)
    if isinstance(error, yaml.YAMLError):
        return " ".join(str(error).split())  # its last line says where
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, ArgumentError):
        return "a URL of a database is none that can be used"
    return reason_of(error).removeprefix("Failure condition: ").partition(", instead got")[0].rstrip(".")


@contextlib.contextmanager
def quiet_dagster() -> Iterator[None]:
    """Without Dagster's warnings about its own beta features while the block runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BetaWarning)
        yield
