"""``tables.yaml`` as frozen models; what is wrong in it is said in one sentence with file, line and key.

Relative paths are resolved against the file's folder, ``${NAME}`` is taken from the environment.
"""

from __future__ import annotations

from .load import load_config
from .models import (
    BlackoutConfig,
    GateConfig,
    LayoutConfig,
    LogConfig,
    PipelineConfig,
    ScheduleConfig,
    SearchConfig,
    SparkConfig,
    TableConfig,
)

__all__ = [
    "BlackoutConfig",
    "GateConfig",
    "LayoutConfig",
    "LogConfig",
    "PipelineConfig",
    "ScheduleConfig",
    "SearchConfig",
]
__all__ += ["SparkConfig", "TableConfig", "load_config"]
