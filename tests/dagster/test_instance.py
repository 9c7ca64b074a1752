"""The instance that the command line works with: what is told of a home that cannot be opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from zorder_pipeline.assets.instance import instance_at_hand
from zorder_pipeline.errors import ConfigError

pytestmark = pytest.mark.dagster

POSTGRES = "storage: {postgres: {postgres_url: %s}}"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("storage: [\n", "expected the node content, but found '<stream end>' in \"{file}\", line 2, column 1"),
        ("- a\n- secret\n", "Expected YAML from file {file} to parse to dictionary"),
        ("storag: {}", 'Received unexpected config entry "storag" at the root'),
        ("storage: {nonsense: 1}", 'Received unexpected config entry "nonsense" at path root:storage'),
        ("telemetry: {enabled: secret}", "Invalid scalar at path root:telemetry:enabled"),
        (
            "storage: {sqlite: {base_dir: {env: NOT_SET}}}",
            'You have attempted to fetch the environment variable "NOT_SET" which is not set',
        ),
        ("storage: {mysql: {mysql_url: 'mysql://me:secret@db/d'}}", "Couldn't import module dagster_mysql"),
        (POSTGRES % "me:secret@db", "a URL of a database is none that can be used"),
        (POSTGRES % "postgresql+psycopg2://me:secret@localhost:1/d", "port 1 failed: Connection refused"),
    ],
)
def test_a_home_that_cannot_be_opened_is_told_with_file_cause_and_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, cause: str
) -> None:
    if "postgres" in text:
        pytest.importorskip("dagster_postgres")
    file = tmp_path / "dagster.yaml"
    file.write_text(text)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.delenv("NOT_SET", raising=False)
    with pytest.raises(ConfigError) as raised, instance_at_hand():
        pass
    told = str(raised.value)
    assert told.startswith(f"DAGSTER_HOME={tmp_path} cannot be opened: ")
    assert told.endswith(f"; correct {file}, or see that what it names is there")
    assert cause.format(file=file) in told
    assert "\n" not in told
    assert "secret" not in told


def test_a_home_without_a_file_of_its_own_is_told_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "history").mkdir()
    (tmp_path / "history" / "runs.db").write_text("no database" * 100)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    with pytest.raises(ConfigError) as raised, instance_at_hand():
        pass
    told = f"DAGSTER_HOME={tmp_path} cannot be opened: file is not a database; mend what lies there, or name another"
    assert str(raised.value) == f"{told} folder"
