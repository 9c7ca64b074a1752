"""The Dagster instance that the command line works with."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator

from dagster import BetaWarning, DagsterError, DagsterInstance

from zorder_pipeline.errors import ConfigError
from zorder_pipeline.java import reason_of

__all__ = ["instance_at_hand", "quiet_dagster"]


@contextlib.contextmanager
def instance_at_hand() -> Iterator[DagsterInstance]:
    """The instance of DAGSTER_HOME, whose UI then shows the run; a temporary one without it.

    Raises:
        ConfigError: DAGSTER_HOME is no folder, or Dagster refuses it, or its dagster.yaml.
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
    except DagsterError as error:
        raise ConfigError(f"DAGSTER_HOME={home} is refused by Dagster: {reason_of(error)}") from error


@contextlib.contextmanager
def quiet_dagster() -> Iterator[None]:
    """Without Dagster's warnings about its own beta features while the block runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BetaWarning)
        yield
