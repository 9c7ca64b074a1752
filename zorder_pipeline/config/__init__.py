"""``tables.yaml`` as frozen models; what is wrong in it is said in one sentence with file, line and key.

Relative paths are resolved against the file's folder, ``${NAME}`` is taken from the environment.
"""

from __future__ import annotations

from .load import config_file, load_config
from .models import (
    BlackoutConfig,
    GateConfig,
    LayoutConfig,
    LogConfig,
    MonitoringConfig,
    PipelineConfig,
    ScheduleConfig,
    SearchConfig,
    SparkConfig,
    TableConfig,
    TriggerConfig,
)

__all__ = ["BlackoutConfig", "GateConfig", "LayoutConfig", "LogConfig", "MonitoringConfig", "PipelineConfig"]
__all__ += ["ScheduleConfig", "SearchConfig", "SparkConfig", "TableConfig", "TriggerConfig"]
__all__ += ["config_file", "load_config"]
