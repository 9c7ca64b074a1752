"""What the analysis of a workload refuses before it looks at the table."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from zorder_pipeline.errors import ConfigError
from zorder_pipeline.features.statistics import MAX_FEATURES
from zorder_pipeline.model.file_stats import Feature
from zorder_pipeline.model.predicate import And
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline import LearnSettings, analyse
from zorder_pipeline.pipeline.learning import analysing


def test_a_study_that_could_not_be_kept_is_refused_before_the_table_is_sampled(tmp_path: Path) -> None:
    nothing: Any = None
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(ConfigError, match=r"^the study storage \S+notes\.txt is no Optuna journal"):
        analyse(nothing, nothing, nothing, [], LearnSettings(study=str(tmp_path / "notes.txt")))


def test_no_more_statistics_are_asked_for_than_are_worth_a_rewrite(monkeypatch: pytest.MonkeyPatch) -> None:
    """Told of three parts of a log, the heaviest of each stay."""

    def told(_: Any, queries: list[LoggedQuery]) -> tuple[Feature, ...]:
        first = int(queries[0].table)
        return tuple(
            Feature(str(first + i), "predicate", "boolean", "", (), weight=99 - i) for i in range(MAX_FEATURES)
        )

    blocks = SimpleNamespace(apart=True, train=SimpleNamespace(queries=[1]), known=SimpleNamespace(queries=[2]))
    monkeypatch.setattr(analysing, "blocks_of", lambda _: blocks)
    monkeypatch.setattr(analysing, "statistics_features", told)
    nothing: Any = None
    queries = [LoggedQuery(first, And(())) for first in ("0", "100", "200")]
    features, train, known = analysing._told(nothing, queries)
    assert len(features) == MAX_FEATURES
    assert {int(feature.name) // 100 for feature in features} == {0, 1, 2}
    assert {feature.name for feature in features} >= {"0", "100", "200"}
    assert (len(train), len(known)) == (MAX_FEATURES, MAX_FEATURES)
