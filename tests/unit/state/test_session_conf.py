"""Settings that the state is written under, in a session that cannot be copied (Spark Connect)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from zorder_pipeline.state.session_conf import apart

TXN = "spark.databricks.delta.write.txn{}"
DEFAULT = "spark.databricks.delta.properties.defaults.{}"
OURS = {TXN.format("AppId"): "etl", TXN.format("Version"): "1", DEFAULT.format("appendOnly"): "true"}
OURS |= {DEFAULT.format("feature.deletionVectors"): "supported"}
THEIRS = {"spark.sql.ansi.enabled": "true", DEFAULT.format("logRetentionDuration"): "interval 3 days"}
THEIRS |= {DEFAULT.format("coordinatedCommits.commitCoordinator-preview"): "dynamodb"}


def frame_in(conf: dict[str, str]) -> Any:
    def unset(name: str) -> None:
        conf.pop(name, None)

    settings = SimpleNamespace(get=conf.get, set=conf.__setitem__, unset=unset, getAll=conf)
    return SimpleNamespace(sparkSession=SimpleNamespace(conf=settings, session_id="one"))


@pytest.mark.parametrize("new", [True, False])
def test_a_session_s_transactions_and_defaults_for_tables_are_none_of_the_state_s(new: bool) -> None:
    conf = OURS | THEIRS
    frame = frame_in(conf)
    with apart(frame, new=new) as rows:
        assert rows is frame
        kept = {name: value for name, value in OURS.items() if not new and name.startswith(DEFAULT.format(""))}
        assert conf == kept | THEIRS
    assert conf == OURS | THEIRS
