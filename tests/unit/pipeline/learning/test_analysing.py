"""What the analysis of a workload refuses before it looks at the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from zorder_pipeline.errors import ConfigError
from zorder_pipeline.pipeline import LearnSettings, analyse


def test_a_study_that_could_not_be_kept_is_refused_before_the_table_is_sampled(tmp_path: Path) -> None:
    nothing: Any = None
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(ConfigError, match=r"^the study storage \S+notes\.txt is no Optuna journal"):
        analyse(nothing, nothing, nothing, [], LearnSettings(study=str(tmp_path / "notes.txt")))
