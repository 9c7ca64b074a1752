"""Thin Dagster shells over `zorder_pipeline.pipeline`: one group of assets per table of tables.yaml.

``defs`` is made when it is first asked for, from the file that ``ZORDER_CONFIG`` names (see `config_file`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zorder_pipeline.config import config_file

from .definitions import STAGES, build_definitions, load_definitions

if TYPE_CHECKING:
    from dagster import Definitions

    defs: Definitions

__all__ = ["STAGES", "build_definitions", "config_file", "defs", "load_definitions"]


def __getattr__(name: str) -> Any:
    if name == "defs":
        globals()["defs"] = made = load_definitions()
        return made
    raise AttributeError(name)
