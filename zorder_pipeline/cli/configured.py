"""What the commands take from the configuration at hand: its kill switch, and how Spark reaches tables and state."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from zorder_pipeline.errors import ConfigError
from zorder_pipeline.model.places import is_same_place

from .common import err
from .states import existing

if TYPE_CHECKING:
    from zorder_pipeline.config import PipelineConfig, TableConfig
    from zorder_pipeline.pipeline import Rules

__all__ = [
    "by_hand",
    "configuration_at_hand",
    "configuration_of",
    "half_life_at_hand",
    "kill_switch",
    "retention_at_hand",
    "settings_at_hand",
    "state_of",
    "state_or_at_hand",
    "table_at_hand",
]

MASTER = "spark.master"


def _at_hand() -> PipelineConfig | None:
    """The configuration that ``ZORDER_CONFIG`` or ``DAGSTER_HOME`` names; None when they name none.

    Raises:
        ConfigError: it is wrong.
    """
    from zorder_pipeline.config import config_file, load_config

    try:
        place = config_file(example=False)
    except ConfigError:
        return None
    return load_config(place, check_paths=False)


def settings_at_hand() -> dict[str, str]:
    """Spark's settings of the configuration at hand for a command by hand, which runs on this machine: no master.

    A wrong configuration is told on stderr and not used: most commands need nothing of it.
    """
    try:
        return by_hand(_at_hand())
    except ConfigError as error:
        err.print(f"spark.conf of the configuration at hand is not used: {error}", soft_wrap=True)
        return {}


def by_hand(config: PipelineConfig | None) -> dict[str, str]:
    """Spark's settings of a configuration for a command by hand, without the master."""
    return {} if config is None else {name: text for name, text in config.spark.settings.items() if name != MASTER}


def kill_switch() -> tuple[Rules, dict[str, str]]:
    """What stops a rewrite by hand, and the Spark settings by which the state that may say so is reached.

    Raises:
        ConfigError: the configuration at hand is wrong, so it is not known whether all is stopped.
    """
    from zorder_pipeline.pipeline import Rules

    config = _at_hand()
    if config is None:
        return Rules(), {}
    return Rules(stop=config.stop, stop_state=config.state), by_hand(config)


def state_of(state: str | None, config_path: str | None) -> tuple[str, dict[str, str]]:
    """The state that ``--state``, else ``--config``, else the configuration at hand names, and its Spark settings.

    Raises:
        ZorderError: there is no such state, or no configuration, or it is wrong.
    """
    from zorder_pipeline.config import config_file, load_config

    if state is not None and config_path is None:
        config = None
        with contextlib.suppress(ConfigError):  # whoever names the state is not kept from stopping it
            config = _at_hand()
        return existing(state), config.spark.settings if config is not None else {}
    config = load_config(config_path or config_file(example=False), check_paths=False)
    return config.state if state is None else existing(state), config.spark.settings


def state_or_at_hand(state: str | None) -> str:
    """The state that ``--state``, else the configuration at hand names; without either the folder ``state`` here.

    Raises:
        ConfigError: the configuration at hand is wrong, so it is not known which state it means.
    """
    if state is not None:
        return state
    config = _at_hand()
    return "state" if config is None else config.state


def configuration_at_hand(state: str | None) -> PipelineConfig | None:
    """The configuration at hand if this is its state, for what can be said without it; a wrong one is not used.

    Starting Spark tells of a wrong one.
    """
    with contextlib.suppress(ConfigError):
        return configuration_of(state, None)
    return None


def retention_at_hand(state: str | None) -> int | None:
    """Days before the newest stored query from which queries count, as in the nights that write this state; None where
    the configuration at hand is not its: then all count.
    """
    config = configuration_at_hand(state)
    return None if config is None else config.retention_days


def half_life_at_hand(state: str | None, table: str) -> float | None:
    """Age in days at which a query of a table counts half in the nights that write this state; None for no age.

    Args:
        table: path or catalog name.
    """
    meant = table_at_hand(state, table)
    return None if meant is None else meant.search.half_life_days


def table_at_hand(state: str | None, table: str) -> TableConfig | None:
    """What the configuration at hand says of a table if this is its state; None where it does not, or is another's.

    Args:
        table: path or catalog name.
    """
    config = configuration_at_hand(state)
    named = () if config is None else config.tables
    return next((one for one in named if is_same_place(one.table, table)), None)


def configuration_of(state: str | None, config_path: str | None) -> PipelineConfig | None:
    """The configuration of ``--config``, else the one at hand if ``--state`` is its state; None without either.

    Raises:
        ConfigError: it is wrong; of the one at hand it is not known then whose state that is.
    """
    from zorder_pipeline.config import load_config

    if config_path is not None:
        return load_config(config_path, check_paths=False)
    config = _at_hand() if state is not None else None
    return config if config is not None and is_same_place(config.state, state or "") else None
